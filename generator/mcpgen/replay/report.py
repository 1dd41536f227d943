"""The outcomes of a replay as text, Markdown, JSON and findings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mcpgen.console import count_of
from mcpgen.errors import safe_text
from mcpgen.findings import Finding, Report, markdown_cell, shown_path
from mcpgen.json_types import Json
from mcpgen.replay.matching import ABSENT, Absent
from mcpgen.replay.outcomes import Outcome, Run

_VALUE = 200
_MESSAGE = 600
_CONTEXT = 40
"""Characters of a long text that are shown before the first difference."""


def text(runs: Sequence[Run]) -> str:
    """The outcomes for a terminal, by message."""
    lines: list[str] = []
    for run in runs:
        for group in _by_message(run.outcomes):
            lines += _message_text(run, group, several=len(runs) > 1)
    return "\n".join(lines)


def _by_message(outcomes: Sequence[Outcome]) -> Iterator[list[Outcome]]:
    for _, group in groupby(
        outcomes, key=lambda each: (each.line, each.rule.id, each.item, each.expected, each.actual)
    ):
        yield list(group)


def _message_text(run: Run, group: Sequence[Outcome], *, several: bool) -> Iterator[str]:
    first = group[0]
    where = f"session {run.session}, line {first.line}" if several else f"line {first.line}"
    yield f"{first.rule.level}: {first.rule.id}: {where}: {first.item}: {first.rule.text}"
    for each in group:
        for line in _details(each):
            yield f"  {line}"
    for label, message in (("recorded", first.expected), ("now", first.actual)):
        if message is not None:
            yield f"  {label}: {_json(message, _MESSAGE)}"


def _details(each: Outcome) -> Iterator[str]:
    difference = each.difference
    if difference is None:
        yield safe_text(each.text, _MESSAGE)
        return
    recorded, now = _values(difference.expected, difference.actual)
    yield f"at {safe_text(each.pointer or '/', _VALUE)}: {safe_text(each.text, _VALUE)}"
    yield f"  recorded: {recorded}"
    yield f"  now:      {now}"


def _values(expected: Json | Absent, actual: Json | Absent) -> tuple[str, str]:
    """Both values in a line each; long texts from where they begin to differ."""
    if isinstance(expected, str) and isinstance(actual, str):
        same = next(
            (at for at, pair in enumerate(zip(expected, actual, strict=False)) if len({*pair}) > 1),
            min(len(expected), len(actual)),
        )
        is_cut = any(_json(each, _VALUE).endswith("...") for each in (expected, actual))
        start = max(0, same - _CONTEXT) if is_cut else 0
        before = "..." if start else ""
        return before + _json(expected[start:], _VALUE), before + _json(actual[start:], _VALUE)
    return _json(expected, _VALUE), _json(actual, _VALUE)


def _json(value: Json | Absent, limit: int) -> str:
    if isinstance(value, Absent):
        return "nothing"
    return safe_text(json.dumps(value, ensure_ascii=False), limit)


def summary(runs: Sequence[Run]) -> str:
    """One line about all sessions."""
    compared = sum(run.compared for run in runs)
    outcomes = [each for run in runs for each in run.outcomes]
    errors = sum(each.rule.level == "error" for each in outcomes)
    parts = [
        count_of(len(runs), "session"),
        f"{count_of(sum(run.sent for run in runs), 'message')} sent",
        f"{compared} compared",
        count_of(errors, "difference") if errors else "no difference",
    ]
    if len(outcomes) > errors:
        parts.append(f"{len(outcomes) - errors} not compared")
    named = dict.fromkeys(run.revision for run in runs if run.revision)
    return f"{', '.join(named)}: {', '.join(parts)}" if named else ", ".join(parts)


def records(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The sessions as JSON, with whole messages."""
    return [
        {
            "session": run.session,
            "revision": run.revision or None,
            "sent": run.sent,
            "compared": run.compared,
            "outcomes": [_record(each) for each in run.outcomes],
        }
        for run in runs
    ]


def _record(each: Outcome) -> dict[str, Any]:
    values = (ABSENT, ABSENT)
    if each.difference is not None:
        values = (each.difference.expected, each.difference.actual)
    named = {
        name: value
        for name, value in zip(("recorded", "now"), values, strict=True)
        if not isinstance(value, Absent)
    }
    return {
        "rule": each.rule.id,
        "level": each.rule.level,
        "line": each.line,
        "item": each.item,
        "pointer": each.pointer,
        "text": each.text,
        **named,
        "messages": {"recorded": each.expected, "now": each.actual},
    }


def markdown(runs: Sequence[Run]) -> str:
    """The outcomes as a table."""
    shown = summary(runs)
    lines = [f"{shown[0].upper()}{shown[1:]}."]
    rows = [
        (
            str(each.line),
            each.rule.id,
            each.item,
            each.pointer,
            safe_text(each.text, _VALUE),
            *(
                ("", "")
                if each.difference is None
                else _values(each.difference.expected, each.difference.actual)
            ),
        )
        for run in runs
        for each in run.outcomes
    ]
    if rows:
        lines += ["", "| line | rule | item | place | difference | recorded | now |"]
        lines.append("| ---: | --- | --- | --- | --- | --- | --- |")
    lines += [f"| {' | '.join(map(markdown_cell, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def report_of(runs: Sequence[Run], trace: str) -> Report:
    """The outcomes as findings, with their lines in the trace."""
    shown = shown_path(Path(trace))
    listed = [
        Finding(
            each.rule.id,
            each.rule.level,
            each.item,
            f"{each.item}: {safe_text(each.text, _VALUE)}",
            tuple(_details(each)),
            each.pointer,
            shown,
            each.line,
            each.rule.text,
        )
        for run in runs
        for each in run.outcomes
    ]
    return Report(shown, listed)
