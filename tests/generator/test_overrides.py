"""Templates of the user's own: how one begins, what it writes, and every way it can be wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
from jinja2 import StrictUndefined, UndefinedError
from jinja2.exceptions import SecurityError
from syrupy.assertion import SnapshotAssertion

from generator.command_line import Done, run
from mcpgen import paths, schema
from mcpgen.errors import OutputError, TemplateError, UsageError
from mcpgen.package import manifest, overrides
from mcpgen.render import templates

pytestmark = pytest.mark.costly

METHODS = "package/revision/methods.py.jinja"
NEWEST = schema.latest().name
MODULE = f"r{NEWEST.replace('-', '_')}/methods.py"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def override(project: Path) -> Path:
    """A copy of the template for method tables, in `own/`."""
    assert run("templates", "copy", METHODS, "own").code == 0
    return project / "own" / METHODS


def begin_with(override: Path, line: str) -> None:
    """Put a line above a template."""
    override.write_text(f"{line}\n{override.read_text('utf-8')}", "utf-8")


def generate(*words: str) -> Done:
    """Generate a package `pkg` with the templates in `own/`."""
    options = ("-q", "-r", "latest", "--parts", "types", "-o", "pkg", "--templates", "own")
    return run(*options, *words)


def test_an_override_takes_the_place_of_one_template(project: Path, override: Path) -> None:
    begin_with(override, "# {{ revision.name | literal }} is ours")
    assert generate().code == 0
    assert f"# '{NEWEST}' is ours" in (project / "pkg" / MODULE).read_text()
    assert "is ours" not in (project / "pkg" / "__init__.py").read_text()


def test_a_stub_that_others_include_is_a_template_too(project: Path) -> None:
    name = "stubs/handlers.jinja"
    run("templates", "copy", name, "own")
    (project / "own" / name).write_text("    never = {{ nothing }}\n", "utf-8")
    done = run("-q", "-r", "latest", "--parts", "client", "-o", "pkg", "--templates", "own")
    assert done.err.splitlines()[-1] == f"mcpgen: error: own/{name}:1: 'nothing' is undefined"


def test_overrides_share_macros_and_parts_of_their_own(project: Path, override: Path) -> None:
    (project / "own" / "_lib.jinja").write_text(
        "{% macro greet(name) %}\nGREETED = {{ name | literal }}\n{% endmacro %}\n", "utf-8"
    )
    (project / "own" / "package" / "_end.jinja").write_text("# the end\n", "utf-8")
    begin_with(override, "{% from '_lib.jinja' import greet %}\n{{ greet(revision.name) }}")
    text = override.read_text("utf-8")
    override.write_text(f"{text}{{% include 'package/_end.jinja' %}}\n", "utf-8")
    assert generate().err == ""
    written = (project / "pkg" / MODULE).read_text()
    assert f'GREETED = "{NEWEST}"\n' in written
    assert "# the end\n" in written
    assert run("check", "pkg").code == 0
    (project / "own" / "_lib.jinja").write_text("{% macro greet(name) %}{% endmacro %}", "utf-8")
    assert run("check", "pkg").out.startswith("the template changed: _lib.jinja\n")
    assert run("templates", "list", "own").out == f"current: {METHODS}\n"


def test_text_that_a_macro_is_given_is_no_source(project: Path, override: Path) -> None:
    (project / "own" / "_m.jinja").write_text("{% macro m(x) %}{{ x }}{% endmacro %}", "utf-8")
    begin_with(override, "{% from '_m.jinja' import m %}{{ m('a; b') }}")
    assert (
        "own/_m.jinja:1: expected a name or a literal in a template, got 'a; b'" in generate().err
    )


def test_added_templates_make_further_files(project: Path) -> None:
    added = project / "own" / "added"
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
    folder = project / "pkg" / MODULE.partition("/")[0] / "tables"
    assert (folder / "page.md").read_text() == f"# {NEWEST}\n"
    assert (folder / "notes.txt").read_text() == "as it is {{ x }}\n"
    written = (project / "pkg" / "names.py").read_text()
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
def of_models(project: Path) -> Path:
    """A copy of the template of Structs, in `own/`."""
    assert run("templates", "copy", STRUCT, "own").code == 0
    return project / "own" / STRUCT


def test_model_classes_have_a_base_of_the_users(project: Path, of_models: Path) -> None:
    text = of_models.read_text("utf-8").replace("(Struct,", "(Struct, Mixin,")
    names = "{{ literal(spec.members | map(attribute='name') | list) }}"
    text = text.replace("    {{ doc }}\n", f"    {{{{ doc }}}}\n    wire: ClassVar = {names}\n", 1)
    front = '{#---\nimports = ["mine.Mixin"]\n---#}\n'
    of_models.write_text(f"{front}{text}", "utf-8")
    (project / "mine.py").write_text("class Mixin:\n    __slots__ = ()\n", "utf-8")
    refused = generate()
    assert refused.code == 2
    assert f"own/{STRUCT}: runs in datamodel-code-generator, which has no sandbox" in refused.err
    assert generate("--trusted").err == ""
    program = (
        f"from pkg.{MODULE.partition('/')[0]}.models import Tool; import mine;"
        "assert issubclass(Tool, mine.Mixin);"
        "assert 'inputSchema' in Tool.wire"
    )
    subprocess.run([sys.executable, "-c", program], cwd=project, check=True)
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


def test_check_and_update_use_the_templates_of_the_manifest(project: Path, override: Path) -> None:
    begin_with(override, "# ours")
    generate()
    record = json.loads((project / "pkg" / manifest.NAME).read_text())
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


def test_a_package_without_overrides_records_none(project: Path, override: Path) -> None:
    generate()
    assert run("-q", "-r", "latest", "--parts", "types", "-o", "pkg").code == 0
    assert "templates" not in json.loads((project / "pkg" / manifest.NAME).read_text())


@pytest.mark.parametrize(
    "line",
    [
        "{{ nothing }}",
        "{{ package.nothing }}",
        "{% for x in revision.no_such %}{% endfor %}",
        "{{ revision.name | upcase }}",
        "{% if %}",
        "{{ 'text; code' }}",
        "{{ 1 / 0 }}",
        "{% include 'stubs/none.jinja' %}",
    ],
)
def test_a_template_that_fails_to_render_is_named_with_its_line(
    line: str, project: Path, override: Path, snapshot: SnapshotAssertion
) -> None:
    begin_with(override, line)
    done = generate()
    assert done.code == 2
    assert done.err == snapshot
    assert not (project / "pkg").exists()


def test_files_on_disk_stay_if_a_template_is_wrong(project: Path, override: Path) -> None:
    generate()
    before = {path: path.read_bytes() for path in (project / "pkg").rglob("*") if path.is_file()}
    begin_with(override, "{{ nothing }}")
    assert run("update", "pkg").code == 2
    assert before == {path: path.read_bytes() for path in before}


def test_a_file_that_is_no_template_is_refused(
    project: Path, override: Path, snapshot: SnapshotAssertion
) -> None:
    override.rename(override.with_name("method.py.jinja"))
    done = generate()
    assert done.code == 2
    assert done.err == snapshot
    assert not (project / "pkg").exists()


def test_an_override_without_its_original_is_refused(
    project: Path, override: Path, snapshot: SnapshotAssertion
) -> None:
    (project / "own" / overrides.ORIGINALS / METHODS).unlink()
    done = generate()
    assert done.code == 2
    assert done.err == snapshot


@pytest.fixture
def newer_template(override: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The template has another line in mcpgen than when it was copied."""
    templates = override.parents[3] / "mcpgen-templates"
    for path in paths.templates_dir().rglob("*"):
        place = templates / path.relative_to(paths.templates_dir())
        if path.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    begin_with(templates / METHODS, "# a correction")
    monkeypatch.setattr(paths, "templates_dir", lambda: templates)
    return METHODS


