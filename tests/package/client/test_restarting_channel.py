"""Messages sent over a channel to a process while that process ends: processes in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_protocol.channel import MessageKind, OutgoingMessage
from mcp_protocol.client.base import ClientApplication
from mcp_protocol.client.client_settings import Identity, Restart
from mcp_protocol.client.connect import new_peer
from mcp_protocol.client.restart import RestartingChannel
from mcp_protocol.errors import (
    ConnectionClosedError,
    EndOfChannel,
    ResponseLostError,
    ServerStartError,
)
from mcp_protocol.revisions import REVISIONS
from package.live import FakeServer
from package.wire import PER_REQUEST

pytestmark = pytest.mark.anyio


class Process(FakeServer):
    """A process that takes a message when the test lets it."""

    def __init__(self) -> None:
        super().__init__(PER_REQUEST[-1])
        self.reads = anyio.Event()

    async def send(self, message: OutgoingMessage) -> None:
        await self.reads.wait()
        await super().send(message)


class Start:
    """Starts no other process, and says so when the test lets it."""

    def __init__(self) -> None:
        self.begins, self.fails = anyio.Event(), anyio.Event()

    async def __call__(self) -> Any:
        self.begins.set()
        await self.fails.wait()
        raise ServerStartError("serve", ["serve"], None, (), "not today")


@asynccontextmanager
async def open_channel(process: Any, start: Start) -> AsyncIterator[RestartingChannel]:
    """A channel with an open session, which is read until its end."""
    application = ClientApplication(None, Identity({"name": "test", "version": "1"}, {}))
    channel = RestartingChannel(application, Restart(limit=1, pauses=()), process, start)
    channel.session_opened(new_peer(channel, REVISIONS, application))

    async def read() -> None:
        with pytest.raises(EndOfChannel, match=r"not today.*1 times within 300 s"):
            await channel.receive()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            yield channel
            start.fails.set()


def message_of(kind: MessageKind) -> OutgoingMessage:
    """A message of the client."""
    return OutgoingMessage(b"{}", kind, 1 if kind == "request" else None, "tools/list")


async def test_a_request_sent_while_the_process_ends_is_lost() -> None:
    process, start = Process(), Start()

    async def send(kind: MessageKind, results: list[str]) -> None:
        try:
            await channel.send(message_of(kind))
            results.append("sent")
        except ResponseLostError as error:
            results.append(f"{error}")

    request, notification = list[str](), list[str]()
    async with open_channel(process, start) as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(send, "request", request)
        tasks.start_soon(send, "notification", notification)
        await anyio.wait_all_tasks_blocked()
        await process.hang_up()
        await start.begins.wait()
        process.reads.set()
    assert request == ["tools/list: the server process has ended"]
    assert notification == ["sent"]


async def test_a_request_that_waits_fails_at_the_limit() -> None:
    process, start = Process(), Start()

    async def send() -> None:
        with pytest.raises(ConnectionClosedError, match="the limit of Restart"):
            await channel.send(message_of("request"))

    async with open_channel(process, start) as channel:
        await process.hang_up()
        await start.begins.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            start.fails.set()
