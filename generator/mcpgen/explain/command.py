"""`mcpgen explain` and `mcpgen validate`: the commands, their texts and exit codes."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import click

from mcpgen import schema
from mcpgen.console import Console
from mcpgen.diff.changes import OTHER
from mcpgen.errors import DIFFERS, UsageError, format_value, safe_text
from mcpgen.explain import conversation, recordings, repair
from mcpgen.explain.conversation import Conversation, Turn, versions_in
from mcpgen.explain.revision import Revision, Verdict, revision
from mcpgen.explain.violations import Violation
from mcpgen.json_types import Json, is_array, is_object

_WIDTH = 100
_LONG = 2000


@dataclass(frozen=True)
class Explanation:
    """The explanation of one message.

    Attributes:
        turn: The message in its conversation.
        what: The kind of message, in words.
        summary: The description of its type.
        verdicts: The verdict of each revision, oldest first.
        repairs: The nearest valid form, for revisions that refuse the message and have such a form.
    """

    turn: Turn
    what: str
    summary: str
    verdicts: tuple[Verdict, ...]
    repairs: Mapping[str, repair.Repair]


def explain(console: Console, source: str, names: Sequence[str]) -> None:
    """Print the kinds of the messages in a file, and the revisions that accept them.

    Args:
        console: The output.
        source: The file; `-` for standard input.
        names: Revisions to check; all if empty.

    Raises:
        UsageError: The file cannot be read, or a revision does not exist.
    """
    chosen = [name for name in names if name != "all"] or [row.name for row in schema.revisions()]
    revisions = [revision(name) for name in chosen]
    recorded = recordings.read(source)
    explanations = [
        _explain(turn, revisions) for turn in conversation.follow(recorded, revisions[::-1]).turns
    ]
    if console.as_json:
        console.record([_explanation_record(each) for each in explanations])
        return
    texts = [_explanation_text(each, alone=len(explanations) == 1) for each in explanations]
    click.echo("\n\n".join(texts))


def _explain(turn: Turn, revisions: Sequence[Revision]) -> Explanation:
    verdicts: list[Verdict] = []
    repairs: dict[str, repair.Repair] = {}
    for each in revisions:
        verdict = each.judge(turn.message, turn.sender, turn.request)
        verdicts.append(verdict)
        if not verdict.is_accepted:
            repaired = repair.nearest(each, turn.message, turn.sender, turn.request)
            if repaired is not None:
                repairs[each.name] = repaired
    summary = _summary(revisions, verdicts)
    return Explanation(turn, _what(turn, revisions, verdicts), summary, tuple(verdicts), repairs)


def _best_verdict(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The newest verdict of a revision that accepts the message, else of one that has the type."""
    accepted = [verdict for verdict in verdicts if verdict.is_accepted and verdict.type]
    typed = [verdict for verdict in verdicts if verdict.type]
    return next(reversed(accepted or typed), None)


def _summary(revisions: Sequence[Revision], verdicts: Sequence[Verdict]) -> str:
    best = _best_verdict(verdicts)
    if best is None:
        return ""
    return next(each.summary(best.type) for each in revisions if each.name == best.revision)


def _what(turn: Turn, revisions: Sequence[Revision], verdicts: Sequence[Verdict]) -> str:
    message = turn.message
    best = _best_verdict(verdicts)
    senders = (turn.sender,) if turn.sender else best.senders if best else ()
    way = " or ".join(f"{sender} to {OTHER[sender]}" for sender in senders)
    text = f"batch of {len(message)} messages" if is_array(message) else turn.kind
    if is_object(message) and "method" in message:
        text += f" {safe_text(str(message['method']))}"
    elif turn.request is not None:
        text += f" to {safe_text(str(turn.request.get('method')))}"
    elif turn.kind == "success response" and best is not None and best.type:
        text += f", by its members a {best.type}"
    if turn.kind == "error response" and is_object(message) and is_object(message.get("error")):
        text += f" {_code(message['error'].get('code'), revisions)}"
    return f"{text}, {way}" if way else text


def _code(code: Json, revisions: Sequence[Revision]) -> str:
    meanings = dict.fromkeys(filter(None, (each.code_meaning(code) for each in revisions)))
    return f"{format_value(code)} ({'; '.join(meanings) or 'a code of its sender'})"


