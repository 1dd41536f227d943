"""A bridge as text for a terminal, as Markdown and as JSON: `mcpgen diff A B --bridge`.

Rows that pass without a change are counted; JSON has them all.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from mcpgen.diff.bridge import OUTCOMES, Bridge, Outcome, Row
from mcpgen.diff.report import plain
from mcpgen.errors import safe_text
from mcpgen.model.name import Role

_WIDTH = 100
_NOTEWORTHY: tuple[Outcome, ...] = ("lost", "degraded", "renamed", "meta", "own")


def headline(bridge: Bridge) -> str:
    """The bridge in one line."""
    numbers = ", ".join(f"{number} {outcome}" for outcome, number in bridge.counts.items())
    return f"{safe_text(bridge.old)} -> {safe_text(bridge.new)}: {numbers}"


def _groups(bridge: Bridge) -> Iterator[tuple[Outcome, Role, Mapping[str, list[Row]]]]:
    """The rows that a reader has to know, by outcome, sender and reason."""
    for outcome in _NOTEWORTHY:
        for sender in get_args(Role):
            by_reason: dict[str, list[Row]] = {}
            for row in bridge.of(outcome):
                if row.sender == sender:
                    by_reason.setdefault(safe_text(row.how), []).append(row)
            if by_reason:
                yield outcome, sender, by_reason


def text(bridge: Bridge) -> str:
    """The bridge for a terminal: rows by outcome and by sender."""
    lines = [headline(bridge)]
    for outcome, sender, by_reason in _groups(bridge):
        lines += ["", f"{outcome}, from the {sender}: {OUTCOMES[outcome]}"]
        for reason, rows in by_reason.items():
            lines += textwrap.wrap(
                reason, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
            lines += [f"    {safe_text(row.id)}" for row in rows]
    return "\n".join(lines)


def markdown(bridge: Bridge) -> str:
    """The bridge as Markdown, for a pull request or a page."""
    lines = [f"# {plain(bridge.old)} to {plain(bridge.new)}, through a proxy", ""]
    lines += ["| Outcome | Rows | Meaning |", "| --- | ---: | --- |"]
    lines += [
        f"| {outcome} | {bridge.counts[outcome]} | {meaning} |"
        for outcome, meaning in OUTCOMES.items()
    ]
    for outcome, sender, by_reason in _groups(bridge):
        lines += ["", f"## {outcome.capitalize()}, from the {sender}", ""]
        lines += ["| Row | How |", "| --- | --- |"]
        for reason, rows in by_reason.items():
            lines += [f"| <code>{plain(row.id)}</code> | {plain(reason)} |" for row in rows]
    return "\n".join(lines) + "\n"


def record(bridge: Bridge) -> dict[str, Any]:
    """The bridge as a JSON object, with all rows."""
    return {
        "old": bridge.old,
        "new": bridge.new,
        "counts": dict(bridge.counts),
        "rows": [
            {
                "id": row.id,
                "sender": row.sender,
                "outcome": row.outcome,
                "how": row.how or None,
                "logged": row.outcome in ("lost", "degraded") and row.log == "yes",
            }
            for row in bridge.rows
        ],
    }


def json_text(bridge: Bridge) -> str:
    """The bridge as JSON text, in ASCII."""
    return json.dumps(record(bridge), indent=2)
