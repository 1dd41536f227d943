"""Memory that one more client costs a server over HTTP: growth of the server's process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from .load import Load
from .measure import FASTMCP, FLOOR, TYPESCRIPT, AtMost, Line
from .serving import HttpServer, contenders, run_contender
from .work import HANDSHAKE, PER_REQUEST

SESSIONS = 500
STREAMS = 200
WARM = 20
"""Sessions opened before the measurement, since the first ones cost more than later ones."""

Holding = Callable[[HttpServer], Coroutine[Any, Any, float]]


async def idle_session(server: HttpServer) -> float:
    """Bytes for an idle session."""
    load = Load(server.url, HANDSHAKE)
    await load.start()
    return await _each(server, load.session, SESSIONS)


async def session_stream(server: HttpServer) -> float:
    """Bytes for the stream of a session, which is open for messages of the server."""
    load = Load(server.url, HANDSHAKE)
    sessions = [await load.session() for _ in range(WARM + STREAMS)]
    return await _each(server, lambda: load.stream(sessions.pop()), STREAMS)


async def subscription(server: HttpServer) -> float:
    """Bytes for one subscription."""
    return await _each(server, Load(server.url, PER_REQUEST).stream, STREAMS)


async def _each(server: HttpServer, begin: Callable[[], Awaitable[object]], count: int) -> float:
    """Bytes for each run of `begin`."""
    for _ in range(WARM):
        await begin()
    before = server.memory()
    for _ in range(count):
        await begin()
    return (server.memory() - before) / count


SUBSCRIPTION = AtMost(FLOOR, 1.7, "a subscription has a connection and a context of its own")

KINDS: dict[str, tuple[Holding, frozenset[str], tuple[AtMost, ...]]] = {
    f"an idle session, {HANDSHAKE}": (idle_session, frozenset({FLOOR}), ()),
    f"an open stream, {HANDSHAKE}": (session_stream, frozenset(), (AtMost(FLOOR, 1.7),)),
    f"an open stream, {PER_REQUEST}": (subscription, frozenset({FASTMCP}), (SUBSCRIPTION,)),
}
"""By what is held: the measurement, the contenders that lack the feature, and the targets."""


def memory_held(_: int) -> Iterable[Line]:
    """Rows on memory, each figure from a server of its own; once, as load does not change it."""
    for kind, (holding, lacking, targets) in KINDS.items():
        figures: dict[str, float] = {}
        for contender in contenders():
            if contender not in lacking | {TYPESCRIPT}:
                with run_contender(contender) as server:
                    figures[contender] = asyncio.run(holding(server))
        yield Line(f"memory of {kind}", figures, targets, show=kibibytes)


def kibibytes(size: float) -> str:
    """A size in memory."""
    return f"{size / 1024:.1f} KiB"
