"""A tool call over HTTP: the server alone under a load of raw requests, and with its own client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import fastmcp
import mcp

from mcp_protocol import connect

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
from .measure import FASTMCP, FLOOR, OURS, SDK, AtMost, Line, typical_async
from .serving import HttpServer, all_serving

CALLS = 3 * AT_ONCE
"""Calls of one round: few, so that the contenders take turns often."""

WAYS = ((one_by_one, "one by one"), (many_at_once, f"{AT_ONCE} at once"))
END_TO_END = (AtMost(SDK, 1 / 3), AtMost(FLOOR, 1.8))


@asynccontextmanager
async def raw(url: str, revision: str) -> AsyncIterator[Caller]:
    """Requests made before, over bare sockets."""
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
    """What the official client calls a revision, and FastMCP's, which is made of it."""
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
"""The floor is the same client as ours, with a server that does nothing."""


def over_http(rounds: int) -> Iterable[Line]:
    """Lines on a call over HTTP."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else it makes texts for nobody
    with all_serving() as servers:
        for revision in (HANDSHAKE, PER_REQUEST):
            for timed, how in WAYS:
                alone = {name: raw(server.url, revision) for name, server in servers.items()}
                yield Line(
                    f"server alone over HTTP, {how}, {revision}", taken(alone, timed, rounds)
                )
                yield Line(
                    f"tool call over HTTP, {how}, {revision}",
                    taken(end_to_end(servers, revision), timed, rounds),
                    END_TO_END,
                )


def end_to_end(
    servers: Mapping[str, HttpServer], revision: str
) -> dict[str, AbstractAsyncContextManager[Caller]]:
    """Each library's client with its own server."""
    return {name: CLIENTS[name](server.url, revision) for name, server in servers.items()}


def taken(
    contenders: Mapping[str, AbstractAsyncContextManager[Caller]],
    timed: Callable[..., Awaitable[float]],
    rounds: int,
) -> dict[str, float]:
    """Seconds per call by contender: the median of the rounds."""
    return asyncio.run(compare(contenders, partial(timed, calls=CALLS), rounds, typical_async))
