"""The group `contract`: what a server shows, under version control."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcpgen.cli.options import (
    FILE,
    REPORT_FORMS,
    common_options,
    format_option,
    json_option,
    output_option,
)
from mcpgen.console import Console, count_of
from mcpgen.contract.rules import CATEGORIES, FAILING
from mcpgen.errors import DIFFERS, UsageError

if TYPE_CHECKING:
    from mcpgen.contract.command import Comparison, Selection
    from mcpgen.contract.compare import Change


@click.group()
def contract() -> None:
    """Keep the lists of a server under version control: write, check and compare them.

    \b
    Exit codes:
      0  no change of the severity that --fail-on names
      1  there is such a change
      2  the server or a file can't be read
    """


@dataclass(frozen=True)
class _Report:
    """The choices of a report.

    Attributes:
        comparison: The changes that count.
        fail_on: The word of `--fail-on`.
    """

    comparison: Comparison
    fail_on: str

    def show(self, console: Console, changes: Mapping[Path, list[Change]]) -> None:
        """Print the changes of contracts by file; exit with 1 if one of them fails."""
        from mcpgen.contract import report
        from mcpgen.findings import join_reports

        for file, of_file in changes.items():
            if len(changes) > 1:
                console.summary(f"{file}:")
            if of_file:
                console.text(report.text(of_file))
            console.summary(report.summary(of_file))
        every = [change for of_file in changes.values() for change in of_file]
        console.record(report.records(every))
        if console.form == "markdown":
            tables = {file: report.markdown(of_file) for file, of_file in changes.items()}
            several = [f"## {file}\n\n{table}" for file, table in tables.items()]
            console.document("\n".join(several if len(changes) > 1 else tables.values()))
        else:
            reports = [report.report_of(of_file, file) for file, of_file in changes.items()]
            console.report(join_reports(reports, ", ".join(each.name for each in reports)))
        if any(each.rule.severity in FAILING[self.fail_on] and not each.allowed for each in every):
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
        **more: Any,
    ) -> None:
        from mcpgen.contract.command import Comparison

        comparison = Comparison(selection, categories, allow)
        command(console, *words, report=_Report(comparison, fail_on), **more)

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
        format_option(*REPORT_FORMS),
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
@output_option("The file to write, such as server.contract.json.")
@_REVISIONS
@selection_options
@json_option
@common_options
@click.pass_obj
def write(
    console: Console, target: str, output: Path, revisions: tuple[str, ...], selection: Selection
) -> None:
    """Write the lists of the running server TARGET to a file.

    TARGET is a URL of Streamable HTTP, a command in quotes, module:server, a server.json, or a file
    with mcpServers, with # and a name if it has several. The file has tools, resources, prompts,
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
    """List the changes of the running server TARGET since FILE was written, and whom they break.

    TARGET is as for mcpgen contract write. FILE is not changed.
    """
    from mcpgen.contract import command, document

    old = document.read(file)
    with console.progress(f"asking {target}"):
        new = command.of_server(target, Path.cwd())
    report.show(console, {file: report.comparison.changes(old, new)})


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
        report.show(console, {files[-1]: report.comparison.changes(old, new)})
        return
    changes: dict[Path, list[Change]] = {}
    for file in files:
        new = document.read(file)
        earlier = command.of_reference(file, against)  # nothing breaks by a new file
        changes[file] = report.comparison.changes(earlier or new, new)
    report.show(console, changes)


@contract.command("rules")
@format_option("text", "markdown", "json")
@common_options
@click.pass_obj
def rules(console: Console) -> None:
    """Print the rules by which changes are named and judged; as Markdown with examples."""
    from mcpgen.contract.rules import RULES

    if console.form == "markdown":
        from mcpgen.contract import rule_page

        console.document(rule_page.text())
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
    """Show how the running server TARGET differs from the lock of clients; record named items.

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
