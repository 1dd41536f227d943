"""Recordings: who sent each message, and which request a response answers."""

from __future__ import annotations

from typing import Any

import pytest

from generator.tables import table
from mcpgen import schema
from mcpgen.explain.conversation import follow, split_batches
from mcpgen.explain.recordings import Recorded
from mcpgen.explain.revision import revision

REVISIONS = [revision(row.name) for row in schema.revisions()][::-1]
CASES: dict[str, dict[str, Any]] = table("conversations")
"""Messages with directions and channels; the sender of each, whether it answers, its problem."""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_message_has_its_sender_and_its_request(case: dict[str, Any]) -> None:
    rows, turns = case["messages"], case["turns"]
    recorded = [Recorded(line, *row) for line, row in enumerate(rows, start=1)]
    held = follow(recorded, REVISIONS)
    seen = [[turn.sender, turn.request is not None, turn.problem] for turn in held.turns]
    assert (seen, len(held.unanswered)) == (turns, case["unanswered"])
    assert held.answered_requests == sum(answered for _, answered, _ in turns)
    assert [turn.message for turn in held.turns] == [value for value, _, _ in rows]


def test_a_batch_is_its_messages_where_it_stands() -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    batch = [Recorded(1, 5), Recorded(2, [call, answer], "sent", "a"), Recorded(3, [])]
    rows = [(each.line, each.value, each.direction, each.channel) for each in split_batches(batch)]
    assert rows == [(1, 5, None, ""), (2, call, "sent", "a"), (2, answer, "sent", "a")]
