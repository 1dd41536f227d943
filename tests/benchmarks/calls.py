"""A tool call and its response: in memory, and over pipes to a process."""

from __future__ import annotations

import asyncio
import itertools
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

from . import servers
from .measure import FLOOR, OURS, SDK, AtMost, Line, Target, medians_async
from .processes import GENERATED, HERE, SERVERS
from .work import ARGUMENTS, HANDSHAKE, PER_REQUEST, REAL, TOKEN, TRIVIAL, Work

CALLS = 320
AT_ONCE = 32
TYPED = "a client of typed params and results takes more than the whole floor"
"""Why calls at once may take longer than a multiple of the floor."""
BOTH_SIDES = "the protocol of both sides is a third of it, the turns of the event loop are a sixth"
"""Why a call in memory may take longer, by its bytecodes."""

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


async def ignore_progress(*_: object) -> None:
    """Ignore a report of progress; that there may be one gives each call a token."""


def check_result(result: Any, work: Work) -> None:
    """Check a client's result of a call, by its text."""
    text = result.content[0].text.replace(" ", "").replace("\n", "")
    assert work.answer.decode().strip('"') in text, result


@asynccontextmanager
async def ours(server: Any, revision: str, work: Work) -> AsyncIterator[Caller]:
    """Our client, on our server or on the URL of one."""
    environment = {"PYTHONPATH": str(GENERATED)} if isinstance(server, list) else None
    async with connect(server, revision=revision, env=environment) as client:
        call = partial(client.call_tool, work.tool, ARGUMENTS)
        if work.has_token:
            call = partial(call, on_progress=ignore_progress)
        check_result(await call(), work)
        yield call


def mode(revision: str) -> str:
    """The name of a revision in the official client and in FastMCP, which is built on it."""
    return "legacy" if revision == HANDSHAKE else revision


@asynccontextmanager
async def rival(
    kind: Any, progress: str, server: Any, revision: str, work: Work
) -> AsyncIterator[Caller]:
    """The official client, or FastMCP's, on a server of its kind or on the URL of one."""
    async with kind(server, mode=mode(revision)) as client:
        assert client.protocol_version == revision, client.protocol_version
        call = partial(client.call_tool, work.tool, ARGUMENTS)
        if work.has_token:
            call = partial(call, **{progress: ignore_progress})
        check_result(await call(), work)
        yield call


official = partial(rival, mcp.Client, "progress_callback")


class Response(msgspec.Struct):
    """A response of the floor."""

    id: int
    result: dict[str, Any]


class BareClient:
    """The client of the floor: a future for each call, and msgspec on bare asyncio streams."""

    def __init__(
        self, process: asyncio.subprocess.Process, params: Mapping[str, Any], *, has_token: bool
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._writer, self._reader = process.stdin, process.stdout
        self._call = {"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params}
        self._params, self._has_token = params, has_token
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
        call = {**self._call, "id": self._last}
        if self._has_token:
            meta = {**self._params["_meta"], TOKEN: self._last}
            call["params"] = {**self._params, "_meta": meta}
        self._writer.write(self._encode(call) + b"\n")
        await self._writer.drain()
        return await result


@asynccontextmanager
async def bare(script: Path, revision: str, work: Work) -> AsyncIterator[Caller]:
    """The floor: the same messages through two pipes and two event loops."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    client = BareClient(process, work.params(revision), has_token=work.has_token)
    reader = asyncio.create_task(client.read())
    result = await client.call()
    assert work.answer.decode().strip('"') in result["content"][0]["text"], result
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
    server = servers.official()
    objects = " (the SDK passes objects, not messages)"
    rivals = (
        (REAL, HANDSHAKE, "", server, 1 / 4),
        (REAL, PER_REQUEST, "", InMemoryTransport(server), 1 / 4),
        (TRIVIAL, HANDSHAKE, "", server, 1 / 8),
        (TRIVIAL, PER_REQUEST, "", InMemoryTransport(server), 1 / 9),
        (TRIVIAL, PER_REQUEST, objects, server, 1 / 4),
    )
    for work, revision, how, rival, factor in rivals:
        contenders = {
            OURS: ours(servers.ours(), revision, work),
            SDK: official(rival, revision, work),
        }
        times = asyncio.run(compare(contenders, one_by_one, rounds))
        target = AtMost(SDK, factor, BOTH_SIDES)
        yield Line(f"{work.name} in memory, {revision}{how}", times, (target,))


def over_pipes(rounds: int) -> Iterable[Line]:
    """Rows on a call to another process."""
    ways: Sequence[tuple[Timed, str, Target]] = (
        (one_by_one, "one by one", AtMost(FLOOR, 2)),
        (many_at_once, f"{AT_ONCE} at once", AtMost(FLOOR, 2.4, TYPED)),
    )
    for work, revision in itertools.product((REAL, TRIVIAL), (HANDSHAKE, PER_REQUEST)):
        for timed, how, to_floor in ways:
            command = [sys.executable, str(SERVERS), "ours"]
            parameters = mcp.StdioServerParameters(
                command=sys.executable, args=[str(SERVERS), "official"]
            )
            contenders = {
                OURS: ours(command, revision, work),
                SDK: official(parameters, revision, work),
                FLOOR: bare(HERE / "bare_server.py", revision, work),
            }
            times = asyncio.run(compare(contenders, timed, rounds))
            targets = (AtMost(SDK, 1 / 3), to_floor)
            yield Line(f"{work.name} over stdio, {how}, {revision}", times, targets)
