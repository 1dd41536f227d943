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

STEPS = "a5 a5 a6 b1 b0 wake none entry c0 wake no A9 wake no a9 close"
"""A task waits for the entries of a stream after a number (not at all: `A`), or a reply comes."""


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
    wake: Any = [(b"wake", [(b"7-0", []), (b"8-0", [])])]
    entry: Any = [(b"a", [(b"0-6", [])])]
    given = {"wake": wake, "none": None, "entry": entry, "no": SharedStateError("no")}
    for step in STEPS.split():
        seen.append(f"- {step}")
        if step == "close":
            await watcher.close()
            seen.append("closed")
        elif step in given:
            replies.put_nowait(given[step])
        else:
            seconds = 60 if step.islower() else 0
            tasks.append(asyncio.create_task(wait(step[0].lower(), int(step[1]), seconds)))
        await anyio.sleep(1)
    assert "\n".join(seen) == snapshot
