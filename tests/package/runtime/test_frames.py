"""The way of a message is short: frames of the package between a call and the other end."""

from __future__ import annotations

import traceback
from pathlib import Path

import httpx2
import pytest

import mcpgen_runtime
from kit.wire import STREAMABLE
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.server.chosen import Server

PACKAGE = Path(mcpgen_runtime.__file__).parent
MOST_OUTWARD, MOST_INWARD = 10, 9


def frames_of_the_package(paths: list[str]) -> list[str]:
    """The paths that lie in the package, from its top."""
    return [path.removeprefix(f"{PACKAGE}/") for path in paths if path.startswith(f"{PACKAGE}/")]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio a task of its own serves
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_a_call_passes_few_frames_on_either_side(revision: str) -> None:
    server = Server("frames")
    stack: list[str] = []

    @server.tool()
    async def look() -> str:
        stack[:] = [frame.filename for frame in traceback.extract_stack()]
        return "seen"

    transport = httpx2.ASGITransport(server.asgi(hosts=["app"]))
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        connect("http://app/mcp", http_client=http, revision=revision) as client,
    ):
        await client.call_tool("look")
    library = [at for at, path in enumerate(stack) if "/httpx2/" in path]
    outward = frames_of_the_package(stack[: library[0]])
    inward = frames_of_the_package(stack[library[-1] :])
    assert len(outward) <= MOST_OUTWARD, outward
    assert outward[-1].startswith("transports/http/")
    assert len(inward) <= MOST_INWARD, inward
    assert inward[0] == "server/asgi/app.py"
