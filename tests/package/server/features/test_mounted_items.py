"""Servers mounted on a server: `main.mount(git, prefix="git")`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import asgi
from kit.live import handlers_with, server_with, text_of, tool_names
from kit.respondent import accept_result
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, every, legacy
from mcpgen_runtime import (
    Contents,
    Context,
    Depends,
    EmbeddedResource,
    MiddlewareRequest,
    Next,
    Principal,
    RemoteError,
    ResourceLink,
    ResourceNotFoundError,
    Server,
    connect,
    limit_results,
    replace,
)
from mcpgen_runtime.r2026_07_28.server import ServerHandlers
from mcpgen_runtime.testing import connected

NEWEST = ALL[-1]
both = pytest.mark.parametrize("revision", [HANDSHAKE[0], NEWEST])
TOOLS_CHANGED = "notifications/tools/list_changed"


def git(**settings: Any) -> Server:
    server = Server("git", **settings)

    @server.tool(tags={"read"})
    async def status() -> str:
        """The state of the working tree."""
        return "clean"

    @server.resource("repo://head")
    def head() -> str:
        return "abc"

    @server.resource("repo://{branch}/tip")
    def tip(branch: str) -> str:
        if branch == "gone":
            raise ResourceNotFoundError("repo://gone/tip")
        return f"tip of {branch}"

    @server.prompt()
    def review(branch: str) -> str:
        return f"review {branch}"

    return server


async def ping() -> str:
    return "pong"


@every
async def test_everything_of_a_mounted_server_has_the_prefix_and_works(revision: str) -> None:
    server = server_with(ping)
    server.mount(git(), prefix="git")
    async with connect(server, revision=revision) as client:
        assert await tool_names(client) == ["ping", "git_status"]
        assert text_of(await client.call_tool("git_status")) == "clean"
        assert text_of(await client.call_tool("ping")) == "pong"
        assert [each.uri for each in await client.list_resources()] == ["repo://git/head"]
        templates = await client.list_resource_templates()
        assert [each.uri_template for each in templates] == ["repo://git/{branch}/tip"]
        head = (await client.read_resource("repo://git/head")).contents[0]
        assert (head.uri, head.text) == ("repo://git/head", "abc")
        tip = (await client.read_resource("repo://git/main/tip")).contents[0]
        assert (tip.uri, tip.text) == ("repo://git/main/tip", "tip of main")
        assert [each.name for each in await client.list_prompts()] == ["git_review"]
        review = await client.get_prompt("git_review", {"branch": "main"})
        assert review.messages[0].content.text == "review main"
        with pytest.raises(RemoteError, match="unknown tool"):
            await client.call_tool("status")
        with pytest.raises(RemoteError, match="resource not found: repo://head"):
            await client.read_resource("repo://head")
        with pytest.raises(RemoteError, match="resource not found: repo://git/gone/tip"):
            await client.read_resource("repo://git/gone/tip")


@both
async def test_completions_come_along(revision: str) -> None:
    server, child = server_with(ping), git()
    server.mount(child, prefix="git")
    child.add_prompt(lambda branch: branch, "plain")

    child.completion(prompt="review", argument="branch")(lambda text: [f"{text}ain"])
    child.completion(template="repo://{branch}/tip", argument="branch")(lambda text: ["dev"])
    async with connect(server, revision=revision) as client:

        async def complete(ref: dict[str, str], name: str = "branch") -> list[str]:
            params = {"ref": ref, "argument": {"name": name, "value": "m"}}
            result = await client.request("completion/complete", params)
            return list(result.completion.values)

        assert await complete({"type": "ref/prompt", "name": "git_review"}) == ["main"]
        assert await complete({"type": "ref/resource", "uri": "repo://git/{branch}/tip"}) == ["dev"]
        plain = {"type": "ref/prompt", "name": "git_plain"}
        assert await complete(plain) == []
        with pytest.raises(RemoteError, match="'plain' has no argument 'other'"):
            await complete(plain, "other")


async def test_a_mount_is_live_both_ways_and_clients_are_notified() -> None:
    server, child = server_with(ping), git()
    server.mount(child, prefix="git")
    async with connected(server, revision=HANDSHAKE[-1]) as pair:
        client: Any = pair.client
        child.add_tool(lambda: "logged", name="log")
        assert text_of(await client.call_tool("git_log")) == "logged"
        child.disable("status")
        assert await tool_names(client) == ["ping", "git_log"]
        child.enable("status")
        child.remove_tool("log")
        assert await tool_names(client) == ["ping", "git_status"]
        server.disable(tags=["read"])
        child.add_tool(lambda: "again", name="log")
        assert await tool_names(client) == ["ping", "git_log"]
        server.enable("git_status")
        assert await tool_names(client) == ["ping", "git_status", "git_log"]
        with anyio.fail_after(10):
            while TOOLS_CHANGED not in [m.get("method") for m in pair.received]:
                await anyio.lowlevel.checkpoint()
    with pytest.raises(ValueError, match="belongs to a mounted server"):
        server.remove_tool("git_log")


@legacy
@pytest.mark.parametrize("has_middleware", [False, True])
async def test_a_mounted_tool_shows_and_hides_items_of_its_session(
    revision: str, has_middleware: bool
) -> None:
    server, middle, child = Server("main"), Server("middle"), git()
    server.mount(middle, prefix="a")
    middle.mount(child, prefix="b")
    if has_middleware:
        child.middleware(limit_results(100))
    child.disable("status", "repo://head")

    @child.tool()
    async def switch(ctx: Context) -> None:
        await ctx.enable_components("status", "repo://head")
        await ctx.disable_components("switch")

    async with connected(server, revision=revision) as pair, connected(server) as other:
        client: Any = pair.client
        with pytest.raises(RemoteError, match="unknown tool: 'a_b_status'"):
            await client.call_tool("a_b_status")
        assert (await tool_names(client), await client.list_resources()) == (["a_b_switch"], [])
        await client.call_tool("a_b_switch")
        assert TOOLS_CHANGED in [message.get("method") for message in pair.received]
        assert await tool_names(client) == ["a_b_status"]
        assert text_of(await client.call_tool("a_b_status")) == "clean"
        assert (await client.read_resource("repo://a/b/head")).contents[0].text == "abc"
        with pytest.raises(RemoteError, match="unknown tool: 'a_b_switch'"):
            await client.call_tool("a_b_switch")
        assert await tool_names(other.client) == ["a_b_switch"]
        assert not any(message.get("method") == TOOLS_CHANGED for message in other.received)


async def test_mounts_nest_and_a_server_may_be_mounted_twice() -> None:
    server, middle, child = server_with(ping), Server("middle"), git()
    server.mount(middle, prefix="dev")
    middle.mount(child, prefix="git")
    server.mount(child)  # without a prefix, names stay as they are
    child.add_tool(lambda: "logged", name="log")
    tools = {tool.name for tool in await server.list_tools()}
    assert tools == {"ping", "dev_git_status", "dev_git_log", "status", "log"}
    for uri in ("repo://dev/git/main/tip", "repo://main/tip"):
        contents: Any = (await server.read_resource(uri)).contents
        assert (contents[0].uri, contents[0].text) == (uri, "tip of main")


async def test_uris_in_results_are_those_that_a_client_can_read() -> None:
    server, child = server_with(ping), git()

    @child.tool()
    async def links() -> list[Any]:
        return [
            ResourceLink(uri="repo://main/tip", name="tip"),
            ResourceLink(uri="https://example.com/", name="elsewhere"),
            EmbeddedResource(Contents(uri="repo://head", text="abc")),
        ]

    @child.prompt()
    def look() -> Any:
        return EmbeddedResource(Contents(uri="repo://head", text="abc"))

    server.mount(child, prefix="git")
    async with connect(server, revision=NEWEST) as client:
        link, elsewhere, embedded = (await client.call_tool("git_links")).content
        assert link.uri == "repo://git/main/tip"
        assert elsewhere.uri == "https://example.com/"
        assert embedded.resource.uri == "repo://git/head"
        message = (await client.get_prompt("git_look")).messages[0]
        assert message.content.resource.uri == "repo://git/head"


async def test_a_prefix_stands_after_the_scheme_of_a_uri() -> None:
    server, child = server_with(ping), Server("child")
    uris = {
        "urn:isbn:{number}": "urn:a.b/isbn:12",
        "file:///etc/motd": "file://a.b//etc/motd",
        "x:/a": "x:a.b//a",
    }
    for inner in uris:
        child.add_resource(lambda number="": f"read {number}", inner, name=inner)
    server.mount(child, prefix="a.b")
    for inner, outer in uris.items():
        contents: Any = (await server.read_resource(outer)).contents
        assert (contents[0].uri, contents[0].text) == (outer, f"read {'12' * ('{' in inner)}")
    for other in ("x:/a", "x:a.b", "urn:isbn:12"):
        with pytest.raises(RemoteError, match="resource not found"):
            await server.read_resource(other)


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ("", "prefix: expected letters"),
        ("a/b", "prefix: expected letters"),
        ("x" * 125, "expected a name of 1 to 128"),
        ("ping", "'ping_status' is registered already"),
    ],
)
async def test_a_mount_that_is_refused_changes_nothing(prefix: str, text: str) -> None:
    server, child = server_with(ping), git()
    server.add_tool(lambda: "taken", name="ping_status")
    with pytest.raises(ValueError, match=text):
        server.mount(child, prefix=prefix)
    child.add_tool(lambda: "x", name="later")
    assert [tool.name for tool in await server.list_tools()] == ["ping", "ping_status"]


async def test_names_methods_and_dependencies_of_a_mounted_server_are_the_outer_ones() -> None:
    def open_db() -> str:
        return "real"

    server, child = server_with(ping), git()
    server.mount(child, prefix="x")
    child.method("acme/find")(lambda params: {"row": params["row"] + 1})

    @child.tool()
    async def read(db: Annotated[str, Depends(open_db)]) -> str:
        return db

    with pytest.raises(ValueError, match="'x_status' is registered already"):
        server.add_tool(lambda: "x", name="x_status")
    child.remove_tool("status")
    server.add_tool(lambda: "x", name="x_status")  # given up by the mounted server
    with pytest.raises(ValueError, match="'x_status' is registered already"):
        child.add_tool(lambda: "x", name="status")
    with pytest.raises(ValueError, match="acme/find"):
        server.method("acme/find")(lambda: None)
    async with connect(server, revision=NEWEST) as client:
        assert (await client.request("acme/find", {"row": 1}))["row"] == 2
        with server.override(open_db, lambda: "empty"):
            assert text_of(await client.call_tool("x_read")) == "empty"
        assert text_of(await client.call_tool("x_read")) == "real"


def test_some_servers_can_not_be_mounted() -> None:
    class Handlers(ServerHandlers):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return {"tools": []}

    outer, inner = Server("outer"), Server("inner")
    outer.mount(inner, prefix="inner")
    for target in (outer, inner):
        with pytest.raises(ValueError, match="can't be mounted on itself"):
            target.mount(outer, prefix="x")
    with pytest.raises(ValueError, match="mounted already with prefix 'inner'"):
        outer.mount(inner, prefix="inner")
    with pytest.raises(TypeError, match="mount: expected"):
        outer.mount("https://example.com/mcp")  # type: ignore[arg-type]  # what the test is about
    with pytest.raises(ValueError, match="handles tools/list by a low-level handler"):
        outer.mount(Server("low", handlers=[Handlers()]), prefix="low")


async def book(ctx: Context) -> str:
    await ctx.progress(1, 2)
    await ctx.warning("booking")
    reply: Any = await ctx.elicit("Which row?", int)
    return f"row {reply.content}"


@pytest.mark.parametrize("revision", [HANDSHAKE[-1], NEWEST])
async def test_progress_logs_and_questions_of_a_mounted_tool_arrive(revision: str) -> None:
    server, handlers = server_with(ping), handlers_with(elicit=accept_result(value=7))
    server.mount(server_with(book), prefix="seat")
    reports: list[Any] = []
    async with connected(server, revision=revision, handlers=handlers) as pair:
        client: Any = pair.client
        if revision in PER_REQUEST:
            client.ask_for_logs("info")
        result = await client.call_tool(
            "seat_book", on_progress=lambda *report: reports.append(report)
        )
        assert text_of(result) == "row 7"
        assert reports[0][:2] == (1, 2)
        assert "booking" in [
            message["params"]["data"]
            for message in pair.received
            if message.get("method") == "notifications/message"
        ]


async def test_the_state_of_a_call_is_signed_by_the_outer_server() -> None:
    def process() -> Server:
        server, middle = Server("main", state_key=b"k" * 16), Server("middle")
        middle.mount(server_with(book), prefix="seat")
        server.mount(middle)
        return server

    call: dict[str, Any] = {"name": "seat_book", "arguments": {}}
    capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
    async with asgi(process()) as one, asgi(process()) as two:
        asked = await one.ask(NEWEST, "tools/call", call, capabilities=capabilities)
        [key] = asked.result["inputRequests"]
        reply = {key: {"action": "accept", "content": {"value": 7}}}
        retry = call | {"inputResponses": reply, "requestState": asked.result["requestState"]}
        done = await two.ask(NEWEST, "tools/call", retry, capabilities=capabilities)
    assert done.result["content"][0]["text"] == "row 7"


@both
async def test_middleware_of_a_mounted_server_sees_its_own_names(revision: str) -> None:
    server, middle, child = server_with(ping, page_size=1), Server("middle"), git()
    server.mount(middle, prefix="a")
    middle.mount(child, prefix="b")
    child.add_tool(lambda: "secret", name="secret")
    bare = Server("bare")
    bare.tool("empty")(lambda: "")
    bare.middleware(limit_results(100))
    server.mount(bare, prefix="c")
    seen: list[str] = []

    @child.middleware
    async def note(request: MiddlewareRequest, next: Next) -> Any:
        seen.append(f"{request.method} {request.target}")
        result = await next(request)
        if request.method == "tools/list":
            shown = [tool for tool in result.tools if tool.name != "secret"]
            return replace(result, tools=shown)
        return result

    async with connect(server, revision=revision) as client:
        assert await tool_names(client) == ["ping", "a_b_status", "c_empty"]
        assert [each.name for each in await client.list_prompts()] == ["a_b_review"]
        seen.clear()
        await client.call_tool("a_b_status")
        await client.read_resource("repo://a/b/head")
        await client.call_tool("ping")
    assert seen == ["tools/call status", "resources/read repo://head"]


@both
async def test_lifespans_are_entered_once_and_each_server_has_state(revision: str) -> None:
    passed: list[str] = []

    def stateful(name: str) -> Server:
        @asynccontextmanager
        async def lifespan(server: Server) -> AsyncGenerator[str]:
            passed.append(f"enter {server.name}")
            yield f"state of {server.name}"
            passed.append(f"leave {server.name}")

        server = Server(name, lifespan=lifespan)

        @server.tool(name)
        async def state(ctx: Context[str]) -> str:
            return ctx.state

        return server

    outer, inner = stateful("outer"), stateful("inner")
    outer.mount(inner, prefix="one")
    outer.mount(inner, prefix="two")
    async with connect(outer, revision=revision) as client:
        assert text_of(await client.call_tool("one_inner")) == "state of inner"
        assert text_of(await client.call_tool("outer")) == "state of outer"
    assert passed == ["enter outer", "enter inner", "leave inner", "leave outer"]
    direct: Any = await outer.call_tool("two_inner")
    assert direct.content[0].text == "state of inner"
    late = stateful("late")
    for server in (outer, inner):
        with pytest.raises(RuntimeError, match="server 'late' has a lifespan: mount it before run"):
            server.mount(late)


@both
async def test_updates_of_a_mounted_resource_have_its_outer_uri(revision: str) -> None:
    server, child = server_with(ping), git(subscribe=True)
    server.mount(child, prefix="git")
    async with connect(server, revision=revision) as client:
        async with client.listen(uris=["repo://git/head"]) as changes:
            child.resource_updated("repo://head")
            with anyio.fail_after(10):
                async for change in changes:
                    assert change.uri == "repo://git/head"
                    break
        with pytest.raises(RemoteError, match="resource not found: repo://git/none"):
            if revision in PER_REQUEST:
                await client.read_resource("repo://git/none")
            else:
                await client.subscribe("repo://git/none")


@pytest.mark.parametrize("forbidden", ["listed", "hidden"])
async def test_scopes_of_mounted_tools_are_kept_by_the_outer_server(forbidden: Any) -> None:
    server, child = Server("main", forbidden_items=forbidden), Server("child")

    @child.tool(scopes=["admin"])
    async def drop() -> str:
        return "dropped"

    server.mount(child, prefix="db")
    async with connected(server, revision=NEWEST, principal=Principal("ann")) as pair:
        client: Any = pair.client
        assert await tool_names(client) == (["db_drop"] if forbidden == "listed" else [])
        text = "needs the scopes admin" if forbidden == "listed" else "unknown tool: 'db_drop'"
        with pytest.raises(RemoteError, match=text):
            await client.call_tool("db_drop")
    admin = Principal("bob", scopes=frozenset({"admin"}))
    async with connected(server, revision=NEWEST, principal=admin) as pair:
        client = pair.client
        assert await tool_names(client) == ["db_drop"]
        assert text_of(await client.call_tool("db_drop")) == "dropped"
