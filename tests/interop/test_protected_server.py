"""The official SDK's client and FastMCP's, with their OAuth, at our protected server."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import fastmcp
import httpx2
import mcp
import pytest
from fastmcp.client.auth import OAuth
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from interop.protected import (
    ALICE,
    CALLBACK,
    browse,
    in_thread,
    nanoidp,
    new_place,
    run_protected_server,
    text_of,
)
from interop.revisions import mode_of, opened
from kit.issuer import LoopbackIssuer, serving_issuer
from mcpgen_runtime import Principal

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
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
def issuer() -> Iterator[LoopbackIssuer]:
    with serving_issuer() as serving:
        yield serving


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Our server, whose users sign in at nanoidp."""
    with new_place() as place, nanoidp(place.url) as idp, run_protected_server(place, idp) as url:
        yield url


def user_of(url: str) -> OAuthClientProvider:
    """The official client's way to a user, who signs in by a browser."""
    returned: list[str] = []

    async def send_away(url: str) -> None:
        returned.append(await browse(url, ALICE))

    async def come_back() -> AuthorizationCodeResult:
        values = parse_qs(urlsplit(returned.pop()).query)
        return AuthorizationCodeResult(
            code=values["code"][0],
            state=values["state"][0],
            iss=values.get("iss", [None])[0],
        )

    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "Official", "redirect_uris": [CALLBACK]}
    )
    return OAuthClientProvider(url, metadata, Memory(), send_away, come_back)


@asynccontextmanager
async def official(url: str, auth: httpx2.Auth, revision: str) -> AsyncIterator[mcp.Client]:
    """The official client in one revision."""
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        way = streamable_http_client(url, http_client=http)
        client = mcp.Client(way, mode=mode_of(revision), cache=None)
        async with opened(client, revision):
            yield client


@asynccontextmanager
async def by_fastmcp(url: str, revision: str) -> AsyncIterator[fastmcp.Client[Any]]:
    """FastMCP's client in one revision, whose user signs in once."""
    transport = StreamableHttpTransport(url, auth=OAuth(callback_host="127.0.0.1"))
    client = fastmcp.Client(transport, mode=mode_of(revision))
    with pytest.MonkeyPatch.context() as patched, agreeing_browser(patched) as visits:
        async with opened(client, revision):
            yield client
    assert len(visits) == 1


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_client_gets_a_token_and_steps_up(
    issuer: LoopbackIssuer, revision: str
) -> None:
    with new_place() as place, run_protected_server(place, issuer.url) as url:
        auth = ClientCredentialsOAuthProvider(url, Memory(), "robot", "secret")
        async with official(url, auth, revision) as client:
            assert await text_of(client, "whoami") == "robot"
            assert await text_of(client, "client") == "agent"
            assert await text_of(client, "write") == "files:write mcp:read"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_user_signs_in_by_the_official_client(url: str, revision: str) -> None:
    async with official(url, user_of(url), revision) as client:
        assert await text_of(client, "whoami") == "alice"


@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_user_signs_in_by_the_client_of_fastmcp(url: str, revision: str) -> None:
    async with by_fastmcp(url, revision) as client:
        assert await text_of(client, "whoami") == "alice"


@contextmanager
def agreeing_browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[threading.Thread]]:
    """A browser whose user agrees; yields the threads of its visits."""
    visits: list[threading.Thread] = []

    def open_browser(url: str, *args: Any) -> bool:
        nowhere = "http://nowhere.invalid"  # the client's own page is the last one
        visits.append(threading.Thread(target=anyio.run, args=(browse, url, ALICE, nowhere)))
        visits[-1].start()
        return True

    monkeypatch.setattr("webbrowser.open", open_browser)
    yield visits
    for visit in visits:
        visit.join()


@contextmanager
def run_limiting_server(*session_scopes: str) -> Iterator[str]:
    """Our server, whose authorization server grants the scopes of a registration alone."""
    with new_place() as place, new_place() as issuing:
        provider = InMemoryOAuthProvider(base_url=issuing.origin)
        options = ClientRegistrationOptions(enabled=True)
        routes = create_auth_routes(
            provider, AnyHttpUrl(issuing.origin), client_registration_options=options
        )

        async def verify(token: str) -> Principal | None:
            known = await provider.load_access_token(token)
            return None if known is None else Principal("alice", scopes=known.scopes)

        settings = {"verifier": verify, "session_scopes": session_scopes}
        # the issuer as the SDK writes it
        trusting = run_protected_server(place, f"{issuing.origin}/", **settings)
        with in_thread(Starlette(routes=routes), issuing), trusting as url:
            yield url


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_client_has_session_scopes_from_the_start(revision: str) -> None:
    with run_limiting_server("files:write") as url:
        async with official(url, user_of(url), revision) as client:
            assert await text_of(client, "write") == "files:write mcp:read"


@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_fastmcp_client_has_session_scopes_from_the_start(revision: str) -> None:
    with run_limiting_server("files:write") as url:
        async with by_fastmcp(url, revision) as client:
            assert await text_of(client, "write") == "files:write mcp:read"
