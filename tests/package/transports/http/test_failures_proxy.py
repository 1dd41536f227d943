"""Our client and our server with a proxy between them that cuts requests and answers anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from kit.faults import ONE_OF_EACH, call_text, check_quiet, client_of, text_of
from kit.http_process import SECONDS, HttpProcess, http_process
from kit.http_server import BROKEN, Asked, read_request
from mcpgen_runtime import (
    ConnectFailedError,
    RequestTimeoutError,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts

pytestmark = [pytest.mark.slow, pytest.mark.processes]

CALL_SECONDS = 0.2
LOST = (ResponseLostError, ConnectFailedError, RequestTimeoutError)
QUICK = Timeouts(
    retries=(0.0, 0.01, 0.02, 0.04),
    http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01),
)


@dataclass(frozen=True)
class Fault:
    """So many bytes of a request and of its answer pass; then comes an end, or silence."""

    up: int | None = None
    down: int | None = None
    silence: bool = False


class Proxy:
    """Passes requests to a server, each over a connection of its own, as `plan` has it."""

    def __init__(self, port: int) -> None:
        self.plan: Callable[[Asked], Fault] = lambda asked: Fault()
        self._port = port

    async def serve(self, client: SocketStream) -> None:
        """Serve one connection until either side is gone."""
        async with client, anyio.create_task_group() as tasks:
            buffered = BufferedByteReceiveStream(client)
            last = anyio.CancelScope()
            try:
                while True:
                    asked = await read_request(buffered)
                    last.cancel()  # its answer is whole, or there would be no other request
                    last = anyio.CancelScope()
                    tasks.start_soon(self._pass_on, asked, client, last, tasks)
            except (*BROKEN, anyio.IncompleteRead):
                tasks.cancel_scope.cancel()

    async def _pass_on(
        self, asked: Asked, client: SocketStream, last: anyio.CancelScope, connection: Any
    ) -> None:
        lines = [f"{asked.verb} {asked.target} HTTP/1.1", *(f"{n}: {v}" for n, v in asked.pairs)]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1") + asked.body
        fault = self.plan(asked)
        with last:
            try:
                async with await anyio.connect_tcp("127.0.0.1", self._port) as server:
                    await server.send(request[: fault.up])
                    left = 1 << 40 if fault.down is None else fault.down
                    while left > 0 and fault.up is None:
                        part = await server.receive()
                        await client.send(part[:left])
                        left -= len(part)
                    if fault.silence:
                        await anyio.sleep_forever()
            except (*BROKEN, OSError):
                pass
            connection.cancel_scope.cancel()


@asynccontextmanager
async def run_proxy(port: int) -> AsyncIterator[tuple[str, Proxy]]:
    """The URL of a proxy, and the proxy."""
    proxy = Proxy(port)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy.serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/mcp", proxy
        tasks.cancel_scope.cancel()


def chaos(seed: int) -> Callable[[Asked], Fault]:
    """A plan: of three requests one is lost, or its answer, somewhere."""
    random = Random(seed)

    def plan(asked: Asked) -> Fault:
        draw, place = random.random(), random.randrange(800)
        if draw < 0.12:
            return Fault(up=place)
        if draw < 0.32:
            return Fault(down=place)
        if draw < 0.35 and asked.what == "tools/call":
            return Fault(down=place, silence=True)
        return Fault()

    return plan


class Caller:
    """Makes calls, and knows which marks were answered, and how many calls failed."""

    def __init__(self, client: Any, name: str) -> None:
        self.answered: list[str] = []
        self.lost = 0
        self._client = client
        self._name = name

    async def run(self) -> None:
        """Make them all."""
        for number in range(7):
            for step in (self._add, self._count, self._mark):
                try:
                    await step(number)
                except LOST as error:
                    text_of(error)
                    self.lost += 1

    async def _call(self, tool: str, **arguments: Any) -> tuple[str, list[float]]:
        heard: list[float] = []
        result = await self._client.call_tool(
            tool,
            arguments,
            timeout=CALL_SECONDS,
            on_progress=lambda value, *more: heard.append(value),
        )
        return result.content[0].text, heard

    async def _add(self, number: int) -> None:
        assert await self._call("add", a=number, b=1) == (str(number + 1), [])

    async def _count(self, number: int) -> None:
        text, heard = await self._call("count", to=number + 1, width=100)
        assert text == str(number + 1)
        # What is asked again counts anew; within one answer nothing is missing or comes twice.
        assert all(after in (before + 1, 1) for before, after in pairwise([0.0, *heard]))
        assert heard[-1] == number + 1

    async def _mark(self, number: int) -> None:
        key = f"{self._name}-{number}"
        assert (await self._call("mark", key=key))[0] == key
        self.answered.append(key)


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    """A server that waits for what a proxy cuts."""
    with http_process(retry=0.01) as process:
        yield process


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_whatever_is_dropped_no_call_hangs_or_runs_twice(
    revision: str,
    seed: int,
    server: HttpProcess,
    anyio_backend: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = f"{revision}-{anyio_backend}-{seed}"
    async with (
        run_proxy(server.port) as (url, proxy),
        client_of(server, revision, url=url, timeouts=QUICK) as client,
        client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
    ):
        callers = [Caller(client, f"{name}-{number}") for number in range(4)]
        proxy.plan = chaos(seed)
        async with anyio.create_task_group() as tasks:
            for caller in callers:
                tasks.start_soon(caller.run)
        proxy.plan = lambda asked: Fault()
        await call_text(client, "grow", name=name)
        with anyio.fail_after(SECONDS):
            while await anext(changes) != ToolsChanged():
                pass
        done = (await call_text(client, "marks")).split()
    answered = [key for caller in callers for key in caller.answered]
    assert len(done) == len(set(done))
    assert set(answered) <= set(done)
    assert answered
    assert sum(caller.lost for caller in callers)
    check_quiet(caplog)
