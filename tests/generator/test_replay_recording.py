"""Traces as sessions: what belongs to which request, and where a session begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.shop_sessions import write_trace
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


def test_a_session_has_its_revision_and_the_role_of_its_writer(session: Session) -> None:
    assert (session.revision, session.recorder) == ("2025-06-18", "client")
    assert session.has_handshake


def test_messages_have_senders_and_times(session: Session) -> None:
    assert [each.sender for each in session.messages] == [
        "client" if direction == "sent" else "server" for direction, _ in ROWS
    ]
    assert [each.seconds for each in session.messages] == [*map(float, range(len(ROWS)))]


def test_an_exchange_has_what_belongs_to_its_request(session: Session) -> None:
    call = session.exchanges[1]
    assert call.answer is None
    assert [each.method or each.kind for each in call.stream] == [
        "roots/list",
        "success response",
        "notifications/progress",
        "notifications/cancelled",
    ]
    assert [each.request.method for each in session.questions] == ["roots/list"]


def test_a_log_message_belongs_to_none_of_two_open_requests(session: Session) -> None:
    assert [each.method for each in session.unrelated] == ["notifications/message"]


def test_another_initialize_begins_another_session(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "trace.jsonl", *ROWS[:3], *ROWS[:3])
    assert [len(each.messages) for each in recording.read(str(path))] == [3, 3]


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
