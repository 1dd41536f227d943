"""Our client at protected servers of the official SDK and of FastMCP, and their authorization."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from fastmcp import FastMCP
from fastmcp.server.auth import JWTVerifier, RemoteAuthProvider
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl

from interop.protected import (
    ALICE,
    Place,
    check_renewal,
    in_thread,
    nanoidp,
    new_place,
    signed_in,
    text_of,
    user,
)
from kit.rules import revisions_holding
from mcpgen_runtime import AuthorizationError, ClientCredentials, OAuth, connect

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
]

SPOKEN = {*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS}
ALL = [name for name in revisions_holding("auth-flow.bearer-header") if name in SPOKEN]
WITH_METADATA = [
    name for name in revisions_holding("auth-server-metadata.prm-used-by-client") if name in ALL
]
SCOPES = ["mcp:read"]


def caller() -> str:
    """The authenticated caller, as the peers see it: subject and scopes."""
    token = get_access_token()
    assert token is not None
    return f"{token.subject} {' '.join(sorted(token.scopes))}"


class AskingIssuer:
    """Verifies tokens by introspection, for the official SDK, which brings no verifier."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx2.AsyncClient(timeout=30) as http:
            response = await http.post(
                f"{self._issuer}/introspect", data={"token": token}, auth=("server", "secret")
            )
        claims = response.json()
        if not claims["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            resource=claims["aud"],
            subject=claims["sub"],
        )


def in_memory(place: Place) -> InMemoryOAuthProvider:
    """Keeps what the authorization server of the official SDK issues; its users agree at once."""
    return InMemoryOAuthProvider(
        base_url=place.origin,
        client_registration_options=ClientRegistrationOptions(enabled=True),
        required_scopes=SCOPES,
    )


def official(place: Place, issuer: str | None) -> Any:
    """The official SDK: a resource server for an issuer, or its own authorization server."""
    settings = AuthSettings.model_validate(
        {
            "issuer_url": issuer or place.origin,
            "resource_server_url": place.url,
            "required_scopes": SCOPES,
            "client_registration_options": ClientRegistrationOptions(enabled=True),
            "validate_token_resource": issuer is not None,
        }
    )
    if issuer is None:
        server = MCPServer("official", auth=settings, auth_server_provider=in_memory(place))
    else:
        server = MCPServer("official", auth=settings, token_verifier=AskingIssuer(issuer))
    server.tool(name="whoami")(caller)
    return server.streamable_http_app()


def fastmcp(place: Place, issuer: str | None) -> Any:
    """FastMCP: a resource server with metadata, or its own authorization server."""
    auth: Any = in_memory(place)
    if issuer is not None:
        auth = RemoteAuthProvider(
            jwt_verifier(place, issuer), [AnyHttpUrl(issuer)], base_url=place.origin
        )
    server: FastMCP[Any] = FastMCP("fastmcp", auth=auth)
    server.tool(name="whoami")(caller)
    return server.http_app(path="/mcp")


def jwt_verifier(place: Place, issuer: str) -> JWTVerifier:
    return JWTVerifier(
        jwks_uri=f"{issuer}/.well-known/jwks.json",
        issuer=issuer,
        audience=place.url,
        required_scopes=SCOPES,
    )


def without_metadata(place: Place, issuer: str | None) -> Any:
    """FastMCP with a verifier alone: it says nowhere who issues tokens."""
    assert issuer is not None
    server: FastMCP[Any] = FastMCP("fastmcp", auth=jwt_verifier(place, issuer))
    server.tool(name="whoami")(caller)
    return server.http_app(path="/mcp")


@contextmanager
def run_peer(make: Any, is_resource_server: bool) -> Iterator[tuple[str, str]]:
    """A peer, and nanoidp where it needs an issuer; yields the URLs of both."""
    with ExitStack() as stack:
        place = stack.enter_context(new_place())
        issuer = stack.enter_context(nanoidp(place.url)) if is_resource_server else None
        stack.enter_context(in_thread(make(place, issuer), place))
        yield place.url, issuer or place.origin


@pytest.fixture(scope="module", params=[official, fastmcp], ids=["official", "fastmcp"])
def issuing_peer(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that is its own authorization server."""
    with run_peer(request.param, is_resource_server=False) as (url, _):
        yield url


@pytest.fixture(scope="module", params=[official, fastmcp], ids=["official", "fastmcp"])
def resource_peer(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    """A server that trusts nanoidp, and whether it puts a slash behind the issuer."""
    with run_peer(request.param, is_resource_server=True) as (url, _):
        yield url, request.param is fastmcp


@pytest.mark.parametrize("revision", ALL)
async def test_a_user_signs_in_at_a_server_that_issues_tokens(
    issuing_peer: str, revision: str
) -> None:
    scopes = () if revision in WITH_METADATA else SCOPES  # nothing else names them
    auth = signed_in(user(), scopes=scopes)
    async with connect(issuing_peer, auth=auth, revision=revision) as client:
        assert (await text_of(client, "whoami")).endswith(" mcp:read")


async def test_a_token_of_such_a_server_is_renewed(issuing_peer: str) -> None:
    await check_renewal(issuing_peer, redirect=user())


@pytest.mark.parametrize("revision", WITH_METADATA)
async def test_a_user_signs_in_at_the_issuer_of_a_server(
    resource_peer: tuple[str, bool], revision: str
) -> None:
    url, adds_slash = resource_peer
    auth = signed_in(user(**ALICE), accept_issuer_slash=adds_slash)
    async with connect(url, auth=auth, revision=revision) as client:
        assert "mcp:read" in await text_of(client, "whoami")


async def test_an_issuer_with_one_slash_more_is_another_by_default() -> None:
    with run_peer(fastmcp, is_resource_server=True) as (url, issuer):
        with pytest.raises(AuthorizationError, match="not the expected issuer"):
            async with connect(url, auth=signed_in(user(**ALICE))):
                pass
        auth = ClientCredentials("machine", "secret", issuer=f"{issuer}/")
        with pytest.raises(AuthorizationError, match="not the expected issuer"):
            async with connect(url, auth=auth):
                pass


async def test_a_server_without_metadata_is_entered_by_settings() -> None:
    with run_peer(without_metadata, is_resource_server=True) as (url, issuer):
        machine = ClientCredentials("machine", "secret", issuer=issuer, scopes=SCOPES)
        async with connect(url, auth=machine) as client:
            assert "mcp:read" in await text_of(client, "whoami")
        auth = OAuth(
            client_id="web",
            client_secret="secret",
            auth_method="client_secret_post",
            issuer=issuer,
            scopes=SCOPES,
            redirect=user(**ALICE),
        )
        async with connect(url, auth=auth) as client:
            assert "mcp:read" in await text_of(client, "whoami")
