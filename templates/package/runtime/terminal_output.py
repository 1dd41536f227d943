"""Output of commands for people: plain text, or styled text where standard output is a terminal.

Both have the same words. Styled text needs rich, which is loaded for a terminal only. Text of a
server is never markup, and characters that a terminal would interpret are written as escapes:
before the layout and, since Markdown has escapes of its own, again after it.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

TextStyle: TypeAlias = Literal["", "bold", "dim", "cyan", "green", "red"]

_MARKDOWN = re.compile(r"(?:\A|\n\n)#{1,6} \S[^\n]*(?:\n\n|\n?\Z)|^```", re.MULTILINE)
"""A heading between empty lines, or a fence: a comment of a program is neither."""

_LONGEST = 100_000  # characters that are examined for JSON and Markdown


class TableRow(NamedTuple):
    """One row of a table.

    Attributes:
        cells: The cells of the styled table.
        line: The row as one line of plain text.
        note: A further line of plain text; empty for none.
    """

    cells: tuple[str, ...]
    line: str
    note: str = ""


def printable(text: str) -> str:
    """An untrusted text for a terminal: control characters except newlines and tabs are escaped."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text
    )


def json_text(value: Any) -> str:
    """JSON in ASCII, which contains no control characters for a terminal."""
    return json.dumps(value, indent=2)


class PlainOutput:
    """Plain text on standard output."""

    def text(self, text: str, *, markdown: bool | None = None) -> None:
        """Print a text of a server.

        Args:
            text: The text.
            markdown: Whether it is Markdown; `None` if unknown.
        """
        print(printable(text))

    def heading(self, text: str) -> None:
        """Print a heading on its own line."""
        print(printable(text))

    def value(self, value: Any) -> None:
        """Print JSON."""
        print(json_text(value))

    def line(self, parts: Iterable[tuple[str, TextStyle]]) -> None:
        """Print texts, each with its style, on one line."""
        print(printable("".join(text for text, _ in parts)))

    def table(self, heading: str, columns: Sequence[str], rows: Iterable[TableRow]) -> None:
        """Print a table.

        Args:
            heading: The heading of the table.
            columns: Names of the columns.
            rows: The rows.
        """
        print(f"\n{heading}")
        for row in rows:
            print(printable(f"  {row.line}"))
            if row.note:
                print(printable(f"      {row.note}"))


class _StyledOutput(PlainOutput):
    """Styled text on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def text(self, text: str, *, markdown: bool | None = None) -> None:
        if len(text) <= _LONGEST:
            indented = _indent_json(text)
            if indented is not None:
                self._show_json(indented)
                return
            if markdown or (markdown is None and _MARKDOWN.search(text)):
                from rich.markdown import Markdown

                # A hyperlink would hide its target; otherwise the target follows the text.
                self._show(Markdown(printable(text), hyperlinks=False), wrap=True)
                return
        self.line([(text, "")])

    def heading(self, text: str) -> None:
        self.line([(text, "bold")])

    def value(self, value: Any) -> None:
        self._show_json(json_text(value))

    def line(self, parts: Iterable[tuple[str, TextStyle]]) -> None:
        from rich.text import Text

        line = Text()
        for text, style in parts:
            line.append(printable(text), style)
        self._show(line)

    def table(self, heading: str, columns: Sequence[str], rows: Iterable[TableRow]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, title=Text(heading, "bold"), title_justify="left")
        for number, name in enumerate(columns):
            style = "" if number else "cyan"
            table.add_column(Text(name), style=style, overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row.cells))
        self._show(table, wrap=True)

    def _show_json(self, text: str) -> None:
        from rich.highlighter import JSONHighlighter
        from rich.text import Text

        shown = Text(printable(text))
        JSONHighlighter().highlight(shown)
        self._show(shown)

    def _show(self, shown: RenderableType, *, wrap: bool = False) -> None:
        """Print an object of rich; without `wrap` the terminal breaks lines, not rich."""
        from rich.segment import Segment, Segments

        options = self._console.options
        if not wrap:
            options = options.update(overflow="ignore")
        segments = [
            Segment(printable(segment.text), segment.style)
            for segment in self._console.render(shown, options)
            if not segment.control
        ]
        self._console.print(Segments(segments), end="", soft_wrap=True)


def output() -> PlainOutput:
    """Styled output if standard output is a terminal and rich is installed, else plain output.

    `NO_COLOR` and `TERM=dumb` in the environment make it plain.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return PlainOutput()
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return PlainOutput()
    return _StyledOutput(Console())


def _indent_json(text: str) -> str | None:
    """A JSON object or array with a member on each line; `None` if the text is not one."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None
