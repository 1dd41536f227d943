"""The plain way of a request and the whole way give the same answers, byte for byte."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import anyio
import pytest

from mcp_protocol import Context, Server, ToolError
from mcp_protocol.errors import InvalidParamsError
from mcp_protocol.runtime.peer import Peer
from mcp_protocol.server.asgi import plain_calls
from package.asgi_client import Http, asgi, fields_of
from package.wire import HANDSHAKE, STREAMABLE, encoded, request

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("revision", STREAMABLE)]


@dataclass
class Point:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ZeroDivisionError("not there")


ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


def varied_server() -> Server:
    """A server whose tools return, fail, wait and ask for their client."""
    server = Server("varied")

    @server.tool()
    async def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool()
    async def object() -> dict[str, float]:
        return {"x": 1.5}

    @server.tool()
    async def not_finite() -> dict[str, float]:
        return {"x": float("nan")}

    @server.tool()
    async def refuses() -> str:
        raise ToolError("no")

    @server.tool()
    async def crashes() -> str:
        raise RuntimeError("no luck")

    @server.tool()
    async def breaks_protocol() -> str:
        raise InvalidParamsError("not like this")

    @server.tool()
    async def cancels_itself() -> str:
        raise anyio.get_cancelled_exc_class()()

    @server.tool()
    async def waits() -> str:
        await anyio.lowlevel.checkpoint()
        return "waited"

    @server.tool()
    async def waits_and_fails() -> str:
        with anyio.move_on_after(60):
            await anyio.lowlevel.checkpoint()
        raise ToolError("later")

    @server.tool()
    async def reports(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.error("something")
        return "reported"

    add_others(server)
    return server


def add_others(server: Server) -> None:
    """Add further tools, a prompt and a resource."""

    @server.tool()
    async def dated(day: date, more: Point | None = None) -> str:
        return f"{day.year} {more}"

    @server.tool()
    async def knows(ctx: Context) -> str:
        return f"{ctx.request_id} {ctx.revision} {ctx.session_id is None} {ctx.principal.subject}"

    @server.tool()
    def threaded() -> str:
        return "in a thread"

    @server.prompt()
    async def greeting(who: str) -> str:
        return f"Hello {who}"

    @server.resource("memo://one")
    async def memo() -> str:
        return "one"


def tool(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a result": tool("add", a=1, b=2),
    "converted arguments": tool("add", a="1", b=2.0),
    "wrong arguments": tool("add", a="x"),
    "no arguments": ("tools/call", {"name": "add"}),
    "an unknown tool": tool("no-such"),
    "a structured result": tool("object"),
    "a result without JSON form": tool("not_finite"),
    "an argument that JSON has no type for": tool("dated", day="2026-07-28", more={"x": 1}),
    "a wrong one": tool("dated", day="yesterday"),
    "an argument whose type fails": tool("dated", day="2026-07-28", more={"x": -1}),
    "a tool error": tool("refuses"),
    "a failure": tool("crashes"),
    "an error of the protocol": tool("breaks_protocol"),
    "a cancellation that is none": tool("cancels_itself"),
    "a tool that waits": tool("waits"),
    "a tool that waits and fails": tool("waits_and_fails"),
    "messages before the response": tool("reports"),
    "a tool that looks at its request": tool("knows"),
    "a plain function": tool("threaded"),
    "a list": ("tools/list", {}),
    "a wrong cursor": ("tools/list", {"cursor": "x"}),
    "a prompt": ("prompts/get", {"name": "greeting", "arguments": {"who": "you"}}),
    "a resource": ("resources/read", {"uri": "memo://one"}),
    "an unknown resource": ("resources/read", {"uri": "memo://two"}),
    "an unknown method": ("no/such", {}),
}
IDS: list[Any] = [7, "seven", 1.0, 2**100, 2**129, "x" * 1024, "x" * 1025, True, None]


@pytest.fixture(params=[True, False], ids=["plain", "whole"])
def plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether requests may go the plain way."""
    enabled: bool = request.param
    monkeypatch.setattr(plain_calls, "ENABLED", enabled)
    return enabled


async def answers(
    revision: str, messages: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> list[tuple[int, bytes]]:
    """Status and body of the answer to each message, on one way; without ids of events."""
    monkeypatch.setattr(plain_calls, "ENABLED", enabled)
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
        monkeypatch.setattr(Peer, "handle", recording(Peer.handle, served))
        reply = await http.post(message, **fields_of(revision, message))
        assert reply.result["content"][0]["text"] == "3"
    own_task = revision in HANDSHAKE and anyio_backend_name == "trio"
    assert bool(served) is (own_task or not plain)


def recording(function: Callable[..., Awaitable[None]], calls: list[object]) -> Any:
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
            return {"type": "http.request", "body": encoded(message), "more_body": False}

        message = request(revision, "tools/call", ADD)
        scope = http.scope_of("POST", None, fields_of(revision, message))
        gc.collect()
        before = len([each for each in gc.get_objects() if type(each) is Peer])
        for _ in range(3):
            await http.app(scope, receive, send)
        gc.collect()
        assert len([each for each in gc.get_objects() if type(each) is Peer]) == before
