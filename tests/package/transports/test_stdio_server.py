"""The server's side of stdio, in real processes with real pipes, files and terminals."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kit.processes import PACKAGE_ROOT
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes

ECHO = """
    import sys, os, subprocess, atexit, ctypes
    import anyio
    from mcpgen_runtime.channel import OutgoingMessage
    from mcpgen_runtime.errors import ConnectionClosedError, EndOfChannel, FrameError
    from mcpgen_runtime.server.stdio_server import open_stdio

    async def main():
        {before}
        channel = open_stdio(limit=1_000_000)
        try:
            while True:
                try:
                    message = await channel.receive()
                except FrameError as error:
                    await channel.send(OutgoingMessage(b'"too long"'))
                    continue
                {during}
                await channel.send(OutgoingMessage(message))
        except EndOfChannel:
            pass
        await channel.close()
        {after}

    anyio.run(main, backend=sys.argv[1])
"""


def argv(backend: str, before: str = "", during: str = "", after: str = "") -> list[str]:
    script = textwrap.dedent(ECHO).format(
        before=before or "pass", during=during or "pass", after=after or "pass"
    )
    return [sys.executable, "-c", script, backend]


def environment(**more: str) -> dict[str, str]:
    buffered = {"PYTHONUNBUFFERED": ""}
    return os.environ | buffered | {"PYTHONPATH": str(PACKAGE_ROOT)} | more


def run(command: list[str], wire: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, input=wire, capture_output=True, timeout=60, env=environment(**env), check=False
    )


@pytest.mark.requirement(
    "stdio.streams",
    "stdio.newline-delimited",
    "stdio.shutdown-server-on-eof",
    revisions=EVERY_REVISION,
)
def test_lines_in_are_lines_out_until_the_input_ends(backend: str) -> None:
    done = run(argv(backend), b'{"a":1}\r\n\n[2]\n"last, without newline"')
    assert done.stdout == b'{"a":1}\n[2]\n"last, without newline"\n'
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.requirement("stdio.newline-delimited", revisions=EVERY_REVISION)
def test_a_message_in_two_writes_is_one_message(backend: str) -> None:
    with subprocess.Popen(
        argv(backend), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), bufsize=0
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b'"ready"\n')
        assert server.stdout.readline() == b'"ready"\n'
        server.stdin.write(b'{"half"')
        server.stdin.write(b":1}\n")
        assert server.stdout.readline() == b'{"half":1}\n'
        server.stdin.close()
        assert server.stdout.read() == b""


@pytest.mark.requirement("stdio.utf8", revisions=EVERY_REVISION)
def test_messages_are_utf8_whatever_the_locale(backend: str) -> None:
    text = '"\u00e9\u4e16\U0001f600"\n'.encode()
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run(argv(backend, during="print('\\u4e16')"), text, **env)
    assert done.stdout == text
    assert done.stderr == b"\\u4e16\n"


@pytest.mark.requirement(
    "stdio.stdout-only-messages", "stdio.stderr-logging", revisions=EVERY_REVISION
)
@pytest.mark.parametrize(
    "stray",
    [
        "print('stray', flush=True)",
        "print('stray')",
        "sys.stdout.buffer.write(b'stray\\n')",
        "print('stray', file=sys.__stdout__)",
        "os.write(1, b'stray\\n')",
        "subprocess.run(['echo', 'stray'], check=True)",
        "subprocess.run(['sh', '-c', 'echo stray >&1'], check=True)",
        "ctypes.CDLL(None).puts(b'stray')",
    ],
)
def test_nothing_printed_reaches_the_client(stray: str) -> None:
    done = run(argv("asyncio", during=stray), b"1\n2\n")
    assert done.stdout == b"1\n2\n"
    assert done.stderr.decode().split() == ["stray", "stray"]
    assert done.returncode == 0


@pytest.mark.requirement("stdio.stdout-only-messages", revisions=EVERY_REVISION)
def test_printed_text_before_and_after_goes_to_standard_error(backend: str) -> None:
    done = run(
        argv(
            backend,
            before="print('early'); atexit.register(print, 'exit')",
            after="print('late')",
        ),
        b"1\n",
    )
    assert done.stdout == b"1\n"
    assert done.stderr.decode().split() == ["early", "late", "exit"]


def test_neither_code_nor_children_can_read_the_input_away(backend: str) -> None:
    during = (
        "print(repr(sys.stdin.read()), repr(os.read(0, 9)),"
        " repr(subprocess.run(['cat'], capture_output=True).stdout))"
    )
    done = run(argv(backend, during=during), b"1\n2\n")
    assert done.stdout == b"1\n2\n"
    assert done.stderr == b"'' b'' b''\n" * 2


def test_large_messages_pass_whole_through_a_full_pipe(backend: str) -> None:
    wire = b"".join(bytes([letter]) * 900_000 + b"\n" for letter in b"abcdef")
    assert run(argv(backend), wire).stdout == wire


@pytest.mark.requirement("stdio.shutdown-server-on-eof", revisions=EVERY_REVISION)
def test_a_client_that_stopped_reading_is_a_channel_error(backend: str) -> None:
    during = (
        "try: await channel.send(OutgoingMessage(b'1'))\n"
        "            except ConnectionClosedError as error: print(error); break"
    )
    with subprocess.Popen(
        argv(backend, during=during),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as server:
        assert server.stdout is not None
        server.stdout.close()
        server.stdout = None
        _, stderr = server.communicate(b"1\n", timeout=60)
    assert stderr == b"the other end no longer reads\n"
    assert server.returncode == 0


def test_regular_files_serve_as_streams_too(backend: str, tmp_path: Path) -> None:
    wire = b"".join(b'{"number":%d}\n' % number for number in range(20_000))
    (tmp_path / "in").write_bytes(wire)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        subprocess.run(
            argv(backend), stdin=stdin, stdout=stdout, timeout=60, env=environment(), check=True
        )
    assert (tmp_path / "out").read_bytes() == wire


def test_sockets_serve_as_streams_even_shared_with_stderr(backend: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = theirs.fileno()
        server = subprocess.Popen(argv(backend), stdin=fd, stdout=fd, stderr=fd, env=environment())
        ours.sendall(b"1\n" + b"x" * 900_000 + b"\n")
        ours.settimeout(60)
        got = b""
        while len(got) < 900_003:
            got += ours.recv(65536)
        # The flag belongs to all who hold the socket, so it must be as it was.
        assert os.get_blocking(theirs.fileno())
        ours.shutdown(socket.SHUT_WR)
        assert server.wait(60) == 0
    assert got == b"1\n" + b"x" * 900_000 + b"\n"


def test_the_open_files_of_others_stay_blocking(backend: str) -> None:
    read_end, write_end = os.pipe()
    with subprocess.Popen(
        argv(backend), stdin=subprocess.PIPE, stdout=write_end, env=environment()
    ) as server:
        assert server.stdin is not None
        server.stdin.write(b"1\n")
        server.stdin.flush()
        assert os.read(read_end, 10) == b"1\n"
        assert os.get_blocking(write_end)
        server.stdin.close()
    os.close(read_end)
    os.close(write_end)


def test_a_person_at_a_terminal_can_speak_to_a_server(backend: str) -> None:
    ours, theirs = pty.openpty()
    server = subprocess.Popen(
        argv(backend), stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment()
    )
    os.close(theirs)
    os.write(ours, b"1\n")
    got = b""
    while got.count(b"\n") < 2:  # what was typed, and the answer
        got += os.read(ours, 1000)
    assert got == b"1\r\n1\r\n"
    os.write(ours, b"\x04")
    _, stderr = server.communicate(timeout=60)
    os.close(ours)
    assert (server.returncode, stderr) == (0, b"")


def test_a_channel_over_standard_streams_is_named_stdio(backend: str) -> None:
    done = run(argv(backend, during="print(channel.transport)"), b"1\n")
    assert (done.stdout, done.stderr) == (b"1\n", b"stdio\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_process_without_a_standard_stream_says_so(backend: str, closed: str) -> None:
    done = run(["sh", "-c", f'exec "$@" {closed}', "sh", *argv(backend)], b"")
    assert b"ConnectionClosedError: expected an open standard input and output" in done.stderr


def test_prints_vanish_where_there_is_no_standard_error(backend: str) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *argv(backend, during="os.write(1, b'stray')")]
    done = run(command, b"1\n")
    assert (done.stdout, done.returncode) == (b"1\n", 0)
