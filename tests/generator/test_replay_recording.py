"""Traces as sessions: what belongs to which request, and where a session begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.shop_sessions import write_trace
from generator.tables import table
from mcpgen.errors import UsageError
from mcpgen.replay import recording
from mcpgen.replay.recording import Session

CLIENT: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("sent", {"id": 0, "method": "initialize", "params": CLIENT}),
    ("received", {"id": 0, "result": {"protocolVersion": "2025-06-18"}}),
    ("sent", {"method": "notifications/initialized"}),
    ("sent", {"id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": "p"}}}),
    ("received", {"id": 1, "method": "roots/list"}),
    ("sent", {"id": 1, "result": {"roots": []}}),
    ("sent", {"id": 2, "method": "tools/list"}),
    ("received", {"method": "notifications/message", "params": {"data": 1}}),
    ("received", {"method": "notifications/progress", "params": {"progressToken": "p"}}),
    ("received", {"id": 2, "result": {"tools": []}}),
    ("sent", {"method": "notifications/cancelled", "params": {"requestId": 1}}),
]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """The session of `ROWS`."""
    (session,) = recording.read(str(write_trace(tmp_path / "trace.jsonl", *ROWS)))
    return session


def lines(session: Session) -> list[str]:
    """A session, with what belongs to what, a line each."""
    shown = [
        f"{each.number} line {each.line} {each.sender} {each.method or each.kind}: of "
        f"{each.request}, in {each.within}{' by name' if each.linked else ''}, at {each.seconds}"
        f"{', masked' if each.masked else ''}"
        for each in session.messages
    ]
    unrelated = [each.number for each in session.unrelated]
    head = f"{session.revision!r} of {session.recorder}, {unrelated}, {dict(session.lost)}"
    return [head, *shown]


TRACES: dict[str, list[Any]] = table("traces")
"""The records of traces by their form."""


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_messages_have_their_sessions_requests_and_times(
    trace: list[Any], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in trace))
    assert [lines(each) for each in recording.read(str(file))] == snapshot


def test_an_exchange_has_what_belongs_to_its_request(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    assert lines(session) == snapshot
    assert session.has_handshake
    call = session.exchanges[1]
    assert call.answer is None
    assert [each.method or each.kind for each in call.stream] == [
        "roots/list",
        "success response",
        "notifications/progress",
        "notifications/cancelled",
    ]
    assert [each.request.method for each in session.questions] == ["roots/list"]


def test_a_trace_of_a_server_has_the_same_session(session: Session, tmp_path: Path) -> None:
    other = {"sent": "received", "received": "sent"}
    rows = [(other[way], message) for way, message in ROWS]
    path = write_trace(tmp_path / "server.jsonl", *rows)
    (mirrored,) = recording.read(str(path))
    assert mirrored.messages == session.messages
    assert mirrored.recorder == "server"


def test_a_file_without_messages_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("[1]")
    with pytest.raises(UsageError, match="expected a trace with messages of a session"):
        recording.read(str(file))
