"""Serving in an event loop that runs already."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import open_and_close, server_with
from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import ConnectFailedError, ConnectionClosedError, Principal, Server, connect

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
on_trio = pytest.mark.parametrize("anyio_backend", ["trio"])


@on_asyncio
async def test_a_cancelled_task_of_asyncio_ends_as_such_and_leaves_none_behind() -> None:
    before, listens = asyncio.all_tasks(), asyncio.Event()
    task_status: Any = SimpleNamespace(started=lambda url: listens.set())
    serving = asyncio.ensure_future(
        Server("tester", drain=0.1).run_async(http="127.0.0.1:0", task_status=task_status)
    )
    await listens.wait()
    serving.cancel()
    await asyncio.wait((serving,))
    await anyio.lowlevel.checkpoint()
    assert serving.cancelled()
    assert asyncio.all_tasks() == before


@on_asyncio
async def test_a_cancellation_ends_it_and_signals_stay_the_callers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        events.append("entered")
        yield
        events.append("left")

    before = signal.getsignal(signal.SIGTERM)

    def double(number: int) -> int:
        return 2 * number

    async with anyio.create_task_group() as tasks:
        url = await tasks.start(
            partial(
                server_with(double, lifespan=lifespan, drain=0.1).run_async,
                http="127.0.0.1:0",
                path="/here",
            )
        )
        assert url.endswith("/here")
        assert f"serving at {url}\n" in capsys.readouterr().err
        assert signal.getsignal(signal.SIGTERM) is before
        async with connect(url) as client:
            result = await client.call_tool("double", {"number": 4})
            assert result.content[0].text == "8"
        tasks.cancel_scope.cancel()
    assert events == ["entered", "left"]
    with pytest.raises(ConnectFailedError):
        await open_and_close(connect(url))


@on_trio
async def test_http_on_trio_is_refused() -> None:
    with pytest.raises(ValueError, match="uvicorn runs on asyncio"):
        await Server("tester").run_async(http="127.0.0.1:0")


@pytest.mark.parametrize(
    "arguments",
    [
        {"http": "127.0.0.1:0"},
        {"host": "localhost", "port": 0},
        {"transport": "streamable-http", "host": "127.0.0.1", "port": 0},
    ],
    ids=str,
)
@on_asyncio
async def test_an_address_is_one_argument_or_two(arguments: dict[str, Any]) -> None:
    async with anyio.create_task_group() as tasks:
        url = await tasks.start(partial(Server("tester").run_async, **arguments))
        assert url.startswith("http://127.0.0.1:")
        async with connect(url) as client:
            assert client.server_info["name"] == "tester"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"http": "127.0.0.1:1", "port": 2}, "expected http='127.0.0.1:1', or host and port"),
        ({"transport": "stdio", "port": 2}, "port: of HTTP only; .* got 'stdio'"),
        ({"hosts": ["a"], "path": "/a"}, "path, hosts: of HTTP only; expected transport='http'"),
        ({"transport": "sse"}, "expected transport 'stdio' or 'http' or 'streamable-http'"),
        ({"transport": "http", "port": 65536}, "port: expected a number from 0 to 65535"),
        ({"port": 0, "principal": Principal.local()}, "principal: expected auth instead"),
    ],
    ids=lambda each: "" if isinstance(each, str) else " ".join(each),
)
@on_asyncio
async def test_contradictions_name_the_method(arguments: dict[str, Any], complaint: str) -> None:
    server: Any = Server("tester")
    with pytest.raises((TypeError, ValueError), match=rf"^server\.run_async: {complaint}"):
        await server.run_async(**arguments)
    with pytest.raises((TypeError, ValueError), match=rf"^server\.run: {complaint}"):
        server.run(**arguments)


SCRIPT = """
    import sys
    import anyio
    from mcpgen_runtime import Context, Principal, Server

    server = Server("local")

    @server.tool()
    async def who(ctx: Context) -> str:
        return str(ctx.principal.is_anonymous)

    @server.tool()
    async def stop() -> str:
        scope.cancel()
        return "stopping"

    async def main() -> None:
        global scope
        with anyio.CancelScope() as scope:
            await server.run_async(principal=Principal.local())
        print("afterwards", scope.cancelled_caught)

    anyio.run(main, backend=sys.argv[1])
"""


ENVIRONMENT = {"PYTHONPATH": str(PACKAGE_ROOT)}


@on_asyncio
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
async def test_standard_streams_are_served_until_cancelled(backend: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), backend]
    async with connect(command, env=ENVIRONMENT) as client:
        assert (await client.call_tool("who")).content[0].text == "False"
        await client.call_tool("stop")
        with pytest.raises(ConnectionClosedError):
            await client.call_tool("who")


def test_at_the_end_of_input_the_program_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), "asyncio"],
        env=ENVIRONMENT,
        input="",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    # The client reads the output to its end, so prints stay on standard error.
    assert (done.stdout, done.stderr) == ("", "afterwards False\n")
