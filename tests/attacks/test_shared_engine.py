"""A hostile client of processes that share an engine: the engine stays small, others are served."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.engine import Engine, run_engine
from kit.web_process import SERVE, Started, WebClient, start_server
from kit.wire import initialize

pytestmark = pytest.mark.attack

MIB = 2**20
BATCHES, REVISION, TASKS = "2025-03-26", "2025-06-18", "2025-11-25"
WEB = """
    from mcpgen_runtime import Server, Tasks

    server = Server("web", "1", drain=0.3)
    tasks = Tasks(server, poll_interval=0.1)

    @server.tool
    async def echo(text: str = "") -> str:
        return text

    @server.tool(runner=tasks)
    async def big(size: int) -> str:
        return "x" * size
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine."""
    with run_engine() as engine:
        yield engine


@pytest.fixture
def server(engine: Engine, tmp_path: Path) -> Iterator[Started]:
    """A server of two processes."""
    (tmp_path / "web.py").write_text(textwrap.dedent(WEB))
    with start_server(tmp_path, *SERVE, "--workers", "2", "--shared", engine.url) as server:
        yield server


def flood_with_cancellations(client: WebClient) -> None:
    params = {"requestId": "none", "reason": "x" * 3_900_000}
    for _ in range(20):
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        assert client.post(message)[0] == 202


def flood_with_responses(client: WebClient) -> None:
    batch: list[Any] = [{"jsonrpc": "2.0", "id": f"w{n}.1.1", "result": {}} for n in range(99)]
    batch.append({"jsonrpc": "2.0", "id": "w0.1.2", "result": {"p": "x" * 1_000_000}})
    assert client.post(batch)[0] == 202


def flood_with_sessions(client: WebClient) -> None:
    capabilities = {"experimental": {"x": {"p": "y" * 60_000}}}
    del client.fields["Mcp-Session-Id"], client.fields["MCP-Protocol-Version"]
    for _ in range(1000):
        assert client.post(initialize(REVISION, capabilities))[0] == 200


def flood_with_tasks(client: WebClient) -> None:
    for _ in range(40):
        message = client.message("big")
        message["params"] |= {"arguments": {"size": 1_900_000}, "task": {}}
        assert client.post(message)[0] == 200


FLOODS = {
    "cancellations": (flood_with_cancellations, REVISION),
    "responses": (flood_with_responses, BATCHES),
    "sessions": (flood_with_sessions, REVISION),
    "tasks": (flood_with_tasks, TASKS),
}


@pytest.mark.parametrize("name", FLOODS)
def test_one_client_does_not_fill_the_engine(name: str, server: Started, engine: Engine) -> None:
    flood, revision = FLOODS[name]
    honest = WebClient(server.port, REVISION)
    before = engine.figure("memory", "used_memory")
    flood(WebClient(server.port, revision))
    taken = engine.figure("memory", "used_memory") - before
    assert taken < (90 if name == "tasks" else 45) * MIB
    begun = time.monotonic()
    status, _, body = honest.post(honest.message("echo"))
    assert (status, json.loads(body).get("error")) == (200, None)
    assert time.monotonic() - begun < 1
