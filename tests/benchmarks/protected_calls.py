"""A tool call with a verified JWT, and the same call to a server that is not protected.

The CPU time of the server's process is compared: it depends less on other processes than the clock
does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from .calls import PER_REQUEST
from .load import Load
from .measure import FLOOR, OURS, AtMost, Line, medians_async
from .serving import HttpServer, serving

CALLS = 6000
"""Calls of one round: the system counts CPU time in hundredths of a second."""


def protected_calls(rounds: int) -> Iterable[Line]:
    """The line on a call with a token; the floor is the call without."""
    with serving("protected") as ours, serving(OURS) as floor:
        times = asyncio.run(measured(ours, floor, rounds))
    name = f"CPU time of the server for a call with a verified JWT, {PER_REQUEST}"
    yield Line(name, times, (AtMost(FLOOR, 1.15),))


async def measured(ours: HttpServer, floor: HttpServer, rounds: int) -> dict[str, float]:
    """Seconds of CPU time per call by contender: the median of the rounds."""
    url, _, token = ours.url.partition("#")
    loads = {OURS: Load(url, PER_REQUEST, token), FLOOR: Load(floor.url, PER_REQUEST)}
    servers = {OURS: ours, FLOOR: floor}
    for load in loads.values():
        await load.start()
    contenders = {name: partial(cpu_time, servers[name], load) for name, load in loads.items()}
    times = await medians_async(contenders, rounds)
    for load in loads.values():
        load.close()
    return times


async def cpu_time(server: HttpServer, load: Load) -> float:
    """Seconds of CPU time for one call, one after the other."""
    started = server.cpu_time()
    for _ in range(CALLS):
        await load.call()
    return (server.cpu_time() - started) / CALLS
