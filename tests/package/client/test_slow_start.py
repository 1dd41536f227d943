"""Server processes that are slow to start, and write to standard error meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from mcp_protocol import McpError, RequestTimeoutError, Restart, Server, Timeouts, connect
from mcp_protocol.channel import Channel, OutgoingMessage
from mcp_protocol.client.client_settings import ClientSettings
from mcp_protocol.transports import process
from mcp_protocol.transports.memory import memory_pair
from mcp_protocol.transports.process import BRIEF, open_process
from package.client.simulation import simulate
from package.wire import ALL

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
