"""Many clients and many streams at once, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from mcp_protocol.client import connect
from mcp_protocol.client_side.changes import ToolsChanged
from package.faults import ONE_OF_EACH, called, check_quiet, client_of
from package.http_process import HttpProcess, http_process
from package.wire import HANDSHAKE

pytestmark = pytest.mark.anyio

CLIENTS, STREAMS = 100, 500
SECONDS = 60


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


@asynccontextmanager
async def sockets() -> AsyncIterator[httpx2.AsyncClient]:
    """What makes the HTTP requests of many clients: one set of trusted certificates is enough."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(timeout=None, limits=limits) as http:
        yield http


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_hundred_clients_open_call_and_close_at_once(revision: str) -> None:
    with http_process(limits={"sessions": CLIENTS}) as server:
        answers: list[str] = []

        async def visit(number: int) -> None:
            async with connect(server.url, revision=revision, http_client=http) as client:
                async with client.listen(tools=True):
                    answers.append(await called(client, "add", a=number, b=0))

        async with sockets() as http:
            for _ in range(2):  # the second time there is no room for what the first left behind
                with anyio.fail_after(SECONDS):
                    async with anyio.create_task_group() as tasks:
                        for number in range(CLIENTS):
                            tasks.start_soon(visit, number)
        assert sorted(map(int, answers)) == sorted([*range(CLIENTS)] * 2)


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_change_reaches_all_of_five_hundred_streams(revision: str) -> None:
    with http_process() as server:
        heard: list[object] = []
        opened, all_open = 0, anyio.Event()

        async def hear(client: Any) -> None:
            nonlocal opened
            async with client.listen(tools=True) as changes:
                opened += 1
                if opened == STREAMS:
                    all_open.set()
                for _ in range(2):
                    heard.append(await anext(changes))

        async def visit() -> None:
            async with connect(server.url, revision=revision, http_client=http) as client:
                await hear(client)

        with anyio.fail_after(SECONDS):
            async with sockets() as http, client_of(server, revision) as client:
                async with anyio.create_task_group() as tasks:
                    for _ in range(STREAMS):
                        if revision in HANDSHAKE:
                            tasks.start_soon(visit)
                        else:
                            tasks.start_soon(hear, client)
                    await all_open.wait()
                    await called(client, "grow", name="one")
                    while len(heard) < STREAMS:
                        await called(client, "add", a=1, b=2)
                    await called(client, "grow", name="two")
        assert heard == [ToolsChanged()] * STREAMS * 2
