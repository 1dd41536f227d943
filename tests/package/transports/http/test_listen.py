"""Listening over HTTP: each subscription is the stream of a POST, and ends with it.

Source: basic/patterns/subscriptions, basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen_runtime.client.listen import ListeningAgain, ResourceUpdated, ToolsChanged
from mcpgen_runtime.errors import HttpStatusError, RemoteError, ResponseLostError
from package.http_script import Script, connect_scripted, error
from package.http_server import Asked, Reply
from package.wire import (
    ACKNOWLEDGED,
    CHANGED,
    LISTEN,
    PER_REQUEST,
    UPDATED,
    facts,
    stream_message,
    tag,
)

AT_ONCE = (0.0, 0.0, 0.0)

pytestmark = [pytest.mark.parametrize("revision", PER_REQUEST), pytest.mark.processes]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Streams(Script):
    """A server of streams of changes, each kept open until the client goes.

    Attributes:
        open: The streams, with the request for each.
    """

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.open: list[tuple[Asked, Reply]] = []
        self.on[LISTEN] = self.listen

    async def listen(self, asked: Asked, reply: Reply) -> None:
        """Agree to all that is wanted, and keep the stream open."""
        await self.agree(asked, reply)
        await reply.gone()

    async def agree(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream."""
        self.open.append((asked, reply))
        wanted = asked.message["params"]["notifications"]
        await reply.stream()
        await self.tell(ACKNOWLEDGED, notifications=wanted)

    async def tell(self, method: str, **params: Any) -> None:
        """Tell the last stream something."""
        asked, reply = self.open[-1]
        await reply.event(stream_message(self.revision, method, asked.id, **params))


@pytest.mark.requirement("subscriptions.cancel-http", "subscriptions.client-demultiplexes")
async def test_a_subscription_is_a_stream_that_closing_alone_ends(
    revision: str,
) -> None:
    script = Streams(revision)
    async with connect_scripted(script) as (client, server):
        async with client.listen(tools=True) as first:
            async with client.listen(uris=["memo://one"]) as second:
                await script.tell(UPDATED, uri="memo://one")
                assert await anext(second) == ResourceUpdated("memo://one")
            await server.until_left(1)
            script.open.pop()
            await script.tell(CHANGED["toolsListChanged"])
            assert await anext(first) == ToolsChanged()
        await server.until_left(2)
        await client.list_tools()
    assert server.order() == ["server/discover", LISTEN, LISTEN, "tools/list"]
    for asked in server.of(LISTEN):
        assert asked.fields[str(facts(revision).headers.method).lower()] == LISTEN


async def test_a_stream_that_the_server_ends_well_ends_the_iteration(revision: str) -> None:
    async def listen(asked: Asked, reply: Reply) -> None:
        await script.agree(asked, reply)
        await script.tell(CHANGED["toolsListChanged"])
        end = {"resultType": "complete", "_meta": {tag(revision): asked.id}}
        await reply.event({"jsonrpc": "2.0", "id": asked.id, "result": end})
        await reply.end()

    script = Streams(revision)
    script.on[LISTEN] = listen
    async with connect_scripted(script) as (client, server), client.listen(tools=True) as changes:
        assert [change async for change in changes] == [ToolsChanged()]
    assert server.order().count(LISTEN) == 1


@pytest.mark.requirement("subscriptions.unexpected-end")
@pytest.mark.parametrize("how", ["cut", "ended"])
async def test_a_stream_that_breaks_is_asked_for_again_under_a_new_id(
    revision: str, how: str
) -> None:
    async def listen(asked: Asked, reply: Reply) -> None:
        await script.agree(asked, reply)
        if how == "ended":  # properly for HTTP, and yet without a result
            await reply.end()
        else:
            await reply.cut()

    script = Streams(revision)
    script.once[LISTEN] = [listen, listen]
    async with connect_scripted(script) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            assert await anext(changes) == ListeningAgain()
            assert await anext(changes) == ListeningAgain()
            await script.tell(CHANGED["toolsListChanged"])
            assert await anext(changes) == ToolsChanged()
        asked = server.of(LISTEN)
    assert len({each.id for each in asked}) == 3
    assert [each.message["params"]["notifications"] for each in asked] == [
        {"toolsListChanged": True}
    ] * 3


async def test_a_server_that_starts_again_is_listened_to_again(revision: str) -> None:
    script = Streams(revision)
    async with (
        connect_scripted(script) as (client, server),
        client.listen(tools=True, retry_seconds=AT_ONCE) as changes,
    ):
        server.kill()
        await anyio.wait_all_tasks_blocked()
        await server.start()
        assert await anext(changes) == ListeningAgain()
        await script.tell(CHANGED["toolsListChanged"])
        assert await anext(changes) == ToolsChanged()


async def test_a_server_that_stays_away_is_an_error_of_the_iteration(
    revision: str,
) -> None:
    script = Streams(revision)
    async with connect_scripted(script) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            server.kill()
            with pytest.raises(ResponseLostError):
                await anext(changes)
        await server.start()
        await client.list_tools()


@pytest.mark.requirement("subscriptions.pattern-mandatory")
async def test_a_server_without_subscriptions_is_asked_once(revision: str) -> None:
    async def unknown(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32601), 404)

    async def forbidden(asked: Asked, reply: Reply) -> None:
        await reply.whole(403)

    script = Streams(revision)
    script.once[LISTEN] = [unknown, forbidden]
    async with connect_scripted(script) as (client, server):
        for refusal in (RemoteError, HttpStatusError):
            with pytest.raises(refusal):
                async with client.listen(tools=True):
                    pytest.fail("it was refused")
        assert len(server.of(LISTEN)) == 2
