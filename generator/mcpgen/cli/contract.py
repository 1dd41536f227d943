"""The group `contract`: what a server shows, under version control."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mcpgen.cli.options import FILE, common_options, json_option
from mcpgen.console import Console, count_of
from mcpgen.errors import McpgenError, UsageError

DIFFERS = 1
"""The exit code if something changed that --fail-on names."""

_GRAVE = {
    "breaking": ("breaking",),
    "warning": ("breaking", "warning"),
    "any": ("breaking", "warning", "compatible"),
    "never": (),
}
"""The severities that make the command fail, by the word of --fail-on."""


class _CannotTellError(McpgenError):
    """There is no comparison: the server or the file can't be read."""

    exit_code = 2


class _Commands(click.Group):
    """Commands that exit with 2 if they can't do their work."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except McpgenError as error:
            raise _CannotTellError(str(error)) from error


@click.group(cls=_Commands)
def contract() -> None:
    """Keep what a server shows under version control: write, check and compare it.

    \b
    Exit codes:
      0  nothing changed that --fail-on names
      1  something did
      2  the server or a file can't be read
    """


_TARGET = click.argument("target", metavar="TARGET")
_REVISIONS = click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Ask in this revision; in all that the server speaks unless given. May be repeated.",
)
_INCLUDE = click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Only items of this name, with * for any characters. May be repeated.",
)
_EXCLUDE = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="No items of this name, with * for any characters. May be repeated.",
)
_FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(list(_GRAVE)),
    default="breaking",
    show_default=True,
    help="Exit with 1 if a change of this severity, or a graver one, is there.",
)
_ALLOW = click.option(
    "--allow",
    type=FILE,
    metavar="FILE",
    help="Changes that do not count, each with a reason: tables [[allow]] of TOML.",
)
_FORM = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json", "junit", "sarif", "github"]),
    default="text",
    help="Form of the report.",
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
@_INCLUDE
@_EXCLUDE
@json_option
@common_options
@click.pass_obj
def write(
    console: Console,
    target: str,
    output: Path,
    revisions: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
) -> None:
    """Write what the running server TARGET shows to a file.

    TARGET is a URL of Streamable HTTP, a command in quotes, module:server, a server.json, or a file
    with mcpServers, with # and a name where it has several. The file has tools, resources, prompts,
    instructions and capabilities by revision; the same server gives the same bytes.
    """
    from mcpgen.contract import command, document

    with console.progress(f"asking {target}"):
        written = command.of_server(target, Path.cwd(), revisions)
    written = command.Selection(include, exclude).apply(written)
    output.write_text(document.text_of(written), encoding="utf-8", newline="\n")
    console.record({"file": str(output), "revisions": list(written.revisions)})
    console.summary(f"wrote {output}: {', '.join(written.revisions)}")


@contract.command("check")
@_TARGET
@click.argument("file", type=FILE)
@_INCLUDE
@_EXCLUDE
@_ALLOW
@_FAIL_ON
@_FORM
@json_option
@common_options
@click.pass_obj
def check(
    console: Console,
    target: str,
    file: Path,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    allow: Path | None,
    fail_on: str,
    form: str,
) -> None:
    """Tell what the running server TARGET changed since FILE was written, and whom it breaks.

    TARGET is as for mcpgen contract write. FILE is not changed.
    """
    from mcpgen.contract import command, document

    selection = command.Selection(include, exclude)
    old = document.read(file)
    with console.progress(f"asking {target}"):
        new = command.of_server(target, Path.cwd())
    _report(console, selection.apply(old), selection.apply(new), file, allow, fail_on, form)


@contract.command("diff")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="OLD NEW")
@click.option(
    "--against",
    metavar="REF",
    help="Compare the file as it was in this commit of git with the file as it is.",
)
@_INCLUDE
@_EXCLUDE
@_ALLOW
@_FAIL_ON
@_FORM
@json_option
@common_options
@click.pass_obj
def diff(
    console: Console,
    files: tuple[Path, ...],
    against: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    allow: Path | None,
    fail_on: str,
    form: str,
) -> None:
    """Tell what changed from the contract OLD to NEW, or in one file since a commit of git."""
    from mcpgen.contract import command, document

    if len(files) != (1 if against else 2):
        expected = (
            "one file with --against" if against else "OLD and NEW, or one file and --against"
        )
        raise UsageError(f"expected {expected}, got {len(files)} files")
    file = files[-1]
    old = document.read(files[0]) if against is None else command.of_reference(file, against)
    selection = command.Selection(include, exclude)
    new = document.read(file)
    _report(console, selection.apply(old), selection.apply(new), file, allow, fail_on, form)


@contract.command("rules")
@json_option
@common_options
@click.pass_obj
def rules(console: Console) -> None:
    """Print the rules by which changes are named and judged."""
    from mcpgen.contract.rules import RULES

    rows = [(each.id, each.severity, each.concerns, each.reason) for each in RULES.values()]
    keys = ("rule", "severity", "concerns", "reason")
    console.record([dict(zip(keys, row, strict=True)) for row in rows])
    console.table(("Rule", "Severity", "Concerns", "Why"), rows)


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


def _report(
    console: Console,
    old: Any,
    new: Any,
    file: Path,
    allow: Path | None,
    fail_on: str,
    form: str,
) -> None:
    from mcpgen.contract import command, report
    from mcpgen.contract.rules import read_exemptions

    console.as_json |= form == "json"
    exemptions = read_exemptions(allow) if allow is not None else ()
    changes = command.changes(old, new, exemptions)
    console.record(report.records(changes))
    if form in report.FORMS:
        click.echo(report.FORMS[form](changes, file.as_posix()), nl=False)
    else:
        if changes:
            console.text(report.text(changes))
        console.summary(report.summary(changes))
    if any(each.rule.severity in _GRAVE[fail_on] and not each.allowed for each in changes):
        sys.exit(DIFFERS)
