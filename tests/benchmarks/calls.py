"""A tool call and its response: in memory, and over pipes to a process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import mcp
import msgspec
from mcp.client._memory import InMemoryTransport

from mcpgen_runtime import connect

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


class Response(msgspec.Struct):
    """A response of the floor."""

    id: int
    result: dict[str, Any]


class BareClient:
    """The client of the floor: a future for each call, and msgspec on bare asyncio streams."""

    def __init__(self, process: asyncio.subprocess.Process, call: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._writer, self._reader = process.stdin, process.stdout
        self._call = call
        self._encode = msgspec.json.Encoder().encode
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last = 0

    async def read(self) -> None:
        """Complete the call of each response that arrives."""
        decode = msgspec.json.Decoder(Response).decode
        while line := await self._reader.readline():
            response = decode(line)
            self._waiting.pop(response.id).set_result(response.result)

    async def call(self) -> dict[str, Any]:
        """Send a call and wait for its result."""
        result: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._last += 1
        self._waiting[self._last] = result
        self._writer.write(self._encode({**self._call, "id": self._last}) + b"\n")
        await self._writer.drain()
        return await result


@asynccontextmanager
async def bare(script: Path, line: bytes) -> AsyncIterator[Caller]:
    """The floor: the same messages through two pipes and two event loops."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    client = BareClient(process, msgspec.json.decode(line))
    reader = asyncio.create_task(client.read())
    result = await client.call()
    assert result["content"][0]["text"] == "3", result
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
        (one_by_one, "one by one", AtMost(FLOOR, 2)),
        (many_at_once, f"{AT_ONCE} at once", AtMost(FLOOR, 2)),
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
                FLOOR: bare(HERE / "bare_server.py", SAME_BYTES[revision]),
            }
            times = asyncio.run(compare(contenders, timed, rounds))
            targets = (AtMost(SDK, 1 / 3), to_floor)
            yield Line(f"tool call over stdio, {how}, {revision}", times, targets)
