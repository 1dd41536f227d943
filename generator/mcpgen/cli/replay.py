"""The commands `replay` and `record`: recorded sessions, played again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcpgen.cli.options import (
    FILE,
    REPORT_FORMS,
    common_options,
    format_option,
    output_option,
)
from mcpgen.cli.replay_serving import (
    check_not_serving,
    check_only_serving,
    serve_options,
    serve_trace,
)
from mcpgen.console import Console
from mcpgen.errors import DIFFERS, UsageError

if TYPE_CHECKING:
    from mcpgen.replay.outcomes import Run


@click.command()
@click.argument("trace", metavar="TRACE")
@click.option(
    "--against",
    metavar="TARGET",
    help="The server to play the client's side to.",
)
@click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Play the sessions in this revision, carried over from their own; all stands for those"
    " that the server speaks. May be repeated.",
)
@click.option(
    "--rules",
    type=FILE,
    metavar="FILE",
    help="Rules for comparing values: tables [[match]] of TOML.",
)
@click.option(
    "--session",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Only this session of the trace; all unless given.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Deadline of each answer, besides twice the time that it took in the trace.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["difference", "never"]),
    default="difference",
    show_default=True,
    help="Exit with 1 if there is a difference, or never.",
)
@serve_options
@format_option(*REPORT_FORMS)
@common_options
@click.pass_obj
def replay(
    console: Console,
    /,
    trace: str,
    against: str | None,
    revisions: tuple[str, ...],
    rules: Path | None,
    session: int | None,
    timeout: float,
    fail_on: str,
    **serving: Any,
) -> None:
    """Play the client's side of the recorded sessions in TRACE, and compare a server's answers.

    With --serve in place of --against, play the server's side: answer clients as it was recorded.

    TRACE is a file that MCP_TRACE or mcpgen record wrote; - is standard input. TARGET is a URL of
    Streamable HTTP, a command in quotes, module:server, a server.json, or a file with mcpServers,
    with # and a name where it has several. The calls of the trace are made again, with all that
    they do.

    \b
    Exit codes:
      0  the server answers as it was recorded
      1  it does not; or a client did not do what --strict expects
      2  the trace or the server can't be read
    """
    if serving["serves"]:
        check_only_serving()
        serve_trace(console, trace, session, rules, serving)
        return
    check_not_serving(serving)
    from mcpgen.replay import command, matching, recording
    from mcpgen.replay.playing import Timeouts

    if against is None:
        raise UsageError("expected --against TARGET or --serve, got neither")
    sessions = recording.read(trace)
    chosen = command.Options(
        matching.read_rules(rules) if rules is not None else (),
        Timeouts(answer=timeout),
        session,
        revisions,
    )
    with console.progress(f"playing {trace} to {against}"):
        runs = command.replay(sessions, against, Path.cwd(), chosen)
    _report(console, runs, trace)
    if fail_on == "difference" and any(run.differs for run in runs):
        sys.exit(DIFFERS)


@click.command()
@click.argument("target", metavar="TARGET")
@output_option("The trace to append to.")
@common_options
@click.pass_obj
def record(console: Console, target: str, output: Path) -> None:
    """Serve over stdio by passing all messages on to TARGET, and write them to a trace.

    Put it where a host starts the server: mcpgen record "python server.py" -o trace.jsonl. TARGET
    is as for mcpgen replay. Secrets in the trace are masked, as far as names and forms show them.
    """
    from mcpgen.replay import recorder

    recorder.record(target, Path.cwd(), output)


def _report(console: Console, runs: Sequence[Run], trace: str) -> None:
    from mcpgen.replay import report

    console.record(report.records(runs))
    if any(run.outcomes for run in runs):
        console.text(report.text(runs))
    console.summary(report.summary(runs))
    if console.form == "markdown":
        console.document(report.markdown(runs))
    else:
        console.report(report.report_of(runs, trace))
