"""Types that a newer revision renamed: `models` of a package that had the old name keeps it."""

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
from mcpgen import paths, schema
from mcpgen.errors import ManifestError
from mcpgen.model import exports
from mcpgen.package import manifest

pytestmark = pytest.mark.costly

FIRST, SECOND, THIRD = "2025-03-26", "2025-06-18", "2025-11-25"
OLD, NEW = "ResourceReference", "ResourceTemplateReference"
Import = Callable[[], ModuleType]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def models(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Imports the module `models` of the package."""
    monkeypatch.syspath_prepend(place)
    yield lambda: importlib.import_module("kept_pkg.models")
    for name in [name for name in sys.modules if name.partition(".")[0] == "kept_pkg"]:
        del sys.modules[name]


def generate_package(*revisions: str) -> str:
    """Generate a package of some revisions and return the command's output."""
    words = [word for revision in revisions for word in ("-r", revision)]
    done = run(*words, "--parts", "types", "-o", "kept_pkg")
    assert done.code == 0, done.err
    return done.out


def test_an_old_name_is_the_new_type_with_a_warning(models: Import) -> None:
    generate_package(FIRST, SECOND)
    line = f"renamed: models.{OLD} is now models.{NEW}; the old name gives a DeprecationWarning"
    assert line in generate_package(SECOND, THIRD).splitlines()
    module = models()
    with pytest.warns(
        DeprecationWarning, match=f"{OLD} of kept_pkg.models is called {NEW} now"
    ) as caught:
        assert getattr(module, OLD) is getattr(module, NEW)
    assert [each.filename for each in caught] == [__file__]
    assert not hasattr(module, "NeverThere")


def test_an_old_name_stays_a_type_as_long_as_its_revision_does(place: Path, models: Import) -> None:
    generate_package(FIRST)  # has no module `models`
    generate_package(FIRST, SECOND)
    assert "renamed" not in generate_package(FIRST, SECOND, THIRD)
    assert json.loads((place / "kept_pkg" / manifest.NAME).read_text())["renamed_types"] == {
        "JSONRPCError": "JSONRPCErrorResponse"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(models(), OLD) is not getattr(models(), NEW)


def test_the_manifest_remembers_old_names_over_later_generations(place: Path) -> None:
    generate_package(FIRST, SECOND)
    generate_package(SECOND, THIRD)
    assert run("check", "-q", "kept_pkg").code == 0
    assert generate_package(SECOND, THIRD).startswith("kept_pkg: unchanged")
    generate_package(FIRST, SECOND)
    assert f'"{OLD}": "{NEW}"' not in (place / "kept_pkg/models.py").read_text()
    generate_package(SECOND, THIRD)
    assert f'"{OLD}": "{NEW}"' in (place / "kept_pkg/models.py").read_text()


def test_a_new_package_has_no_old_names(place: Path) -> None:
    generate_package(SECOND, THIRD)
    assert "renamed_types" not in json.loads((place / "kept_pkg" / manifest.NAME).read_text())
    assert "__getattr__" not in (place / "kept_pkg/models.py").read_text()


def test_a_newer_name_of_an_inline_object_does_not_rename_it(
    place: Path, models: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = "ClientCapabilitiesElicitation", "ElicitationModes"
    latest = schema.latest().name
    generate_package(THIRD, latest)
    definitions = definitions_of(latest)
    properties = definitions["ClientCapabilities"]["properties"]
    definitions[after] = properties["elicitation"]
    properties["elicitation"] = {"$ref": f"#/$defs/{after}"}
    add = ("schema", "add", str(save_schema(place, definitions)), "--revision", "2027-01-15")
    assert run(*add, "--schemas", f"{place / 'own'}").code in (0, 1)
    monkeypatch.setenv(paths.SCHEMAS_VARIABLE, f"{place / 'own'}")
    assert f"renamed: models.{before} is now models.{after}" in generate_package(
        latest, "2027-01-15"
    )
    with pytest.warns(DeprecationWarning, match=after):
        assert getattr(models(), before) is getattr(models(), after)


@pytest.mark.parametrize(
    ("renames", "offered"),
    [
        ({"A": "B"}, {"A": "B"}),
        ({"A": "B", "B": "C"}, {"A": "B"}),  # B is there
        ({"A": "X", "X": "C"}, {"A": "C", "X": "C"}),
        ({"B": "C"}, {}),
        ({"A": "X"}, {}),
        ({"X": "Y", "Y": "X"}, {}),
    ],
)
def test_renames_are_followed_to_a_type_that_is_there(
    renames: dict[str, str], offered: dict[str, str]
) -> None:
    rows = exports.renamed_types(renames, {"B", "C"})
    assert {row.old: row.new for row in rows} == offered


@pytest.mark.parametrize("name", ["class", "a b", "A\nimport os", "", "A = 1 #"])
def test_a_manifest_with_a_name_that_would_be_code_is_refused(place: Path, name: str) -> None:
    options = manifest.Options(errata=True)
    record = manifest.new("pkg", options, {}, {}, renamed_types={"Old": name})
    (place / manifest.NAME).write_text(record.text())
    with pytest.raises(ManifestError, match="names of types"):
        manifest.read(place)
