"""The CPU time that a server takes for a call over HTTP, under raw requests."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from .calls import many_at_once
from .http_calls import CHECKED, CONNECTIONS, event_loop
from .load import Load
from .measure import FASTMCP, FLOOR, OURS, SDK, TYPESCRIPT, AtMost, Line, medians_async
from .serving import HttpServer, contenders, run_contender
from .work import HANDSHAKE, PER_REQUEST, REAL, REPORTING, TRIVIAL, WITH_TOKEN, Work

CALLS = 3_200
"""Calls of one round."""

STORED = "a stream in a session stores each event, and begins with one that has only an id"
REPORTED = "a report is typed, checked and timed: nearly as many bytecodes as the rest of the call"
TARGETS: Mapping[Work, Mapping[str, Sequence[AtMost]]] = {
    REAL: {
        HANDSHAKE: (AtMost(FLOOR, 1.95, CHECKED), AtMost(SDK, 1 / 6.5, CHECKED)),
        PER_REQUEST: (AtMost(FLOOR, 1.95, CHECKED), AtMost(SDK, 1 / 5.2, CHECKED)),
    },
    REPORTING: {
        HANDSHAKE: (AtMost(FLOOR, 3.2, STORED),),
        PER_REQUEST: (AtMost(FLOOR, 2.4, REPORTED),),
    },
    WITH_TOKEN: dict.fromkeys((HANDSHAKE, PER_REQUEST), (AtMost(FLOOR, 1.9, CHECKED),)),
    TRIVIAL: dict.fromkeys((HANDSHAKE, PER_REQUEST), (AtMost(FLOOR, 1.9, CHECKED),)),
}
"""The targets of each call."""
AGAINST_ALL = (REAL, TRIVIAL)
"""The calls that are compared with the SDKs too; the servers of those answer with JSON alone."""


def cpu_over_http(rounds: int) -> Iterable[Line]:
    """Rows on the CPU time of servers."""
    with ExitStack() as stack:
        names = [name for name in contenders() if name != FASTMCP]  # ten times the others' time
        servers = {name: stack.enter_context(run_contender(name)) for name in names}
        for work, revision in itertools.product(TARGETS, (HANDSHAKE, PER_REQUEST)):
            targets = TARGETS[work][revision]
            compared = {
                name: server
                for name, server in servers.items()
                if name in (OURS, FLOOR)
                or (work in AGAINST_ALL and (name != TYPESCRIPT or revision == PER_REQUEST))
            }
            timed = {
                name: partial(cpu_time, server, revision, work) for name, server in compared.items()
            }
            with asyncio.Runner(loop_factory=event_loop) as runner:
                times = runner.run(medians_async(timed, rounds))
            typescript = times.pop(TYPESCRIPT, None)
            name = f"{work.name}, CPU time of the server over HTTP, {revision}"
            yield Line(name, times, targets)
            if typescript is not None:
                yield Line(f"{name}, against Node", {OURS: times[OURS], TYPESCRIPT: typescript})


async def cpu_time(server: HttpServer, revision: str, work: Work) -> float:
    """Seconds of CPU time for one of many calls at once."""
    load = Load(server.url, revision, work=work)
    await load.start()
    started = server.cpu_time()
    await many_at_once(load.call, CALLS, CONNECTIONS)
    taken = server.cpu_time() - started
    load.close()
    return taken / CALLS
