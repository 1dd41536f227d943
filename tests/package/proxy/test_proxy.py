"""Servers in front of others: `Server.proxy(target)`, each side with a revision of its own."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import handlers_with, open_and_close, text_of
from kit.requestor import REVISION, Work
from kit.respondent import accept_result
from kit.stdio_process import PATHS
from kit.wire import ALL, HANDSHAKE, every
from mcpgen_runtime import (
    ClientHandlers,
    Context,
    McpError,
    MiddlewareRequest,
    Next,
    ProtocolError,
    RemoteError,
    Restart,
    Server,
    TransportError,
    connect,
)
from mcpgen_runtime.testing import connected

NEWEST, OLDEST, SESSION = ALL[-1], ALL[0], HANDSHAKE[-1]
PAIRS = [(SESSION, SESSION), (NEWEST, NEWEST), (SESSION, NEWEST), (NEWEST, SESSION)]
across = pytest.mark.parametrize(("near", "far"), PAIRS)
"""The revision of the client, and that of the server behind the proxy."""


@dataclass
class Seat:
    """A form that a tool asks the user to fill in."""

    row: int


def person() -> ClientHandlers:
    """Handlers that answer questions, each with the next row."""
    rows = itertools.count(7)
    return handlers_with(
        elicit=lambda params: accept_result(row=next(rows)),
        list_roots={"roots": [{"uri": "file:///home"}]},
    )


def shop(runs: list[str] | None = None, **settings: Any) -> Server:
    """A server."""
    server = Server("shop", instructions="Order first.", **settings)

    @server.tool(title="Order", meta={"com.example/color": "red"})
    async def order(item: str, ctx: Context) -> dict[str, str]:
        """Order an item."""
        await ctx.progress(1, 2, "half")
        await ctx.warning("ordering")
        return {"ordered": item, "trace": str(ctx.meta.get("com.example/trace"))}

    @server.tool()
    async def book(ctx: Context) -> str:
        if runs is not None:
            runs.append("book")
        first: Any = await ctx.elicit("Which row?", Seat)
        second: Any = await ctx.elicit("And then?", Seat)
        roots = await ctx.list_roots()
        return f"rows {first.content.row} and {second.content.row} in {roots[0].uri}"

    @server.tool()
    async def fail() -> str:
        raise ProtocolError("out of order", code=1234, data={"why": "rain"})

    @server.resource("shop://stock")
    def stock() -> str:
        return "3 pears"

    @server.resource("shop://items/{item}")
    def item(item: str) -> str:
        return item

    @server.prompt()
    def greet(name: str) -> str:
        return f"greet {name}"

    @server.completion(prompt="greet", argument="name")
    def names(text: str) -> list[str]:
        return [f"{text}nn"]

    return server


async def use_shop(client: Any, prefix: str = "", place: str = "shop://") -> None:
    """Use all kinds of items of a shop, under a prefix of names and one of URIs."""
    result = await client.call_tool(f"{prefix}order", {"item": "pear"})
    assert '"ordered":"pear"' in text_of(result).replace(" ", "")
    assert [each.uri for each in await client.list_resources()] == [f"{place}stock"]
    templates = await client.list_resource_templates()
    assert [each.uri_template for each in templates] == [place + "items/{item}"]
    contents = (await client.read_resource(f"{place}items/fig")).contents[0]
    assert (contents.uri, contents.text) == (f"{place}items/fig", "fig")
    assert [each.name for each in await client.list_prompts()] == [f"{prefix}greet"]
    greeting = await client.get_prompt(f"{prefix}greet", {"name": "Ann"})
    assert greeting.messages[0].content.text == "greet Ann"
    params = {
        "ref": {"type": "ref/prompt", "name": f"{prefix}greet"},
        "argument": {"name": "name", "value": "A"},
    }
    assert (await client.request("completion/complete", params)).completion.values == ["Ann"]


@pytest.mark.parametrize(
    ("near", "far"), [*PAIRS, (OLDEST, NEWEST), (NEWEST, OLDEST), (HANDSHAKE[1], HANDSHAKE[2])]
)
async def test_everything_passes_between_any_two_revisions(near: str, far: str) -> None:
    proxy = Server.proxy(shop(), name="front", revision=far)
    async with connect(proxy, revision=near) as client:
        assert client.instructions == "Order first."
        tools = await client.list_tools()
        assert [tool.name for tool in tools] == ["order", "book", "fail"]
        assert tools[0].input_schema["required"] == ["item"]
        await use_shop(client)
        with pytest.raises(RemoteError, match="out of order") as failed:
            await client.call_tool("fail")
        assert (failed.value.code, failed.value.data) == (1234, {"why": "rain"})
        with pytest.raises(RemoteError) as absent:
            await client.read_resource("shop://none")
        assert absent.value.resource_not_found


@across
async def test_questions_reach_the_user_and_no_tool_runs_twice(
    near: str, far: str, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[str] = []
    proxy = Server.proxy(shop(runs), revision=far)
    async with connect(proxy, revision=near, handlers=person()) as client:
        assert text_of(await client.call_tool("book")) == "rows 7 and 8 in file:///home"
    assert len(runs) == (1 if far in HANDSHAKE else 4)
    assert "is lost" not in caplog.text


@across
async def test_input_that_a_client_does_not_support_is_an_error(
    near: str, far: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(Server.proxy(shop(), revision=far), revision=near) as client:
        try:
            text = text_of(await client.call_tool("book"))
        except RemoteError as error:
            text = str(error)
    assert "elicitation" in text or "elicitation" in caplog.text


@across
async def test_changes_of_lists_and_resources_are_announced(near: str, far: str) -> None:
    server = shop(subscribe=True)
    async with connect(Server.proxy(server, revision=far), revision=near) as client:
        kinds = set[str]()

        async def listen() -> None:
            async with client.listen(tools=True, uris=["shop://stock"]) as changes:
                async for change in changes:
                    kinds.add(type(change).__name__)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            with anyio.fail_after(10):
                while len(kinds) < 2:
                    server.add_tool(lambda: "x", name="added")
                    server.remove_tool("added")
                    server.resource_updated("shop://stock")
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert kinds == {"ToolsChanged", "ResourceUpdated"}


def closing_shop() -> tuple[Any, anyio.Event]:
    """A shop, and an event that ends it."""
    ended = anyio.Event()

    class Gone:
        async def serve(self, channel: Any) -> None:
            async with anyio.create_task_group() as tasks:

                async def end() -> None:
                    await ended.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(end)
                await shop().serve(channel)

    return Gone(), ended


async def test_an_unreachable_target_ends_the_client_with_the_reason() -> None:
    with pytest.raises(McpError, match=r"127\.0\.0\.1:9"):
        await open_and_close(connected(Server.proxy("http://127.0.0.1:9/mcp")))


def test_wrong_options_and_own_tools_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="mcpServers: expected an object with servers"):
        Server.proxy({"mcpServers": {}})
    with pytest.raises(TypeError, match="env: only for a command"):
        Server.proxy({"mcpServers": {"shop": shop()}}, env={"A": "b"})
    with pytest.raises(TypeError, match="revisoin"):
        Server.proxy("https://example.com/mcp", revisoin=NEWEST)
    proxy = Server.proxy(shop())
    for register in (
        lambda: proxy.add_tool(lambda: "x", name="own"),
        lambda: proxy.mount(shop()),
        lambda: proxy.completion(prompt="greet", argument="name")(lambda text: [text]),
    ):
        with pytest.raises(TypeError, match="a proxy has nothing of its own: mount it"):
            register()


@across
async def test_a_mounted_proxy_has_its_names_under_the_prefix(near: str, far: str) -> None:
    main, behind = Server("main"), shop(subscribe=True)
    middle = Server("middle")
    main.mount(middle, prefix="a")
    middle.mount(Server.proxy(behind, revision=far), prefix="b")

    @main.tool()
    async def ping() -> str:
        return "pong"

    async with connect(main, revision=near, handlers=person()) as client:
        tools = [tool.name for tool in await client.list_tools()]
        assert tools == ["ping", "a_b_order", "a_b_book", "a_b_fail"]
        assert text_of(await client.call_tool("ping")) == "pong"
        assert "rows 7 and 8" in text_of(await client.call_tool("a_b_book"))
        await use_shop(client, "a_b_", "shop://a/b/")
        with pytest.raises(RemoteError, match="unknown tool: 'order'"):
            await client.call_tool("order", {"item": "pear"})

        async def update() -> None:
            while True:
                behind.resource_updated("shop://stock")
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(10):
            listening = client.listen(uris=["shop://a/b/stock"])
            async with anyio.create_task_group() as tasks, listening as changes:
                tasks.start_soon(update)
                async for change in changes:
                    assert change.uri == "shop://a/b/stock"
                    tasks.cancel_scope.cancel()
                    break


async def test_two_proxies_need_prefixes_of_their_own() -> None:
    main = Server("main")
    main.mount(Server.proxy(shop(), name="one"), prefix="x")
    with pytest.raises(ValueError, match="server 'two': expected a prefix of its own"):
        main.mount(Server.proxy(shop(), name="two"), prefix="x")
    main.mount(Server.proxy(shop(), name="two"), prefix="x_y")
    result: Any = await main.call_tool("x_y_order", {"item": "fig"})
    assert "fig" in text_of(result)


async def test_a_proxied_server_that_is_gone_hides_no_other_tools(
    caplog: pytest.LogCaptureFixture,
) -> None:
    main, (behind, ended) = Server("main"), closing_shop()
    main.add_tool(lambda: "pong", name="ping")
    main.mount(Server.proxy(behind, name="front"), prefix="shop")
    async with connect(main, revision=NEWEST) as client:
        assert len(await client.list_tools()) == 4
        ended.set()
        await anyio.lowlevel.checkpoint()
        client.cache.clear()
        assert [tool.name for tool in await client.list_tools()] == ["ping"]
    assert "the server behind proxy 'front' does not answer" in caplog.text


async def test_an_unanswered_call_is_cancelled_by_the_leaving_client() -> None:
    server, started, cancelled = Server("slow"), anyio.Event(), anyio.Event()

    @server.tool()
    async def wait() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with connect(Server.proxy(server, revision=SESSION), revision=NEWEST) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait")
            await started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await cancelled.wait()


async def test_middleware_of_a_proxy_gets_typed_results() -> None:
    proxy, seen = Server.proxy(shop(), revision=NEWEST), list[str]()

    @proxy.middleware
    async def note(request: MiddlewareRequest, next: Next) -> Any:
        result = await next(request)
        seen.append(f"{request.method} {type(result).__name__}")
        return result

    async with connect(proxy, revision=NEWEST) as client:
        await client.list_tools()
        await client.call_tool("order", {"item": "pear"})
    assert seen == ["tools/list ListToolsResult", "tools/call CallToolResult"]


@pytest.mark.parametrize(
    ("cursors", "count", "warning"),
    [
        (itertools.repeat("again"), 2, "the list ends at nextCursor 'again', which came again"),
        (map(str, itertools.count()), 1000, "expected a list of at most 1000 pages, got more"),
    ],
    ids=["the same", "always new"],
)
async def test_a_mounted_proxy_ends_a_list_whose_cursors_do_not(
    cursors: Iterator[str], count: int, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    names: list[str] = []
    inner, main = Server("inner"), Server("main")
    inner.tool("first")(lambda: "x")

    @inner.middleware
    async def page(request: MiddlewareRequest, call_next: Next) -> Any:
        if request.method != "tools/list":
            return await call_next(request)
        names.append(f"tool_{len(names)}")
        tool = {"name": names[-1], "inputSchema": {"type": "object"}}
        return {"tools": [tool], "nextCursor": next(cursors)}

    main.mount(Server.proxy(inner), prefix="in")
    async with connected(main, revision=ALL[-1]) as pair:
        listed = [tool.name for tool in await pair.client.list_tools()]
    assert listed == [f"in_{name}" for name in names]
    assert len(names) == count
    assert [each for each in caplog.messages if warning in each]


@pytest.mark.parametrize("near", ALL)
async def test_a_tool_that_must_be_a_task_is_called_plainly(near: str) -> None:
    work = Work()
    work.go.set()
    proxy = Server.proxy(work.server, revision=REVISION)
    async with connect(proxy, revision=near) as client:
        assert "tasks" not in client.server_capabilities
        assert (await client.call_tool("needs_a_task")).content[0].text == "done"
        assert (await client.call_tool("waits")).content[0].text == "done"
        with pytest.raises(RemoteError, match="unknown tool"):
            await client.call_tool("unknown")


@pytest.mark.parametrize("near", [name for name in ALL if name >= "2025-06-18"])
async def test_a_task_behind_a_proxy_asks_its_client(near: str) -> None:
    proxy = Server.proxy(Work().server, revision=REVISION)
    ada = handlers_with(elicit=accept_result(name="Ada"))
    async with connect(proxy, revision=near, handlers=ada) as client:
        assert "Ada" in (await client.call_tool("asks")).content[0].text


BROKEN = [sys.executable, "-c", "raise SystemExit('no database')"]


def clock() -> Server:
    server = Server("clock")
    server.add_tool(lambda: "noon", name="time")
    return server


@every
async def test_names_of_several_servers_have_configured_prefixes(revision: str) -> None:
    proxy = Server.proxy({"mcpServers": {"shop": shop(), "clock": clock()}}, name="all")
    async with connect(proxy, revision=revision) as client:
        assert client.server_info["name"] == "all"
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["shop_order", "shop_book", "shop_fail", "clock_time"]
        assert text_of(await client.call_tool("clock_time")) == "noon"
        await use_shop(client, "shop_", "shop://shop/")


async def test_a_name_of_two_servers_is_that_of_the_longest_prefix() -> None:
    main = Server("main")
    for prefix, name in (("a", "b_x"), ("a_b", "x")):
        inner = Server(prefix)
        inner.add_tool(lambda: "", name=name, description=prefix)
        main.mount(Server.proxy(inner), prefix=prefix)
    async with connect(main) as client:
        tools = [(tool.name, tool.description) for tool in await client.list_tools()]
    assert tools == [("a_b_x", "a_b")]


@every
async def test_one_server_alone_keeps_its_names_and_instructions(revision: str) -> None:
    proxy = Server.proxy({"mcpServers": {"shop": shop(), "off": {"disabled": True}}})
    async with connect(proxy, revision=revision) as client:
        assert client.instructions == "Order first."
        assert [tool.name for tool in await client.list_tools()] == ["order", "book", "fail"]


@every
async def test_a_failing_server_is_reported_and_the_others_are_served(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    servers = {"clock": clock(), "broken": {"command": BROKEN[0], "args": BROKEN[1:]}, "odd": {}}
    async with connect(Server.proxy({"mcpServers": servers}), revision=revision) as client:
        assert "server 'broken'" in caplog.text
        assert "no database" in caplog.text
        assert "mcpServers.odd: expected either command or url" in caplog.text
        assert [tool.name for tool in await client.list_tools()] == ["clock_time"]
        with pytest.raises(RemoteError, match="the server behind proxy 'broken' does not answer"):
            await client.call_tool("broken_any")
        with pytest.raises(RemoteError, match="unknown tool: 'odd_any'"):
            await client.call_tool("odd_any")


class Late:
    """A shop that refuses its first clients."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    async def serve(self, channel: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            await channel.close()
        else:
            await shop().serve(channel)


