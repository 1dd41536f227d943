"""The lock of a client: changed, new and inconsistent items, in lists, calls and files."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Raw

from kit.live import open_and_close
from kit.stdio_process import PATHS, SERVER
from kit.wire import HANDSHAKE, PER_REQUEST, both_lifecycles
from mcpgen_runtime import (
    ClientLimits,
    LockDifference,
    LockFileError,
    LockMismatchError,
    Server,
    connect,
)
from mcpgen_runtime.client.lock import lock_file
from mcpgen_runtime.client.lock.locked_requests import server_name
from package.client.lock.locking import (
    EVIL,
    IN,
    LATEST,
    NEW_TOOL,
    PLAIN,
    RUG_PULL,
    SHOP,
    ListingServer,
    at,
    list_all,
    locked,
    record,
    seen,
)


async def test_the_work_of_a_server_is_out_of_reach(recorded: Path) -> None:
    server = ListingServer()
    server.text, server.info = EVIL, {"name": "other", "version": "2"}
    server.capabilities = {"tools": {}, "prompts": {}, "resources": {}}
    async with locked(recorded, server) as client:
        await client.call_tool("order", {"item": "a"})
        await client.get_prompt("advise", {"about": "a"})
        await client.read_resource("shop://terms")
        assert client.lock_differences == ()


@both_lifecycles
async def test_a_server_as_recorded_is_shown_and_called(path: Path, revision: str) -> None:
    await record(path, revision=revision)
    async with locked(path, ListingServer(page=1), revision) as client:
        shown = await list_all(client)
        assert (shown["tool"], shown["prompt"]) == ({"order", "count"}, {"advise", "thank"})
        assert client.instructions == "Order sparingly."
        assert not (await client.call_tool("order", {"item": "a", "count": 1})).is_error
        assert client.lock_differences == ()


@both_lifecycles
async def test_a_call_without_a_list_lists_the_tools_first(path: Path, revision: str) -> None:
    await record(path, revision=revision)
    server = ListingServer(RUG_PULL, page=1)
    async with locked(path, server, revision) as client:
        await client.call_tool("count")
        assert server.methods.count("tools/list") == 2
        await client.call_tool("count")
        assert server.methods.count("tools/list") == 2
        with pytest.raises(LockMismatchError, match="tool 'order' is not what the lock records"):
            await client.call_tool("order", {"item": "a"})
    assert server.methods.count("tools/call") == 2


def page_of(result: Raw) -> list[dict[str, Any]]:
    """The tools of a page as raw JSON."""
    tools: list[dict[str, Any]] = json.loads(bytes(result))["tools"]
    return tools


@both_lifecycles
async def test_raw_requests_are_compared_as_well(path: Path, revision: str) -> None:
    await record(path, revision=revision)
    server = ListingServer(RUG_PULL)
    async with locked(path, server, revision) as client:
        page = page_of(await client.request_raw("tools/list"))
        assert [each["name"] for each in page] == ["count"]
        assert [each.name for each in (await client.request("tools/list")).tools] == ["count"]
        for params in ({"name": "order"}, Raw(b'{"name": "order"}')):
            with pytest.raises(LockMismatchError):
                await client.request_raw("tools/call", params)
        assert [each.name for each in (await client.list_tools_page()).tools] == ["count"]
    assert "tools/call" not in server.methods


MALFORMED = {**SHOP["tools"][1], "title": 5, "annotations": "a text"}


async def test_a_malformed_item_of_a_raw_list_is_left_out(recorded: Path) -> None:
    server = ListingServer({**SHOP, "tools": [*SHOP["tools"], MALFORMED, {"name": 1}]})
    async with locked(recorded, server) as client:
        assert page_of(await client.request_raw("tools/list")) == SHOP["tools"]


async def test_a_warning_admits_changed_and_leaves_out_new(
    recorded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ListingServer(at(NEW_TOOL, "tools/0/description", EVIL))
    async with locked(recorded, server, on_change="warn") as client:
        assert {each.name for each in await client.list_tools()} == {"order", "count"}
        await client.list_tools()
        await client.call_tool("order")
        with pytest.raises(LockMismatchError, match="'pay' is not in the lock"):
            await client.call_tool("pay")
    logged = [each.getMessage() for each in caplog.records if "tool 'order'" in each.getMessage()]
    assert len(logged) == 1
    assert "mcpgen contract accept TARGET --lock" in logged[0]
    assert EVIL not in caplog.text


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_decides_once_for_each_content(
    recorded: Path, answer: bool, is_async: bool
) -> None:
    asked: list[LockDifference] = []

    def ask(difference: LockDifference) -> bool:
        asked.append(difference)
        return answer

    async def ask_async(difference: LockDifference) -> bool:
        return ask(difference)

    server = ListingServer(at(NEW_TOOL, "tools/0/description", EVIL))
    how = ask_async if is_async else ask
    async with locked(recorded, server, on_change=how) as client:
        for _ in range(2):
            names = {each.name for each in await client.list_tools()}
            assert names == ({"order", "count", "pay"} if answer else {"count"})
        changed, new = asked
        assert (changed.name, changed.change) == ("order", "changed")
        assert (new.name, new.change) == ("pay", "new")
        texts = [(each or {}).get("description") for each in (changed.old, changed.new)]
        assert texts == ["Orders an item.", EVIL]
        server.lists = at(NEW_TOOL, "tools/0/description", "Something else.")
        await client.list_tools()
        assert len(asked) == 3


async def test_an_error_of_the_function_admits_nothing(recorded: Path) -> None:
    def ask(difference: LockDifference) -> bool:
        raise RuntimeError("the terminal is gone")

    server = ListingServer(RUG_PULL)
    async with locked(recorded, server, on_change=ask) as client:
        for call in (client.list_tools, lambda: client.call_tool("order")):
            with pytest.raises(RuntimeError, match="the terminal is gone"):
                await call()
    assert "tools/call" not in server.methods


@pytest.mark.parametrize("on_change", ["refuse", "warn", lambda difference: True])
async def test_a_change_between_two_lists_is_always_reported(
    recorded: Path, on_change: Any
) -> None:
    server = ListingServer()
    async with locked(recorded, server, on_change=on_change) as client:
        await client.list_tools()
        assert client.lock_differences == ()
        server.lists = RUG_PULL
        await client.list_tools()
        server.lists = SHOP
        await client.list_tools()
        reports = [(seen(each), each.since_list) for each in client.lock_differences]
        assert reports == [
            (("tool order", "changed", "/description"), True),
            (("tool order", "changed", ""), True),
        ]


async def test_a_list_that_is_not_locked_passes(recorded: Path) -> None:
    lock = json.loads(recorded.read_text())
    for kind in ("resources", "tools"):
        del lock["servers"]["shop"][kind]
    recorded.write_text(json.dumps(lock))
    lists = at(NEW_TOOL, "resources/+", {"uri": "shop://new", "name": "new"})
    server = ListingServer(lists)
    async with locked(recorded, server) as client:
        assert len(await client.list_resources()) == 2
        await client.read_resource("shop://new")
        await client.call_tool("pay")
        assert server.methods == ["resources/list", "resources/read", "tools/call"]
        assert page_of(await client.request_raw("tools/list")) == lists["tools"]
        assert client.lock_differences == ()


async def test_as_many_items_are_remembered_as_a_list_may_have(
    recorded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def ask(difference: LockDifference) -> bool:
        asked.append(difference.name)
        return True

    server = ListingServer()
    limits = ClientLimits(list_items=2)
    async with locked(recorded, server, on_change=ask, limits=limits) as client:
        for names, title in [*(("abacba"[n], "x") for n in range(6)), ("ba", "y"), ("cd", "x")]:
            tools = [{"name": each, "title": title, **PLAIN} for each in names]
            server.lists = {"tools": tools}
            await client.list_tools_page()
        assert "".join(asked) == "abcabacd"
        since = [each.since_list for each in client.lock_differences]
        assert since == [False] * 5 + [True] + [False] * 2
        listed = server.methods.count("tools/list")
        await client.call_tool("c")
        assert server.methods.count("tools/list") == listed
        with pytest.raises(LockMismatchError, match="tool 'a' is not listed by the server"):
            await client.call_tool("a")
    assert sum("tool 'c' is not in the lock" in each for each in caplog.messages) == 2


async def test_changes_are_compared_one_after_another_and_before_calls(recorded: Path) -> None:
    async def be_refused() -> None:
        with pytest.raises(LockMismatchError):
            await client.call_tool("order")

    async def change(lists: Mapping[str, Any]) -> None:
        server.lists = {**lists}
        await server.notify("notifications/tools/list_changed", {})
        await anyio.wait_all_tasks_blocked()

    server = ListingServer()
    async with locked(recorded, server) as client, anyio.create_task_group() as tasks:
        await client.call_tool("order")
        server.held = []
        for _ in range(3):
            await change(RUG_PULL)
        assert len(server.held) == 1
        tasks.start_soon(be_refused)
        await anyio.wait_all_tasks_blocked()
        assert [each["method"] for each in server.held] == ["tools/list"] * 2
        await server.let_go()
        await anyio.wait_all_tasks_blocked()
        assert server.methods == ["tools/list", "tools/call", *["tools/list"] * 3]
        await change(SHOP)
        assert server.methods[5:] == ["tools/list"]
        await client.call_tool("order")
        assert server.methods[6:] == ["tools/call"]


async def test_a_cached_list_has_admitted_items_alone(path: Path) -> None:
    revision = PER_REQUEST[-1]
    await record(path, revision=revision)
    server = ListingServer(RUG_PULL)
    server.ttl = 60_000
    async with locked(path, server, revision) as client:
        for _ in range(2):
            assert [each.name for each in await client.list_tools()] == ["count"]
        assert server.methods.count("tools/list") == 1
        with pytest.raises(LockMismatchError):
            await client.call_tool("order")


async def test_an_acceptance_takes_effect_in_an_open_session(recorded: Path) -> None:
    server = ListingServer(RUG_PULL)
    async with locked(recorded, server) as client:
        with pytest.raises(LockMismatchError):
            await client.call_tool("order")
        other = recorded.with_name("other.json")
        await record(other, RUG_PULL)
        other.replace(recorded)
        assert not (await client.call_tool("order")).is_error
        recorded.unlink()
        with pytest.raises(LockFileError, match="expected the file of a lock, got none"):
            await client.call_tool("order")


@pytest.mark.parametrize("on_change", ["warn", lambda difference: difference.kind == "server"])
async def test_another_revision_is_compared_with_the_newest(path: Path, on_change: Any) -> None:
    await record(path, RUG_PULL, HANDSHAKE[-2])
    server = ListingServer(at(RUG_PULL, "tools/1/description", EVIL))
    async with locked(path, server, on_change=on_change) as client:
        shown = {each.name for each in await client.list_tools()}
        assert shown == ({"order", "count"} if on_change == "warn" else set())
        assert [(each.kind, each.change) for each in client.lock_differences] == [
            ("server", "changed"),
            ("tool", "changed"),
            ("tool", "changed"),
        ]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("https://me:secret@shop.example/mcp?key=secret", "https://shop.example/mcp"),
        (["npx", "shop", "--token", "secret"], "npx shop --token ***"),
        (Path("shop.py"), "shop.py"),
    ],
)
def test_a_server_without_a_name_is_named_without_secrets(target: Any, name: str) -> None:
    assert server_name(target) == name


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"on_change": "warn"}, "on_change: only with lock="),
        ({"lock_name": "shop"}, "lock_name: only with lock="),
        ({"lock": "a", "lock_name": "b", "on_change": "ask"}, "on_change: expected refuse, warn"),
        ({"lock": "a", "lock_name": "b", "on_new_server": "no"}, "on_new_server: expected refuse"),
        ({"lock": "a"}, "expected lock_name="),
    ],
)
async def test_options_that_make_no_sense_are_errors(options: Any, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        await open_and_close(connect(Server("shop"), **options))


@both_lifecycles
async def test_an_unknown_server_or_an_older_revision_is_refused(
    recorded: Path, revision: str
) -> None:
    with pytest.raises(LockMismatchError, match="server 'other' is not in the lock") as refused:
        await open_and_close(
            connect(ListingServer(), revision=revision, lock=recorded, lock_name="other")
        )
    assert refused.value.difference.kind == "server"
    assert "mcpgen contract accept" in refused.value.__notes__[0]
    match = f"the session has {HANDSHAKE[0]}, the lock has {LATEST}"
    with pytest.raises(LockMismatchError, match=match):
        await open_and_close(
            locked(recorded, ListingServer(), HANDSHAKE[0], on_new_server="record")
        )


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_file_has_all_servers_of_a_configuration(path: Path) -> None:
    entry = {"command": SERVER[0], "args": SERVER[1:], "env": PATHS}
    config = {"mcpServers": {"one": entry, "two": entry}}
    await open_and_close(connect(config, lock=path, on_new_server="record"))
    lock = json.loads(path.read_text())
    assert {*lock["servers"]} == {"one", "two"}
    tools = lock["servers"]["two"]["tools"]
    name = min(tools)
    del tools[name]
    path.write_text(json.dumps(lock))
    async with connect(config, lock=path) as group:
        names = {tool.name for tool in await group.list_tools()}
        assert f"one_{name}" in names
        assert f"two_{name}" not in names
        assert [seen(each)[1] for each in group.lock_differences] == ["new"]
        assert group.lock_differences[0].server == "two"
        declared = [each["name"] for each in await group.tools_for("openai")]
        assert f"two_{name}" not in declared
        call: dict[str, Any] = {"type": "tool_use", "id": "1", "name": f"two_{name}", "input": {}}
        answer = await group.call_from(call)
        assert answer["is_error"]
        assert "is not in the lock" in json.dumps(answer)
        assert "mcpgen" not in json.dumps(answer)
    del lock["servers"]["two"]
    path.write_text(json.dumps(lock))
    async with connect(config, lock=path) as group:
        assert {*group.servers} == {"one"}
        assert isinstance(group.failures["two"], LockMismatchError)


async def test_a_terminal_never_gets_control_characters(
    recorded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = "\x1b[2J\u202eevil\n"
    server = ListingServer(at(SHOP, "tools/+", {"name": name, **PLAIN}))
    with caplog.at_level(logging.WARNING):
        async with locked(recorded, server) as client:
            await client.list_tools()
            with pytest.raises(LockMismatchError) as refused:
                await client.call_tool(name)
    assert str(refused.value).isprintable()
    assert caplog.records
    assert all(each.getMessage().isprintable() for each in caplog.records)


async def test_names_of_arguments_are_not_in_the_text_of_an_error(recorded: Path) -> None:
    server = ListingServer(at(SHOP, f"{IN}/properties/{EVIL}", {"type": "string"}))
    async with locked(recorded, server) as client:
        with pytest.raises(LockMismatchError) as refused:
            await client.call_tool("order")
        assert EVIL not in str(refused.value)
        assert refused.value.difference.pointers == (f"/inputSchema/properties/{EVIL}",)
        server.lists = at(SHOP, f"{IN}/properties/{'a' * 100_000}", {"type": "string"})
        await client.list_tools()
        difference = client.lock_differences[-1]  # of which nothing so long is kept
        assert (difference.new, difference.pointers) == (None, ("/inputSchema/properties",))


def nested_schema(levels: int) -> dict[str, Any]:
    """A schema of objects in objects."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


