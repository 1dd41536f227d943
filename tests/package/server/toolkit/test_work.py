"""Work that the toolkit does once: one encoding of a list, few frames for a call."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from types import FrameType
from typing import Any

import pytest
from msgspec import Raw

from kit.wire import ALL, speaking_to
from mcpgen_runtime.runtime.request_context import RequestContext
from mcpgen_runtime.server.chosen import Context, Server

every = pytest.mark.parametrize("revision", ALL)


class Recorder(Server):
    """A server that keeps the results of its handlers."""

    def __init__(self, page_size: int | None = None) -> None:
        super().__init__("recorder", page_size=page_size)
        self.results: list[Any] = []

    def handle(self, ctx: RequestContext) -> Coroutine[Any, Any, Any]:
        return self._recorded(super().handle(ctx))

    async def _recorded(self, handler: Coroutine[Any, Any, Any]) -> Any:
        self.results.append(await handler)
        return self.results[-1]


def recorder(tools: int, page_size: int | None = None) -> Recorder:
    server = Recorder(page_size)
    for number in range(tools):
        add_tool(server, f"tool_{number}")
    return server


def add_tool(server: Server, name: str) -> None:
    @server.tool(name)
    async def tool(city: str, days: int | None = None) -> str:
        return city


@every
async def test_a_list_is_encoded_once_for_all_requests(revision: str) -> None:
    server = recorder(3)
    async with speaking_to(server, revision) as end:
        lists = [(await end.ask("tools/list"))["result"]["tools"] for _ in range(2)]
    first, second = server.results
    assert first is second
    assert type(first.tools) is Raw
    assert lists[0] == lists[1]
    assert [tool["name"] for tool in lists[0]] == ["tool_0", "tool_1", "tool_2"]


@every
async def test_each_page_is_encoded_once(revision: str) -> None:
    server = recorder(3, page_size=2)
    async with speaking_to(server, revision) as end:
        for _ in range(2):
            page = (await end.ask("tools/list"))["result"]
            await end.ask("tools/list", {"cursor": page["nextCursor"]})
    assert server.results[:2] == server.results[2:]
    assert all(type(result.tools) is Raw for result in server.results)


@every
async def test_a_changed_list_is_encoded_anew(revision: str) -> None:
    server = recorder(2)
    async with speaking_to(server, revision) as end:
        await end.ask("tools/list")
        server.remove_tool("tool_0")
        add_tool(server, "later")
        tools = (await end.ask("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["tool_1", "later"]


def toolkit_frames() -> list[str]:
    """Functions of the toolkit that are active, innermost first."""
    names: list[str] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals["__name__"].startswith("mcpgen_runtime.server.toolkit."):
            names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


@every
@pytest.mark.parametrize("name", ["plain", "with_context"])
async def test_a_tool_runs_below_two_frames_of_the_toolkit(revision: str, name: str) -> None:
    server = Server("frames")
    frames: list[str] = []

    @server.tool()
    async def plain() -> str:
        frames.extend(toolkit_frames())
        return "x"

    @server.tool()
    async def with_context(ctx: Context) -> str:
        frames.extend(toolkit_frames())
        return "x"

    async with speaking_to(server, revision) as end:
        await end.ask("tools/call", {"name": name})
    assert len(frames) == 2
