"""Sessions of one revision as sessions of another one, message by message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.shop_sessions import write_trace
from generator.tables import table
from mcpgen.replay import recording
from mcpgen.replay.carrying import carry

SESSIONS: dict[str, Any] = table("sessions")
"""The messages of sessions, with the revision to write each in."""


@pytest.mark.parametrize("case", SESSIONS.values(), ids=SESSIONS)
def test_a_session_is_written_in_another_revision(
    case: dict[str, Any], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", *case["messages"])
    (session,) = recording.read(str(trace))
    carried = carry(session, case["to"])
    assert carried.session.revision == case["to"]
    written = [
        f"{each.number} {each.sender} {each.kind}, line {each.line}, of {each.request}, "
        f"in {each.within}{', linked' if each.linked else ''}: {json.dumps(each.value)}"
        for each in carried.session.messages
    ]
    lost = [f"{each.line}: {each.item}: {each.text}" for each in carried.lost]
    lines = [*written, "lost", *lost, "not compared", *sorted(carried.uncompared)]
    assert lines == snapshot
