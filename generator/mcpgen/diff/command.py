"""`mcpgen diff`: the command and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from mcpgen import findings
from mcpgen.console import Console
from mcpgen.diff import bridge_report, report
from mcpgen.diff.bridge import Bridge, derive
from mcpgen.diff.changes import PARTIES
from mcpgen.diff.compare import Diff, compare
from mcpgen.diff.protocol import load
from mcpgen.diff.rules import severities
from mcpgen.errors import DIFFERS, OutputError, UsageError
from mcpgen.findings import shown_path

_GRAVE: Mapping[str, frozenset[str]] = {
    "never": frozenset(),
    "breaking": frozenset({"breaking"}),
    "warning": frozenset({"breaking", "warning"}),
    "any": frozenset({"breaking", "warning", "compatible"}),
}


_OF_DIFF: Mapping[str, Callable[[Diff], str]] = {
    "text": report.text,
    "markdown": report.markdown,
    "json": report.json_text,
}
_OF_BRIDGE: Mapping[str, Callable[[Bridge], str]] = {
    "text": bridge_report.text,
    "markdown": bridge_report.markdown,
    "json": bridge_report.json_text,
}


@dataclass(frozen=True)
class Options:
    """The options of the command line.

    Attributes:
        output: The file for the report; standard output if `None`.
        settings: Severities of rules, `RULE=SEVERITY` each.
        affects: Words that name affected parties: `client`, `server-sends`, ...; all if empty.
        fail_on: The least severity that makes the exit code 1.
        errata: Whether known defects of published schemas are corrected.
        file: B, if it is a file, as `shown_path` writes it; else empty.
    """

    output: Path | None
    settings: Sequence[str]
    affects: Sequence[str]
    fail_on: str
    errata: bool
    file: str


def run_options(
    console: Console, old: str | None, new: str | None, values: Mapping[str, Any]
) -> None:
    """Run the command with the values of its options.

    Raises:
        UsageError: See `run`; or A or B is missing.
        OutputError: See `run`.
    """
    if values["only_rules"]:
        click.echo(report.rules_text())
        return
    if values["bridge"]:
        _check_bridge_options(console.form, values)
    if old is None or new is None:
        raise UsageError("expected two revisions or schema files, A and B")
    options = Options(
        output=values["output"],
        settings=values["settings"],
        affects=values["affects"],
        fail_on=values["fail_on"],
        errata=not values["no_errata"],
        file=shown_path(Path(new)) if Path(new).is_file() else "",
    )
    (run_bridge if values["bridge"] else run)(console, old, new, options)


def _check_bridge_options(form: str, values: Mapping[str, Any]) -> None:
    judging = {
        "--severity": values["settings"],
        "--affects": values["affects"],
        "--fail-on": values["fail_on"] != "never",
        f"--format {form}": form not in _OF_BRIDGE,
    }
    if refused := [option for option, is_given in judging.items() if is_given]:
        raise UsageError(
            f"{', '.join(refused)}: not for --bridge, which has outcomes and judges nothing; "
            "its formats are text, markdown and json"
        )


def run(console: Console, old: str, new: str, options: Options) -> None:
    """Report the changes from one revision or file to another.

    Raises:
        InputError: A side is no readable schema.
        UsageError: A side is no revision and no file, or an option is wrong.
        OutputError: The report cannot be written.
    """
    chosen = severities(options.settings)
    diff = compare(*load(old, new, errata=options.errata), chosen)
    if options.affects:
        diff = _select_affected(diff, options.affects)
    _write(console, diff, options)
    if any(change.severity in _GRAVE[options.fail_on] for change in diff.changes):
        sys.exit(DIFFERS)


def run_bridge(console: Console, old: str, new: str, options: Options) -> None:
    """Report the outcome of every member of the messages of one revision in a proxy to another.

    Raises:
        InputError: A side is no readable schema.
        UsageError: A side is no revision and no file, or both are the same revision.
        OutputError: The report cannot be written.
    """
    ours, theirs = load(old, new, errata=options.errata)
    if ours.name == theirs.name:
        raise UsageError(
            f"expected two revisions, got {ours.name} twice: a proxy passes its messages as "
            "they are"
        )
    bridge = derive(ours, theirs)
    text = _OF_BRIDGE[console.form](bridge)
    _publish(console, text, bridge_report.headline(bridge), options)


def _select_affected(diff: Diff, words: Sequence[str]) -> Diff:
    kept = tuple(
        change
        for change in diff.changes
        if any(_is_meant(party, word) for party in change.affected_parties for word in words)
    )
    parties = tuple(party for party in PARTIES if any(_is_meant(party, word) for word in words))
    return replace(diff, changes=kept, parties=parties)


def _is_meant(party: str, word: str) -> bool:
    role, _, way = word.partition("-")
    return party.startswith(role) and party.endswith(way)


def _write(console: Console, diff: Diff, options: Options) -> None:
    form = console.form
    if form in _OF_DIFF:
        text = _OF_DIFF[form](diff)
    elif form == "html":
        from mcpgen.diff import page  # Jinja takes long to import

        text = page.html(diff)
    else:
        text = findings.FORMS[form](report.report_of(diff, options.file))
    _publish(console, text, report.headline(diff), options)


def _publish(console: Console, text: str, headline: str, options: Options) -> None:
    """Print a report, or write it to the file of the options."""
    if options.output is None:
        if console.form == "text":
            _show(text)
        else:
            console.document(text)
        return
    try:
        options.output.write_text(f"{text.removesuffix(chr(10))}\n", "utf-8", newline="\n")
    except OSError as error:
        raise OutputError(f"{options.output}: {error.strerror}") from error
    if not console.as_json:
        Console(console.quiet).summary(f"{options.output}: {headline}")


def _show(text: str) -> None:
    """Print a report line by line; on a terminal, severities have colours."""
    colours = {"breaking": "red", "warning": "yellow", "compatible": "green"}
    for number, line in enumerate(text.splitlines()):
        first, space, rest = line.partition(" ")
        if number == 0:
            click.secho(line, bold=True)
        elif first in colours:
            click.echo(f"{click.style(first, fg=colours[first], bold=True)}{space}{rest}")
        else:
            click.echo(line)
