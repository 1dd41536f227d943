"""Connections to the engine that break in the middle of commands and replies, as by a proxy."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, ClassVar

import anyio
import pytest

from kit.asgi_stream import Reply
from kit.engine import Engine
from kit.requestor import REVISION, Work
from kit.wire import request
from package.server.shared.shared_servers import Workers, run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

TASKS = 20
"""Tasks at a time."""

CUTS = 20
"""Connections that are broken at least."""

CUT = 0.3
"""The share of reads after which a connection breaks."""


class Relay:
    """Carries connections to an engine, and breaks them."""

    def __init__(self, path: str, random: Random) -> None:
        self.is_cutting = False
        self.cuts = 0
        self._path = path
        self._random = random

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until an end closes it, or it is broken."""
        far_reader, far_writer = await asyncio.open_unix_connection(self._path)
        both = {writer, far_writer}
        await asyncio.gather(
            self._copy(reader, far_writer, both), self._copy(far_reader, writer, both)
        )

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: set[Any]
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                cuts = self.is_cutting and self._random.random() < CUT
                writer.write(data[: self._random.randrange(len(data))] if cuts else data)
                await writer.drain()
                if cuts:
                    self.cuts += 1
                    break
        except OSError:
            pass
        for each in both:
            each.close()


@asynccontextmanager
async def run_relayed_workers(engine: Engine, seed: int) -> AsyncIterator[tuple[Relay, Workers]]:
    """Workers in a session, which reach the engine by a relay."""
    relay = Relay(engine.url.removeprefix("unix://"), Random(seed))
    server = await asyncio.start_server(relay.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with run_workers(f"redis://127.0.0.1:{port}/0", Counting) as workers:
            await workers.any.initialize(REVISION)
            workers.use_session()
            yield relay, workers
            relay.is_cutting = False
    finally:
        server.close()


class Counting(Work):
    """A server with a tool that counts its runs."""

    runs: ClassVar[Counter[int]] = Counter()

    def __init__(self) -> None:
        super().__init__()

        @self.server.tool(runner=self.tasks)
        async def numbered(number: int) -> int:
            self.runs[number] += 1
            return number


ids = itertools.count(1)


async def ask(workers: Workers, method: str, params: Any) -> Reply:
    """The reply to a request; one that the engine fails says so, and names no unknown session."""
    message = request(REVISION, method, params, id=next(ids))
    reply = await workers.any.request("POST", message)
    assert reply.status in (200, 503), (reply.status, reply.body)
    if reply.status == 503:
        assert reply.fields["retry-after"] == "1"
    return reply


async def result(workers: Workers, method: str, params: Any) -> Any:
    """The result of a request, which is sent until there is one."""
    with anyio.fail_after(30):
        while True:
            reply = await ask(workers, method, params)
            if reply.status == 200 and "result" in reply.messages[-1]:
                return reply.messages[-1]["result"]
            if reply.status == 200:
                text = reply.messages[-1]["error"]["message"]
                assert "may have been acted on" not in text


@pytest.mark.parametrize("seed", range(3))
async def test_cut_connections_lose_no_completion(seed: int, engine: Engine) -> None:
    Counting.runs = Counter()
    async with run_relayed_workers(engine, seed) as (relay, workers):
        relay.is_cutting = True
        ended: dict[str, int] = {}

        async def use(number: int) -> None:
            call = {"name": "numbered", "arguments": {"number": number}, "task": {}}
            task_id = (await result(workers, "tools/call", call))["task"]["taskId"]
            end = await result(workers, "tasks/result", {"taskId": task_id})
            assert end["content"][0]["text"] == str(number)
            ended[task_id] = number

        count = 0
        while relay.cuts <= CUTS:
            async with anyio.create_task_group() as tasks:
                for number in range(count, count + TASKS):
                    tasks.start_soon(use, number)
            count += TASKS
        relay.is_cutting = False
        assert sorted(ended.values()) == list(range(count))
        assert Counting.runs == Counter(range(count))
        for task_id in ended:
            task = await result(workers, "tasks/get", {"taskId": task_id})
            assert task["status"] == "completed"