def test_an_override_of_an_older_template_leads_to_the_changes(
    newer_template: str, snapshot: SnapshotAssertion
) -> None:
    done = generate()
    assert done.code == 2
    assert done.err == snapshot(name="generate")
    assert run("templates", "list", "own") == (0, f"outdated: {newer_template}\n", "")
    done = run("templates", "diff", "own")
    assert done.code == 1
    assert done.out == snapshot(name="diff")
    states = json.loads(run("templates", "list", "own", "--json").out)
    assert states == [{"name": newer_template, "state": "outdated"}]
    record = json.loads(run("templates", "diff", "own", "--json").out)
    assert record["outdated"] == [newer_template]
    assert "+# a correction" in record["diff"]


@pytest.mark.usefixtures("newer_template")
def test_an_accepted_override_is_current_again(override: Path) -> None:
    assert run("templates", "accept", METHODS, "own").code == 0
    assert run("templates", "diff", "own") == (0, "own: all overrides are current\n", "")
    assert generate().code == 0


def test_an_override_that_is_there_is_not_copied_over(override: Path) -> None:
    begin_with(override, "# ours")
    done = run("templates", "copy", METHODS, "own")
    assert (done.code, override.read_text("utf-8").startswith("# ours\n")) == (2, True)
    assert done.err.endswith("expected no file yet, got an override; it was not touched\n")


