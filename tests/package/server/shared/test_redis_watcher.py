"""One command that waits for the entries of all streams."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
from syrupy.assertion import SnapshotAssertion

from kit.simulation import on_virtual_clock
from mcpgen_runtime import SharedStateError
from mcpgen_runtime.server.shared.redis_watcher import StreamWatcher

pytestmark = on_virtual_clock


async def test_one_command_waits_for_all_streams(snapshot: SnapshotAssertion) -> None:
    seen: list[str] = []
    replies: asyncio.Queue[Any] = asyncio.Queue()

    async def read(words: Any) -> list[Any]:
        seen.append(f"{words}")
        try:
            reply = await replies.get()
        finally:
            seen.append("read")
        if isinstance(reply, Exception):
            raise reply
        return [reply]

    async def call_all(*commands: Any) -> list[Any]:
        seen.append(f"{commands}")
        return [b"string" if key == "c" else b"stream" for _, key, *_ in commands]

    async def wait(*words: Any) -> None:
        try:
            await watcher.wait(*words)
            seen.append(f"{words} waited")
        except SharedStateError as error:
            seen.append(f"{words} failed: {error}")

    tasks: list[asyncio.Task[None]] = []
    watcher = StreamWatcher(read, call_all, "wake")
    await watcher.close()
    wake, entry = [(b"wake", [(b"7-0", []), (b"8-0", [])])], [(b"a", [(b"0-6", [])])]
    no = SharedStateError("no")
    for step in (
        ("a", 5, 60),
        ("a", 5, 60),
        ("a", 6, 60),
        ("b", 1, 60),
        ("b", 0, 60),
        wake,
        None,
        entry,
        ("c", 0, 60),
        wake,
        no,
        ("a", 9, 0),
        no,
        ("a", 9, 60),
        "close",
    ):
        seen.append(f"- {step}")
        if isinstance(step, tuple):
            tasks.append(asyncio.create_task(wait(*step)))
        elif step == "close":
            await watcher.close()
        else:
            replies.put_nowait(step)
        await anyio.sleep(1)
    assert "\n".join(seen) == snapshot