ORDER, ADVISE, TERMS, TEMPLATE = (
    "tool order",
    "prompt advise",
    "resource shop://terms",
    "resource template shop://items/{item}",
)
CHANGED: Mapping[str, Mapping[str, tuple[str, object]]] = {
    ORDER: {
        "a description": ("tools/0/description", EVIL),
        "no description": ("tools/0/description", ...),
        "a space": ("tools/0/description", "Orders an item. "),
        "invisible characters": ("tools/0/description", "Orders an item.\U000e0072\U000e006d"),
        "a letter of another alphabet": ("tools/0/description", "Orders \u0430n item."),
        "a long description": ("tools/0/description", f"Orders an item.{' ' * 20_000}{EVIL}"),
        "a title": ("tools/0/title", "Order now"),
        "the text of an argument": (f"{IN}/properties/item/description", EVIL),
        "the title of an argument": (f"{IN}/properties/item/title", EVIL),
        "one argument more": (f"{IN}/properties/note", {"description": EVIL}),
        "one argument less": (f"{IN}/properties/size", ...),
        "a required argument": (f"{IN}/required/+", "size"),
        "an optional argument": (f"{IN}/required", ["item"]),
        "the type of an argument": (f"{IN}/properties/count/type", "string"),
        "a bound": (f"{IN}/properties/count/minimum", 0),
        "an allowed value": (f"{IN}/properties/size/enum/+", EVIL),
        "a default": (f"{IN}/properties/count/default", 100),
        "a number for a boolean": (f"{IN}/properties/gift/default", 1),
        "an example": (f"{IN}/properties/item/examples", [EVIL]),
        "a definition": (f"{IN}/$defs/address/description", EVIL),
        "further arguments": (f"{IN}/additionalProperties", {"description": EVIL}),
        "a keyword of nobody": (f"{IN}/x-note", EVIL),
        "a comment": (f"{IN}/$comment", EVIL),
        "the text of a result": ("tools/0/outputSchema/properties/price/description", EVIL),
        "no schema of results": ("tools/0/outputSchema", ...),
        "a tool that writes": ("tools/0/annotations/readOnlyHint", False),
        "a hint more": ("tools/0/annotations/destructiveHint", False),
        "a title in annotations": ("tools/0/annotations/title", "Read"),
        "no annotations": ("tools/0/annotations", ...),
        "an icon": ("tools/0/icons/0/src", "https://evil.example/x.png"),
        "a task": ("tools/0/execution/taskSupport", "required"),
        "a user interface": ("tools/0/_meta/ui", {"resourceUri": "ui://evil"}),
    },
    "tool count": {"a schema of results": ("tools/1/outputSchema", {"type": "object"})},
    ADVISE: {
        "a prompt's description": ("prompts/0/description", EVIL),
        "a prompt's title": ("prompts/0/title", EVIL),
        "a prompt's argument": ("prompts/0/arguments/0/description", EVIL),
        "a prompt's optional argument": ("prompts/0/arguments/0/required", ...),
        "a prompt's further argument": ("prompts/0/arguments/+", {"name": "key"}),
    },
    TERMS: {
        "a resource's description": ("resources/0/description", EVIL),
        "a resource's name": ("resources/0/name", EVIL),
        "a resource's title": ("resources/0/title", EVIL),
        "a resource's type": ("resources/0/mimeType", "text/html"),
        "a resource's priority": ("resources/0/annotations/priority", 1),
    },
    TEMPLATE: {"a template's description": ("resourceTemplates/0/description", EVIL)},
}
"""Mutations of the shop by item: path and value, and the path is what a client reports."""
NEW_RESOURCE = {"uri": "shop://key", "name": "key"}
CAUGHT: Mapping[str, tuple[str, object, tuple[str, str, str]]] = {
    **{
        name: (path, value, (item, "changed", "/" + path.split("/", 2)[2].removesuffix("/+")))
        for item, mutations in CHANGED.items()
        for name, (path, value) in mutations.items()
    },
    "extra data": (
        "tools/0/_meta",
        {"example.com/level": 2},
        (ORDER, "changed", "/_meta/example.com~1level"),
    ),
    "a schema that is nested deeply": (
        f"{IN}/properties/item",
        nested_schema(100),
        (ORDER, "changed", "/inputSchema/properties/item/description"),
    ),
    "a resource's audience": (
        "resources/0/annotations/audience",
        ["assistant"],
        (TERMS, "changed", "/annotations/audience/0"),
    ),
    "a tool more": ("tools/+", {"name": "pay", **PLAIN}, ("tool pay", "new", "")),
    "a tool with a name of JavaScript": (
        "tools/+",
        {"name": "__proto__", **PLAIN},
        ("tool __proto__", "new", ""),
    ),
    "a tool with a similar name": (
        "tools/+",
        {"name": "\u043erder", **PLAIN},
        ("tool \u043erder", "new", ""),
    ),
    "a tool of another name": ("tools/1/name", "Count", ("tool Count", "new", "")),
    "a tool less": ("tools/1", ..., ("tool count", "removed", "")),
    "a tool twice": (
        "tools/+",
        {**SHOP["tools"][0], "description": EVIL},
        (ORDER, "inconsistent", "/description"),
    ),
    "a prompt more": ("prompts/+", {"name": "leak"}, ("prompt leak", "new", "")),
    "a prompt less": ("prompts/1", ..., ("prompt thank", "removed", "")),
    "a resource more": ("resources/+", NEW_RESOURCE, ("resource shop://key", "new", "")),
    "a template of another URI": (
        "resourceTemplates/0/uriTemplate",
        "file:///{item}",
        ("resource template file:///{item}", "new", ""),
    ),
    "instructions": ("instructions", EVIL, ("instructions", "changed", "")),
    "no instructions": ("instructions", "", ("instructions", "changed", "")),
}
"""All mutations by path and value, each with the difference that a client reports."""
OUT_OF_REACH: Mapping[str, tuple[str, object, str]] = {
    "the size of a resource": ("resources/0/size", 4, "describes the content"),
    "the time of a change": (
        "resources/0/annotations/lastModified",
        "2026-01-01T00:00:00Z",
        "describes the content",
    ),
    "a member of no revision": ("tools/0/note", EVIL, "typed items do not have it"),
    "a float for an integer": (f"{IN}/properties/count/minimum", 1.0, "the same value"),
    "an item that is listed twice alike": ("tools/+", SHOP["tools"][1], "the same item"),
    "an order": ("tools", [*reversed(SHOP["tools"])], "order does not count"),
}
"""Mutations of the lists that are no difference, each with the reason."""


