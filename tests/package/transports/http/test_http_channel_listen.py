"""Listening over HTTP: by the stream of a POST, or by that of a session; and whether it lives."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import anyio
import pytest

from kit import http_script
from kit.http_script import Script, error, says, stay_silent
from kit.http_server import Asked, Reply
from kit.rules import revision_fixture
from kit.wire import (
    ACKNOWLEDGED,
    CHANGED,
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    SESSIONS,
    UPDATED,
    facts,
    stream_message,
)
from mcpgen_runtime import (
    HttpStatusError,
    ListeningAgain,
    RemoteError,
    RequestTimeoutError,
    ResourceUpdated,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
    TransportError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts

pytestmark = [pytest.mark.processes, pytest.mark.on_asyncio]

TOOLS_CHANGED = CHANGED["toolsListChanged"]
AT_ONCE = (0.0, 0.0, 0.0)
FOR_A_WHILE = (0.05,) * 100
IDLE = 0.1

per_request = pytest.mark.parametrize("revision", PER_REQUEST)
sessions = pytest.mark.parametrize("revision", SESSIONS)
revision = revision_fixture((*SESSIONS, *PER_REQUEST))

SOON = Timeouts(http=HttpTimeouts(first_pause=0.01, longest_pause=0.01))
scripted = partial(http_script.connect_scripted, timeouts=SOON)


class Listened(Script):
    """A server that holds streams open: one of each session, and those of subscriptions."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision, "s" if revision in SESSIONS else None)
        self.streams: list[tuple[Asked, Reply]] = []
        self.until_cut = anyio.Event()
        self.kind = "GET" if revision in SESSIONS else LISTEN
        self.on[self.kind] = self.keep_open

    async def keep_open(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream, and keep it open until the client goes."""
        await self.begin(asked, reply)
        await reply.gone()

    async def break_later(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream that will break."""
        await self.begin(asked, reply)
        await self.until_cut.wait()
        await reply.cut()

    async def begin(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream; agree to all that a subscription wants."""
        self.streams.append((asked, reply))
        await reply.stream()
        if asked.what == LISTEN:
            wanted = asked.message["params"]["notifications"]
            await self.tell(ACKNOWLEDGED, notifications=wanted)

    async def tell(self, method: str = TOOLS_CHANGED, **params: Any) -> None:
        """Tell the last stream something; that the tools have changed by default."""
        asked, reply = self.streams[-1]
        if self.revision in SESSIONS:
            await reply.event({"jsonrpc": "2.0", "method": method})
        else:
            await reply.event(stream_message(self.revision, method, asked.id, **params))


@pytest.mark.requirement("subscriptions.cancel-http", "subscriptions.client-demultiplexes")
@per_request
async def test_a_subscription_is_a_stream_that_closing_alone_ends(revision: str) -> None:
    script = Listened(revision)
    async with scripted(script) as (client, server):
        async with client.listen(tools=True) as first:
            async with client.listen(uris=["memo://one"]) as second:
                await script.tell(UPDATED, uri="memo://one")
                assert await anext(second) == ResourceUpdated("memo://one")
            await server.until_left(1)
            script.streams.pop()
            await script.tell()
            assert await anext(first) == ToolsChanged()
        await server.until_left(2)
        await client.list_tools()
    assert server.order() == ["server/discover", LISTEN, LISTEN, "tools/list"]
    for asked in server.of(LISTEN):
        assert asked.fields[str(facts(revision).headers.method).lower()] == LISTEN


@pytest.mark.requirement("subscriptions.unexpected-end")
@pytest.mark.parametrize("end", [Reply.cut, Reply.end], ids=["cut", "ended without a result"])
@per_request
async def test_a_stream_that_breaks_is_asked_for_again_under_a_new_id(
    revision: str, end: Any
) -> None:
    async def listen(asked: Asked, reply: Reply) -> None:
        await script.begin(asked, reply)
        await end(reply)

    script = Listened(revision)
    script.once[LISTEN] = [listen, listen]
    async with scripted(script) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            assert await anext(changes) == ListeningAgain()
            assert await anext(changes) == ListeningAgain()
            await script.tell()
            assert await anext(changes) == ToolsChanged()
        asked = server.of(LISTEN)
    assert len({each.id for each in asked}) == 3
    assert [each.message["params"]["notifications"] for each in asked] == [
        {"toolsListChanged": True}
    ] * 3


@pytest.mark.requirement("subscriptions.pattern-mandatory")
@per_request
async def test_a_server_without_subscriptions_is_asked_once(revision: str) -> None:
    async def unknown(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32601), 404)

    script = Listened(revision)
    script.once[LISTEN] = [unknown, says(b"", 403)]
    async with scripted(script) as (client, server):
        for refusal in (RemoteError, HttpStatusError):
            with pytest.raises(refusal):
                async with client.listen(tools=True):
                    pytest.fail("it was refused")
        assert len(server.of(LISTEN)) == 2


async def test_a_server_that_stays_away_is_an_error_of_the_iteration(revision: str) -> None:
    script = Listened(revision)
    async with scripted(script) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            await server.until(script.kind)
            server.kill()
            with anyio.fail_after(10), pytest.raises(TransportError):
                await anext(changes)
        await server.start()
        await client.list_tools()


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_line_that_falls_silent_is_listened_on_again_or_an_error(
    revision: str, comes_back: bool
) -> None:
    async def fall_silent(asked: Asked, reply: Reply) -> None:
        if comes_back:
            script.on.pop(asked.what, None)
            script.on[script.kind] = script.keep_open
        await stay_silent(asked, reply)

    script = Listened(revision)
    retries = FOR_A_WHILE if comes_back else FOR_A_WHILE[:4]
    async with (
        scripted(script) as (client, server),
        client.listen(tools=True, idle_seconds=IDLE, retry_seconds=retries) as changes,
    ):
        await server.until(script.kind)
        script.on[sign_of_life(revision)] = script.on[script.kind] = fall_silent
        with anyio.fail_after(10):
            if not comes_back:
                with pytest.raises((TransportError, RequestTimeoutError)):
                    await anext(changes)
                return
            assert await anext(changes) == ListeningAgain()
            await script.tell()
            assert await anext(changes) == ToolsChanged()


@sessions
@pytest.mark.parametrize("status", [503, 409])
async def test_a_session_stream_that_is_reopened_is_listened_to_again(
    revision: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = Listened(revision)
    script.once["GET"] = [script.break_later, *[says(b"", status)] * 3]
    async with scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, retry_seconds=FOR_A_WHILE) as changes:
            script.until_cut.set()
            with anyio.fail_after(10):
                assert await anext(changes) == ListeningAgain()
                await script.tell()
                assert await anext(changes) == ToolsChanged()
    assert caplog.text.count("the stream of events is gone") == 3


@sessions
@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, HttpStatusError), (405, HttpStatusError), (409, ResponseLostError)],
)
async def test_a_session_stream_that_is_not_reopened_ends_listening(
    revision: str, status: int, kind: type[TransportError]
) -> None:
    script = Listened(revision)
    script.once["GET"] = [script.break_later]
    script.on["GET"] = says(b"", status)
    async with scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, retry_seconds=FOR_A_WHILE[:4]) as changes:
            script.until_cut.set()
            with anyio.fail_after(10), pytest.raises(kind, match=f"HTTP {status}"):
                await anext(changes)
        with pytest.raises(kind):
            async with client.listen(tools=True):
                pytest.fail("nothing can be heard")
        await client.list_tools()


def sign_of_life(revision: str) -> str:
    return "ping" if revision in HANDSHAKE else "server/discover"
