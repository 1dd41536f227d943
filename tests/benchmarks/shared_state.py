"""Servers whose processes share an engine: what it adds to a call, changes, and lost processes."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from .processes import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from kit.engine import Engine, run_engine
from kit.requestor import REVISION, Work, connect_requestor
from package.server.shared.shared_servers import run_workers

from . import servers
from .calls import many_at_once
from .http_calls import CONNECTIONS, event_loop
from .http_memory import kibibytes
from .load import Lane, Load
from .measure import FLOOR, OURS, AtMost, Line, Near, RateOf, Within, format_seconds, medians_async
from .serving import HttpServer, run_contender
from .work import HANDSHAKE, PER_REQUEST

WORKERS = 4
PREDICTED = (1, 2, 4)
"""Numbers of workers whose calls per second the capacity model predicts."""

SHARED_CORES = "workers, engine and load share the cores, and wait for each other"
"""Why calls may take longer than the floor where processes share two cores."""

LISTENERS = 1_000
ANNOUNCEMENTS = 20
CALLS = 3_200
SESSIONS = 500
KILLED = 5
"""Rounds of calls after a process was killed, at most: each starts two."""


class Listener(Lane):
    """A connection with an open stream."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[float] = []

    def data_received(self, data: bytes) -> None:
        self.heard += [time.perf_counter()] * data.count(b"list_changed")
        super().data_received(data)


class SpreadLoad(Load):
    """Requests of one session to several servers: each connection reaches the next of them."""

    def __init__(
        self, servers: Sequence[HttpServer], revision: str, kind: Callable[[], Lane] = Lane
    ) -> None:
        super().__init__(servers[0].url, revision)
        places = (urlsplit(server.url) for server in servers)
        self._places = itertools.cycle(
            [(place.hostname or "", place.port or 0) for place in places]
        )
        self._kind = kind

    async def _new_lane(self) -> Lane:
        loop = asyncio.get_running_loop()
        _, lane = await loop.create_connection(self._kind, *next(self._places))
        self._all.append(lane)
        return lane

    def forget(self) -> None:
        """Use new connections for what comes."""
        self._free.clear()

    @property
    def lanes(self) -> Sequence[Lane]:
        """All connections."""
        return self._all


def shared_state(rounds: int) -> Iterable[Line]:
    """Rows on what an engine costs, and on what it gives."""
    with run_engine() as engine, asyncio.Runner(loop_factory=event_loop) as runner:
        with ExitStack() as stack:
            sharing = (run_contender("shared", engine.url) for _ in range(WORKERS))
            shared = [*map(stack.enter_context, sharing)]
            alone = [stack.enter_context(run_contender(OURS)) for _ in range(WORKERS)]
            yield from calls(runner, engine, shared, alone, rounds)
            yield from capacity(runner, engine, shared, alone, rounds)
            yield announcements(runner, engine, shared)
            size = runner.run(session_size(engine, shared[0]))
            most = Within(2048.0, kibibytes)
            yield Line("an engine's memory of a session", {OURS: size}, (most,), show=kibibytes)
        yield Line(
            "a cancellation by another process reaches the work of a task",
            {OURS: statistics.median(runner.run(cancelled_after(engine)))},
            (Within(0.01),),
        )
        turns = range(min(rounds, KILLED))
        times = {OURS: max(runner.run(measure_killed_process(engine)) for _ in turns)}
        yield Line(
            "the first call after SIGKILL of the process that opened the session, slowest",
            times,
            (Within(0.05),),
        )


