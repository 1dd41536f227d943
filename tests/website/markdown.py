"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

CODE_OR_PIPE = re.compile(r"`[^`]*`|\|")
"""A piece of code, in which a line is part of the text, or one that would end the cell."""


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; line ends within a cell become spaces."""
    lines = [[*header], ["---"] * len([*header]), *([cell(each) for each in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def cell(value: str) -> str:
    """A text within a cell of a table."""
    text = " ".join(value.split())
    return CODE_OR_PIPE.sub(lambda match: "\\|" if match[0] == "|" else match[0], text) or " "
