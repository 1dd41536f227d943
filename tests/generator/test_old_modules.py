"""Modules of revisions that a package no longer has: with a setting, they stay for one update."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.command_line import run
from mcpgen.package import manifest

FIRST, SECOND, THIRD = "2025-03-26", "2025-06-18", "2025-11-25"
KEEP = "--keep-old-modules"


@pytest.fixture(autouse=True)
def place(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder, which modules are imported from, with a package of one revision."""
    monkeypatch.syspath_prepend(here)
    assert run("-r", FIRST, "--parts", "types", "-o", "old_pkg").code == 0
    yield here
    for name in [name for name in sys.modules if name.partition(".")[0] == "old_pkg"]:
        del sys.modules[name]


def update_package(*words: str) -> str:
    """Update the package and return the command's output."""
    done = run("update", "old_pkg", *words)
    assert done.code == 0, done.err
    return done.out


def modules_of(revision: str) -> set[str]:
    """The names of the modules in the folder of a revision."""
    return {path.stem for path in Path("old_pkg", revision).glob("*.py")}


def test_old_modules_have_the_names_of_the_nearest_revision() -> None:
    assert modules_of("r2025_03_26") == {"__init__", "methods", "models"}
    lines = update_package("-r", SECOND, "-r", THIRD, KEEP).splitlines()
    assert (
        "gone: old_pkg.r2025_03_26; import from old_pkg.r2025_06_18 instead; until the next update,"
        " it gives a DeprecationWarning"
    ) in lines
    assert lines[-1] == 'next: python -c "from old_pkg.r2025_06_18 import models; help(models)"'
    assert modules_of("r2025_03_26") == modules_of("r2025_06_18")
    with pytest.warns(DeprecationWarning, match="is gone") as caught:
        old = importlib.import_module("old_pkg.r2025_03_26.models")
    assert [str(each.message) for each in caught] == [
        "old_pkg.r2025_03_26 is gone: import from old_pkg.r2025_06_18",
        "old_pkg.r2025_03_26.models is gone: import from old_pkg.r2025_06_18.models",
    ]
    new = importlib.import_module("old_pkg.r2025_06_18.models")
    assert old.Tool is importlib.import_module("old_pkg.r2025_03_26").Tool is new.Tool


def test_a_warning_points_at_the_import() -> None:
    update_package("-r", SECOND, KEEP)
    with pytest.warns(DeprecationWarning, match="is gone") as caught:
        exec("from old_pkg.r2025_03_26 import models, Tool", {})
    assert {each.filename for each in caught} == {"<string>"}


def test_old_modules_stay_for_one_update() -> None:
    update_package("-r", SECOND, KEEP)
    assert run("check", "-q", "old_pkg").code == 0
    assert "unchanged" in update_package(KEEP)
    assert modules_of("r2025_03_26")
    update_package("-r", THIRD, KEEP)
    assert not modules_of("r2025_03_26")
    assert modules_of("r2025_06_18") == modules_of("r2025_11_25")
    update_package()
    assert not modules_of("r2025_06_18")
    assert "old_revisions" not in Path("old_pkg", manifest.NAME).read_text()


def test_a_patch_keeps_old_modules_where_they_are() -> None:
    update_package("-r", SECOND, KEEP)
    before = modules_of("r2025_03_26")
    models = Path("old_pkg/r2025_06_18/models.py")
    models.write_text(models.read_text("utf-8") + "MINE = 1\n", "utf-8")
    assert run("patch", "old_pkg").code == 0
    assert modules_of("r2025_03_26") == before
    assert "MINE = 1" in models.read_text("utf-8")


def test_a_revision_that_comes_back_is_no_old_one() -> None:
    update_package("-r", SECOND, KEEP)
    update_package("-r", FIRST, "-r", SECOND, KEEP)
    assert "class Tool" in Path("old_pkg/r2025_03_26/models.py").read_text()


def test_the_settings_of_a_project_keep_old_modules_too(place: Path) -> None:
    table = {"output": "old_pkg", "revisions": [SECOND], "parts": ["types"]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    text = "\n".join(["[tool.mcpgen]", *lines, "keep_old_modules = true\n"])
    (place / "pyproject.toml").write_text(text)
    for _ in range(2):
        assert run("-q").code == 0
        assert modules_of("r2025_03_26") == modules_of("r2025_06_18")
    assert run("check", "-q").code == 0
    (place / "pyproject.toml").write_text(text.replace("true", "false"))
    assert run("-q").code == 0
    assert not modules_of("r2025_03_26")
