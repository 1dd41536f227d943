"""Messages made to do harm: nested to the limit, long, full of escapes. Each fails alone."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from kit.ends import End, end_of
from kit.live import live, server_with
from kit.rules import revisions_holding
from kit.wire import (
    ALL,
    HANDSHAKE,
    ClientEnd,
    ServerEnd,
    every,
    facts,
    meta_of,
    request,
)
from mcpgen_runtime import REVISIONS, ProtocolError, RemoteError, ToolError
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    Ignored,
    RequestReceived,
    Send,
    SendError,
    UnmatchedResponse,
)
from mcpgen_runtime.protocol.jsonrpc import ID_CHARACTERS

pytestmark = pytest.mark.costly

NEWEST = ALL[-1]
SESSION = HANDSHAKE[-1]
BOTH: list[tuple[str, Role]] = [
    (NEWEST, "server"),
    (SESSION, "server"),
    (NEWEST, "client"),
    (SESSION, "client"),
]

ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202e\n"
LONG = ESCAPES + "x" * 500_000
SHOWN = 2_000
"""Characters that any text made of something foreign stays within."""


def nested_texts(depth: int) -> Iterator[str]:
    """JSON that is nested as deep as that, in arrays and in objects."""
    yield "[" * depth + "]" * depth
    yield '{"a":' * depth + "1" + "}" * depth


def depths() -> range:
    """Depths around the deepest JSON that is decoded here.

    Before Python 3.12 the calls under way count too: in other places less depth is decoded, and
    each depth matters.
    """

    def is_too_deep(depth: int) -> bool:
        """Whether JSON of this depth can't be decoded."""
        try:
            msgspec.json.decode(next(nested_texts(depth)))
        except RecursionError:
            return True
        return False

    deepest = bisect_left(range(100_000), True, key=is_too_deep)
    each = range(deepest - 40, deepest + 2)
    return each if sys.version_info < (3, 12) else range(deepest - 100, deepest + 101, 10)


def with_deep(message: Mapping[str, Any], deep: str) -> bytes:
    """A message whose member DEEP is replaced by JSON text."""
    return json.dumps(message).replace('"DEEP"', deep).encode()


def requests_of(revision: str, value: Any = "DEEP") -> Iterator[dict[str, Any]]:
    """Requests to a server with a value in each place."""
    ping = request(revision, "ping")
    call = request(revision, "tools/call", {"name": "echo", "arguments": {"text": value}})
    yield {**ping, "jsonrpc": value}
    yield {**ping, "id": value}
    yield {**ping, "method": value}
    yield {**ping, "params": value}
    yield call
    yield {**call, "params": {"name": value}}
    for key in ("progressToken", "other", *meta_of(NEWEST)):
        yield request(revision, "tools/list", {}, meta={key: value})
    yield {**ping, "params": {"_meta": value}}
    client = {"name": "t", "version": "1", "icons": value}
    yield request(
        revision, "initialize", {"protocolVersion": value, "capabilities": {}, "clientInfo": client}
    )
    for capabilities in ({"experimental": {"x": value}}, {"extensions": {"a/b": value}}):
        params = {"protocolVersion": SESSION, "capabilities": capabilities, "clientInfo": client}
        yield request(revision, "initialize", params)
        yield request(revision, "tools/list", {}, capabilities=capabilities)
    yield request(revision, "subscriptions/listen", {"notifications": {"other": value}})


def others_of(value: Any = "DEEP") -> Iterator[dict[str, Any]]:
    """Notifications and answers with a value in each place."""
    for name, member in (
        ("notifications/cancelled", "requestId"),
        ("notifications/cancelled", "reason"),
        ("notifications/progress", "progressToken"),
        ("notifications/progress", "message"),
        ("notifications/message", "level"),
        ("notifications/message", "data"),
    ):
        params = {"requestId": 1, "progressToken": 1, "progress": 1, "level": "error", "data": 1}
        yield {"jsonrpc": "2.0", "method": name, "params": {**params, member: value}}
    for key in ("other", *(key for key in [facts(NEWEST).meta.subscription_id] if key)):
        params = {"_meta": {key: value}}
        yield {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params}
    yield {"jsonrpc": "2.0", "method": value}
    yield {"jsonrpc": "2.0", "id": 99, "result": {"a": value}}
    yield {"jsonrpc": "2.0", "id": value, "result": {}}
    for id in (value, None, "x"):
        error = {"code": 1, "message": value, "data": value}
        yield {"jsonrpc": "2.0", "id": id, "error": error}
    yield {"jsonrpc": "2.0", "id": 99, "error": {"code": value, "message": value}}


