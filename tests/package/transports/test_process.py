"""Server processes of a client: how they start, what they say, and how they end."""

from __future__ import annotations

import asyncio
import io
import json
import os
import resource
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from kit.live import open_and_close
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
from mcpgen_runtime import ConnectionClosedError, OutgoingMessage, ServerStartError
from mcpgen_runtime.errors import EndOfChannel, FrameError
from mcpgen_runtime.server.stdio_server import open_stdio
from mcpgen_runtime.transports.process import (
    INHERITED,
    TAIL_LINES,
    ProcessChannel,
    ShutdownTimeouts,
    open_process,
    to_stderr,
)
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes
AT_ONCE = ShutdownTimeouts(0, 1, 1)


@pytest.mark.requirement(
    "stdio.client-launches-server",
    "stdio.client-support",
    "stdio.streams",
    "stdio.utf8",
    revisions=EVERY_REVISION,
)
async def test_a_command_becomes_a_child_process_that_answers() -> None:
    tells = "print(json.dumps({'pid': os.getpid(), 'parent': os.getppid()}), flush=True)"
    async with server(python(tells, ECHO)) as channel:
        expected = f'{{"pid": {channel.pid}, "parent": {os.getpid()}}}'
        assert await channel.receive() == expected.encode()
        text = '"\u00e9\U0001f600"'.encode()
        await channel.send(OutgoingMessage(text))
        assert await channel.receive() == text
        assert channel.exit_code is None
    assert channel.took_input
    assert channel.exit_code == 0


async def test_a_line_over_the_limit_does_not_end_the_channel() -> None:
    async with server(python("print('x' * 11, flush=True)", ECHO), limit=10) as channel:
        with pytest.raises(FrameError):
            await channel.receive()
        await channel.send(OutgoingMessage(b"1"))
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


@pytest.mark.requirement("stdio.shutdown-by-server", revisions=EVERY_REVISION)
async def test_a_server_that_ends_later_is_the_end_of_the_channel() -> None:
    ends = "print('{}', flush=True); os.write(2, b'\\n' * 20_000 + b'bye'); os._exit(4)"
    async with server(python(ends)) as channel:
        assert await channel.receive() == b"{}"
        for _ in range(2):
            with pytest.raises(EndOfChannel, match=r"(?s)ended with exit code 4.*bye"):
                await channel.receive()
        with pytest.raises(ConnectionClosedError, match="ended with exit code 4"):
            await channel.send(OutgoingMessage(b"1"))


@pytest.mark.requirement("stdio.shutdown-by-server", revisions=EVERY_REVISION)
async def test_a_server_that_closes_its_output_ends_the_channel() -> None:
    async with server(python("os.close(1); sys.stdin.read()")) as channel:
        with pytest.raises(EndOfChannel, match="closed its output"):
            await channel.receive()
    assert channel.exit_code == 0


@pytest.mark.requirement(
    "stdio.stderr-client-choice", "stdio.stderr-not-an-error", revisions=EVERY_REVISION
)
async def test_standard_error_is_passed_on_by_lines_and_is_no_failure() -> None:
    lines: list[str] = []
    writes = "sys.stderr.buffer.write('\u00e9\\r\\ntwo\\n\\xff'.encode('latin-1')); "
    writes += "sys.stderr.flush()\n"
    async with server(python(writes, ECHO), on_stderr=lines.append) as channel:
        await channel.send(OutgoingMessage(b"1"))
        assert await channel.receive() == b"1"
    assert lines == ["\ufffd", "two", "\ufffd"]
    assert channel.stderr_tail == ("\ufffd", "two", "\ufffd")


@pytest.mark.requirement("stdio.stderr-client-choice", revisions=EVERY_REVISION)
async def test_standard_error_goes_to_ours_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    await open_and_close(server(python("print('a word', file=sys.stderr, flush=True)", ECHO)))
    assert capsys.readouterr().err == "a word\n"


