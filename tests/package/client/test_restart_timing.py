"""Server processes that are slow to start, or end and are restarted, on a virtual clock."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.http_script import log_message
from kit.live import FakeServer, handlers_with
from kit.simulation import on_virtual_clock
from kit.wire import HANDSHAKE, PER_REQUEST, encode_message, every
from mcpgen_runtime import (
    ConnectionClosedError,
    RequestTimeoutError,
    ResponseLostError,
    Restart,
    Timeouts,
    connect,
)
from mcpgen_runtime.client.client_settings import ClientSettings
from mcpgen_runtime.transports import process
from mcpgen_runtime.transports.memory import BUFFERED_BYTES
from mcpgen_runtime.transports.process import BRIEF

pytestmark = on_virtual_clock

LIMITS = Timeouts(opening=60.0, longest_opening=300.0)
AT_ONCE = Restart(pauses=())


class Process(FakeServer):
    """A server process."""

    timeouts, stderr_tail, wait_seconds = BRIEF, (), 1000.0

    def __init__(
        self,
        start: float = 0.0,
        writes: Iterable[float] = (),
        *,
        reads: bool = False,
        answers: bool = True,
        early: Sequence[Mapping[str, Any]] = (),
        revision: str = HANDSHAKE[-1],
    ) -> None:
        super().__init__(revision)
        self.begun = 0.0
        self._start, self._writes, self._reads = start, writes, reads
        self._answers, self._early = answers, early

    @property
    def took_input(self) -> bool:
        """See `ProcessChannel.took_input`."""
        return self._reads or anyio.current_time() >= self.begun + self._start

    async def follow_stderr(self, on_output: Callable[[], object]) -> None:
        """See `ProcessChannel.follow_stderr`."""
        for each in self._writes:
            await anyio.sleep_until(self.begun + each)
            on_output()

    async def receive(self) -> bytes:
        await anyio.sleep_until(self.begun + self._start)
        return await super().receive()

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        await super().close()

    async def agree_to_open(self, message: Mapping[str, Any]) -> None:
        for each in self._early if message["method"] == "initialize" else ():
            await self.say(each)
        if self._answers:
            await super().agree_to_open(message)


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens a client of the first of several processes; gives it, and the times of all starts."""

    @asynccontextmanager
    async def starting(
        *processes: Process, revision: str | None = HANDSHAKE[-1], **how: Any
    ) -> AsyncIterator[tuple[Any, list[float]]]:
        times: list[float] = []

        async def start(*_: Any, **__: Any) -> Process:
            times.append(anyio.current_time())
            started = processes[len(times) - 1]
            started.begun = times[-1]
            return started

        # A real process knows nothing of the virtual clock.
        monkeypatch.setattr(process, "open_process", start)
        opening: Any = connect(["x"], revision=revision, **{"timeouts": LIMITS, **how})
        async with opening as client:
            yield client, times

    return starting


async def lose(client: Any, process: Process) -> None:
    """End a process that has read a request."""
    call = client.start_call(client.call_tool, "work")
    await process.next()
    await process.hang_up()
    with pytest.raises(ResponseLostError, match="the process is started again"):
        await call


