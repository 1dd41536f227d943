"""What a connection makes of received messages where no default applies, by exact events."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol.errors import McpError, RemoteError, RemoteProtocolError
from mcp_protocol.protocol.receiver import (
    CancelReceived,
    Ignored,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from mcp_protocol.revisions import REVISIONS
from package.samples import RESULTS
from package.wire import (
    ALL,
    HANDSHAKE,
    PER_REQUEST,
    ClientEnd,
    ServerEnd,
    encode_message,
    facts,
)

every = pytest.mark.parametrize("revision", ALL)
sessions = pytest.mark.parametrize("revision", HANDSHAKE)
modern = pytest.mark.parametrize("revision", PER_REQUEST)


def notification(method: str, **params: Any) -> dict[str, Any]:
    """A notification on the wire."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


@every
def test_a_client_has_no_subscribers(revision: str) -> None:
    connection = ClientEnd(revision).connection
    assert not connection.is_subscribed("memo://one")
    assert connection.subscribed_uris() == set()
    assert not connection.has_subscriber("notifications/resources/updated", {"uri": "memo://one"})
    assert connection.close_streams() == []


@every
def test_results_have_no_extra_members_by_default(revision: str) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    result = {**(RESULTS["tools/list"] or {}), "total": 5}
    client.say({"jsonrpc": "2.0", "id": id, "result": result})
    (event,) = client.events
    assert isinstance(event, ResponseReceived)
    kind = REVISIONS[revision].client_requests["tools/list"].result
    assert type(event.result) is kind


@every
def test_progress_extends_a_timeout_from_moment_zero_by_default(revision: str) -> None:
    client = ClientEnd(revision)
    id, _ = client.connection.request("tools/list", now=0.0, timeout=5.0, progress=True)
    assert client.connection.deadline(id) == 5.0
    data = encode_message(notification("notifications/progress", progressToken=id, progress=0.5))
    assert client.connection.receive(data, 2.0) == [ProgressReceived(id, 0.5, None, None)]
    assert client.connection.deadline(id) == 7.0
    client.connection.receive(data)
    assert client.connection.deadline(id) == 5.0


@modern
def test_a_server_takes_notifications_that_name_a_subscription(revision: str) -> None:
    server = ServerEnd(revision)
    key = facts(revision).meta.subscription_id or ""
    server.ask("tools/list", id=1)
    params = {"requestId": 1, "reason": "enough", "_meta": {key: "7"}}
    events = server.connection.receive(
        encode_message(notification("notifications/cancelled", **params))
    )
    assert events == [CancelReceived(1, "enough")]


@every
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"id": 77, "result": {}}, "result for 77, which is no open request"),
        ({"id": 77, "error": {"code": 5, "message": "x\x1b"}}, "error 5 about 77: x"),
        ({"id": None, "error": {"code": 5, "message": "x"}}, "error 5 about the connection: x"),
        (
            notification("notifications/cancelled", requestId=77),
            "cancelled: 77 is no open request",
        ),
        (
            notification("notifications/progress", progressToken=77, progress=1),
            "progress for 77, which nobody asked for",
        ),
        (notification("notifications/own"), "unknown notification notifications/own"),
    ],
    ids=str,
)
def test_a_message_about_nothing_open_is_dropped_with_a_reason(
    revision: str, message: dict[str, Any], reason: str
) -> None:
    client = ClientEnd(revision)
    strays = client.connection.stray_results
    (event,) = client.connection.receive(encode_message({"jsonrpc": "2.0", **message}))
    assert isinstance(event, Ignored)
    assert event.reason.startswith(reason)
    assert client.connection.stray_results - strays == ("result" in message)


@every
@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"result": {"tools": 5}}, RemoteProtocolError),
        ({"result": 5}, RemoteProtocolError),
        ({"result": {}, "error": {"code": 1, "message": "both"}}, RemoteProtocolError),
        ({"error": {"code": -32000, "message": "busy", "data": [1]}}, RemoteError),
        ({"error": 5}, RemoteProtocolError),
    ],
    ids=str,
)
def test_a_response_that_is_no_result_fails_its_request(
    revision: str, members: dict[str, Any], error: type[McpError]
) -> None:
    client = ClientEnd(revision)
    id = client.ask("tools/list")["id"]
    (event,) = client.connection.receive(encode_message({"jsonrpc": "2.0", "id": id, **members}))
    assert isinstance(event, RequestFailed)
    assert event.id == id
    assert type(event.error) is error
    assert "tools/list" in str(event.error)
    assert client.connection.open_requests == 0
    if isinstance(event.error, RemoteError):
        failure = event.error
        assert (failure.code, failure.message, failure.data) == (-32000, "busy", [1])


@sessions
def test_null_params_are_absent_params(revision: str) -> None:
    server = ServerEnd(revision)
    for params in ({}, {"params": None}, {"params": {}}):
        server.say({"jsonrpc": "2.0", "id": str(params), "method": "tools/list", **params})
    lists = [event for event in server.events if isinstance(event, RequestReceived)]
    assert [event.id for event in lists] == ["{}", "{'params': None}", "{'params': {}}"]
    (refusal,) = server.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    assert refusal["error"]["message"] == "tools/call: expected params, got nothing"
    (refusal,) = server.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": None})
    assert refusal["error"]["message"] == "tools/call: expected params, got nothing"


@every
def test_an_id_that_is_open_is_refused_and_stays_open(revision: str) -> None:
    server = ServerEnd(revision)
    assert server.ask("tools/list", id=1) == []
    (refusal,) = server.ask("tools/list", id=1)
    assert refusal["error"]["message"] == "id 1 belongs to an open request"
    assert refusal["id"] == 1
    assert server.connection.respond(1, RESULTS["tools/list"] or {}) is not None
    assert server.ask("tools/list", id=1) == []


@modern
def test_a_request_whose_stream_closes_is_cancelled_once(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    assert server.connection.stream_closed(1) == [CancelReceived(1, "its stream was closed")]
    assert server.connection.stream_closed(1) == []


@sessions
def test_a_request_of_a_session_outlives_its_stream(revision: str) -> None:
    server = ServerEnd(revision)
    server.ask("tools/list", id=1)
    assert server.connection.stream_closed(1) == []
    assert server.connection.respond(1, RESULTS["tools/list"] or {}) is not None
