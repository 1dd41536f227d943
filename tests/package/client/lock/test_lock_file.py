"""The file of a lock: its bytes, its faults, and processes that write it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kit.stdio_process import PATHS
from mcpgen_runtime import LockFileError
from mcpgen_runtime.client.lock import lock_file
from package.client.lock.locking import RUG_PULL, SHOP, ListingServer, at, locked, record


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
            async with locked(path, ListingServer(), **how):
                pass
        assert error in str(wrong.value)
    assert path.read_bytes() == data


async def test_an_item_that_was_changed_by_hand_is_an_error(recorded: Path) -> None:
    recorded.write_text(recorded.read_text().replace("Orders an item.", "Orders a thing."))
    with pytest.raises(LockFileError, match="/servers/shop/tools/order: was changed by hand"):
        async with locked(recorded, ListingServer()):
            pass


async def test_no_file_is_an_error(path: Path) -> None:
    with pytest.raises(LockFileError, match="mcpgen contract accept writes it"):
        async with locked(path, ListingServer()):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
async def test_a_pipe_or_a_folder_is_no_lock(path: Path) -> None:
    os.mkfifo(path)
    for place in (path, path.parent):
        with pytest.raises(LockFileError, match="expected a regular file"):
            async with locked(place, ListingServer()):
                pass


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
