"""The plain way of a request and the whole way give the same answers, byte for byte."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from mcpgen_runtime import Context, Server
from mcpgen_runtime.runtime.peer import Peer
from mcpgen_runtime.server import planned_calls
from package.asgi_client import Http, asgi, fields_of
from package.server.varied_tools import ADD, REQUESTS, varied_server
from package.wire import HANDSHAKE, STREAMABLE, encode_message, request

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("revision", STREAMABLE)]


IDS: list[Any] = [7, "seven", 1.0, 2**100, 2**129, "x" * 1024, "x" * 1025, True, None]


@pytest.fixture(params=[True, False], ids=["plain", "whole"])
def plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether requests may go the plain way."""
    enabled: bool = request.param
    monkeypatch.setattr(planned_calls, "ENABLED", enabled)
    return enabled


async def answers(
    revision: str, messages: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> list[tuple[int, bytes]]:
    """Status and body of the answer to each message, on one way; without ids of events."""
    monkeypatch.setattr(planned_calls, "ENABLED", enabled)
    async with asgi(varied_server().asgi()) as http:
        await begin(http, revision)
        replies = list[tuple[int, bytes]]()
        for message in messages:
            for _ in range(2):  # the second repeats what the first stated
                reply = await http.post(message, **fields_of(revision, message))
                replies.append((reply.status, re.sub(rb"id: [^\n]*", b"id", reply.body)))
        return replies


async def begin(http: Http, revision: str) -> None:
    if revision in HANDSHAKE:
        await http.initialize(revision)


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("meta", [{}, {"progressToken": 5}], ids=["", "with progress"])
async def test_both_ways_answer_alike(
    revision: str, case: str, meta: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    method, params = REQUESTS[case]
    messages = [request(revision, method, params, meta=meta)]
    plain = await answers(revision, messages, monkeypatch, True)
    assert plain == await answers(revision, messages, monkeypatch, False)


async def test_both_ways_read_ids_alike(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [request(revision, "tools/call", ADD) | {"id": each} for each in IDS]
    plain = await answers(revision, messages, monkeypatch, True)
    assert plain == await answers(revision, messages, monkeypatch, False)


async def test_a_call_that_nobody_observes_makes_no_peer(
    revision: str, plain: bool, monkeypatch: pytest.MonkeyPatch, anyio_backend_name: str
) -> None:
    async with asgi(varied_server().asgi()) as http:
        await begin(http, revision)
        message = request(revision, "tools/call", ADD)
        await http.post(message, **fields_of(revision, message))
        served: list[object] = []
        monkeypatch.setattr(Peer, "handle", record_calls(Peer.handle, served))
        reply = await http.post(message, **fields_of(revision, message))
        assert reply.result["content"][0]["text"] == "3"
    own_task = revision in HANDSHAKE and anyio_backend_name == "trio"
    assert bool(served) is (own_task or not plain)


def record_calls(function: Callable[..., Awaitable[None]], calls: list[object]) -> Any:
    async def call(*arguments: Any) -> None:
        calls.append(arguments)
        await function(*arguments)

    return call


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_context_outlives_its_call_without_harm(revision: str, plain: bool) -> None:
    server, later = Server("late"), list[asyncio.Task[None]]()

    @server.tool()
    async def leaves(ctx: Context) -> str:
        later.append(asyncio.create_task(speak(ctx)))
        return "left"

    async def speak(ctx: Context) -> None:
        await ctx.progress(1)
        assert ctx.request_id == 1

    async with asgi(server.asgi()) as http:
        await begin(http, revision)
        message = request(revision, "tools/call", {"name": "leaves"}, meta={"progressToken": 1})
        for _ in range(3):
            reply = await http.post(message, **fields_of(revision, message))
            assert reply.result["content"][0]["text"] == "left"
            await later[-1]


async def test_header_fields_are_compared_on_both_ways(revision: str, plain: bool) -> None:
    async with asgi(varied_server().asgi()) as http:
        await begin(http, revision)
        message = request(revision, "tools/call", ADD)
        fields = fields_of(revision, message)
        assert (await http.post(message, **fields)).status == 200
        for name, value in fields.items():
            if value is None or name == "mcp-session-id":
                continue
            reply = await http.post(message, **{**fields, name: "2000-01-01"})
            assert reply.status == 400, name


async def test_a_call_leaves_nothing_behind(revision: str, plain: bool) -> None:
    async with asgi(varied_server().asgi()) as http:
        await begin(http, revision)
        for name in ("add", "waits", "reports"):
            arguments = ADD["arguments"] if name == "add" else {}
            message = request(revision, "tools/call", {"name": name, "arguments": arguments})
            for _ in range(2):
                await http.post(message, **fields_of(revision, message))
        sent: list[MutableMapping[str, Any]] = []

        async def send(each: MutableMapping[str, Any]) -> None:
            sent.append(each)

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": encode_message(message), "more_body": False}

        message = request(revision, "tools/call", ADD)
        scope = http.scope_of("POST", None, fields_of(revision, message))
        gc.collect()
        before = len([each for each in gc.get_objects() if type(each) is Peer])
        for _ in range(3):
            await http.app(scope, receive, send)
        gc.collect()
        assert len([each for each in gc.get_objects() if type(each) is Peer]) == before
