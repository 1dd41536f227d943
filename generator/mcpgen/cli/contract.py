"""The group `contract`: what a server shows, under version control."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcpgen.cli.options import FILE, common_options, json_option
from mcpgen.console import Console, count_of
from mcpgen.contract.rules import CATEGORIES, FAILING
from mcpgen.errors import DIFFERS, UsageError

if TYPE_CHECKING:
    from mcpgen.contract.command import Comparison, Selection
    from mcpgen.contract.compare import Change


_ONE_FILE = frozenset({"junit", "sarif"})
"""Forms of a report that are one document, about one file."""


@click.group()
def contract() -> None:
    """Keep what a server shows under version control: write, check and compare it.

    \b
    Exit codes:
      0  nothing changed that --fail-on names
      1  something did
      2  the server or a file can't be read
    """


@dataclass(frozen=True)
class _Report:
    """The choices of a report.

    Attributes:
        comparison: The changes that count.
        fail_on: The word of `--fail-on`.
        form: The word of `--format`.
    """

    comparison: Comparison
    fail_on: str
    form: str

    def show(self, console: Console, changes: list[Change], file: Path) -> None:
        """Print the changes of a file."""
        from mcpgen.contract import report

        if self.form in report.FORMS:
            click.echo(report.FORMS[self.form](changes, file.as_posix()), nl=False)
            return
        if changes:
            console.text(report.text(changes))
        console.summary(report.summary(changes))

    def end(self, console: Console, changes: list[Change]) -> None:
        """Print the changes as JSON if that was asked for; exit with 1 if one of them fails."""
        from mcpgen.contract import report

        console.record(report.records(changes))
        if any(
            each.rule.severity in FAILING[self.fail_on] and not each.allowed for each in changes
        ):
            sys.exit(DIFFERS)


def selection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose items of a server; the command gets a `Selection`."""

    @functools.wraps(command)
    def select(
        *words: Any, include: tuple[str, ...], exclude: tuple[str, ...], **more: Any
    ) -> None:
        from mcpgen.contract.command import Selection

        command(*words, selection=Selection(include, exclude), **more)

    including = click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Only items of this name, with * for any characters. May be repeated.",
    )
    excluding = click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        help="No items of this name, with * for any characters. May be repeated.",
    )
    return including(excluding(select))


