"""Several servers as one client: `connect` with a configuration of more than one."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer, handlers_with, text_of
from kit.stdio_process import PATHS, SERVER
from kit.wire import CHANGED, HANDSHAKE, PER_REQUEST, both_lifecycles, every
from mcpgen_runtime import (
    AbsentMethodError,
    Client,
    ClientGroup,
    ClientHandlers,
    ClientNext,
    ClientRequest,
    ConnectFailedError,
    ConnectionClosedError,
    Context,
    InvalidParamsError,
    MethodNotFoundError,
    NotificationFilter,
    RemoteError,
    Server,
    ToolResultError,
    ToolsChanged,
    connect,
    connect_sync,
    models,
)
from package.client.blocking_stubs import members_of
from package.client.test_client_listen import Losing
from package.client.test_model_tools import APIS, model_call, model_result, schemas

pytestmark = pytest.mark.on_asyncio
newest = pytest.mark.parametrize("revision", PER_REQUEST[-1:])


def git() -> Server:
    """A server of everything."""
    server = Server("git", subscribe=True)

    @server.tool()
    def status(path: str = ".") -> str:
        return f"clean: {path}"

    @server.tool()
    def count() -> int:
        return 3

    @server.prompt()
    def commit(what: str) -> str:
        return f"Commit {what}."

    @server.completion(prompt="commit", argument="what")
    def what(value: str) -> list[str]:
        return ["everything", "nothing"]

    @server.resource("git://head", name="head")
    def head() -> str:
        return "main"

    @server.resource("git://file/{name}", name="file")
    def file(name: str) -> str:
        return f"contents of {name}"

    return server


def notes() -> Server:
    """Another one, with some of the same names."""
    server = Server("notes", subscribe=True)

    @server.tool()
    def status() -> str:
        return "2 notes"

    @server.tool()
    async def grow(ctx: Context) -> str:
        await ctx.progress(1)
        server.add_tool(lambda: "more", name="more")
        return "grown"

    @server.tool()
    async def ask(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.list_roots())

    @server.resource("note://one", name="one")
    def one() -> str:
        return "first"

    @server.resource("shared://x", name="x")
    def shared() -> str:
        return "of notes"

    return server


def two() -> dict[str, Any]:
    """A configuration with two servers of this process."""
    return {"mcpServers": {"git": git(), "notes": notes()}}


@every
async def test_several_servers_are_one_client_with_prefixed_names(revision: str) -> None:
    async with connect(two(), revision=revision) as client:
        assert isinstance(client, ClientGroup)
        assert [tool.name for tool in await client.list_tools()] == [
            *("git_status", "git_count", "notes_status", "notes_grow", "notes_ask")
        ]
        assert text_of(await client.call_tool("git_status", {"path": "src"})) == "clean: src"
        assert text_of(await client.call_tool("notes_status")) == "2 notes"
        assert await client.call_tool("git_count", returns=int) == 3
        assert [prompt.name for prompt in await client.list_prompts()] == ["git_commit"]
        prompt = await client.get_prompt("git_commit", {"what": "all"})
        assert isinstance(prompt.messages[0].content, models.TextContent)
        assert prompt.messages[0].content.text == "Commit all."
        completed = await client.complete(
            ref={"type": "ref/prompt", "name": "git_commit"},
            argument={"name": "what", "value": ""},
        )
        assert completed.completion.values == ["everything", "nothing"]
        assert client.servers["git"].revision == revision
        assert not client.failures


@every
async def test_an_error_names_the_item_as_the_caller_did(revision: str) -> None:
    async with connect(two(), revision=revision) as client:
        with pytest.raises(RemoteError, match=r"tools/call 'git_nothing': .*'nothing'") as unknown:
            await client.call_tool("git_nothing")
        assert (unknown.value.code, unknown.value.method) == (-32602, "tools/call")
        with pytest.raises(RemoteError, match="prompts/get 'git_commit': "):
            await client.get_prompt("git_commit")
        with pytest.raises(ToolResultError, match="tool 'git_status'"):
            await client.call_tool("git_status", returns=int)


@every
async def test_resources_are_read_from_the_server_that_has_them(revision: str) -> None:
    async with connect(two(), revision=revision) as client:
        named = {resource.name: resource.uri for resource in await client.list_resources()}
        assert named == {
            "git_head": "git://head",
            "notes_one": "note://one",
            "notes_x": "shared://x",
        }
        (template,) = await client.list_resource_templates()
        assert (template.name, template.uri_template) == ("git_file", "git://file/{name}")
        for uri, text in (("git://head", "main"), ("git://file/a.txt", "contents of a.txt")):
            result = await client.read_resource(uri)
            assert isinstance(result.contents[0], models.TextResourceContents)
            assert result.contents[0].text == text
    async with connect({"mcpServers": {"a": notes(), "b": notes()}}, revision=revision) as client:
        with pytest.raises(InvalidParamsError, match=r"a and b have it; ask one: client\.servers"):
            await client.read_resource("shared://x")


@newest
async def test_an_ambiguous_name_goes_to_the_server_that_lists_it(revision: str) -> None:
    hub = Server("hub")
    hub.add_tool(lambda: "of hub", name="only")
    git_server = git()
    git_server.add_tool(lambda: "of git", name="hub_push")
    config = {"mcpServers": {"git": git_server, "git_hub": hub}}
    async with connect(config, revision=revision) as client:
        assert text_of(await client.call_tool("git_hub_only")) == "of hub"
        assert text_of(await client.call_tool("git_hub_push")) == "of git"
        hub.add_tool(lambda: "too", name="push")
        client.servers["git_hub"].cache.clear()
        with pytest.raises(InvalidParamsError, match="'git_hub_push' is listed by git and git_hub"):
            await client.call_tool("git_hub_push")
        with pytest.raises(InvalidParamsError, match="one of git_, git_hub_, got 'status'"):
            await client.call_tool("status")


async def test_notifications_of_every_server_reach_the_handlers() -> None:
    class Roots(ClientHandlers):
        def __init__(self) -> None:
            self.changed: list[str] = []
            self.news = anyio.Event()

        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": [{"uri": f"file:///for/{ctx.peer_info['name']}"}]}

        async def tool_list_changed(self, params: Any, ctx: Any) -> None:
            self.changed.append(ctx.peer_info["name"])
            self.news.set()

    handlers = Roots()
    async with connect(two(), revision=HANDSHAKE[-1], handlers=handlers) as client:
        await client.call_tool("notes_grow")
        with anyio.fail_after(10):
            await handlers.news.wait()
        assert handlers.changed == ["notes"]
        await client.set_level("error")
        await client.roots_list_changed()
        assert text_of(await client.call_tool("notes_ask")) == "file:///for/notes"


@both_lifecycles
async def test_changes_are_asked_for_where_they_belong_and_come_in_one_iteration(
    revision: str,
) -> None:
    uris = ("git://head", "note://one", "shared://x")
    async with connect(two(), revision=revision) as client:
        async with client.listen(tools=True, uris=reversed(uris)) as changes:
            assert changes.agreed == NotificationFilter(tools=True, uris=(uris[0], *uris[:0:-1]))
            await client.call_tool("notes_grow")
            with anyio.fail_after(10):
                assert await anext(changes) == ToolsChanged()
        assert [change async for change in changes] == []
        assert "notes_more" in [tool.name for tool in await client.list_tools()]


@newest
@pytest.mark.parametrize("api", APIS)
async def test_models_get_the_tools_of_every_server(revision: str, api: Any) -> None:
    config = {"mcpServers": {"my weather": git(), "notes": notes()}}
    async with connect(config, revision=revision) as client:
        functions = schemas(api, await client.tools_for(api))
        assert {"my_weather_status", "notes_status"} <= set(functions)
        result = await client.call_from(model_call(api, "my_weather_status", {}))
        assert "clean: ." in json.dumps(result)
        failed = await client.call_from(model_call(api, "nonsense", {}))
        assert "expected a name that begins with one of my weather_, notes_" in json.dumps(failed)


async def test_a_server_that_dies_takes_only_its_own_tools_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    command = {"command": SERVER[0], "args": SERVER[1:], "env": PATHS}
    async with connect({"mcpServers": {"git": git(), "mortal": command}}) as client:
        for tool, arguments in (("die", {"code": 3}), ("echo", {"text": "hi"})):
            with pytest.raises(ConnectionClosedError):
                await client.call_tool(f"mortal_{tool}", arguments)
        assert [tool.name for tool in await client.list_tools()] == ["git_status", "git_count"]
        assert list(client.failures) == ["mortal"]
        assert caplog.text.count("server 'mortal'") == 1


async def test_a_closed_group_has_waited_for_the_end_of_its_servers() -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield
        await anyio.wait_all_tasks_blocked()
        ended.append(server.name)

    config = {"mcpServers": {name: Server(name, lifespan=lifespan) for name in "ab"}}
    async with connect(config) as client:
        servers = list(client.servers.values())
        await client.list_tools()
        await client.close()
        assert sorted(ended) == ["a", "b"]
        for server in servers:
            with pytest.raises(ConnectionClosedError):
                await server.list_tools()
    with pytest.raises(ValueError, match="mine"):
        async with connect(two()):
            raise ValueError("mine")


OF_ONE_SERVER = {
    *("cache", "extension", "instructions", "request", "request_raw", "revision"),
    *("seen_as", "server_capabilities", "server_info", "start_call", "supports", "notify"),
    *("get_skill", "list_skills", "read_directory", "read_skill"),
}
"""Members of a client that make sense for one server, whatever messages the revisions have."""
OF_ONE_SESSION = {
    *("cancel_task", "discover", "get_task", "get_task_payload", "list_tasks", "ping", "progress"),
    *("subscriptions_listen", "task_status"),
}
"""The same of messages: no member of theirs tells the server."""
BY_PAGE = {
    *("list_prompts_page", "list_resource_templates_page", "list_resources_page"),
    *("list_tools_page",),
}
"""Cursors are those of one server; a group reads all pages."""
NOT_IN_GROUPS = {*OF_ONE_SERVER, *OF_ONE_SESSION, *BY_PAGE, "list_tasks_page", "task"}
BLOCKING = NOT_IN_GROUPS - {"cache", "seen_as"} | {"clear_cache"}


def members(kind: type) -> set[str]:
    """The public members of a class."""
    return {name for name in dir(kind) if not name.startswith("_")}


def test_a_group_has_each_client_member_or_names_a_replacement() -> None:
    assert members(Client) - members(ClientGroup) == NOT_IN_GROUPS
    for name in members(Client) & members(ClientGroup):
        if callable(getattr(Client, name)):
            own = inspect.signature(getattr(ClientGroup, name)).parameters
            of_one = dict(inspect.signature(getattr(Client, name)).parameters)
            if name == "call_tool":
                del of_one["task"]  # a handle belongs to one server
            assert own == of_one, name


def test_a_blocking_group_has_them_likewise() -> None:
    client, group = (
        members_of("client/sync_client.pyi", name) for name in ("SyncClient", "SyncClientGroup")
    )
    assert client.keys() - group.keys() == BLOCKING
    assert group.keys() - client.keys() == {"failures", "servers"}
    for name in (client.keys() & group.keys()) - {"call_tool"}:
        assert group[name] == client[name], name


@both_lifecycles
async def test_a_member_of_one_server_is_pointed_to(revision: str) -> None:
    async with connect(two(), revision=revision) as client:
        group: Any = client
        server: Any = client.servers["git"]
        with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
            _ = group.nonsense
        if revision in PER_REQUEST:
            with pytest.raises(AbsentMethodError, match=r"use client\.ask_for_logs\(level\)"):
                await client.set_level("info")
        with connect_sync(two(), revision=revision) as blocking:
            for name in sorted(NOT_IN_GROUPS):
                for each in (group, blocking):
                    with pytest.raises(AttributeError, match=f"no attribute {name!r}") as refused:
                        getattr(each, name)
                    pointed = f"the client of a server has it: client.servers[name].{name}"
                    assert (pointed in str(refused.value)) == hasattr(server, name)
                    if name in BY_PAGE:
                        whole = name.removesuffix("_page")
                        assert f"{whole}() has the items of all servers" in str(refused.value)


@both_lifecycles
async def test_middleware_and_callbacks_are_for_every_server(revision: str) -> None:
    async def work(ctx: Context) -> str:
        await ctx.info("working")
        await ctx.report_progress(1, 2)
        return "done"

    servers = {name: Server(name) for name in ("a", "b")}
    for server in servers.values():
        server.add_tool(work, name="work")
    passed, logged, progress = list[str](), list[Any](), list[float]()
    async with connect({"mcpServers": servers}, revision=revision) as client:

        @client.middleware
        async def note(request: ClientRequest, next: ClientNext) -> Any:
            passed.append(f"{request.method} {request.target}")
            return await next(request)

        with (
            client.on_log(lambda message: logged.append(message.data)),
            client.on_progress(lambda done, total, text: progress.append(done)),
        ):
            for name in servers:
                await client.call_tool(f"{name}_work")
        await client.call_tool("a_work")
    assert passed == ["tools/call work"] * 3
    assert (logged, progress) == (["working"] * 2, [1, 1])
    async with connect({"mcpServers": {"git": git()}}, revision=revision) as alone:
        assert [tool.name for tool in await alone.list_tools()] == ["status", "count"]
        assert text_of(await alone.call_tool("status")) == "clean: ."


def test_the_blocking_client_opens_several_servers_too() -> None:
    with connect_sync(two()) as client:
        assert len(client.list_tools()) == 5
        assert text_of(client.call_tool("git_status")) == "clean: ."
        assert client.call_tool("git_count", returns=int) == 3
        assert text_of(client.servers["notes"].call_tool("status")) == "2 notes"
        call = model_call("openai", "git_status", {})
        assert client.call_from(call) == model_result("openai", "clean: .")
        names = list[str]()
        with (
            client.listen(tools=True) as changes,
            client.on_progress(lambda *_: names.extend(each.name for each in client.list_tools())),
        ):
            client.call_tool("notes_grow")
            assert next(changes) == ToolsChanged()
        assert "git_status" in names
        client.servers["notes"].close()
        with pytest.raises(ConnectionClosedError, match="server 'notes'"):
            client.call_tool("notes_status")
        assert list(client.failures) == ["notes"]
        assert text_of(client.call_tool("git_status")) == "clean: ."


HINTS: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
REFUSAL = {"code": -32000, "message": "not today"}


class Answering(FakeServer):
    """A server that answers requests by their method, and nothing else."""

    def __init__(self, revision: str, **answers: Mapping[str, Any]) -> None:
        super().__init__(revision)
        self.by_method = answers

    async def respond(self, message: dict[str, Any]) -> None:
        answer = self.by_method.get(message["method"].rpartition("/")[2])
        if answer is not None and "code" in answer:
            await self.say({"jsonrpc": "2.0", "id": message["id"], "error": answer})
        elif answer is not None:
            await self.answer(message, {**answer, **HINTS})


def resources(*uris: str, templates: tuple[str, ...] = ()) -> dict[str, Any]:
    """The answers of a server with these resources, by the end of the method."""
    return {
        "list": {
            "resources": [{"uri": uri, "name": "r"} for uri in uris],
            "resourceTemplates": [{"uriTemplate": each, "name": "t"} for each in templates],
        }
    }


def group(**servers: FakeServer) -> Any:
    """A client of these servers, which are of one revision."""
    revision = next(iter(servers.values())).revision
    return connect({"mcpServers": dict(servers)}, revision=revision)


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("declared", [True, False])
async def test_changed_roots_are_told_to_each_server(revision: str, declared: bool) -> None:
    servers = {"a": FakeServer(revision), "b": FakeServer(revision)}
    own: dict[str, Any] = {"handlers": handlers_with(list_roots={"roots": []})}
    own["capabilities"] = {"roots": {"listChanged": True}} if declared else {}
    async with connect({"mcpServers": servers}, revision=revision, **own) as client:
        await client.roots_list_changed()
        told = [[said["method"] for said in server.heard] for server in servers.values()]
    assert told == [["notifications/roots/list_changed"] if declared else []] * 2


@both_lifecycles
async def test_changes_go_on_until_the_last_server_fails(revision: str) -> None:
    modern = revision in PER_REQUEST
    a, b = ((Losing if modern else FakeServer)(revision) for _ in range(2))
    servers: list[Any] = [a, b]
    async with group(a=a, b=b) as client:
        listening = client.listen(tools=True, retry_seconds=())
        async with anyio.create_task_group() as tasks:
            for server in servers if modern else ():
                tasks.start_soon(server.agree)
            await listening.__aenter__()
        await b.hang_up()
        if modern:
            await servers[0].tell(CHANGED["toolsListChanged"])
        else:
            await a.notify(CHANGED["toolsListChanged"], {})
        assert await anext(listening) == ToolsChanged()
        await a.hang_up()
        with pytest.raises(ConnectionClosedError):
            await anext(listening)
        assert sorted(client.failures) == ["a", "b"]
        await listening.close()
        assert [change async for change in listening] == []


@both_lifecycles
async def test_listening_to_servers_without_changes_ends(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = FakeServer(revision, {"tools": {}}), FakeServer(revision, {})
    async with (
        group(a=a, b=b) as client,
        client.listen(tools=True, prompts=True, resources=True) as changes,
    ):
        assert [change async for change in changes] == []
    assert "no server tells of changes of what was asked for" in caplog.text


@both_lifecycles
@pytest.mark.parametrize(
    ("uri", "owner"),
    [
        ("x://b/1", "b"),
        ("x://c", "a"),
        ("x://b/{n}", "b"),
        ("w://{n}", "a"),
        ("y://", None),
        ("z:1", None),
    ],
)
async def test_the_longest_template_that_fits_decides(
    revision: str, uri: str, owner: str | None
) -> None:
    text = {"contents": [{"uri": uri, "text": "text"}]}
    a = Answering(revision, **resources(templates=("x://{n}", "y://{n}", "w://{n}")), read=text)
    b = Answering(
        revision, **resources(templates=("x://b/{n}", "y://{m}", "w://{m}", "{any}")), read=text
    )
    async with group(a=a, b=b) as client:
        if owner is None:
            reason = "a and b have it" if uri == "y://" else "no server lists it"
            with pytest.raises(InvalidParamsError, match=reason):
                await client.read_resource(uri)
        else:
            await client.read_resource(uri)
    reading = [
        name
        for name, server in (("a", a), ("b", b))
        if "resources/read" in [said["method"] for said in server.heard]
    ]
    assert reading == ([owner] if owner else [])


@both_lifecycles
async def test_if_every_server_refuses_a_list_the_first_error_counts(revision: str) -> None:
    a, b = (Answering(revision, list={**REFUSAL, "message": name}) for name in "ab")
    async with group(a=a, b=b) as client:
        with pytest.raises(RemoteError, match=r"\ba\b"):
            await client.list_tools()
        assert sorted(client.failures) == ["a", "b"]
        a.by_method = {"list": {"tools": []}}
        assert await client.list_tools() == []
        assert list(client.failures) == ["b"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_request_that_no_server_declares_is_refused(revision: str) -> None:
    a, b = FakeServer(revision, {}), FakeServer(revision, {"tools": {}})
    async with group(a=a, b=b) as client:
        with pytest.raises(MethodNotFoundError, match="none of the servers declares logging/set"):
            await client.set_level("info")
        assert await client.list_prompts() == []
    assert not [*a.heard, *b.heard]


@both_lifecycles
async def test_a_server_that_a_call_does_not_reach_has_failed(revision: str) -> None:
    failure = ConnectFailedError("http://a", "no route")

    class Unreachable(Answering):
        async def send(self, message: Any) -> None:
            if message.method == "tools/call":
                raise failure
            await super().send(message)

    a, b = Unreachable(revision, list={"tools": []}), Answering(revision, call=TEXT)
    async with group(a=a, b=b) as client:
        with pytest.raises(ConnectFailedError, match="no route"):
            await client.call_tool("a_t")
        assert client.failures == {"a": failure}
        assert text_of(await client.call_tool("b_t")) == "done"
        assert list(client.failures) == ["a"]


@both_lifecycles
async def test_requests_about_resources_go_to_the_server_that_has_them(revision: str) -> None:
    completed = {"completion": {"values": ["of b"]}}
    a = Answering(revision, **resources("x://a", templates=("x://{n}",)), read=REFUSAL)
    b = Answering(revision, **resources("x://b", templates=("x://b/{n}",)), complete=completed)
    async with group(a=a, b=b) as client:
        with pytest.raises(RemoteError) as refused:
            await client.read_resource("x://a")
        ref = {"type": "ref/resource", "uri": "x://b/{n}"}
        result = await client.complete(ref=ref, argument={"name": "n", "value": ""})
        assert not client.failures
    assert str(refused.value) == str(RemoteError(-32000, "not today", None, "resources/read"))
    assert result.completion.values == ["of b"]
    a, other = Answering(revision, read={"contents": []}), FakeServer(revision, {"tools": {}})
    async with group(a=a, other=other) as client:  # the only one of resources needs no lists
        await client.read_resource("x://a")
    assert [said["method"] for said in [*a.heard, *other.heard]] == ["resources/read"]
