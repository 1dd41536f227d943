"""A server whose tool says a number each time that the test lets it, for streams that resume."""

from __future__ import annotations

from typing import Any

import anyio

from kit.asgi_stream import Stream
from kit.wire import request, text_in
from mcpgen_runtime import Context, Server

LAST = "last-event-id"
"""The header field that names the event to resume after."""


class Steps:
    """A server with the tools `steps`, which says numbers until `end`, `polled` and `plain`."""

    def __init__(self) -> None:
        self.server = Server("tester")
        self.said = 0
        self._may = anyio.Event()
        self._over = False
        self.news = anyio.Event()
        for tool in (self.steps, self.polled, self.plain):
            self.server.tool()(tool)

    async def steps(self, ctx: Context) -> str:
        while True:
            await self._may.wait()
            self._may = anyio.Event()
            if self._over:
                return "over"
            self.said += 1
            await ctx.info(self.said)
            self.news.set()

    async def polled(self, ctx: Context) -> str:
        await ctx.close_stream()
        self.news.set()
        await self._may.wait()
        return "polled"

    async def plain(self, ctx: Context) -> str:
        await ctx.info("plain")
        return "plain"

    async def say(self, count: int = 1) -> None:
        """Have it say more."""
        for _ in range(count):
            self.news = anyio.Event()
            self._may.set()
            with anyio.fail_after(5):
                await self.news.wait()

    def end(self) -> None:
        """Have it end."""
        self._over = True
        self._may.set()


def call(revision: str, name: str = "steps", id: int | str = 1) -> dict[str, Any]:
    """A call of one of the tools."""
    return request(revision, "tools/call", {"name": name, "arguments": {}}, id=id)


async def read_texts(stream: Stream) -> list[Any]:
    """The numbers said on a stream until it ends, and `over`."""
    messages = await stream.messages()
    return [
        text_in(each) if "result" in each else each.get("params", each).get("data", each["method"])
        for each in messages
    ]


async def leave(stream: Stream) -> str:
    """Leave after the next message; gives the last id seen."""
    await stream.message()
    assert stream.decoder.last_id is not None
    stream.disconnect()
    return stream.decoder.last_id
