"""Processes that are killed, or stopped, at each command that a request sends to the engine."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import pytest

from kit.engine import Engine
from kit.raw_http import SECONDS
from kit.wire import SESSIONS
from package.server.shared.test_shared_processes import Client
from package.server.shared.victims import Victim, end_of, victims

pytestmark = [pytest.mark.processes, pytest.mark.workers]

REVISION = SESSIONS[-1]
SILENT_SECONDS = 1.5
"""Seconds that a client waits for a process before it asks another one."""
ERROR_SECONDS = 5.0
BROKEN = (OSError, http.client.HTTPException)

SERVER = """
    import os
    import anyio
    from mcpgen_runtime import Context, Server, Tasks

    server = Server("victim")
    tasks = Tasks(server)

    @server.tool
    def pid() -> str:
        return str(os.getpid())

    @server.tool
    async def count(ctx: Context) -> str:
        for number in range(2):
            await ctx.info(number)
        return "over"

    @server.tool
    async def count_slowly(ctx: Context) -> str:
        await ctx.info(0)
        await anyio.sleep(1 / 3)
        await ctx.info(1)
        return "over"

    async def work(ctx: Context) -> str:
        await tasks.report(ctx, "working")
        return tasks._worker

    for restart in "fail", "again":
        server.tool(restart, runner=tasks.runner(restart=restart))(work)
"""

Check: TypeAlias = Callable[[], None]
"""Looks once more, when the process that was stopped has gone on."""


class Reader:
    """The events of one stream, as a client gets them at one process or another.

    Attributes:
        messages: The messages that came.
        first: The id of the first event.
        last: The id of the last event.
    """

    def __init__(self, client: Client) -> None:
        self.messages: list[Any] = []
        self.first = self.last = ""
        self._client = client

    @property
    def is_over(self) -> bool:
        """Whether there is a response."""
        return bool(self.messages) and "method" not in self.messages[-1]

    def read(self, message: Any, last: str = "", most: int = 100) -> None:
        """Read a stream until its end, or until it breaks, or until it had some messages."""
        fields = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        with suppress(*BROKEN), self._client.open(message, **fields) as response:
            assert response.status == 200, response.read()
            for line in response:
                name, _, value = line.decode().strip().partition(": ")
                if name == "id":
                    self.last = value
                    self.first = self.first or value
                elif name == "data" and value:
                    self.messages.append(json.loads(value))
                    if len(self.messages) == most:
                        return


def call(client: Client, other: int, engine: Engine) -> Check | None:
    """A call that is answered by JSON."""
    with suppress(*BROKEN):
        assert client.call("pid")[0] == 200
    return None


def call_over_sse(client: Client, other: int, engine: Engine) -> Check | None:
    """A call that sends messages; its client comes back to the other process."""
    reader = Reader(client)
    reader.read(client.message("count"))
    client.port = other
    return None if not reader.last else rest_of(reader, client)  # or nobody knows


def resumed_stream(client: Client, other: int, engine: Engine) -> Check | None:
    """A stream of another process, which its client reads by the one that is hit."""
    reader = Reader(client)
    own, client.port = client.port, other
    reader.read(client.message("count_slowly"), most=1)
    client.port = own
    reader.read(None, reader.last)
    client.port = other
    return rest_of(reader, client)


def rest_of(reader: Reader, client: Client) -> Check:
    """See that a stream is whole, however its client reads it."""
    client.timeout = SECONDS
    begun = time.monotonic()
    while not reader.is_over:
        reader.read(None, reader.last)
        assert time.monotonic() - begun < ERROR_SECONDS
    *logged, response = reader.messages
    assert [each["params"]["data"] for each in logged] == list(range(len(logged)))
    if "error" in response:
        assert "it may have been acted on" in response["error"]["message"]
    else:
        assert len(logged) == 2

    def check() -> None:
        again = Reader(client)
        again.read(None, reader.first)
        assert again.messages == reader.messages

    check()
    return check


def task(tool: str, client: Client, other: int, engine: Engine) -> Check | None:
    """A task that nobody asks for."""
    message = client.message(tool)
    message["params"]["task"] = {}
    try:
        _, _, body = client.post(message)
    except BROKEN:
        return None  # the records of all tasks are looked at in the end
    task_id = json.loads(body)["result"]["task"]["taskId"]
    ended = end_of(engine, task_id)
    assert ended["status"] == "completed" or tool == "fail"

    def check() -> None:
        assert end_of(engine, task_id) == ended
        client.port = other
        params = {"taskId": task_id}
        _, _, body = client.post({**client.message(tool), "method": "tasks/get", "params": params})
        assert json.loads(body)["result"]["status"] == ended["status"]

    check()
    return check


Scenario: TypeAlias = Callable[[Client, int, Engine], Check | None]

SCENARIOS: dict[str, Scenario] = {
    "call": call,
    "call-over-sse": call_over_sse,
    "resumed-stream": resumed_stream,
    "task": partial(task, "fail"),
    "task-again": partial(task, "again"),
}


async def run(scenario: Scenario, victim: Victim, other: Victim, engine: Engine) -> None:
    """Run a scenario with a session of its own, which lives on."""

    def begin() -> Client:
        client = Client(other.port, REVISION)
        client.port, client.timeout = victim.port, SILENT_SECONDS
        return client

    client = await anyio.to_thread.run_sync(begin)
    victim.arm_now()
    check = await anyio.to_thread.run_sync(scenario, client, other.port, engine)
    client.timeout = SECONDS
    if victim.hit.is_set() and victim.number == signal.SIGSTOP:
        await victim.went_on.wait()
        client.port = victim.port
        for _ in range(2):  # the second one comes after what the first one made it do
            assert (await anyio.to_thread.run_sync(client.call, "pid"))[0] == 200
        client.port = other.port
        if check is not None:
            await anyio.to_thread.run_sync(check)
    client.port = other.port
    assert (await anyio.to_thread.run_sync(client.call, "pid"))[0] == 200


FAULTS = [
    (number, is_after)
    for number in (signal.SIGKILL, signal.SIGSTOP)
    for is_after in (False, True)  # the engine has not executed the command, or has
]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_process_may_be_hit_at_any_command(name: str, engine: Engine) -> None:
    scenario = SCENARIOS[name]
    folder = Path(tempfile.mkdtemp(prefix="victims"))  # short, as paths of sockets are
    anyio.to_thread.current_default_thread_limiter().total_tokens = 100
    socket = engine.url.removeprefix("unix://")
    try:
        async with victims(folder, SERVER, socket) as begin:
            untouched, other = await begin(), await begin()
            await untouched.serving()
            await other.serving()
            await run(scenario, untouched, other, engine)
            assert untouched.commands > 0
            hit: list[Victim] = []
            for at in range(1, untouched.commands + 1):
                for number, is_after in FAULTS:
                    victim = await begin()
                    victim.arm(at, number, is_after=is_after)
                    hit.append(victim)
            for victim in hit:
                await victim.serving()
            async with anyio.create_task_group() as tasks:
                for victim in hit:
                    tasks.start_soon(run, scenario, victim, other, engine)
            # A stream that is followed takes more commands or fewer, as its events come.
            assert all(each.hit.is_set() or each.commands < each.at for each in hit)
            assert hit[0].hit.is_set()
            keys = engine.ask("KEYS", "mcp:{victim}:task:*").split("\r\n")
            for key in keys:
                if key.startswith("mcp:"):
                    await anyio.to_thread.run_sync(end_of, engine, key.rpartition(":")[2])
    finally:
        shutil.rmtree(folder)