def test_the_tables_have_as_many_mutations_as_the_page_says() -> None:
    assert (len(CAUGHT), len(OUT_OF_REACH)) == (59, 6)


@pytest.mark.parametrize(("place", "value", "expected"), CAUGHT.values(), ids=CAUGHT)
async def test_a_mutation_is_reported_and_not_shown(
    place: str, value: object, expected: tuple[str, str, str], recorded: Path
) -> None:
    server = ListingServer(at(SHOP, place, value), page=1)
    async with locked(recorded, server) as client:
        shown = await list_all(client)
        assert expected in [seen(each) for each in client.lock_differences]
        kind, _, name = expected[0].rpartition(" ")
        assert name not in shown.get(kind, set())
        assert client.instructions in ("Order sparingly.", None)
        call: Any = {
            "tool": client.call_tool,
            "prompt": client.get_prompt,
            "resource": client.read_resource,
        }.get(kind)
        if call is not None:
            with pytest.raises(LockMismatchError) as refused:
                await call(name)
            change = "unlisted" if expected[1] == "removed" else expected[1]
            assert seen(refused.value.difference)[:2] == (expected[0], change)
    assert not {"tools/call", "prompts/get", "resources/read"} & {*server.methods}


@pytest.mark.parametrize(("place", "value"), [row[:2] for row in OUT_OF_REACH.values()])
async def test_a_mutation_out_of_reach_is_no_difference(
    place: str, value: object, recorded: Path
) -> None:
    async with locked(recorded, ListingServer(at(SHOP, place, value))) as client:
        assert len((await list_all(client))["tool"]) == 2
        assert client.lock_differences == ()


