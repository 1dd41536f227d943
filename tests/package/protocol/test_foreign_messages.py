"""Messages made to do harm: nested to the limit, long, full of escapes. Each fails alone."""

from __future__ import annotations

import json
import logging
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import anyio
import msgspec
import pytest

from mcpgen_runtime import ClientHandlers, Server
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import (
    ConnectFailedError,
    HttpStatusError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    ResourceNotFoundError,
    RevisionError,
    ServerStartError,
    ToolError,
)
from mcpgen_runtime.facts import Role
from mcpgen_runtime.protocol.client_connection import ClientConnection
from mcpgen_runtime.protocol.events import (
    CancelRequest,
    Ignored,
    OpenFailed,
    OpenSession,
    ReportProgress,
    RequestFailed,
    RequestReceived,
    Send,
    SendError,
    SendResponse,
    UnmatchedResponse,
)
from mcpgen_runtime.protocol.jsonrpc import ID_CHARACTERS
from mcpgen_runtime.protocol.server_connection import STREAMS, UnsupportedRevisionError
from mcpgen_runtime.revisions import REVISIONS
from package.ends import End, end_of
from package.live import App, FakeServer, live
from package.rules import revisions_holding
from package.samples import RESULTS
from package.wire import (
    ALL,
    HANDSHAKE,
    PER_REQUEST,
    ClientEnd,
    ServerEnd,
    describe_as,
    facts,
    meta_of,
    request,
    sole,
    speaking_to,
)

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
LONG = ESCAPES + "x" * 3_000_000
SHOWN = 2_000
"""Characters that any text made of something foreign stays within."""


def nested_texts(depth: int) -> Iterator[str]:
    """JSON that is nested as deep as that, in arrays and in objects."""
    yield "[" * depth + "]" * depth
    yield '{"a":' * depth + "1" + "}" * depth


def depths() -> range:
    """Depths on both sides of the deepest JSON that is decoded here.

    Before Python 3.12 the calls under way count too, so that each depth matters.
    """
    deepest = bisect_left(range(100_000), True, key=is_too_deep)
    return range(deepest - 100, deepest + 101, 1 if sys.version_info < (3, 12) else 10)


def is_too_deep(depth: int) -> bool:
    """Whether JSON of this depth can't be decoded."""
    try:
        msgspec.json.decode(next(nested_texts(depth)))
    except RecursionError:
        return True
    return False


def with_deep(message: Mapping[str, Any], deep: str) -> bytes:
    """A message whose member DEEP is replaced by JSON text."""
    return json.dumps(message).replace('"DEEP"', deep).encode()


def requests_of(revision: str) -> Iterator[dict[str, Any]]:
    """Requests to a server with something deep in each place."""
    ping = request(revision, "ping")
    call = request(revision, "tools/call", {"name": "echo", "arguments": {"text": "DEEP"}})
    yield {**ping, "jsonrpc": "DEEP"}
    yield {**ping, "id": "DEEP"}
    yield {**ping, "method": "DEEP"}
    yield {**ping, "params": "DEEP"}
    yield call
    yield {**call, "params": {"name": "DEEP"}}
    for key in ("progressToken", "other", *meta_of(NEWEST)):
        yield request(revision, "tools/list", {}, meta={key: "DEEP"})
    yield {**ping, "params": {"_meta": "DEEP"}}
    client = {"name": "t", "version": "1", "icons": "DEEP"}
    yield request(
        revision,
        "initialize",
        {"protocolVersion": "DEEP", "capabilities": {}, "clientInfo": client},
    )
    for capabilities in ({"experimental": {"x": "DEEP"}}, {"extensions": {"a/b": "DEEP"}}):
        params = {"protocolVersion": SESSION, "capabilities": capabilities, "clientInfo": client}
        yield request(revision, "initialize", params)
        yield request(revision, "tools/list", {}, capabilities=capabilities)
    yield request(revision, "subscriptions/listen", {"notifications": {"other": "DEEP"}})


def others_of(revision: str) -> Iterator[dict[str, Any]]:
    """Notifications and answers with something deep in each place."""
    for name, member in (
        ("notifications/cancelled", "requestId"),
        ("notifications/cancelled", "reason"),
        ("notifications/progress", "progressToken"),
        ("notifications/progress", "message"),
        ("notifications/message", "data"),
    ):
        params = {"requestId": 1, "progressToken": 1, "progress": 1, "level": "error", "data": 1}
        yield {"jsonrpc": "2.0", "method": name, "params": {**params, member: "DEEP"}}
    for key in ("other", *(key for key in [facts(NEWEST).meta.subscription_id] if key)):
        params = {"_meta": {key: "DEEP"}}
        yield {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params}
    yield {"jsonrpc": "2.0", "method": "DEEP"}
    yield {"jsonrpc": "2.0", "id": 99, "result": {"a": "DEEP"}}
    yield {"jsonrpc": "2.0", "id": "DEEP", "result": {}}
    yield {"jsonrpc": "2.0", "id": "DEEP", "error": {"code": 1, "message": "x"}}
    yield {"jsonrpc": "2.0", "error": {"code": 1, "message": "x", "data": "DEEP"}}
    yield {"jsonrpc": "2.0", "id": 99, "error": {"code": "DEEP", "message": "DEEP"}}