@every
async def test_a_server_that_is_up_later_is_found_at_the_next_use(revision: str) -> None:
    proxy = Server.proxy({"mcpServers": {"clock": clock(), "shop": Late(1)}})
    async with connect(proxy, revision=revision) as client:
        assert "pear" in text_of(await client.call_tool("shop_order", {"item": "pear"}))
        client.cache.clear()
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["clock_time", "shop_order", "shop_book", "shop_fail"]


async def test_a_configuration_without_any_usable_server_is_an_error() -> None:
    proxy = Server.proxy({"mcpServers": {"one": BROKEN, "two": BROKEN}})
    with pytest.raises(
        TransportError, match=r"(?s)none of the servers could be opened: one: .*; two: "
    ):
        await open_and_close(connected(proxy))


async def test_restart_is_for_the_commands_of_a_configuration() -> None:
    servers = {"clock": clock(), "broken": {"command": BROKEN[0], "args": BROKEN[1:]}}
    proxy = Server.proxy({"mcpServers": servers}, restart=Restart())
    async with connect(proxy, revision=NEWEST) as client:
        assert text_of(await client.call_tool("clock_time")) == "noon"


async def test_the_path_of_a_file_is_a_configuration_too(tmp_path: Path) -> None:
    code = "from mcpgen_runtime import Server; s = Server('s'); s.add_tool(lambda: 'up', name='up')"
    words = [sys.executable, "-c", f"{code}; s.run()"]
    file = tmp_path / "servers.json"
    servers: dict[str, Any] = {"one": {"command": words[0], "args": words[1:], "env": PATHS}}
    file.write_text(json.dumps({"mcpServers": servers | {"two": {"url": "http://127.0.0.1:9/"}}}))
    async with connect(Server.proxy(file)) as client:
        assert text_of(await client.call_tool("one_up")) == "up"


def test_an_unusable_configuration_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.json"):
        Server.proxy(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"prefix: expected letters, digits.*got 'my shop'"):
        Server.proxy({"mcpServers": {"my shop": shop(), "clock": clock()}})
    with pytest.raises(ValueError, match=r"mcpServers\.shop: expected either command or url"):
        Server.proxy({"mcpServers": {"shop": {}}})
