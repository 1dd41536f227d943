"""Clients in processes that are killed, and many clients at once: what they held is let go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from kit.faults import ONE_OF_EACH, call_text, client_of
from kit.http_process import SECONDS, HttpProcess, Process, http_process
from kit.wire import PER_REQUEST, SESSIONS, SSE_ONLY
from mcpgen_runtime import HttpStatusError, RemoteError, Timeouts, ToolsChanged, connect

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.usefixtures("quiet")]

CLIENT = """
import anyio, sys
from functools import partial
from mcpgen_runtime import connect
from mcpgen_runtime.client.async_client import ClientHandlers

def say(*words):
    print(*words, file=sys.stderr, flush=True)

class Silent(ClientHandlers):
    async def elicit(self, params, ctx):
        say("asked")
        await anyio.sleep_forever()

async def hear(client):
    async with client.listen(tools=True) as changes:
        say("listening")
        async for change in changes:
            say(change)

async def main(url, revision, *calls):
    async with connect(url, handlers=Silent(), revision=revision) as client:
        say("open")
        async with anyio.create_task_group() as tasks:
            for call in calls:
                name, _, key = call.partition("=")
                if name == "listen":
                    tasks.start_soon(hear, client)
                else:
                    told = lambda *report: say("progress")
                    call = partial(client.call_tool, name, {"key": key}, on_progress=told)
                    tasks.start_soon(call)

anyio.run(main, *sys.argv[1:])
"""


@contextmanager
def client(server: HttpProcess, revision: str, *calls: str) -> Iterator[Process]:
    """A client in a process of its own that makes calls, each written TOOL=KEY, or listens."""
    url = server.sse_url if revision in SSE_ONLY else server.url
    started = Process([sys.executable, "-c", CLIENT, url, revision, *calls])
    try:
        started.wait_for("open")
        yield started
    finally:
        started.kill()
    started.check_quiet()


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    with http_process(keep_alive=0.1, sse_path="/sse") as process:
        yield process


@pytest.mark.parametrize("revision", [*SSE_ONLY, *PER_REQUEST])
async def test_calls_of_a_killed_client_are_cancelled_without_streamable_sessions(
    revision: str, server: HttpProcess, key: str
) -> None:
    keys = f"streaming {key}", f"plain {key}"
    calls = ("listen", f"work={keys[0]}", f"look={keys[1]}")
    with client(server, revision, *calls[int(revision in PER_REQUEST) :]) as killed:
        await killed.until("progress" if revision in PER_REQUEST else "listening")
        for each in keys:
            await server.until(f"working {each}")
        killed.kill()
        for each in keys:
            await server.until(f"cancelled {each}")
    url = server.sse_url if revision in SSE_ONLY else server.url
    async with client_of(server, revision, url=url) as another:
        assert await call_text(another, "add", a=1, b=2) == "3"


AT_ONCE = Timeouts(retries=())
"""A client that gives up at the first refusal."""


@pytest.mark.parametrize(
    ("revision", "limits"),
    [
        *((revision, {"streams": 1, "in_flight": 1}) for revision in PER_REQUEST),
        (SESSIONS[-1], {"streams": 1, "sessions": 1}),
    ],
)
async def test_resources_of_killed_clients_are_released(
    revision: str, limits: Mapping[str, int]
) -> None:
    with http_process(limits=limits, keep_alive=0.1) as server:
        with client(server, revision, "listen", "work=a") as killed:
            await killed.until("listening")
            await server.until("working a")
            with pytest.raises(HttpStatusError, match="503"):
                async with connect(server.url, revision=revision, timeouts=AT_ONCE):
                    raise AssertionError("it was opened")
        async with AsyncExitStack() as stack:
            opening = partial(connect, server.url, revision=revision, timeouts=AT_ONCE)
            another: Any = await let_in(stack, opening)
            changes: Any = await let_in(stack, partial(another.listen, tools=True))
            await server.until("cancelled a")
            await call_text(another, "grow", name="more")
            with anyio.fail_after(SECONDS):
                assert await anext(changes) == ToolsChanged()


async def let_in(
    stack: AsyncExitStack, opening: Callable[[], AbstractAsyncContextManager[object]]
) -> object:
    """Open something of a server that is full, as soon as it is that no more."""
    deadline = anyio.current_time() + SECONDS
    while True:
        try:
            return await stack.enter_async_context(opening())
        except (HttpStatusError, RemoteError) as error:
            if "too " not in str(error) or anyio.current_time() > deadline:
                raise


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_fifty_clients_open_call_and_close_at_once(revision: str) -> None:
    with http_process(limits={"sessions": 50}) as server:
        answers: list[str] = []

        async def visit(number: int) -> None:
            async with (
                connect(server.url, revision=revision) as client,
                client.listen(tools=True),
            ):
                answers.append(await call_text(client, "add", a=number, b=0))

        for _ in range(2):  # the second time there is no room for what the first left behind
            with anyio.fail_after(3 * SECONDS):
                async with anyio.create_task_group() as tasks:
                    for number in range(50):
                        tasks.start_soon(visit, number)
        assert sorted(map(int, answers)) == sorted([*range(50)] * 2)
