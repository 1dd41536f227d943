"""The lock of a client: changed, new and inconsistent items, in lists, calls and files."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Raw

from kit.stdio_process import PATHS, SERVER
from kit.wire import HANDSHAKE, PER_REQUEST
from mcpgen_runtime import (
    LockDifference,
    LockFileError,
    LockMismatchError,
    Server,
    connect,
)
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

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("revision", [HANDSHAKE[-1], PER_REQUEST[-1]])


async def test_the_work_of_a_server_is_out_of_reach(recorded: Path) -> None:
    server = ListingServer()
    server.text, server.info = EVIL, {"name": "other", "version": "2"}
    server.capabilities = {"tools": {}, "prompts": {}, "resources": {}}
    async with locked(recorded, server) as client:
        await client.call_tool("order", {"item": "a"})
        await client.get_prompt("advise", {"about": "a"})
        await client.read_resource("shop://terms")
        assert client.lock_differences == ()


@both
async def test_a_server_as_recorded_is_shown_and_called(path: Path, revision: str) -> None:
    await record(path, revision=revision)
    async with locked(path, ListingServer(page=1), revision) as client:
        shown = await list_all(client)
        assert (shown["tool"], shown["prompt"]) == ({"order", "count"}, {"advise", "thank"})
        assert client.instructions == "Order sparingly."
        assert not (await client.call_tool("order", {"item": "a", "count": 1})).is_error
        assert client.lock_differences == ()


@both
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


@both
async def test_raw_requests_are_compared_as_well(path: Path, revision: str) -> None:
    await record(path, revision=revision)
    server = ListingServer(RUG_PULL)
    async with locked(path, server, revision) as client:
        page = json.loads(bytes(await client.request_raw("tools/list")))
        assert [each["name"] for each in page["tools"]] == ["count"]
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
        page = json.loads(bytes(await client.request_raw("tools/list")))
        assert page["tools"] == SHOP["tools"]


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
    del lock["servers"]["shop"]["resources"]
    recorded.write_text(json.dumps(lock))
    lists = at(SHOP, "resources/+", {"uri": "shop://new", "name": "new"})
    async with locked(recorded, ListingServer(lists)) as client:
        assert len(await client.list_resources()) == 2
        await client.read_resource("shop://new")
        assert client.lock_differences == ()


async def test_a_notification_has_the_list_compared_at_once(recorded: Path) -> None:
    server = ListingServer()
    event = anyio.Event()

    async def ask(difference: LockDifference) -> bool:
        event.set()
        return False

    async with locked(recorded, server, on_change=ask) as client:
        await client.call_tool("order")
        server.lists = RUG_PULL
        await server.notify("notifications/tools/list_changed", {})
        with anyio.fail_after(10):
            await event.wait()
        assert client.lock_differences[0].since_list
        with pytest.raises(LockMismatchError):
            await client.call_tool("order")
    assert server.methods.count("tools/call") == 1


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
        async with connect(Server("shop"), **options):
            pass


@both
async def test_an_unknown_server_or_an_older_revision_is_refused(
    recorded: Path, revision: str
) -> None:
    with pytest.raises(LockMismatchError, match="server 'other' is not in the lock") as refused:
        async with connect(ListingServer(), revision=revision, lock=recorded, lock_name="other"):
            pass
    assert refused.value.difference.kind == "server"
    assert "mcpgen contract accept" in refused.value.__notes__[0]
    match = f"the session has {HANDSHAKE[0]}, the lock has {LATEST}"
    with pytest.raises(LockMismatchError, match=match):
        async with locked(recorded, ListingServer(), HANDSHAKE[0], on_new_server="record"):
            pass


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_file_has_all_servers_of_a_configuration(path: Path) -> None:
    entry = {"command": SERVER[0], "args": SERVER[1:], "env": PATHS}
    config = {"mcpServers": {"one": entry, "two": entry}}
    async with connect(config, lock=path, on_new_server="record"):
        pass
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
