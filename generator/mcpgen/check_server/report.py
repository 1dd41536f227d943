"""The findings of the checks, as text, Markdown, JSON and in the shape of all products."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcpgen.check_server.outcomes import Outcome
from mcpgen.check_server.rules import Rule
from mcpgen.check_server.runner import Findings
from mcpgen.check_server.table import Check
from mcpgen.findings import Finding, KeptRule, Report, markdown_cell

_WIDTH = 100
_LOST = "run.complete"
"""The id of the finding that checks of a revision were given up."""


@dataclass(frozen=True)
class BrokenRule:
    """A rule that is broken in the same way in some revisions.

    Attributes:
        outcome: The outcome in the newest of these revisions.
        revisions: The revisions, oldest first.
    """

    outcome: Outcome
    revisions: tuple[str, ...]

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.outcome.rule

    @property
    def page(self) -> str:
        """The page that states the rule, of the newest of the revisions."""
        return self.rule.page(self.outcome.revision)


def broken_rules(findings: Findings) -> list[BrokenRule]:
    """The broken rules, errors first, each with all revisions in which it is broken alike."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in findings.outcomes:
        if outcome.state == "broken":
            groups.setdefault((outcome.rule.id, outcome.expected), []).append(outcome)
    grouped = [
        BrokenRule(rows[-1], tuple(row.revision for row in rows)) for rows in groups.values()
    ]
    return sorted(grouped, key=lambda each: each.rule.severity != "error")


def text(findings: Findings, *, verbose: bool) -> str:
    """The findings for a terminal."""
    lines = [line for each in broken_rules(findings) for line in _finding_text(each)]
    if verbose:
        lines += [
            f"{outcome.state}: {outcome.revision}: {outcome.rule.id}"
            + (f": {outcome.why}" if outcome.why else "")
            for outcome in findings.outcomes
            if outcome.state != "broken"
        ]
    lines += [f"given up: {revision}: {why}" for revision, why in findings.lost.items()]
    return "\n".join(lines)


def _finding_text(each: BrokenRule) -> Iterator[str]:
    rule = each.rule
    yield f"{rule.severity}: {rule.id}: {rule.keyword} in {', '.join(each.revisions)}"
    yield from textwrap.wrap(rule.sentence, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"  expected: {each.outcome.expected}"
    yield f"  got:      {each.outcome.actual}"
    yield f"  {each.page}"
    yield ""


def summary(findings: Findings) -> str:
    """One line about the run."""
    named = f"{findings.name}, " if findings.name else ""
    states = [outcome.state for outcome in findings.outcomes]
    severities = [each.rule.severity for each in broken_rules(findings)]
    parts = (
        f"{len({outcome.rule.id for outcome in findings.outcomes})} rules",
        f"{states.count('passed')} checks passed",
        f"{states.count('not applicable')} not applicable",
        f"{severities.count('error')} rules broken as errors",
        f"{severities.count('warning')} as warnings",
    )
    spoken = ", ".join(findings.revisions)
    return f"{named}{findings.transport}, {spoken}: {', '.join(parts)}"


def markdown(findings: Findings) -> str:
    """The findings as a page of Markdown."""
    lines = [
        f"# {markdown_cell(findings.name or findings.target)}",
        "",
        markdown_cell(summary(findings)),
        "",
    ]
    rows = [
        (
            each.rule.severity,
            f"[{each.rule.id}]({each.page})",
            ", ".join(each.revisions),
            markdown_cell(each.outcome.expected),
            markdown_cell(each.outcome.actual),
        )
        for each in broken_rules(findings)
    ]
    if rows:
        heads = ("Severity", "Rule", "Revisions", "Expected", "Got")
        lines += _table(heads, rows)
    else:
        lines.append("No rule is broken.")
    lines += [f"\nGiven up in {name}: {markdown_cell(why)}" for name, why in findings.lost.items()]
    return "\n".join(lines) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(row)} |"


def report_of(findings: Findings, file: str) -> Report:
    """The findings in the shape of all products: each broken rule, and the rules that are kept.

    Args:
        findings: The findings.
        file: The file of the server in the repository, as `shown_path` writes it; empty if it is
            not known.
    """
    broken = broken_rules(findings)
    listed = [
        Finding(
            each.rule.id,
            each.rule.severity,
            each.rule.area,
            f"{each.rule.keyword} in {', '.join(each.revisions)}: expected {each.outcome.expected},"
            f" got {each.outcome.actual}",
            (each.rule.sentence, each.page),
            file=file,
            reason=each.rule.sentence,
            page=each.page,
        )
        for each in broken
    ]
    listed += [
        Finding(_LOST, "error", "checks", f"given up in {name}: {why}", file=file)
        for name, why in findings.lost.items()
    ]
    return Report(findings.name or findings.target, listed, [*_list_kept(findings, broken)])


def _list_kept(findings: Findings, broken: Sequence[BrokenRule]) -> Iterator[KeptRule]:
    """Each rule that is broken in no revision: passed in one, or skipped in all."""
    broken_ids = {each.rule.id for each in broken}
    states: dict[str, list[Outcome]] = {}
    for outcome in findings.outcomes:
        states.setdefault(outcome.rule.id, []).append(outcome)
    for name, outcomes in states.items():
        if name in broken_ids:
            continue
        passed = any(outcome.state == "passed" for outcome in outcomes)
        why = "" if passed else outcomes[-1].why or "not applicable"
        yield KeptRule(outcomes[-1].rule.area, name, why)


def document(findings: Findings) -> dict[str, Any]:
    """The findings as JSON, with each check of each revision."""
    return {
        "target": findings.target,
        "name": findings.name or None,
        "transport": findings.transport,
        "revisions": list(findings.revisions),
        "broken": [
            {
                **_rule_record(each.rule),
                "in": list(each.revisions),
                "expected": each.outcome.expected,
                "came": each.outcome.actual,
                "page": each.page,
            }
            for each in broken_rules(findings)
        ],
        "outcomes": [
            {
                "rule": outcome.rule.id,
                "revision": outcome.revision,
                "state": outcome.state,
                "expected": outcome.expected or None,
                "came": outcome.actual or None,
                "why": outcome.why or None,
            }
            for outcome in findings.outcomes
        ],
        "given_up": dict(findings.lost),
    }


def _rule_record(rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.id,
        "level": rule.keyword,
        "severity": rule.severity,
        "revisions": list(rule.revisions),
        "sentence": rule.sentence,
    }


def rule_rows(checks: Sequence[Check]) -> list[tuple[str, ...]]:
    """The rules as rows of a table: id, level, transports, revisions."""
    return [
        (
            check.id,
            check.rule.keyword,
            ", ".join(check.transports),
            ", ".join(check.rule.revisions),
        )
        for check in sorted(checks, key=lambda check: check.id)
    ]


def rule_records(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """The rules as JSON."""
    return [
        {
            **_rule_record(check.rule),
            "transports": list(check.transports),
            "pages": {revision: check.rule.page(revision) for revision in check.rule.revisions},
        }
        for check in sorted(checks, key=lambda check: check.id)
    ]
