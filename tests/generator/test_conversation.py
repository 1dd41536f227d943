"""Recordings: who sent each message, and which request a response answers."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import schema
from mcpgen.explain.conversation import follow, split_batches
from mcpgen.explain.recordings import Direction, Recorded
from mcpgen.explain.revision import revision

REVISIONS = [revision(row.name) for row in schema.revisions()][::-1]
NO_REQUEST = "no open request has its id"
TAKEN = "its id is that of an open request"


def call(id: Any = 1, method: str = "tools/call") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


def result(**own: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **own, "result": {}}


def error(**own: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **own, "error": {"code": -1, "message": ""}}


ASKED, ANSWERED, NEITHER = ("client", False, ""), ("server", True, ""), (None, False, "")
LOST = (None, False, NO_REQUEST)
Row = tuple[Any, Direction | None, str]
CASES: dict[str, tuple[list[Row], list[tuple[str | None, bool, str]], int]] = {
    "an answer": ([(call(), "sent", ""), (result(id=1), "received", "")], [ASKED, ANSWERED], 0),
    "another channel": ([(call(), "sent", "a"), (result(id=1), "received", "b")], [ASKED, LOST], 1),
    "the same direction": (
        [(call(), "sent", ""), (result(id=1), "sent", "")],
        [ASKED, ("client", False, NO_REQUEST)],
        1,
    ),
    "an id of another type": ([(call(), None, ""), (error(id="1"), None, "")], [ASKED, LOST], 1),
    "no direction": (
        [(call(), None, ""), (call(), None, ""), (error(id=1), None, "")],
        [ASKED, ASKED, ANSWERED],
        0,
    ),
    "an id twice": (
        [(call(), "received", ""), (call(), "received", ""), (result(id=1), "sent", "")],
        [ASKED, ("client", False, TAKEN), ANSWERED],
        0,
    ),
    "the same id of both sides": (
        [(call(), "sent", ""), (call(method="roots/list"), "received", "")],
        [ASKED, ("server", False, "")],
        2,
    ),
    "an error without id": ([(error(), None, "")], [NEITHER], 0),
    "an error with the id null": ([(error(id=None), None, "")], [NEITHER], 0),
    "a result without id": ([(result(), None, "")], [LOST], 0),
    "an answer to a method of both sides": (
        [(call(method="ping"), "sent", ""), (result(id=1), "received", "")],
        [NEITHER, (None, True, "")],
        0,
    ),
    "an unknown method": ([(call(method="x/y"), "sent", "")], [NEITHER], 1),
    "a method that is a number": ([({**call(), "method": 5}, "sent", "")], [NEITHER], 0),
    "most votes": (
        [
            *[(call(n, m), "sent", "") for n, m in enumerate(("roots/list", "tools/list"))],
            *[(call(n, m), "sent", "") for n, m in ((2, "prompts/list"), (3, "ping"))],
        ],
        [ASKED] * 4,
        4,
    ),
    "no message": ([("text", "sent", "")], [NEITHER], 0),
}


@pytest.mark.parametrize("case", CASES)
def test_each_message_has_its_sender_and_its_request(case: str) -> None:
    rows, turns, unanswered = CASES[case]
    recorded = [Recorded(line, *row) for line, row in enumerate(rows, start=1)]
    held = follow(recorded, REVISIONS)
    seen = [(turn.sender, turn.request is not None, turn.problem) for turn in held.turns]
    assert (seen, len(held.unanswered)) == (turns, unanswered)
    assert held.answered_requests == sum(answered for _, answered, _ in turns)
    assert [turn.message for turn in held.turns] == [value for value, _, _ in rows]


def test_a_batch_is_its_messages_where_it_stands() -> None:
    batch = [Recorded(1, 5), Recorded(2, [call(), result(id=1)], "sent", "a"), Recorded(3, [])]
    rows = [(each.line, each.value, each.direction, each.channel) for each in split_batches(batch)]
    assert rows == [(1, 5, None, ""), (2, call(), "sent", "a"), (2, result(id=1), "sent", "a")]
