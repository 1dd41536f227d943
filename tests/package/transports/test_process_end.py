"""How server processes end: with their client, without it, and with all they started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from kit.processes import (
    CHILD,
    DEADLINE,
    ECHO,
    IGNORES_EOF,
    PACKAGE_ROOT,
    SHORT_TIMEOUTS,
    Lifeline,
    python,
    server,
)
from mcpgen_runtime import ConnectionClosedError, ServerStartError
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import EndOfChannel
from mcpgen_runtime.transports.process import (
    ProcessChannel,
    ShutdownTimeouts,
    open_process,
)
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes


@pytest.fixture
def lifeline(tmp_path: Path) -> Lifeline:
    return Lifeline(tmp_path)


async def test_a_dead_server_whose_child_holds_the_output_has_ended(
    lifeline: Lifeline,
) -> None:
    starts = "print('{}', flush=True); subprocess.Popen([sys.executable, '-c', child + ends, "
    starts += f"{lifeline.path!r}]); sys.stdin.readline()"
    async with server(python(CHILD, starts)) as channel:
        assert await channel.receive() == b"{}"
        await lifeline.up()
        await channel.send(OutgoingMessage(b"1"))
        with pytest.raises(EndOfChannel, match="ended with exit code 0"):
            await channel.receive()
    await lifeline.cut()


@pytest.mark.requirement(
    "stdio.stdin-only-messages",
    "stdio.no-shutdown-message",
    "stdio.shutdown-client-signals",
    "stdio.shutdown-client-portable",
    revisions=EVERY_REVISION,
)
async def test_closing_ends_the_input_and_signals_no_server_that_exits(
    tmp_path: Path,
) -> None:
    records = f"""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
    print("{{}}", flush=True)
    read = sys.stdin.buffer.read()
    open({str(tmp_path / "read")!r}, "wb").write(read)
    """
    async with server(python(records)) as channel:
        assert await channel.receive() == b"{}"
        await channel.send(OutgoingMessage(b'{"a":1}'))
    assert channel.exit_code == 0
    assert (tmp_path / "read").read_bytes() == b'{"a":1}\n'


@pytest.mark.requirement(
    "stdio.shutdown-client-signals", "stdio.shutdown-client-portable", revisions=EVERY_REVISION
)
async def test_a_server_that_ignores_the_end_of_input_gets_sigterm() -> None:
    handles = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('{}', flush=True)"
    async with server(python(handles, IGNORES_EOF), timeouts=SHORT_TIMEOUTS) as channel:
        assert await channel.receive() == b"{}"
    assert channel.exit_code == 7


@pytest.mark.requirement(
    "stdio.shutdown-client-signals", "stdio.shutdown-client-portable", revisions=EVERY_REVISION
)
async def test_a_server_that_ignores_sigterm_too_is_killed(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    ignores = f"""
    trace = os.open({str(trace)!r}, os.O_WRONLY | os.O_CREAT)
    signal.signal(signal.SIGTERM, lambda *_: os.write(trace, b"SIGTERM"))
    print("{{}}", flush=True)
    sys.stdin.read()
    os.write(trace, b"EOF ")
    while True: signal.pause()
    """
    timeouts = ShutdownTimeouts(after_eof=1, after_terminate=0.3, after_kill=DEADLINE)
    async with server(python(ignores), timeouts=timeouts) as channel:
        assert await channel.receive() == b"{}"
        started = time.monotonic()
    assert time.monotonic() - started < DEADLINE / 2
    assert channel.exit_code == -signal.SIGKILL
    assert trace.read_text() == "EOF SIGTERM"


@pytest.mark.parametrize("child", ["ends", "ignores"])
@pytest.mark.parametrize("parent", [ECHO, IGNORES_EOF])
async def test_closing_leaves_no_child_of_the_server_behind(
    lifeline: Lifeline, parent: str, child: str
) -> None:
    starts = f"subprocess.Popen([sys.executable, '-c', child + {child}, {lifeline.path!r}])\n"
    async with server(python(CHILD, starts, parent), timeouts=SHORT_TIMEOUTS):
        await lifeline.up()
    await lifeline.cut()


async def test_a_server_that_talks_while_it_is_closed_can_finish() -> None:
    talks = "sys.stdin.read(); print('x' * 1_000_000, flush=True)"
    async with server(python(talks)) as channel:
        pass
    assert channel.exit_code == 0


async def test_closing_twice_or_from_several_tasks_is_closing_once() -> None:
    async with server(python(ECHO)) as channel:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.close)
            tasks.start_soon(channel.close)
        await channel.close()
        assert channel.exit_code == 0
        with pytest.raises(EndOfChannel, match="the channel is closed"):
            await channel.receive()
        with pytest.raises(ConnectionClosedError, match="the channel is closed"):
            await channel.send(OutgoingMessage(b"1"))


async def test_closing_wakes_the_task_that_receives() -> None:
    async with server(python(ECHO)) as channel:

        async def receive() -> None:
            with pytest.raises(EndOfChannel, match="the channel is closed"):
                await channel.receive()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await wait_all_tasks_blocked()
            await channel.close()


async def test_a_cancelled_client_leaves_no_process_behind(lifeline: Lifeline) -> None:
    starts = f"subprocess.Popen([sys.executable, '-c', child + ignores, {lifeline.path!r}])\n"
    held: list[ProcessChannel] = []

    async def client() -> None:
        async with server(python(CHILD, starts, IGNORES_EOF), timeouts=SHORT_TIMEOUTS) as channel:
            held.append(channel)
            await channel.receive()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client)
        await lifeline.up()
        tasks.cancel_scope.cancel()
    await lifeline.cut()
    assert held[0].exit_code in (-signal.SIGTERM, -signal.SIGKILL)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_closing_that_asyncio_cancels_still_ends_the_server(lifeline: Lifeline) -> None:
    opens = f"os.write(os.open({lifeline.path!r}, os.O_WRONLY), b'up')"
    channel = await open_process(
        python(opens, IGNORES_EOF), timeouts=ShutdownTimeouts(after_eof=DEADLINE)
    )
    await lifeline.up()
    closing = asyncio.create_task(channel.close())
    await wait_all_tasks_blocked()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await lifeline.cut()
    await channel.close()
    assert channel.exit_code == -signal.SIGKILL


LEAVES = """
    import sys
    import anyio
    from mcpgen_runtime.transports import process

    async def main():
        channel = await process.open_process(sys.argv[2:])
        await channel.receive()

    anyio.run(main, backend=sys.argv[1])
