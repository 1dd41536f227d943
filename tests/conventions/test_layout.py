"""Where tests lie, and what their files are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conventions.sources import ROOT, TEMPLATES, TESTS

pytestmark = pytest.mark.lengthy

ROOMS = TEMPLATES / "package"
OF_PACKAGE = TESTS / "package"
NAMED_SHARE = 0.8
"""At least so many files of tests are called like what they test; others ask about several."""


def test_the_tests_of_a_package_have_the_rooms_of_the_package() -> None:
    rooms = {path.parent.relative_to(ROOMS) for path in ROOMS.rglob("*.py*")}
    rooms |= {path.parent.relative_to(ROOMS) for path in ROOMS.rglob("*.jinja")}
    tests = {path.parent.relative_to(OF_PACKAGE) for path in OF_PACKAGE.rglob("test_*.py")}
    assert tests == rooms | {Path("limits")}  # a table of all rooms


def names_of(*folders: Path) -> Iterator[str]:
    """The names that files of tests may begin with: modules, their folders, and pages."""
    for folder in (*folders, ROOT / "docs"):
        for path in folder.rglob("*.md" if folder.name == "docs" else "*.py*"):
            name, around = path.name.partition(".")[0].strip("_"), path.parent.name
            yield from (each.replace("-", "_") for each in (name, around) if len(each) > 2)


@pytest.mark.parametrize(
    ("tests", "tested"),
    [
        pytest.param(OF_PACKAGE, (ROOMS, ROOT / "generated"), id="package"),
        pytest.param(TESTS / "generator", (ROOT / "generator" / "mcpgen",), id="generator"),
    ],
)
def test_files_of_tests_are_called_like_a_module_or_page(
    tests: Path, tested: tuple[Path, ...]
) -> None:
    """`test_NAME.py`, or `test_NAME_aspect.py` for a further file."""
    names = {*names_of(*tested)}
    files = [path.stem.removeprefix("test_") for path in tests.rglob("test_*.py")]
    named = [file for file in files if any(f"{file}_".startswith(f"{name}_") for name in names)]
    assert len(named) >= NAMED_SHARE * len(files), sorted({*files} - {*named})


def test_no_two_files_of_tests_of_the_package_have_one_name() -> None:
    counts = Counter(path.name for path in OF_PACKAGE.rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []
