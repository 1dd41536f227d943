"""Workers that share a state under many schedules, on a virtual clock."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi
from kit.requestor import Name
from kit.simulation import simulate
from kit.wire import request
from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemoryEventStore,
    MemorySessionStore,
    MemoryTaskStore,
    Server,
    SharedState,
    SharedStateError,
    TaskRecord,
    Tasks,
)

pytestmark = [pytest.mark.processes, pytest.mark.workers]

REVISION = "2025-11-25"
LAST = "last-event-id"
LOST = "may have been acted on"
LOST_TASK = f"the process that ran the task is gone; it {LOST}"
RUNS = 4
DELAYS = (0.0, 0.0, 0.001, 0.05, 0.25)
FOUND_SECONDS = 1.0 + 3 * max(DELAYS)
"""From the end of a lease to its claim: a second between two looks, then a look and the claim."""


class Worker:
    """One of the workers: how slow it is, whether it is paused, and its id in records of tasks."""

    def __init__(self, random: Random) -> None:
        self.longest = 0.0
        self.id = ""
        self._random = random
        self._runs = anyio.Event()
        self._runs.set()

    async def step(self) -> None:
        """Take a while, and do nothing while paused."""
        await anyio.sleep(self._random.choice(DELAYS))
        await self._runs.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause it while the block runs."""
        self._runs = anyio.Event()
        try:
            yield
        finally:
            self._runs.set()


class Slow:
    """A part of a state as one worker reaches it: each operation is slow, there and back."""

    def __init__(self, part: Any, worker: Any, fails: Callable[[], bool]) -> None:
        self._part = part
        self._worker = worker
        self._fails = fails

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._part, name)

        async def slowed(*arguments: Any, **more: Any) -> Any:
            match name, arguments:
                case ("create", (TaskRecord(worker=id),)) | ("claim", (_, id)):
                    self._worker.id = id
            await self._worker.step()
            self._fail()
            result = await method(*arguments, **more)
            await self._worker.step()
            self._fail()
            return result

        return slowed

    def _fail(self) -> None:
        if self._fails():
            raise SharedStateError("the engine can't be reached")


class Recorded(MemoryTaskStore):
    """A store of tasks that records all versions."""

    def __init__(self) -> None:
        super().__init__(clock=anyio.current_time)
        self.written: list[TaskRecord] = []
        self.renewed: list[tuple[int, int]] = []
        self.lost: list[float] = []

    async def renew(self, record: TaskRecord) -> int | None:
        version = await super().renew(record)
        stored = await self.load(record.task_id)
        if version is not None and stored is not None:
            self.renewed.append((record.fence, stored.fence))
        return version

    async def ended(self, task_id: str) -> None:
        """Wait until a task has ended."""
        while (record := await self.load(task_id)) is not None and not record.is_terminal:
            await anyio.sleep(max(DELAYS))

    async def change(self, record: TaskRecord) -> bool:
        is_stored = await super().change(record)
        if is_stored:
            self.written.append(record)
        return is_stored

    async def claim(self, task_id: str, worker: str) -> TaskRecord | None:
        lease_end = self._leases.get(task_id, 0.0)
        record = await super().claim(task_id, worker)
        if record is not None:
            self.written.append(record)
            self.lost.append(anyio.current_time() - lease_end)
        return record


