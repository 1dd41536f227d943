"""HTTP+SSE: one endpoint for the stream, one for what is posted."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypedDict
from urllib.parse import urljoin

import anyio
import pytest

from mcpgen_runtime import Context, Server
from mcpgen_runtime.errors import EndOfChannel
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.request_context import PRINCIPAL, Principal
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpOptions, ServerHttpSettings
from mcpgen_runtime.server.asgi.http_response import HttpResponse, Refused, SseResponse
from mcpgen_runtime.server.asgi.quotas import Quotas, decoded_size
from mcpgen_runtime.server.asgi.request import HttpRequest, RequestBodies
from mcpgen_runtime.server.asgi.settings import Limits
from mcpgen_runtime.server.asgi.sse_endpoint import SseChannel
from mcpgen_runtime.server.chosen import new_connection
from mcpgen_runtime.server.serving import Service
from package.asgi_client import Http, asgi
from package.asgi_stream import SECONDS, Reply, Stream
from package.rules import revisions_holding
from package.wire import HANDSHAKE, INITIALIZED, encode_message, initialize, request
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes


class Paths(TypedDict):
    """Where the two endpoints are."""

    sse_path: str
    messages_path: str


OLD = revisions_holding("sse.two-endpoints")
PATHS: Paths = {"sse_path": "/sse", "messages_path": "/messages"}
old = pytest.mark.parametrize("revision", OLD)


def tools() -> Server:
    server = Server("tester", drain=0)

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.tool()
    async def asks(ctx: Context) -> str:
        await ctx.info("about to ask")
        result = await ctx.request("roots/list")
        return str(len(result.roots))

    return server


class Client:
    """A client with its stream open.

    Attributes:
        endpoint: Where it posts.
        stream: What it hears.
    """

    def __init__(self, http: Http, stream: Stream, endpoint: str) -> None:
        self.http = http
        self.stream = stream
        self.endpoint = endpoint
        self.opened = False

    async def post(self, message: Any, **fields: str | None) -> Reply:
        return await self.http.post(message, self.endpoint, **fields)

    async def ask(self, method: str, params: Any = None, *, id: int | str = 1) -> Any:
        """The answer to a request."""
        reply = await self.post(request(OLD[0], method, params, id=id))
        assert (reply.status, reply.body) == (202, b"")
        while True:
            message = await self.stream.message()
            if message.get("id") == id and "method" not in message:
                return message

    async def open(self, revision: str = OLD[0]) -> Any:
        """Shake hands; the result."""
        await self.post(initialize(revision, {"roots": {}}))
        answer = await self.stream.message()
        await self.post(INITIALIZED)
        self.opened = True
        return answer["result"]


@asynccontextmanager
async def open_client(http: Http) -> AsyncIterator[Client]:
    async with http.stream("GET", None, "/sse") as stream:
        event = await stream.event()
        assert event.type == "endpoint"
        yield Client(http, stream, urljoin("/sse", event.data.decode()))


@pytest.mark.requirement("sse.two-endpoints", "sse.endpoint-event", "sse.endpoint-event-first")
@old
async def test_the_stream_begins_by_saying_where_to_post(revision: str) -> None:
    async with asgi(tools(), **PATHS) as http, http.stream("GET", None, "/sse") as stream:
        assert stream.status == 200
        assert stream.fields["content-type"] == "text/event-stream"
        assert stream.fields["x-accel-buffering"] == "no"
        first = await stream.event()
        assert first.type == "endpoint"
        path, _, query = first.data.decode().partition("?")
        assert path == "/messages"
        assert len(query) > 32
        reply = await http.post(initialize(revision), first.data.decode())
        assert reply.status == 202


@pytest.mark.requirement(
    "auth-security.session-id-secure", "transport-security.session-id-nondeterministic"
)
@old
async def test_where_to_post_can_not_be_guessed(revision: str) -> None:
    ids: list[str] = []
    async with asgi(tools(), **PATHS) as http:
        for _ in range(100):
            random.seed(7)
            async with open_client(http) as client:
                ids.append(client.endpoint.partition("?session_id=")[2])
    assert len(set(ids)) == 100
    assert {len(each) for each in ids} == {43}  # 256 bits
    for place in range(8):  # no part of them counts or stays
        assert max(Counter(each[place] for each in ids).values()) < 30


@pytest.mark.requirement("sse.message-event", "sse.message-data-json")
@pytest.mark.requirement("sse.post-status-unspecified")
@old
async def test_answers_come_as_message_events_and_not_in_the_reply(revision: str) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        await client.post(initialize(revision))
        event = await client.stream.event()
        assert event.type == "message"
        assert json.loads(event.data)["result"]["protocolVersion"] == revision
        text = 'two\nlines, "bl\u00e5b\u00e6r" \r and \u2028'
        answer = await client.ask("tools/call", {"name": "echo", "arguments": {"text": text}})
        assert answer["result"]["content"][0]["text"] == text


@pytest.mark.requirement("sse.independent-process")
@old
async def test_clients_at_the_same_time_hear_their_own_messages_only(revision: str) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as one, open_client(http) as two:
        assert one.endpoint != two.endpoint
        for client in (one, two):
            await client.open()
        for client, text in ((one, "a"), (two, "b"), (one, "c")):
            answer = await client.ask("tools/call", {"name": "echo", "arguments": {"text": text}})
            assert answer["result"]["content"][0]["text"] == text
        for client in (one, two):
            client.stream.disconnect()
            assert await client.stream.messages() == []


@old
async def test_a_server_asks_and_tells_on_the_stream(revision: str) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        await client.open()
        await client.post(request(revision, "tools/call", {"name": "asks", "arguments": {}}, id=7))
        assert (await client.stream.message())["method"] == "notifications/message"
        question = await client.stream.message()
        assert question["method"] == "roots/list"
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        answer = await client.stream.message()
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "0")


@old
async def test_changes_are_announced_on_the_stream(revision: str) -> None:
    server = tools()
    async with asgi(server, **PATHS) as http, open_client(http) as client:
        await client.open()
        await client.ask("ping")
        server.remove_tool("echo")
        assert (await client.stream.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_fallen_back_client_gets_its_later_revision(
    revision: str,
) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        assert (await client.open(revision))["protocolVersion"] == revision


@pytest.mark.requirement("sse.client-closes-stream", "sse.shutdown-by-close")
@old
async def test_when_the_stream_closes_its_endpoint_is_gone(revision: str) -> None:
    async with asgi(tools(), **PATHS) as http:
        async with open_client(http) as client:
            await client.open()
            client.stream.disconnect()
            with anyio.fail_after(5):
                await client.stream.finished.wait()
        reply = await client.post(request(revision, "ping"))
        assert reply.status == 404


@pytest.mark.requirement("sse.shutdown-by-close", "lifecycle.shutdown-http")
@old
async def test_the_end_of_the_server_closes_the_stream(revision: str) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        await client.open()
        await http.shut_down()
        assert await client.stream.messages() == []


@old
async def test_inbound_requests_may_end_after_the_client_leaves(revision: str) -> None:
    server = Server("tester", drain=5)
    begun, go, done = anyio.Event(), anyio.Event(), anyio.Event()

    @server.tool()
    async def slow() -> str:
        begun.set()
        await go.wait()
        done.set()
        return ""

    async with asgi(server, **PATHS) as http, open_client(http) as client:
        await client.open()
        await client.post(request(revision, "tools/call", {"name": "slow", "arguments": {}}))
        await begun.wait()
        client.stream.disconnect()
        assert (await http.get()).status == 400  # others are served meanwhile
        go.set()
        with anyio.fail_after(5):
            await client.stream.finished.wait()
        assert done.is_set()


@pytest.mark.parametrize(
    "path", ["/messages", "/messages?session_id=", "/messages?session_id=x", "/messages?a=%FF;&"]
)
async def test_posts_without_a_stream_are_refused(path: str) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http):
        assert (await http.post(initialize(OLD[0]), path)).status == 404


@pytest.mark.parametrize(
    ("message", "fields", "status"),
    [
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b'{"jsonrpc": "2.0"}', {}, 400),
        (request(OLD[0], "ping"), {"content-type": "text/plain"}, 415),
        (request(OLD[0], "ping"), {"accept": "text/plain"}, 202),
        (b" " * 5000, {}, 413),
    ],
)
async def test_unacceptable_posts_are_refused_at_once(
    message: Any, fields: dict[str, str], status: int
) -> None:
    limits = Limits(body=4096)
    async with asgi(tools(), limits=limits, **PATHS) as http, open_client(http) as client:
        await client.open()
        assert (await client.post(message, **fields)).status == status
        assert "result" in await client.ask("ping", id="still")


async def test_requests_over_the_stream_limit_are_refused_not_answers() -> None:
    limits = Limits(per_session=1)
    async with asgi(tools(), limits=limits, **PATHS) as http, open_client(http) as client:
        await client.open()
        await client.post(request(OLD[0], "tools/call", {"name": "asks", "arguments": {}}, id=7))
        await client.stream.message()
        question = await client.stream.message()
        assert (await client.post(request(OLD[0], "ping", id=8))).status == 503
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert (await client.stream.message())["id"] == 7
        assert "result" in await client.ask("ping", id=9)


@pytest.mark.parametrize(
    ("limits", "size", "most"),
    [(Limits(per_session=5), 0, 5), (Limits(body=4096), 900, 4)],
    ids=["messages", "bytes"],
)
async def test_posts_of_a_client_that_does_not_read_are_bounded(
    limits: Limits, size: int, most: int
) -> None:
    changed = {**INITIALIZED, "params": {"padding": "x" * size}}
    async with asgi(tools(), limits=limits, **PATHS) as http, open_client(http) as client:
        await client.open()
        client.stream.stop_reading()
        await client.post(request(OLD[0], "no/such"))  # whose answer waits to be read
        statuses = [(await client.post(changed)).status for _ in range(most + 2)]
        assert statuses == [202] * most + [503] * 2
        client.stream.read_on()
        assert (await client.stream.message())["error"]["code"] == -32601
        assert "result" in await client.ask("ping", id="still")


async def refusal_of(channel: SseChannel, size: int) -> HttpResponse | None:
    """The refusal of a message of some bytes; `None` if the channel takes it."""
    try:
        await channel.post(b"x" * size, None)
    except Refused as refused:
        return refused.response
    return None


async def test_messages_for_an_ended_stream_take_no_memory() -> None:
    channel, quotas = new_channel()
    for _ in range(3):
        await channel.post(b"{}", None)
    assert await channel.receive() == b"{}"
    assert quotas.memory.size == 4
    channel.end()
    assert quotas.memory.size == 0
    await channel.close()
    assert quotas.memory.size == 0
    with pytest.raises(EndOfChannel):
        await channel.receive()


@pytest.mark.parametrize("body", [b"[1,1]", b"[" + b"1," * 10_000 + b"1]", b"[{", b"[]"])
async def test_where_there_are_no_batches_an_array_is_refused_unread(body: bytes) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        for _ in range(2):  # before there is a session, and in one
            reply = await client.post(body)
            assert (reply.status, "got an array" in reply.error["message"]) == (400, True)
            if not client.opened:
                await client.open()
        assert "result" in await client.ask("ping", id="still")


async def test_an_array_of_too_many_messages_is_refused_by_one_error() -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        await client.open("2025-03-26")
        reply = await client.post(b"[" + b"1," * 10_000 + b"1]")
        assert (reply.status, reply.code) == (400, -32600)
        assert "expected at most 100 messages" in reply.error["message"]
        assert "result" in await client.ask("ping", id="still")


async def test_requests_of_all_clients_and_transports_share_a_limit() -> None:
    server = tools()
    go = anyio.Event()

    @server.tool()
    async def waits() -> str:
        await go.wait()
        return ""

    async with (
        asgi(server, limits=Limits(in_flight=2), **PATHS) as http,
        open_client(http) as one,
        open_client(http) as other,
    ):
        for client in (one, other):
            await client.open()
            call = request(OLD[0], "tools/call", {"name": "waits", "arguments": {}}, id=7)
            assert (await client.post(call)).status == 202
            await anyio.wait_all_tasks_blocked()
        for reply in (
            await one.post(request(OLD[0], "ping", id=8)),
            await http.post(initialize("2025-06-18")),
        ):
            assert (reply.status, "Limits.in_flight" in reply.error["message"]) == (503, True)
        answer = {"jsonrpc": "2.0", "id": 99, "result": {}}
        assert (await other.post(answer)).status == 202
        go.set()
        assert "result" in await one.stream.message()
        assert (await http.post(initialize("2025-06-18"))).status == 200


async def test_initialize_requests_are_bounded_in_bytes() -> None:
    limits = Limits(initialize=1000)
    async with asgi(tools(), limits=limits, **PATHS) as http, open_client(http) as client:
        long = initialize(OLD[0], {"experimental": {"x": {"y": "z" * 1000}}})
        reply = await client.post(long)
        assert (reply.status, "Limits.initialize" in reply.error["message"]) == (413, True)
        await client.open()


async def test_posts_of_clients_that_read_nothing_are_bounded_in_bytes() -> None:
    padded = {**INITIALIZED, "params": {"padding": "x" * 4000}}
    limits = Limits(session_bytes=20_000)
    async with (
        asgi(tools(), limits=limits, **PATHS) as http,
        open_client(http) as one,
        open_client(http) as other,
    ):
        await one.open()
        await other.open()
        one.stream.stop_reading()
        await one.post(request(OLD[0], "no/such"))  # whose answer waits to be read
        statuses = [(await one.post(padded)).status for _ in range(5)]
        assert statuses == [202] * 4 + [503]
        for _ in range(5):  # the one that keeps most goes
            assert (await other.post(padded)).status == 202
        assert "result" in await other.ask("ping", id="still")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("POST", "/sse", "GET"), ("DELETE", "/sse", "GET"), ("GET", "/messages", "POST")],
)
async def test_each_endpoint_has_one_method(method: str, path: str, allow: str) -> None:
    async with asgi(tools(), **PATHS) as http:
        reply = await http.request(method, b"{}" if method == "POST" else None, path)
        assert (reply.status, reply.fields["allow"]) == (405, allow)


async def test_a_stream_is_not_opened_for_who_takes_no_events() -> None:
    async with asgi(tools(), **PATHS) as http:
        assert (await http.get("/sse", accept="application/json")).status == 406


@pytest.mark.requirement("transport-security.validate-origin", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("method", "path"), [("GET", "/sse"), ("POST", "/messages")])
async def test_a_foreign_origin_is_refused_at_both_endpoints(method: str, path: str) -> None:
    async with asgi(tools(), **PATHS) as http:
        reply = await http.request(method, b"{}", path, origin="http://evil.example")
        assert reply.status == 403


async def test_the_endpoint_is_named_below_the_path_of_the_mount_point() -> None:
    async with asgi(tools(), **PATHS) as http:
        http.scope["root_path"] = "/t\u00f8ols"
        async with http.stream("GET", None, "/t\u00f8ols/sse") as stream:
            event = await stream.event()
            assert event.data.startswith(b"/t%C3%B8ols/messages?session_id=")


async def test_both_transports_are_served_side_by_side() -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        await client.open()
        await http.initialize("2025-06-18")
        assert (await http.ask("2025-06-18", "ping")).result == {}
        assert (await http.get("/elsewhere")).status == 404


@pytest.mark.parametrize("path", ["/sse", "/messages"])
async def test_http_sse_is_served_only_if_it_is_enabled(path: str) -> None:
    async with asgi(tools()) as http:
        assert (await http.get(path)).status == 404


@pytest.mark.parametrize(
    "paths", [{"sse_path": "/mcp"}, {"sse_path": "/messages"}, {"sse_path": "sse"}]
)
def test_paths_that_can_not_be_told_apart_are_refused(paths: ServerHttpOptions) -> None:
    with pytest.raises(ValueError, match="sse_path"):
        tools().asgi(**paths)


async def test_a_quiet_stream_gets_comments() -> None:
    async with asgi(tools(), keep_alive=0.01, **PATHS) as http, open_client(http) as client:
        await client.stream.until(b"\n\n:\n\n:\n\n")


async def discard(event: Any) -> None:
    """Take an event."""


def new_channel(**limits: int) -> tuple[SseChannel, Quotas]:
    """A channel whose client reads everything."""
    quotas = Quotas(Limits(**limits))
    return SseChannel(SseResponse(discard, 1.0), Limits(**limits), quotas), quotas


@pytest.mark.parametrize(
    ("sizes", "refused"),
    [
        ((100,), []),  # one is accepted in any case
        ((100, 1), [1]),
        ((6, 4), []),
        ((6, 5), [1]),
        ((1, 1, 1), []),
        ((1, 1, 1, 1), [3]),
    ],
)
async def test_messages_wait_up_to_the_limits_of_a_client(
    sizes: Sequence[int], refused: Sequence[int]
) -> None:
    channel, quotas = new_channel(body=10, per_session=3)
    replies = [await refusal_of(channel, size) for size in sizes]
    assert [number for number, reply in enumerate(replies) if reply is not None] == refused
    for reply in filter(None, replies):
        assert (reply.status, b"(Limits.per_session, Limits.body)" in reply.body) == (503, True)
    accepted = [size for number, size in enumerate(sizes) if number not in refused]
    assert (channel.waiting, quotas.memory.size) == (len(accepted), sum(accepted))
    assert [len(await channel.receive()) for _ in accepted] == accepted
    assert (channel.waiting, quotas.memory.size) == (0, 0)
    replies = [await refusal_of(channel, size) for size in sizes]
    assert [number for number, reply in enumerate(replies) if reply is not None] == refused


async def test_messages_that_would_fill_the_memory_are_refused() -> None:
    channel, quotas = new_channel(session_bytes=10)
    assert await refusal_of(channel, 7) is None
    refused = await refusal_of(channel, 4)
    assert refused is not None
    assert (refused.status, b"Limits.session_bytes" in refused.body) == (503, True)
    assert (channel.waiting, quotas.memory.size) == (1, 7)
    assert await refusal_of(channel, 3) is None


async def test_a_message_is_received_for_its_principal() -> None:
    channel, _ = new_channel()
    before, ann = PRINCIPAL.get(), Principal("ann")
    received: list[bytes] = []

    async def receive() -> None:
        received.append(await channel.receive())
        assert PRINCIPAL.get() is before
        received.append(await channel.receive())
        assert PRINCIPAL.get() is ann

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        await channel.post(b"1", None)
        await anyio.wait_all_tasks_blocked()
        await channel.post(b"2", ann)
    assert received == [b"1", b"2"]


@pytest.mark.parametrize("closes", [False, True])
async def test_a_channel_that_ends_wakes_the_one_who_receives(closes: bool) -> None:
    channel, _ = new_channel()
    async with anyio.create_task_group() as tasks:

        async def receive() -> None:
            with (
                pytest.raises(EndOfChannel, match="the stream is closed"),
                anyio.fail_after(SECONDS),
            ):
                await channel.receive()

        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        if closes:
            await channel.close()
        else:
            channel.end()
    assert channel.scope.cancel_called == closes


async def test_the_rest_of_a_body_that_is_too_long_is_dropped() -> None:
    limits = Limits(body=4096)
    async with asgi(tools(), limits=limits, **PATHS) as http, open_client(http) as client:
        await client.open()
        parts, path = [b" " * 3000, b" " * 3000], client.endpoint
        async with http.stream("POST", None, path, parts=parts, unfinished=True) as stream:
            await stream.started()
            assert (stream.status, stream.fields["connection"]) == (413, "close")
            assert not stream.ended
            stream.upload(b" " * 9000, last=True)
            await stream.end()
            assert stream.unread == 0
        assert "result" in await client.ask("ping", id="still")


@pytest.mark.parametrize(("others", "status"), [(9, 202), (10, 404)])
async def test_a_query_may_have_nine_other_parameters(others: int, status: int) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        client.endpoint += "&a=1" * others
        assert (await client.post(initialize(OLD[0]))).status == status


def endpoints_of(server: Server, quotas: Quotas) -> Any:
    """An application that has the two endpoints alone."""
    service = Service(server, REVISIONS, server.describe, new_connection)
    settings = ServerHttpSettings(**PATHS)
    bodies = RequestBodies(Limits())
    endpoints = settings.path_endpoint(service, quotas, bodies, None)
    assert endpoints is not None

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = HttpRequest(scope)
        try:
            await endpoints.serve(request, receive, send)
        except Refused as refused:
            await bodies.respond(refused, request, receive, send)

    return app


class Counting(Server):
    """A server that records how many messages are in flight while it handles one.

    Attributes:
        quotas: The counters.
        seen: The numbers.
    """

    def __init__(self) -> None:
        super().__init__("tester", drain=0)
        self.quotas = Quotas(Limits())
        self.seen: list[int] = []
        self.tool()(self.plain)

    async def plain(self) -> str:
        return "plain"

    async def handle(self, ctx: Any) -> Any:
        self.seen.append(self.quotas.in_flight)
        return await super().handle(ctx)

    async def notified(self, ctx: Any) -> None:
        self.seen.append(self.quotas.in_flight)


async def test_messages_are_in_flight_while_they_are_handled() -> None:
    server = Counting()
    app = endpoints_of(server, server.quotas)
    async with asgi(app, lifespan=False) as http, open_client(http) as client:
        await client.open()
        await client.post({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert "result" in await client.ask("tools/list", id=2)
        assert "result" in await client.ask("tools/list", id=3)
        assert server.quotas.in_flight == 0
    assert set(server.seen) == {1}
    assert len(server.seen) >= 3


async def test_a_stream_that_its_host_cancels_leaves_nothing() -> None:
    quotas = Quotas(Limits())
    app = endpoints_of(tools(), quotas)
    async with asgi(app, lifespan=False) as http:
        stream = Stream([b""], unfinished=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.run, app, http.scope_of("GET", "/sse", {}))
            endpoint = urljoin("/sse", (await stream.event()).data.decode())
            assert (await http.post(initialize(OLD[0]), endpoint)).status == 202
            assert quotas.memory.size > 0
            tasks.cancel_scope.cancel()
        assert (await http.post(request(OLD[0], "ping"), endpoint)).status == 404
        assert quotas.memory.size == 0


async def test_memory_of_a_client_is_kept_while_its_stream_is_open() -> None:
    server, quotas = Server("tester", drain=0, subscribe=True), Quotas(Limits())

    @server.resource("memo://{name}")
    def memo(name: str) -> str:
        return name

    app = endpoints_of(server, quotas)
    async with asgi(app, lifespan=False) as http, open_client(http) as client:
        assert quotas.memory.size == 0
        hello = initialize(OLD[0])
        kept = decoded_size(encode_message(hello))
        await client.post(hello)
        await client.stream.message()
        assert quotas.memory.size == kept
        await client.post(INITIALIZED)
        uris = ["memo://y", f"memo://{'x' * 2 * kept}", "memo://z"]
        for number, uri in enumerate(uris):
            subscribe = request(OLD[0], "resources/subscribe", {"uri": uri}, id=number)
            assert (await client.post(subscribe)).status == 202
            assert (await client.stream.message())["id"] == number
            before = sum(len(each) + 100 for each in uris[:number])
            kept = max(kept, len(encode_message(subscribe)) + before)
            assert quotas.memory.size == kept
        client.stream.disconnect()
        await client.stream.finished.wait()
        assert quotas.memory.size == 0
