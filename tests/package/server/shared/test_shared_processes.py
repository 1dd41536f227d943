"""Processes that share an engine: `serve --workers N --shared URL`."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.engine import Engine
from kit.raw_http import SECONDS
from kit.web_process import SERVE, Started, WebClient, start_server
from kit.wire import newest_session

pytestmark = [pytest.mark.processes, pytest.mark.costly, pytest.mark.workers]


WEB = """
    import os, sys
    import anyio
    from mcpgen_runtime import Context, Server, Tasks

    server = Server("web", "1", drain=0.3)

    @server.tool()
    def pid() -> str:
        return str(os.getpid())

    @server.tool()
    async def steps(ctx: Context) -> str:
        await ctx.info(os.getpid())
        await anyio.sleep(600)
        return "done"

    @server.tool(runner=Tasks(server).runner(restart="again"))
    async def job() -> str:
        if not os.path.exists("begun"):
            open("begun", "w").close()
            print(os.getpid(), file=sys.stderr, flush=True)
            await anyio.sleep(600)
        return str(os.getpid())
"""


@pytest.fixture
def server(engine: Engine, tmp_path: Path) -> Iterator[Started]:
    """A server of three processes."""
    (tmp_path / "web.py").write_text(textwrap.dedent(WEB))
    with start_server(tmp_path, *SERVE, "--workers", "3", "--shared", engine.url) as server:
        yield server


@newest_session
def test_all_processes_serve_one_session(server: Started, revision: str) -> None:
    client = WebClient(server.port, revision)
    served: set[str] = set()
    late = time.monotonic() + SECONDS
    while len(served) < 3:
        status, pid = client.call("pid")
        assert status == 200
        served.add(pid)
        assert time.monotonic() < late
    code, _, err, _ = server.end()
    assert (code, err) == (0, "")  # they lack nothing, and none complains at the end


@newest_session
def test_a_task_of_a_killed_process_runs_again_at_another(server: Started, revision: str) -> None:
    client = WebClient(server.port, revision)
    message = client.message("job")
    message["params"]["task"] = {}
    task = json.loads(client.post(message)[2])["result"]["task"]
    assert server.process.stderr is not None
    working = int(server.process.stderr.readline())
    os.kill(working, signal.SIGKILL)
    asked = {"method": "tasks/result", "params": {"taskId": task["taskId"]}}
    _, _, body = client.post({**client.message("job"), **asked})
    assert json.loads(body.splitlines()[-1].removeprefix(b"data: "))["result"]["content"]
    assert str(working).encode() not in body


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@newest_session
def test_a_stream_of_a_dead_process_gets_its_error_elsewhere(
    server: Started, revision: str, number: signal.Signals
) -> None:
    client = WebClient(server.port, revision)
    with client.open(client.message("steps")) as response:
        last = ""
        message: dict[str, Any] = {}
        while "params" not in message:
            name, _, value = response.readline().decode().strip().partition(": ")
            last = value if name == "id" else last
            message = json.loads(value) if name == "data" and value else message
        process = int(message["params"]["data"])
        os.kill(process, number)
        begun = time.monotonic()
        try:
            body = read_elsewhere(client, last)
        finally:
            if number == signal.SIGSTOP:
                os.kill(process, signal.SIGCONT)
    assert time.monotonic() - begun < 5
    assert b"it may have been acted on" in body
    for id in range(10, 16):
        assert client.post({**client.message("pid"), "id": id})[0] == 200


def read_elsewhere(client: WebClient, last: str) -> bytes:
    """The rest of a stream by a process that serves."""
    while True:
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            client.open(None, **{"Last-Event-ID": last}) as response,
        ):
            assert response.status == 200
            return response.read()