def is_usable(end: End) -> bool:
    """Whether an end answers a ping, and serves nothing that it did not hand on."""
    assert end.revision is not None
    if end.connection.state.role == "client" and not REVISIONS[end.revision].server_requests:
        return True
    (pong,) = end.say(request(end.revision, "ping", id="after"))
    has_ping = "ping" in REVISIONS[end.revision].client_requests
    return ("result" in pong) == has_ping and "after" not in tuple(end.connection.state.inbound)


@pytest.mark.parametrize(("revision", "role"), BOTH)
def test_a_message_nested_to_the_recursion_limit_fails_alone(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    for message in (*requests_of(revision), *others_of(revision)):
        for depth in depths():
            for deep in nested_texts(depth):
                end.connection.receive(with_deep(message, deep))
                for identifier in tuple(end.connection.state.inbound):
                    end.connection.send(SendError(identifier, ProtocolError("enough")))
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
                    client.connection.send(CancelRequest(asked["id"]))
                assert len(client.connection.state.outbound) == 0


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
def test_an_opening_answered_at_maximal_depth_ends_cleanly(
    revision: str,
) -> None:
    result = {
        "protocolVersion": revision,
        "supportedVersions": [revision],
        "capabilities": {"experimental": {"x": {"y": "DEEP"}}},
        "serverInfo": {"name": "s", "version": "1", "icons": "DEEP"},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    shallow = {**result, "serverInfo": {"name": "s", "version": "1"}}
    kinds: set[str] = set()
    for message in (result, shallow):
        for depth in depths():
            for deep in nested_texts(depth):
                client = ClientConnection(REVISIONS.only(revision), describe_as({}, "client"))
                asked = json.loads(sole(client.send(OpenSession())).data)
                answer = {"jsonrpc": "2.0", "id": asked["id"], "result": message}
                for event in client.receive(with_deep(answer, deep)):
                    kinds.add(type(event).__name__)
                    if isinstance(event, OpenFailed):
                        assert len(str(event.error)) < SHOWN
    assert "Opened" in kinds
    # From Python 3.12 on, all that is decoded can be checked.
    assert kinds & {"OpenFailed", "UnmatchedResponse"}


class Mirror(ClientHandlers):
    """Answers with what it was asked."""

    async def create_message(self, params: Any, ctx: Any) -> Any:
        return {
            "role": "assistant",
            "content": {"type": "text", "text": "x"},
            "model": "m",
            "_meta": {"a/b": params.meta["a/b"]},
        }


class BytesServer(FakeServer):
    """Does not look into answers: they may be nested too deep for that."""

    async def send(self, message: OutgoingMessage) -> None:
        if b'"assistant"' not in message.data:
            await super().send(message)


async def test_a_client_outlives_every_depth_that_it_answers_with(anyio_backend: str) -> None:
    server = BytesServer(SESSION)
    params = {"messages": [], "maxTokens": 1, "_meta": {"a/b": "DEEP"}}
    asked = request(SESSION, "sampling/createMessage", params, id="deep")
    async with connect(server, revision=SESSION, handlers=Mirror()):
        for depth in depths():
            for deep in nested_texts(depth):
                await server.say(with_deep(asked, deep))
                await server.say(request(SESSION, "ping", id=depth))
                while (answer := await server.next())["id"] != depth:
                    pass
                assert answer["result"] == {}


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
async def test_a_server_answers_every_depth_that_a_handler_gives_back(
    revision: str, anyio_backend: str
) -> None:
    server = Server("echo", version="1")

    @server.tool()
    async def echo(value: Any) -> Any:
        return {"value": value}

    call = request(revision, "tools/call", {"name": "echo", "arguments": {"value": "DEEP"}}, id=7)
    async with speaking_to(server, revision) as end:
        for depth in depths():
            for deep in nested_texts(depth):
                await end.send(with_deep(call, deep))
                with anyio.fail_after(10):
                    response = await end.channel.receive()
                assert response.startswith((b'{"result":', b'{"error":'))
                assert len(response) < 3 * len(deep) + 1000  # as text and as a value
        assert "result" in await end.ask("tools/list")


def long_requests(revision: str) -> Iterator[dict[str, Any]]:
    ping = request(revision, "ping")
    yield {**ping, "jsonrpc": LONG}
    yield {**ping, "method": LONG}
    yield {**ping, "id": {LONG: LONG}}
    yield {**ping, "params": LONG}
    yield request(revision, "tools/call", {"name": ["x", LONG]})
    yield request(revision, "completion/complete", {"ref": {"type": LONG}, "argument": {}})
    yield request(revision, "completion/complete", {"ref": {LONG: 1}, "argument": {}})
    yield request(revision, "logging/setLevel", {"level": LONG})
    for key in meta_of(NEWEST):
        yield request(revision, "tools/list", {}, meta={key: LONG})
        yield request(revision, "tools/list", {}, meta={key: {LONG: LONG}})
    params = {"protocolVersion": LONG, "capabilities": {}, "clientInfo": LONG}
    yield request(revision, "initialize", params)


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
def test_a_refusal_repeats_little_of_what_was_sent(revision: str) -> None:
    server = ServerEnd(revision)
    for message in long_requests(revision):
        for event in server.connection.receive(json.dumps(message).encode()):
            if isinstance(event, RequestReceived):
                server.connection.send(SendError(event.id, ProtocolError("enough")))
            else:
                data = event.message.data if isinstance(event, Send) else b"{}"
                assert len(data) < SHOWN
                error = json.loads(data).get("error", {})
                assert error.get("message", "").isprintable()


@pytest.mark.parametrize(("revision", "role"), BOTH)
def test_ignored_messages_are_logged_in_a_short_line(revision: str, role: Role) -> None:
    end = end_of(revision, role)
    reasons: list[str] = []
    notification = {"jsonrpc": "2.0", "method": LONG}
    known = {**notification, "method": "notifications/cancelled"}
    for message in (
        notification,
        {**known, "params": {"requestId": LONG}},
        {**known, "params": {"requestId": [LONG]}},
        {**known, "method": "notifications/progress", "params": {"progressToken": LONG}},
        {
            **known,
            "method": "notifications/message",
            "params": {"level": LONG, "data": 1},
        },
        {"jsonrpc": "2.0", "id": "x", "result": {}},
        {"jsonrpc": "2.0", "id": LONG, "result": {}},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": LONG}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": LONG}},
        request(revision, LONG),
    ):
        events = end.connection.receive(json.dumps(message).encode())
        reasons += [event.reason for event in events if isinstance(event, Ignored)]
    assert len(reasons) >= 9
    for reason in reasons:
        assert len(reason) < SHOWN
        assert reason.isprintable()


