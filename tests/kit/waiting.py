"""A server whose tools wait: for the test, or for the client."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from kit.asgi_client import Http
from kit.asgi_stream import SECONDS, Stream
from mcpgen_runtime import Context, Server


class WaitingServer:
    """A server whose tools wait, each call with a number of its own."""

    def __init__(self, **options: Any) -> None:
        self.server = Server("waiting", "1", **options)
        self.go = anyio.Event()
        self.begun = 0
        self.returned: list[int] = []
        self.cancelled: list[int] = []
        self.moments: list[float] = []
        self._news = anyio.Event()
        for tool in (self.wait, self.speak_and_wait, self.ask, self.plain):
            self.server.tool()(tool)

    async def wait(self, number: int) -> str:
        await self._run(number, self.go.wait)
        return "done"

    async def speak_and_wait(self, ctx: Context, number: int) -> str:
        await ctx.progress(1)
        return await self.wait(number)

    async def ask(self, ctx: Context, number: int) -> str:
        await ctx.progress(1)
        await self._run(number, lambda: ctx.request("ping"))
        return "asked"

    async def plain(self) -> str:
        return "plain"

    def calling(
        self, http: Http, revision: str, number: int = 1, tool: str = "speak_and_wait", **how: Any
    ) -> AbstractAsyncContextManager[Stream]:
        """Call a tool, by a request whose id is the number; see `Http.asking`."""
        params = {"name": tool, "arguments": {"number": number}}
        meta = {"progressToken": number}
        how.setdefault("begun", tool != "wait")
        return http.asking(revision, "tools/call", params, id=number, meta=meta, **how)

    async def leave(
        self, http: Http, revision: str, *numbers: int, tool: str = "speak_and_wait"
    ) -> str:
        """Make calls, and leave once they have begun."""
        last = ""
        for number in numbers:
            async with self.calling(http, revision, number, tool) as stream:
                await self.until(begun=self.begun + 1)
                if tool != "wait":
                    await stream.message()
            last = stream.decoder.last_id or ""
        return last

    async def until(self, *, begun: int = 0, cancelled: int = 0, returned: int = 0) -> None:
        """Wait until so many calls have come so far."""
        with anyio.fail_after(SECONDS):
            while (
                self.begun < begun
                or len(self.cancelled) < cancelled
                or len(self.returned) < returned
            ):
                await self._news.wait()

    async def _run(self, number: int, work: Any) -> None:
        self.begun += 1
        self._tell()
        try:
            await work()
            self.returned.append(number)
        except BaseException:
            self.cancelled.append(number)
            self.moments.append(anyio.current_time())
            raise
        finally:
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
