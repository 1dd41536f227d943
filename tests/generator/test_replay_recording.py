"""Traces as sessions: what belongs to which request, and where a session begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.shop_sessions import write_trace
from mcpgen.errors import UsageError
from mcpgen.replay import recording
from mcpgen.replay.recording import Session

PREFIX = "io.modelcontextprotocol/"
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


INIT = ROWS[:2]
UNANSWERED = ("received", {"id": 0, "error": {"code": -1, "message": "no"}})
PROGRESS = {"method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}}
SAID = {"method": "notifications/message", "params": {"data": 1}}
LISTEN = {
    "id": 3,
    "method": "subscriptions/listen",
    "params": {"_meta": {f"{PREFIX}protocolVersion": "2026-07-28"}},
}
CHANGED = {"method": "notifications/tools/list_changed"}


def record(direction: str | None, message: Any, **more: Any) -> dict[str, Any]:
    """A record of a trace."""
    own = {"channel": "client", "pid": 1, "message": message, **more}
    return own if direction is None else {"direction": direction, **own}


def rows(*rows: tuple[str, dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Records without times."""
    return [record(way, {"jsonrpc": "2.0", **message}, **more) for way, message in rows]


TRACES: dict[str, list[Any]] = {
    "two openings": rows(*ROWS[:3], *ROWS[:3]),
    "an opening that fails first": rows(ROWS[0], UNANSWERED, *ROWS[:3]),
    "one message of two channels": [
        *rows(*INIT),
        *rows(*ROWS[:3], pid=2),
        *rows(*ROWS[2:4]),
    ],
    "lines without messages": [
        *rows(*INIT),
        record("sent", {"jsonrpc": "2.0", "id": []}),
        {"direction": "received", "channel": "client", "pid": 1, "error": "not JSON"},
        *rows(ROWS[2]),
        {"direction": "received", "channel": "client", "pid": 1, "error": "the end"},
    ],
    "a batch, masked": [
        *rows(*INIT),
        record("sent", [{"jsonrpc": "2.0", **ROWS[at][1]} for at in (3, 6)], masked=True),
    ],
    "messages without directions": [
        {"jsonrpc": "2.0", **message}
        for _, message in (*ROWS[:6], ("", {"id": 9, "error": {"code": 1, "message": ""}}))
    ],
    "both sides of one process": rows(*ROWS[:4], ("sent", ROWS[4][1])),
    "times": [
        record(way, {"jsonrpc": "2.0", **message}, time=time)
        for (way, message), time in zip(
            ROWS,
            (
                *("2026-11-29T10:00:02+00:00", "2026-11-29T10:00:04.5+00:00"),
                *("2026-11-29T10:00:01+00:00", "2026-11-29T10:00:09", "soon"),
            ),
            strict=False,
        )
    ],
    "a cancelled request": rows(
        *INIT,
        ROWS[3],
        ("sent", {"id": "l", "method": "tools/list"}),
        ("received", SAID),
        ("received", {"id": 1, "method": "roots/list"}),
        ("sent", {"method": "notifications/cancelled", "params": {"requestId": 1}}),
        ("received", SAID),
        ("received", {"method": "notifications/cancelled", "params": {"requestId": 1}}),
        ("received", {"id": "l", "result": {"tools": []}}),
        ("received", SAID),
        ("sent", {"method": "notifications/cancelled", "params": {"requestId": 9}}),
    ),
    "progress of a question": rows(
        *INIT,
        ROWS[3],
        (
            "received",
            {
                "id": 5,
                "method": "sampling/createMessage",
                "params": {"_meta": {"progressToken": 1}},
            },
        ),
        ("sent", {**PROGRESS, "params": {"progressToken": 1, "progress": 1}}),
        ("received", {**PROGRESS, "params": {"progressToken": 2, "progress": 1}}),
    ),
    "a subscription": rows(
        ("sent", LISTEN),
        ("sent", {"id": 4, "method": "tools/list"}),
        ("received", {**CHANGED, "params": {"_meta": {f"{PREFIX}subscriptionId": 3}}}),
        ("received", {**CHANGED, "params": {"_meta": {f"{PREFIX}subscriptionId": 8}}}),
        ("received", {**CHANGED, "params": {"_meta": {"a": 3}}}),
        ("received", CHANGED),
    ),
    "a revision that is not known": rows(
        ("sent", {**ROWS[0][1], "params": {**CLIENT, "protocolVersion": "2020-01-01"}})
    ),
    "a revision that only the client names": rows(ROWS[0]),
}


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
