"""Public names that mcpgen renamed, and types that a revision did: packages keep the old ones."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from generator.command_line import run
from generator.draft_packages import definitions_of, save_schema
from generator.selections import NEWEST
from mcpgen import paths, schema
from mcpgen.model import exports
from mcpgen.package import manifest

pytestmark = pytest.mark.costly

OLD, NEW = "AnswerLostError", "ResponseLostError"


Import = Callable[[str], ModuleType]


@pytest.fixture(autouse=True)
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Imports modules of the package `kept_pkg` in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module
    for name in [name for name in sys.modules if name.partition(".")[0] == "kept_pkg"]:
        del sys.modules[name]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A package of a client, whose manifest remembers names of an earlier mcpgen."""
    assert run("-q", "-r", NEWEST, "--parts", "client", "-o", "kept_pkg").code == 0
    path = tmp_path / "kept_pkg" / manifest.NAME
    record = json.loads(path.read_text())
    assert NEW in record["names"]
    names = {*record["names"], OLD, "NeverSeenAgain"} - {NEW}
    path.write_text(json.dumps({**record, "generator": "0", "names": sorted(names)}))
    return path.parent


@pytest.mark.usefixtures("older")
def test_an_old_name_is_the_new_one_with_a_warning(imported: Import) -> None:
    lines = run("update", "kept_pkg").out.splitlines()
    assert f"renamed: {OLD} is now {NEW}; the old name gives a DeprecationWarning" in lines
    assert "gone: NeverSeenAgain is no longer a public name of the package" in lines
    package = imported("kept_pkg")
    text = f"{OLD} of kept_pkg is called {NEW} now"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert getattr(package, OLD) is getattr(package, NEW)
    assert [each.filename for each in caught] == [__file__]
    assert OLD not in package.__all__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(package, NEW).__name__ == NEW
        for name in ("NeverSeenAgain", "Exchange"):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
                getattr(package, name)


def test_an_old_name_stays_in_later_generations_as_long_as_the_new_one(older: Path) -> None:
    main = older / "__main__.py"
    written = main.read_text()
    main.write_text("edited = True\n")
    done = run("update", "kept_pkg")
    assert (done.code, "gone:" in done.out + done.err) == (2, False)
    main.write_text(written)
    assert run("update", "-q", "kept_pkg").code == 0
    assert json.loads((older / manifest.NAME).read_text())["old_names"] == [OLD]
    assert run("check", "-q", "kept_pkg").code == 0
    done = run("-r", NEWEST, "--parts", "client", "-o", "kept_pkg")
    assert done.out.startswith("kept_pkg: unchanged")
    assert run("update", "-q", "kept_pkg", "--parts", "types").code == 0
    assert OLD not in (older / "__init__.py").read_text()
    assert run("check", "-q", "kept_pkg").code == 0


def test_renames_lead_to_names_that_are_public() -> None:
    import mcpgen_runtime

    assert {*exports.RENAMED.values()} <= {*dir(mcpgen_runtime)}
    assert not exports.RENAMED.keys() & {*dir(mcpgen_runtime)}


@pytest.mark.parametrize(
    ("renames", "current", "expected"),
    [
        ({"A": "B"}, {"B"}, {"A": "B"}),
        ({"A": "B"}, {"A", "B"}, {}),
        ({"A": "B", "B": "C"}, {"C"}, {"A": "C", "B": "C"}),
        ({"A": "B", "B": "C"}, {"B", "C"}, {"A": "B"}),
        ({"A": "B", "B": "A"}, {"C"}, {}),
        ({"Z": "C", "A": "C"}, {"C"}, {"A": "C", "Z": "C"}),
    ],
)
def test_old_names_of_types_lead_to_the_present_ones(
    renames: dict[str, str], current: set[str], expected: dict[str, str]
) -> None:
    rows = exports.renamed_types(renames, current)
    assert [(row.old, row.new) for row in rows] == [*expected.items()]


