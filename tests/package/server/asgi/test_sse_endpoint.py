"""HTTP+SSE: one endpoint for the stream, one for what is posted."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import anyio
import pytest

from kit.asgi_client import SSE, Http, asgi
from kit.asgi_stream import Reply, Stream
from kit.live import server_with
from kit.rules import revisions_holding
from kit.waiting import WaitingServer
from kit.wire import INITIALIZED, initialize, legacy, request, text_in
from mcpgen_runtime import Context, Limits, Server
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes


OLD = revisions_holding("sse.two-endpoints")
PATHS: Any = {"sse_path": "/sse", "messages_path": "/messages"}
ASKS = {"name": "asks", "arguments": {}}
old = pytest.mark.parametrize("revision", OLD)


def tools() -> Server:
    def echo(text: str) -> str:
        return text

    async def asks(ctx: Context) -> str:
        await ctx.info("about to ask")
        result = await ctx.request("roots/list")
        return str(len(result.roots))

    return server_with(echo, asks, drain=0)


class Client:
    """A client with its stream open."""

    def __init__(self, http: Http, stream: Stream, endpoint: str) -> None:
        self.http = http
        self.stream = stream
        self.endpoint = endpoint

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
        return answer["result"]


@asynccontextmanager
async def open_client(http: Http) -> AsyncIterator[Client]:
    async with http.stream("GET", None, "/sse") as stream:
        event = await stream.event()
        assert event.type == "endpoint"
        yield Client(http, stream, urljoin("/sse", event.data.decode()))


@asynccontextmanager
async def opened(
    server: Server | None = None, revision: str = OLD[0], **limits: Any
) -> AsyncIterator[Client]:
    """A client of a server with these limits that has shaken hands."""
    async with (
        asgi(server or tools(), limits=Limits(**limits), **PATHS) as http,
        open_client(http) as client,
    ):
        assert (await client.open(revision))["protocolVersion"] == revision
        yield client


@pytest.mark.requirement("sse.two-endpoints", "sse.endpoint-event", "sse.endpoint-event-first")
@pytest.mark.requirement(
    "auth-security.session-id-secure", "transport-security.session-id-nondeterministic"
)
@old
async def test_the_stream_begins_by_saying_where_to_post_which_nobody_guesses(
    revision: str,
) -> None:
    ids: list[str] = []
    async with asgi(tools(), **PATHS) as http:
        for _ in range(100):
            random.seed(7)
            async with http.stream("GET", None, "/sse") as stream:
                assert stream.fields["content-type"] == "text/event-stream"
                assert stream.fields["x-accel-buffering"] == "no"
                first = await stream.event()
                path, _, identifier = first.data.decode().partition("?session_id=")
                assert (first.type, path) == ("endpoint", "/messages")
                assert (await http.post(initialize(revision), first.data.decode())).status == 202
                ids.append(identifier)
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


@legacy  # a client that fell back has a later one
async def test_a_server_asks_and_tells_on_the_stream(revision: str) -> None:
    server = tools()
    async with opened(server, revision) as client:
        await client.post(request(revision, "tools/call", ASKS, id=7))
        assert (await client.stream.message())["method"] == "notifications/message"
        question = await client.stream.message()
        assert question["method"] == "roots/list"
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        answer = await client.stream.message()
        assert (answer["id"], text_in(answer)) == (7, "0")
        server.remove_tool("echo")
        assert (await client.stream.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("sse.client-closes-stream", "sse.shutdown-by-close")
@old
async def test_when_the_stream_closes_its_endpoint_is_gone(revision: str) -> None:
    async with opened() as client:
        client.stream.disconnect()
        with anyio.fail_after(5):
            await client.stream.finished.wait()
        assert (await client.post(request(revision, "ping"))).status == 404


async def test_a_stream_that_its_host_cancels_leaves_nothing() -> None:
    async with asgi(tools(), **PATHS) as http:
        stream = Stream([b""], unfinished=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.run, http.app, http.scope_of("GET", "/sse", {}))
            endpoint = urljoin("/sse", (await stream.event()).data.decode())
            assert (await http.post(initialize(OLD[0]), endpoint)).status == 202
            tasks.cancel_scope.cancel()
        assert (await http.post(request(OLD[0], "ping"), endpoint)).status == 404


@pytest.mark.requirement("sse.shutdown-by-close", "lifecycle.shutdown-http")
@old
async def test_the_end_of_the_server_closes_the_stream(revision: str) -> None:
    async with opened(revision=revision) as client:
        await client.http.shut_down()
        assert await client.stream.messages() == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(
            (f"/messages{query}", 404)
            for query in ("", "?session_id=", "?session_id=x", "?a=%FF;&")
        ),
        ("ENDPOINT" + "&a=1" * 9, 202),
        ("ENDPOINT" + "&a=1" * 10, 404),  # more parameters than are read
    ],
)
async def test_posts_are_for_the_stream_that_they_name(path: str, status: int) -> None:
    async with asgi(tools(), **PATHS) as http, open_client(http) as client:
        place = path.replace("ENDPOINT", client.endpoint)
        assert (await http.post(initialize(OLD[0]), place)).status == status


@pytest.mark.parametrize(
    ("message", "fields", "status", "text"),
    [
        (b"{", {}, 400, "JSON"),
        (b'{"jsonrpc": "2.0"}', {}, 400, ""),
        (request(OLD[0], "ping"), {"content-type": "text/plain"}, 415, "Content-Type"),
        (request(OLD[0], "ping"), {"accept": "text/plain"}, 202, ""),
        (b" " * 5000, {}, 413, "Limits.body"),
        (initialize(OLD[0], {"experimental": {"x": {"y": "z" * 999}}}), {}, 413, "initialize"),
        (b"[1,1]", {}, 400, "got an array"),
    ],
)
async def test_unacceptable_posts_are_refused_at_once(
    message: Any, fields: dict[str, str], status: int, text: str
) -> None:
    async with opened(body=4096, initialize=1000) as client:
        reply = await client.post(message, **fields)
        assert (reply.status, text in reply.body.decode()) == (status, True)
        assert "result" in await client.ask("ping", id="still")


async def test_requests_over_the_stream_limit_are_refused_not_answers() -> None:
    async with opened(per_session=1) as client:
        await client.post(request(OLD[0], "tools/call", ASKS, id=7))
        await client.stream.message()
        question = await client.stream.message()
        assert (await client.post(request(OLD[0], "ping", id=8))).status == 503
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert (await client.stream.message())["id"] == 7
        assert "result" in await client.ask("ping", id=9)


@pytest.mark.parametrize(
    ("limits", "size", "most"),
    [({"per_session": 5}, 0, 5), ({"body": 4096}, 900, 4), ({"session_bytes": 20_000}, 4000, 4)],
)
async def test_posts_of_a_client_that_does_not_read_are_bounded(
    limits: dict[str, Any], size: int, most: int
) -> None:
    changed = {**INITIALIZED, "params": {"padding": "x" * size}}
    async with opened(**limits) as client:
        client.stream.stop_reading()
        await client.post(request(OLD[0], "no/such"))  # whose answer waits to be read
        statuses = [(await client.post(changed)).status for _ in range(most + 2)]
        assert statuses == [202] * most + [503] * 2
        client.stream.read_on()
        assert (await client.stream.message())["error"]["code"] == -32601
        padded = {"_meta": {"padding": "x" * size}}
        for number in range(9):
            assert "result" in await client.ask("ping", padded, id=number)


async def test_requests_of_all_clients_and_transports_share_a_limit() -> None:
    waiting = WaitingServer(drain=0)
    async with opened(waiting.server, in_flight=1) as client:
        assert (await client.post(INITIALIZED)).status == 202  # neither counts for long
        assert "result" in await client.ask("tools/list")
        params = {"name": "wait", "arguments": {"number": 1}}
        assert (await client.post(request(OLD[0], "tools/call", params))).status == 202
        await waiting.until(begun=1)
        for reply in (
            await client.post(request(OLD[0], "ping", id=8)),
            await client.http.post(initialize("2025-06-18")),
        ):
            assert (reply.status, "Limits.in_flight" in reply.error["message"]) == (503, True)
        waiting.go.set()
        assert "result" in await client.stream.message()
        assert (await client.http.post(initialize("2025-06-18"))).status == 200


@pytest.mark.requirement("transport-security.validate-origin", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("POST", "/sse", {}, 405),
        ("DELETE", "/sse", {}, 405),
        ("GET", "/messages", {}, 405),
        ("GET", "/elsewhere", {}, 404),
        ("GET", "/sse", {"accept": "application/json"}, 406),
        ("GET", "/sse", {"origin": "http://evil.example"}, 403),
        ("POST", "/messages", {"origin": "http://evil.example"}, 403),
    ],
)
async def test_other_requests_than_those_of_the_endpoints_are_refused(
    method: str, path: str, fields: dict[str, str], status: int
) -> None:
    async with asgi(tools(), **PATHS) as http:
        reply = await http.request(method, b"{}" if method == "POST" else None, path, **fields)
        assert reply.status == status
        assert reply.fields.get("allow") == (
            None if status != 405 else "GET" if path == "/sse" else "POST"
        )
    async with asgi(tools()) as http:  # which does not enable them
        assert (await http.request(method, None, path, accept=SSE)).status == 404


async def test_the_memory_of_a_client_that_left_is_free_again() -> None:
    server, uri = Server("tester", drain=0, subscribe=True), f"memo://{'x' * 5000}"
    server.resource("memo://{name}")(lambda name: name)
    async with asgi(server, limits=Limits(session_bytes=12_000), **PATHS) as http:
        for _ in range(3):
            async with open_client(http) as client:
                await client.open()
                assert "result" in await client.ask("resources/subscribe", {"uri": uri})
                too_much = request(OLD[0], "resources/subscribe", {"uri": f"{uri}-"}, id=2)
                assert (await client.post(too_much)).status == 503
                client.stream.disconnect()
                await client.stream.finished.wait()
