"""Sessions of one revision as sessions of another one, message by message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.shop_sessions import write_trace
from mcpgen.replay import recording
from mcpgen.replay.carrying import Carried, carry

Row = tuple[str, dict[str, Any]]
LEGACY, MODERN, FIRST = "2025-11-25", "2026-07-28", "2024-11-05"
PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "c", "version": "1"}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ELICIT = {"method": "elicitation/create", "params": {"mode": "form", **FORM}}
ACCEPT = {"action": "accept", "content": {}}
DONE = {"content": [{"type": "text", "text": "done"}]}


def sent(method: str, id: Any = None, **params: Any) -> Row:
    """A request of the client, or a notification."""
    known = {} if id is None else {"id": id}
    return "sent", {**known, "method": method, "params": params}


def got(id: Any, **result: Any) -> Row:
    """A result of the server."""
    return "received", {"id": id, "result": result}


def told(method: str, **params: Any) -> Row:
    """A notification of the server."""
    return "received", {"method": method, "params": params}


def called(id: Any, tool: str, token: Any = None, **more: Any) -> Row:
    """A call of a tool."""
    meta = {} if token is None else {"_meta": {"progressToken": token, "example.com/a": 1}}
    return sent("tools/call", id, name=tool, arguments={}, **meta, **more)


def described(id: Any, tool: str, level: str | None = None, token: Any = None, **more: Any) -> Row:
    """A call whose metadata describe the client."""
    meta: dict[str, Any] = {
        f"{PREFIX}protocolVersion": MODERN,
        f"{PREFIX}clientInfo": CLIENT,
        f"{PREFIX}clientCapabilities": {"elicitation": {"form": {}}},
    }
    meta |= {} if level is None else {f"{PREFIX}logLevel": level}
    meta |= {} if token is None else {"progressToken": token}
    return sent("tools/call", id, name=tool, arguments={}, _meta=meta, **more)


def opened(revision: str = LEGACY, **more: Any) -> list[Row]:
    """The messages that open a session."""
    capabilities = {"tools": {"listChanged": True}, "logging": {}, "tasks": {}}
    said = {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": CLIENT}
    return [
        sent(
            "initialize",
            0,
            protocolVersion=revision,
            capabilities={"roots": {}, "elicitation": {}},
            clientInfo=CLIENT,
        ),
        got(0, **said, instructions="Ask.", **more),
        sent("notifications/initialized"),
    ]


HANDSHAKE: list[Row] = [
    *opened(),
    sent("ping", "p"),
    got("p"),
    sent("logging/setLevel", 1, level="warning"),
    got(1),
    called(2, "plain", "t"),
    told("notifications/progress", progressToken="t", progress=1, _meta={"a": 1}),
    got(2, **DONE, _meta={f"{PREFIX}related-task": {"taskId": "x"}, "example.com/b": 2}),
    called(3, "asks"),
    told("notifications/message", level="error", data=1),
    ("received", {"id": "a", **ELICIT}),
    ("sent", {"id": "a", "result": ACCEPT}),
    ("received", {"id": "b", "method": "roots/list"}),
    ("sent", {"id": "b", "result": {"roots": []}}),
    got(3, **DONE),
    called(4, "refused"),
    ("received", {"id": "c", **ELICIT}),
    ("sent", {"id": "c", "error": {"code": -1, "message": "no"}}),
    got(4, **DONE),
    sent("resources/read", 5, uri="shop://none"),
    ("received", {"id": 5, "error": {"code": -32002, "message": "none"}}),
    sent("resources/subscribe", 6, uri="shop://0"),
    got(6),
    told("notifications/resources/updated", uri="shop://0"),
    told("notifications/tools/list_changed"),
    called(7, "slow"),
    sent("notifications/cancelled", requestId=7),
    sent("tasks/list", 8),
    got(8, tasks=[]),
    sent("tools/list", 9, cursor=1),
    ("received", {"id": 9, "error": {"code": -32602, "message": "no text"}}),
    sent("tools/list", 10),
    (
        "received",
        {"id": 10, "result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}},
    ),
    ("received", {"id": "d", "method": "ping"}),
    ("sent", {"id": "d", "result": {}}),
]
NEEDED = {"a": ELICIT}
STATELESS: list[Row] = [
    sent("server/discover", 0, _meta=described(0, "")[1]["params"]["_meta"]),
    got(
        0,
        resultType="complete",
        supportedVersions=[MODERN],
        capabilities={"tools": {}, "logging": {}},
        serverInfo=CLIENT,
        instructions="Ask.",
        ttlMs=0,
        cacheScope="public",
    ),
    called("bare", "plain", "u"),
    described(1, "plain", "warning", "t"),
    told("notifications/progress", progressToken="t", progress=1),
    told("notifications/message", level="error", data=1),
    got(1, resultType="complete", **DONE),
    described(2, "plain", "warning"),
    got(2, resultType="complete", **DONE),
    described(3, "asks", "error"),
    got(3, resultType="input_required", inputRequests=NEEDED, requestState="s"),
    described(4, "other"),
    got(4, resultType="complete", **DONE),
    described(5, "asks", inputResponses={"a": ACCEPT}, requestState="s"),
    got(5, resultType="input_required", inputRequests={"b": {"method": "roots/list"}}),
    described(6, "asks", inputResponses={"b": {"roots": []}}),
    got(6, resultType="complete", **DONE),
    described(7, "asks"),
    got(7, resultType="input_required", inputRequests=NEEDED, requestState="s"),
    sent(
        "subscriptions/listen",
        8,
        notifications={"toolsListChanged": True},
        _meta=described(0, "")[1]["params"]["_meta"],
    ),
    told("notifications/tools/list_changed", _meta={f"{PREFIX}subscriptionId": 8}),
]
SESSIONS: dict[str, tuple[list[Row], str]] = {
    "without a handshake": (HANDSHAKE, MODERN),
    "an earlier handshake": (HANDSHAKE, FIRST),
    "with a handshake": (STATELESS, LEGACY),
    "a handshake before servers asked": (STATELESS, FIRST),
    "the same revision": (STATELESS[:8], MODERN),
    "no opening": ([described(1, "plain"), got(1, resultType="complete", **DONE)], LEGACY),
    "no answer to the opening": ([opened()[0], *opened(FIRST)], MODERN),
    "no opening that succeeds": (
        [opened()[0], ("received", {"id": 0, "error": {"code": -1, "message": "no"}})],
        MODERN,
    ),
}


def lines(carried: Carried) -> list[str]:
    """The messages with what they belong to, and what is lost, a line each."""
    written = [
        f"{each.number} {each.sender} {each.kind}, line {each.line}, of {each.request}, "
        f"in {each.within}{', linked' if each.linked else ''}: {json.dumps(each.value)}"
        for each in carried.session.messages
    ]
    lost = [f"{each.line}: {each.item}: {each.text}" for each in carried.lost]
    return [*written, "lost", *lost, "not compared", *sorted(carried.uncompared)]


@pytest.mark.parametrize(("rows", "revision"), SESSIONS.values(), ids=SESSIONS)
def test_a_session_is_written_in_another_revision(
    rows: list[Row], revision: str, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (session,) = recording.read(str(write_trace(tmp_path / "trace.jsonl", *rows)))
    carried = carry(session, revision)
    assert carried.session.revision == revision
    assert lines(carried) == snapshot