async def test_invisible_characters_are_visible_in_the_file(path: Path) -> None:
    await record(path, at(SHOP, "tools/0/description", "hidden \u202e\U000e0041"))
    text = path.read_bytes()
    assert text.isascii()
    assert b"\\u202e\\udb40\\udc41" in text


WRONG: Mapping[str, tuple[bytes, str]] = {
    "not UTF-8": (b"\xff\xfe", "expected JSON"),
    "cut": (b'{"lock": 1, "servers": {', "expected JSON"),
    "an array": (b"[]", "/lock: expected 1, got no object"),
    "another version": (b'{"lock": 2, "servers": {}}', "/lock: expected 1, got 2"),
    "a member twice": (b'{"lock": 1, "servers": {}, "servers": {}}', "a member twice"),
    "no number": (b'{"lock": 1, "servers": NaN}', "NaN is no JSON"),
    "no servers": (b'{"lock": 1}', "/servers: expected an object, got None"),
    "no revisions": (b'{"lock": 1, "servers": {"a": {}}}', "/servers/a/revisions"),
    "deep": (b'{"lock":' + b"[" * 100_000, "expected JSON"),
}


async def test_the_same_server_gives_the_same_bytes_and_is_recorded_once(recorded: Path) -> None:
    before = recorded.read_bytes()
    recorded.unlink()
    await record(recorded, {**SHOP, "tools": [*reversed(SHOP["tools"])]})
    assert recorded.read_bytes() == before
    assert [each.name for each in recorded.parent.iterdir()] == [recorded.name]
    async with locked(recorded, ListingServer(RUG_PULL), on_new_server="record") as client:
        assert [each.name for each in await client.list_tools()] == ["count"]
    assert recorded.read_bytes() == before


