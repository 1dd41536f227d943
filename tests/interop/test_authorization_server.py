"""Our client and our protected server with a real authorization server, oidc-provider."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import pytest

from interop.processes import HERE, NPM, run_server
from interop.protected import (
    CALLBACK,
    browse,
    end_token,
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
    DpopValidation,
    JwtVerifier,
    MemoryStore,
    OAuth,
    Protected,
    Redirect,
    connect,
)

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.on_asyncio,
]

REVISIONS = revisions_holding("auth-server-metadata.as-metadata-both-client")
"""Revisions whose clients read OpenID metadata, the only kind that oidc-provider has."""


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
def run_services(dpop: DpopValidation | None = None) -> Iterator[Services]:
    """A protected server, and the authorization server that it trusts."""
    assert (NPM / "node_modules/oidc-provider").is_dir(), "run nox -s interop"
    script = str(HERE / "npm" / "authorization_server.mjs")
    origin = re.compile(r"http://127\.0\.0\.1:\d+")
    with new_place() as place, run_server("node", script, place.url, says=origin) as issuer:
        auth = Protected(
            place.url, issuers=[issuer], verifier=JwtVerifier(), scopes=["mcp:read"], dpop=dpop
        )
        with run_protected_server(auth, place):
            yield Services(place.url, issuer)


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with run_services() as both:
        yield both


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_user_signs_in_and_steps_up(services: Services, revision: str) -> None:
    async with connect(services.url, auth=signed_in(user()), revision=revision) as client:
        assert await text_of(client, "whoami") == "alice"
        assert "files:write" in (await text_of(client, "write")).split()


async def test_a_token_is_renewed_and_the_refresh_token_replaced(services: Services) -> None:
    store = MemoryStore()
    async with connect(services.url, auth=signed_in(user(), store=store)) as client:
        assert await text_of(client, "whoami") == "alice"
    first = await end_token(store, services.url)

    async def nobody(url: str) -> str:
        raise AssertionError("the user was asked again")

    async with connect(
        services.url, auth=signed_in(Redirect(CALLBACK, nobody), store=store)
    ) as client:
        assert await text_of(client, "whoami") == "alice"
    second = await stored_token(store, services.url)
    assert second.value != first.value
    assert second.refresh_token != first.refresh_token


async def test_two_halves_meet_in_another_object(services: Services) -> None:
    store = MemoryStore()
    pending = await signed_in(user(), store=store).begin(services.url)
    returned = await browse(pending.url, {})
    await signed_in(user(), store=store).pending(pending.dumps()).finish(returned)
    async with connect(services.url, auth=signed_in(user(), store=store)) as client:
        assert await text_of(client, "whoami") == "alice"


async def test_a_machine_authorizes_itself(services: Services) -> None:
    auth = ClientCredentials("machine", "secret-of-the-machine", issuer=services.issuer)
    async with connect(services.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "machine"


async def test_a_user_authorizes_on_another_device(services: Services) -> None:
    async def typed(code: DeviceCode) -> None:
        await browse(code.verification_uri_complete or "", {"confirm": "yes"})

    with anyio.fail_after(60):
        async with connect(services.url, auth=OAuth("Agent", interaction=Device(typed))) as client:
            assert await text_of(client, "whoami") == "alice"


async def test_a_token_is_bound_to_a_key() -> None:
    with run_services(DpopValidation(required=True)) as bound:
        async with connect(bound.url, auth=signed_in(user(), dpop=True)) as client:
            assert await text_of(client, "whoami") == "alice"
