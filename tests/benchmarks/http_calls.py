"""A tool call over HTTP: the server alone under raw requests, and with the client of its kind."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import fastmcp
import mcp

from mcpgen_runtime import connect

from .calls import (
    ARGUMENTS,
    AT_ONCE,
    HANDSHAKE,
    PER_REQUEST,
    Caller,
    compare,
    many_at_once,
    one_by_one,
)
from .load import Load
from .measure import FASTMCP, FLOOR, OURS, SDK, TYPESCRIPT, AtMost, Line, RateOf
from .serving import HttpServer, all_serving

CALLS = 3 * AT_ONCE
"""Calls of one round: few, so that the contenders take turns often."""

CONNECTIONS = 16
"""Connections to a server that is measured alone, each with one open call at a time."""

ALONE = (RateOf(FLOOR, 0.55), AtMost(SDK, 1 / 6))
END_TO_END = (AtMost(SDK, 1 / 4.5), AtMost(FLOOR, 1.3))
WAYS: Sequence[tuple[Callable[..., Awaitable[float]], str]] = (
    (one_by_one, "one by one"),
    (many_at_once, f"{AT_ONCE} at once"),
)


@asynccontextmanager
async def raw(url: str, revision: str) -> AsyncIterator[Caller]:
    """Requests that were encoded before, over bare sockets."""
    load = Load(url, revision)
    await load.start()
    yield load.call
    load.close()


@asynccontextmanager
async def ours(url: str, revision: str) -> AsyncIterator[Caller]:
    """Our client."""
    async with connect(url, revision=revision) as client:
        result = await client.call_tool("add", ARGUMENTS)
        assert result.content[0].text == "3", result
        yield partial(client.call_tool, "add", ARGUMENTS)


def mode(revision: str) -> str:
    """The name of a revision in the official client and in FastMCP, which is built on it."""
    return "legacy" if revision == HANDSHAKE else revision


@asynccontextmanager
async def official(url: str, revision: str) -> AsyncIterator[Caller]:
    """The official client."""
    async with mcp.Client(url, mode=mode(revision)) as client:
        assert client.protocol_version == revision, client.protocol_version
        result = await client.call_tool("add", ARGUMENTS)
        assert result.content[0].text == "3", result
        yield partial(client.call_tool, "add", ARGUMENTS)


@asynccontextmanager
async def by_fastmcp(url: str, revision: str) -> AsyncIterator[Caller]:
    """FastMCP's client."""
    async with fastmcp.Client(url, mode=mode(revision)) as client:
        assert client.protocol_version == revision, client.protocol_version
        result = await client.call_tool("add", ARGUMENTS)
        assert result.content[0].text == "3", result
        yield partial(client.call_tool, "add", ARGUMENTS)


CLIENTS = {OURS: ours, SDK: official, FASTMCP: by_fastmcp, FLOOR: ours}
"""The client of each contender. The floor is our client with a server that does nothing."""


def over_http(rounds: int) -> Iterable[Line]:
    """Rows on a call over HTTP."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else each request formats a log text
    with all_serving() as servers:
        for revision in (HANDSHAKE, PER_REQUEST):
            yield from alone(servers, revision, rounds)
            for timed, how in WAYS:
                measured = partial(timed, calls=CALLS)
                times = asyncio.run(compare(end_to_end(servers, revision), measured, rounds))
                yield Line(f"tool call over HTTP, {how}, {revision}", times, END_TO_END)


def alone(servers: Mapping[str, HttpServer], revision: str, rounds: int) -> Iterable[Line]:
    """Rows on the servers without a client library: raw requests over 16 connections."""
    loads = {
        name: raw(server.url, revision)
        for name, server in servers.items()
        if name != TYPESCRIPT or revision == PER_REQUEST
    }
    timed = partial(many_at_once, calls=20 * CONNECTIONS, at_once=CONNECTIONS)
    with asyncio.Runner(loop_factory=event_loop) as runner:
        times = runner.run(compare(loads, timed, rounds))
    typescript = times.pop(TYPESCRIPT, None)
    name = f"server alone over HTTP, {CONNECTIONS} connections, {revision}"
    yield Line(name, times, ALONE)
    if typescript is not None:
        rivals = {OURS: times[OURS], TYPESCRIPT: typescript}
        yield Line(f"{name}, against Node", rivals, (AtMost(TYPESCRIPT, 1 / 8),))


def event_loop() -> asyncio.AbstractEventLoop:
    """The quickest loop that is installed, so that the load generator is not the bottleneck."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


def end_to_end(
    servers: Mapping[str, HttpServer], revision: str
) -> dict[str, AbstractAsyncContextManager[Caller]]:
    """Each Python library's client with its own server."""
    return {name: client(servers[name].url, revision) for name, client in CLIENTS.items()}