BAD_ANSWERS: list[dict[str, Any]] = [
    {"error": {"code": -1, "message": LONG, "data": LONG}},
    {"error": {"code": LONG, "message": "x"}},
    {"result": LONG},
    {"result": {"tools": LONG}},
    {"result": {"tools": [{"name": "x", "inputSchema": {"type": LONG}}]}},
]


@pytest.mark.parametrize(
    ("revision", "answer"),
    [
        *((revision, answer) for revision in (NEWEST, SESSION) for answer in BAD_ANSWERS),
        (NEWEST, {"result": {"tools": [], "resultType": LONG}}),
    ],
)
def test_the_error_of_a_bad_answer_is_short_and_escaped(
    revision: str, answer: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    client = ClientEnd(revision)
    asked = client.ask("tools/list")
    client.say({"jsonrpc": "2.0", "id": asked["id"], **answer})
    texts = [str(event.error) for event in client.events if isinstance(event, RequestFailed)]
    texts += [record.getMessage() for record in caplog.records]  # of a tool that is left out
    assert len(texts) == 1
    assert len(texts[0]) < SHOWN
    assert texts[0].isprintable()


def test_the_attributes_of_an_error_hold_what_its_text_cuts() -> None:
    remote = RemoteError(-1, LONG, LONG, "tools/call")
    assert (remote.message, remote.data) == (LONG, LONG)
    assert MethodNotFoundError(LONG).method == LONG
    assert ResourceNotFoundError(LONG).uri == LONG
    unsupported = UnsupportedRevisionError(LONG, ("a",), -1)
    assert unsupported.requested == LONG
    revision = RevisionError("no revision in common", ("a",), (LONG,) * 1000)
    assert revision.offered == (LONG,) * 1000
    started = ServerStartError("x", ["x"], 1, [LONG] * 3)
    assert started.stderr_tail == (LONG,) * 3
    for error in (
        remote,
        MethodNotFoundError(LONG),
        ResourceNotFoundError(LONG),
        unsupported,
        revision,
        HttpStatusError("http://x", 500, LONG, LONG.encode()),
        ConnectFailedError("http://x", LONG),
    ):
        assert len(str(error)) < SHOWN
        assert str(error).isprintable()
    assert len(str(started)) < 3 * SHOWN
    assert "\x1b" not in str(started)
    assert len(json.dumps(unsupported.data)) < SHOWN


def test_a_missing_resource_is_named_unless_its_uri_is_endless() -> None:
    assert ResourceNotFoundError("memo://one").data == {"uri": "memo://one"}
    assert not isinstance(ResourceNotFoundError(LONG).data, dict)


@pytest.mark.parametrize("revision", [NEWEST, SESSION])
async def test_error_texts_of_an_application_are_not_truncated(
    revision: str, anyio_backend: str
) -> None:
    server = Server("long", version="1")
    text = "why " * 1000

    @server.tool()
    async def fail(kind: str) -> str:
        raise ToolError(text) if kind == "tool" else ProtocolError(text)

    async with live(server, revision) as (client, _):
        result = await client.call_tool("fail", {"kind": "tool"})
        assert result.content[0].text == text
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("fail", {"kind": "protocol"})
        assert caught.value.message == text


async def test_log_lines_about_a_peer_are_short_and_on_one_line(
    anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mcpgen_runtime")

    async def wait(ctx: Any) -> Any:
        await anyio.sleep_forever()

    async with speaking_to(App(wait), SESSION) as end:
        await end.send(request(SESSION, "tools/list", id="x"))
        params = {"requestId": "x", "reason": LONG}
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params},
            {"jsonrpc": "2.0", "method": LONG},
            {"jsonrpc": "2.0", "id": LONG, "result": {}},
        ):
            await end.send(message)
        await end.ask("ping", id="last")
    for record in caplog.records:
        assert len(record.getMessage()) < SHOWN
        assert record.getMessage().isprintable()