def calls(
    runner: asyncio.Runner,
    engine: Engine,
    shared: Sequence[HttpServer],
    alone: Sequence[HttpServer],
    rounds: int,
) -> Iterable[Line]:
    """Rows on calls: of one process by its CPU time, of several by the clock too."""
    database = HttpServer(engine.url, engine.pid)
    for revision, target in ((PER_REQUEST, AtMost(FLOOR, 1.02)), (HANDSHAKE, None)):
        name = f"CPU time of a call, {revision}"
        timed = {
            OURS: partial(cpu_time, shared[:1], (), revision),
            FLOOR: partial(cpu_time, alone[:1], (), revision),
            "engine": partial(cpu_time, shared[:1], (database,), revision),
        }
        times = runner.run(medians_async(timed, rounds))
        whole = times.pop("engine")
        yield Line(name, times, () if target is None else (target,))
        if target is None:
            added = {OURS: whole - times[FLOOR]}
            yield Line(f"{name}: added by an engine, its own time included", added, (Within(2e-4),))
    for name, measure, targets in (
        ("CPU time", partial(spread_cpu_time, database), ()),
        ("time", spread_time, (RateOf(FLOOR, 0.8, SHARED_CORES),)),
    ):
        timed = {OURS: partial(measure, shared, True), FLOOR: partial(measure, alone, False)}
        times = runner.run(medians_async(timed, rounds))
        label = f"{name} of a call, {WORKERS} processes, any of them against sticky ones"
        yield Line(label, times, targets)


async def cpu_time(
    servers: Sequence[HttpServer], others: Sequence[HttpServer], revision: str
) -> float:
    """Seconds of CPU time of all for one of many calls at once."""
    load = SpreadLoad(servers, revision)
    await load.start()
    started = sum(each.cpu_time() for each in (*servers, *others))
    await many_at_once(load.call, CALLS, CONNECTIONS)
    taken = sum(each.cpu_time() for each in (*servers, *others)) - started
    load.close()
    return taken / CALLS


@asynccontextmanager
async def loads(servers: Sequence[HttpServer], is_shared: bool) -> AsyncIterator[Sequence[Load]]:
    """As many sessions as servers: of any of them, or of one each."""
    places = [servers if is_shared else [server] for server in servers]
    each = [SpreadLoad(place, HANDSHAKE) for place in places]
    for load in each:
        await load.start()
    try:
        yield each
    finally:
        for load in each:
            load.close()


async def spread_time(
    servers: Sequence[HttpServer], is_shared: bool, connections: int = CONNECTIONS
) -> float:
    """Seconds per call of as many sessions as servers."""
    async with loads(servers, is_shared) as sessions:
        calls_of_each, at_once = CALLS // len(sessions), connections // len(sessions)
        started = time.perf_counter()
        await asyncio.gather(
            *(many_at_once(load.call, calls_of_each, at_once) for load in sessions)
        )
        return (time.perf_counter() - started) / CALLS


async def spread_cpu_time(
    database: HttpServer, servers: Sequence[HttpServer], is_shared: bool
) -> float:
    """Seconds of CPU time per call of all servers, and of the engine."""
    processes = (*servers, database)
    started = sum(each.cpu_time() for each in processes)
    await spread_time(servers, is_shared)
    return (sum(each.cpu_time() for each in processes) - started) / CALLS


class Cost(NamedTuple):
    """The cost of a call in a session: seconds of CPU time, and commands to the engine."""

    worker: float
    engine: float
    load: float
    commands: float

    def seconds(self, workers: int, cores: int) -> float:
        """Seconds by the clock: the capacity model."""
        together = (self.worker + self.engine + self.load) / cores
        return max(self.worker / workers, self.engine, self.load, together)


