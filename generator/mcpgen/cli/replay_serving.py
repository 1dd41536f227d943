"""The options of `mcpgen replay` that serve a trace, and its exit code for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mcpgen.console import Console
from mcpgen.errors import DIFFERS, UsageError

_OPTIONS = (
    click.option(
        "--serve",
        "serves",
        is_flag=True,
        help="Serve the trace at standard input and output: answer as the server of the trace did.",
    ),
    click.option(
        "--http",
        "address",
        metavar="HOST:PORT",
        help="With --serve: serve over HTTP at this address, such as 127.0.0.1:8000; port 0 is any"
        " free port.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="With --serve: refuse a request that is not the next one of the trace, and exit with 1"
        " if one was refused or never came.",
    ),
    click.option(
        "--latency",
        metavar="TIME",
        help="With --serve: delay each answer, by 50ms or 1.5s, or as it was recorded: recorded.",
    ),
    click.option(
        "--fail",
        "failures",
        multiple=True,
        metavar="METHOD:N[:FORM]",
        help="With --serve: let the N-th call of a method fail. FORM is error, which is the"
        " default, close, or over HTTP a status. May be given several times.",
    ),
)
_OF_REPLAYING = {
    "against": "--against",
    "revisions": "--revision",
    "timeout": "--timeout",
    "fail_on": "--fail-on",
    "form": "--format",
}
_WORDS = {"--http": "address", "--strict": "strict", "--fail": "failures", "--latency": "latency"}


def serve_options(command: Any) -> Any:
    """Add the options of serving, which the command receives as keywords."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_only_serving() -> None:
    """Check that no option of replaying is given to the running command, besides --serve.

    Raises:
        UsageError: One is.
    """
    source = click.get_current_context().get_parameter_source
    given = [
        option
        for name, option in _OF_REPLAYING.items()
        if source(name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise UsageError(f"expected --serve without {', '.join(given)}, got both")


def check_not_serving(words: dict[str, Any]) -> None:
    """Check that no option of serving is given without --serve.

    Raises:
        UsageError: One is.
    """
    given = [option for option, name in _WORDS.items() if words[name]]
    if given:
        raise UsageError(f"expected --serve with {', '.join(given)}, got none")


def serve_trace(
    console: Console, trace: str, session: int | None, rules: Path | None, words: dict[str, Any]
) -> None:
    """Serve a trace, and exit with 1 if --strict finds that a client did not follow it.

    Args:
        console: The output.
        trace: The file.
        session: The number of the session to serve, from 1; `None` to choose.
        rules: A file with rules of what is compared by shape; `None` for none.
        words: The values of `serve_options`, by keyword.

    Raises:
        UsageError: The trace can't be served, or an option is wrong.
    """
    from mcpgen.replay import faults, matching, serve_command
    from mcpgen.replay.served_trace import ServeOptions

    if console.as_json:
        raise UsageError("--serve prints no result, so it does not go with --json")
    options = ServeOptions(
        order="strict" if words["strict"] else "any",
        latency=serve_command.parse_latency(words["latency"] or "0s"),
        faults=[faults.parse(text) for text in words["failures"]],
        rules=() if rules is None else matching.read_rules(rules),
    )
    request = serve_command.ServeRequest(trace, session, words["address"], options)

    def report(line: str) -> None:
        click.echo(line, err=True)

    def inform(line: str) -> None:
        if not console.quiet:
            report(line)

    problems = serve_command.serve(request, inform, lambda url: report(f"serving at {url}"))
    if words["strict"] and problems:
        for line in problems:
            report(line)
        sys.exit(DIFFERS)
