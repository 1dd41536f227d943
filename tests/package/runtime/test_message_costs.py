"""The cost of a message over a stream to a server: calls of functions of the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import mcpgen_runtime
from kit.wire import (
    HANDSHAKE,
    INITIALIZED,
    STREAMABLE,
    cancelled_notification,
    encode_message,
    initialize,
    request,
)
from mcpgen_runtime import Channel, Context, Server
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import EndOfChannel

PACKAGE = str(Path(mcpgen_runtime.__file__).parent)
CALL, FILES = 46 if sys.version_info >= (3, 12) else 49, 18
"""Most calls for a tool with a `Context`, one await and a structured result; in so many files."""
AFTER_CANCELLATION = 6
"""Most calls after a cancelled tool has ended."""

pytestmark = [
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.structs("results of pydantic models take more calls"),
]


class Lines(Channel):
    """A channel that costs nothing: messages are put in, and counted as they come out."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self._unread: list[bytes] = []
        self._woken = anyio.Event()

    async def receive(self) -> bytes:
        """Wait for a message."""
        while not self._unread:
            self._woken = anyio.Event()
            await self._woken.wait()
        message = self._unread.pop(0)
        if not message:
            raise EndOfChannel("the test has ended")
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Keep a message."""
        self.sent.append(message.data)

    async def close(self) -> None:
        """Do nothing."""

    async def put(self, *messages: Any) -> None:
        """Pass messages to the server, and let it rest."""
        self._unread += [encode_message(each) if each else b"" for each in messages]
        self._woken.set()
        await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()


@contextmanager
def counted(calls: list[str]) -> Iterator[None]:
    """Note the file of each call of a function of the package."""

    def note(frame: FrameType, kind: str, _: Any) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_call_and_a_cancellation_cost_little(revision: str) -> None:
    server = Server("costs")
    calls: list[str] = []
    ended: list[int] = []

    @server.tool()
    async def total(ctx: Context, a: int, b: int) -> dict[str, int]:
        await anyio.lowlevel.checkpoint()
        return {"total": a + b}

    @server.tool()
    async def hold() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(len(calls))
        return ""

    def call(name: str, number: int, **arguments: int) -> Any:
        params = {"name": name, "arguments": arguments}
        return request(revision, "tools/call", params, id=number, meta={"progressToken": number})

    lines = Lines()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, lines)
        if revision in HANDSHAKE:
            await lines.put(initialize(revision), INITIALIZED)
        for number in (1, 2, 3):
            calls.clear()
            with counted(calls):
                await lines.put(call("total", number, a=1, b=2))
            assert b"total" in lines.sent[-1]
        assert len(calls) <= CALL, calls
        assert len(set(calls)) <= FILES, set(calls)
        for number in (4, 5):
            await lines.put(call("hold", number))
            calls.clear()
            with counted(calls):
                await lines.put(cancelled_notification(number))
        assert len(calls) - ended[-1] <= AFTER_CANCELLATION, calls[ended[-1] :]
        await lines.put(None)
