"""Whole servers in processes of their own, and how they end: in order, by a crash, or at the start.

Source: basic/transports (stdio); 2026-07-28: basic/transports/stdio.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import Any

import anyio
import pytest

from kit.live import text_of
from kit.stdio_process import PATHS, SERVER, process, script
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts, request
from mcpgen_runtime import ConnectionClosedError, ServerStartError, ToolsChanged, connect

pytestmark = pytest.mark.processes

every = pytest.mark.parametrize("revision", ALL)
modern = pytest.mark.parametrize("revision", PER_REQUEST)
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
async def test_a_server_that_fails_to_start_shows_exit_code_and_output(
    revision: str | None, code: str, exit_code: int, text: str
) -> None:
    with anyio.fail_after(20), pytest.raises(ServerStartError) as failed:
        async with connect(script(code), revision=revision):
            pytest.fail("it never started")
    assert failed.value.exit_code == exit_code
    assert text in str(failed.value)
    assert f"exit code {exit_code}" in str(failed.value)


async def test_a_failing_lifespan_ends_the_server_with_its_error() -> None:
    code = """
from contextlib import asynccontextmanager
from mcpgen_runtime import Server

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


@pytest.mark.parametrize("failure", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
async def test_an_error_of_the_body_passes_and_the_server_ends(
    failure: BaseException,
) -> None:
    with pytest.raises(type(failure)) as caught:
        async with connect(SERVER, env=PATHS) as client:
            pid = int(text_of(await client.call_tool("pids")).split()[0])
            raise failure
    assert caught.value is failure
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.requirement(
    "stdio.resubscribe-after-restart",
    "subscriptions.relisten-after-reconnect",
    "subscriptions.no-server-memory",
)
@modern
async def test_after_a_crash_a_listener_subscribes_at_the_next_process(
    revision: str,
) -> None:
    tell, heard = anyio.create_memory_object_stream[tuple[int, str]](9)
    clients: list[Any] = []

    async def listen() -> None:
        while True:
            with suppress(ConnectionClosedError):
                async with connect(SERVER, revision=revision, env=PATHS) as client:
                    clients.append(client)
                    async with client.listen(tools=True) as changes:
                        tell.send_nowait((len(clients), "agreed"))
                        async for change in changes:
                            assert change == ToolsChanged()
                            tell.send_nowait((len(clients), "changed"))

    with tell, heard, anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            assert await heard.receive() == (1, "agreed")
            await clients[0].call_tool("grow", {"name": "first"})
            assert await heard.receive() == (1, "changed")
            with pytest.raises(ConnectionClosedError):
                await clients[0].call_tool("die", {"code": 1})
            assert await heard.receive() == (2, "agreed")
            await clients[1].call_tool("grow", {"name": "second"})
            assert await heard.receive() == (2, "changed")
            tasks.cancel_scope.cancel()
