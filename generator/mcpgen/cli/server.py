"""The command about running servers, `check-server`, with its options, texts and exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcpgen.cli.options import REPORT_FORMS, common_options, format_option
from mcpgen.console import Console
from mcpgen.errors import DIFFERS, UsageError
from mcpgen.findings import shown_path

if TYPE_CHECKING:
    from mcpgen.check_server.runner import Findings


_GRAVE = {"error": ("error",), "warning": ("error", "warning"), "never": ()}
"""The severities that make the command fail, by the word of --fail-on."""


@click.command("check-server")
@click.argument("target", metavar="TARGET", required=False)
@click.option(
    *("-r", "--revision", "revisions"),
    multiple=True,
    metavar="REVISION",
    help="Check in this revision; in all that the server speaks unless given. May be repeated.",
)
@click.option(
    *("--rule", "rules"),
    multiple=True,
    metavar="RULE",
    help="Check this rule, or the rules of an area such as tools. May be repeated.",
)
@click.option("--list-rules", is_flag=True, help="Print the rules that are checked, and end.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Deadline of each answer.",
)
@click.option(
    "--call-tools",
    is_flag=True,
    help="Call every tool whose arguments can be built from its schema. Without this, only those"
    " that are annotated with readOnlyHint: the others may change something.",
)
@click.option(
    "--fail-on",
    type=click.Choice(list(_GRAVE)),
    default="error",
    show_default=True,
    help="Exit with 1 if a rule of this severity, or a graver one, is broken. A broken MUST is an"
    " error, a broken SHOULD a warning.",
)
@click.option("--verbose", is_flag=True, help="Name also what passed, and what does not apply.")
@format_option(*REPORT_FORMS)
@common_options
@click.pass_obj
def check_server(
    console: Console,
    target: str | None,
    revisions: tuple[str, ...],
    rules: tuple[str, ...],
    list_rules: bool,
    timeout: float,
    call_tools: bool,
    fail_on: str,
    verbose: bool,
) -> None:
    """Tell which rules of the specification the running server TARGET breaks.

    TARGET is a URL of Streamable HTTP, a command in quotes, or a file with mcpServers, with # and a
    name where it has several. The server is driven in each revision that it speaks, by messages
    that are sent and read raw. Resources are read, prompts are got, and log levels are set; tools
    are called only if they say that they only read, or by --call-tools.

    Exits with 0 if nothing is broken, with 1 if something is, with 2 if the server does not start.
    """
    from mcpgen.check_server import report, runner
    from mcpgen.project import live_server

    if list_rules:
        checks = runner.select_checks(rules)
        console.record(report.rule_records(checks))
        console.table(("Rule", "Level", "Transports", "Revisions"), report.rule_rows(checks))
        return
    if target is None:
        raise UsageError("expected a URL, a command in quotes or a file with mcpServers, got none")
    names = tuple(name for name in revisions if name != "all")
    server = live_server.target(target, Path.cwd())
    options = runner.RunOptions(server, names, rules, timeout, call_tools)

    with console.steps(verbose=verbose) as steps:
        findings = runner.run(options, steps.begin, steps.step)
    _print(console, findings, target, verbose=verbose)
    if findings.lost or {each.rule.severity for each in report.broken_rules(findings)} & {
        *_GRAVE[fail_on]
    }:
        sys.exit(DIFFERS)


def _print(console: Console, findings: Findings, target: str, *, verbose: bool) -> None:
    from mcpgen.check_server import report

    console.record(report.document(findings))
    text = report.text(findings, verbose=verbose)
    if text:
        console.text(text)
    console.summary(report.summary(findings))
    if console.form == "markdown":
        console.document(report.markdown(findings))
    else:
        console.report(report.report_of(findings, _file_of(target)))


def _file_of(target: str) -> str:
    """The file of a server: the first one of the current project that its words name."""
    words = [target.partition("#")[0], *target.split()]
    paths = [
        Path(word.strip("'\"")) for word in words if not word.startswith(("http://", "https://"))
    ]
    inside = (shown_path(path) for path in paths if path.is_file())
    return next((shown for shown in inside if not Path(shown).is_absolute()), "")
