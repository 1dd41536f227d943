"""The lock of a client: changed, new and inconsistent items, in lists, calls and files."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import anyio
import pytest
from filelock import FileLock
from msgspec import Raw
from syrupy.assertion import SnapshotAssertion

from kit.limits import SetLimit
from kit.live import open_and_close
from kit.stdio_process import PATHS, SERVER
from kit.wire import HANDSHAKE, PER_REQUEST, both_lifecycles
from mcpgen_runtime import (
    ClientLimits,
    LockDifference,
    LockFileError,
    LockMismatchError,
    MissingExtraError,
    RemoteError,
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
        await client.request_raw(
            "tools/call", Raw(b'{"name": 5}')
        )  # the server may say what it lacks
    assert server.methods[-1] == "tools/call"


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
        changes = [each.change for each in client.lock_differences]
        assert changes[-3:] == ["removed", "removed", "unlisted"]
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
        assert [each.change for each in client.lock_differences] == ["changed"]


class PartialServer(ListingServer):
    """A server that refuses the requests of some lists."""

    refused: Collection[str] = ("resources/templates/list",)

    async def _answer(self, request: Mapping[str, Any]) -> None:
        if request["method"] in self.refused:
            error = {"code": -32601, "message": "there is none"}
            await self.say({"jsonrpc": "2.0", "id": request["id"], "error": error})
        else:
            await super()._answer(request)


async def test_lists_that_a_server_lacks_are_recorded_as_empty(path: Path) -> None:
    server = PartialServer()
    server.capabilities = {"tools": {}, "resources": {}}
    record_it: Any = {"on_new_server": "record"}
    async with locked(path, server, **record_it):
        assert "prompts/list" not in server.methods
    (surface,) = lock_file.read_lock(path)["shop"].values()
    recorded = {kind: sorted(items) for kind, items in surface.entries.items() if items}
    assert recorded == {"tools": ["count", "order"], "resources": ["shop://terms"]}
    assert surface.entries.keys() == lock_file.KINDS.keys()
    path.unlink()
    server = PartialServer()
    server.refused = ("tools/list",)
    with pytest.raises(RemoteError, match="there is none"):
        await open_and_close(locked(path, server, **record_it))
    assert not path.exists()


async def test_a_comparison_that_fails_is_logged_and_made_before_the_next_call(
    recorded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def change(lists: Mapping[str, Any]) -> None:
        server.lists = {**lists}
        await server.notify("notifications/tools/list_changed", {})
        await anyio.wait_all_tasks_blocked()

    async def ask(difference: LockDifference) -> bool:
        raise RuntimeError("the terminal is gone")

    server = PartialServer()
    async with locked(recorded, server, on_change=ask) as client:
        await client.call_tool("order")
        await change(RUG_PULL)
        server.refused = ("tools/list",)
        await change(SHOP)
        server.refused = ()
        assert not (await client.call_tool("order")).is_error
    failures = [each.partition("lock: ")[2] for each in caplog.messages if "not compared" in each]
    assert failures == ["on_change failed", "tools/list: there is none (code -32601)"]


async def test_an_acceptance_takes_effect_in_an_open_session(recorded: Path) -> None:
    server = ListingServer(RUG_PULL)
    async with locked(recorded, server) as client:
        with pytest.raises(LockMismatchError):
            await client.call_tool("order")
        other = recorded.with_name("other.json")
        await record(other, RUG_PULL)
        other.replace(recorded)
        assert len(await client.list_tools()) == 2
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
    recorded: Path, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(LockMismatchError, match="server 'other' is not in the lock") as refused:
        await open_and_close(
            connect(ListingServer(), revision=revision, lock=recorded, lock_name="other")
        )
    assert refused.value.difference.kind == "server"
    assert "server 'other' is not in the lock; to review" in caplog.text
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


MUTATIONS = json.loads(Path(__file__).with_name("mutations.json").read_text("utf-8"))
"""Mutations of the lists of the shop: the place, and the value there, if it is not removed.

