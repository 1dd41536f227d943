"""The commands about the protocol itself: `diff`, `explain` and `validate`, with their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mcpgen.cli.options import REPORT_FORMS, common_options, format_option, json_option
from mcpgen.console import Console

_OUTPUT = click.Path(dir_okay=False, path_type=Path)
_SIDES = tuple(
    f"{role}{way}" for role in ("client", "server") for way in ("", "-sends", "-receives")
)


@click.command()
@click.argument("old", metavar="A", required=False)
@click.argument("new", metavar="B", required=False)
@click.option("-o", "--output", type=_OUTPUT, metavar="FILE", help="Write the report to FILE.")
@click.option(
    "--severity",
    "settings",
    multiple=True,
    metavar="RULE=SEVERITY",
    help="Judge a rule, a category such as FIELD, or ALL as breaking, warning, compatible or"
    " ignore. May be given several times; later ones win.",
)
@click.option(
    "--affects",
    multiple=True,
    type=click.Choice(_SIDES),
    help="Only what affects this side. May be given several times.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["never", "breaking", "warning", "any"]),
    default="never",
    help="Exit with 1 if there is a change of this severity, or a graver one.",
)
@click.option("--no-errata", is_flag=True, help="Take published schemas as they are.")
@click.option(
    "--bridge",
    is_flag=True,
    help="Print the outcome of each member of messages of A for peers of B, through a proxy.",
)
@click.option("--rules", "only_rules", is_flag=True, help="Print the rules and end.")
@format_option(*REPORT_FORMS, "html")
@common_options
@click.pass_obj
def diff(console: Console, /, old: str | None, new: str | None, **options: Any) -> None:
    """Tell what changes from A to B: revisions, or schema files in JSON or TypeScript.

    Each change has a rule, which says whom it affects and why it is breaking or not, for code that
    is written for A. Exits with 0, with 1 if --fail-on finds something, with 2 if A or B cannot be
    read.
    """
    from mcpgen.diff import command

    command.run_options(console, old, new, options)


def _recording_options(command: Any) -> Any:
    """Add the arguments of the commands that read messages."""
    source = click.argument("source", metavar="[FILE]", default="-")
    return source(json_option(common_options(click.pass_obj(command))))


@click.command()
@click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Ask this revision; all unless given. May be given several times.",
)
@_recording_options
def explain(console: Console, source: str, revisions: tuple[str, ...]) -> None:
    """Explain the messages in FILE or standard input, and list the revisions that accept them.

    FILE holds one message, several (an array, or one on each line), or a trace of MCP_TRACE. Where
    a revision refuses a message: the place, the reason and the nearest valid form.
    """
    from mcpgen.explain import command

    command.explain(console, source, revisions)


@click.command()
@click.option(
    *("-r", "--revision"),
    metavar="REVISION",
    help="The revision; the one that the messages agree on unless given.",
)
@_recording_options
def validate(console: Console, source: str, revision: str | None) -> None:
    """Check a recorded conversation, such as a trace of MCP_TRACE, against one revision.

    Each response is held against the result of the request that it answers. Exits with 1 if a
    message breaks the revision, with 2 if FILE cannot be read.
    """
    from mcpgen.explain import command

    command.validate(console, source, revision)
