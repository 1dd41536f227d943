"""The server's side of stdio in real processes: pipes, files, terminals, and how servers end."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import pytest

from kit.live import expect_refusal
from kit.processes import PACKAGE_ROOT
from kit.stdio_process import PATHS, SERVER, process, script
from kit.wire import HANDSHAKE, PER_REQUEST, every, facts, modern, request
from mcpgen_runtime import ConnectionClosedError, ServerStartError, ToolsChanged, connect
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes

ECHO = """
    import sys, os, subprocess, atexit, ctypes
    import anyio
    from mcpgen_runtime.channel import OutgoingMessage
    from mcpgen_runtime.errors import ConnectionClosedError, EndOfChannel
    from mcpgen_runtime.server.stdio_server import open_stdio

    async def main():
        {before}
        channel = open_stdio(limit=1_000_000)
        try:
            while True:
                message = await channel.receive()
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


TEXT = '"\u00e9\u4e16\U0001f600"\n'.encode()
READS = """print(repr(sys.stdin.read()), repr(os.read(0, 9)),
                   repr(subprocess.run(["cat"], capture_output=True).stdout))"""
EARLY = {"before": "print('early'); atexit.register(print, 'exit')", "after": "print('late')"}
RUNS: dict[str, tuple[dict[str, str], bytes, bytes, bytes]] = {
    "until the input ends": ({}, b'{"a":1}\r\n\n[2]\n"last"', b'{"a":1}\n[2]\n"last"\n', b""),
    "UTF-8 in any locale": ({"during": "print('\\u4e16')"}, TEXT, TEXT, b"\\u4e16\n"),
    "prints before and after": (EARLY, b"1\n", b"1\n", b"early\nlate\nexit\n"),
    "nobody reads the input away": ({"during": READS}, b"1\n2\n", b"1\n2\n", b"'' b'' b''\n" * 2),
    "the name of the channel": (
        {"during": "print(channel.transport)"},
        b"1\n",
        b"1\n",
        b"stdio\n",
    ),
}


@pytest.mark.requirement(
    "stdio.streams",
    "stdio.newline-delimited",
    "stdio.shutdown-server-on-eof",
    "stdio.utf8",
    "stdio.stdout-only-messages",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(("code", "wire", "output", "errors"), RUNS.values(), ids=RUNS.keys())
def test_lines_in_are_lines_out(
    backend: str, code: dict[str, str], wire: bytes, output: bytes, errors: bytes
) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run(argv(backend, **code), wire, **env)
    assert (done.stdout, done.stderr, done.returncode) == (output, errors, 0)


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


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_process_without_a_standard_stream_says_so(backend: str, closed: str) -> None:
    done = run(["sh", "-c", f'exec "$@" {closed}', "sh", *argv(backend)], b"")
    assert b"ConnectionClosedError: expected an open standard input and output" in done.stderr


def test_prints_vanish_where_there_is_no_standard_error(backend: str) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *argv(backend, during="os.write(1, b'stray')")]
    done = run(command, b"1\n")
    assert (done.stdout, done.returncode) == (b"1\n", 0)


some = pytest.mark.parametrize("revision", [HANDSHAKE[0], HANDSHAKE[-1], *PER_REQUEST])


@pytest.mark.requirement("stdio.shutdown-server-on-eof")
@some
@pytest.mark.parametrize("tool", ["wait", "block"])
def test_a_server_ends_with_its_input_though_a_tool_is_running(
    revision: str, backend: str, tool: str
) -> None:
    with process(revision, backend) as server:
        server.call(tool, {}, id=1)
        server.hear_error(b"waiting" if tool == "wait" else b"blocking")
        assert server.end() == 0  # within seconds, or it is an error


@some
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_in_order(revision: str, backend: str, number: int) -> None:
    with process(revision, backend) as server:
        listen = facts(revision).behaviour.listen
        if listen is not None:
            server.say(request(revision, listen, {"notifications": {}}, id="s"))
            assert server.hear()["method"] == "notifications/subscriptions/acknowledged"
        server.call("wait", {}, id=1)
        server.hear_error(b"waiting")
        assert server.end(number) == 0
        assert b"stopped" in server.errors
        assert b"Traceback" not in server.errors
    ended = [json.loads(line) for line in server.lines]
    assert ("s" in [message.get("id") for message in ended]) is (listen is not None)


@pytest.mark.requirement("stdio.shutdown-by-server", "stdio.retry-lost-requests")
@every
async def test_a_server_that_dies_in_a_call_is_one_readable_error(
    revision: str, backend: str
) -> None:
    async with connect([*SERVER, backend], revision=revision, env=PATHS) as client:
        errors: list[str] = []

        async def call(tool: str) -> None:
            with pytest.raises(ConnectionClosedError) as died:
                await client.call_tool(tool, {"code": 7} if tool == "die" else {})
            errors.append(str(died.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "wait")
            tasks.start_soon(call, "die")
        await call("add")
    for error in errors:
        assert "ended with exit code 7" in error
        assert error.endswith("about to die\n  last words")
        assert "stdio_server.py" in error
    assert len(errors) == 3


LIFESPAN = """
from contextlib import asynccontextmanager
from mcpgen_runtime import Server

@asynccontextmanager
async def lifespan(server):
    raise LookupError("no database")
    yield

Server("any", lifespan=lifespan).run()
"""


@pytest.mark.parametrize(
    ("code", "exit_code", "text"),
    [
        ("import sys; sys.exit('no config found')", 1, "no config found"),
        ("import no_such_module", 1, "No module named 'no_such_module'"),
        ("print('usage: server [options]'); raise SystemExit(2)", 2, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        (LIFESPAN, 1, "LookupError: no database"),
    ],
)
@pytest.mark.parametrize("revision", [None, HANDSHAKE[-1]])
async def test_a_server_that_fails_to_start_shows_exit_code_and_output(
    revision: str | None, code: str, exit_code: int, text: str
) -> None:
    with anyio.fail_after(20), pytest.raises(ServerStartError) as failed:
        await expect_refusal(connect(script(code), revision=revision, env=PATHS))
    assert failed.value.exit_code == exit_code
    assert text in str(failed.value)
    assert f"exit code {exit_code}" in str(failed.value)


@pytest.mark.requirement(
    "stdio.resubscribe-after-restart",
    "subscriptions.relisten-after-reconnect",
    "subscriptions.no-server-memory",
)
@modern
async def test_after_a_crash_a_listener_subscribes_at_the_next_process(revision: str) -> None:
    for name in ("first", "second"):
        async with (
            connect(SERVER, revision=revision, env=PATHS) as client,
            client.listen(tools=True) as changes,
        ):
            await client.call_tool("grow", {"name": name})
            assert await anext(changes) == ToolsChanged()
            with pytest.raises(ConnectionClosedError):
                await client.call_tool("die", {"code": 1})
            with pytest.raises(ConnectionClosedError):
                await anext(changes)
