"""A server as a whole: what it declares, pages of its lists, and how changes are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from kit.live import tool_names
from kit.wire import ALL, CHANGED, LISTEN, every, legacy, modern, request, speaking_to, tag
from mcpgen_runtime import Context, Icon, MiddlewareRequest, Next, RemoteError, Server, connect
from mcpgen_runtime.testing import connected


def plain(value: str = "x") -> str:
    return value


def full(**settings: Any) -> Server:
    """A server with one of everything."""
    made = Server("full", "1", **settings)
    made.tool("t")(plain)
    made.resource("x://a")(plain)
    made.prompt("p")(plain)
    made.completion(prompt="p", argument="value")(lambda value: [value])
    return made


LISTED: dict[str, Any] = {"listChanged": True}
MORE: dict[str, Any] = {"experimental": {"mine": {}}, "tools": {"listChanged": False}}


@pytest.mark.requirement(
    "tools.declare-capability-initialize",
    "resources.declare-capability-initialize",
    "prompts.declare-capability-initialize",
    "completion.declare-capability-initialize",
    "tools.declare-capability-discover",
    "resources.declare-capability-discover",
    "prompts.declare-capability-discover",
    "completion.declare-capability-discover",
    "logging.declare-capability-discover",
)
@every
@pytest.mark.parametrize(
    ("settings", "declared"),
    [
        ({"subscribe": True}, {"tools": LISTED, "resources": {"subscribe": True, **LISTED}}),
        ({"capabilities": MORE}, {**MORE, "resources": LISTED}),
        ({"list_changed": False}, {"tools": {}, "resources": {}, "prompts": {}}),
    ],
)
async def test_a_server_declares_what_is_registered_and_what_it_will_send(
    revision: str, settings: Any, declared: Any
) -> None:
    everywhere: dict[str, Any] = {"prompts": LISTED, "logging": {}}
    if revision != ALL[0]:
        everywhere["completions"] = {}
    async with connect(full(**settings), revision=revision) as client:
        assert client.server_capabilities == {**everywhere, **declared}
        assert (client.server_info["name"], client.server_info["version"]) == ("full", "1")
    async with connect(Server("empty", logging=False), revision=revision) as client:
        assert client.server_capabilities == {}


@pytest.mark.requirement(
    "tools.unadvertised-method-not-found",
    "prompts.unadvertised-method-not-found",
    "completion.unsupported-error",
)
@every
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {}),
        ("tools/call", {"name": "t"}),
        ("prompts/get", {"name": "p"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
        ),
    ],
)
async def test_methods_without_registered_items_are_unknown(
    revision: str, method: str, params: Any
) -> None:
    async with speaking_to(Server("empty"), revision) as end:
        assert (await end.ask(method, params))["error"]["code"] == -32601


@every
async def test_a_server_introduces_itself_as_far_as_the_revision_goes(revision: str) -> None:
    server = Server(
        "s", "2", title="S", website_url="https://s.example", icons=[Icon(src="data:,")]
    )
    async with connect(server, revision=revision) as client:
        info = client.server_info
    assert (info["name"], info["version"]) == ("s", "2")
    assert info.keys() <= {"name", "version", "title", "websiteUrl", "icons"}
    if revision == ALL[-1]:
        assert info["icons"] == [{"src": "data:,"}]


METHODS = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
]
lists = pytest.mark.parametrize(("method", "member", "key"), METHODS)


def paged_server() -> Server:
    made = Server("paged", page_size=2)
    for number in range(5):
        made.tool(f"t{number}")(plain)
        made.prompt(f"t{number}")(plain)  # a name of a tool, too
        made.resource(f"x://r{number}")(plain)
        made.resource(f"x://{number}/{{value}}")(plain)
    return made


@pytest.mark.requirement(
    "pagination.next-cursor-if-more", "pagination.opaque-cursor", "pagination.operations"
)
@every
@lists
async def test_lists_come_in_pages_without_gaps_or_repeats(
    revision: str, method: str, member: str, key: str
) -> None:
    pages: list[list[str]] = []
    async with speaking_to(paged_server(), revision) as end:
        params: dict[str, Any] = {}
        while True:
            result = (await end.ask(method, params))["result"]
            assert (await end.ask(method, params))["result"] == result
            pages.append([item[key] for item in result[member]])
            if "nextCursor" not in result:
                break
            assert isinstance(result["nextCursor"], str)
            params = {"cursor": result["nextCursor"]}
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({item for page in pages for item in page}) == 5


@pytest.mark.requirement(
    "pagination.stable-cursors",
    "pagination.invalid-cursor-error",
    "pagination.invalid-cursor-graceful",
)
@every
async def test_a_cursor_keeps_its_place_and_others_are_refused(revision: str) -> None:
    server = paged_server()
    async with speaking_to(server, revision) as end:

        async def ask(cursor: str, method: str = "tools/list") -> Any:
            return await end.ask(method, {"cursor": cursor})

        cursor = (await end.ask("tools/list"))["result"]["nextCursor"]
        for bad in ("", "garbage", "\u00e9", "===", "////", "t1"):
            for method, _, _ in METHODS:
                assert (await ask(bad, method))["error"]["code"] == -32602
        assert (await ask(cursor, "prompts/list"))["error"]["code"] == -32602
        server.remove_tool("t0")
        server.remove_tool("t2")
        server.tool("t5")(plain)
        result = (await ask(cursor))["result"]
        assert [tool["name"] for tool in result["tools"]] == ["t3", "t4"]
        server.remove_tool("t1")  # the place of the cursor
        assert (await ask(cursor))["error"]["code"] == -32602


CHANGES: dict[str, Callable[[Server], None]] = {
    "toolsListChanged": lambda server: server.remove_tool("t"),
    "resourcesListChanged": lambda server: server.remove_resource("x://a"),
    "promptsListChanged": lambda server: server.remove_prompt("p"),
}


@legacy
@pytest.mark.parametrize("change", CHANGES)
async def test_a_session_hears_of_changes(revision: str, change: str) -> None:
    server = full()
    async with speaking_to(server, revision) as end:
        await end.ask("ping")
        CHANGES[change](server)
        assert (await end.receive())["method"] == CHANGED[change]
        for method, member, _ in METHODS[:3]:
            listed = (await end.ask(method))["result"][member]
            assert (listed == []) == change.startswith(member)


@pytest.mark.requirement(
    "tools.list-changed-only-on-listen",
    "resources.list-changed-only-on-listen",
    "prompts.list-changed-only-on-listen",
    "subscriptions.only-requested-types",
    "subscriptions.no-server-memory",
    "stdio.server-message-kinds",
)
@modern
@pytest.mark.parametrize("wanted", CHANGES)
async def test_a_stream_hears_of_the_changes_it_asked_for_and_no_other(
    revision: str, wanted: str
) -> None:
    server = full()
    async with speaking_to(server, revision) as end:
        await end.send(request(revision, LISTEN, {"notifications": {wanted: True}}, id="s"))
        assert (await end.receive())["params"]["notifications"] == {wanted: True}
        for change in CHANGES.values():
            change(server)
        heard = await end.receive()
        assert heard["method"] == CHANGED[wanted]
        assert heard["params"]["_meta"] == {tag(revision): "s"}
        await end.ask("tools/list")
        await anyio.wait_all_tasks_blocked()
        await end.ask("tools/list")
        assert end.heard == []
        async with speaking_to(server, revision) as other:  # which starts without subscriptions
            server.tool("later")(plain)
            await other.ask("tools/list")
            await anyio.wait_all_tasks_blocked()
            await other.ask("tools/list")
            assert other.heard == []


@pytest.mark.requirement(
    "prompts.list-answered",
    "resources.list-answered",
    "tools.list-changed-flag-honest",
    "resources.list-changed-flag",
    "prompts.list-changed-flag",
)
@every
async def test_without_the_flag_no_change_is_told_and_empty_lists_are_answered(
    revision: str,
) -> None:
    server = full(list_changed=False)
    async with speaking_to(server, revision) as end:
        for change in CHANGES.values():
            change(server)
        for method, member, _ in METHODS:
            assert (await end.ask(method))["result"][member] == []
            await anyio.wait_all_tasks_blocked()
            assert end.heard == []


@legacy
async def test_items_registered_later_are_not_part_of_open_sessions(revision: str) -> None:
    server, child = Server("late"), Server("child")
    server.mount(child)
    server.prompt("p")(plain)
    async with speaking_to(server, revision) as end:
        child.tool("t")(plain)
        assert (await end.ask("tools/list"))["error"]["code"] == -32601
        assert end.heard == []
    async with speaking_to(server, revision) as end:
        assert len((await end.ask("tools/list"))["result"]["tools"]) == 1


@pytest.mark.requirement(
    "tools.list-not-per-connection",
    "resources.list-not-per-connection",
    "prompts.list-not-per-connection",
)
@every
async def test_lists_do_not_change_by_requests_on_any_connection(revision: str) -> None:
    server = full()
    declared: dict[str, Any] = {"roots": {}, "sampling": {}}
    async with (
        speaking_to(server, revision) as one,
        speaking_to(server, revision, declared) as two,
    ):

        async def listed(end: Any) -> list[Any]:
            return [(await end.ask(method))["result"] for method, _, _ in METHODS]

        before = await listed(one)
        assert len(before[0]["tools"]) == 1
        await one.ask("tools/call", {"name": "t", "arguments": {"value": "y"}})
        await one.ask("resources/read", {"uri": "x://a"})
        await one.ask("prompts/get", {"name": "p", "arguments": {"value": "y"}})
        assert await listed(one) == await listed(two) == before


NEWEST = ALL[-1]


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
        assert await tool_names(client) == ["order"]
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
        assert await tool_names(client) == ["order"]


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
