"""The client's side of stdio: real servers that answer, misbehave, die and leave children."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked

import mcp_protocol
from mcp_protocol.errors import (
    ConnectionClosedError,
    EndOfChannel,
    FrameError,
    ServerStartError,
)
from mcp_protocol.transports.process import (
    INHERITED,
    TAIL_LINES,
    Patience,
    ProcessChannel,
    open_process,
)

pytestmark = pytest.mark.anyio

PACKAGE_ROOT = Path(mcp_protocol.__file__).parent.parent
DEADLINE = 30
IMPATIENT = Patience(after_eof=0.1, after_terminate=0.1, after_kill=DEADLINE)

ECHO = """
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""
IGNORES_EOF = """
    sys.stdin.read()
    while True: signal.pause()
"""
CHILD = """
    child = "import os, signal, sys; os.write(os.open(sys.argv[1], os.O_WRONLY), b'up')"
    ends = "; signal.pause()"
    ignores = "; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + ends * 2
"""


def python(*parts: str) -> list[str]:
    imports = "import json, os, signal, subprocess, sys\n"
    return [sys.executable, "-c", imports + "".join(textwrap.dedent(part) for part in parts)]


@asynccontextmanager
async def server(command: Sequence[str], **options: Any) -> AsyncIterator[ProcessChannel]:
    with anyio.fail_after(DEADLINE):
        channel = await open_process(command, **options)
        try:
            yield channel
        finally:
            await channel.close()


