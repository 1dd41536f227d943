"""Sessions of a client with the server of `shop_server`, as traces."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import mcpgen
import mcpgen_runtime
from mcpgen_runtime import ClientHandlers, RemoteError, ResourceUpdated, connect

SCRIPT = Path(__file__).with_name("shop_server.py")
PACKAGES = str(Path(mcpgen_runtime.__file__).parent.parent)
PATHS = os.pathsep.join((str(Path(mcpgen.__file__).parent.parent), PACKAGES))
"""Where a process finds mcpgen and the generated package."""
REVISIONS = tuple(mcpgen_runtime.REVISIONS)
QUESTIONS = tuple(name for name in REVISIONS if name >= "2025-06-18")
"""The revisions that can ask the user."""

_URL = re.compile(r"http://127\.0\.0\.1:\d+/mcp")
ENVIRONMENT = {"PYTHONPATH": PACKAGES}
COMMAND = (sys.executable, str(SCRIPT))
"""The command that starts the server; words after it choose HTTP or a mutant."""


def configuration(folder: Path, *words: str) -> str:
    """A file with the server, which a command of mcpgen takes as TARGET."""
    program, *arguments = (*COMMAND, *words)
    entry = {"command": program, "args": arguments, "env": ENVIRONMENT}
    path = folder / f"{'-'.join(words) or 'server'}.json"
    path.write_text(json.dumps({"mcpServers": {"shop": entry}}))
    return path.name


class Guest(ClientHandlers):
    """Answers questions of the server, each by another name."""

    def __init__(self) -> None:
        self._names = itertools.cycle(("Ada", "Bo"))

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"value": next(self._names)}}


def text_of(result: Any) -> str:
    """The text of a result of a tool."""
    text: str = result.content[0].text
    return text


async def visit(client: Any, *, asks: bool) -> dict[str, Any]:
    """The results of a client that uses what a recorded server can answer."""
    reports: list[Any] = []
    seen: dict[str, Any] = {"tools": [tool.name for tool in await client.list_tools()]}
    seen["resources"] = [each.uri for each in await client.list_resources()]
    seen["prompts"] = [each.name for each in await client.list_prompts()]
    seen["greet"] = text_of(await client.call_tool("greet", {"name": "Ada"}))
    await client.call_tool("count", {"to": 3}, on_progress=lambda *each: reports.append(each[:2]))
    seen["progress"] = reports
    seen["fail"] = text_of(await client.call_tool("fail"))
    try:
        await client.call_tool("refuse")
    except RemoteError as error:
        seen["refuse"] = (error.code, error.message, error.data)
    if asks:
        seen["book"] = text_of(await client.call_tool("book", on_progress=lambda *_: None))
    orders = [text_of(await client.call_tool("order")).split()[1] for _ in range(2)]
    found = await client.call_tool("find", {"order": orders[0]})
    seen["find"] = text_of(found).replace(orders[0], "it")
    seen["orders"] = len({*orders})
    seen["read"] = (await client.read_resource("shop://1")).contents[0].text
    advice = await client.get_prompt("advise", {"about": "hats"})
    seen["advise"] = advice.messages[0].content.text
    async with client.listen(uris=["shop://0"]) as changes:
        await client.call_tool("change")
        with anyio.fail_after(10):
            async for each in changes:
                if isinstance(each, ResourceUpdated):
                    seen["updated"] = each.uri
                    break
    return seen


EXPECTED: Mapping[str, Any] = {
    "tools": [
        *("greet", "count", "fail", "refuse", "book", "order", "find", "wait", "change"),
    ],
    "resources": ["shop://0", "shop://1", "shop://2"],
    "prompts": ["advise"],
    "greet": "Hello Ada",
    "progress": [(1, 3), (2, 3), (3, 3)],
    "fail": "out of order",
    "refuse": (1050, "not today", {"retry": False}),
    "book": "booked for Ada and Bo",
    "find": "found it",
    "orders": 2,
    "read": "1",
    "advise": "Advise about hats",
    "updated": "shop://0",
}
"""The results of a visit."""


def expected(*, asks: bool) -> dict[str, Any]:
    """The results of a visit in any revision."""
    return {name: value for name, value in EXPECTED.items() if asks or name != "book"}


async def everything(client: Any) -> None:
    """Use whatever the server has, as far as the revision of the session has it."""
    await visit(client, asks=client.revision in QUESTIONS)
    async with anyio.create_task_group() as tasks:  # a call that is cancelled once it has begun
        scope = tasks.cancel_scope

        async def call() -> None:
            await client.call_tool("wait", on_progress=lambda *_: scope.cancel())

        tasks.start_soon(call)


async def two_at_once(client: Any) -> None:
    """Two calls of which neither waits for the other."""
    async with anyio.create_task_group() as tasks:
        for to in (2, 3):
            tasks.start_soon(count, client, to)


async def count(client: Any, to: int) -> None:
    await client.call_tool("count", {"to": to}, on_progress=lambda *_: None)


def record(
    path: Path, revision: str, work: Callable[[Any], Any] = everything, target: Any = None
) -> Path:
    """Record a session of the server in one revision."""

    async def session() -> None:
        place = target or [*COMMAND]
        more: dict[str, Any] = {} if target else {"env": ENVIRONMENT}
        async with connect(place, revision=revision, handlers=Guest(), **more) as client:
            await work(client)

    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(os.environ, "MCP_TRACE", str(path))
        anyio.run(session)
    return path


class Serving:
    """A server over HTTP as a process while a block runs; `err` and `code` once it has ended."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": PATHS}
        )
        assert self._process.stderr is not None
        lines = iter(self._process.stderr.readline, "")
        self.url = next(match[0] for line in lines if (match := _URL.search(line)))

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self.err = self._process.communicate(timeout=30)[1]
        self.code = self._process.returncode


@contextmanager
def served_over_http(*words: str) -> Iterator[str]:
    """Serve the server, or a mutant, over HTTP while the block runs; yields its URL."""
    with Serving(*COMMAND, "http", "127.0.0.1:0", *words) as serving:
        yield serving.url


def write_trace(path: Path, *rows: tuple[str, dict[str, Any]], **members: Any) -> Path:
    """Write a trace of a client: directions and messages, a second apart."""
    lines = [
        {
            "time": f"2026-11-29T10:00:{number:02}+00:00",
            "direction": direction,
            "channel": "client",
            "pid": 1,
            "message": {"jsonrpc": "2.0", **message},
            **members,
        }
        for number, (direction, message) in enumerate(rows)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path
