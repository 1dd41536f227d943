"""The client's side of stdio: real servers that answer, misbehave and fail to start."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.processes import (
    ECHO,
    python,
    server,
)
from mcpgen_runtime import ConnectionClosedError, ServerStartError
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import EndOfChannel, FrameError
from mcpgen_runtime.transports.process import (
    INHERITED,
    TAIL_LINES,
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
    assert channel.exit_code == 0


async def test_lines_that_are_no_messages_are_passed_up_as_they_are() -> None:
    async with server(python("print('Starting ...\\n\\n{broken'); sys.stdout.flush()", ECHO)) as it:
        assert [await it.receive(), await it.receive()] == [b"Starting ...", b"{broken"]


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


@pytest.mark.parametrize("first", ["receive", "send"])
async def test_a_server_that_dies_at_the_start_says_why(first: str) -> None:
    dies = "print('no', 'database', file=sys.stderr); print('a banner'); sys.exit(3)"
    command = python(dies)
    async with server(command, on_stderr=None) as channel:
        with pytest.raises(ServerStartError) as caught:
            while True:
                await (
                    channel.receive()
                    if first == "receive"
                    else channel.send(OutgoingMessage(b"1" * 9999))
                )
    assert caught.value.argv == tuple(command)
    assert caught.value.exit_code == 3
    assert caught.value.stderr_tail == ("no database",)
    assert "ended with exit code 3" in str(caught.value)
    assert "no database" in str(caught.value)


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


@pytest.mark.requirement("stdio.shutdown-by-server", revisions=EVERY_REVISION)
async def test_a_server_that_ends_later_is_the_end_of_the_channel() -> None:
    ends = "print('{}', flush=True); print('bye', file=sys.stderr); sys.exit(4)"
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
    async with server(python("print('a word', file=sys.stderr, flush=True)", ECHO)):
        pass
    assert capsys.readouterr().err == "a word\n"


@pytest.mark.requirement(
    "stdio.stderr-client-choice", "stdio.stderr-any-logging", revisions=EVERY_REVISION
)
async def test_much_standard_error_blocks_no_server_whoever_listens() -> None:
    def fails(text: str) -> None:
        raise RuntimeError(text)

    writes = "for n in range(20000): print('line', n, 'x' * 200, file=sys.stderr)"
    for listener in (None, fails):
        async with server(python(writes, ECHO), on_stderr=listener) as channel:
            await channel.send(OutgoingMessage(b"1"))
            assert await channel.receive() == b"1"
        assert len(channel.stderr_tail) == TAIL_LINES
        assert channel.stderr_tail[-1].startswith("line 19999 ")


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


def test_a_line_of_standard_error_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", io.TextIOWrapper(written))
        to_stderr("a word")
        assert written.getvalue() == b"a word\n"
        patch.setattr(sys, "stderr", None)
        to_stderr("nowhere")
