"""A comparison as text for a terminal, as Markdown, as JSON and as findings.

Names and values come from foreign schemas: control characters never reach a terminal, and Markdown
shows the texts unchanged.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mcpgen.diff.changes import Change
from mcpgen.diff.compare import Diff
from mcpgen.diff.rules import RULES, SEVERITIES, Rule, Severity
from mcpgen.errors import safe_text
from mcpgen.findings import Finding, Level, Report

_LEVELS: Mapping[Severity, Level] = {
    "breaking": "error",
    "warning": "warning",
    "compatible": "note",
}
"""The levels of findings by severity."""
_WIDTH = 100
_LONGEST = 200
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~])")


@dataclass(frozen=True)
class Line:
    """Changes of one rule that differ only in their place.

    Attributes:
        places: The places.
        text: The change in words.
        affected: The affected parties.
        messages: The messages that contain the places.
    """

    places: tuple[str, ...]
    text: str
    affected: tuple[str, ...]
    messages: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """The changes of one rule."""

    rule: Rule
    severity: Severity
    lines: tuple[Line, ...]


def groups(diff: Diff) -> list[Group]:
    """The changes by rule, those of the gravest rules first."""
    return [
        Group(RULES[rule], severity, tuple(_lines(list(changes))))
        for (severity, rule), changes in groupby(
            diff.changes, key=lambda change: (change.severity, change.rule.id)
        )
    ]


def _lines(changes: Sequence[Change]) -> Iterator[Line]:
    together: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        member = change.place.partition(".")[2]
        same = (member or change.place, change.sentence, change.affected_parties)
        together.setdefault(same, []).append(change)
    for group in together.values():
        messages = dict.fromkeys(message.text for change in group for message in change.messages)
        yield Line(
            tuple(safe_text(change.place, _LONGEST) for change in group),
            safe_text(group[0].sentence, _LONGEST),
            group[0].affected_parties,
            tuple(safe_text(message) for message in messages),
        )


def headline(diff: Diff) -> str:
    """The comparison in one line."""
    counts = diff.counts
    numbers = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES[:-1])
    return f"{safe_text(diff.old)} -> {safe_text(diff.new)}: {numbers}"


def by_party(diff: Diff) -> dict[str, dict[Severity, int]]:
    """The number of changes that affect each party of the report, by severity."""
    return {
        party: {
            severity: sum(
                change.severity == severity and party in change.affected_parties
                for change in diff.changes
            )
            for severity in SEVERITIES[:2]
        }
        for party in diff.parties
    }


def text(diff: Diff) -> str:
    """The comparison for a terminal: a head line of each rule, then its changes."""
    lines = [headline(diff)]
    if diff.changes:
        width = max(map(len, diff.parties), default=0)
        lines += [
            f"  {party.ljust(width)}  {counts['breaking']} breaking, {counts['warning']} warning"
            for party, counts in by_party(diff).items()
        ]
    for group in groups(diff):
        head = f"{group.severity} {group.rule.id}: {group.rule.reason}"
        lines += ["", *textwrap.wrap(head, _WIDTH, subsequent_indent="  ")]
        for line in group.lines:
            lines += _text_line(line)
    return "\n".join(lines)


def _text_line(line: Line) -> list[str]:
    what = f"{', '.join(line.places)}: {line.text}"
    if line.affected:
        what += f" [{', '.join(line.affected)}]"
    return textwrap.wrap(
        what,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def markdown(diff: Diff) -> str:
    """The comparison as Markdown, for a pull request or a page."""
    lines = [f"# {plain(diff.old)} to {plain(diff.new)}", ""]
    counts = diff.counts
    lines += [", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES[:-1]) + ".", ""]
    if not diff.changes:
        return "\n".join(lines)
    lines += ["| Affected | Breaking | Warning |", "| --- | ---: | ---: |"]
    lines += [
        f"| {party} | {counts['breaking']} | {counts['warning']} |"
        for party, counts in by_party(diff).items()
    ]
    for severity, rows in groupby(groups(diff), key=lambda group: group.severity):
        lines += ["", f"## {severity.capitalize()}"]
        for group in rows:
            reason = f"{group.rule.reason[0].upper()}{group.rule.reason[1:]}."
            lines += ["", f"### {group.rule.id}", "", plain(reason), ""]
            lines += ["| Where | Change | Affected |", "| --- | --- | --- |"]
            for line in group.lines:
                places = ", ".join(f"<code>{plain(place)}</code>" for place in line.places)
                affected = ", ".join(line.affected) or "nobody"
                lines.append(f"| {places} | {plain(line.text)} | {affected} |")
    return "\n".join(lines) + "\n"


def plain(foreign: str) -> str:
    """A foreign text in Markdown, which shows it unchanged."""
    return _MARKDOWN.sub(r"\\\1", safe_text(foreign, _LONGEST))


def record(diff: Diff) -> dict[str, Any]:
    """The comparison as a JSON object."""
    return {
        "old": diff.old,
        "new": diff.new,
        "counts": dict(diff.counts),
        "changes": [_record(change) for change in diff.changes],
    }


def _record(change: Change) -> dict[str, Any]:
    return {
        "rule": change.rule.id,
        "severity": change.severity,
        "element": change.rule.element,
        "kind": change.rule.kind,
        "place": change.place,
        "old_place": change.old_place or None,
        "new_place": change.new_place or None,
        "old": change.old or None,
        "new": change.new or None,
        "text": change.sentence,
        "reason": change.rule.reason,
        "directions": list(change.directions),
        "affected": list(change.affected_parties),
        "messages": [
            {"sender": message.sender, "message": message.text} for message in change.messages
        ],
        "confidence": None if change.confidence is None else round(change.confidence, 2),
    }


def report_of(diff: Diff, file: str) -> Report:
    """The comparison as findings.

    Args:
        diff: The comparison.
        file: The file of the new side, as `shown_path` writes it; empty for a revision.
    """
    listed = [
        Finding(
            change.rule.id,
            _LEVELS[change.severity],
            safe_text(change.owner, _LONGEST),
            safe_text(f"{change.place}: {change.sentence}", 2 * _LONGEST),
            tuple(f"affects {party}" for party in change.affected_parties),
            file=file,
            reason=change.reason,
        )
        for change in diff.changes
    ]
    return Report(f"{safe_text(diff.old)} -> {safe_text(diff.new)}", listed)


def json_text(diff: Diff) -> str:
    """The comparison as JSON text, in ASCII."""
    return json.dumps(record(diff), indent=2)


def rules_text() -> str:
    """The table of the rules."""
    lines: list[str] = []
    for rule in RULES.values():
        head = f"{rule.id}  {rule.severity}, {rule.kind}, affects {rule.affects}: {rule.reason}"
        lines += textwrap.wrap(head, _WIDTH, subsequent_indent="    ")
    return "\n".join(lines)
