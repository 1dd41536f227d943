"""The server of fault tests, as a process: `python http_process_server.py ADDRESS HOW`, a JSON.

HOW has members of `Limits` under `limits`, perhaps `h11`, and options of `Server.run`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from mcpgen_runtime import Context, Limits, RouteRequest, Server, ToolAnnotations

drain = float(os.environ.get("DRAIN", "0.5"))
server = Server("process", version="1", subscribe=True, drain=drain)
gates: dict[str, anyio.Event] = defaultdict(anyio.Event)
marked: list[str] = []
SAFE = ToolAnnotations(read_only_hint=True)


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


@contextmanager
def telling(key: str) -> Iterator[None]:
    """Say that something is at work, and if it is cancelled."""
    say("working", key)
    try:
        yield
    except BaseException:
        say("cancelled", key)
        raise


@server.tool(annotations=SAFE)
async def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool(annotations=SAFE)
async def count(ctx: Context, to: int, width: int = 1) -> str:
    for value in range(1, to + 1):
        await ctx.progress(value, to, "n" * width)
    return str(to)


@server.tool(annotations=SAFE)
async def text(width: int) -> str:
    return "n" * width


@server.tool()
async def mark(ctx: Context, key: str) -> str:
    marked.append(key)
    await ctx.progress(1)
    return key


@server.tool(annotations=SAFE)
async def marks() -> str:
    return " ".join(marked)


@server.tool()
async def work(ctx: Context, key: str) -> str:
    await ctx.progress(1)
    with telling(key):
        await gates[key].wait()
    await ctx.progress(2)
    say("done", key)
    return key


@server.tool(annotations=SAFE)
async def look(key: str) -> str:
    with telling(key):
        await gates[key].wait()
    say("done", key)
    return key


@server.tool()
async def ask(ctx: Context, key: str) -> str:
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    with telling(key):
        return str(await ctx.elicit("Well?", form))


@server.tool()
async def release(key: str) -> str:
    gates[key].set()
    return key


@server.tool()
async def flood(ctx: Context, key: str, times: int, width: int) -> str:
    with telling(key):
        for value in range(1, times + 1):
            await ctx.progress(value, times, "n" * width)
    say("done", key)
    return key


@server.tool()
async def grow(name: str) -> str:
    server.tool(name)(add)
    return name


@server.tool()
async def touch(uri: str) -> str:
    server.resource_updated(uri)
    return uri


@server.custom_route("/fields", methods=["POST"])
async def fields(request: RouteRequest) -> list[str]:
    return [name.decode() for name, _ in request.scope["headers"]]


@server.resource("memo://{name}")
async def memo(name: str) -> str:
    return name


def main(address: str, how: dict[str, Any]) -> None:
    """Serve."""
    logging.basicConfig(level=logging.WARNING, format="log %(levelname)s %(name)s %(message)s")
    if how.pop("h11", False):
        sys.modules["httptools"] = None  # type: ignore[assignment]  # as if it were not installed
    server.run(http=address, limits=Limits(**how.pop("limits", {})), **how)
    say("ended")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
