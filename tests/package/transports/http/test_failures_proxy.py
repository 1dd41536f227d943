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


async def make_calls(client: Any, name: str, answered: list[str], lost: list[Exception]) -> None:
    """Make calls of three tools; the marks that were answered, and the errors, are added."""
    for number in range(7):
        key, text = f"{name}-{number}", str(number + 1)
        for tool, arguments, expected in (
            ("add", {"a": number, "b": 1}, text),
            ("count", {"to": number + 1, "width": 100}, text),
            ("mark", {"key": key}, key),
        ):
            heard = [0.0]

            def hear(value: float, *more: object, heard: list[float] = heard) -> None:
                heard.append(value)

            how: Any = {"timeout": CALL_SECONDS, "on_progress": hear}
            try:
                result = await client.call_tool(tool, arguments, **how)
            except LOST as error:
                text_of(error)
                lost.append(error)
                continue
            assert result.content[0].text == expected
            # What is asked again counts anew; within one answer nothing is missing or twice.
            assert all(after in (before + 1, 1) for before, after in pairwise(heard))
            assert heard[-1] == (number + 1 if tool == "count" else 0)
            answered += [key] if tool == "mark" else []


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
    answered, lost = list[str](), list[Exception]()
    async with (
        run_proxy(server.port) as (url, proxy),
        client_of(server, revision, url=url, timeouts=QUICK) as client,
        client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
    ):
        proxy.plan = chaos(seed)
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(make_calls, client, f"{name}-{number}", answered, lost)
        proxy.plan = lambda asked: Fault()
        await call_text(client, "grow", name=name)
        with anyio.fail_after(SECONDS):
            while await anext(changes) != ToolsChanged():
                pass
        done = (await call_text(client, "marks")).split()
    assert len(done) == len(set(done))
    assert set(answered) <= set(done)
    assert answered
    assert lost
    check_quiet(caplog)
