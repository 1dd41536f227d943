"""Clients that are killed in the middle of things: what a server held for them it lets go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from mcp_protocol.client import connect
from mcp_protocol.client_side.changes import ToolsChanged
from mcp_protocol.errors import HttpStatusError, RemoteError
from package.faults import called, check_quiet, client_of
from package.http_process import SECONDS, HttpProcess, Process, http_process
from package.http_script import SESSION, STATELESS

pytestmark = pytest.mark.anyio

CLIENT = """
import anyio, json, sys
from mcp_protocol import connect
from mcp_protocol.client import ClientHandlers

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
                    how = {"key": key}
                    tasks.start_soon(lambda: client.call_tool(name, how, on_progress=told))

anyio.run(main, *sys.argv[1:])
"""


@contextmanager
def client(server: HttpProcess, revision: str, *calls: str) -> Iterator[Process]:
    """A client in a process of its own that makes calls, each written TOOL=KEY, or listens."""
    started = Process([sys.executable, "-c", CLIENT, server.url, revision, *calls])
    try:
        started.wait_for("open")
        yield started
    finally:
        started.kill()
    started.check_quiet()


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    with http_process(keep_alive=0.1) as process:
        yield process


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


@pytest.mark.parametrize("revision", STATELESS)
async def test_calls_of_a_killed_client_are_cancelled_where_their_connection_is_all_they_have(
    revision: str, server: HttpProcess
) -> None:
    with client(server, revision, "work=streaming", "look=plain") as killed:
        await server.until("working streaming")
        await server.until("working plain")
        killed.kill()
        await server.until("cancelled streaming")
        await server.until("cancelled plain")
    async with client_of(server, revision) as another:
        assert await called(another, "add", a=1, b=2) == "3"


@pytest.mark.parametrize("revision", SESSION)
async def test_calls_of_a_killed_client_go_on_in_its_session(
    revision: str, server: HttpProcess
) -> None:
    streaming, plain = f"streaming {revision}", f"plain {revision}"
    with client(server, revision, f"work={streaming}", f"look={plain}") as killed:
        await server.until(f"working {streaming}")
        await server.until(f"working {plain}")
        killed.kill()
    async with client_of(server, revision) as another:
        assert await called(another, "add", a=1, b=2) == "3"
        for key in (streaming, plain):
            await called(another, "release", key=key)
            await server.until(f"done {key}")
            assert not server.said(f"cancelled {key}")


@pytest.mark.parametrize(
    ("revision", "limits"),
    [
        *((revision, {"streams": 1, "in_flight": 1}) for revision in STATELESS),
        (SESSION[-1], {"streams": 1, "sessions": 1}),
    ],
)
async def test_what_killed_clients_took_up_makes_room_for_others(
    revision: str, limits: Mapping[str, int]
) -> None:
    with http_process(limits=limits, keep_alive=0.1) as server:
        with client(server, revision, "listen", "work=a") as killed:
            await killed.until("listening")
            await server.until("working a")
            with pytest.raises(HttpStatusError, match="503"):
                async with connect(server.url, revision=revision):
                    raise AssertionError("it was opened")
        async with AsyncExitStack() as stack:
            another: Any = await let_in(stack, partial(connect, server.url, revision=revision))
            changes: Any = await let_in(stack, partial(another.listen, tools=True))
            await server.until("cancelled a")
            await called(another, "grow", name="more")
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
            assert "too " in str(error), error
            assert anyio.current_time() < deadline


@pytest.mark.parametrize("revision", SESSION[-1:])
async def test_a_question_to_a_killed_client_ends_with_its_session(revision: str) -> None:
    with http_process(limits={"idle": 0.2}, keep_alive=0.1) as server:
        with client(server, revision, "ask=a") as killed:
            await killed.until("asked")
        await server.until("cancelled a")
