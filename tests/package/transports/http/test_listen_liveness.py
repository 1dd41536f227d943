"""A subscription learns that its server is gone, or no longer heard, within a bound.

Source: basic/utilities/ping (to 2025-11-25); server/discover (2026-07-28).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.client.listen import ListeningAgain, ToolsChanged
from mcpgen_runtime.errors import (
    HttpStatusError,
    RequestTimeoutError,
    ResponseLostError,
    TransportError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package import http_script
from package.http_script import Script, error, result
from package.http_server import Asked, Handler, HttpServer, Reply
from package.live import FakeServer
from package.transports.http.faulty_proxy import FAULTLESS, Fault, FaultyProxy
from package.wire import (
    ACKNOWLEDGED,
    CHANGED,
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    SESSIONS,
    stream_message,
)

pytestmark = [pytest.mark.slow, pytest.mark.processes]

TOOLS_CHANGED = CHANGED["toolsListChanged"]
AT_ONCE = (0.0, 0.0)
FOR_A_WHILE = (0.05,) * 100
IDLE = 0.1
HTTP = (*SESSIONS, *PER_REQUEST)

sessions = pytest.mark.parametrize("revision", SESSIONS)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


SOON = Timeouts(http=HttpTimeouts(first_pause=0.01, longest_pause=0.01))
scripted = partial(http_script.connect_scripted, timeouts=SOON)


class Listened(Script):
    """A server that holds streams open: one of each session, and those of subscriptions."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision, "s")
        self.streams: list[tuple[Asked, Reply]] = []
        self.on["GET"] = self.keep_open
        self.on[LISTEN] = self.agree

    async def keep_open(self, asked: Asked, reply: Reply) -> None:
        """Begin the stream of the session."""
        self.streams.append((asked, reply))
        await reply.stream()
        await reply.gone()

    async def agree(self, asked: Asked, reply: Reply) -> None:
        """Begin the stream of a subscription."""
        self.streams.append((asked, reply))
        await reply.stream()
        wanted = asked.message["params"]["notifications"]
        await reply.event(
            stream_message(self.revision, ACKNOWLEDGED, asked.id, notifications=wanted)
        )
        await reply.gone()

    async def change(self) -> None:
        """Tell on the last stream that the tools have changed."""
        asked, reply = self.streams[-1]
        if self.revision in HANDSHAKE:
            await reply.event({"jsonrpc": "2.0", "method": TOOLS_CHANGED})
        else:
            await reply.event(stream_message(self.revision, TOOLS_CHANGED, asked.id))


def sign_of_life(revision: str) -> str:
    return "ping" if revision in HANDSHAKE else "server/discover"


@asynccontextmanager
async def connect_through_proxy(
    script: Script,
) -> AsyncIterator[tuple[Any, HttpServer, FaultyProxy]]:
    """A client, behind a proxy, of a server."""
    async with (
        HttpServer(script) as server,
        FaultyProxy(urlsplit(server.url).port or 0) as proxy,
        connect(proxy.url, revision=script.revision, timeouts=SOON) as client,
    ):
        yield client, server, proxy


@pytest.mark.parametrize("revision", HTTP)
async def test_a_server_behind_a_dead_line_is_an_error(
    revision: str,
) -> None:
    script = Listened(revision)
    async with (
        connect_through_proxy(script) as (client, server, proxy),
        client.listen(tools=True, idle_seconds=IDLE, retry_seconds=FOR_A_WHILE[:4]) as changes,
    ):
        if revision in HANDSHAKE:
            await server.until("GET")
        proxy.plan = lambda asked: Fault(up=0, then="silence")
        with anyio.fail_after(10), pytest.raises((TransportError, RequestTimeoutError)):
            await anext(changes)


@pytest.mark.parametrize("revision", HTTP)
async def test_a_line_that_carries_again_is_listened_on_again(revision: str) -> None:
    script = Listened(revision)
    async with (
        connect_through_proxy(script) as (client, server, proxy),
        client.listen(tools=True, idle_seconds=IDLE, retry_seconds=FOR_A_WHILE) as changes,
    ):
        await server.until("GET" if revision in HANDSHAKE else LISTEN)
        proxy.plan = lambda asked: Fault(up=0, then="silence")

        async def mend() -> None:
            await proxy.struck(2)
            proxy.plan = lambda asked: FAULTLESS

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mend)
            with anyio.fail_after(10):
                assert await anext(changes) == ListeningAgain()
        await script.change()
        with anyio.fail_after(10):
            assert await anext(changes) == ToolsChanged()


@sessions
async def test_refused_connections_end_a_subscription_in_a_session(
    revision: str,
) -> None:
    async with scripted(Listened(revision)) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            await server.until("GET")
            server.kill()
            with anyio.fail_after(10), pytest.raises(TransportError):
                await anext(changes)
        await server.start()
        await client.list_tools()


