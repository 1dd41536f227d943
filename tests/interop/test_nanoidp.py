"""Our client and our protected server with a real authorization server, nanoidp."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import httpx2
import pytest

from interop.protected import (
    ALICE,
    CALLBACK,
    browse,
    end_token,
    nanoidp,
    new_place,
    run_protected_server,
    signed_in,
    stored_token,
    text_of,
    user,
)
from kit.rules import revisions_holding
from mcpgen_runtime import (
    ClientCredentials,
    Device,
    DeviceCode,
    Introspection,
    JwtVerifier,
    MemoryStore,
    OAuth,
    OAuthError,
    Protected,
    Redirect,
    connect,
)
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import grant_key

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.on_asyncio,
]

REVISIONS = revisions_holding("auth-server-metadata.prm-used-by-client")


@dataclass(frozen=True)
class Services:
    """Addresses of the running servers.

    Attributes:
        url: The protected server.
        issuer: The authorization server.
    """

    url: str
    issuer: str


@contextmanager
def run_services(introspects: bool = False) -> Iterator[Services]:
    """A protected server, and the authorization server that it trusts."""
    with new_place() as place, nanoidp(place.url) as issuer:
        verifier = (
            Introspection(f"{issuer}/introspect", "server", "secret")
            if introspects
            else JwtVerifier()
        )
        auth = Protected(place.url, issuers=[issuer], verifier=verifier, scopes=["mcp:read"])
        with run_protected_server(auth, place):
            yield Services(place.url, issuer)


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with run_services() as both:
        yield both


async def refuse(url: str) -> str:
    raise AssertionError("the user was asked")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_user_signs_in_and_steps_up(services: Services, revision: str) -> None:
    auth = signed_in(user(**ALICE))
    async with connect(services.url, auth=auth, revision=revision) as client:
        assert await text_of(client, "whoami") == "alice"
        assert "files:write" in (await text_of(client, "write")).split()


async def test_a_registered_client_authenticates_by_its_method(services: Services) -> None:
    auth = OAuth(
        client_id="web",
        client_secret="secret",
        issuer=services.issuer,
        auth_method="client_secret_post",
        redirect=user(username="bob", password="builder"),
    )
    async with connect(services.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "bob"
        assert await text_of(client, "client") == "web"


async def test_a_refresh_token_is_replaced_and_of_no_use_twice(services: Services) -> None:
    store = MemoryStore()
    async with connect(services.url, auth=signed_in(user(**ALICE), store=store)) as client:
        await client.list_tools()
    first = await end_token(store, services.url)
    key = grant_key(canonical_resource(services.url))
    used = await store.load(key)
    auth = signed_in(Redirect(CALLBACK, refuse), store=store)
    async with connect(services.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "alice"
    second = await stored_token(store, services.url)
    assert second.value != first.value
    assert second.refresh_token != first.refresh_token

    await store.save(key, used)
    asked: list[str] = []

    async def visit(url: str) -> str:
        asked.append(url)
        return await browse(url, ALICE)

    auth = signed_in(Redirect(CALLBACK, visit), store=store)
    async with connect(services.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "alice"
    assert len(asked) == 1


async def test_a_machine_authorizes_itself(services: Services) -> None:
    auth = ClientCredentials("machine", "secret", issuer=services.issuer)
    async with connect(services.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "machine"
        with pytest.raises(OAuthError, match="invalid_scope"):
            await text_of(client, "write")


async def test_a_user_authorizes_on_another_device(services: Services) -> None:
    async def typed(code: DeviceCode) -> None:
        page = await browse(
            code.verification_uri, {**ALICE, "user_code": code.user_code, "action": "authorize"}
        )
        assert "Device authorized" in page

    with anyio.fail_after(60):
        auth = OAuth(client_id="screen", issuer=services.issuer, interaction=Device(typed))
        async with connect(services.url, auth=auth) as client:
            assert await text_of(client, "whoami") == "alice"


async def test_a_token_for_another_server_is_refused(services: Services) -> None:
    form = {"grant_type": "client_credentials", "scope": "mcp:read"}
    async with httpx2.AsyncClient(timeout=30) as http:
        tokens = [
            (
                await http.post(
                    f"{services.issuer}/token",
                    data=form if resource is None else {**form, "resource": resource},
                    auth=("machine", "secret"),
                )
            ).json()["access_token"]
            for resource in (services.url, None)
        ]
        statuses = [
            (
                await http.post(services.url, json={}, headers={"authorization": f"Bearer {token}"})
            ).status_code
            for token in tokens
        ]
    assert statuses[0] != 401
    assert statuses[1] == 401


async def test_the_authorization_server_is_asked_about_tokens() -> None:
    with run_services(introspects=True) as services:
        async with connect(services.url, auth=signed_in(user(**ALICE))) as client:
            assert await text_of(client, "whoami") == "alice"
            assert "files:write" in (await text_of(client, "write")).split()