def test_a_misspelt_name_is_met_with_the_nearest(project: Path) -> None:
    done = run("templates", "copy", "package/revision/metods.py.jinja", "own")
    assert done.err.endswith(f"; did you mean {METHODS}?\n")
    assert not (project / "own").exists()


def test_the_list_has_every_template_of_the_package(project: Path) -> None:
    names = run("templates", "list").out.split()
    assert METHODS in names
    assert names == [each["name"] for each in json.loads(run("templates", "list", "--json").out)]
    for name in names:
        assert run("templates", "copy", name, "own").code == 0
    assert set(overrides.states(project / "own").values()) == {"current"}


@pytest.mark.usefixtures("override")
def test_templates_that_are_gone_are_asked_for(project: Path) -> None:
    generate()
    (project / "own").rename(project / "moved")
    done = run("check", "pkg")
    assert done.code == 2
    assert "was made with the templates in own, which are not there" in done.err
    assert run("update", "-q", "pkg", "--templates", "moved").code == 0
    assert run("check", "pkg").code == 0


def test_the_settings_name_the_templates(project: Path, override: Path) -> None:
    text = f'[tool.mcpgen]\nrevisions = ["{NEWEST}"]\nparts = ["types"]\noutput = "pkg"\n'
    (project / "pyproject.toml").write_text(text)
    assert run("-q").code == 0
    (project / "pyproject.toml").write_text(f'{text}templates = "own"\n')
    begin_with(override, "# ours")
    assert run("check", "-q").code == 1
    assert run().code == 0
    assert "# ours" in (project / "pkg" / MODULE).read_text()
    assert run("check", "-q").code == 0


