"""Server processes that are slow to start, or end and are restarted, on a virtual clock."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import FakeServer
from kit.simulation import ASYNCIO, simulate
from kit.wire import ALL, HANDSHAKE
from mcpgen_runtime import (
    ConnectionClosedError,
    McpError,
    RequestTimeoutError,
    ResponseLostError,
    Restart,
    Server,
    Timeouts,
    connect,
)
from mcpgen_runtime.channel import Channel, OutgoingMessage
from mcpgen_runtime.client.chosen import ChosenApplication
from mcpgen_runtime.client.client_settings import ClientSettings, Identity
from mcpgen_runtime.client.opening import new_peer
from mcpgen_runtime.client.restart import RestartingChannel
from mcpgen_runtime.errors import EndOfChannel
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.transports import process
from mcpgen_runtime.transports.memory import memory_pair
from mcpgen_runtime.transports.process import BRIEF, open_process

DEFAULTS = ClientSettings().timeouts
LIMITS = Timeouts(opening=60.0, longest_opening=300.0)
backends = pytest.mark.parametrize(
    "backend", ["asyncio", pytest.param("trio", marks=pytest.mark.trio)]
)


class SlowProcess(Channel):
    """A server process on a virtual clock.

    Args:
        start: Seconds until it serves.
        writes: Seconds after its start at which it writes to standard error.
        reads: Whether it has read its input before it serves.
    """

    transport = "stdio"

    def __init__(self, start: float, writes: Sequence[float], *, reads: bool = False) -> None:
        self.timeouts = BRIEF
        self.stderr_tail = ()
        self.took_input = reads
        self._near, self._far = memory_pair()
        self._begun = anyio.current_time()
        self._start = start
        self._writes = [self._begun + each for each in writes]

    async def serve(self) -> None:
        """Serve once it has started."""
        await anyio.sleep(self._start)
        self.took_input = True
        server = Server("slow")

        @server.tool()
        def work() -> None:
            return None

        await server.serve(self._far)

    async def end(self) -> None:
        """End by itself."""
        await self._far.close()

    async def follow_stderr(self, on_output: Callable[[], object]) -> None:
        """See `ProcessChannel.follow_stderr`."""
        for each in self._writes:
            await anyio.sleep_until(each)
            on_output()

    async def receive(self) -> bytes:
        """See `Channel.receive`."""
        return await self._near.receive()

    async def send(self, message: OutgoingMessage) -> None:
        """See `Channel.send`."""
        await self._near.send(message)

    async def close(self) -> None:
        """See `Channel.close`."""
        await self._near.close()


Start = Callable[[], SlowProcess]


def open_and_restart(
    monkeypatch: pytest.MonkeyPatch, backend: str, starts: Sequence[Start], **options: Any
) -> list[float]:
    """Open a session with the first of several processes, end each, and use the next.

    Returns:
        The times at which the session was open, or open again.
    """

    async def main() -> list[float]:
        times: list[float] = []
        made: list[SlowProcess] = []
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:

            async def start(*_: Any, **__: Any) -> SlowProcess:
                made.append(starts[len(made)]())
                tasks.start_soon(made[-1].serve)
                return made[-1]

            monkeypatch.setattr(process, "open_process", start)
            began = anyio.current_time()
            opening: Any = connect(["slow"], timeouts=LIMITS, cache=False, **options)
            try:
                async with opening as client:
                    while True:
                        await client.list_tools()
                        times.append(anyio.current_time() - began)
                        if len(made) == len(starts):
                            break
                        await made[-1].end()
            except McpError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return times

    return simulate(backend, 0, main)


def silent_for(seconds: float, **more: Any) -> Start:
    return lambda: SlowProcess(seconds, (), **more)


def writing_process(seconds: float, each: float, **more: Any) -> Start:
    """A process that writes at regular times until it serves."""
    times = [each * number for number in range(1, int(seconds / each) + 1)]
    return lambda: SlowProcess(seconds, times, **more)


@backends
@pytest.mark.parametrize("revision", ALL)
def test_output_on_standard_error_extends_the_opening(
    monkeypatch: pytest.MonkeyPatch, backend: str, revision: str
) -> None:
    times = open_and_restart(
        monkeypatch, backend, [writing_process(250.0, 50.0)], revision=revision
    )
    assert times == pytest.approx([250.0])


@backends
def test_a_silent_process_is_given_up_after_the_opening_time(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    assert open_and_restart(monkeypatch, backend, [silent_for(59.0)]) == pytest.approx([59.0])
    with pytest.raises(RequestTimeoutError, match="no answer within 60 s"):
        open_and_restart(monkeypatch, backend, [silent_for(61.0)])
    with pytest.raises(RequestTimeoutError, match="no answer within 110 s"):
        open_and_restart(monkeypatch, backend, [lambda: SlowProcess(150.0, (50.0,))])


@backends
def test_output_without_end_extends_the_opening_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    with pytest.raises(RequestTimeoutError, match="no answer within 300 s"):
        open_and_restart(monkeypatch, backend, [writing_process(1000.0, 1.0)])
    assert (DEFAULTS.opening, DEFAULTS.longest_opening) == (60.0, 300.0)


@backends
def test_a_process_that_reads_and_writes_is_not_started_anew(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    assert open_and_restart(
        monkeypatch, backend, [writing_process(100.0, 20.0, reads=True)]
    ) == pytest.approx([100.0])
    silent = [silent_for(40.0, reads=True), silent_for(2.0)]
    assert open_and_restart(monkeypatch, backend, silent) == pytest.approx([(5.0 + 60.0) / 2 + 2.0])


@backends
def test_a_process_that_is_restarted_may_be_as_slow(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    restart = Restart(pauses=(0.0,))
    slow = writing_process(250.0, 50.0)
    times = open_and_restart(monkeypatch, backend, [slow, slow, silent_for(1.0)], restart=restart)
    assert times == pytest.approx([250.0, 500.0, 501.0])


@backends
def test_a_call_made_as_the_process_ends_goes_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    restart = Restart(pauses=(0.0,))
    times = open_and_restart(monkeypatch, backend, [silent_for(1.0)] * 3, restart=restart)
    assert times == pytest.approx([1.0, 2.0, 3.0])


class Process(FakeServer):
    """A process in memory.

    Args:
        answers: Whether it answers `initialize`.
        early: Sent before that answer.
        revision: What it speaks.
    """

    timeouts, stderr_tail, took_input = BRIEF, (), False

    def __init__(
        self,
        *,
        answers: bool = True,
        early: Sequence[Mapping[str, Any]] = (),
        revision: str = HANDSHAKE[-1],
    ) -> None:
        super().__init__(revision)
        self._answers = answers
        self._early = early

    async def follow_stderr(self, on_output: Callable[[], object]) -> None:
        """See `ProcessChannel.follow_stderr`."""
        await anyio.sleep_forever()

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        await super().close()

    async def _agree(self, message: Mapping[str, Any]) -> None:
        for each in self._early if message["method"] == "initialize" else ():
            await self.say(each)
        if self._answers:
            await super()._agree(message)


virtual = pytest.mark.parametrize("anyio_backend", [ASYNCIO], ids=["asyncio"])


@asynccontextmanager
async def restarting(
    monkeypatch: pytest.MonkeyPatch, processes: Sequence[Process], restart: Restart, **how: Any
) -> AsyncIterator[tuple[Any, list[float]]]:
    """A client of the first process, and the times at which processes were started."""
    times: list[float] = []

    async def start(*_: Any, **__: Any) -> Process:
        times.append(anyio.current_time())
        return processes[len(times) - 1]

    monkeypatch.setattr(process, "open_process", start)
    opening: Any = connect(["x"], revision=HANDSHAKE[-1], restart=restart, **how)
    async with opening as client:
        yield client, times


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


@virtual
@pytest.mark.parametrize(
    ("pauses", "expected"),
    [
        ((), [0, 0, 0, 0]),
        ((1.0, 3.0), [0, 1, 4, 7]),
        ((0.0, 0.5, 1.0, 2.0, 5.0), [0, 0, 0.5, 1.5]),
    ],
)
async def test_restarts_have_the_pauses_of_their_number(
    monkeypatch: pytest.MonkeyPatch, pauses: tuple[float, ...], expected: list[float], caplog: Any
) -> None:
    processes = [Process() for _ in expected]
    async with restarting(monkeypatch, processes, Restart(pauses=pauses)) as (client, times):
        for each in processes[:-1]:
            await lose(client, each)
        await list_no_tools(client, processes[-1])
    assert times == expected
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len([text for text in logged if text.endswith("; it was started again")]) == 3


@virtual
@pytest.mark.parametrize(("seconds", "restarted"), [(10.0, True), (10.5, False)])
async def test_restarts_are_counted_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, restarted: bool
) -> None:
    processes = [Process(), Process(), Process()]
    restart = Restart(limit=1, seconds=seconds, pauses=())
    async with restarting(monkeypatch, processes, restart) as (client, times):
        await lose(client, processes[0])
        await list_no_tools(client, processes[1])
        with anyio.move_on_after(10.0):
            await anyio.sleep_forever()
        await lose(client, processes[1])
        if restarted:
            await list_no_tools(client, processes[2])
        else:
            with pytest.raises(ConnectionClosedError, match=r"again 1 times within 10\.5 s"):
                await client.list_tools()
    assert times == [0, 0, 10][: 2 + restarted]


@virtual
async def test_messages_sent_during_negotiation_are_received_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def log(data: str) -> dict[str, Any]:
        params = {"level": "error", "data": data}
        return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}

    processes = [
        Process(),
        Process(answers=False, early=[log("dropped")]),
        Process(early=[log("first"), log("second")]),
    ]
    timeouts, logged = Timeouts(opening=1.25), list[str]()
    async with restarting(monkeypatch, processes, Restart(pauses=()), timeouts=timeouts) as (
        client,
        times,
    ):
        client.on_log(lambda message: logged.append(message.data))
        await lose(client, processes[0])
        await list_no_tools(client, processes[2])
    assert logged == ["first", "second"]
    assert times == [0, 0, 1.25]


@virtual
@pytest.mark.parametrize(
    ("second", "reason", "seconds"),
    [
        ({"answers": False}, r"opening the session: no answer within 1.2 s", 1.25),
        ({"revision": HANDSHAKE[0]}, HANDSHAKE[0], 0.0),
    ],
    ids=["silent", "older"],
)
async def test_a_process_that_opens_no_session_is_closed(
    monkeypatch: pytest.MonkeyPatch, second: dict[str, Any], reason: str, seconds: float
) -> None:
    processes = [Process(), Process(**second)]
    restart, timeouts = Restart(limit=1, pauses=()), Timeouts(opening=1.25)
    async with restarting(monkeypatch, processes, restart, timeouts=timeouts) as (client, _):
        await lose(client, processes[0])
        with pytest.raises(ConnectionClosedError, match=f"{reason}.*started again 1 times"):
            await client.list_tools()
        assert anyio.current_time() == seconds
        assert processes[1].closed


@virtual
async def test_a_client_closed_during_a_restart_ends_the_new_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes = [Process(), Process(answers=False)]
    async with restarting(monkeypatch, processes, Restart(pauses=())) as (client, times):
        await lose(client, processes[0])
        await anyio.wait_all_tasks_blocked()
        assert processes[1].opening
    assert processes[1].closed
    assert len(times) == 2


@asynccontextmanager
async def open_channel(
    first: Process, start: Callable[[], Any]
) -> AsyncIterator[tuple[RestartingChannel, list[BaseException]]]:
    """A channel with an open session that is read until its end, and the end."""
    application = ChosenApplication(None, Identity({"name": "test", "version": "1"}, {}))
    opened: Any = first
    channel = RestartingChannel(application, Restart(pauses=()), opened, start)
    peer = new_peer(channel, REVISIONS.only(HANDSHAKE[-1]), application)
    channel.session_opened(peer)
    ends: list[BaseException] = []

    async def read() -> None:
        try:
            await channel.receive()
        except McpError as error:
            ends.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        yield channel, ends


@virtual
async def test_a_process_started_for_a_closed_channel_is_ended_at_once() -> None:
    first, second, may_start = Process(), Process(), anyio.Event()

    async def start() -> Process:
        await may_start.wait()
        return second

    async with open_channel(first, start) as (channel, ends):
        await first.hang_up()
        await anyio.wait_all_tasks_blocked()
        await channel.close()
        may_start.set()
    assert second.closed
    assert [str(end) for end in ends] == ["the channel is closed"]
    assert isinstance(ends[0], EndOfChannel)


@virtual
async def test_only_requests_wait_for_the_next_process() -> None:
    first, second, may_start = Process(), Process(), anyio.Event()

    async def start() -> Process:
        await may_start.wait()
        return second

    messages = {
        "request": OutgoingMessage(b'{"method":"tools/list","id":1}', "request", 1, "tools/list"),
        "response": OutgoingMessage(b'{"id":5}', "response", 5),
        "notification": OutgoingMessage(b'{"method":"x"}'),
    }
    async with open_channel(first, start) as (channel, _), anyio.create_task_group() as tasks:
        for message in messages.values():
            await channel.send(message)
        assert len(first.heard) == 3
        await first.hang_up()
        await anyio.wait_all_tasks_blocked()
        await channel.send(messages["response"])
        await channel.send(messages["notification"])
        tasks.start_soon(channel.send, messages["request"])
        await anyio.wait_all_tasks_blocked()
        may_start.set()
        assert await second.next() == {"method": "tools/list", "id": 1}
        await channel.close()
    assert len(second.heard) == 1


@virtual
async def test_before_the_session_is_open_no_process_is_restarted() -> None:
    application = ChosenApplication(None, Identity({"name": "test", "version": "1"}, {}))
    first: Any = Process()
    channel = RestartingChannel(application, Restart(), first, pytest.fail)
    await first.hang_up()
    with pytest.raises(EndOfChannel):
        await channel.receive()


async def test_each_output_on_standard_error_is_reported() -> None:
    writes = "import sys\nfor line in sys.stdin: print(line, file=sys.stderr, flush=True)"
    command = [sys.executable, "-c", writes]
    lines: list[bool] = []
    with anyio.fail_after(30):
        channel = await open_process(command, on_stderr=None)
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()

            def on_output() -> None:
                lines.append(True)
                ended.set()

            tasks.start_soon(channel.follow_stderr, on_output)
            for number in range(1, 4):
                ended = anyio.Event()
                await anyio.wait_all_tasks_blocked()
                while len(lines) < number:
                    await channel.send(OutgoingMessage(b"a line"))
                    with anyio.move_on_after(0.2):
                        await ended.wait()
            tasks.cancel_scope.cancel()
        await channel.close()
    assert channel.stderr_tail[0] == "a line"
