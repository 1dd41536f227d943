"""Many clients and many streams at once, over real sockets."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from kit.faults import ONE_OF_EACH, call_text, client_of
from kit.http_process import HttpProcess, http_process
from kit.wire import HANDSHAKE
from mcpgen_runtime import Timeouts, ToolsChanged, connect

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.usefixtures("quiet")]

CLIENTS, STREAMS = 50, 500
SECONDS = 60


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_fifty_clients_open_call_and_close_at_once(revision: str) -> None:
    with http_process(limits={"sessions": CLIENTS}) as server:
        answers: list[str] = []

        async def visit(number: int) -> None:
            async with (
                connect(server.url, revision=revision) as client,
                client.listen(tools=True),
            ):
                answers.append(await call_text(client, "add", a=number, b=0))

        for _ in range(2):  # the second time there is no room for what the first left behind
            with anyio.fail_after(SECONDS):
                async with anyio.create_task_group() as tasks:
                    for number in range(CLIENTS):
                        tasks.start_soon(visit, number)
        assert sorted(map(int, answers)) == sorted([*range(CLIENTS)] * 2)


class Crowd:
    """Streams of one server, all open at the same time.

    Attributes:
        heard: What each of them has told, in the order in which it came.
        all_open: Set once they all are.
    """

    def __init__(self, server: HttpProcess, revision: str, client: Any) -> None:
        self.heard: list[object] = []
        self.all_open = anyio.Event()
        self._server = server
        self._revision = revision
        self._client = client
        self._open = 0

    async def hear_two(self) -> None:
        """Open one of them, and wait for two changes."""
        async with AsyncExitStack() as stack:
            client = self._client
            if self._revision in HANDSHAKE:  # a session has one such stream
                url, waiting = self._server.url, Timeouts(opening=SECONDS, connect=SECONDS)
                connecting: Any = connect(url, revision=self._revision, timeouts=waiting)
                client = await stack.enter_async_context(connecting)
            changes = await stack.enter_async_context(client.listen(tools=True))
            self._open += 1
            if self._open == STREAMS:
                self.all_open.set()
            self.heard.append(await anext(changes))
            self.heard.append(await anext(changes))


@pytest.mark.parametrize("revision", ONE_OF_EACH)
@pytest.mark.timeout(240)
async def test_a_change_reaches_all_of_five_hundred_streams(revision: str) -> None:
    with http_process() as server, anyio.fail_after(2 * SECONDS):
        async with client_of(server, revision) as client:
            crowd = Crowd(server, revision, client)
            async with anyio.create_task_group() as tasks:
                for _ in range(STREAMS):
                    tasks.start_soon(crowd.hear_two)
                await crowd.all_open.wait()
                await call_text(client, "grow", name="one")
                while len(crowd.heard) < STREAMS:
                    await call_text(client, "add", a=1, b=2)
                await call_text(client, "grow", name="two")
            assert crowd.heard == [ToolsChanged()] * STREAMS * 2
