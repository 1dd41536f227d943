"""Several workers of one server in this process, and a client whose requests reach any of them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.asgi_client import SESSION, Http, asgi, is_reading
from kit.asgi_stream import SECONDS
from kit.requestor import Name
from mcpgen_runtime import Context, Server, SharedState, TaskRecord, TaskStore

WORKERS = 3
in_engine = pytest.mark.parametrize("kind", ["redis"])
"""Of tests whose fixture `state` is in an engine alone."""

ABLE: Mapping[str, Any] = {"elicitation": {"form": {}}, "roots": {}}
"""What clients of sessions declare."""


class Waiting:
    """A server with a tool that waits; each worker has one."""

    def __init__(self, name: str = "tester") -> None:
        self.server = Server(name, state_key=b"k" * 32, subscribe=True)
        self.began = anyio.Event()
        self.cancelled = anyio.Event()
        self.may_end = anyio.Event()
        for tool in (self.about, self.greet, self.ask_unrelated, self.logs, self.wait, self.count):
            self.server.tool()(tool)
        self.server.resource("note://{day}")(self.note)
        self.server.prompt()(self.poem)

    async def about(self, ctx: Context) -> dict[str, Any]:
        return {
            "revision": ctx.revision,
            "session": ctx.session_id,
            "info": ctx.client_info,
            "capabilities": ctx.client_capabilities,
        }

    async def greet(self, ctx: Context) -> str:
        self.began.set()
        answer = await ctx.elicit("Who?", Name)
        return f"Hello, {answer.content.name}"

    async def ask_unrelated(self, ctx: Context) -> str:
        await ctx.request_context.peer.notify("notifications/tools/list_changed")
        return "sent"

    async def logs(self, ctx: Context) -> str:
        await ctx.debug("quiet")
        await ctx.error("loud")
        return "logged"

    async def count(self, ctx: Context) -> int:
        values: list[int] = ctx.session_state(list)
        values.append(1)
        return len(values)

    async def wait(self, ctx: Context) -> str:
        self.began.set()
        try:
            await self.may_end.wait()
        except BaseException:
            self.cancelled.set()
            raise
        return "waited"

    async def poem(self) -> str:
        return "Write a poem"

    async def note(self, day: str) -> str:
        return f"sun {day}"


class Workers:
    """The workers of one server."""

    def __init__(self, any: Http, each: list[Http], servers: list[Any]) -> None:
        self.any = any
        self.each = each
        self.servers = servers

    async def open_session(
        self, revision: str, capabilities: Mapping[str, Any] | None = None
    ) -> str:
        """The id of a new session, which all clients use."""
        self.any.fields[SESSION] = None
        await self.any.initialize(revision, capabilities)
        self.use_session()
        identifier = self.any.fields[SESSION]
        assert identifier is not None
        return identifier

    def use_session(self) -> None:
        """Have the clients of each worker use the session of `any`."""
        for http in self.each:
            http.fields |= self.any.fields


@asynccontextmanager
async def run_workers(
    shared: str | SharedState, make: Callable[[], Any] = Waiting, **options: Any
) -> AsyncIterator[Workers]:
    """Workers that share a state."""
    choose = random.Random(7).choice
    servers = [make() for _ in range(WORKERS)]
    async with AsyncExitStack() as stack:
        each = [
            await stack.enter_async_context(asgi(each.server, shared=shared, **options))
            for each in servers
        ]

        async def any_of_them(scope: Any, receive: Any, send: Any) -> None:
            await choose(each).app(scope, receive, send)

        await eventually(lambda: all(is_reading(http.app) for http in each))
        any = await stack.enter_async_context(asgi(any_of_them, lifespan=False))
        yield Workers(any, each, servers)


@asynccontextmanager
async def run_session(
    shared: str | SharedState,
    revision: str,
    make: Callable[[], Any] = Waiting,
    capabilities: Mapping[str, Any] = ABLE,
    **options: Any,
) -> AsyncIterator[Workers]:
    """Workers that share a state, and whose clients use one session; see `run_workers`."""
    async with run_workers(shared, make, **options) as workers:
        await workers.open_session(revision, capabilities)
        yield workers


async def ended_task(store: TaskStore, task_id: str) -> TaskRecord:
    """The record of a task that no client asks for, once it has ended."""
    with anyio.fail_after(SECONDS):
        while True:
            record = await store.load(task_id)
            assert record is not None
            if record.is_terminal:
                return record
            await anyio.sleep(0.005)


async def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    with anyio.fail_after(SECONDS):
        while not is_so():
            await anyio.sleep(0.005)