Those that are caught have the difference that a client reports, the others a reason.
"""
CAUGHT = {
    **MUTATIONS["caught"],
    "a long description": {
        **MUTATIONS["caught"]["a description"],
        "value": f"Orders an item.{' ' * 20_000}{EVIL}",
    },
}
OUT_OF_REACH = MUTATIONS["out of reach"]


def mutate(mutation: Mapping[str, Any]) -> dict[str, Any]:
    """The lists of the shop with a mutation."""
    return at(SHOP, mutation["place"], mutation.get("value", ...))


def test_the_tables_have_as_many_mutations_as_the_page_says() -> None:
    assert (len(CAUGHT), len(OUT_OF_REACH)) == (59, 6)


@pytest.mark.parametrize("mutation", CAUGHT.values(), ids=CAUGHT)
async def test_a_mutation_is_reported_and_not_shown(
    mutation: Mapping[str, Any], recorded: Path
) -> None:
    server = ListingServer(mutate(mutation), page=1)
    expected = tuple(mutation["expected"])
    async with locked(recorded, server) as client:
        shown = await list_all(client)
        assert expected in [seen(each) for each in client.lock_differences]
        olds = {each.old is None for each in client.lock_differences if each.change == "changed"}
        assert olds <= {False}
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


@pytest.mark.parametrize("mutation", OUT_OF_REACH.values(), ids=OUT_OF_REACH)
async def test_a_mutation_out_of_reach_is_no_difference(
    mutation: Mapping[str, Any], recorded: Path
) -> None:
    async with locked(recorded, ListingServer(mutate(mutation))) as client:
        assert len((await list_all(client))["tool"]) == 2
        assert client.lock_differences == ()


async def test_invisible_characters_are_visible_in_the_file(path: Path) -> None:
    await record(path, at(SHOP, "tools/0/description", "hidden \u202e\U000e0041"))
    text = path.read_bytes()
    assert text.isascii()
    assert b"\\u202e\\udb40\\udc41" in text


INVALID = json.loads(Path(__file__).with_name("invalid_locks.json").read_text("utf-8"))
WRONG = [b"\xff\xfe", b'{"lock":' + b"[" * 100_000, *map(str.encode, INVALID)]
"""Files that are no lock."""


async def test_the_same_server_gives_the_same_bytes_and_is_recorded_once(recorded: Path) -> None:
    before = recorded.read_bytes()
    recorded.unlink()
    await record(recorded, {**SHOP, "tools": [*reversed(SHOP["tools"])]})
    assert recorded.read_bytes() == before
    assert [each.name for each in recorded.parent.iterdir()] == [recorded.name]
    async with locked(recorded, ListingServer(RUG_PULL), on_new_server="record") as client:
        assert [each.name for each in await client.list_tools()] == ["count"]
    assert recorded.read_bytes() == before


def test_a_file_that_is_no_lock_is_an_error(path: Path, snapshot: SnapshotAssertion) -> None:
    rows: list[str] = []
    for data in WRONG:
        path.write_bytes(data)
        with pytest.raises(LockFileError) as wrong:
            lock_file.read_lock(path)
        assert (wrong.value.path, wrong.value.server) == (path, "")
        shown = data.decode("utf-8", "replace")[:90]
        text = re.sub("(read: )(?!an object|NaN).*", r"\1...", str(wrong.value))  # of json itself
        rows.append(f"{shown} -> {text.removeprefix(f'{path}: ')}")
    assert rows == snapshot


async def test_a_file_that_is_no_lock_stays_as_it_is(path: Path) -> None:
    path.write_bytes(WRONG[0])
    for how in ({}, {"on_new_server": "record"}):
        with pytest.raises(LockFileError, match="expected JSON"):
            await open_and_close(locked(path, ListingServer(), **how))
    assert path.read_bytes() == WRONG[0]


async def test_no_file_is_an_error(path: Path) -> None:
    with pytest.raises(LockFileError, match="mcpgen contract accept writes it"):
        await open_and_close(locked(path, ListingServer()))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
async def test_a_pipe_or_a_folder_is_no_lock(path: Path) -> None:
    os.mkfifo(path)
    kind = "expected a regular file"
    for place, text in ((path, kind), (path.parent, kind), (Path("/proc/self/mem"), "be read: ")):
        with pytest.raises(LockFileError, match=text):
            await open_and_close(locked(place, ListingServer()))


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
async def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "shared" / "lock.json"
    target.parent.mkdir()
    path.symlink_to(target)
    await record(path)
    assert path.is_symlink()
    assert target.stat().st_mode & 0o7777 == 0o644
    target.chmod(0o640)
    lock_file.update_lock(path, lambda servers: servers)
    assert target.stat().st_mode & 0o7777 == 0o640
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


def test_a_lock_that_can_not_be_written_is_an_error(
    path: Path, set_limit: SetLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def occupy(servers: lock_file.Servers) -> lock_file.Servers:
        path.mkdir()
        return servers

    set_limit("pkg.client.lock.lock_file.WRITE_SECONDS", 0.01)
    held = "another process writes it for more than 0.01 s"
    guard = FileLock(path.with_name(f".{path.name}.guard"))
    with guard, pytest.raises(LockFileError, match=held):
        lock_file.update_lock(path, lambda servers: servers)
    deep = reduce(lambda inner, _: {"a": inner}, range(5000), dict[str, Any]())
    surface = lock_file.Surface({"tools": {"b": deep}})
    with pytest.raises(LockFileError, match="an item is nested too deeply to be recorded"):
        lock_file.update_lock(path, lambda servers: {"a": {"r": surface}})
    assert not path.exists()
    with pytest.raises(LockFileError, match=r"\.json: can't be written: "):
        lock_file.update_lock(path, occupy)
    left = {each.name for each in path.parent.iterdir()} - {f".{path.name}.guard"}
    assert left == {path.name}  # the folder that another program has made meanwhile
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(MissingExtraError, match="pip install filelock"):
        lock_file.update_lock(path, lambda servers: servers)


def test_surfaces_of_several_revisions_are_read_as_written(
    path: Path, snapshot: SnapshotAssertion
) -> None:
    tool: dict[str, Any] = {
        "name": "a",
        "inputSchema": {"type": "object", "minimum": 1.0, "x": [2.0, 2.5]},
    }
    other = {"name": "b", "description": "\u00e9", "icons": [{"src": "i", "no": 1}, 5], "no": 1}
    prompt = {"name": "p", "arguments": [{"name": "q", "required": True, "no": 1}], "title": None}
    lists = {"tools": [tool, other, {**tool, "title": "second"}], "prompts": [prompt]}
    surfaces = {
        "newest": lock_file.surface_of(lists, "Hello."),
        "older": lock_file.surface_of({"tools": [{**tool, "title": "x"}], "prompts": []}, ""),
        "oldest": lock_file.surface_of(lists, "Hello."),
    }
    lock_file.update_lock(path, lambda servers: {**servers, "shop": surfaces})
    assert lock_file.read_lock(path) == {"shop": surfaces}
    assert path.read_bytes().decode("ascii") == snapshot


CHANGED = (("k" * 1000, 2, 1), ("k" * 1001, 2, 1), ("k" * 1001, 1, 2))
LONG = [({"x": {key: 1, "l": 1}}, {"x": {key: own, "l": other}}) for key, own, other in CHANGED]


def test_the_places_of_changes_are_sorted_and_at_most_twenty(snapshot: SnapshotAssertion) -> None:
    changes = json.loads(Path(__file__).with_name("changes.json").read_text("utf-8"))
    changes += [("tools", *each) for each in LONG]
    places = [lock_file.changed_pointers(*change) for change in changes]
    assert [" ".join(each)[:200] for each in places] == snapshot


@pytest.mark.parametrize(("more", "place"), [(0, "/inputSchema/description"), (2, "/inputSchema")])
def test_large_items_are_compared_as_a_whole(more: int, place: str) -> None:
    around = len(json.dumps({"inputSchema": {"description": ""}})) + len('{"description": ""}')
    left = 4 * 1024 * 1024 + more - 2 * around  # characters of both texts, at two levels
    texts = ("a" * (left // 4), "b" * (left // 2 - left // 4))
    entries = ({"inputSchema": {"description": text}} for text in texts)
    assert lock_file.changed_pointers("tools", *entries) == (place,)


def test_a_difference_is_one_sentence(snapshot: SnapshotAssertion) -> None:
    pointers = ("/inputSchema/a", "/inputSchema/b", "/title", "/\u202e")
    assert [
        str(replace(LockDifference("s", *row), since_list=since))
        for row in (
            *(("tool", "a", "changed", pointers), ("resource template", "a\n", "new")),
            *(("prompt", "a", "inconsistent"), ("resource", "a", "removed")),
            *(("instructions", "", "changed"), ("server", "s", "new"), ("tool", "a", "unlisted")),
        )
        for since in (False, True)
    ] == snapshot