class Lifeline:
    """A named pipe that ends when the last process that opened it has ended."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "lifeline")
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    async def up(self) -> None:
        """Wait until a process has opened it and said so."""
        with anyio.fail_after(DEADLINE):
            await anyio.wait_readable(self._fd)
        assert os.read(self._fd, 10) == b"up"

    async def cut(self) -> None:
        """Wait until no process has it open."""
        with anyio.fail_after(DEADLINE):
            await anyio.wait_readable(self._fd)
        assert os.read(self._fd, 10) == b""
        os.close(self._fd)


@pytest.fixture
def lifeline(tmp_path: Path) -> Lifeline:
    return Lifeline(tmp_path)


@pytest.mark.requirement(
    "stdio.client-launches-server", "stdio.client-support", "stdio.streams", "stdio.utf8"
)
async def test_a_command_becomes_a_child_process_that_answers() -> None:
    tells = "print(json.dumps({'pid': os.getpid(), 'parent': os.getppid()}), flush=True)"
    async with server(python(tells, ECHO)) as channel:
        expected = f'{{"pid": {channel.pid}, "parent": {os.getpid()}}}'
        assert await channel.receive() == expected.encode()
        text = '"\u00e9\U0001f600"'.encode()
        await channel.send(text)
        assert await channel.receive() == text
        assert channel.exit_code is None
    assert channel.exit_code == 0


@pytest.mark.requirement("stdio.newline-delimited", "stdio.no-embedded-newline")
async def test_large_messages_of_many_tasks_stay_whole_even_if_cancelled() -> None:
    async with server(python(ECHO)) as channel:
        received: set[bytes] = set()
        messages = [b'"%s"' % (bytes([letter]) * 300_000) for letter in b"abcdefgh"]
        async with anyio.create_task_group() as tasks:
            for message in messages:
                tasks.start_soon(channel.send, message)
            await wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.send, b'"last"')
            while (message := await channel.receive()) != b'"last"':
                received.add(message)
        assert received
        assert received <= set(messages)


async def test_lines_that_are_no_messages_are_passed_up_as_they_are() -> None:
    async with server(python("print('Starting ...\\n\\n{broken'); sys.stdout.flush()", ECHO)) as it:
        assert [await it.receive(), await it.receive()] == [b"Starting ...", b"{broken"]


async def test_a_line_over_the_limit_does_not_end_the_channel() -> None:
    async with server(python("print('x' * 11, flush=True)", ECHO), limit=10) as channel:
        with pytest.raises(FrameError):
            await channel.receive()
        await channel.send(b"1")
        assert await channel.receive() == b"1"


async def test_a_server_gets_few_of_our_variables_and_all_it_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OUR_SECRET", "1")
    tells = "print(json.dumps([dict(os.environ), os.getcwd()]), flush=True)"
    async with server(
        python(tells, ECHO), env={"GIVEN": "2", "HOME": "3"}, cwd=tmp_path
    ) as channel:
        environment, cwd = json.loads(await channel.receive())
    assert environment.pop("GIVEN") == "2"
    assert environment["HOME"] == "3"
    assert environment["PATH"] == os.environ["PATH"]
    assert set(environment) <= set(INHERITED)
    assert Path(cwd) == tmp_path.resolve()


@pytest.mark.parametrize("first", ["receive", "send"])
async def test_a_server_that_dies_at_the_start_says_why(first: str) -> None:
    dies = "print('no', 'database', file=sys.stderr); print('a banner'); sys.exit(3)"
    command = python(dies)
    async with server(command, on_stderr=None) as channel:
        with pytest.raises(ServerStartError) as caught:
            while True:
                await (channel.receive() if first == "receive" else channel.send(b"1" * 9999))
    assert caught.value.argv == tuple(command)
    assert caught.value.exit_code == 3
    assert caught.value.stderr_tail == ("no database",)
    assert "ended with exit code 3" in str(caught.value)
    assert "no database" in str(caught.value)


async def test_a_server_killed_at_the_start_shows_the_signal() -> None:
    async with server(python("os.kill(os.getpid(), signal.SIGABRT)")) as channel:
        with pytest.raises(ServerStartError) as caught:
            await channel.receive()
    assert caught.value.exit_code == -signal.SIGABRT


@pytest.mark.parametrize(
    ("command", "cwd", "reason"),
    [
        (["no-such-command", "-x"], None, "no such file or directory: 'no-such-command'"),
        ([str(Path(__file__))], None, "permission denied: "),
        ([sys.executable], "/no/such/folder", "no such file or directory: '/no/such/folder'"),
    ],
)
async def test_a_command_that_cannot_run_says_why(
    command: list[str], cwd: str | None, reason: str
) -> None:
    with pytest.raises(ServerStartError) as caught:
        await open_process(command, cwd=cwd)
    assert "could not be started" in str(caught.value)
    assert reason in str(caught.value)
    assert caught.value.exit_code is None


@pytest.mark.parametrize("command", ["python server.py", []])
async def test_a_command_must_be_a_sequence_of_arguments(command: Any) -> None:
    with pytest.raises(ValueError, match="expected a command as a sequence of arguments"):
        await open_process(command)


@pytest.mark.requirement("stdio.shutdown-by-server")
async def test_a_server_that_ends_later_is_the_end_of_the_channel() -> None:
    ends = "print('{}', flush=True); print('bye', file=sys.stderr); sys.exit(4)"
    async with server(python(ends)) as channel:
        assert await channel.receive() == b"{}"
        for _ in range(2):
            with pytest.raises(EndOfChannel, match=r"(?s)ended with exit code 4.*bye"):
                await channel.receive()
        with pytest.raises(ConnectionClosedError, match="ended with exit code 4"):
            await channel.send(b"1")


@pytest.mark.requirement("stdio.shutdown-by-server")
async def test_a_server_that_closes_its_output_is_the_end_of_the_channel() -> None:
    async with server(python("os.close(1); sys.stdin.read()")) as channel:
        with pytest.raises(EndOfChannel, match="closed its output"):
            await channel.receive()
    assert channel.exit_code == 0


async def test_a_dead_server_whose_child_holds_the_output_is_the_end_too(
    lifeline: Lifeline,
) -> None:
    starts = "print('{}', flush=True); subprocess.Popen([sys.executable, '-c', child + ends, "
    starts += f"{lifeline.path!r}]); sys.stdin.readline()"
    async with server(python(CHILD, starts)) as channel:
        assert await channel.receive() == b"{}"
        await lifeline.up()
        await channel.send(b"1")
        with pytest.raises(EndOfChannel, match="ended with exit code 0"):
            await channel.receive()
    await lifeline.cut()


@pytest.mark.requirement(
    "stdio.stdin-only-messages",
    "stdio.no-shutdown-message",
    "stdio.shutdown-client-signals",
    "stdio.shutdown-client-portable",
)
async def test_closing_ends_the_input_and_sends_no_signal_to_a_server_that_exits(
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
        await channel.send(b'{"a":1}')
    assert channel.exit_code == 0
    assert (tmp_path / "read").read_bytes() == b'{"a":1}\n'


@pytest.mark.requirement("stdio.shutdown-client-signals", "stdio.shutdown-client-portable")
async def test_a_server_that_ignores_the_end_of_input_gets_sigterm() -> None:
    handles = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('{}', flush=True)"
    async with server(python(handles, IGNORES_EOF), patience=IMPATIENT) as channel:
        assert await channel.receive() == b"{}"
    assert channel.exit_code == 7


@pytest.mark.requirement("stdio.shutdown-client-signals", "stdio.shutdown-client-portable")
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
    patience = Patience(after_eof=1, after_terminate=0.3, after_kill=DEADLINE)
    async with server(python(ignores), patience=patience) as channel:
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
    async with server(python(CHILD, starts, parent), patience=IMPATIENT):
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
            await channel.send(b"1")


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
        async with server(python(CHILD, starts, IGNORES_EOF), patience=IMPATIENT) as channel:
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
    channel = await open_process(python(opens, IGNORES_EOF), patience=Patience(after_eof=DEADLINE))
    await lifeline.up()
    closing = asyncio.create_task(channel.close())
    await wait_all_tasks_blocked()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await lifeline.cut()
    await channel.close()
    assert channel.exit_code == -signal.SIGKILL


@pytest.mark.requirement("stdio.stderr-client-choice", "stdio.stderr-not-an-error")
async def test_standard_error_is_passed_on_line_by_line_and_is_no_failure() -> None:
    lines: list[str] = []
    writes = "sys.stderr.buffer.write('\u00e9\\r\\ntwo\\n\\xff'.encode('latin-1')); "
    writes += "sys.stderr.flush()\n"
    async with server(python(writes, ECHO), on_stderr=lines.append) as channel:
        await channel.send(b"1")
        assert await channel.receive() == b"1"
    assert lines == ["\ufffd", "two", "\ufffd"]
    assert channel.stderr_tail == ("\ufffd", "two", "\ufffd")


@pytest.mark.requirement("stdio.stderr-client-choice")
async def test_standard_error_goes_to_ours_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    async with server(python("print('a word', file=sys.stderr, flush=True)", ECHO)):
        pass
    assert capsys.readouterr().err == "a word\n"


@pytest.mark.requirement("stdio.stderr-client-choice", "stdio.stderr-any-logging")
async def test_much_standard_error_blocks_no_server_whoever_listens() -> None:
    def fails(text: str) -> None:
        raise RuntimeError(text)

    writes = "for n in range(20000): print('line', n, 'x' * 200, file=sys.stderr)"
    for listener in (None, fails):
        async with server(python(writes, ECHO), on_stderr=listener) as channel:
            await channel.send(b"1")
            assert await channel.receive() == b"1"
        assert len(channel.stderr_tail) == TAIL_LINES
        assert channel.stderr_tail[-1].startswith("line 19999 ")


LEAVES = """
    import sys
    import anyio
    from mcp_protocol.transports import process

    async def main():
        channel = await process.open_process(sys.argv[2:])
        await channel.receive()

    anyio.run(main, backend=sys.argv[1])
"""
FORKS = """
    import os, sys
    import anyio
    from mcp_protocol.transports import process, process_tree

    async def main():
        channel = await process.open_process(sys.argv[2:])
        child = os.fork()
        if child == 0:
            process_tree.end_all()  # as the exit of an interpreter does
            os._exit(0)
        os.waitpid(child, 0)
        await channel.send(b"1")
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
        await channel.send(b"1")
    with pytest.raises(ServerStartError):
        await open_process(["no-such-command"])
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_importing_the_transport_starts_nothing() -> None:
    code = "import threading, mcp_protocol.transports.process; print(threading.active_count())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"1\n"
