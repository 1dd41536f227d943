"""Whole servers in processes of their own, and what passes through the pipes.

Source: basic/transports (stdio); 2026-07-28: basic/transports/stdio.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

import mcp_protocol
from mcp_protocol.client import ClientHandlers, connect
from mcp_protocol.errors import ConnectionClosedError, RequestTimeoutError, ServerStartError
from mcp_protocol.events import NotificationReceived
from mcp_protocol.exchange import Exchange
from mcp_protocol.jsonrpc import Malformed, parse
from package.live import text_of
from package.rules import holding
from package.wire import (
    ALL,
    HANDSHAKE,
    INITIALIZED,
    PER_REQUEST,
    encoded,
    facts,
    initialize,
    request,
)

SCRIPT = Path(__file__).parent / "stdio_server.py"
PATHS = {"PYTHONPATH": str(Path(mcp_protocol.__file__).parent.parent)}
SERVER = [sys.executable, str(SCRIPT)]
every = pytest.mark.parametrize("revision", ALL)
modern = pytest.mark.parametrize("revision", PER_REQUEST)
some = pytest.mark.parametrize("revision", [HANDSHAKE[0], HANDSHAKE[-1], *PER_REQUEST])


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def script(code: str) -> list[str]:
    """A command that runs some code as a server."""
    return [sys.executable, "-c", code]


class Process:
    """A server started by hand: lines in, lines out."""

    def __init__(self, revision: str, backend: str = "asyncio") -> None:
        self.revision = revision
        self._process = subprocess.Popen(
            [*SERVER, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **PATHS},
        )
        self.lines: list[bytes] = []
        if revision in HANDSHAKE:
            self.say(initialize(revision, {"roots": {}}))
            self.hear()
            self.say(INITIALIZED)

    def say(self, *messages: Any) -> None:
        """Write messages, each a line, all at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(encoded(message) + b"\n" for message in messages))
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Read a line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.lines.append(line)
        message: dict[str, Any] = json.loads(line)
        return message

    def call(self, tool: str, arguments: Mapping[str, Any], **how: Any) -> None:
        """Write a call of a tool."""
        params = {"name": tool, "arguments": arguments}
        self.say(request(self.revision, "tools/call", params, **how))

    def hear_error(self, line: bytes) -> None:
        """Wait for a line on standard error."""
        assert self._process.stderr is not None
        assert self._process.stderr.readline().rstrip() == line

    def end(self, by: int | None = None) -> int:
        """End its input, or send a signal; gives the exit code."""
        if by is not None:
            self._process.send_signal(by)
        rest, errors = self._process.communicate(timeout=5)
        self.lines += rest.splitlines(keepends=True)
        self.errors = errors
        return self._process.returncode


@contextmanager
def process(revision: str, backend: str = "asyncio") -> Iterator[Process]:
    """A server started by hand, whose every line of output is a message in the end."""
    started = Process(revision, backend)
    try:
        yield started
    finally:
        if started._process.poll() is None:
            started._process.kill()
            started.end()
    for line in started.lines:
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        assert not isinstance(parse(line), Malformed), line


@pytest.mark.requirement(
    "stdio.client-launches-server",
    "stdio.client-support",
    "stdio.streams",
    "stdio.newline-delimited",
    "stdio.shared-channel-correlation",
)
@every
async def test_a_client_starts_its_server_and_calls_it(revision: str, backend: str) -> None:
    async with connect([*SERVER, backend], revision=revision, env=PATHS) as client:
        assert client.revision == revision
        _, parent = text_of(await client.call_tool("pids")).split()
        assert int(parent) == os.getpid()
        async with anyio.create_task_group() as tasks:

            async def call(a: int) -> None:
                assert text_of(await client.call_tool("add", {"a": a, "b": 1})) == str(a + 1)

            for a in range(32):
                tasks.start_soon(call, a)
        news: list[float] = []
        await client.call_tool("count", {"to": 3}, on_progress=lambda value, *_: news.append(value))
        assert news == [1, 2, 3]


async def test_client_and_server_of_all_revisions_agree_on_the_newest() -> None:
    async with connect(SERVER, env=PATHS) as client:
        assert client.revision == ALL[-1]


