"""Sessions of a client with the server of `replayed_servers`, as traces."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import mcpgen_runtime
from mcpgen_runtime import ClientHandlers, connect

SCRIPT = Path(__file__).with_name("replayed_servers.py")
PACKAGES = str(Path(mcpgen_runtime.__file__).parent.parent)
REVISIONS = tuple(mcpgen_runtime.REVISIONS)
_URL = re.compile(r"http://127\.0\.0\.1:\d+/mcp")
ENVIRONMENT = {"PYTHONPATH": PACKAGES}


def server_command(*words: str) -> list[str]:
    """The command that starts the server, or a mutant."""
    return [sys.executable, str(SCRIPT), *words]


def configuration(folder: Path, *words: str) -> str:
    """A file with the server, which a command of mcpgen takes as TARGET."""
    program, *arguments = server_command(*words)
    entry = {"command": program, "args": arguments, "env": ENVIRONMENT}
    path = folder / f"{'-'.join(words) or 'server'}.json"
    path.write_text(json.dumps({"mcpServers": {"shop": entry}}))
    return path.name


class Guest(ClientHandlers):
    """Answers questions of the server, and waits for its notifications."""

    def __init__(self) -> None:
        self.updated = anyio.Event()

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"value": "Ada"}}

    async def resource_updated(self, params: Any, ctx: Any) -> None:
        self.updated.set()


async def everything(client: Any, guest: Guest) -> None:
    """Use whatever the server has, as far as the revision of the session has it."""
    await client.list_tools()
    await client.list_resources()
    await client.list_prompts()
    await client.call_tool("greet", {"name": "Ada"})
    await client.call_tool("count", {"to": 3}, on_progress=lambda *_: None)
    await client.call_tool("fail")
    if client.revision >= "2025-06-18":
        await client.call_tool("book", on_progress=lambda *_: None)
    ordered = (await client.call_tool("order")).content[0].text.split()[1]
    await client.call_tool("find", {"order": ordered})
    await client.read_resource("shop://1")
    await client.get_prompt("advise", {"about": "hats"})
    await cancelled_call(client)
    async with client.listen(uris=["shop://0"]):
        await client.call_tool("change")
        with anyio.fail_after(10):
            await guest.updated.wait()


async def cancelled_call(client: Any) -> None:
    """Call a tool that waits, and cancel the call once it has begun."""
    async with anyio.create_task_group() as tasks:
        scope = tasks.cancel_scope

        async def call() -> None:
            await client.call_tool("wait", on_progress=lambda *_: scope.cancel())

        tasks.start_soon(call)


async def two_at_once(client: Any, _: Guest) -> None:
    """Two calls of which neither waits for the other."""
    async with anyio.create_task_group() as tasks:
        for to in (2, 3):
            tasks.start_soon(count, client, to)


async def count(client: Any, to: int) -> None:
    await client.call_tool("count", {"to": to}, on_progress=lambda *_: None)


def record(
    path: Path, revision: str, work: Callable[[Any, Guest], Any] = everything, target: Any = None
) -> Path:
    """Record a session of the server in one revision."""

    async def session() -> None:
        guest = Guest()
        place = target or server_command()
        more: dict[str, Any] = {} if target else {"env": ENVIRONMENT}
        async with connect(place, revision=revision, handlers=guest, **more) as client:
            await work(client, guest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(os.environ, "MCP_TRACE", str(path))
        anyio.run(session)
    return path


@contextmanager
def served_over_http(*words: str) -> Iterator[str]:
    """Serve the server, or a mutant, over HTTP while the block runs; yields its URL."""
    command = server_command("http", "127.0.0.1:0", *words)
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **ENVIRONMENT}
    )
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        yield next(match[0] for line in lines if (match := _URL.search(line)))
    finally:
        process.terminate()
        process.communicate()
