"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; line ends within a cell become spaces."""
    lines = [[*header], ["---"] * len([*header]), *([cell(each) for each in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def cell(value: str) -> str:
    """A text within a cell of a table."""
    return " ".join(value.split()).replace("|", "\\|") or " "
