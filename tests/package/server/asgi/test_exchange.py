"""Calls as hosts make them: each has its own context, is made once, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import Http, asgi, fields_of, speaking
from kit.asgi_stream import Reply
from kit.live import server_with
from kit.waiting import WaitingServer
from kit.wire import SESSIONS, cancelled_notification, encode_message, request, sessions, streamable
from mcpgen_runtime import Context, InvalidParamsError, Server, ToolError

pytestmark = pytest.mark.processes

waits = pytest.mark.parametrize("waits", [False, True], ids=["at once", "waits"])


def add_request(revision: str, **arguments: Any) -> dict[str, Any]:
    """A call of the tool `add`."""
    return request(revision, "tools/call", {"name": "add", "arguments": arguments})


async def post(http: Http, revision: str, message: dict[str, Any]) -> Reply:
    """Post a message, with the header fields of its revision."""
    return await http.post(message, **fields_of(revision, message))


@streamable
async def test_each_tool_is_called_as_it_is_registered_now(revision: str) -> None:
    server, message = Server("adds"), add_request(revision, a=1, b=2)

    @server.tool(name="add")
    async def add(a: int, b: int) -> str:
        return str(a + b)

    async def multiply(a: float, b: float) -> str:
        return str(a * b)

    async with speaking(server, revision) as http:
        for _ in range(2):
            assert (await post(http, revision, message)).text == "3"
        server.remove_tool("add")
        assert b"unknown tool" in (await post(http, revision, message)).body
        server.tool(name="add")(multiply)
        for _ in range(2):
            assert (await post(http, revision, message)).text == "2.0"
        server.disable("add")
        assert b"unknown tool" in (await post(http, revision, message)).body


TEXTS = ["null", "100 % of %(id)b", 'quotes "', "\u00e9\u2028", "", "x" * 100_000]
IDS: list[Any] = [7, "seven", 2**100, "x" * 1024, 'a "%(id)b"\u2028', ""]


@streamable
async def test_texts_and_ids_of_every_kind_arrive_as_they_are(revision: str) -> None:
    async def add(text: str, levels: list[Literal["low", "high"]] | None = None) -> str:
        return f"{text}{levels or ''}"

    async with speaking(server_with(add), revision) as http:
        for identifier, text in zip(IDS, TEXTS, strict=False):
            message = {**add_request(revision, text=text), "id": identifier}
            reply = await post(http, revision, message)
            assert (reply.text, reply.json["id"]) == (text, identifier)
        reply = await post(http, revision, add_request(revision, text="", levels=["low"]))
        assert reply.text == "['low']"
        for invalid in (2**129, "x" * 1025, True):
            message = {**add_request(revision, text=""), "id": invalid}
            reply = await post(http, revision, message)
            assert (reply.status, "error" in reply.json) == (400, True)


@streamable
@pytest.mark.parametrize("error", [ToolError, InvalidParamsError, ValueError, anyio.EndOfStream])
async def test_a_function_is_called_once_however_it_ends(
    revision: str, error: type[Exception]
) -> None:
    server, calls = Server("fails"), list[str]()

    @server.tool()
    async def add(text: str, more: dict[str, int]) -> str:
        calls.append(text)
        raise error("no")

    async with speaking(server, revision) as http:
        for text, more in (("", {}), ("[" * 500, {"a": 1}), ("x", {"_meta": 1})):
            await post(http, revision, add_request(revision, text=text, more=more))
            assert calls.pop() == text
            assert calls == []


@streamable
@waits
@pytest.mark.parametrize("arrives", [True, False], ids=["with its head", "later"])
async def test_a_call_is_made_once_though_its_client_leaves(
    revision: str, waits: bool, arrives: bool
) -> None:
    waiting = WaitingServer()
    if not waits:
        waiting.go.set()
    params = {"name": "wait", "arguments": {"number": 1}}
    message = request(revision, "tools/call", params)
    body, fields = encode_message(message), fields_of(revision, message)
    async with speaking(waiting.server, revision) as http:
        for count in (1, 2):
            parts = [body] if arrives else []
            async with http.stream(
                "POST", parts=parts, unfinished=not arrives, begun=False, fields=fields
            ) as stream:
                stream.stop_reading()
                await anyio.wait_all_tasks_blocked()
                if not arrives:
                    stream.upload(body, last=True)
                await waiting.until(begun=count)
                stream.disconnect()
            if revision in SESSIONS:
                waiting.go.set()
            await stream.finished.wait()
        await anyio.wait_all_tasks_blocked()
        assert waiting.begun == len(waiting.returned) + len(waiting.cancelled) == 2


@streamable
@waits
async def test_a_call_has_the_context_of_its_own_request(revision: str, waits: bool) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield "state"

    async def tell(ctx: Context) -> str:
        if waits:
            await anyio.lowlevel.checkpoint()
        assert ctx.http_request is not None
        return f"{ctx.http_request.headers['x-tenant']} {ctx.http_request.client} {ctx.state}"

    async with asgi(server_with(tell, lifespan=lifespan)) as http:
        http.fields["x-tenant"] = "a"
        await http.begin(revision)
        for tenant, address in (("b", "192.0.2.1"), ("c", "192.0.2.2")):
            http.fields["x-tenant"] = tenant
            http.scope["client"] = (address, 1)
            reply = await http.ask(revision, "tools/call", {"name": "tell"})
            assert reply.text == f"{tenant} {(address, 1)} state"


@streamable
@waits
async def test_what_the_send_of_a_host_raises_is_raised_to_it(revision: str, waits: bool) -> None:
    async def add() -> str:
        return await anyio.to_thread.run_sync(str) if waits else ""

    async def send(message: Any) -> None:
        raise RuntimeError("a host has a bug")

    async with speaking(server_with(add), revision) as http:
        app, http.app = http.app, lambda scope, receive, _: app(scope, receive, send)
        with pytest.raises(RuntimeError, match="a host has a bug"):
            await post(http, revision, add_request(revision))


@sessions
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_waiting_call_is_cancelled_and_its_id_used_again(
    revision: str, stubborn: bool
) -> None:
    server, begun, ends = Server("stubborn"), anyio.Event(), list[str]()

    @server.tool()
    async def wait(forever: bool) -> str:
        try:
            with anyio.CancelScope():  # scopes of the tool nest in that of the request
                if forever:
                    begun.set()
                    await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            ends.append("cancelled")
            if not stubborn:
                raise
        return "ended"

    def call(forever: bool) -> dict[str, Any]:
        return {"name": "wait", "arguments": {"forever": forever}}

    async with speaking(server, revision) as http:
        async with http.asking(revision, "tools/call", call(True), begun=False) as stream:
            await begun.wait()
            await http.post(cancelled_notification(1))
            assert (await http.ask(revision, "tools/call", call(False))).text == "ended"
            await stream.end()
            assert b"result" not in stream.raw
        assert ends == ["cancelled"]