def capacity(
    runner: asyncio.Runner,
    engine: Engine,
    shared: Sequence[HttpServer],
    alone: Sequence[HttpServer],
    rounds: int,
) -> Iterable[Line]:
    """Rows on calls of several workers by the clock, and as the capacity model predicts them."""
    of_one: dict[int, list[Cost]] = {count: [] for count in PREDICTED}
    times: dict[int, list[float]] = {count: [] for count in PREDICTED}
    sticky: list[Cost] = []
    for _ in range(rounds):
        sticky.append(runner.run(cost_of_call(engine, alone, False)))
        for count, costs in of_one.items():
            costs.append(runner.run(cost_of_call(engine, shared[:1], True, CONNECTIONS // count)))
            times[count].append(runner.run(spread_time(shared[:count], True)))
    cores, busy = len(os.sched_getaffinity(0)), median_cost(of_one[PREDICTED[0]])
    for count, costs in of_one.items():
        worker, load = median_cost(costs).worker, median_cost(sticky).load
        cost = busy._replace(worker=worker, load=load)
        both = {OURS: statistics.median(times[count]), FLOOR: cost.seconds(count, cores)}
        name = f"time of a call, any of {count} processes; the floor is the capacity model"
        note = (
            f"from {format_seconds(worker)} of a worker, {format_seconds(cost.engine)} of the"
            f" engine for {cost.commands:.2f} commands, {format_seconds(load)} of the load,"
            f" {cores} cores"
        )
        yield Line(name, both, (Near(FLOOR, 0.15, SHARED_CORES),), note)


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The median of each part."""
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


async def cost_of_call(
    engine: Engine, servers: Sequence[HttpServer], is_shared: bool, connections: int = CONNECTIONS
) -> Cost:
    """The cost of one of many calls."""
    database = HttpServer(engine.url, engine.pid)

    def spent() -> Cost:
        worker = sum(each.cpu_time() for each in servers)
        commands = engine.figure("stats", "total_commands_processed")
        return Cost(worker, database.cpu_time(), time.process_time(), commands)

    before = spent()
    await spread_time(servers, is_shared, connections)
    return Cost(*((now - then) / CALLS for now, then in zip(spent(), before, strict=True)))


def announcements(runner: asyncio.Runner, engine: Engine, shared: Sequence[HttpServer]) -> Line:
    """The row on changes that a process outside announces."""
    seconds = sorted(runner.run(heard_after(engine, shared)))
    percentile = seconds[int(len(seconds) * 0.99)]
    name = f"a change reaches {LISTENERS:,} listeners of {WORKERS} processes, 99 %"
    note = f"{len(seconds):,} heard, none missed"
    return Line(name, {OURS: percentile}, (Within(0.15),), note)


async def heard_after(engine: Engine, shared: Sequence[HttpServer]) -> list[float]:
    """Seconds from the announcement of each change to each listener that has heard of it."""
    load = SpreadLoad(shared, PER_REQUEST, Listener)
    for _ in range(LISTENERS):
        await load.stream()
    listeners = cast(Sequence[Listener], load.lanes)  # it makes no others
    for listener in listeners:
        listener.heard.clear()  # what came at the start of the bus
    seconds: list[float] = []
    async with servers.ours().announcer(engine.url) as announcer, asyncio.timeout(60):
        for number in range(1, ANNOUNCEMENTS + 1):
            started = time.perf_counter()
            await announcer.list_changed("tools")
            while any(len(listener.heard) < number for listener in listeners):
                await asyncio.sleep(0.01)
            seconds += [listener.heard[-1] - started for listener in listeners]
    load.close()
    return seconds


async def session_size(engine: Engine, server: HttpServer) -> float:
    """Bytes of the engine for one more session."""
    load = Load(server.url, HANDSHAKE)
    await load.session()
    before = engine.figure("memory", "used_memory")
    for _ in range(SESSIONS):
        await load.session()
    load.close()
    return (engine.figure("memory", "used_memory") - before) / SESSIONS


async def cancelled_after(engine: Engine) -> list[float]:
    """Seconds from `tasks/cancel` at one application to the cancellation of the work at another."""
    seconds: list[float] = []
    async with run_workers(engine.url, Work) as workers, connect_requestor(workers.any) as client:
        workers.use_session()
        for _ in range(ANNOUNCEMENTS):
            task_id = (await client.start("waits"))["taskId"]
            at = {
                task_id in work.tasks._running: number
                for number, work in enumerate(workers.servers)
            }
            work, other = workers.servers[at[True]], workers.each[at[False]]
            work.ended = asyncio.Event()
            started = time.perf_counter()
            await other.ask(REVISION, "tasks/cancel", {"taskId": task_id})
            await work.ended.wait()
            seconds.append(time.perf_counter() - started)
    return seconds


async def measure_killed_process(engine: Engine) -> float:
    """Seconds of a session's first call after its process was killed, at another one."""
    sharing = partial(run_contender, "shared", engine.url)
    with sharing() as first, sharing() as second:
        other = SpreadLoad([second], HANDSHAKE)
        await other.start()
        await other.call()  # of another session: the process is warm
        load = SpreadLoad([first, second], HANDSHAKE)  # the next connection is to the second
        await load.start()
        os.kill(first.pid, signal.SIGKILL)
        load.close()
        load.forget()
        started = time.perf_counter()
        await load.call()
        taken = time.perf_counter() - started
        load.close()
        other.close()
        return taken