FIRST, SECOND, THIRD = "2025-03-26", "2025-06-18", "2025-11-25"
OLD_TYPE, NEW_TYPE = "ResourceReference", "ResourceTemplateReference"


def generate_package(*revisions: str) -> str:
    """Generate a package of some revisions and return the command's output."""
    words = [word for revision in revisions for word in ("-r", revision)]
    done = run(*words, "--parts", "types", "-o", "kept_pkg")
    assert done.code == 0, done.err
    return done.out


def test_an_old_name_is_the_new_type_with_a_warning(imported: Import) -> None:
    generate_package(FIRST, SECOND)
    change = f"models.{OLD_TYPE} is now models.{NEW_TYPE}"
    line = f"renamed: {change}; the old name gives a DeprecationWarning"
    assert line in generate_package(SECOND, THIRD).splitlines()
    module = imported("kept_pkg.models")
    with pytest.warns(
        DeprecationWarning, match=f"{OLD_TYPE} of kept_pkg.models is called {NEW_TYPE} now"
    ) as caught:
        assert getattr(module, OLD_TYPE) is getattr(module, NEW_TYPE)
    assert [each.filename for each in caught] == [__file__]
    assert not hasattr(module, "NeverThere")


def test_an_old_name_stays_a_type_as_long_as_its_revision_does(
    tmp_path: Path, imported: Import
) -> None:
    generate_package(FIRST)  # has no module `models`
    generate_package(FIRST, SECOND)
    assert "renamed" not in generate_package(FIRST, SECOND, THIRD)
    assert json.loads((tmp_path / "kept_pkg" / manifest.NAME).read_text())["renamed_types"] == {
        "JSONRPCError": "JSONRPCErrorResponse"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = imported("kept_pkg.models")
        assert getattr(models, OLD_TYPE) is not getattr(models, NEW_TYPE)


def test_the_manifest_remembers_old_names_over_later_generations(tmp_path: Path) -> None:
    generate_package(FIRST, SECOND)
    generate_package(SECOND, THIRD)
    assert run("check", "-q", "kept_pkg").code == 0
    assert generate_package(SECOND, THIRD).startswith("kept_pkg: unchanged")
    generate_package(FIRST, SECOND)
    assert f'"{OLD_TYPE}": "{NEW_TYPE}"' not in (tmp_path / "kept_pkg/models.py").read_text()
    generate_package(SECOND, THIRD)
    assert f'"{OLD_TYPE}": "{NEW_TYPE}"' in (tmp_path / "kept_pkg/models.py").read_text()


def test_a_newer_name_of_an_inline_object_does_not_rename_it(
    tmp_path: Path, imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = "ClientCapabilitiesElicitation", "ElicitationModes"
    latest = schema.latest().name
    generate_package(THIRD, latest)
    definitions = definitions_of(latest)
    properties = definitions["ClientCapabilities"]["properties"]
    definitions[after] = properties["elicitation"]
    properties["elicitation"] = {"$ref": f"#/$defs/{after}"}
    add = ("schema", "add", str(save_schema(tmp_path, definitions)), "--revision", "2027-01-15")
    assert run(*add, "--schemas", f"{tmp_path / 'own'}").code in (0, 1)
    monkeypatch.setenv(paths.SCHEMAS_VARIABLE, f"{tmp_path / 'own'}")
    assert f"renamed: models.{before} is now models.{after}" in generate_package(
        latest, "2027-01-15"
    )
    models = imported("kept_pkg.models")
    with pytest.warns(DeprecationWarning, match=after):
        assert getattr(models, before) is getattr(models, after)


KEEP = "--keep-old-modules"


@pytest.fixture
def old_modules(tmp_path: Path) -> Path:
    """The current folder, with a package of one revision."""
    generate_package(FIRST)
    return tmp_path


def update_package(*words: str) -> str:
    """Update the package and return the command's output."""
    done = run("update", "kept_pkg", *words)
    assert done.code == 0, done.err
    return done.out


def modules_of(revision: str) -> set[str]:
    """The names of the modules in the folder of a revision."""
    return {path.stem for path in Path("kept_pkg", revision).glob("*.py")}


@pytest.mark.usefixtures("old_modules")
def test_old_modules_have_the_names_of_the_nearest_revision(imported: Import) -> None:
    assert modules_of("r2025_03_26") == {"__init__", "methods", "models"}
    lines = update_package("-r", SECOND, "-r", THIRD, KEEP).splitlines()
    assert (
        "gone: kept_pkg.r2025_03_26; import from kept_pkg.r2025_06_18 instead; until the next"
        " update, it gives a DeprecationWarning"
    ) in lines
    assert lines[-1] == 'next: python -c "from kept_pkg.r2025_06_18 import models; help(models)"'
    assert modules_of("r2025_03_26") == modules_of("r2025_06_18")
    with pytest.warns(DeprecationWarning, match="is gone") as caught:
        old = imported("kept_pkg.r2025_03_26.models")
    assert [str(each.message) for each in caught] == [
        "kept_pkg.r2025_03_26 is gone: import from kept_pkg.r2025_06_18",
        "kept_pkg.r2025_03_26.models is gone: import from kept_pkg.r2025_06_18.models",
    ]
    new = imported("kept_pkg.r2025_06_18.models")
    assert old.Tool is imported("kept_pkg.r2025_03_26").Tool is new.Tool


@pytest.mark.usefixtures("old_modules")
def test_a_warning_points_at_the_import() -> None:
    update_package("-r", SECOND, KEEP)
    with pytest.warns(DeprecationWarning, match="is gone") as caught:
        exec("from kept_pkg.r2025_03_26 import models, Tool", {})
    assert {each.filename for each in caught} == {"<string>"}


@pytest.mark.usefixtures("old_modules")
def test_old_modules_stay_for_one_update() -> None:
    update_package("-r", SECOND, KEEP)
    assert run("check", "-q", "kept_pkg").code == 0
    assert "unchanged" in update_package(KEEP)
    assert modules_of("r2025_03_26")
    update_package("-r", THIRD, KEEP)
    assert not modules_of("r2025_03_26")
    assert modules_of("r2025_06_18") == modules_of("r2025_11_25")
    update_package()
    assert not modules_of("r2025_06_18")
    assert "old_revisions" not in Path("kept_pkg", manifest.NAME).read_text()


@pytest.mark.usefixtures("old_modules")
def test_a_patch_keeps_old_modules_where_they_are() -> None:
    update_package("-r", SECOND, KEEP)
    before = modules_of("r2025_03_26")
    models = Path("kept_pkg/r2025_06_18/models.py")
    models.write_text(models.read_text("utf-8") + "MINE = 1\n", "utf-8")
    assert run("patch", "kept_pkg").code == 0
    assert modules_of("r2025_03_26") == before
    assert "MINE = 1" in models.read_text("utf-8")


@pytest.mark.usefixtures("old_modules")
def test_a_revision_that_comes_back_is_no_old_one() -> None:
    update_package("-r", SECOND, KEEP)
    update_package("-r", FIRST, "-r", SECOND, KEEP)
    assert "class Tool" in Path("kept_pkg/r2025_03_26/models.py").read_text()


def test_the_settings_of_a_project_keep_old_modules_too(old_modules: Path) -> None:
    table = {"output": "kept_pkg", "revisions": [SECOND], "parts": ["types"]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    text = "\n".join(["[tool.mcpgen]", *lines, "keep_old_modules = true\n"])
    (old_modules / "pyproject.toml").write_text(text)
    for _ in range(2):
        assert run("-q").code == 0
        assert modules_of("r2025_03_26") == modules_of("r2025_06_18")
    assert run("check", "-q").code == 0
    (old_modules / "pyproject.toml").write_text(text.replace("true", "false"))
    assert run("-q").code == 0
    assert not modules_of("r2025_03_26")
