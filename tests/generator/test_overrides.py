"""Templates of the user's own: how one begins, what it writes, and every way it can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jinja2 import StrictUndefined, UndefinedError
from jinja2.exceptions import SecurityError

from generator.command_line import Done, output_of, run
from mcpgen import __version__, schema
from mcpgen.errors import TemplateError, UsageError
from mcpgen.package import commands, manifest, overrides
from mcpgen.render import templates

pytestmark = pytest.mark.costly

METHODS = "package/revision/methods.py.jinja"
NEWEST = schema.latest().name
MODULE = f"r{NEWEST.replace('-', '_')}/methods.py"


@pytest.fixture
def override(here: Path) -> Path:
    """A copy of the template for method tables, in `own/`."""
    copied = f"own/{METHODS}: copied; edit it, then generate with --templates own\n"
    assert run("templates", "copy", METHODS, "own") == Done(0, copied, "")
    return here / "own" / METHODS


def begin_with(override: Path, line: str) -> None:
    """Put a line above a template."""
    override.write_text(f"{line}\n{override.read_text('utf-8')}", "utf-8")


def generate(*words: str) -> Done:
    """Generate a package `pkg` with the templates in `own/`."""
    options = ("-q", "-r", "latest", "--parts", "types", "-o", "pkg", "--templates", "own")
    return run(*options, *words)


WRONG = {
    "a name": ("{{ nothing }}", "'nothing' is undefined"),
    "a member of the package": ("{{ package.nothing }}", "'mcpgen.spec.packages.PackageSpec obj"),
    "a part": ("{% include 'stubs/none.jinja' %}", "there is no template stubs/none.jinja"),
    # What is outside of the template.
    "a class": ("{{ revision.__class__.__mro__ | length }}", ""),
    "the globals of a function": ("{{ cycler.__init__.__globals__.os.getcwd() | literal }}", ""),
    "another name of an attribute": ("{{ (revision | attr('__class__')).__mro__ | length }}", ""),
    "the globals of a filter": ("{{ literal.__globals__ | length }}", ""),
    "the frame of a generator": ("{{ (package.revisions | map(attribute='x')).gi_frame }}", ""),
    "a format of attributes": ("{{ '{0.__class__}'.format(revision) | literal }}", ""),
    "the schema that values are of": ("{{ revision.models.normal.definitions | length }}", ""),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_template_that_fails_to_render_is_named_with_its_line(
    case: str, here: Path, override: Path
) -> None:
    line, reason = WRONG[case]
    begin_with(override, line)
    done = generate()
    assert done.code == 2
    [shown] = done.err.splitlines()
    assert shown.startswith(f"mcpgen: error: own/{METHODS}:1: {reason}")
    assert not (here / "pkg").exists()


def test_an_override_takes_the_place_of_one_template(here: Path, override: Path) -> None:
    text = f'[tool.mcpgen]\nrevisions = ["{NEWEST}"]\nparts = ["types"]\noutput = "pkg"\n'
    (here / "pyproject.toml").write_text(text)
    assert run("-q").code == 0
    assert "templates" not in json.loads((here / "pkg" / manifest.NAME).read_text())
    (here / "pyproject.toml").write_text(f'{text}templates = "own"\n')
    begin_with(override, "# {{ revision.name | literal }} is ours")
    assert run("check", "-q").code == 1
    assert run("-q").code == 0
    assert f'# "{NEWEST}" is ours' in (here / "pkg" / MODULE).read_text()
    assert "is ours" not in (here / "pkg" / "__init__.py").read_text()
    assert run("check", "-q").code == 0


def test_only_copies_of_present_templates_are_overrides(here: Path, override: Path) -> None:
    names = run("templates", "list").out.split()
    assert METHODS in names
    assert names == [each["name"] for each in json.loads(run("templates", "list", "--json").out)]
    assert run("templates", "list", "own").out == f"current: {METHODS}\n"
    begin_with(override, "# ours")
    copied = run("templates", "copy", METHODS, "own")
    expected = "expected no file yet, got an override; it was not touched\n"
    assert (copied.code, copied.err.endswith(expected)) == (2, True)
    assert override.read_text("utf-8").startswith("# ours\n")
    original = here / "own" / overrides.ORIGINALS / METHODS
    original.write_text(f"# before\n{original.read_text('utf-8')}", "utf-8")
    assert generate().err.endswith(
        f"own/{METHODS}: expected an override of the template as it is in mcpgen {__version__}, got"
        " one of another version (changed lines since: 1); see mcpgen templates diff own\n"
    )
    assert run("templates", "list", "own") == (0, f"outdated: {METHODS}\n", "")
    shown = run("templates", "diff", "own")
    assert (shown.code, "\n-# before\n" in shown.out) == (1, True)
    assert "run mcpgen templates accept NAME own\n" in shown.out
    states = json.loads(run("templates", "list", "own", "--json").out)
    assert states == [{"name": METHODS, "state": "outdated"}]
    record = json.loads(run("templates", "diff", "own", "--json").out)
    assert (record["outdated"], "-# before" in record["diff"]) == ([METHODS], True)
    original.unlink()
    assert f"expected the template that it replaces in own/{overrides.ORIGINALS}" in generate().err
    assert run("templates", "accept", METHODS, "own").out == f"own/{METHODS}: accepted\n"
    assert run("templates", "diff", "own") == (0, "own: all overrides are current\n", "")
    assert generate().code == 0
    override.rename(override.with_name("method.py.jinja"))
    assert generate().err.endswith(
        "own/package/revision/method.py.jinja: expected the name of a template, got"
        f" package/revision/method.py.jinja; did you mean {METHODS}?\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("copy", "package/revision/metods.py.jinja", "own"), f"; did you mean {METHODS}?"),
        (("accept", "package/revision/metods.py.jinja", "own"), f"; did you mean {METHODS}?"),
        (("copy", METHODS, "file"), "Not a directory"),
        (("accept", METHODS, "own"), "expected an override, got no file"),
        (("diff", "none"), "expected a directory with templates, got none"),
    ],
)
def test_commands_for_templates_say_what_is_missing(
    here: Path, words: tuple[str, ...], error: str
) -> None:
    (here / "file").touch()
    done = run("templates", *words)
    assert (done.code, error in done.err) == (2, True), done.err
    assert [path.name for path in here.iterdir()] == ["file"]


def test_overrides_share_macros_and_parts_of_their_own(here: Path, override: Path) -> None:
    (here / "own" / "_lib.jinja").write_text(
        "{% macro greet(name) %}\nGREETED = {{ name | literal }}\n{% endmacro %}\n", "utf-8"
    )
    (here / "own" / "package" / "_end.jinja").write_text("# the end\n", "utf-8")
    begin_with(override, "{% from '_lib.jinja' import greet %}\n{{ greet(revision.name) }}")
    text = override.read_text("utf-8")
    override.write_text(f"{text}{{% include 'package/_end.jinja' %}}\n", "utf-8")
    assert generate().err == ""
    written = (here / "pkg" / MODULE).read_text()
    assert f'GREETED = "{NEWEST}"\n' in written
    assert "# the end\n" in written
    assert run("check", "pkg").code == 0
    (here / "own" / "_lib.jinja").write_text("{% macro greet(name) %}{% endmacro %}", "utf-8")
    assert run("check", "pkg").out.startswith("the template changed: _lib.jinja\n")


def test_added_templates_make_further_files(here: Path) -> None:
    added = here / "own" / "added"
    (added / "revision" / "tables").mkdir(parents=True)
    (added / "names.py.jinja").write_text(
        "from .{{ package.revisions[0].folder }} import models\nTYPES=models.__all__\n"
        "{% for each in spec.latest.methods.client_requests %}\n"
        "{{ each.constant }} = {{ each.name | literal }}\n{% endfor %}\n",
        "utf-8",
    )
    (added / "revision" / "tables" / "page.md.jinja").write_text("# {{ revision.name }}\n", "utf-8")
    (added / "revision" / "tables" / "notes.txt").write_text("as it is {{ x }}\n", "utf-8")
    assert generate().err == ""
    folder = here / "pkg" / MODULE.partition("/")[0] / "tables"
    assert (folder / "page.md").read_text() == f"# {NEWEST}\n"
    assert (folder / "notes.txt").read_text() == "as it is {{ x }}\n"
    written = (here / "pkg" / "names.py").read_text()
    assert "\nTYPES = models.__all__\n" in written
    assert '\nCALL_TOOL = "tools/call"\n' in written
    assert run("check", "pkg") == (0, "pkg: up to date\n", "")
    (added / "names.py.jinja").rename(added / "__init__.py.jinja")
    assert generate().err == "mcpgen: error: own: expected a new file in added, got __init__.py\n"
    (added / "__init__.py.jinja").rename(added / "revision" / "tables" / "x.py")
    tables = MODULE.partition("/")[0] + "/tables"
    assert f"expected {tables}/__init__.py in added for {tables}/x.py" in generate().err


STRUCT = "models/msgspec.jinja2"
FRONT = '{#---\nimports = ["enum.Enum"]\n---#}\n'


@pytest.fixture
def of_models(here: Path) -> Path:
    """A copy of the template of Structs, in `own/`."""
    assert run("templates", "copy", STRUCT, "own").code == 0
    return here / "own" / STRUCT


def test_model_classes_have_a_base_of_the_users(here: Path, of_models: Path) -> None:
    text = of_models.read_text("utf-8").replace("(Struct,", "(Struct, Mixin,")
    names = "{{ literal(spec.members | map(attribute='name') | list) }}"
    text = text.replace("    {{ doc }}\n", f"    {{{{ doc }}}}\n    wire: ClassVar = {names}\n", 1)
    front = '{#---\nimports = ["mine.Mixin"]\n---#}\n'
    of_models.write_text(f"{front}{text}", "utf-8")
    (here / "mine.py").write_text("class Mixin:\n    __slots__ = ()\n", "utf-8")
    refused = generate()
    assert refused.code == 2
    assert f"own/{STRUCT}: runs in datamodel-code-generator, which has no sandbox" in refused.err
    options = commands.PackageOptions(("latest",), templates=Path("own"))
    with pytest.raises(UsageError, match="which has no sandbox"):
        commands.new_request(options, Path("pkg"), errata=True)
    assert generate("--trusted").err == ""
    program = (
        f"from pkg.{MODULE.partition('/')[0]}.models import Tool; import mine;"
        "assert issubclass(Tool, mine.Mixin);"
        "assert 'inputSchema' in Tool.wire"
    )
    output_of(program, cwd=here)
    assert run("check", "pkg") == (0, "pkg: up to date\n", "")  # which runs no template
    of_models.write_text(f"{front}{text}\n", "utf-8")
    assert run("check", "pkg").code == 2
    assert "the template changed: models/msgspec" in run("check", "pkg", "--trusted").out
    assert run("update", "pkg", "-q").code == 2
    assert run("update", "pkg", "-q", "--trusted").code == 0


def test_a_template_of_models_that_fails_is_named_with_its_line(of_models: Path) -> None:
    text = of_models.read_text("utf-8")
    of_models.write_text(f"\n{{{{ 1 / 0 }}}}\n{text}", "utf-8")
    done = generate("--trusted")
    assert done.err == f"mcpgen: error: own/{STRUCT}:2: division by zero\n"
    of_models.write_text(f"\n\n{{% if %}}\n{text}", "utf-8")
    assert f"own/{STRUCT}:3: " in generate("--trusted").err
    of_models.write_text(FRONT.replace("imports", "import"), "utf-8")
    assert f"own/{STRUCT}#/import: expected one of the keys imports" in generate("--trusted").err


def test_check_and_update_use_the_templates_of_the_manifest(here: Path, override: Path) -> None:
    begin_with(override, "# ours")
    generate()
    record = json.loads((here / "pkg" / manifest.NAME).read_text())
    assert record["templates"]["directory"] == "../own"
    assert list(record["templates"]["files"]) == [METHODS]
    assert run("check", "pkg") == (0, "pkg: up to date\n", "")
    begin_with(override, "# more")
    done = run("check", "pkg")
    assert done.code == 1
    assert done.out.startswith(f"the template changed: {METHODS}\n")
    assert "\n+# more\n" in done.out
    assert run("update", "-q", "pkg").code == 0
    assert run("check", "pkg").code == 0
    before = {path: path.read_bytes() for path in (here / "pkg").rglob("*") if path.is_file()}
    begin_with(override, "{{ nothing }}")
    assert run("update", "pkg").code == 2
    assert before == {path: path.read_bytes() for path in before}
    (here / "own").rename(here / "moved")
    done = run("check", "pkg")
    assert (done.code, "made with the templates in own, which are not there" in done.err) == (
        2,
        True,
    )
    assert run("update", "pkg", "--templates", "moved").code == 2


def test_a_key_that_a_mapping_lacks_is_undefined_though_it_has_such_an_attribute() -> None:
    environment = templates.SandboxedEnvironment(undefined=StrictUndefined)
    template = environment.from_string("{{ members[name] }}")
    assert template.render(members={"items": 1}, name="items") == "1"
    with pytest.raises(UndefinedError):
        template.render(members={}, name="items")


@pytest.mark.parametrize(
    "source", ["{{ path.read_text }}", "{{ module.dumps }}", "{{ type.fromkeys }}"]
)
def test_a_file_a_module_or_a_class_has_no_attributes(source: str) -> None:
    environment = templates.SandboxedEnvironment(undefined=StrictUndefined)
    with pytest.raises(SecurityError):
        environment.from_string(source).render(path=Path("x"), module=json, type=dict)


def test_the_innermost_template_of_an_error_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text("\n{% include 'b.jinja' %}", "utf-8")
    (tmp_path / "b.jinja").write_text("\n\n{{ nothing }}", "utf-8")
    with pytest.raises(TemplateError, match=r"b\.jinja:3: 'nothing' is undefined"):
        templates.render("a.jinja", tmp_path)
    (tmp_path / "b.jinja").write_text("\n\n\n{% if %}", "utf-8")
    with pytest.raises(TemplateError, match=r"b\.jinja:4: "):
        templates.render("a.jinja", tmp_path)
