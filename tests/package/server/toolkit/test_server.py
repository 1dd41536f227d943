"""A server as a whole: what it declares, pages of its lists, and how changes are told."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest

from kit.stdio_process import PATHS
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts, initialize, request, speaking_to
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.chosen import Server
from mcpgen_runtime.server.toolkit.content import Icon

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)
modern = pytest.mark.parametrize("revision", PER_REQUEST)


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


def declared_capabilities(server: Server, revision: str) -> Any:
    return server.capabilities(REVISIONS[revision])


@pytest.mark.requirement(
    "tools.declare-capability-initialize",
    "resources.declare-capability-initialize",
    "prompts.declare-capability-initialize",
    "completion.declare-capability-initialize",
    "logging.declare-capability-initialize",
)
@legacy
async def test_a_handshake_declares_what_is_registered(revision: str) -> None:
    async with speaking_to(full(subscribe=True), revision) as end:
        pass
    from mcpgen_runtime.transports.memory import memory_pair

    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(full(subscribe=True).serve, far)
        await near.send(OutgoingMessage(msgspec.json.encode(initialize(revision))))
        result = msgspec.json.decode(await near.receive())["result"]
        await near.close()
    expected = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
        "completions": {},
    }
    if revision == HANDSHAKE[0]:
        del expected["completions"]
    assert result["capabilities"] == expected
    assert result["serverInfo"] == {"name": "full", "version": "1"}
    assert end.revision == revision


@pytest.mark.requirement(
    "tools.declare-capability-discover",
    "resources.declare-capability-discover",
    "prompts.declare-capability-discover",
    "completion.declare-capability-discover",
    "logging.declare-capability-discover",
)
@modern
async def test_discovery_declares_what_is_registered(revision: str) -> None:
    async with speaking_to(full(), revision) as end:
        result = (await end.ask("server/discover"))["result"]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
        "completions": {},
    }


@pytest.mark.requirement(
    "tools.list-changed-flag-honest", "resources.list-changed-flag", "prompts.list-changed-flag"
)
@every
def test_flags_are_declared_only_for_what_the_server_will_send(revision: str) -> None:
    quiet = declared_capabilities(full(list_changed=False, logging=False), revision)
    assert (quiet["tools"], quiet["resources"], quiet["prompts"]) == ({}, {}, {})
    assert "logging" not in quiet
    assert declared_capabilities(Server("empty", logging=False), revision) == {}


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
        ("resources/read", {"uri": "x://a"}),
        ("prompts/list", {}),
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


@pytest.mark.parametrize("revision", [ALL[0], ALL[-1]])
def test_a_description_follows_what_is_registered(revision: str) -> None:
    server, child = Server("late", logging=False), Server("child", logging=False)
    server.mount(child)

    def described() -> set[str]:
        return {*server.describe(REVISIONS[revision]).capabilities}

    assert described() == set()
    server.tool("t")(plain)
    assert described() == {"tools"}
    child.prompt("p")(plain)
    assert described() == {"tools", "prompts"}


def test_more_capabilities_are_merged_in() -> None:
    server = full(capabilities={"experimental": {"mine": {}}, "tools": {"listChanged": False}})
    made = declared_capabilities(server, ALL[-1])
    assert made["experimental"] == {"mine": {}}
    assert made["tools"] == {"listChanged": False}
    assert made["prompts"] == {"listChanged": True}


@every
async def test_a_server_introduces_itself_as_far_as_the_revision_goes(revision: str) -> None:
    server = Server(
        "s", "2", title="S", website_url="https://s.example", icons=[Icon(src="data:,")]
    )
    info = server.describe(REVISIONS[revision]).info
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


def paged_server() -> Server:
    made = Server("paged", page_size=2)
    for number in range(5):
        made.tool(f"t{number}")(plain)
        made.prompt(f"p{number}")(plain)
        made.resource(f"x://r{number}")(plain)
        made.resource(f"x://{number}/{{value}}")(plain)
    return made


@pytest.mark.requirement(
    "pagination.next-cursor-if-more",
    "pagination.opaque-cursor",
    "pagination.operations",
    "pagination.stable-cursors",
)
@every
@pytest.mark.parametrize(("method", "member", "key"), METHODS)
async def test_lists_come_in_pages_without_gaps_or_repeats(
    revision: str, method: str, member: str, key: str
) -> None:
    pages: list[list[str]] = []
    async with speaking_to(paged_server(), revision) as end:
        params: dict[str, Any] = {}
        while True:
            result = (await end.ask(method, params))["result"]
            again = (await end.ask(method, params))["result"]
            assert again == result
            pages.append([item[key] for item in result[member]])
            if "nextCursor" not in result:
                break
            assert isinstance(result["nextCursor"], str)
            params = {"cursor": result["nextCursor"]}
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({item for page in pages for item in page}) == 5


@pytest.mark.requirement("pagination.invalid-cursor-error", "pagination.invalid-cursor-graceful")
@every
@pytest.mark.parametrize(("method", "member", "key"), METHODS)
async def test_a_bad_cursor_is_refused_and_the_session_goes_on(
    revision: str, method: str, member: str, key: str
) -> None:
    async with speaking_to(paged_server(), revision) as end:
        for cursor in ("", "garbage"):
            assert (await end.ask(method, {"cursor": cursor}))["error"]["code"] == -32602
        assert member in (await end.ask(method))["result"]


CHANGES: dict[str, Callable[[Server], None]] = {
    "notifications/tools/list_changed": lambda server: server.remove_tool("t"),
    "notifications/resources/list_changed": lambda server: server.remove_resource("x://a"),
    "notifications/prompts/list_changed": lambda server: server.remove_prompt("p"),
}


@pytest.mark.requirement("tools.list-changed-flag-honest")
@legacy
@pytest.mark.parametrize("notification", CHANGES)
async def test_a_session_hears_of_changes(revision: str, notification: str) -> None:
    server = full()
    async with speaking_to(server, revision) as end:
        await end.ask("ping")
        CHANGES[notification](server)
        assert (await end.receive())["method"] == notification
        for method, member, _ in METHODS[:3]:
            listed = (await end.ask(method))["result"][member]
            assert (listed == []) == (member in notification)


@pytest.mark.requirement(
    "tools.list-changed-flag-honest", "resources.list-changed-flag", "prompts.list-changed-flag"
)
@every
async def test_without_the_flag_no_change_is_told(revision: str) -> None:
    server = full(list_changed=False)
    async with speaking_to(server, revision) as end:
        for change in CHANGES.values():
            change(server)
        await end.ask("tools/list")
        await anyio.wait_all_tasks_blocked()
        await end.ask("tools/list")
        assert end.heard == []


@pytest.mark.requirement(
    "tools.list-changed-only-on-listen",
    "resources.list-changed-only-on-listen",
    "prompts.list-changed-only-on-listen",
)
@modern
@pytest.mark.parametrize(
    ("wanted", "notification"),
    [
        ("toolsListChanged", "notifications/tools/list_changed"),
        ("resourcesListChanged", "notifications/resources/list_changed"),
        ("promptsListChanged", "notifications/prompts/list_changed"),
    ],
)
async def test_a_stream_hears_of_the_changes_it_asked_for_and_no_other(
    revision: str, wanted: str, notification: str
) -> None:
    server = full()
    method = facts(revision).behaviour.listen
    assert method is not None
    async with speaking_to(server, revision) as end:
        await end.send(request(revision, method, {"notifications": {wanted: True}}, id="s"))
        assert (await end.receive())["params"]["notifications"] == {wanted: True}
        for change in CHANGES.values():
            change(server)
        heard = await end.receive()
        assert heard["method"] == notification
        assert heard["params"]["_meta"] == {facts(revision).meta.subscription_id: "s"}
        await end.ask("tools/list")
        await anyio.wait_all_tasks_blocked()
        await end.ask("tools/list")
        assert end.heard == []


@legacy
async def test_changes_may_be_made_in_any_thread(revision: str) -> None:
    server = full(subscribe=True)

    @server.tool()
    def touch() -> str:
        server.resource_updated("x://a")
        return threading.current_thread().name

    async with speaking_to(server, revision) as end:
        await end.ask("resources/subscribe", {"uri": "x://a"})
        await end.ask("tools/call", {"name": "touch"})
        heard = [*end.heard] or [await end.receive()]
        assert [message["method"] for message in heard] == ["notifications/resources/updated"]


@legacy
async def test_items_registered_later_are_not_part_of_open_sessions(revision: str) -> None:
    server = Server("late")
    server.prompt("p")(plain)
    async with speaking_to(server, revision) as end:
        server.tool("t")(plain)
        assert (await end.ask("tools/list"))["error"]["code"] == -32601
        assert end.heard == []
    async with speaking_to(server, revision) as end:
        assert len((await end.ask("tools/list"))["result"]["tools"]) == 1


@pytest.mark.requirement("prompts.list-answered", "tools.list-answered", "resources.list-answered")
@every
async def test_a_list_that_became_empty_is_still_answered(revision: str) -> None:
    server = full()
    for change in CHANGES.values():
        change(server)
    async with speaking_to(server, revision) as end:
        for method, member, _ in METHODS:
            assert (await end.ask(method))["result"][member] == []


@pytest.mark.structs("pydantic itself loads urllib.parse")
def test_the_import_of_a_server_loads_what_every_server_needs() -> None:
    code = """
import sys, anyio, msgspec
before = set(sys.modules)
from mcpgen_runtime import Context, Server, ToolError
late = {"anyio._core._tasks", "anyio.abc", "asyncio", "ipaddress", "urllib.parse"}
print(*sorted(late & (set(sys.modules) - before)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **PATHS},
    )
    assert done.stdout.strip() == ""