"""
FORKS = """
    import os, sys
    import anyio
    from mcpgen_runtime.transports import process
    from mcpgen_runtime.channel import OutgoingMessage

    async def main():
        channel = await process.open_process(sys.argv[2:])
        child = os.fork()
        if child == 0:
            process.end_all()  # as the exit of an interpreter does
            os._exit(0)
        os.waitpid(child, 0)
        await channel.send(OutgoingMessage(b"1"))
        assert await channel.receive() == b"1"
        await channel.close()
        print(channel.exit_code)

    anyio.run(main, backend=sys.argv[1])
"""


async def run_client(script: str, backend: str, command: list[str]) -> str:
    done = await anyio.run_process(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), backend, *command],
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


async def test_an_interpreter_that_exits_leaves_no_server_behind(
    lifeline: Lifeline, anyio_backend: str
) -> None:
    opens = f"os.write(os.open({lifeline.path!r}, os.O_WRONLY), b'up')"
    opens += "\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('{}', flush=True)\n"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_client, LEAVES, anyio_backend, python(opens, IGNORES_EOF))
        await lifeline.up()
        await lifeline.cut()


async def test_a_forked_copy_that_exits_ends_no_server_of_its_parent(anyio_backend: str) -> None:
    assert await run_client(FORKS, anyio_backend, python(ECHO)) == "0\n"


async def test_no_descriptor_is_left_open() -> None:
    async with server(python(ECHO)):
        pass
    before = set(Path("/proc/self/fd").iterdir())
    async with server(python(ECHO)) as channel:
        await channel.send(OutgoingMessage(b"1"))
    with pytest.raises(ServerStartError):
        await open_process(["no-such-command"])
    assert set(Path("/proc/self/fd").iterdir()) == before
