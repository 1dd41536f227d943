"""The changes of a server as text, Markdown, JSON and findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpgen.console import count_of
from mcpgen.contract.compare import Change
from mcpgen.contract.rules import SEVERITIES
from mcpgen.errors import safe_text
from mcpgen.findings import Finding, Level, Report, markdown_cell, shown_path

_LONGEST = 400
_SHOWN = 5
_LEVELS: Mapping[str, Level] = {"breaking": "error", "warning": "warning", "compatible": "note"}
"""The levels of findings by severity."""


def _line(change: Change) -> str:
    """A change in one line, without its severity."""
    where = f" (in {', '.join(change.revisions)})" if change.revisions else ""
    return safe_text(f"{change.item}: {change.text}{where}", _LONGEST)


def _more(change: Change) -> list[str]:
    lines = [f"at {safe_text(change.pointer, _LONGEST)}"] if change.pointer else []
    if change.witness:
        lines.append(f"for example {safe_text(change.witness, _LONGEST)}")
    if change.allowed:
        lines.append(f"allowed: {safe_text(change.allowed, _LONGEST)}")
    return lines


def text(changes: Sequence[Change]) -> str:
    """The changes for a terminal; many items with the same change are one line."""
    alike: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in changes:
        key = (change.rule.id, change.text, change.witness, change.allowed)
        alike.setdefault(key, []).append(change)
    lines: list[str] = []
    for group in alike.values():
        shown = group if len(group) <= _SHOWN else group[:1]
        for change in shown:
            severity = (
                f"{change.rule.severity}, allowed" if change.allowed else change.rule.severity
            )
            lines.append(f"{severity}: {change.rule.id}: {_line(change)}")
            lines += [f"  {line}" for line in _more(change)]
        if len(shown) < len(group):
            items = ", ".join(safe_text(each.item) for each in group[1:_SHOWN])
            lines.append(f"  and {items} and {len(group) - _SHOWN} more: --json lists them")
    return "\n".join(lines)


def summary(changes: Sequence[Change]) -> str:
    """One line about the changes."""
    if not changes:
        return "nothing changed"
    counts = Counter(change.rule.severity for change in changes if not change.allowed)
    parts = [f"{counts[each]} {each}" for each in SEVERITIES if counts[each]]
    allowed = sum(bool(change.allowed) for change in changes)
    if allowed:
        parts.append(f"{allowed} allowed")
    return f"{count_of(len(changes), 'change')}: {', '.join(parts)}"


def markdown(changes: Sequence[Change]) -> str:
    """The changes as a table."""
    lines = [f"{summary(changes)[0].upper()}{summary(changes)[1:]}."]
    if changes:
        lines += ["", "| severity | rule | change | example |", "| --- | --- | --- | --- |"]
    for change in changes:
        severity = f"{change.rule.severity} (allowed)" if change.allowed else change.rule.severity
        cells = (severity, change.rule.id, _line(change), safe_text(change.witness, _LONGEST))
        lines.append(f"| {' | '.join(map(markdown_cell, cells))} |")
    return "\n".join(lines) + "\n"


def records(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """The changes as JSON."""
    return [
        {
            "rule": change.rule.id,
            "severity": change.rule.severity,
            "category": change.rule.category,
            "item": change.item,
            "text": change.text,
            "pointer": change.pointer,
            "example": json.loads(change.witness) if _is_whole(change.witness) else None,
            "revisions": list(change.revisions),
            "allowed": change.allowed or None,
        }
        for change in changes
    ]


def _is_whole(witness: str) -> bool:
    return bool(witness) and not witness.endswith("...")


def report_of(changes: Iterable[Change], file: Path) -> Report:
    """The changes of a contract as findings, with their places in the contract's file."""
    shown = shown_path(file)
    listed = [
        Finding(
            change.rule.id,
            _LEVELS[change.rule.severity],
            change.item,
            _line(change),
            tuple(_more(change)),
            change.pointer,
            shown,
            reason=change.rule.reason,
            allowed=bool(change.allowed),
        )
        for change in changes
    ]
    return Report(shown, listed)