@pytest.mark.parametrize(("data", "error"), WRONG.values(), ids=WRONG)
async def test_a_file_that_is_no_lock_is_an_error(path: Path, data: bytes, error: str) -> None:
    path.write_bytes(data)
    for how in ({}, {"on_new_server": "record"}):
        with pytest.raises(LockFileError) as wrong:
            await open_and_close(locked(path, ListingServer(), **how))
        assert error in str(wrong.value)
    assert path.read_bytes() == data


async def test_an_item_that_was_changed_by_hand_is_an_error(recorded: Path) -> None:
    recorded.write_text(recorded.read_text().replace("Orders an item.", "Orders a thing."))
    with pytest.raises(LockFileError, match="/servers/shop/tools/order: was changed by hand"):
        await open_and_close(locked(recorded, ListingServer()))


async def test_no_file_is_an_error(path: Path) -> None:
    with pytest.raises(LockFileError, match="mcpgen contract accept writes it"):
        await open_and_close(locked(path, ListingServer()))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
async def test_a_pipe_or_a_folder_is_no_lock(path: Path) -> None:
    os.mkfifo(path)
    for place in (path, path.parent):
        with pytest.raises(LockFileError, match="expected a regular file"):
            await open_and_close(locked(place, ListingServer()))


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
async def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "shared" / "lock.json"
    target.parent.mkdir()
    path.symlink_to(target)
    await record(path)
    assert path.is_symlink()
    async with locked(path, ListingServer()) as client:
        assert len(await client.list_tools()) == 2


