"""Public names that mcpgen renamed: a package that had the old one goes on to offer it."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from generator.command_line import run
from mcpgen import schema
from mcpgen.model.exports import RENAMED
from mcpgen.package import manifest

pytestmark = pytest.mark.costly

OLD, NEW = "AnswerLostError", "ResponseLostError"


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `older_pkg` of a client, whose manifest remembers names of an earlier mcpgen."""
    monkeypatch.chdir(tmp_path)
    assert run("-q", "-r", schema.latest().name, "--parts", "client", "-o", "older_pkg").code == 0
    path = tmp_path / "older_pkg" / manifest.NAME
    record = json.loads(path.read_text())
    assert NEW in record["names"]
    names = {*record["names"], OLD, "NeverSeenAgain"} - {NEW}
    path.write_text(json.dumps({**record, "generator": "0", "names": sorted(names)}))
    return path.parent


@pytest.fixture
def updated_package(older: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The older package after an update, imported."""
    assert run("update", "-q", "older_pkg").code == 0
    monkeypatch.syspath_prepend(older.parent)
    yield importlib.import_module("older_pkg")
    for name in [name for name in sys.modules if name.partition(".")[0] == "older_pkg"]:
        del sys.modules[name]


def test_an_old_name_is_the_new_one_with_a_warning(updated_package: ModuleType) -> None:
    with pytest.warns(
        DeprecationWarning, match=f"{OLD} of older_pkg is called {NEW} now"
    ) as caught:
        value = getattr(updated_package, OLD)
    assert value is getattr(updated_package, NEW)
    assert [each.filename for each in caught] == [__file__]
    assert OLD not in updated_package.__all__


def test_new_names_and_unknown_ones_are_as_before(updated_package: ModuleType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(updated_package, NEW).__name__ == NEW
        for name in ("NeverSeenAgain", "Exchange"):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
                getattr(updated_package, name)


def test_an_update_says_what_was_renamed_and_what_is_gone(older: Path) -> None:
    lines = run("update", "older_pkg").out.splitlines()
    assert f"renamed: {OLD} is now {NEW}; the old name gives a DeprecationWarning" in lines
    assert "gone: NeverSeenAgain is no longer a public name of the package" in lines


def test_a_refused_update_reports_no_planned_changes(older: Path) -> None:
    (older / "__main__.py").write_text("edited = True\n")
    done = run("update", "older_pkg")
    assert done.code == 2
    assert "gone:" not in done.out + done.err
    assert "renamed:" not in done.out + done.err


def test_the_old_name_stays_in_later_generations(older: Path) -> None:
    assert run("update", "-q", "older_pkg").code == 0
    record = json.loads((older / manifest.NAME).read_text())
    assert record["old_names"] == [OLD]
    assert run("check", "-q", "older_pkg").code == 0
    done = run("-r", schema.latest().name, "--parts", "client", "-o", "older_pkg")
    assert done.out.startswith("older_pkg: unchanged")


def test_a_name_whose_new_one_was_left_out_is_left_out_too(older: Path) -> None:
    assert run("update", "-q", "older_pkg", "--parts", "types").code == 0
    assert OLD not in (older / "__init__.py").read_text()
    assert run("check", "-q", "older_pkg").code == 0


def test_renames_lead_to_names_that_are_public() -> None:
    import mcpgen_runtime

    assert {*RENAMED.values()} <= {*dir(mcpgen_runtime)}
    assert not RENAMED.keys() & {*dir(mcpgen_runtime)}
