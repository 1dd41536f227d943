"""Many calls at once in one session: none fails, whatever the server has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from kit.http_process import HttpProcess, http_process
from kit.stdio_process import PATHS, SERVER
from kit.wire import PER_REQUEST, SESSIONS, SSE_ONLY
from mcpgen_runtime import connect

pytestmark = [pytest.mark.slow, pytest.mark.on_asyncio, pytest.mark.usefixtures("quiet")]

SECONDS = 110
COUNT = 2000
REVISIONS = (*SESSIONS[-2:], PER_REQUEST[-1])
KEY = "all"


@pytest.fixture
def server() -> Iterator[HttpProcess]:
    with http_process(sse_path="/sse") as process:
        yield process


async def call_all(client: Any, count: int, tool: str, arguments: dict[str, Any]) -> Counter[str]:
    """Make calls at once; how often each text came."""
    texts: Counter[str] = Counter()

    async def call() -> None:
        result = await client.call_tool(tool, arguments)
        texts[result.content[0].text] += 1

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(call)
    return texts


async def call_while_full(server: HttpProcess, count: int, **how: Any) -> tuple[int, int]:
    """Make calls that wait until the server is full; how many succeeded, and how many it began."""
    target = how.pop("to")
    async with connect(target, **how) as client, connect(server.url) as other:

        async def release() -> None:
            await server.until(f"working {KEY}", times=min(count, 100))
            await other.call_tool("release", {"key": KEY})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(release)
            texts = await call_all(client, count, "look", {"key": KEY})
    return texts[KEY], server.said(f"working {KEY}")


@pytest.mark.parametrize("revision", [*SSE_ONLY[:1], *REVISIONS])
async def test_many_calls_over_http_wait_for_their_places(
    revision: str, server: HttpProcess
) -> None:
    how: dict[str, Any] = {"to": server.url}
    if revision in SSE_ONLY:
        how = {"to": server.sse_url, "transport": "sse"}
    done = await call_while_full(server, COUNT, revision=revision, **how)
    assert done == (COUNT, COUNT)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_many_calls_over_stdio_wait_for_their_turn(revision: str) -> None:
    async with connect(SERVER, revision=revision, env=PATHS) as client:
        texts = await call_all(client, COUNT, "echo", {"text": "a"})
    assert texts == {"a": COUNT}