async def list_no_tools(client: Any, process: Process) -> None:
    """Request a list from a process, which has none."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.list_tools)
        await process.answer(await process.next(), {"tools": []})


@every
async def test_output_on_standard_error_extends_the_opening(revision: str, starting: Any) -> None:
    slow = Process(250.0, range(50, 251, 50), revision=revision)
    async with starting(slow, revision=revision):
        assert anyio.current_time() == pytest.approx(250.0)


@pytest.mark.parametrize(
    ("start", "writes", "lasts"),
    [(59.0, (), None), (61.0, (), 60), (150.0, (50.0,), 110), (1000.0, range(1, 1000), 300)],
)
async def test_a_silent_process_is_given_up_after_the_opening_time(
    start: float, writes: Iterable[float], lasts: float | None, starting: Any
) -> None:
    opening = starting(Process(start, writes))
    if lasts is None:
        async with opening:
            assert anyio.current_time() == pytest.approx(start)
    else:
        with pytest.raises(RequestTimeoutError, match=f"no answer within {lasts} s"):
            await opening.__aenter__()
    defaults = ClientSettings().timeouts
    assert (defaults.opening, defaults.longest_opening) == (60.0, 300.0)


async def test_a_process_that_reads_and_writes_is_not_started_anew(starting: Any) -> None:
    reading = Process(100.0, range(20, 101, 20), reads=True, revision=PER_REQUEST[-1])
    async with starting(reading, revision=None) as (_, times):
        assert anyio.current_time() == pytest.approx(100.0)
        assert len(times) == 1


async def test_a_process_that_reads_and_is_silent_is_started_anew(starting: Any) -> None:
    silent = Process(40.0, reads=True, revision=PER_REQUEST[-1])
    async with starting(silent, Process(2.0), revision=None) as (_, times):
        assert anyio.current_time() == pytest.approx((5.0 + 60.0) / 2 + 2.0)
        assert len(times) == 2


async def test_a_process_that_is_restarted_may_be_as_slow(starting: Any) -> None:
    processes = [Process(250.0, range(50, 251, 50)) for _ in range(2)] + [Process(1.0)]
    async with starting(*processes, restart=AT_ONCE) as (client, _):
        for each, restarted, seconds in zip(processes, processes[1:], (500.0, 501.0), strict=False):
            await lose(client, each)
            await list_no_tools(client, restarted)
            assert anyio.current_time() == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("pauses", "expected"),
    [
        ((), [0, 0, 0, 0]),
        ((1.0, 3.0), [0, 1, 4, 7]),
        ((0.0, 0.5, 1.0, 2.0, 5.0), [0, 0, 0.5, 1.5]),
    ],
)
async def test_restarts_have_the_pauses_of_their_number(
    pauses: tuple[float, ...], expected: list[float], starting: Any, caplog: Any
) -> None:
    processes = [Process() for _ in expected]
    async with starting(*processes, restart=Restart(pauses=pauses)) as (client, times):
        for each in processes[:-1]:
            await lose(client, each)
        await list_no_tools(client, processes[-1])
    assert times == expected
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len([text for text in logged if text.endswith("; it was started again")]) == 3


@pytest.mark.parametrize(("seconds", "restarted"), [(10.0, True), (10.5, False)])
async def test_restarts_are_counted_for_some_seconds(
    seconds: float, restarted: bool, starting: Any
) -> None:
    processes = [Process(), Process(), Process()]
    restart = Restart(limit=1, seconds=seconds, pauses=())
    async with starting(*processes, restart=restart) as (client, times):
        await lose(client, processes[0])
        await list_no_tools(client, processes[1])
        await anyio.sleep(10.0)
        await lose(client, processes[1])
        if restarted:
            await list_no_tools(client, processes[2])
        else:
            with pytest.raises(ConnectionClosedError, match=r"again 1 times within 10\.5 s"):
                await client.list_tools()
    assert times == [0, 0, 10][: 2 + restarted]


async def test_messages_sent_during_negotiation_are_received_after_it(starting: Any) -> None:
    processes = [
        Process(),
        Process(answers=False, early=[log_message("dropped")]),
        Process(early=[log_message("first"), log_message("second")]),
    ]
    timeouts, logged = Timeouts(opening=1.25), list[str]()
    async with starting(*processes, restart=AT_ONCE, timeouts=timeouts) as (client, times):
        client.on_log(lambda message: logged.append(message.data))
        await lose(client, processes[0])
        await list_no_tools(client, processes[2])
    assert logged == ["first", "second"]
    assert times == [0, 0, 1.25]


@pytest.mark.parametrize(
    ("second", "reason", "seconds"),
    [
        ({"answers": False}, r"opening the session: no answer within 1.2 s", 1.25),
        ({"revision": HANDSHAKE[0]}, HANDSHAKE[0], 0.0),
    ],
    ids=["silent", "older"],
)
async def test_a_process_that_opens_no_session_is_closed(
    second: dict[str, Any], reason: str, seconds: float, starting: Any
) -> None:
    processes = [Process(), Process(**second)]
    restart, timeouts = Restart(limit=1, pauses=()), Timeouts(opening=1.25)
    async with starting(*processes, restart=restart, timeouts=timeouts) as (client, _):
        await lose(client, processes[0])
        with pytest.raises(ConnectionClosedError, match=f"{reason}.*started again 1 times"):
            await client.list_tools()
        assert anyio.current_time() == seconds
        assert processes[1].closed


async def test_messages_of_a_process_before_its_session_are_bounded(starting: Any) -> None:
    class Talkative(Process):
        async def receive(self) -> bytes:
            return encode_message(log_message("x" * (BUFFERED_BYTES // 4)))

    processes = [Process(), Talkative()]
    async with starting(*processes, restart=Restart(limit=1, pauses=())) as (client, _):
        await lose(client, processes[0])
        with pytest.raises(ConnectionClosedError, match="got 4 other messages"):
            await client.list_tools()


async def test_a_client_closed_during_a_restart_ends_the_new_process(starting: Any) -> None:
    processes = [Process(), Process(answers=False)]
    async with starting(*processes, restart=AT_ONCE) as (client, times):
        await lose(client, processes[0])
        await anyio.wait_all_tasks_blocked()
        assert processes[1].opening
    assert processes[1].closed
    assert len(times) == 2


async def test_only_requests_wait_for_the_next_process(starting: Any) -> None:
    roots = handlers_with(list_roots={"roots": []})
    processes = [Process(), Process(5.0)]
    own = {"handlers": roots, "capabilities": {"roots": {"listChanged": True}}}
    async with starting(*processes, restart=AT_ONCE, **own) as (client, _):
        await client.roots_list_changed()
        assert (await processes[0].next())["method"] == "notifications/roots/list_changed"
        await lose(client, processes[0])
        await client.roots_list_changed()
        await list_no_tools(client, processes[1])
    assert [said["method"] for said in processes[1].heard] == ["tools/list"]