WRITER = """
import sys
from pathlib import Path
from mcpgen_runtime.client.lock.lock_file import Surface, update_lock

for number in range(20):
    name = f"{sys.argv[2]}{number}"
    update_lock(Path(sys.argv[1]), lambda servers: {**servers, name: {"r": Surface({}, name)}})
"""


def test_two_processes_that_write_lose_nothing(path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(path)]
    environment = {**os.environ, "PYTHONPATH": PATHS["PYTHONPATH"]}
    writers = [subprocess.Popen([*command, name], env=environment) for name in ("a", "b")]
    assert [each.wait(60) for each in writers] == [0, 0]
    assert len(lock_file.read_lock(path)) == 40
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_surfaces_of_several_revisions_are_read_as_written(path: Path) -> None:
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    surfaces = {
        "newest": lock_file.surface_of({"tools": [tool, {**tool, "name": "b"}]}, "Hello."),
        "older": lock_file.surface_of({"tools": [{**tool, "description": "x"}]}, ""),
        "oldest": lock_file.surface_of({"tools": [tool, {**tool, "name": "b"}]}, "Hello."),
    }
    lock_file.update_lock(path, lambda servers: {**servers, "shop": surfaces})
    assert lock_file.read_lock(path) == {"shop": surfaces}
    document = json.loads(path.read_text())["servers"]["shop"]
    assert {*document["earlier"]} == {"older"}
    assert document["earlier"]["older"]["tools"]["b"] is None


def test_large_and_deep_items_are_compared_as_a_whole() -> None:
    entries: list[dict[str, object]] = []
    for text in ("a", "b"):
        schema: dict[str, object] = {"description": text * 1_200_000}
        for _ in range(100):
            schema = {"not": schema}
        entries.append({"name": "a", "inputSchema": schema})
    (pointer,) = lock_file.changed_pointers("tools", *entries)
    assert pointer == "/inputSchema"