@pytest.mark.requirement("stdio.utf8", "stdio.no-embedded-newline", "stdio.streams")
@some
async def test_any_text_passes_whatever_the_locale(revision: str, backend: str) -> None:
    text = 'line\nline\r\n\u2028 \u00e9\u4e16\U0001f600 \x00\x7f "quoted" \\n'
    env = {**PATHS, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    async with connect([*SERVER, backend], revision=revision, env=env) as client:
        assert text_of(await client.call_tool("echo", {"text": text})) == text


@pytest.mark.requirement("stdio.stdout-only-messages", "stdio.stderr-any-logging")
@some
async def test_what_a_tool_prints_does_not_disturb_the_session(revision: str) -> None:
    async with connect(SERVER, revision=revision, env=PATHS) as client:
        for _ in range(2):
            assert text_of(await client.call_tool("shout", {"text": "hello"})) == "shouted"
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"


@pytest.mark.requirement(
    "stdio.newline-delimited",
    "stdio.stdout-only-messages",
    "stdio.no-embedded-newline",
    "stdio.streams",
)
@every
def test_a_server_answers_each_line_with_a_line_and_prints_nothing_else(
    revision: str, backend: str
) -> None:
    with process(revision, backend) as server:
        calls = [
            request(revision, "tools/call", {"name": "echo", "arguments": {"text": text}}, id=text)
            for text in ("one\ntwo", "\r")
        ]
        server.say(*calls)
        half = encoded(request(revision, "tools/list", id="half"))
        server.say(half[:20] + half[20:])
        assert {server.hear()["id"] for _ in range(3)} == {"one\ntwo", "\r", "half"}
        server.call("shout", {"text": "stray"}, id="loud")
        assert server.hear()["id"] == "loud"
        assert server.end() == 0
        assert len(server.lines) == 4 + (revision in HANDSHAKE)


@pytest.mark.requirement(
    "stdio.stdin-only-messages",
    "stdio.no-shutdown-message",
    "stdio.newline-delimited",
    "stdio.no-embedded-newline",
    "stdio.client-sends-no-responses",
    "stdio.metadata-inline",
)
@every
async def test_a_client_writes_messages_and_nothing_else_until_it_closes(
    revision: str, tmp_path: Path
) -> None:
    """The server is run behind `tee`, which keeps what it is sent."""
    record = tmp_path / "stdin"
    behind = ["sh", "-c", 'tee "$0" | "$@"', str(record), *SERVER]
    async with connect(behind, revision=revision, env=PATHS) as client:
        await client.call_tool("echo", {"text": "one\ntwo\r\n"})
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("wait", timeout=0.05)
        await client.list_tools()
    written = record.read_bytes()
    assert written.endswith(b"}\n")
    methods = []
    for line in written.splitlines():
        message = json.loads(line)
        assert not isinstance(parse(line), Malformed)
        methods.append(message["method"])
        if revision in PER_REQUEST and "id" in message:
            keys = facts(revision).meta
            assert message["params"]["_meta"][keys.protocol_version] == revision
            assert keys.client_capabilities in message["params"]["_meta"]
            assert keys.client_info in message["params"]["_meta"]
    opening = ["initialize", "notifications/initialized"]
    assert methods == [
        *(opening if revision in HANDSHAKE else ["server/discover"]),
        "tools/call",
        "tools/call",
        "notifications/cancelled",
        "tools/list",
    ]


@pytest.mark.requirement("stdio.metadata-inline")
@modern
def test_a_request_has_to_say_itself_how_it_is_meant(revision: str) -> None:
    with process(revision) as server:
        server.say({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
        server.say({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {}})
        whole = request(revision, "tools/list", id=3)
        del whole["params"]["_meta"][facts(revision).meta.client_capabilities]
        server.say(whole, request(revision, "tools/list", id=4))
        said = {message["id"]: message for message in (server.hear() for _ in range(4))}
    assert [said[id]["error"]["code"] for id in (2, 3)] == [-32602, -32602]
    assert "error" in said[1]
    assert "result" in said[4]


@pytest.mark.requirement("stdio.process-identity-not-state")
@modern
def test_nothing_is_taken_over_from_an_earlier_request(revision: str) -> None:
    with process(revision) as server:
        server.call("capabilities", {}, id=1, capabilities={"roots": {}, "sampling": {}})
        server.call("capabilities", {}, id=2)
        server.call("capabilities", {}, id=3, capabilities={"roots": {}})
        told = {m["id"]: m["result"]["content"][0]["text"] for m in (server.hear() for _ in "123")}
    assert told == {1: "roots sampling", 2: "", 3: "roots"}


@pytest.mark.requirement("stdio.server-message-kinds")
@modern
def test_a_change_that_nobody_listens_to_is_not_written(revision: str) -> None:
    with process(revision) as server:
        server.call("grow", {"name": "more"}, id=1)
        assert server.hear()["id"] == 1
        server.say(request(revision, "tools/list", id=2))
        assert "more" in str(server.hear())
        assert server.end() == 0
    assert len(server.lines) == 2


@pytest.mark.requirement("stdio.server-sends-no-requests")
@modern
async def test_a_tool_that_asks_the_user_does_so_by_its_result(revision: str) -> None:
    class Answers(ClientHandlers):
        async def elicit(self, params: Any, ctx: Exchange) -> Any:
            return {"action": "accept", "content": {"city": "Oslo"}}

    async with connect(SERVER, revision=revision, env=PATHS, handlers=Answers()) as client:
        assert text_of(await client.call_tool("ask")) == "Oslo"
    with process(revision) as server:
        server.call("ask", {}, id=1, capabilities={"elicitation": {}})
        assert server.hear()["result"]["resultType"] == "input_required"
        assert server.end() == 0
    assert len(server.lines) == 1


@pytest.mark.requirement("stdio.batch-line")
@pytest.mark.parametrize("revision", holding("stdio.batch-line"))
def test_a_line_may_be_a_batch_where_there_are_batches(revision: str) -> None:
    with process(revision) as server:
        server.say([request(revision, "ping", id=1), {**INITIALIZED}])
        assert server.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.requirement("stdio.single-message-line")
@pytest.mark.parametrize("revision", holding("stdio.single-message-line"))
def test_a_line_with_several_messages_is_refused_as_one(revision: str) -> None:
    with process(revision) as server:
        call = {"name": "grow", "arguments": {"name": "never"}}
        server.say([request(revision, "tools/call", call, id=1)])
        assert server.hear()["error"]["code"] == -32600
        server.say(request(revision, "tools/list", id=2))
        assert "never" not in str(server.hear())


@pytest.mark.requirement(
    "stdio.cancel-by-notification", "stdio.cancel-server-stops", "stdio.cancel-server-silent"
)
@every
def test_a_cancelled_call_is_stopped_and_not_answered(revision: str, backend: str) -> None:
    with process(revision, backend) as server:
        server.call("wait", {}, id="long")
        server.hear_error(b"waiting")
        params = {"requestId": "long"}
        server.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        server.hear_error(b"stopped")
        server.say(request(revision, "tools/list", id="next"))
        assert server.hear()["id"] == "next"
        assert server.end() == 0
    assert not any(b'"long"' in line for line in server.lines)


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
        listen = facts(revision).listen
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


@pytest.mark.parametrize(
    ("code", "exit_code", "text"),
    [
        ("import sys; sys.exit('no config found')", 1, "no config found"),
        ("import no_such_module", 1, "No module named 'no_such_module'"),
        ("print('usage: server [options]'); raise SystemExit(2)", 2, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
    ],
)
@pytest.mark.parametrize("revision", [None, HANDSHAKE[-1]])
async def test_a_server_that_fails_to_start_says_its_exit_code_and_its_last_words(
    revision: str | None, code: str, exit_code: int, text: str
) -> None:
    with anyio.fail_after(20), pytest.raises(ServerStartError) as failed:
        async with connect(script(code), revision=revision):
            pytest.fail("it never started")
    assert failed.value.exit_code == exit_code
    assert text in str(failed.value)
    assert f"exit code {exit_code}" in str(failed.value)


async def test_a_lifespan_that_fails_ends_the_server_with_its_own_error() -> None:
    code = """
from contextlib import asynccontextmanager
from mcp_protocol import Server

@asynccontextmanager
async def lifespan(server):
    raise LookupError("no database")
    yield

Server("any", lifespan=lifespan).run()
"""
    with pytest.raises(ServerStartError) as failed:
        async with connect(script(code), env=PATHS):
            pytest.fail("it never started")
    assert failed.value.stderr_tail[-1] == "LookupError: no database"


async def test_what_is_no_command_says_so() -> None:
    with pytest.raises(ServerStartError, match=r"no-such-command.*could not be started"):
        async with connect(["no-such-command-here"]):
            pytest.fail("it never started")


@pytest.mark.requirement("stdio.stderr-not-an-error", "stdio.stderr-any-logging")
@some
async def test_a_server_that_prints_before_it_speaks_is_understood(revision: str) -> None:
    """A banner on standard output is against the rules, and common."""
    code = f"""
import sys, runpy
print("Starting server on stdio", flush=True)
print("{{not json}}", flush=True)
print("info: ready", file=sys.stderr, flush=True)
sys.argv = ["server"]
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""
    async with connect(script(code), revision=revision, env=PATHS) as client:
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"


@pytest.mark.parametrize("failure", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
async def test_what_the_body_raises_leaves_as_it_is_and_the_server_ends(
    failure: BaseException,
) -> None:
    with pytest.raises(type(failure)) as caught:
        async with connect(SERVER, env=PATHS) as client:
            pid = int(text_of(await client.call_tool("pids")).split()[0])
            raise failure
    assert caught.value is failure
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.requirement("stdio.resubscribe-after-restart", "subscriptions.no-server-memory")
@modern
async def test_after_a_crash_a_listener_subscribes_again_at_the_next_process(
    revision: str,
) -> None:
    tell, heard = anyio.create_memory_object_stream[tuple[int, str]](9)
    clients: list[Any] = []

    def keep(change: NotificationReceived) -> None:
        tell.send_nowait((len(clients), change.method.name.rpartition("/")[2]))

    async def listen() -> None:
        while True:
            with suppress(ConnectionClosedError):
                async with connect(SERVER, revision=revision, env=PATHS) as client:
                    clients.append(client)
                    await client.listen({"toolsListChanged": True}, keep)

    with tell, heard, anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            assert await heard.receive() == (1, "acknowledged")
            await clients[0].call_tool("grow", {"name": "first"})
            assert await heard.receive() == (1, "list_changed")
            with pytest.raises(ConnectionClosedError):
                await clients[0].call_tool("die", {"code": 1})
            assert await heard.receive() == (2, "acknowledged")
            await clients[1].call_tool("grow", {"name": "second"})
            assert await heard.receive() == (2, "list_changed")
            tasks.cancel_scope.cancel()