def _explanation_text(each: Explanation, *, alone: bool) -> str:
    """The explanation of one message for a terminal."""
    where = "" if alone else f"{each.turn.recorded.line}: "
    lines = [f"{where}{each.what}"]
    if each.turn.recorded.error:
        return f"{where}no message: {safe_text(each.turn.recorded.error)}"
    if each.summary:
        lines += textwrap.wrap(each.summary, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    if each.turn.problem and not alone:
        lines.append(f"  {each.turn.problem}")
    for names, verdict in _group_verdicts(each):
        lines += _verdict_text(names, verdict, each.repairs.get(verdict.revision), alone=alone)
    return "\n".join(lines)


def _group_verdicts(each: Explanation) -> Iterator[tuple[str, Verdict]]:
    """The verdicts; equal verdicts of neighbouring revisions are merged."""

    def explanation_of(verdict: Verdict) -> tuple[object, ...]:
        wrong = verdict.violation
        reason = None if wrong is None else (wrong.path, wrong.expected, wrong.actual)
        repaired = each.repairs.get(verdict.revision)
        return reason, verdict.ignored, None if repaired is None else repaired.edits

    for _, group in groupby(each.verdicts, key=explanation_of):
        verdicts = list(group)
        first, last = verdicts[0].revision, verdicts[-1].revision
        yield first if first == last else f"{first} to {last}", verdicts[-1]


def _verdict_text(
    names: str, verdict: Verdict, mended: repair.Repair | None, *, alone: bool
) -> Iterator[str]:
    wrong = verdict.violation
    if wrong is None:
        ignored = ", ".join(safe_text(path) for path in verdict.ignored)
        yield f"  {names}: accepted" + (f", ignores {ignored}" if ignored else "")
    else:
        text = f"refused at {safe_text(wrong.pointer) or 'the message'}: {_difference(wrong)}"
        yield f"  {names}: {text}"
        if mended is not None:
            yield from (f"    {safe_text(edit, _LONG)}" for edit in mended.edits)
            if alone:
                yield f"    nearest valid form: {safe_text(json.dumps(mended.message), _LONG)}"
    if verdict.page and alone:
        yield f"    {verdict.page}"


def _difference(wrong: Violation) -> str:
    return f"expected {safe_text(wrong.expected)}, got {safe_text(wrong.actual)}"


def _explanation_record(each: Explanation) -> dict[str, Any]:
    return {
        "line": each.turn.recorded.line,
        "kind": each.turn.kind,
        "sender": each.turn.sender,
        "what": each.what,
        "summary": each.summary,
        "problem": each.turn.problem or None,
        "error": each.turn.recorded.error or None,
        "revisions": [
            _verdict_record(verdict, each.repairs.get(verdict.revision))
            for verdict in each.verdicts
        ],
    }


def _verdict_record(verdict: Verdict, mended: repair.Repair | None) -> dict[str, Any]:
    wrong = verdict.violation
    return {
        "revision": verdict.revision,
        "accepted": verdict.is_accepted,
        "type": verdict.type or None,
        "senders": list(verdict.senders),
        "pointer": None if wrong is None else wrong.pointer,
        "expected": None if wrong is None else wrong.expected,
        "came": None if wrong is None else wrong.actual,
        "ignored": list(verdict.ignored),
        "nearest": None if mended is None else mended.message,
        "edits": None if mended is None else list(mended.edits),
        "page": verdict.page or None,
    }


@dataclass(frozen=True)
class Problem:
    """A broken rule in a recording.

    Attributes:
        line: The line of the message.
        what: The message, in words.
        pointer: The place in the message; empty for the whole.
        text: The text of the problem.
    """

    line: int
    what: str
    pointer: str
    text: str


def validate(console: Console, source: str, name: str | None) -> None:
    """Check a recorded conversation against one revision; exit with 1 if it breaks it.

    Args:
        console: The output.
        source: The file; `-` for standard input.
        name: The revision; by default the revision that the recording names.

    Raises:
        UsageError: The file cannot be read, or the revision does not exist or is not named.
    """
    recorded = recordings.without_ends(recordings.read(source))
    chosen = revision(name or _recorded_revision(recorded))
    if chosen.protocol.methods.batching:
        recorded = tuple(conversation.split_batches(recorded))
    recording = conversation.follow(recorded, [chosen])
    problems = [problem for turn in recording.turns for problem in _problems(turn, chosen)]
    if console.as_json:
        console.record(_validation_record(chosen, recording, problems))
    else:
        for problem in problems:
            at = f" at {safe_text(problem.pointer)}" if problem.pointer else ""
            click.echo(f"{problem.line}: {problem.what}{at}: {problem.text}")
        console.summary(_validation_text(source, chosen, recording, len(problems)))
    if problems:
        sys.exit(DIFFERS)


def _recorded_revision(recorded: Sequence[recordings.Recorded]) -> str:
    """The revision that a recording negotiates."""
    known = {row.name for row in schema.revisions()}
    versions = [text for each in recorded for text in versions_in(each.value) if text in known]
    if not versions:
        raise UsageError("expected --revision R, as no message names the revision; got none")
    return versions[-1]


def _problems(turn: Turn, chosen: Revision) -> Iterator[Problem]:
    if turn.recorded.error:
        yield Problem(turn.recorded.line, "no message", "", safe_text(turn.recorded.error))
        return
    verdict = chosen.judge(turn.message, turn.sender, turn.request)
    what = _what(turn, [chosen], [verdict])
    if turn.problem:
        yield Problem(turn.recorded.line, what, "", turn.problem)
    wrong = verdict.violation
    if wrong is not None:
        yield Problem(turn.recorded.line, what, wrong.pointer, _difference(wrong))


def _validation_text(source: str, chosen: Revision, recording: Conversation, problems: int) -> str:
    name = "standard input" if source == recordings.STDIN else safe_text(source)
    parts = [
        _count(len(recording.turns), "message"),
        _count(recording.answered_requests, "answered request"),
    ]
    if recording.unanswered:
        parts.append(_count(len(recording.unanswered), "unanswered request"))
    parts.append(_count(problems, "problem") if problems else "no problem")
    return f"{name}: {chosen.name}: {', '.join(parts)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _validation_record(
    chosen: Revision, recording: Conversation, problems: Sequence[Problem]
) -> dict[str, Any]:
    return {
        "revision": chosen.name,
        "messages": len(recording.turns),
        "answered": recording.answered_requests,
        "unanswered": [turn.recorded.line for turn in recording.unanswered],
        "problems": [
            {
                "line": problem.line,
                "what": problem.what,
                "pointer": problem.pointer or None,
                "text": problem.text,
            }
            for problem in problems
        ],
    }