class World:
    """Three workers, and clients of one session, by a schedule."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.workers = [Worker(self.random) for _ in range(3)]
        self.tasks = Recorded()
        self.each: list[Http] = []
        self.begun: list[str] = []
        self.ids = iter(range(1, 1000))
        self.failing = 0.0
        self.failing_until = 0.0
        self.fails_at_times = self.random.random() < 0.5
        self.restarts = self.random.random() < 0.5

    def fails(self) -> bool:
        """Whether an operation fails; those on events do not, since some would have no id."""
        return anyio.current_time() < self.failing_until or self.random.random() < self.failing

    @property
    def loses_leases(self) -> bool:
        """Whether a lease may run out: a worker is paused for long, or the engine fails too."""
        longest = max(worker.longest for worker in self.workers)
        return longest > 1.0 or (self.fails_at_times and longest > 0.0)

    def server(self, worker: Worker) -> Server:
        """The server of one worker."""
        server = Server("tester")
        tasks = Tasks(server)

        @server.tool
        async def count(most: int, ctx: Context) -> str:
            for number in range(most):
                await anyio.sleep(self.random.choice((0.0, 0.1, 2.0)))
                await ctx.info(number)
            return "over"

        @server.tool
        async def greet(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            return f"Hello, {answer.content.name}" if answer.content else "Hello"

        @server.tool(runner=tasks.runner(restart="again" if self.restarts else "fail"))
        async def work(ctx: Context) -> str:
            run = worker.id
            self.begun.append(run)
            for _ in range(2):
                await anyio.sleep(self.random.choice((0.0, 0.5, 2.0)))
                with suppress(SharedStateError):
                    await tasks.report(ctx, run)
            if self.fails_at_times:  # for less than a lease
                self.failing_until = anyio.current_time() + self.random.choice((0.0, 0.3))
            return run

        return server

    async def run(self) -> None:
        """Open a session; call, resume, pause and look at tasks."""
        shared: dict[str, Any] = {
            "bus": MemoryBus(),
            "sessions": MemorySessionStore(),
            "events": MemoryEventStore(),
            "tasks": self.tasks,
        }
        async with AsyncExitStack() as stack:
            for worker in self.workers:
                slow: dict[str, Any] = {
                    name: Slow(part, worker, self.fails if name != "events" else bool)
                    for name, part in shared.items()
                }
                app = self.server(worker).asgi(shared=SharedState(**slow))
                self.each.append(await stack.enter_async_context(asgi(paused_app(app, worker))))
            await self.each[0].initialize(REVISION, {"elicitation": {"form": {}}})
            for http in self.each:
                http.fields |= self.each[0].fields
            self.failing = 0.03 if self.fails_at_times else 0.0
            async with anyio.create_task_group() as tasks:
                for _ in range(self.random.choice((1, 2))):
                    tasks.start_soon(self.call)
                tasks.start_soon(self.use_task)
                tasks.start_soon(self.pause)
            self.failing = 0.0

    async def pause(self) -> None:
        """Pause workers, some for longer than their leases last."""
        for _ in range(self.random.choice((0, 1, 2))):
            await anyio.sleep(self.random.uniform(0.0, 3.0))
            worker, seconds = self.random.choice(self.workers), self.random.choice((0.9, 5.0, 9.0))
            worker.longest = max(worker.longest, seconds)
            with worker.paused():
                await anyio.sleep(seconds)

    async def call(self) -> None:
        """Call a tool, come back to its stream until there is a response, and read it once more."""
        most = self.random.choice((0, 1, 3))
        is_asked = self.random.random() < 0.3
        arguments: Any = {"name": "count", "arguments": {"most": most}}
        if is_asked:
            arguments = {"name": "greet", "arguments": {}}
        fields = {"accept": "text/event-stream"}
        first = last = ""
        got: list[Any] = []
        message: Any = request(REVISION, "tools/call", arguments, id=next(self.ids))
        while not got or "method" in got[-1]:
            if got and "id" in got[-1]:  # a question: answered until its worker has the answer
                accepted = {"action": "accept", "content": {"name": "Ada"}}
                reply = {"jsonrpc": "2.0", "id": got[-1]["id"], "result": accepted}
                await self.answer("POST", reply, {})
            http = self.random.choice(self.each)
            method, body = ("GET", None) if last else ("POST", message)
            own = {**fields, LAST: last} if last else fields
            try:
                async with http.stream(method, body, fields=own) as stream:
                    if stream.status == 503:
                        continue
                    assert stream.status == 200, (stream.status, stream.raw)
                    for _ in range(self.random.choice((1, 2, 50))):
                        event = await stream.event()
                        last = event.id or last
                        first = first or last
                        if event.data:
                            got.append(json.loads(event.data))
                            if "id" in got[-1]:
                                break
            except (TimeoutError, EOFError, ConnectionResetError):
                if not last:
                    return  # nobody knows what became of it
        *before, response = got
        logged = [each for each in before if "id" not in each]
        assert [each["params"]["data"] for each in logged] == list(range(len(logged)))
        if "error" in response:
            assert LOST in response["error"]["message"]
            assert self.fails_at_times or self.loses_leases
        elif is_asked:
            assert response["result"]["content"][0]["text"] == "Hello, Ada"
        else:
            assert len(logged) == most
        again = None
        while again is None:
            again = await self.answer("GET", None, {**fields, LAST: first})
        assert again.status == 200
        assert [each for each in again.messages if each] == got

    async def use_task(self) -> None:
        """Begin a task, look at it, perhaps cancel it, and compare what all workers say of it."""
        call = {"name": "work", "arguments": {}, "task": {}}
        created = await self.ask("tools/call", call)
        if created is None:
            return
        task_id = created["result"]["task"]["taskId"]
        is_cancelled = self.random.random() < 0.3
        if is_cancelled:
            await anyio.sleep(self.random.uniform(0.0, 3.0))
            await self.ask("tasks/cancel", {"taskId": task_id})
        if self.random.random() < 0.5:
            await self.tasks.ended(task_id)  # and nobody asks for it
        while await self.ask("tasks/result", {"taskId": task_id}) is None:
            pass  # another worker is asked
        seen = [await self.ask_until(http, "tasks/get", task_id) for http in self.each]
        statuses = {each["result"]["status"] for each in seen}
        assert len(statuses) == 1, statuses
        [status] = statuses
        own = [record for record in self.tasks.written if record.task_id == task_id]
        assert [record.is_terminal for record in own].count(True) == 1
        assert own[-1].status == status
        fences = [record.fence for record in own]
        assert fences == sorted(fences)
        assert {record.version for record in own} == {*range(2, len(own) + 2)}
        # No run writes after another worker has claimed the task.
        assert all(fence == stored for fence, stored in self.tasks.renewed)
        assert self.fails_at_times or all(late <= FOUND_SECONDS for late in self.tasks.lost)
        said = [after for before, after in pairwise(own) if after.message != before.message]
        assert all(record.message in (None, LOST_TASK, record.worker) for record in said)
        if status == "completed":
            result = own[-1].result or {}
            assert result["content"][0]["text"] == own[-1].worker
        elif status == "failed":
            assert self.loses_leases
            assert own[-1].fence > (RUNS if self.restarts else 1)
        else:
            assert is_cancelled
        assert len(self.begun) == 1 or self.restarts
        assert len(self.begun) == 1 or self.loses_leases

    async def ask_until(self, http: Http, method: str, task_id: str) -> Any:
        """The response of one worker, however long it is paused."""
        while True:
            response = await self.ask(method, {"taskId": task_id}, http)
            if response is not None:
                return response

    async def ask(self, method: str, params: Any, http: Http | None = None) -> Any:
        """The response to a request, at a random worker; `None` if there is none in time."""
        message = request(REVISION, method, params, id=next(self.ids))
        reply = await self.answer("POST", message, {}, http)
        if reply is None:
            return None
        error = reply.messages[-1].get("error", {"code": 0, "message": ""})
        is_failure = error["code"] == -32603 and LOST not in error["message"]
        return None if is_failure else reply.messages[-1]

    async def answer(self, method: str, message: Any, fields: Any, http: Http | None = None) -> Any:
        """The reply to a request, at a random worker; `None` if there is none in time."""
        try:
            chosen = http or self.random.choice(self.each)
            reply = await chosen.request(method, message, **fields)
        except (TimeoutError, ConnectionResetError):
            return None
        assert reply.status in (200, 202, 503), (reply.status, reply.body)
        return None if reply.status == 503 else reply


def paused_app(app: Any, worker: Any) -> Any:
    """An application whose writes wait while its worker is paused."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        is_given_up = False

        async def send_later(message: Any) -> None:
            nonlocal is_given_up
            if scope["type"] == "http":
                is_given_up = True
                await worker.step()
                is_given_up = False
            await send(message)

        await app(scope, receive, send_later)
        if is_given_up:
            raise ConnectionResetError("the application has given up a write")

    return call


PARTS = 4
"""Tests that divide the schedules among themselves."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_loses_or_repeats_anything(part: int) -> None:
    first, dash, last = os.environ.get("MCP_SCHEDULES", "100").rpartition("-")
    for number in range(int(first or 0) + part, int(last) + bool(dash), PARTS):

        async def main(number: int = number) -> None:
            await World(number).run()

        try:
            simulate("asyncio", number, main)
        except BaseException as error:
            error.add_note(f"this is MCP_SCHEDULES={number}-{number}")
            raise
