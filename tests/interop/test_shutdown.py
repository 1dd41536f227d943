"""The end of hosts of others while a call runs: soon, whatever bounds it there."""

from __future__ import annotations

import socket
import sys
import time

import anyio
import pytest

from interop.processes import run_server, wait_until_listening
from interop.revisions import HANDSHAKE, STATELESS
from mcpgen_runtime import McpError, connect

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

APP = "interop.apps:lasting"
HOSTS = {
    "uvicorn": ("uvicorn", "--timeout-graceful-shutdown", "1", "--port", "{port}", APP),
    "gunicorn": (
        *("gunicorn", "-k", "uvicorn_worker.UvicornWorker", "--graceful-timeout", "2"),
        *("-b", "127.0.0.1:{port}", APP),
    ),
    "gunicorn's own": (
        *("gunicorn", "-k", "asgi", "--graceful-timeout", "2", "-b", "127.0.0.1:{port}", APP),
    ),
    "hypercorn": ("hypercorn", "--graceful-timeout", "1", "--bind", "127.0.0.1:{port}", APP),
    "hypercorn on trio": (
        *("hypercorn", "--graceful-timeout", "1", "-k", "trio", "--bind", "127.0.0.1:{port}", APP),
    ),
    "granian": (
        *("granian", "--interface", "asgi", "--workers-kill-timeout", "1", "--port", "{port}", APP),
    ),
}
SERVES = "Uvicorn running|Booting worker|Running on|Started worker-1"
BOUND = 6.0
"""Seconds within which each ends; the call would last for minutes."""


@pytest.mark.parametrize("revision", [HANDSHAKE[-1], STATELESS])
@pytest.mark.parametrize("host", HOSTS)
async def test_a_running_call_does_not_hold_up_the_end(host: str, revision: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    begun, ended = anyio.Event(), anyio.Event()
    failures: list[McpError] = []

    async def call() -> None:
        try:
            with anyio.fail_after(20):
                await wait_until_listening(port)
            async with connect(f"http://127.0.0.1:{port}/mcp", revision=revision) as client:
                await client.call_tool(
                    "last", {"seconds": 600}, on_progress=lambda *progress: begun.set()
                )
        except McpError as error:
            failures.append(error)
        ended.set()

    command = [part.format(port=port) for part in HOSTS[host]]
    async with anyio.create_task_group() as tasks:
        with run_server(sys.executable, "-m", *command, says=SERVES):
            tasks.start_soon(call)
            with anyio.fail_after(20):
                await begun.wait()
            before = time.monotonic()
        assert time.monotonic() - before < BOUND
        with anyio.fail_after(20):
            await ended.wait()
    assert failures