@sessions
@pytest.mark.parametrize("status", [503, 409])
async def test_a_session_stream_that_is_reopened_is_listened_to_again(
    revision: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    until_cut = anyio.Event()
    script = Listened(revision)
    script.once["GET"] = [cut_after(until_cut), *[refusal(status)] * 3]
    async with scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, retry_seconds=FOR_A_WHILE) as changes:
            until_cut.set()
            with anyio.fail_after(10):
                assert await anext(changes) == ListeningAgain()
            await script.change()
            with anyio.fail_after(10):
                assert await anext(changes) == ToolsChanged()
    assert caplog.text.count("the stream of events is gone") == 3


def cut_after(event: anyio.Event) -> Handler:
    """A handler whose stream breaks when an event is set."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await event.wait()
        await reply.cut()

    return handler


def refusal(status: int) -> Handler:
    """A handler that refuses."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status)

    return handler


@sessions
@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, HttpStatusError), (405, HttpStatusError), (409, ResponseLostError)],
)
async def test_a_session_stream_that_is_not_reopened_ends_listening(
    revision: str, status: int, kind: type[TransportError]
) -> None:
    until_cut = anyio.Event()
    script = Listened(revision)
    script.on["GET"] = refusal(status)
    script.once["GET"] = [cut_after(until_cut)]
    async with scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, retry_seconds=FOR_A_WHILE[:4]) as changes:
            until_cut.set()
            with anyio.fail_after(10), pytest.raises(kind, match=f"HTTP {status}"):
                await anext(changes)
        with pytest.raises(kind):
            async with client.listen(tools=True):
                pytest.fail("nothing can be heard")
        await client.list_tools()


@sessions
async def test_a_session_without_a_stream_is_listened_to_as_before(
    revision: str,
) -> None:
    async def changes_first(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "method": TOOLS_CHANGED})
        await reply.event(result(asked))
        await reply.end()

    script = Script(revision, "s")
    async with (
        scripted(script) as (client, server),
        client.listen(tools=True, idle_seconds=4 * IDLE) as changes,
    ):

        async def call() -> None:
            await server.until("ping", times=2)
            script.on["tools/list"] = changes_first
            await client.list_tools()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            with anyio.fail_after(10):
                assert await anext(changes) == ToolsChanged()


@pytest.mark.requirement("ping.either-side")
@pytest.mark.parametrize("revision", HTTP)
@pytest.mark.parametrize("answers", ["result", "error", "status"])
async def test_any_answer_is_a_sign_of_life(revision: str, answers: str) -> None:
    async def refuse(asked: Asked, reply: Reply) -> None:
        if answers == "error":
            await reply.json(error(asked, -32601))
        else:
            await reply.whole(400, b"what?")

    script, asked = Listened(revision), sign_of_life(revision)
    async with (
        scripted(script) as (client, server),
        client.listen(tools=True, idle_seconds=4 * IDLE) as changes,  # an answer may take as long
    ):
        if answers != "result":
            script.on[asked] = refuse

        async def change() -> None:
            await server.until(asked, times=2)
            await script.change()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            with anyio.fail_after(10):
                assert await anext(changes) == ToolsChanged()


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_over_any_channel_is_asked(revision: str) -> None:
    server = FakeServer(revision)
    async with (
        connect(server) as client,
        client.listen(tools=True, idle_seconds=0.01) as changes,
    ):

        async def answer() -> None:
            for _ in range(2):
                ping = await server.next()
                assert ping["method"] == "ping"
                await server.answer(ping, {})
            await server.notify(TOOLS_CHANGED, {})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            with anyio.fail_after(10):
                assert await anext(changes) == ToolsChanged()


async def test_the_system_watches_connections_that_are_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: set[tuple[object, ...]] = set()

    def record(raw: socket.socket, *option: Any) -> None:
        options.add(option)
        set_option(raw, *option)

    set_option = socket.socket.setsockopt
    monkeypatch.setattr(socket.socket, "setsockopt", record)
    async with scripted(Script(HTTP[-1])) as (client, _):
        assert await client.list_tools()
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in options
    if hasattr(socket, "TCP_KEEPIDLE"):
        assert (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30) in options


@pytest.mark.parametrize("revision", HTTP)
async def test_nothing_is_asked_where_that_is_switched_off(revision: str) -> None:
    async with (
        scripted(Listened(revision)) as (client, server),
        client.listen(tools=True, idle_seconds=None) as changes,
    ):
        before = server.order().count(sign_of_life(revision))
        with anyio.move_on_after(3 * IDLE):
            await anext(changes)
        assert server.order().count(sign_of_life(revision)) == before


@pytest.mark.parametrize("revision", HTTP)
async def test_a_subscription_that_nobody_waits_for_asks_nothing(revision: str) -> None:
    async with (
        scripted(Listened(revision)) as (client, server),
        client.listen(tools=True, idle_seconds=0.01),
    ):
        before = server.order().count(sign_of_life(revision))
        await client.list_tools()
        await client.list_tools()
        assert server.order().count(sign_of_life(revision)) == before
