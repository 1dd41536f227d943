"""The output for users: rich on a terminal, plain lines in a pipe, nothing extra when quiet.

Results go to standard output, progress to standard error. rich is imported on a terminal only.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mcpgen.findings import Report

_CLEAR_LINE = "\r\x1b[K"


@dataclass
class Steps:
    """Progress of work in steps, on standard error.

    Attributes:
        is_shown: Whether progress is shown.
        on_terminal: Whether each step overwrites the previous one.
        verbose: Whether steps are also shown where standard error is no terminal.
    """

    is_shown: bool
    on_terminal: bool
    verbose: bool

    def begin(self, text: str) -> None:
        """Print a heading, on a line that later steps do not overwrite."""
        if self.is_shown:
            self.clear()
            click.echo(f"{text} ...", err=True)

    def step(self, text: str) -> None:
        """Print the step that begins."""
        if self.on_terminal:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"{_CLEAR_LINE}{text[:width]}", nl=False, err=True)
        elif self.is_shown and self.verbose:
            click.echo(text, err=True)

    def clear(self) -> None:
        """Erase the current step."""
        if self.on_terminal:
            click.echo(_CLEAR_LINE, nl=False, err=True)


@dataclass
class Console:
    """The output of one command.

    Attributes:
        quiet: Leave out progress and summaries; results are still shown.
        form: The form of the result: `text`, or a word of `--format`, for which one document is
            written in place of all texts; errors stay lines.
    """

    quiet: bool = False
    form: str = "text"

    @property
    def as_json(self) -> bool:
        """Whether the result is one JSON value."""
        return self.form == "json"

    def record(self, result: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Write the result of a command as JSON, if the user asked for JSON."""
        if self.as_json:
            click.echo(json.dumps(result, indent=2))

    def report(self, report: Report) -> None:
        """Write the findings of a command, if the user asked for one of the forms of findings."""
        if self.form not in ("text", "json"):
            from mcpgen import findings  # few runs need it

            self.document(findings.FORMS[self.form](report))

    def document(self, text: str) -> None:
        """Write a result that is one document, in the form that the user asked for."""
        if text:
            click.echo(text.removesuffix("\n"))

    @contextmanager
    def progress(self, text: str) -> Generator[None]:
        """Show a status text while the block runs."""
        if self.quiet or self.as_json:
            yield
        elif sys.stderr.isatty():
            from rich.console import Console as Rich

            with Rich(stderr=True).status(f"{text} ..."):
                yield
        else:
            click.echo(f"{text} ...", err=True)
            yield

    @contextmanager
    def steps(self, *, verbose: bool) -> Generator[Steps]:
        """Report the steps of long work on standard error.

        On a terminal, each step overwrites the previous one. Elsewhere each step is a line, printed
        only if `verbose`.
        """
        is_shown = not self.quiet and not self.as_json
        steps = Steps(is_shown, is_shown and sys.stderr.isatty(), verbose)
        try:
            yield steps
        finally:
            steps.clear()

    def summary(self, text: str) -> None:
        """Print a line about the work that was done."""
        if not self.quiet:
            self.text(text)

    def text(self, text: str) -> None:
        """Print a text that the user asked for."""
        if self.form != "text":
            return
        if sys.stdout.isatty():
            from rich.console import Console as Rich

            Rich(highlight=False, soft_wrap=True).print(_bold_first_word(text), markup=True)
        else:
            click.echo(text)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows as a table with column headings."""
        if self.form != "text":
            return
        if sys.stdout.isatty():
            from rich.console import Console as Rich
            from rich.table import Table

            table = Table(*heads, box=None, header_style="bold", pad_edge=False)
            for row in rows:
                table.add_row(*row)
            Rich().print(table)
            return
        widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
        for row in (heads, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            click.echo("  ".join(cells).rstrip())

    def diff(self, text: str) -> None:
        """Print a unified diff."""
        if self.form != "text":
            return
        if sys.stdout.isatty():
            from rich.console import Console as Rich
            from rich.syntax import Syntax

            Rich().print(Syntax(text, "diff", theme="ansi_dark", background_color="default"))
        else:
            click.echo(text, nl=False)


def count_of(number: int, noun: str) -> str:
    """A number with a noun, such as `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bold_first_word(text: str) -> str:
    """Mark the first word of a text as bold, and escape markup in the text."""
    from rich.markup import escape

    first, space, rest = text.partition(" ")
    return f"[bold]{escape(first)}[/bold]{space}{escape(rest)}"
