"""The CPU time that a server takes for a call over HTTP, under raw requests.

It depends less on other processes than the clock does: contenders are compared by it first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial

from .calls import HANDSHAKE, PER_REQUEST, many_at_once
from .http_calls import CONNECTIONS, event_loop
from .load import Load
from .measure import FASTMCP, FLOOR, OURS, SDK, TYPESCRIPT, AtMost, Line, medians_async
from .serving import HttpServer, contenders, run_contender

CALLS = 3_200
"""Calls of one round."""

VARIED = {"with a Context": "add_with_context", "of a tool that waits": "add_after_waiting"}
"""Tools of ours that take more than `add`."""
TO_REACH = {
    HANDSHAKE: (1.72, {"with a Context": 1.92, "of a tool that waits": 2.17}),
    PER_REQUEST: (1.61, {"with a Context": 1.92, "of a tool that waits": 2.17}),
}
"""CPU time in that of the bare application: of `add`, and of the other tools."""


def cpu_over_http(rounds: int) -> Iterable[Line]:
    """Rows on the CPU time of servers."""
    with ExitStack() as stack:
        names = [name for name in contenders() if name != FASTMCP]  # ten times the others' time
        servers = {name: stack.enter_context(run_contender(name)) for name in names}
        servers["varied"] = stack.enter_context(run_contender("varied"))
        for revision, (factor, factors) in TO_REACH.items():
            with asyncio.Runner(loop_factory=event_loop) as runner:
                times = runner.run(measure_calls(servers, revision, rounds))
            name = f"CPU time of the server for a call over HTTP, {revision}"
            shown = {each: times[each] for each in (OURS, SDK, FLOOR)}
            yield Line(name, shown, (AtMost(FLOOR, factor), AtMost(SDK, 1 / 6)))
            if TYPESCRIPT in times:
                yield Line(
                    f"{name}, against Node", {each: times[each] for each in (OURS, TYPESCRIPT)}
                )
            for how, at_most in factors.items():
                varied = {OURS: times[how], FLOOR: times[FLOOR]}
                yield Line(f"{name}, {how}", varied, (AtMost(FLOOR, at_most),))


async def measure_calls(
    servers: Mapping[str, HttpServer], revision: str, rounds: int
) -> dict[str, float]:
    """Seconds of CPU time per call by contender, and of ours by how the tool differs from `add`."""
    places = {
        name: (server, "add")
        for name, server in servers.items()
        if name != "varied" and (name != TYPESCRIPT or revision == PER_REQUEST)
    }
    places |= {how: (servers["varied"], tool) for how, tool in VARIED.items()}
    timed = {
        name: partial(cpu_time, server, revision, tool) for name, (server, tool) in places.items()
    }
    return await medians_async(timed, rounds)


async def cpu_time(server: HttpServer, revision: str, tool: str) -> float:
    """Seconds of CPU time for one of many calls at once.

    The connections are new: a server ends those that wait for the turns of the other contenders.
    """
    load = Load(server.url, revision, tool=tool)
    await load.start()
    started = server.cpu_time()
    await many_at_once(load.call, CALLS, CONNECTIONS)
    taken = server.cpu_time() - started
    load.close()
    return taken / CALLS
