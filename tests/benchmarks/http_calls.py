"""A tool call over HTTP: the server alone under raw requests, and with the client of its kind."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import fastmcp

from .calls import AT_ONCE, Caller, compare, many_at_once, official, one_by_one, ours, rival
from .load import Load
from .measure import FASTMCP, FLOOR, OURS, SDK, TYPESCRIPT, AtMost, Line, RateOf
from .serving import HttpServer, all_serving
from .work import HANDSHAKE, PER_REQUEST, REAL, TRIVIAL, Work

CALLS = 3 * AT_ONCE
"""Calls of one round: few, so that the contenders take turns often."""

CONNECTIONS = 16
"""Connections to a server that is measured alone, each with one open call at a time."""

CHECKED = "three fifths of it are head, session and limits, which the floor does not check"
"""By the bytecodes of a call, without those of the event loop."""
ALONE = {
    REAL: (RateOf(FLOOR, 0.5, CHECKED), AtMost(SDK, 1 / 5.2, CHECKED)),
    TRIVIAL: (RateOf(FLOOR, 0.5, CHECKED), AtMost(SDK, 1 / 4.5, CHECKED)),
}
CLIENT_ALONE = "our client on the bare application is hardly faster: the HTTP client takes the time"
END_TO_END = (AtMost(SDK, 1 / 4.5, CLIENT_ALONE), AtMost(FLOOR, 1.3))
WAYS: Sequence[tuple[Callable[..., Awaitable[float]], str]] = (
    (one_by_one, "one by one"),
    (many_at_once, f"{AT_ONCE} at once"),
)


@asynccontextmanager
async def raw(url: str, revision: str, work: Work) -> AsyncIterator[Caller]:
    """Requests that were encoded before, over bare sockets."""
    load = Load(url, revision, work=work)
    await load.start()
    yield load.call
    load.close()


CLIENTS: Mapping[str, Callable[..., AbstractAsyncContextManager[Caller]]] = {
    OURS: ours,
    SDK: official,
    FASTMCP: partial(rival, fastmcp.Client, "progress_handler"),
    FLOOR: ours,
}
"""The client of each contender. The floor is our client with a server that does nothing."""


def over_http(rounds: int) -> Iterable[Line]:
    """Rows on a call over HTTP."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # else each request formats a log text
    with all_serving() as servers:
        for work, revision in itertools.product((REAL, TRIVIAL), (HANDSHAKE, PER_REQUEST)):
            yield from alone(servers, revision, work, rounds)
            for timed, how in WAYS:
                measured = partial(timed, calls=CALLS)
                clients = {
                    name: client(servers[name].url, revision, work)
                    for name, client in CLIENTS.items()
                }
                times = asyncio.run(compare(clients, measured, rounds))
                yield Line(f"{work.name} over HTTP, {how}, {revision}", times, END_TO_END)


def alone(
    servers: Mapping[str, HttpServer], revision: str, work: Work, rounds: int
) -> Iterable[Line]:
    """Rows on the servers without a client library: raw requests over 16 connections."""
    loads = {
        name: raw(server.url, revision, work)
        for name, server in servers.items()
        if name != TYPESCRIPT or revision == PER_REQUEST
    }
    timed = partial(many_at_once, calls=20 * CONNECTIONS, at_once=CONNECTIONS)
    with asyncio.Runner(loop_factory=event_loop) as runner:
        times = runner.run(compare(loads, timed, rounds))
    typescript = times.pop(TYPESCRIPT, None)
    name = f"{work.name}, server alone over HTTP, {CONNECTIONS} connections, {revision}"
    yield Line(name, times, ALONE[work])
    if typescript is not None:
        rivals = {OURS: times[OURS], TYPESCRIPT: typescript}
        yield Line(f"{name}, against Node", rivals, (AtMost(TYPESCRIPT, 1 / 5, CHECKED),))


def event_loop() -> asyncio.AbstractEventLoop:
    """The quickest loop that is installed, so that the load generator is not the bottleneck."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()
