"""Where tests lie and what files and classes are called; a backstop for their sizes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conventions.sources import (
    PACKAGE,
    ROOT,
    TEMPLATES,
    TESTS,
    docstring_lines,
    hand_written,
    python_files,
    relative_name,
    text_of,
    tree_of,
)

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


OF_REVISION = re.compile(r"r\d{4}_\d\d_\d\d")
MODULES = [
    path
    for path in python_files(PACKAGE)
    if not OF_REVISION.fullmatch(path.relative_to(PACKAGE).parts[0])
]
_MESSAGES = "that of `messages` has typed params, that of `protocol.jsonrpc` has JSON"
SHARED = {
    "Context": "that of the page `chosen` has the members of features; the kernel has its base",
    "Notification": _MESSAGES,
    "Request": _MESSAGES,
    "Response": "that of `messages` is a message of JSON-RPC, that of `routes` is one of HTTP",
}


def test_no_two_classes_of_the_package_share_a_name() -> None:
    classes = Counter(
        node.name
        for path in MODULES
        if path.name != "models.py"
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, number in classes.items() if number > 1} == set(SHARED)


def test_no_two_modules_of_the_package_share_a_name() -> None:
    names = Counter(path.stem for path in MODULES if path.stem not in ("__init__", "chosen"))
    assert [name for name, number in names.items() if number > 1] == []


FILE_LINES = 800
FUNCTION_LINES = 60
"""Without the lines of docstrings."""


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            if len(lines) > FUNCTION_LINES:
                lines -= docstring_lines(path)
            if len(lines) > FUNCTION_LINES:
                yield f"{relative_name(path)}:{node.lineno}: {node.name} has {len(lines)} lines"


def test_a_file_is_short_enough_to_read() -> None:
    sizes = {relative_name(path): len(text_of(path).splitlines()) for path in hand_written()}
    assert {path: size for path, size in sizes.items() if size > FILE_LINES} == {}


def test_every_function_fits_a_screen() -> None:
    assert [line for path in hand_written() for line in long_functions(path)] == []