@pytest.mark.requirement(
    "stdio.stderr-client-choice", "stdio.stderr-any-logging", revisions=EVERY_REVISION
)
async def test_much_standard_error_blocks_no_server_whoever_listens() -> None:
    def fails(text: str) -> None:
        failed.append(text)
        raise RuntimeError(text)

    failed: list[str] = []
    writes = "for n in range(20000): print('line', n, 'x' * 200, file=sys.stderr)"
    for listener in (None, fails):
        async with server(python(writes, ECHO), on_stderr=listener) as channel:
            await channel.send(OutgoingMessage(b"1"))
            assert await channel.receive() == b"1"
        assert len(channel.stderr_tail) == TAIL_LINES
        assert channel.stderr_tail[-1].startswith("line 19999 ")
    assert len(failed) == 1


async def test_closing_waits_for_what_the_server_says_last() -> None:
    def wait_for_exit(text: str) -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, channel.pid, os.WEXITED | os.WNOWAIT)

    says = "sys.stdin.read(); os.write(2, b'\\n' * 20_000 + b'bye'); os._exit(0)"
    async with server(python(says), on_stderr=wait_for_exit) as channel:
        pass
    assert channel.stderr_tail[-1] == "bye"


async def test_a_long_line_of_standard_error_is_passed_on_in_parts() -> None:
    lines: list[str] = []
    command = ["sh", "-c", "printf '%08193d\\n' 7 >&2; cat"]
    async with server(command, on_stderr=lines.append) as channel:
        await channel.send(OutgoingMessage(b"1"))
        assert await channel.receive() == b"1"
    assert lines == ["0" * 8192, "7"]


@pytest.mark.parametrize(("command", "takes"), [("cat", True), ("sleep 60", False)])
async def test_a_server_that_reads_its_input_is_known(command: str, takes: bool) -> None:
    async with server(["sh", "-c", f"exec {command}"], timeouts=AT_ONCE) as channel:
        assert not channel.took_input
        await channel.send(OutgoingMessage(b"12"))
        if takes:
            assert await channel.receive() == b"12"
        assert channel.took_input is takes
    assert channel.took_input is takes


@pytest.mark.on_asyncio
async def test_each_output_on_standard_error_is_reported() -> None:
    writes = "import sys\nfor line in sys.stdin: print(line, file=sys.stderr, flush=True)"
    command = [sys.executable, "-c", writes]
    lines: list[float] = []
    async with server(command, on_stderr=None) as channel, anyio.create_task_group() as tasks:
        ended = anyio.Event()

        def on_output() -> None:
            lines.append(anyio.current_time())
            ended.set()

        tasks.start_soon(channel.follow_stderr, on_output)
        for number in range(1, 4):
            ended = anyio.Event()
            await anyio.wait_all_tasks_blocked()
            assert number > 1 or not lines
            while len(lines) < number:
                await channel.send(OutgoingMessage(b"a line"))
                with anyio.move_on_after(0.2):
                    await ended.wait()
        tasks.cancel_scope.cancel()
    assert channel.stderr_tail[0] == "a line"
    assert all(after - before > 0.09 for before, after in pairwise(lines))


def test_a_line_of_standard_error_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", io.TextIOWrapper(written))
        to_stderr("a word")
        assert written.getvalue() == b"a word\n"
        patch.setattr(sys, "stderr", None)
        to_stderr("nowhere")


SURROGATE = "\udc80\ud800"


def open_descriptors() -> set[int]:
    """The open descriptors of this process; opens none to find out."""
    descriptors: set[int] = set()
    for fd in range(1024):
        with suppress(OSError):
            os.fstat(fd)
            descriptors.add(fd)
    return descriptors


