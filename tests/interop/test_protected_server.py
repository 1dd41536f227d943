"""The official SDK's client, with its OAuth, at our protected server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import mcp
import pytest
import uvicorn
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from interop.revisions import is_modern, offering
from mcp_protocol import Context, JwtVerifier, Protected, Server
from package.auth_server.issuer import LoopbackIssuer, serving_issuer

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

REVISIONS = [*HANDSHAKE_PROTOCOL_VERSIONS[-3:], *MODERN_PROTOCOL_VERSIONS]


class Memory:
    """The SDK's store for tokens."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Our server runs in a thread of its own; one loop for the SDK is enough."""
    return "asyncio"


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoopbackIssuer]:
    with serving_issuer() as serving:
        yield serving


@contextmanager
def protected(issuer: LoopbackIssuer) -> Iterator[str]:
    """The URL of our server, in a thread."""
    server = Server("protected")

    @server.tool()
    async def whoami(ctx: Context) -> str:
        return f"{ctx.principal.subject} of {ctx.principal.client_id}"

    @server.tool(scopes=["files:write"])
    async def write(ctx: Context) -> str:
        return " ".join(sorted(ctx.principal.scopes))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        auth = Protected(url, issuers=[issuer.url], verifier=JwtVerifier(), scopes=["mcp:read"])
        config = uvicorn.Config(server.asgi(auth=auth), log_level="error", access_log=False)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield url
        finally:
            running.should_exit = True
            thread.join()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_client_gets_a_token_and_steps_up(
    issuer: LoopbackIssuer, revision: str
) -> None:
    with protected(issuer) as url:
        auth = ClientCredentialsOAuthProvider(url, Memory(), "robot", "secret")
        async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
            way = streamable_http_client(url, http_client=http)
            client = mcp.Client(way, mode="auto" if is_modern(revision) else "legacy", cache=None)
            with offering(revision):
                await client.__aenter__()
            try:
                assert client.protocol_version == revision
                first = await client.call_tool("whoami", {})
                assert first.content[0].text == "robot of agent"
                written = await client.call_tool("write", {})
                assert written.content[0].text == "files:write mcp:read"
            finally:
                await client.__aexit__(None, None, None)


@pytest.mark.parametrize("revision", REVISIONS[-1:])
async def test_a_client_without_credentials_is_refused(
    issuer: LoopbackIssuer, revision: str
) -> None:
    with protected(issuer) as url:
        async with httpx2.AsyncClient(timeout=30) as http:
            reply = await http.post(url, json={}, headers={"accept": "application/json"})
            assert reply.status_code == 401
            metadata = await http.get(url.replace("/mcp", "/.well-known/oauth-protected-resource"))
            assert metadata.json()["authorization_servers"] == [issuer.url]
