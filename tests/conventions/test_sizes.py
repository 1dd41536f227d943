"""A far backstop: a file or a function of this size is hardly about one idea."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from conventions.sources import docstring_lines, hand_written, relative_name, text_of, tree_of

pytestmark = pytest.mark.lengthy

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
