"""A tool call and its response: in memory, and over pipes to a process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import mcp
from mcp.client._memory import InMemoryTransport

from mcp_protocol import connect

from . import official_server, our_server
from .measure import FLOOR, OURS, SDK, AtMost, Line, Target, medians_async
from .processes import GENERATED, HERE

CALLS = 320
AT_ONCE = 32
HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"
ARGUMENTS = {"a": 1, "b": 2}
CALL = b'{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"add",%s}}\n'
SAME_BYTES = {
    HANDSHAKE: CALL % b'"arguments":{"a":1,"b":2}',
    PER_REQUEST: CALL
    % (
        b'"arguments":{"a":1,"b":2},"_meta":{'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{},'
        b'"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}'
    ),
}

Caller = Callable[[], Awaitable[object]]
Timed = Callable[[Caller], Awaitable[float]]


async def one_by_one(call: Caller, calls: int = CALLS) -> float:
    """Seconds per call when each call starts after the previous one has ended."""
    start = time.perf_counter()
    for _ in range(calls):
        await call()
    return (time.perf_counter() - start) / calls


async def many_at_once(call: Caller, calls: int = CALLS, at_once: int = AT_ONCE) -> float:
    """Seconds per call with a fixed number of open calls."""

    async def lane() -> None:
        for _ in range(calls // at_once):
            await call()

    start = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(at_once)))
    return (time.perf_counter() - start) / (calls // at_once * at_once)


@asynccontextmanager
async def ours(server: Any, revision: str) -> AsyncIterator[Caller]:
    """Our client on our server."""
    environment = {"PYTHONPATH": str(GENERATED)}
    async with connect(server, revision=revision, env=environment) as client:
        result = await client.call_tool("add", ARGUMENTS)
        assert result.content[0].text == "3", result
        yield partial(client.call_tool, "add", ARGUMENTS)


@asynccontextmanager
async def official(server: Any, revision: str) -> AsyncIterator[Caller]:
    """The official client on the official server."""
    mode = "legacy" if revision == HANDSHAKE else revision
    async with mcp.Client(server, mode=mode) as client:
        result = await client.call_tool("add", ARGUMENTS)
        assert result.content[0].text == "3", result
        yield partial(client.call_tool, "add", ARGUMENTS)


class Echo:
    """A client of the echo, whose responses come in the order of the requests."""

    def __init__(self, process: asyncio.subprocess.Process, line: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._writer, self._reader = process.stdin, process.stdout
        self._line = line
        self._waiting: deque[asyncio.Future[bytes]] = deque()

    async def read(self) -> None:
        """Complete the oldest call with each line that arrives."""
        while line := await self._reader.readline():
            self._waiting.popleft().set_result(line)

    async def call(self) -> bytes:
        """Send a line and wait until it comes back."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._writer.write(self._line)
        await self._writer.drain()
        return await answer


@asynccontextmanager
async def echo(script: Path, line: bytes) -> AsyncIterator[Caller]:
    """The floor: the same bytes through two pipes and two event loops, without parsing."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    client = Echo(process, line)
    reader = asyncio.create_task(client.read())
    assert await client.call() == line
    yield client.call
    assert process.stdin is not None
    process.stdin.close()
    await reader
    await process.wait()


async def compare(
    contenders: Mapping[str, Any],
    timed: Timed,
    rounds: int,
) -> dict[str, float]:
    """Seconds per call by contender, with all connections open."""
    async with AsyncExitStack() as stack:
        callers = {
            name: await stack.enter_async_context(contender)
            for name, contender in contenders.items()
        }
        timings = {name: partial(timed, caller) for name, caller in callers.items()}
        return await medians_async(timings, rounds)


def in_memory(rounds: int) -> Iterable[Line]:
    """Rows on a call within one process."""
    server = official_server.server
    rivals = (
        (HANDSHAKE, "", server, AtMost(SDK, 1 / 9)),
        (PER_REQUEST, "", InMemoryTransport(server), AtMost(SDK, 1 / 9)),
        (PER_REQUEST, " (the SDK passes objects, not messages)", server, AtMost(SDK, 1 / 4)),
    )
    for revision, how, rival, target in rivals:
        contenders = {OURS: ours(our_server.server, revision), SDK: official(rival, revision)}
        times = asyncio.run(compare(contenders, one_by_one, rounds))
        yield Line(f"tool call in memory, {revision}{how}", times, (target,))


def over_pipes(rounds: int) -> Iterable[Line]:
    """Rows on a call to another process."""
    ways: Sequence[tuple[Timed, str, Target]] = (
        (one_by_one, "one by one", AtMost(FLOOR, 3)),
        (many_at_once, f"{AT_ONCE} at once", AtMost(FLOOR, 2.2)),
    )
    for revision in (HANDSHAKE, PER_REQUEST):
        for timed, how, to_floor in ways:
            command = [sys.executable, str(HERE / "our_server.py")]
            parameters = mcp.StdioServerParameters(
                command=sys.executable, args=[str(HERE / "official_server.py")]
            )
            contenders = {
                OURS: ours(command, revision),
                SDK: official(parameters, revision),
                FLOOR: echo(HERE / "echo_server.py", SAME_BYTES[revision]),
            }
            times = asyncio.run(compare(contenders, timed, rounds))
            targets = (AtMost(SDK, 1 / 3), to_floor)
            yield Line(f"tool call over stdio, {how}, {revision}", times, targets)
