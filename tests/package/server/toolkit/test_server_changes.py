"""Tools, resources and prompts that come, go and hide while a server runs; use without a client."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from kit.wire import ALL, HANDSHAKE
from mcpgen_runtime import Context, MiddlewareRequest, Next, RemoteError, Server
from mcpgen_runtime.testing import connected

NEWEST = ALL[-1]
TOOLS_CHANGED = "notifications/tools/list_changed"


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


def shop() -> Server:
    server = Server("shop")

    @server.tool(tags={"admin"})
    async def delete() -> str:
        return "deleted"

    @server.tool()
    async def order(item: str) -> str:
        return f"ordered {item}"

    @server.resource("shop://stock", tags={"admin"})
    def stock() -> str:
        return "3 pears"

    @server.resource("shop://{item}")
    def item(item: str) -> str:
        return item

    @server.prompt(tags={"admin", "slow"})
    def report(day: str) -> str:
        return f"report of {day}"

    return server


async def tools_of(pair: Any) -> list[str]:
    return [tool.name for tool in await pair.client.list_tools()]


async def test_tools_are_added_and_removed_while_a_client_is_connected() -> None:
    server = shop()
    async with connected(server, revision=HANDSHAKE[-1]) as pair:
        client: Any = pair.client
        assert await tools_of(pair) == ["delete", "order"]
        server.add_tool(double, title="Double", tags={"math"})
        server.add_tool(lambda: "x", name="constant")
        assert await tools_of(pair) == ["delete", "order", "double", "constant"]
        assert (await client.call_tool("double", {"number": 21})).content[0].text == "42"
        server.remove_tool("constant")
        assert await tools_of(pair) == ["delete", "order", "double"]
        with anyio.fail_after(10):
            while [m.get("method") for m in pair.received].count(TOOLS_CHANGED) < 1:
                await anyio.lowlevel.checkpoint()
    with pytest.raises(ValueError, match="tool 'double' is registered already"):
        server.add_tool(double)


@dataclass
class Shape:
    side: int


def area(shape: Shape) -> int:
    """Its annotation is the text `Shape`, as everywhere in this module."""
    return shape.side**2


async def test_annotations_of_added_functions_resolve_where_defined() -> None:
    @dataclass
    class Local:
        name: str

    def greet(local: Local) -> str:
        return f"hello {local.name}"

    def register(server: Server) -> None:
        Shape = str  # noqa: F841, N806  # another one, where the function is registered
        server.add_tool(area)

    server = shop()
    server.add_tool(greet)
    register(server)
    greeting = await server.call_tool("greet", {"local": {"name": "Ada"}})
    assert greeting.content[0].text == "hello Ada"
    size = await server.call_tool("area", {"shape": {"side": 3}})
    assert size.structured_content == {"result": 9}


async def test_a_tag_hides_tools_resources_and_prompts_together() -> None:
    server = shop()
    async with connected(server, revision=NEWEST) as pair:
        client: Any = pair.client
        server.disable("shop://{item}", tags=["admin"])
        assert await tools_of(pair) == ["order"]
        with pytest.raises(RemoteError, match="unknown tool"):
            await client.call_tool("delete")
        assert list(await client.list_resources()) == list(await client.list_prompts()) == []
        with pytest.raises(RemoteError):
            await client.read_resource("shop://stock")
        with pytest.raises(RemoteError):
            await client.read_resource("shop://pear")
        with pytest.raises(RemoteError):
            await client.get_prompt("report", {"day": "Monday"})
        server.enable(tags=["slow"])
        assert [prompt.name for prompt in await client.list_prompts()] == ["report"]
        assert await tools_of(pair) == ["order"]


async def test_a_disabled_item_keeps_its_name_and_can_be_removed() -> None:
    server = shop()
    server.disable("order", "shop://{item}")
    with pytest.raises(ValueError, match="registered already"):
        server.add_tool(double, name="order")
    server.remove_tool("order")
    server.remove_resource("shop://{item}")
    server.add_tool(double, name="order")
    server.disable("delete")
    assert [tool.name for tool in await server.list_tools()] == ["order"]


def test_a_name_or_tag_that_fits_nothing_is_an_error() -> None:
    server = shop()
    with pytest.raises(LookupError, match="nothing is registered with the name 'deletee'"):
        server.disable("order", "deletee")
    with pytest.raises(LookupError, match="nothing is registered with the tag 'admn'"):
        server.disable("order", tags=["admn"])
    with pytest.raises(TypeError, match="tags: expected a collection of strings, got 'admin'"):
        server.disable(tags="admin")


async def test_a_server_is_used_without_a_client() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[list[str]]:
        yield ["state"]

    server = Server("direct", page_size=1, lifespan=lifespan)
    server.add_tool(double)
    server.resource("shop://stock")(lambda: "3 pears")
    server.add_prompt(lambda day: f"report of {day}", "report")

    @server.tool()
    async def state(ctx: Context[list[str]]) -> str:
        await ctx.info("dropped")
        await ctx.progress(1)
        return ctx.state[0]

    seen: list[str] = []

    @server.middleware
    async def note(request: MiddlewareRequest, next: Next) -> Any:
        seen.append(request.method)
        return await next(request)

    assert [tool.name for tool in await server.list_tools()] == ["double", "state"]
    assert [each.uri for each in await server.list_resources()] == ["shop://stock"]
    assert [each.name for each in await server.list_prompts()] == ["report"]
    assert (await server.call_tool("double", {"number": 4})).structured_content == {"result": 8}
    assert "state" in str((await server.call_tool("state")).content)
    assert "3 pears" in str((await server.read_resource("shop://stock")).contents)
    assert "Monday" in str((await server.get_prompt("report", {"day": "Monday"})).messages)
    assert (await server.call_tool("double", {"number": "x"})).is_error
    assert {"tools/call", "tools/list", "prompts/get"} <= set(seen)
    with pytest.raises(RemoteError, match="unknown tool"):
        await server.call_tool("triple")


async def test_a_tool_calls_another_in_the_same_lifespan() -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[str]:
        entered.append("once")
        yield "state"

    server = Server("nested", lifespan=lifespan)
    server.add_tool(double)

    @server.tool()
    async def quadruple(number: int) -> str:
        result = await server.call_tool("double", {"number": 2 * number})
        return str(result.structured_content)

    async with connected(server, revision=NEWEST) as pair:
        result: Any = await pair.client.call_tool("quadruple", {"number": 3})
    assert "12" in result.content[0].text
    assert entered == ["once"]