LIMIT = "i" * ID_CHARACTERS


@pytest.mark.parametrize("revision", ALL)
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


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_progress_token_that_is_endless_counts_as_none(revision: str) -> None:
    server = ServerEnd(revision)
    for token, wanted in ((LIMIT, True), (LIMIT + "i", False), (10**400, False)):
        server.ask("tools/list", {}, meta={"progressToken": token}, id=1)
        assert (sole(server.connection.send(ReportProgress(1, 0.5))) is not None) == wanted
        server.connection.send(SendResponse(1, RESULTS["tools/list"]))


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_a_connection_holds_only_so_many_streams(revision: str) -> None:
    server = ServerEnd(revision)
    listen = {"notifications": {"toolsListChanged": True}}
    for number in range(STREAMS):
        (said,) = server.ask("subscriptions/listen", listen, id=number)
        assert said["method"] == "notifications/subscriptions/acknowledged"
    (refused,) = server.ask("subscriptions/listen", listen, id="more")
    assert refused["error"]["code"] == -32602
    assert str(STREAMS) in refused["error"]["message"]
    server.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}})
    (said,) = server.ask("subscriptions/listen", listen, id="again")
    assert said["method"] == "notifications/subscriptions/acknowledged"


@pytest.mark.parametrize("revision", PER_REQUEST)
def test_streams_of_a_connection_follow_limited_resources(revision: str) -> None:
    server = ServerEnd(revision)
    for number in range(2):
        uris = [f"memo://{number}/{at}" for at in range(501)]
        params = {"notifications": {"resourceSubscriptions": uris}}
        (said,) = server.ask("subscriptions/listen", params, id=number)
        assert ("error" in said) == (number == 1)


@pytest.mark.structs("pydantic reads no JSON that is nested deeper than some 200 levels")
@pytest.mark.parametrize("revision", [NEWEST, SESSION])
async def test_a_refused_argument_of_a_tool_is_shown_in_part(
    revision: str, anyio_backend: str
) -> None:
    server = Server("strict", version="1")

    @server.tool()
    async def count(number: int, kind: Literal["a", "b"] = "a") -> str:
        return kind * number

    async with speaking_to(server, revision) as end:
        deep = json.loads("[" * 500 + "]" * 500)
        for arguments in (
            {"number": LONG},
            {"number": deep},
            {"number": 1, "kind": LONG},
            {"number": 1, LONG: 1},
        ):
            answer = await end.ask("tools/call", {"name": "count", "arguments": arguments})
            assert len(json.dumps(answer)) < SHOWN
            assert "count" in json.dumps(answer)