@pytest.mark.parametrize(("revision", "role"), BOTH)
def test_a_message_nested_to_the_recursion_limit_fails_alone(revision: str, role: Role) -> None:
    def is_usable(end: End) -> bool:
        """Whether an end answers a ping, and serves nothing that it did not hand on."""
        assert end.revision is not None
        if end.connection.state.role == "client" and not REVISIONS[end.revision].server_requests:
            return True
        (pong,) = end.say(request(end.revision, "ping", id="after"))
        has_ping = "ping" in REVISIONS[end.revision].client_requests
        return ("result" in pong) == has_ping and "after" not in tuple(end.connection.state.inbound)

    end = end_of(revision, role)
    for message in (*requests_of(revision), *others_of()):
        for depth in depths():
            for deep in nested_texts(depth):
                end.connection.receive(with_deep(message, deep))
                for identifier in tuple(end.connection.state.inbound):
                    end.send(SendError(identifier, ProtocolError("enough")))
        assert is_usable(end), message


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
def test_an_answer_of_maximal_depth_fails_its_call_alone(revision: str) -> None:
    client = ClientEnd(revision)
    deep_error = {"error": {"code": 1, "message": "x", "data": "DEEP"}}
    deep_result = {"result": {"content": [], "resultType": "DEEP", "structuredContent": "DEEP"}}
    for answer in (deep_result, deep_error, {"result": "DEEP"}, {"result": {"tools": "DEEP"}}):
        for depth in depths():
            for deep in nested_texts(depth):
                asked = client.ask("tools/list")
                client.say(with_deep({"jsonrpc": "2.0", "id": asked["id"], **answer}, deep))
                (event,) = client.events
                if isinstance(event, UnmatchedResponse):  # nobody can tell which answer it was
                    client.send(CancelRequest(asked["id"]))
                assert len(client.connection.state.outbound) == 0


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
def test_a_refusal_repeats_little_of_what_was_sent(revision: str) -> None:
    server = ServerEnd(revision)
    long: list[Any] = [LONG, [LONG], {LONG: LONG}]
    for message in (each for value in long for each in requests_of(revision, value)):
        for event in server.connection.receive(json.dumps(message).encode()):
            if isinstance(event, RequestReceived):
                server.send(SendError(event.id, ProtocolError("enough")))
            else:
                data = event.message.data if isinstance(event, Send) else b"{}"
                assert len(data) < SHOWN
                error = json.loads(data).get("error", {})
                assert error.get("message", "").isprintable()


@pytest.mark.parametrize(("revision", "role"), BOTH)
def test_ignored_messages_are_logged_in_a_short_line(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    reasons: list[str] = []
    for message in (*others_of(LONG), *others_of([LONG]), request(revision, LONG)):
        events = end.connection.receive(json.dumps(message).encode())
        reasons += [event.reason for event in events if isinstance(event, Ignored)]
    assert len(reasons) >= 15
    for reason in reasons:
        assert len(reason) < SHOWN
        assert reason.isprintable()


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
async def test_error_texts_of_an_application_are_not_truncated(revision: str) -> None:
    text = "why " * 1000

    async def fail(kind: str) -> str:
        raise ToolError(text) if kind == "tool" else ProtocolError(text)

    async with live(server_with(fail), revision) as (client, _):
        result = await client.call_tool("fail", {"kind": "tool"})
        assert result.content[0].text == text
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("fail", {"kind": "protocol"})
        assert caught.value.message == text


LIMIT = "i" * ID_CHARACTERS


@every
def test_an_id_has_a_greatest_length_and_is_not_repeated_beyond(revision: str) -> None:
    server = ServerEnd(revision)
    for identifier in (LIMIT, 2**128, -(2**128)):
        (pong,) = server.say(request(revision, "unknown/method", id=identifier))
        assert pong["id"] == identifier
    for identifier in (LIMIT + "i", 2**128 + 1, -(2**128) - 1, 10**400, -(10**400)):
        (refused,) = server.say(request(revision, "unknown/method", id=identifier))
        omitted = revision in revisions_holding("jsonrpc.error-id-omitted-if-unreadable")
        assert ("id" in refused) == (not omitted)
        assert refused.get("id") is None
        assert refused["error"]["code"] == -32600
    assert tuple(server.connection.state.inbound) == ()
