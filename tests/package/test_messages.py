"""`read_message` of each revision: a line of unknown kind, with typed params and results."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from kit.rules import module_of
from kit.wire import every
from mcpgen_runtime import DecodeError, MessageError, Notification, Request, Response

BATCHING, LATEST = "2025-03-26", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}


def read(revision: str, message: Any, *answered: Any) -> Any:
    return module_of(revision, "methods").read_message(json.dumps(message).encode(), *answered)


def line(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **members}


@every
def test_a_request_has_params_of_the_type_of_its_method(revision: str) -> None:
    methods = module_of(revision, "methods")
    params = {"name": "forecast", "_meta": META}
    message = read(revision, line(id=1, method="tools/call", params=params))
    assert isinstance(message, Request)
    assert (message.id, message.method) == (1, "tools/call")
    assert isinstance(message.params, methods.models.CallToolRequestParams)


@every
def test_a_notification_has_no_id(revision: str) -> None:
    methods = module_of(revision, "methods")
    params = {"progressToken": 1, "progress": 0.5}
    message = read(revision, line(method="notifications/progress", params=params))
    assert isinstance(message, Notification)
    assert isinstance(message.params, methods.models.ProgressNotificationParams)


@every
def test_a_result_has_the_type_of_the_method_that_was_called(revision: str) -> None:
    methods = module_of(revision, "methods")
    response = line(id="a", result={"content": [], "resultType": "complete"})
    for answered in (methods.CALL_TOOL, {"a": methods.CALL_TOOL}):
        message = read(revision, response, answered)
        assert isinstance(message, Response)
        assert isinstance(message.result, methods.models.CallToolResult)
    assert read(revision, response) == Response("a", response["result"])
    assert read(revision, response, {"b": methods.CALL_TOOL}).result == response["result"]


PING = line(id=1, method="acme/ping")
CALL = line(id=1, method="tools/call")
ERROR = {"code": 1, "message": "b"}
VALUES: list[Any] = [None, True, 1, 1.5, "a", [], {}]
MOST = 2**128
IDS: list[Any] = [*VALUES, "a" * 1024, "a" * 1025, 1.0, *(-MOST, MOST, -MOST - 1, MOST + 1)]
LINES: list[Any] = [
    *(*VALUES, {"id": 1, "method": "ping"}, {**PING, "jsonrpc": None}, line(id=1)),
    *({**PING, "result": {}}, line(id=1, result={}, error=ERROR, method="a\n")),
    line(id=1, result={}, error=None),  # `null` for what is absent does not change the kind
    *(line(id="a", method=value) for value in VALUES),
    *(line(id=value, method="acme/a", params=None) for value in IDS),
    *(line(id=1, result=value) for value in VALUES),
    *(line(id=value, error=ERROR) for value in (None, "a", True)),
    *(line(id=1, error=value) for value in VALUES),
    *(line(id=1, error={**ERROR, "code": value, "data": value}) for value in VALUES),
    *(line(id=1, error={**ERROR, "message": value}) for value in VALUES),
    *({**PING, "params": value} for value in VALUES),
    *(CALL, {**CALL, "id": "a", "params": {"name": 1, "_meta": META}}, line(method="tools/call")),
    line(method="notifications/progress"),
    line(method="notifications/progress", params={}),
    line(method="notifications/progress", params=5),
    line(method="acme/a", params={"a": 1}),
]
"""Messages, most of which are invalid."""


def read_or_refuse(read_line: Any, data: bytes, *answered: Any) -> str:
    """A message or messages, or the error with the members to answer with."""
    try:
        text = repr(read_line(data, *answered))
    except DecodeError as refused:
        error: Any = refused
        text = f"{error.code} to {error.id!r} of {error.method!r}: {error}"
    return re.sub(r"a{40,}", lambda run: f"<{len(run[0])} a>", text)


@pytest.mark.parametrize("revision", [BATCHING, LATEST])
def test_an_error_says_what_was_expected_and_what_came(
    revision: str, snapshot: SnapshotAssertion
) -> None:
    methods = module_of(revision, "methods")
    lines = [b'{"jsonrpc": "2.0"', *(json.dumps(each).encode() for each in LINES)]
    shown = [re.sub(rb"a{40,}", b"aa", each).decode() for each in lines]
    rows = [read_or_refuse(methods.read_message, each) for each in lines]
    assert [*map(": ".join, zip(shown, rows, strict=True))] == snapshot
    wrong = json.dumps(line(id=1, result={"content": 1})).encode()
    batches = (b"[]", *(b"[%s]" % b",".join([wrong] * count) for count in (1, 2, 100, 101)))
    called = {1: methods.CALL_TOOL}
    rows = [read_or_refuse(methods.read_messages, each, {}) for each in (wrong, *batches)]
    assert [each[:200] for each in rows] == snapshot
    assert [
        read_or_refuse(methods.read_messages, each, called) for each in (wrong, batches[1])
    ] == snapshot


@every
def test_a_batch_is_read_where_the_revision_has_batches(revision: str) -> None:
    methods = module_of(revision, "methods")
    batch = [line(id=1, result={}), line(method="notifications/initialized")]
    data = json.dumps(batch).encode()
    with pytest.raises(MessageError, match="expected one message, got an array"):
        methods.read_message(data)
    if not methods.REVISION.batching:
        with pytest.raises(MessageError, match="expected one message, got an array"):
            methods.read_messages(data)
        return
    one = json.dumps(batch[0]).encode()
    assert methods.read_messages(one) == [Response(1, {})]
    assert methods.read_messages(data)[1:] == [Notification("notifications/initialized")]
