"""The official SDK as client of servers without sessions: each request reaches another process."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from interop.python_clients import roots
from interop.revisions import is_modern, mode_of, opened
from mcpgen_runtime import Context, Server

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


def application() -> Any:
    server = Server("city")

    @server.tool()
    async def population(city: str, ctx: Context) -> int:
        await ctx.progress(1)
        return len(city)

    @server.tool()
    async def roots(ctx: Context) -> int:
        return len(await ctx.list_roots())

    return server.asgi(stateless=True)


@pytest.mark.parametrize("revision", [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS])
async def test_the_official_client_needs_no_session(revision: str) -> None:
    applications = cycle([application(), application()])

    async def any_process(scope: Any, receive: Any, send: Any) -> None:
        await next(applications)(scope, receive, send)

    async def keep(response: httpx2.Response) -> None:
        assert "mcp-session-id" not in response.headers

    transport = httpx2.ASGITransport(any_process)
    async with httpx2.AsyncClient(transport=transport, event_hooks={"response": [keep]}) as http:
        way = streamable_http_client("http://127.0.0.1/mcp", http_client=http)
        options: Any = {"list_roots_callback": roots, "cache": None}
        async with opened(mcp.Client(way, mode=mode_of(revision), **options), revision) as client:
            assert len((await client.list_tools()).tools) == 2
            result = await client.call_tool("population", {"city": "Oslo"})
            assert result.structured_content == {"result": 4} or not result.structured_content
            assert result.content[0].text == "4"
            if not is_modern(revision):
                with pytest.raises(mcp.MCPError, match="keeps none"):
                    await client.call_tool("roots", {})