OUTSIDE = {
    "a class": "{{ revision.__class__.__mro__ | length }}",
    "the globals of a function": "{{ cycler.__init__.__globals__.os.getcwd() | literal }}",
    "the globals of a filter": "{{ literal.__globals__ | length }}",
    "the frame of a generator": "{{ (package.revisions | map(attribute='x')).gi_frame }}",
    "a format of attributes": "{{ '{0.__class__}'.format(revision) | literal }}",
    "another name of an attribute": "{{ (revision | attr('__class__')).__mro__ | length }}",
    "the schema that values were made from": "{{ revision.models.normal.definitions | length }}",
    "a list of its own": "{% set _ = [].append(1) %}",
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_a_template_reaches_nothing_outside_itself(
    project: Path, override: Path, case: str
) -> None:
    begin_with(override, OUTSIDE[case])
    done = generate()
    assert done.code == 2
    [line] = done.err.splitlines()
    assert line.startswith(f"mcpgen: error: own/{METHODS}:1: ")
    assert not (project / "pkg").exists()


def test_an_item_of_a_mapping_is_no_attribute_of_it() -> None:
    environment = templates.SandboxedEnvironment(undefined=StrictUndefined)
    template = environment.from_string("{{ members[name] }}")
    assert template.render(members={"items": 1}, name="items") == "1"
    empty: tuple[Mapping[str, int], ...] = ({}, MappingProxyType({}))
    for members in empty:
        with pytest.raises(UndefinedError):
            template.render(members=members, name="items")
    source = "{{ revisions | map(attribute='name') | join }}"
    revisions = [SimpleNamespace(name="a")]
    assert environment.from_string(source).render(revisions=revisions) == "a"


@pytest.mark.parametrize(
    "source", ["{{ path.read_text }}", "{{ module.dumps }}", "{{ type.fromkeys }}"]
)
def test_a_file_a_module_or_a_class_has_no_attributes(source: str) -> None:
    environment = templates.SandboxedEnvironment(undefined=StrictUndefined)
    with pytest.raises(SecurityError):
        environment.from_string(source).render(path=Path("x"), module=json, type=dict)


def test_a_long_reason_is_cut_with_its_line_named(tmp_path: Path) -> None:
    name = "x" * 400
    (tmp_path / "a.jinja").write_text(f"\n{{% include '{name}' %}}\n", "utf-8")
    with pytest.raises(TemplateError) as caught:
        templates.render("a.jinja", tmp_path)
    reason = f"there is no template {name}"[:300]
    assert str(caught.value) == f"{tmp_path / 'a.jinja'}:2: {reason}..."


def test_blocks_leave_no_lines_and_text_keeps_its_end(tmp_path: Path) -> None:
    text = "a\n  {% if number %}\nb {{ number }}\n  {% endif %}\n{{ text | literal }}\n"
    (tmp_path / "a.jinja").write_text(text, "utf-8")
    assert templates.render("a.jinja", tmp_path, number=1, text="<&>") == "a\nb 1\n'<&>'\n"


def test_the_innermost_template_of_an_error_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text("\n{% include 'b.jinja' %}", "utf-8")
    (tmp_path / "b.jinja").write_text("\n\n{{ nothing }}", "utf-8")
    with pytest.raises(TemplateError, match=r"b\.jinja:3: 'nothing' is undefined"):
        templates.render("a.jinja", tmp_path)
    (tmp_path / "b.jinja").write_text("\n\n\n{% if %}", "utf-8")
    with pytest.raises(TemplateError, match=r"b\.jinja:4: "):
        templates.render("a.jinja", tmp_path)


def test_overrides_are_accepted_only_where_there_are_some(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected an override, got no file"):
        overrides.accept(METHODS, tmp_path)
    with pytest.raises(UsageError, match="expected a directory with templates, got none"):
        overrides.digests(tmp_path / "none")
    assert overrides.copy(METHODS, tmp_path / "new") == tmp_path / "new" / METHODS
    (tmp_path / "new" / overrides.ORIGINALS / METHODS).write_text("old", "utf-8")
    assert overrides.states(tmp_path / "new") == {METHODS: "outdated"}
    overrides.accept(METHODS, tmp_path / "new")
    assert overrides.states(tmp_path / "new") == {METHODS: "current"}
    assert overrides.changes(tmp_path / "new") == ""
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="Not a directory"):
        overrides.copy(METHODS, tmp_path / "file")


def test_an_outdated_override_names_the_number_of_changed_lines(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    overrides.copy(METHODS, tmp_path)
    original = tmp_path / overrides.ORIGINALS / METHODS
    lines = original.read_text("utf-8").splitlines(keepends=True)
    original.write_text("".join(["new\n", *lines[:-1]]), "utf-8")
    with pytest.raises(TemplateError, match=r"changed lines since: 2\); see mcpgen templates"):
        overrides.read(tmp_path, tmp_path / "pkg")
    overrides.accept(METHODS, tmp_path)
    read = overrides.read(tmp_path, tmp_path / "pkg")
    assert (read.directory, read.path, [*read.digests]) == (tmp_path, "..", [METHODS])
