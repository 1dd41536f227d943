"""A worker is killed or paused at each of its steps, one after the other, on a virtual clock.

A step is what others can see of a worker: an operation on the shared state, which the fault hits
before it is done or before its reply is there, and a write to a client. Between two steps nobody
can tell where a worker was. Each scenario runs again and again, with the fault at the first step
after its start, at the second one, and so on, until it ends before the fault.

A worker that is killed never goes on, its connections break, and it takes no new ones. One that is
paused goes on after its leases have run out, as if no time had passed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import pytest

from kit.asgi_client import Http, asgi, is_reading
from kit.asgi_stream import Stream
from kit.simulation import simulate
from kit.wire import INITIALIZED, cancelled_notification, initialize, request
from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemoryEventStore,
    MemorySessionStore,
    Server,
    SharedState,
    SharedStateError,
    TaskRecord,
    Tasks,
)
from package.server.shared.shared_servers import Name
from package.server.shared.test_worker_schedules import LAST, LOST, Recorded, Slow, paused_app

pytestmark = [pytest.mark.processes, pytest.mark.workers]

REVISION = "2025-11-25"
EVENTS = {"accept": "text/event-stream"}
STEP_SECONDS = 0.001
WORK_SECONDS = 0.02
PAUSE_SECONDS = 6.0
ERROR_SECONDS = 5.0
"""After a kill, for the error of a stream that is resumed."""
TAKEN_SECONDS = 4.5
"""After a kill, for a task to be taken: a lease, a second between two looks, and the steps."""
MOST_STEPS = 400

Result = TypeVar("Result")


class Broken(Exception):
    """The connection to a worker broke, or the worker took none."""


class Worker:
    """A worker, whose steps are counted.

    Attributes:
        steps: Number of steps since the scenario began.
        fault_at: The step that the fault hits; 0 for none.
        armed: The same, once the scenario has begun.
        fault: The fault.
        hit: When the fault was; `None` before it.
        is_dead: Whether it was killed.
        died: Set then.
    """

    def __init__(self) -> None:
        self.steps = self.fault_at = self.armed = 0
        self.fault: Callable[[Worker], None] = Worker.kill
        self.hit: float | None = None
        self.is_dead = False
        self.died = anyio.Event()
        self._buried = anyio.Event()
        self._paused_until = 0.0

    async def step(self) -> None:
        """Take a while; the step may be hit by the fault.

        Raises:
            SharedStateError: The worker is dead.
        """
        self.steps += 1
        if self.steps == self.fault_at:
            self.hit = anyio.current_time()
            self.fault(self)
        await anyio.sleep(max(STEP_SECONDS, self._paused_until - anyio.current_time()))
        if self.is_dead:
            await self._buried.wait()
            raise SharedStateError("the worker is dead")

    def kill(self) -> None:
        """Have it never go on."""
        self.is_dead = True
        self.died.set()

    def pause(self) -> None:
        """Have it do nothing for a while."""
        self._paused_until = anyio.current_time() + PAUSE_SECONDS

    def bury(self) -> None:
        """Let what was killed end, without an effect."""
        self._buried.set()


class Site:
    """Three workers, and a client that goes from one that is dead to the next one.

    Attributes:
        workers: The workers.
        each: A client of each, in one session.
        tasks: The records of tasks.
    """

    def __init__(self) -> None:
        self.workers = [Worker() for _ in range(3)]
        self.each: list[Http] = []
        self.tasks = Recorded()
        self.runs: list[str] = []
        self._ids = iter(range(1, 1000))

    @property
    def hit(self) -> float | None:
        """When the fault was."""
        return next((each.hit for each in self.workers if each.hit is not None), None)

    def witnesses(self) -> list[Http]:
        """The clients of workers that are not dead, and that no fault hits any more."""
        for worker in self.workers:
            worker.fault_at = 0
        pairs = zip(self.each, self.workers, strict=True)
        return [http for http, worker in pairs if not worker.is_dead]

    def server(self) -> Server:
        """The server of one worker."""
        server = Server("tester", subscribe=True)
        tasks = Tasks(server)

        @server.tool
        async def add(a: int, b: int) -> int:
            return a + b

        @server.tool
        async def count(most: int, ctx: Context) -> str:
            for number in range(most):
                await ctx.info(number)
                await anyio.sleep(WORK_SECONDS)
            return "over"

        @server.tool
        async def greet(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            return f"Hello, {answer.content.name}" if answer.content else "Hello"

        async def work(ctx: Context) -> str:
            self.runs.append(tasks._worker)
            await tasks.report(ctx, tasks._worker)
            await anyio.sleep(WORK_SECONDS)
            return tasks._worker

        for restart in "again", "fail":
            server.tool(restart, runner=tasks.runner(restart=restart))(work)
        return server

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run the workers."""
        parts: dict[str, Any] = {
            "bus": MemoryBus(),
            "sessions": MemorySessionStore(),
            "events": MemoryEventStore(),
            "tasks": self.tasks,
        }
        async with AsyncExitStack() as stack:
            for worker in self.workers:
                slow: dict[str, Any] = {
                    name: Slow(part, worker, lambda: False) for name, part in parts.items()
                }
                app = self.server().asgi(shared=SharedState(**slow))
                self.each.append(await stack.enter_async_context(asgi(paused_app(app, worker))))
                while not is_reading(app):
                    await anyio.sleep(STEP_SECONDS)
            try:
                yield
            finally:
                for worker in self.workers:
                    worker.bury()

    async def initialize(self) -> None:
        """Open a session that all clients use."""
        await self.each[2].initialize(REVISION, {"elicitation": {"form": {}}})
        self.share(self.each[2])

    def share(self, opened: Http) -> None:
        """Have all clients use the session of one."""
        for http in self.each:
            http.fields |= opened.fields

    async def at(self, number: int, use: Callable[[Http], Awaitable[Result]]) -> Result:
        """Use a worker.

        Raises:
            Broken: It is dead, or dies meanwhile, or does not answer.
        """
        worker = self.workers[number]
        results: list[Result] = []
        if not worker.is_dead:
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    await worker.died.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                with suppress(TimeoutError, EOFError, ConnectionResetError):
                    results.append(await use(self.each[number]))
                tasks.cancel_scope.cancel()
        if not results:
            raise Broken
        return results[0]

    async def any_of(
        self, numbers: tuple[int, ...], use: Callable[[Http], Awaitable[Result]]
    ) -> Result | None:
        """Use the first of some workers that does not break; `None` if all do."""
        for number in numbers:
            with suppress(Broken):
                return await self.at(number, use)
        return None

    def message(self, method: str, params: Any) -> Any:
        """A request with an id of its own."""
        return request(REVISION, method, params, id=next(self._ids))

    def call(self, tool: str, **arguments: Any) -> Any:
        """A call of a tool."""
        return self.message("tools/call", {"name": tool, "arguments": arguments})

    async def expect_alive(self) -> None:
        """See that the session lives at each worker that does."""
        for http in self.witnesses():
            reply = await http.post(self.call("add", a=1, b=2))
            assert reply.status == 200, reply.body
            assert reply.result["content"][0]["text"] == "3"


