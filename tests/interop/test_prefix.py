"""HTTP+SSE below a path prefix, mounted and behind a proxy that takes the prefix away."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import mcp
import pytest
from mcp.client.sse import sse_client

from interop.apps import PREFIX
from interop.processes import run_server
from interop.revisions import HANDSHAKE
from mcpgen_runtime import connect

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

HYPERCORN = (sys.executable, "-m", "hypercorn", "--bind", "127.0.0.1:0", "--graceful-timeout", "1")


@pytest.fixture(scope="module", params=["mounted", "stripped_app"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with run_server(*HYPERCORN, f"interop.apps:{request.param}") as served:
        yield f"{served}{PREFIX}/sse"


async def test_our_client_makes_a_call(url: str) -> None:
    async with connect(url, revision=HANDSHAKE[0]) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"


async def test_the_official_client_makes_a_call(url: str) -> None:
    async with mcp.Client(sse_client(url), mode="legacy", cache=None) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.content[0].text == "3"
