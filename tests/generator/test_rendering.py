"""`mcpgen render`: folders of the user's templates, what they make, and every way to be wrong."""

from __future__ import annotations

import ast
import json
import runpy
import sys
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import documents
import mcpgen.spec
from generator.command_line import Done, run
from generator.tables import table
from mcpgen import schema
from mcpgen.package import rendering, settings

pytestmark = pytest.mark.lengthy

NEWEST = schema.latest().name
OLDEST = schema.revisions()[0].name
PAINT = Path(__file__).parent / "extensions" / "paint.json"


@pytest.fixture
def folder(here: Path) -> Path:
    """An empty folder `own` of templates, beside the current directory's other files."""
    place = here / "own"
    place.mkdir()
    return place


def save(folder: Path, **files: str) -> None:
    """Write files by their paths."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def render(*words: str, out: str = "out") -> Done:
    """Render the folder `own`."""
    revisions = () if "-r" in words or "--schema" in words else ("-r", NEWEST)
    return run("render", "own", "-o", out, "-q", *revisions, *words)


def rendered(folder: Path, *words: str) -> dict[str, str]:
    """The files that the folder makes, without the record."""
    done = render(*words, "--force")
    assert done.code == 0, done.err
    out = folder.parent / "out"
    paths = (path for path in out.rglob("*") if path.is_file() and path.name != rendering.NAME)
    return {path.relative_to(out).as_posix(): path.read_text("utf-8") for path in paths}


def test_a_path_loops_over_revisions_types_and_methods(folder: Path) -> None:
    save(
        folder,
        **{
            "readme.txt": "as it is {{ x }}\n",
            **dict.fromkeys((".git/a", "__pycache__/a"), "left out"),
            "{revision}/{type}.txt.jinja": "{{ type.kind }} of {{ revision.name }}",
            "{revision}/of/{method}_{method.sender}.txt.jinja": "{{ method.name }}",
            "{difference.older}.md.jinja": "{{ difference.changes | length }}",
            "latest.txt.jinja": "{{ spec.latest.name }} {{ spec.spec_version }}",
        },
    )
    files = rendered(folder, "-r", "2025-06-18", "-r", "2025-11-25")
    whole = mcpgen.spec.load("2025-06-18", "2025-11-25")
    assert files["readme.txt"] == "as it is {{ x }}\n"
    assert files["latest.txt"] == "2025-11-25 1.0"
    assert files["r2025_06_18/Tool.txt"] == "object of 2025-06-18"
    assert files["r2025_11_25/of/ping_server.txt"] == "ping"
    assert files["2025-06-18.md"] == str(len(whole.differences[0].changes))
    types = sum(len(each.types) for each in whole.revisions)
    assert sum(path.count("/") == 1 for path in files) == types


def test_front_matter_loops_chooses_and_names(folder: Path) -> None:
    front = '{#---\nloop = "type"\nwhere = "type.union"\npath = "{type.name|snake}.txt"\n---#}\n'
    save(folder, **{"x.jinja": f"{front}{{{{ type.union.by }}}}"})
    files = rendered(folder)
    assert files["content_block.txt"] == "tag"
    assert "tool.txt" not in files


def test_the_sole_revision_is_there_without_a_loop(folder: Path) -> None:
    save(folder, **{"render.toml": '[values]\nbase = "Model"\n'})
    line = "{{ revision.name }} {{ values.base }}\n"
    save(folder, **{"a.txt.jinja": f"{{% if true %}}\n  {{% endif %}}\n{line}"})
    assert rendered(folder)["a.txt"] == f"{NEWEST} Model\n"
    done = render("-r", "all", "--force")
    assert done.err == "mcpgen: error: own/a.txt.jinja:3: 'revision' is undefined (a.txt)\n"


def test_python_is_formatted_as_the_settings_say(folder: Path) -> None:
    text = "x = { 'a' : 1 }\n"
    save(folder, **{"a.py.jinja": text, "b.py.jinja": f"{{#---\nformat = false\n---#}}\n{text}"})
    save(folder, **{"c.pyi.jinja": "def f( ): ...\ndef g( ): ...\n"})
    stub = "def f(): ...\ndef g(): ...\n"
    assert rendered(folder) == {"a.py": 'x = {"a": 1}\n', "b.py": text, "c.pyi": stub}
    for setting, expected in (
        ('quotes = "any"', "x = {'a': 1}\n"),
        ("line_length = 10", 'x = {\n    "a": 1\n}\n'),
        ('format = "none"', text),
    ):
        save(folder, **{"render.toml": setting})
        assert rendered(folder)["a.py"] == expected


def test_a_naming_policy_holds_everywhere(folder: Path) -> None:
    save(
        folder,
        **{
            "render.toml": '[naming]\nattributes = "camel"\nreserved = ["annotations"]\n'
            '[naming.types]\nCallToolRequestParams = "CallToolParams"\n'
            '[naming.members]\n"Tool._meta" = "metadata"\n'
            '[naming.suffixes]\nunion = "Union"\ninline = "Inline"\n'
            'object = "Model"\nalias = "Alias"\n',
            "a.json.jinja": "{{ revision | json }}",
        },
    )
    (revision,) = (json.loads(text) for text in rendered(folder).values())
    types = {each["name"]: each for each in revision["types"]}
    assert {"CallToolParams", "RoleAlias", "EmbeddedResourceResourceUnionInline"} <= {*types}
    calls = {each["name"]: each for each in revision["methods"]["client_requests"]}
    assert calls["tools/call"]["params"] == "CallToolParams"
    content = next(m for m in types["CallToolResultModel"]["members"] if m["name"] == "content")
    assert content["type"]["items"]["name"] == "ContentBlockUnion"
    names = {m["name"]: m["python_name"] for m in types["ToolModel"]["members"]}
    assert names["_meta"] == "metadata"
    assert names["inputSchema"] == "inputSchema"
    assert names["annotations"] == "annotations_"


@pytest.mark.parametrize(
    ("case", "name"),
    [("snake", "mime_type"), ("camel", "mimeType"), ("pascal", "MimeType"), ("wire", "mimeType")],
)
def test_attributes_have_the_case_of_the_policy(folder: Path, case: str, name: str) -> None:
    members = "revision.types_by_name.TextResourceContents.members"
    template = f"{{{{ {members} | map(attribute='python_name') | join(' ') }}}}"
    save(folder, **{"render.toml": f'[naming]\nattributes = "{case}"\n', "a.txt.jinja": template})
    assert name in rendered(folder)["a.txt"].split()


def test_a_revision_may_have_names_of_its_own(folder: Path) -> None:
    settings = '[naming.types]\nTool = "Every"\n[naming.revisions.2025-06-18]\nTool = "Old"\n'
    template = "{% for type in revision.types %}{{ type.name }} {% endfor %}"
    save(folder, **{"render.toml": settings, "{revision.name}.txt.jinja": template})
    files = rendered(folder, "-r", "2025-06-18", "-r", "2025-11-25")
    assert "Old" in files["2025-06-18.txt"].split()
    assert "Every" in files["2025-11-25.txt"].split()
    wrong = '[naming.revisions.2025-06-18]\nCreateTaskResult = "X"\n'
    save(folder, **{"render.toml": wrong})
    at = "own/render.toml#/naming/revisions/2025-06-18/CreateTaskResult"
    done = render("-r", "2025-06-18", "-r", "2025-11-25")
    assert f"{at}: expected a type of 2025-06-18, the nearest being " in done.err


ERRATUM = """
[[errata.2025-06-18]]
pointer = "/$defs/ElicitResult/properties/content/additionalProperties/type"
old = ["string", "number", "boolean"]
new = ["string", "number", "boolean", "null"]
reason = "hosts send null"
source = "a host"
"""


def test_errata_of_the_folder_come_after_those_of_mcpgen(folder: Path) -> None:
    save(
        folder,
        **{
            "render.toml": ERRATUM,
            "{revision.name}.txt.jinja": "{% set type = revision.types_by_name.ElicitResult %}"
            "{% for each in type.members %}{{ each.type | python_type }}\n{% endfor %}"
            "{% for each in revision.errata %}{{ each.reason }}\n{% endfor %}",
        },
    )
    corrected = rendered(folder, "-r", "2025-06-18")["2025-06-18.txt"]
    assert "dict[str, str | float | bool | None]\n" in corrected
    assert corrected.endswith("\nhosts send null\n")
    assert "hosts send null" not in rendered(folder, "-r", "2025-11-25")["2025-11-25.txt"]
    save(folder, **{"render.toml": ERRATUM.replace('["string", "number"', '["string", "null"')})
    done = render("-r", "2025-06-18")
    assert done.code == 2
    assert "additionalProperties/type: expected [" in done.err


TABLES: dict[str, Any] = table("rendering")
FILTERS = TABLES["filters"]
"""Templates, with the text that they make."""


@pytest.mark.parametrize("source", FILTERS)
def test_a_filter_gives_what_the_page_says(folder: Path, source: str) -> None:
    save(folder, **{"a.txt.jinja": source})
    assert rendered(folder)["a.txt"] == FILTERS[source]


WRONG = TABLES["wrong"]
"""Sources of a template `{type}.py.jinja`, with the error after its name."""


@pytest.mark.parametrize(("source", "expected"), WRONG.items())
def test_an_error_names_template_line_and_value(folder: Path, source: str, expected: str) -> None:
    save(folder, **{"{type}.py.jinja": source})
    done = render()
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"mcpgen: error: own/{{type}}.py.jinja{expected}")
    assert not (folder.parent / "out").exists()


def test_files_and_folders_of_the_output_have_paths_of_their_own(folder: Path) -> None:
    save(folder, **{"a.jinja": "x", "a/b.txt": "y"})
    expected = "own/a/b.txt: expected a folder a for a/b.txt, got a file, which a.jinja makes"
    assert render().err == f"mcpgen: error: {expected}\n"
    (folder / "a" / "b.txt").unlink()
    save(folder, **{"c.jinja": "{#---\npath = 'a'\n---#}"})
    expected = "own/c.jinja: expected a path of its own for each file, got a, which a.jinja makes"
    assert render().err == f"mcpgen: error: {expected}\n"
    save(folder, **{"c.jinja": "x", "mcpgen-render.json": "{}"})
    assert render().err.endswith("own: expected no file mcpgen-render.json, which is the record\n")


OWN_CODE = TABLES["own_code"]
"""Files of the folder, or the code of a formatter, with the error."""


@pytest.mark.parametrize("case", OWN_CODE)
def test_code_of_the_folder_that_fails_is_named_with_its_place(folder: Path, case: str) -> None:
    files, expected = OWN_CODE[case]
    command = json.dumps([sys.executable, "-c", files.get("code", "")])
    save(folder, **{"render.toml": f"formatter = {command}", "a.py.jinja": "x = 1\n", **files})
    expected = expected.replace("PYTHON", sys.executable)
    assert render("--trusted").err.startswith(f"mcpgen: error: own/{expected}")


def test_types_have_the_quotes_of_the_settings(folder: Path) -> None:
    text = "{{ revision.types_by_name.Role.type | python_type }} {{ ['b\"c'] | literal }}"
    for setting, quote in (('quotes = "any"', "'"), ('format = "none"', '"')):
        save(folder, **{"render.toml": setting, "a.txt.jinja": text})
        expected = f"""Literal[{quote}assistant{quote}, {quote}user{quote}] ['b"c']"""
        assert rendered(folder)["a.txt"] == expected


def test_an_error_in_a_macro_names_the_file_of_the_macro(folder: Path) -> None:
    macro = "{% macro m(x) %}\n{{ x }}{% endmacro %}"
    text = "{% from '_m.jinja' import m %}\n{{ m('a; b') }}"
    save(folder, **{"_m.jinja": macro, "a.py.jinja": text})
    fault = "expected a name or a literal in a template, got 'a; b' (a.py)"
    assert render().err == f"mcpgen: error: own/_m.jinja:2: {fault}\n"


def test_an_error_says_what_it_was_rendered_for(folder: Path) -> None:
    save(folder, **{"{type}.py.jinja": "{% if type.name == 'Tool' %}{{ type.nam }}{% endif %}"})
    assert render().err.endswith(f" (Tool.py: revision {NEWEST}, type Tool)\n")


SETTINGS = TABLES["settings"]
"""Settings, with the place and the beginning of the error."""


@pytest.mark.parametrize("text", SETTINGS)
def test_a_wrong_setting_is_named_by_its_key(folder: Path, text: str) -> None:
    save(folder, **{"render.toml": text, "a.txt.jinja": "x"})
    done = render()
    assert done.code == 2
    assert f"own/render.toml#{SETTINGS[text]}" in done.err


def test_filters_and_a_formatter_of_the_folder_need_trust(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    upper = [sys.executable, "-c", "import sys; print(sys.stdin.read().upper(), end='')"]
    save(
        folder,
        **{
            "own_filters.py": "def greet(name):\n    return f'print({name!r})'\n",
            "render.toml": f'filters = "own_filters.py"\nformatter = {json.dumps(upper)}\n',
            "a.py.jinja": "{{ 'you' | greet }}\n",
            "b.txt.jinja": "{{ spec.__class__.__name__.upper() }}",
        },
    )
    files = {"a.py": "PRINT('YOU')\n", "b.txt": "SPECIFICATION"}
    assert rendered(folder, "--trusted") == files
    assert (sys.dont_write_bytecode, len([*folder.iterdir()])) == (False, 4)
    done = run("check", "out")
    assert done.code == 2
    assert "give --trusted again if you trust it" in done.err
    assert run("check", "out", "--trusted").out == "out: up to date\n"
    assert rendering.inputs(Path("out"))[0] == folder
    assert run("update", "out").code == 2
    assert run("update", "-q", "out", "--trusted").code == 0


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    save(folder.parent, secret="x")
    save(folder, **{"b.txt": "y"})
    (folder / "a.txt").symlink_to(folder / "b.txt")
    assert rendered(folder) == {"a.txt": "y", "b.txt": "y"}
    (folder / "b.txt").unlink()
    (folder / "b.txt").symlink_to(folder.parent / "secret")
    assert "got a link out of it" in render().err


def test_check_tells_what_changed(folder: Path) -> None:
    save(folder, **{"a.txt.jinja": "one\n"})
    assert render().code == 0
    assert run("check", "out") == (0, "out: up to date\n", "")
    save(folder, **{"a.txt.jinja": "two\n"})
    done = run("check", "out")
    assert (done.code, done.out.splitlines()[0]) == (1, "the template changed: a.txt.jinja")
    assert "\n-one\n+two\n" in done.out
    record = json.loads(run("check", "out", "--json").out)
    assert (record["differing"], record["reasons"]) == (["a.txt"], done.out.splitlines()[:1])
    save(folder, **{"b.txt": "new\n"})
    assert run("check", "out").out.splitlines()[:2] == [
        "the template changed: a.txt.jinja",
        "the template changed: b.txt",
    ]
    assert run("update", "out").out == f"out: 1 file created, 2 files updated ({NEWEST})\n"
    save(folder, **{"b.txt.jinja": "{# the same #}new\n"})
    (folder / "b.txt").unlink()
    assert run("check", "out") == (0, "out: up to date\n", "")
    assert run("update", "-q", "out").code == 0
    save(folder.parent / "out", **{"a.txt": "mine\n"})
    done = run("check", "out")
    assert done.out.startswith("edited: a.txt\n")
    assert "edited by hand: a.txt" in run("update", "out").err
    assert run("update", "-q", "out", "--force").code == 0
    assert run("check", "out").code == 0
    for name in ("a.txt", rendering.NAME):
        moved = (folder.parent / "out" / name).rename(folder.parent / f"moved-{name}")
        (folder.parent / "out" / name).symlink_to(moved)
        assert f"got a link: {name};" in run("check", "out").err


def test_an_update_moves_on_to_other_revisions(folder: Path) -> None:
    save(folder, **{"{revision}.txt.jinja": "x"})
    assert render("-r", OLDEST).code == 0
    save(folder.parent / "out", **{"mine.txt": "mine"})
    assert run("update", "-q", "out", "--revision", NEWEST).code == 0
    out = {path.name for path in (folder.parent / "out").iterdir()}
    newest = mcpgen.spec.load(NEWEST).latest.python_name
    assert out == {"mine.txt", f"{newest}.txt", rendering.NAME}


@pytest.mark.parametrize("out", [".", "own", "own/out"])
def test_a_directory_that_holds_the_inputs_is_refused(folder: Path, out: str) -> None:
    save(folder, **{"a.txt.jinja": "x"})
    assert render(out=out).code == 2


def test_a_schema_file_and_an_extension_are_rendered(folder: Path) -> None:
    document = json.loads(run("export", NEWEST).out)
    save(folder.parent, **{"draft.json": json.dumps(document), "paint.json": PAINT.read_text()})
    save(folder.parent, **{"facts.toml": ""})
    save(folder, **{"{revision}/{extension}.txt.jinja": "{{ extension.identifier }}"})
    words = ("--schema", "draft.json", "--facts", "facts.toml", "--extension", "paint.json")
    assert [*rendered(folder, *words).values()] == ["com.example/paint"]
    inputs = [path.name for path in rendering.inputs(Path("out"))]
    assert inputs == ["own", "paint.json", "draft.json", "facts.toml", "errata.toml"]
    assert "draft comes twice" in render(*("--schema", "draft.json") * 2).err
    document["$defs"]["Tool"]["description"] = "Other."
    save(folder.parent, **{"draft.json": json.dumps(document)})
    save(folder, **{"a.txt": "x"})
    changed = ["the template changed: a.txt", "the schema changed: draft"]
    record = json.loads(run("check", "out", "--json").out)
    assert (record["current"], record["reasons"]) == (False, changed)
    written = json.loads(run("update", "out", "--json").out)
    assert (written["created"], written["updated"]) == (["a.txt"], [rendering.NAME])


def test_a_directory_that_was_not_rendered_is_no_rendering(folder: Path) -> None:
    save(folder, **{"a.txt.jinja": "x"})
    assert run("render", "own", "-o", "out").err.endswith("got none\n")
    done = run("render", "none", "-o", "out", "-r", NEWEST)
    assert done.err.endswith("none: expected a folder of templates, got none\n")
    assert run("render", "own", "-o", "out", "-r", NEWEST, "--facts", str(PAINT)).code == 2
    assert render().code == 0
    assert "options of packages" in run("update", "out", "--parts", "types").err
    assert "options of packages" in run("check", "out", "--facts", str(PAINT)).err
    out = folder.parent / "out"
    record = json.loads((out / rendering.NAME).read_text())
    assert (out / rendering.NAME).read_text() == f"{json.dumps(record, indent=2)}\n"
    save(out, **{rendering.NAME: json.dumps({**record, "files": {"../x": "0"}})})
    assert "#/files/..~1x: expected a relative path" in run("update", "out").err
    (out / rendering.NAME).rename(out / "mcpgen.json")
    assert "expected no package of mcpgen's; it was not touched" in render().err
    assert "expected a directory, got a file" in render(out="out/mcpgen.json").err
    (out / "mcpgen.json").unlink()
    assert render("--force").code == 0
    (folder / "a.txt.jinja").unlink()
    folder.rmdir()
    assert "which is not there" in run("check", "out").err


def test_the_settings_of_a_project_render_folders(folder: Path) -> None:
    project = folder.parent
    text = documents.examples()["rendering.toml"]
    save(project, **{"pyproject.toml": text})
    for name in ("pages", "typed"):
        save(project / name, **{"{revision}.txt.jinja": "{{ revision.name }}"})
    read = settings.read(project)
    assert read is not None
    assert [each.output for each in read.render] == ["docs/methods", "src/acme/typed"]
    shown = "docs/methods: expected a rendered directory, got no mcpgen-render.json\n"
    assert run("check").err.endswith(shown)
    assert run("-q").code == 0
    assert len([*(project / "src" / "acme" / "typed").glob("*.txt")]) == 2
    assert run("check", "-q").code == 0
    save(project / "pages", **{"a.txt": "x"})
    assert run("check", "-q").code == 1
    assert run("update", "-q").code == 0
    assert run("check", "-q").code == 0
    latest = 'revisions = ["latest"]'
    every = 'revisions = ["all"]'
    for names, other in (("errata", f"{latest}\nerrata = false"), ("revisions, errata", every)):
        save(project, **{"pyproject.toml": text.replace(latest, other)})
        done = run("check")
        changed = f"the settings changed: {names}; run mcpgen"
        assert (done.code, done.out.splitlines()[0]) == (1, changed)
        assert run("-q").code == 0


def test_the_small_example_of_the_page_is_a_table_of_methods(folder: Path) -> None:
    name = "pages/{revision}.md.jinja"
    save(folder, **{"{revision}.md.jinja": documents.examples()[name]})
    files = rendered(folder, "-r", "2025-11-25", "-r", NEWEST)
    assert {*files} == {"r2025_11_25.md", f"{mcpgen.spec.load(NEWEST).latest.python_name}.md"}
    title, _, heads, _, *rows = files["r2025_11_25.md"].splitlines()
    assert title == "# Methods of 2025-11-25"
    assert heads == "| Method | Sent by | Params | Result |"
    methods = mcpgen.spec.load("2025-11-25").latest.methods.all
    assert [row.split("`")[1] for row in rows] == [method.name for method in methods]
    assert "| `tools/call` | client | CallToolRequestParams | " in "\n".join(rows)


def test_the_typed_dicts_of_the_page_are_types(folder: Path) -> None:
    for name, text in documents.examples().items():
        if name.startswith("typed/"):
            save(folder, **{name.removeprefix("typed/"): text})
    files = rendered(folder)
    path = f"{mcpgen.spec.load(NEWEST).latest.python_name}/types.py"
    assert {*files} == {"__init__.py", path}
    ast.parse(files[path])
    module: Any = SimpleNamespace(**runpy.run_path(str(folder.parent / "out" / path)))
    assert module.Tool.__required_keys__ >= {"name", "inputSchema"}
    assert "CallToolParams" in files[path]
    assert (
        typing.get_type_hints(module.ListToolsResult, {**vars(module)})["tools"]
        == list[module.Tool]
    )