class Reader:
    """A client that reads one stream, and comes back to it at other workers.

    Attributes:
        messages: The messages that came.
        first: The id of the first event.
        last: The id of the last event.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.messages: list[Any] = []
        self.first = self.last = ""

    async def read(self, stream: Stream, most: int) -> None:
        """Read until a response, or some messages more."""
        assert stream.status == 200, (stream.status, stream.raw)
        end = len(self.messages) + most
        while len(self.messages) < end and not self.is_over:
            event = await stream.event()
            self.last = event.id or self.last
            self.first = self.first or self.last
            if event.data:
                self.messages.append(json.loads(event.data))

    @property
    def is_over(self) -> bool:
        """Whether there is a response."""
        return bool(self.messages) and "method" not in self.messages[-1]

    async def open(self, number: int, message: Any, most: int = 1000) -> None:
        """Send a request to a worker, and read."""

        async def use(http: Http) -> None:
            async with http.stream("POST", message, fields=EVENTS) as stream:
                await self.read(stream, most)

        await self.site.at(number, use)

    async def resume(self, *numbers: int, most: int = 1000) -> None:
        """Come back until there is a response, to one worker after the other."""

        async def use(http: Http) -> None:
            async with http.stream("GET", fields=EVENTS | {LAST: self.last}) as stream:
                await self.read(stream, most)

        end = len(self.messages) + most
        while not self.is_over and len(self.messages) < end:
            await self.site.any_of(numbers, use)

    async def expect_same(self) -> None:
        """See that a client which reads anew gets the same."""
        for http in self.site.witnesses():
            again = None
            while again is None:
                with suppress(ConnectionResetError):
                    again = await http.request("GET", None, **EVENTS, **{LAST: self.first})
            assert again.status == 200
            assert [each for each in again.messages if each] == self.messages


async def call(site: Site) -> None:
    """A call that is answered by JSON."""
    await site.initialize()
    start(site)
    message = site.call("add", a=2, b=3)
    try:
        reply = await site.at(0, lambda http: http.post(message, accept="application/json"))
    except Broken:
        return
    assert reply.status == 200
    assert reply.result["content"][0]["text"] == "5"


async def open_session(site: Site) -> None:
    """A handshake: a session whose id a client has lives."""
    start(site)
    hello = initialize(REVISION, {"elicitation": {"form": {}}})
    reply = await site.any_of((0, 1), lambda http: http.post(hello))
    assert reply is not None
    assert reply.status == 200
    fields = {"mcp-session-id": reply.fields["mcp-session-id"], "mcp-protocol-version": REVISION}
    for http in site.each:
        http.fields |= fields
    confirmed = await site.any_of((0, 1), lambda http: http.post(INITIALIZED))
    assert confirmed is not None
    assert confirmed.status == 202


async def call_over_sse(site: Site) -> None:
    """A call that sends messages; its client comes back at once, to any worker."""
    await site.initialize()
    start(site)
    reader = Reader(site)
    try:
        await reader.open(0, site.call("count", most=3))
    except Broken:
        if not reader.last:
            return  # nobody knows what became of it
    await reader.resume(1, 2)
    await expect_counted(site, reader)


async def resumed_stream(site: Site) -> None:
    """A call whose client has left, and reads by another worker."""
    await site.initialize()
    start(site)
    reader = Reader(site)
    try:
        await reader.open(0, site.call("count", most=4), most=1)
    except Broken:
        if not reader.last:
            return
    await reader.resume(1, 2, most=1)
    await reader.resume(2, 1, most=1)
    await reader.resume(1, 2)
    await expect_counted(site, reader, most=4)


async def expect_counted(site: Site, reader: Reader, most: int = 3) -> None:
    """See that a stream has all messages up to its end, which comes in time, for all readers."""
    *logged, response = reader.messages
    assert [each["params"]["data"] for each in logged] == list(range(len(logged)))
    if "error" in response:
        assert LOST in response["error"]["message"]
        assert site.hit is not None
        if any(worker.is_dead for worker in site.workers):
            assert anyio.current_time() - site.hit <= ERROR_SECONDS
    else:
        assert len(logged) == most
    await reader.expect_same()


async def question(site: Site) -> None:
    """A call that asks its client, who answers by another worker."""
    await site.initialize()
    start(site)
    reader = Reader(site)
    try:
        await reader.open(0, site.call("greet"), most=1)
    except Broken:
        if not reader.last:
            return
    if not reader.messages:
        await reader.resume(1, 2, most=1)
    if not reader.is_over:
        [asked] = reader.messages
        answer = {"action": "accept", "content": {"name": "Ada"}}
        message = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
        reply = await site.any_of((1, 2), lambda http: http.post(message))
        assert reply is None or reply.status == 202
        await reader.resume(2, 1)
    response = reader.messages[-1]
    if "error" in response:
        assert LOST in response["error"]["message"]
        assert site.hit is not None
    else:
        assert response["result"]["content"][0]["text"] == "Hello, Ada"


async def cancelled_call(site: Site) -> None:
    """A call that its client cancels by another worker: its stream ends, without response."""
    await site.initialize()
    start(site)
    reader = Reader(site)
    message = site.call("greet")
    try:
        await reader.open(0, message, most=1)
    except Broken:
        return
    cancelled = cancelled_notification(message["id"])
    reply = await site.any_of((1, 2), lambda http: http.post(cancelled))
    assert reply is None or reply.status == 202


async def task(site: Site, tool: str) -> None:
    """A task that nobody asks for until it has ended, by one worker or another."""
    await site.initialize()
    start(site)
    params = {"name": tool, "arguments": {}, "task": {}}
    message = site.message("tools/call", params)
    task_id = ""
    try:
        reply = await site.at(0, lambda http: http.post(message))
        task_id = reply.result["task"]["taskId"]
    except Broken:
        pass
    for stored in list(site.tasks._records):
        with anyio.fail_after(30):
            await site.tasks.ended(stored)
    if task_id:
        for http in site.witnesses():
            reply = await http.post(site.message("tasks/get", {"taskId": task_id}))
            assert reply.result["status"] in ("completed", "failed")
            expect_ended(site, task_id, reply.result["status"], tool)
    assert all(late <= TAKEN_SECONDS for late in site.tasks.lost)


def expect_ended(site: Site, task_id: str, status: str, tool: str) -> None:
    """See that a task has ended once, and that no worker wrote after another one had it."""
    own: list[TaskRecord] = [each for each in site.tasks.written if each.task_id == task_id]
    assert [record.is_terminal for record in own].count(True) == 1
    assert own[-1].status == status
    fences = [record.fence for record in own]
    assert fences == sorted(fences)
    assert all(fence == stored for fence, stored in site.tasks.renewed)
    if status == "completed":
        result = own[-1].result or {}
        assert result["content"][0]["text"] == own[-1].worker
    else:
        assert tool == "fail"
        assert own[-1].fence > 1
    assert len(site.runs) == 1 or tool == "again"


SCENARIOS = (
    open_session,
    call,
    call_over_sse,
    resumed_stream,
    question,
    cancelled_call,
    partial(task, tool="fail"),
    partial(task, tool="again"),
)


def start(site: Site) -> None:
    """Count the steps from now on."""
    for worker in site.workers:
        worker.steps = 0
        worker.fault_at, worker.armed = worker.armed, 0


@pytest.mark.parametrize("fault", [Worker.kill, Worker.pause])
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_at_any_step_breaks_no_promise(
    scenario: Callable[[Site], Awaitable[None]], victim: int, fault: Callable[[Worker], None]
) -> None:
    for number in range(1, MOST_STEPS):
        sites: list[Site] = []

        async def main(number: int = number, sites: list[Site] = sites) -> None:
            site = Site()
            sites.append(site)
            async with site.open():
                worker = site.workers[victim]
                worker.armed, worker.fault = number, fault
                await scenario(site)
                await site.expect_alive()

        try:
            simulate("asyncio", number, main)
        except BaseException as error:
            error.add_note(f"the fault is at step {number}")
            raise
        [site] = sites
        if site.hit is None:
            assert number > 1 or victim == 1  # the other worker may have nothing to do
            return
    raise AssertionError(f"expected a scenario of fewer than {MOST_STEPS} steps")
