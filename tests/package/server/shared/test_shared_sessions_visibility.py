"""Items that a session alone shows and hides, at each of the workers that share it."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import Http
from kit.wire import CHANGED, newest_session, request
from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemorySessionStore,
    Server,
    SessionRecord,
    SharedState,
)
from package.server.shared.shared_servers import WORKERS, Workers, run_session

pytestmark = [pytest.mark.processes, pytest.mark.workers]

TAGGED = [f"tagged_{number}" for number in range(6)]


def switching_server(server: Server) -> Server:
    """A server with tools that show and hide others for the session of their client."""

    @server.tool
    async def hide(names: list[str], ctx: Context) -> str:
        await ctx.disable_components(*names)
        return "hidden"

    @server.tool
    async def show(tags: list[str], ctx: Context) -> str:
        await ctx.enable_components(tags=tags)
        return "shown"

    @server.tool
    async def reset(ctx: Context) -> str:
        await ctx.reset_visibility()
        return "reset"

    for name in TAGGED:
        server.tool(name, tags=[name])(lambda: "called")
    return server


class Switching:
    """Such a server, on which another one is mounted."""

    def __init__(self) -> None:
        self.server = switching_server(Server("outer"))
        self.server.mount(switching_server(Server("inner")), prefix="in")


MAKE = Switching


async def call(http: Http, revision: str, tool: str, id: int = 1, **arguments: Any) -> Any:
    """The reply to a call."""
    params = {"name": tool, "arguments": arguments}
    return await http.post(request(revision, "tools/call", params, id=id))


async def list_tool_names(http: Http, revision: str) -> set[str]:
    """The names of the tools with a tag that a worker lists."""
    reply = await http.ask(revision, "tools/list")
    return {each["name"] for each in reply.result["tools"] if "tagged" in each["name"]}


INNER = {f"in_{name}" for name in TAGGED}
ALL = INNER | {*TAGGED}


@newest_session
async def test_each_worker_hides_what_one_has_hidden(revision: str, workers: Workers) -> None:
    for http in workers.each:
        assert await list_tool_names(http, revision) == ALL
    await call(workers.each[0], revision, "hide", names=TAGGED[:2])
    await call(workers.each[1], revision, "in_hide", names=TAGGED[1:])
    left = {*TAGGED[2:], f"in_{TAGGED[0]}"}
    for http in workers.each:
        assert await list_tool_names(http, revision) == left
        assert "error" in (await call(http, revision, TAGGED[0])).messages[-1]
        assert (await call(http, revision, TAGGED[2])).result["content"][0]["text"] == "called"
    # Of two rules for one tool, the last decides, whichever worker made it.
    await call(workers.each[2], revision, "show", tags=TAGGED[:1])
    await call(workers.each[1], revision, "hide", names=[TAGGED[0], "show"])
    await call(workers.each[0], revision, "hide", names=TAGGED[:2])
    await call(workers.each[1], revision, "show", tags=TAGGED[1:2])
    for http in workers.each:
        assert await list_tool_names(http, revision) == left
    await call(workers.each[2], revision, "reset")
    for http in workers.each:
        assert await list_tool_names(http, revision) == {*TAGGED, f"in_{TAGGED[0]}"}


class Late(MemorySessionStore):
    """A store that takes its time to store a change."""

    async def change(self, identifier: str, record: SessionRecord) -> bool:
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        return await super().change(identifier, record)


@newest_session
async def test_a_stream_elsewhere_hears_of_hidden_tools(revision: str) -> None:
    async with (
        run_session(SharedState(MemoryBus(), Late()), revision, Switching) as workers,
        workers.each[0].stream("GET") as stream,
    ):
        for number, name in enumerate(TAGGED):
            # Each worker lists what is left as soon as the client has the notification.
            left = ALL - {*TAGGED[: number + 1]}
            async with anyio.create_task_group() as tasks:
                hiding = workers.each[1 + number % 2]

                async def hide(http: Http = hiding, name: str = name) -> None:
                    await call(http, revision, "hide", names=[name])

                tasks.start_soon(hide)
                assert (await stream.message())["method"] == CHANGED["toolsListChanged"]
                assert await list_tool_names(workers.each[number % WORKERS], revision) == left