@pytest.fixture
def few_descriptors() -> Iterator[Callable[[int], None]]:
    """Lets this process open only so many more descriptors; undone in the end."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []

    def leave(number: int) -> None:
        limit = max(open_descriptors()) + 10
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            for _ in range(number):
                os.close(held.pop())

    yield leave
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for fd in held:
        os.close(fd)


NO_FILE = "no such file or directory: "


@pytest.mark.parametrize(
    ("command", "options", "error", "reason"),
    [
        ("python server.py", {}, ValueError, "expected a command as a sequence of arguments"),
        ([], {}, ValueError, "expected a command as a sequence of arguments"),
        (["echo", "a\0b"], {}, ValueError, "null byte"),
        (["echo", SURROGATE], {}, ValueError, ""),
        (["echo", 7], {}, TypeError, ""),
        (["echo"], {"env": {"A=B": "x"}}, ValueError, ""),
        (["echo"], {"env": {"A": "x\0"}}, ValueError, "null byte"),
        (["echo"], {"env": {"A": 1}}, TypeError, ""),
        (["echo"], {"env": 7}, TypeError, ""),
        (["echo"], {"cwd": "a\0b"}, ValueError, "null byte"),
        (["echo"], {"cwd": 1.5}, TypeError, ""),
        (["echo"], {"cwd": "/no/such/folder"}, ServerStartError, f"{NO_FILE}'/no/such/folder'"),
        (["echo"], {"cwd": __file__}, ServerStartError, ""),
        (["no-such-command", "-x"], {}, ServerStartError, f"{NO_FILE}'no-such-command'"),
        ([__file__], {}, ServerStartError, "permission denied: "),
        (["/"], {}, ServerStartError, "permission denied: "),
        (["x" * 5000], {}, ServerStartError, ""),
        (["echo", "x" * 3_000_000], {}, ServerStartError, ""),
    ],
)
async def test_a_start_that_fails_says_why_and_closes_what_it_opened(
    command: Any, options: dict[str, Any], error: type[Exception], reason: str
) -> None:
    await anyio.sleep(0)
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(error) as caught:
            await open_process(command, **options)
        assert reason in str(caught.value)
        assert error is not ServerStartError or "could not be started" in str(caught.value)
    assert open_descriptors() == before


@pytest.mark.parametrize("left", range(8))
async def test_a_start_without_enough_descriptors_closes_those_it_got(
    few_descriptors: Callable[[int], None], left: int
) -> None:
    few_descriptors(left)
    before = open_descriptors()
    with pytest.raises(ServerStartError, match="too many open files"):
        await open_process(["echo"])
    assert open_descriptors() == before


async def test_a_start_that_is_cancelled_opens_nothing() -> None:
    before = open_descriptors()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await open_process(["echo"])
    assert scope.cancelled_caught
    assert open_descriptors() == before


async def test_an_error_names_the_command_and_not_the_variables() -> None:
    with pytest.raises(ValueError, match=r"'echo'.*embedded null byte") as caught:
        await open_process(["echo"], env={"TOKEN": "hunter2\0"})
    assert "hunter2" not in str(caught.value)


async def test_stderr_of_an_ended_server_is_escaped_and_truncated() -> None:
    harm = "'\\x1b[2J\\x07\\x9b' + 'x' * 5000"
    command = python(f"print({harm}, file=sys.stderr); sys.exit(3)", "# \x1b[2J")
    async with server(command, on_stderr=None) as channel:
        with pytest.raises(ServerStartError) as caught:
            await channel.receive()
    text = str(caught.value)
    assert text.replace("\n", "").isprintable()
    assert len(text) < 2000
    assert caught.value.stderr_tail[0].startswith("\x1b[2J")


@pytest.fixture
def lifeline(tmp_path: Path) -> Lifeline:
    return Lifeline(tmp_path)


async def test_a_dead_server_whose_child_holds_the_output_has_ended(lifeline: Lifeline) -> None:
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
async def test_closing_ends_the_input_and_signals_no_server_that_exits(tmp_path: Path) -> None:
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


async def test_a_child_of_the_server_can_finish_too() -> None:
    child = (
        "import os, signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(os.write(2, b'a')))"
    )
    child += "; os.write(1, b'{}\\n'); signal.pause()"
    starts = f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
    timeouts, before = ShutdownTimeouts(after_terminate=DEADLINE), time.monotonic()
    async with server(python(starts, ECHO), timeouts=timeouts) as channel:
        assert await channel.receive() == b"{}"
    assert channel.stderr_tail == ("a",)
    assert time.monotonic() - before < DEADLINE / 2


async def test_a_server_that_talks_while_it_is_closed_can_finish() -> None:
    talks = "sys.stdin.read(); print('x' * 1_000_000, flush=True)"
    async with server(python(talks)) as channel:
        pass
    assert channel.exit_code == 0


async def test_closing_twice_or_from_several_tasks_is_closing_once() -> None:
    async def receive() -> None:
        with pytest.raises(EndOfChannel, match="the channel is closed"):
            await channel.receive()

    async with server(python(ECHO)) as channel:
        async with anyio.create_task_group() as tasks:
            for task in (receive, channel.close, channel.close):
                tasks.start_soon(task)
        await channel.close()
        assert channel.exit_code == 0
        await receive()
        with pytest.raises(ConnectionClosedError, match="the channel is closed"):
            await channel.send(OutgoingMessage(b"1"))


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
    with anyio.fail_after(DEADLINE), suppress(ChildProcessError):
        while True:
            os.waitid(os.P_PID, channel.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            await checkpoint()
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
    assert done.returncode == 0
    return (done.stdout + done.stderr).decode()


async def test_an_interpreter_that_exits_leaves_no_server_behind(
    lifeline: Lifeline, anyio_backend: str
) -> None:
    opens = f"os.write(os.open({lifeline.path!r}, os.O_WRONLY), b'up')"
    opens += "\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('{}', flush=True)\n"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_client, LEAVES, anyio_backend, python(opens, IGNORES_EOF))
        await lifeline.up()
        await lifeline.cut()


async def test_an_interpreter_passes_on_the_last_words_of_a_server(anyio_backend: str) -> None:
    says = "signal.signal(signal.SIGTERM, lambda *_: os._exit(os.write(2, b'bye\\n' * 3000) % 2))\n"
    says += "print('{}', flush=True)\n"
    heard = await run_client(LEAVES, anyio_backend, python(says, IGNORES_EOF))
    assert heard.split() == ["bye"] * 3000


async def test_a_forked_copy_that_exits_ends_no_server_of_its_parent(anyio_backend: str) -> None:
    assert await run_client(FORKS, anyio_backend, python(ECHO)) == "0\n"


async def test_no_descriptor_is_left_open() -> None:
    await open_and_close(server(python(ECHO)))
    before = set(Path("/proc/self/fd").iterdir())
    async with server(python(ECHO)) as channel:
        await channel.send(OutgoingMessage(b"1"))
    async with server(["true"]) as channel:
        with pytest.raises(ServerStartError):
            await channel.receive()
    with pytest.raises(ServerStartError):
        await open_process(["no-such-command"])
    assert set(Path("/proc/self/fd").iterdir()) == before


async def test_a_start_without_threads_ends_the_process_and_closes_all() -> None:
    children = Path("/proc/thread-self/children")
    before, running = open_descriptors(), children.read_text().split()
    size = threading.stack_size(1 << 46)
    try:
        with pytest.raises(ServerStartError, match="can't start new thread"):
            await open_process(["sleep", "60"])
    finally:
        threading.stack_size(size)
    assert open_descriptors() == before
    assert {*children.read_text().split()} <= {*running}


@pytest.mark.parametrize("left", range(3))
async def test_standard_streams_that_cannot_be_taken_are_left_alone(
    few_descriptors: Callable[[int], None], left: int
) -> None:
    few_descriptors(left)
    before = open_descriptors()
    with pytest.raises(OSError, match="Too many open files"):
        open_stdio()
    assert open_descriptors() == before
