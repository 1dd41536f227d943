"""The servers of the Python libraries, each with the tools that `work.py` names.

`python servers.py ours` or `official` serves over pipes. Only what a server needs is imported.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

RESOURCE, ISSUER = "https://bench.example/mcp", "https://idp.example"


def make_tools(context: type[Any]) -> list[Callable[..., Any]]:
    """The tools `add`, `report` and `total`, for contexts of a class."""

    async def add(a: int, b: int) -> str:
        """The sum of two numbers, as text."""
        return str(a + b)

    async def report(ctx: Any, a: int, b: int) -> str:
        """The sum of two numbers, as text; reports progress before."""
        await ctx.progress(0.5, 1.0)
        return str(a + b)

    async def total(ctx: Any, a: int, b: int) -> dict[str, int]:
        """The sum of two numbers, as an object; other tasks run before."""
        assert ctx.request_id is not None
        await asyncio.sleep(0)
        return {"total": a + b}

    for function in (report, total):
        function.__annotations__["ctx"] = context
    return [add, report, total]


@cache
def ours() -> Any:
    """The server under test."""
    from mcpgen_runtime import Context, Server

    server = Server("bench", version="1.0")
    add, report, total = make_tools(Context)
    server.tool(structured=False)(add)
    server.tool()(total)
    server.tool(structured=False)(report)
    return server


@cache
def official() -> Any:
    """The server on the official SDK."""
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("bench", log_level="ERROR")
    add, _, total = make_tools(Context)
    server.tool(structured_output=False)(add)
    server.tool()(total)
    return server


@cache
def fastmcp() -> Any:
    """The server on FastMCP."""
    from fastmcp import Context, FastMCP

    server = FastMCP("bench")
    add, _, total = make_tools(Context)
    server.tool(output_schema=None)(add)
    server.tool(total)
    return server


def protected_app(path: str) -> tuple[Any, str]:
    """The application of the server under test, protected, and an access token for it."""
    from joserfc import jwt
    from joserfc.jwk import ECKey

    from mcpgen_runtime import JwtVerifier, Protected

    key = ECKey.generate_key("P-256", {"kid": "one"})
    verifier = JwtVerifier(keys={"keys": [key.as_dict(private=False)]})
    auth = Protected(RESOURCE, issuers=[ISSUER], verifier=verifier, scopes=["mcp:read"])
    now = int(time.time())
    who = {"iss": ISSUER, "aud": RESOURCE, "sub": "alice", "client_id": "bench"}
    claims = {**who, "scope": "mcp:read", "iat": now, "exp": now + 3600}
    token = jwt.encode({"alg": "ES256", "kid": "one", "typ": "at+jwt"}, claims, key)
    return ours().asgi(path, auth=auth), token


if __name__ == "__main__":
    {"ours": ours, "official": official}[sys.argv[1]]().run()
