"""State that a server keeps for a session is restored in a new session over HTTP.

Source: basic/transports (session management), server/resources#subscriptions.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import Raw

from mcpgen_runtime.client.client_settings import Caching, Timeouts
from mcpgen_runtime.client.listen import ListeningAgain, ToolsChanged
from package.http_script import Forgetful, connect_scripted, error
from package.http_server import Asked, HttpServer, Reply
from package.wire import SESSIONS

pytestmark = [pytest.mark.parametrize("revision", SESSIONS), pytest.mark.processes]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Streaming(Forgetful):
    """Has a stream for each session."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.streams: list[Reply] = []
        self.on["GET"] = self.keep_open

    async def keep_open(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream for messages about no request."""
        await reply.stream()
        self.streams.append(reply)
        await reply.gone()

    async def tell(self, method: str) -> None:
        """Say something in the last session."""
        await self.streams[-1].event({"jsonrpc": "2.0", "method": method})


def asked_in(server: HttpServer, session: str, *methods: str) -> list[tuple[str, Any]]:
    """Kind and params of the requests in a session."""
    return [
        (asked.what, asked.message["params"])
        for asked in server.of(*methods)
        if asked.fields["mcp-session-id"] == session
    ]


KEPT = ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")


async def test_state_of_a_lost_session_is_restored_in_the_new_one(revision: str) -> None:
    script = Streaming(revision)
    async with connect_scripted(script) as (client, server):
        for level in ("error", "info"):
            await client.set_level(level)
        for uri in ("memo://a", "memo://b"):
            await client.subscribe(uri)
        await client.unsubscribe("memo://a")
        script.forgotten.add("s")
        await client.list_tools()
        await client.list_tools()
    assert asked_in(server, "s2", *KEPT) == [
        ("logging/setLevel", {"level": "info"}),
        ("resources/subscribe", {"uri": "memo://b"}),
    ]


@pytest.mark.parametrize("raw", [True, False])
async def test_state_requested_as_raw_json_is_restored(revision: str, raw: bool) -> None:
    script = Streaming(revision)
    async with connect_scripted(script) as (client, server):
        ask = client.request_raw if raw else client.request
        await ask("logging/setLevel", Raw(b'{"level": "info"}'))
        for uri in (b"a", b"b"):
            await ask("resources/subscribe", Raw(b'{"uri": "memo://%b"}' % uri))
        await ask("resources/unsubscribe", Raw(b'{"uri": "memo://b"}'))
        script.forgotten.add("s")
        await client.list_tools()
        await ask("tools/list", {})
    assert asked_in(server, "s2", *KEPT) == [
        ("logging/setLevel", {"level": "info"}),
        ("resources/subscribe", {"uri": "memo://a"}),
    ]


async def test_state_that_cannot_be_restored_is_logged(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32002, "no such resource"))

    script = Streaming(revision)
    async with connect_scripted(script) as (client, server):
        await client.subscribe("memo://a")
        script.forgotten.add("s")
        script.once["resources/subscribe"] = [gone]
        await client.list_tools()
        await client.list_tools()
    assert len(asked_in(server, "s2", *KEPT)) == 1
    assert "resources/subscribe memo://a: not restored" in caplog.text


async def test_silence_about_what_was_kept_does_not_hold_up_a_call(revision: str) -> None:
    async def silent(asked: Asked, reply: Reply) -> None:
        await reply.gone()

    script = Streaming(revision)
    async with connect_scripted(script, timeouts=Timeouts(restore=0.1)) as (client, _):
        await client.set_level("info")
        script.forgotten.add("s")
        script.on["logging/setLevel"] = silent
        with anyio.fail_after(5):
            assert await client.list_tools()


async def test_a_listener_is_subscribed_anew_and_reads_again(
    revision: str,
) -> None:
    script = Streaming(revision)
    async with connect_scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, uris=["memo://a"]) as changes:
            script.forgotten.add("s")
            await client.list_tools()
            assert await anext(changes) == ListeningAgain()
            await server.until("GET", times=2)
            await script.tell("notifications/tools/list_changed")
            assert await anext(changes) == ToolsChanged()
        last = asked_in(server, "s2", *KEPT)
    subscription = {"uri": "memo://a"}
    assert last == [("resources/subscribe", subscription), ("resources/unsubscribe", subscription)]


async def test_nothing_is_asked_for_again_where_nothing_was_kept(revision: str) -> None:
    script = Streaming(revision)
    async with connect_scripted(script, cache=Caching()) as (client, server):
        script.forgotten.add("s")
        await client.list_tools()
        await client.list_tools()
        before = server.order()
        assert not set(before) & set(KEPT)