def _report_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a comparison and its report; the command gets a `_Report`."""

    @functools.wraps(command)
    def compare(
        console: Console,
        *words: Any,
        selection: Selection,
        categories: tuple[Any, ...],
        allow: Path | None,
        fail_on: str,
        form: str,
        **more: Any,
    ) -> None:
        from mcpgen.contract.command import Comparison

        console.as_json |= form == "json"
        comparison = Comparison(selection, categories, allow)
        command(console, *words, report=_Report(comparison, fail_on, form), **more)

    options = (
        selection_options,
        click.option(
            *("--category", "categories"),
            type=click.Choice([*CATEGORIES]),
            multiple=True,
            help="Only rules of this category. May be repeated.",
        ),
        click.option(
            "--allow",
            type=FILE,
            metavar="FILE",
            help="Changes that do not count, each with a reason: tables [[allow]] of TOML.",
        ),
        click.option(
            "--fail-on",
            type=click.Choice([*FAILING]),
            default="breaking",
            show_default=True,
            help="Exit with 1 if a change of this severity, or a graver one, is there.",
        ),
        click.option(
            *("--format", "form"),
            type=click.Choice(["text", "markdown", "json", "junit", "sarif", "github"]),
            default="text",
            help="Form of the report.",
        ),
        json_option,
        common_options,
        click.pass_obj,
    )
    decorated: Callable[..., None] = compare
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


_TARGET = click.argument("target", metavar="TARGET")
_REVISIONS = click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Ask in this revision; in all that the server speaks unless given. May be repeated.",
)


@contract.command("write")
@_TARGET
@click.option(
    *("-o", "--output"),
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="The file to write, such as server.contract.json.",
)
@_REVISIONS
@selection_options
@json_option
@common_options
@click.pass_obj
def write(
    console: Console, target: str, output: Path, revisions: tuple[str, ...], selection: Selection
) -> None:
    """Write what the running server TARGET shows to a file.

    TARGET is a URL of Streamable HTTP, a command in quotes, module:server, a server.json, or a file
    with mcpServers, with # and a name where it has several. The file has tools, resources, prompts,
    instructions and capabilities by revision; the same server gives the same bytes.
    """
    from mcpgen.contract import command, document

    with console.progress(f"asking {target}"):
        surface = command.of_server(target, Path.cwd(), revisions)
    surface = selection.apply(surface)
    output.write_text(document.text_of(surface), encoding="utf-8", newline="\n")
    console.record({"file": str(output), "revisions": list(surface.revisions)})
    console.summary(f"wrote {output}: {', '.join(surface.revisions)}")


@contract.command("check")
@_TARGET
@click.argument("file", type=FILE)
@_report_options
def check(console: Console, target: str, file: Path, report: _Report) -> None:
    """Tell what the running server TARGET changed since FILE was written, and whom it breaks.

    TARGET is as for mcpgen contract write. FILE is not changed.
    """
    from mcpgen.contract import command, document

    old = document.read(file)
    with console.progress(f"asking {target}"):
        new = command.of_server(target, Path.cwd())
    changes = report.comparison.changes(old, new)
    report.show(console, changes, file)
    report.end(console, changes)


@contract.command("diff")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="OLD NEW")
@click.option(
    "--against",
    metavar="REF",
    help="Compare each file as it was in this commit of git with the file as it is.",
)
@_report_options
def diff(console: Console, files: tuple[Path, ...], against: str | None, report: _Report) -> None:
    """Tell what changed from the contract OLD to NEW, or in files since a commit of git."""
    from mcpgen.contract import command, document

    if against is None:
        if len(files) != 2:
            expected = "OLD and NEW, or files and --against"
            raise UsageError(f"expected {expected}, got {count_of(len(files), 'file')}")
        old, new = map(document.read, files)
        changes = report.comparison.changes(old, new)
        report.show(console, changes, files[-1])
        report.end(console, changes)
        return
    if len(files) > 1 and report.form in _ONE_FILE:
        raise UsageError(f"--format {report.form}: expected one file, got {len(files)}")
    every: list[Change] = []
    for file in files:
        if len(files) > 1:
            console.summary(f"{file}:")
        new = document.read(file)
        earlier = command.of_reference(file, against)  # nothing breaks by a new file
        changes = report.comparison.changes(earlier or new, new)
        report.show(console, changes, file)
        every += changes
    report.end(console, every)


@contract.command("rules")
@click.option(
    *("--format", "form"),
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    help="Form of the list; markdown has an example of each rule.",
)
@json_option
@common_options
@click.pass_obj
def rules(console: Console, form: str) -> None:
    """Print the rules by which changes are named and judged."""
    from mcpgen.contract.rules import RULES

    console.as_json |= form == "json"
    if form == "markdown":
        from mcpgen.contract import rule_page

        click.echo(rule_page.text(), nl=False)
        return
    rows = [(each.id, each.severity, each.category, each.reason) for each in RULES.values()]
    keys = ("rule", "severity", "category", "reason")
    console.record([dict(zip(keys, row, strict=True)) for row in rows])
    console.table(("Rule", "Severity", "Category", "Why"), rows)


@contract.command("accept")
@_TARGET
@click.argument("items", nargs=-1, metavar="[ITEM]...")
@click.option("--all", "every", is_flag=True, help="Accept every item that differs.")
@click.option(
    "--lock",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("mcp.lock.json"),
    show_default=True,
    metavar="FILE",
    help="The file of the lock, which is written if there is none.",
)
@click.option(
    "--server",
    default="",
    metavar="NAME",
    help="Name of the server in the file: connect(..., lock_name=NAME). By default its name in the"
    " file with mcpServers, else its URL or command.",
)
@_REVISIONS
@json_option
@common_options
@click.pass_obj
def accept(
    console: Console,
    target: str,
    items: tuple[str, ...],
    every: bool,
    lock: Path,
    server: str,
    revisions: tuple[str, ...],
) -> None:
    """Show how the running server TARGET differs from the lock of clients; record what is named.

    TARGET is as for mcpgen contract write. ITEM is a name as the command shows it, such as "tool
    add", or "instructions". Without ITEM and --all nothing is recorded, and the exit code is 1 if
    something differs.
    """
    from mcpgen.contract import acceptance, report

    if every and items:
        raise UsageError("expected names of items or --all, got both")
    with console.progress(f"asking {target}"):
        review, accepted = acceptance.accept(
            target, Path.cwd(), lock, server, None if every else items, revisions
        )
    console.record(acceptance.record(review, accepted))
    for item in review.items:
        console.text("\n".join(item.lines()))
    if review.changes:
        console.text(report.text(review.changes))
    if accepted:
        console.summary(f"accepted in {lock}: {count_of(len(accepted), 'item')}")
    elif review.items:
        differences = count_of(len(review.items), "difference")
        console.summary(f"nothing accepted, {differences}: name items, or --all")
        sys.exit(DIFFERS)
    else:
        console.summary(f"{lock} has all that the server shows")
