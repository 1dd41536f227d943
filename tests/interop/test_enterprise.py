"""Enterprise-managed authorization with two real authorization servers, by Authlib."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from interop.enterprise import (
    Client,
    IdentityProvider,
    Issuer,
    authorization_server,
    identity_provider,
    run_app,
)
from interop.protected import Place, end_token, new_place, run_protected_server, text_of
from kit.rules import revisions_holding
from mcpgen_runtime import (
    EnterpriseManaged,
    JwtVerifier,
    MemoryStore,
    OAuthError,
    PrivateKey,
    connect,
)
from mcpgen_runtime import IdentityProvider as Provider

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.on_asyncio,
]

REVISIONS = revisions_holding("auth-server-metadata.prm-used-by-client")
KEY = PrivateKey.generate("ES256")


@dataclass(frozen=True)
class Enterprise:
    """The running services of an enterprise."""

    place: Place
    provider: IdentityProvider
    issuer: Issuer

    def way(self, **more: Any) -> Provider:
        """A way to assertions by the exchange of alice's ID token."""
        settings = {
            "client_id": "desktop",
            "client_secret": "secret of desktop",
            "id_token": lambda: self.provider.id_token("alice"),
            **more,
        }
        return Provider(self.provider.token_endpoint, **settings)


@pytest.fixture
def enterprise() -> Iterator[Enterprise]:
    with new_place() as place, new_place() as at_provider, new_place() as at_issuer:
        provider, issuer = IdentityProvider(at_provider.origin), Issuer(at_issuer.origin)
        provider.clients["desktop"] = Client("desktop", "secret of desktop")
        issuer.clients["agent"] = Client("agent", "secret of agent")
        issuer.clients["signing"] = Client("signing", key=KEY.public_jwk())
        provider.trusting[issuer.url] = "agent"
        with (
            run_app(identity_provider(provider), at_provider),
            run_app(authorization_server(issuer, provider), at_issuer),
            run_protected_server(place, issuer.url, verifier=JwtVerifier(typed=True)),
        ):
            yield Enterprise(place, provider, issuer)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_user_is_vouched_for_and_not_asked(enterprise: Enterprise, revision: str) -> None:
    auth = EnterpriseManaged("agent", "secret of agent", id_jag=enterprise.way())
    async with connect(enterprise.place.url, auth=auth, revision=revision) as client:
        assert await text_of(client, "whoami") == "alice"
        assert await text_of(client, "client") == "agent"
        assert "files:write" in (await text_of(client, "write")).split()
    resources = {form["resource"] for form in enterprise.provider.forms}
    assert resources == {enterprise.place.url}
    assert len(enterprise.provider.forms) == len(enterprise.issuer.forms) == 2  # one to step up


async def test_a_client_with_a_key_needs_no_secret(enterprise: Enterprise) -> None:
    enterprise.provider.trusting[enterprise.issuer.url] = "signing"
    auth = EnterpriseManaged("signing", key=KEY, id_jag=enterprise.way())
    async with connect(enterprise.place.url, auth=auth) as client:
        assert await text_of(client, "client") == "signing"


async def test_an_assertion_may_come_from_a_function(enterprise: Enterprise) -> None:
    async def fetch(issuer: str, resource: str) -> str:
        return enterprise.provider.assertion("bob", issuer, resource, "mcp:read")

    auth = EnterpriseManaged("agent", "secret of agent", id_jag=fetch)
    async with connect(enterprise.place.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "bob"


async def test_a_token_that_has_ended_is_replaced_by_a_new_exchange(
    enterprise: Enterprise,
) -> None:
    store, url = MemoryStore(), enterprise.place.url
    for _ in range(2):
        way = enterprise.way()
        auth = EnterpriseManaged("agent", "secret of agent", id_jag=way, store=store)
        async with connect(url, auth=auth) as client:
            assert await text_of(client, "whoami") == "alice"
        await end_token(store, url)
    assertions = [form["assertion"] for form in enterprise.issuer.forms]
    assert len(set(assertions)) == len(assertions) == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"id_token": "nonsense"}, "invalid_grant"),
        ({"client_secret": "wrong"}, "invalid_client"),
    ],
)
async def test_a_refusal_of_the_identity_provider_is_an_error(
    enterprise: Enterprise, change: dict[str, str], code: str
) -> None:
    auth = EnterpriseManaged("agent", "secret of agent", id_jag=enterprise.way(**change))
    with pytest.raises(OAuthError) as caught:
        async with connect(enterprise.place.url, auth=auth):
            pass
    assert caught.value.code == code
    assert enterprise.issuer.forms == []


@pytest.mark.parametrize("kind", ["of another audience", "used before", "of another client"])
async def test_a_refused_assertion_is_an_error(enterprise: Enterprise, kind: str) -> None:
    provider, issuer, url = enterprise.provider, enterprise.issuer.url, enterprise.place.url
    provider.trusting["https://other.example"] = "agent"
    audience = "https://other.example" if kind == "of another audience" else issuer
    if kind == "of another client":
        provider.trusting[issuer] = "somebody"
    assertion = provider.assertion("alice", audience, url, "mcp:read")

    async def sign_in() -> None:
        auth = EnterpriseManaged("agent", "secret of agent", id_jag=lambda *_: assertion)
        async with connect(url, auth=auth) as client:
            assert await text_of(client, "whoami") == "alice"

    if kind == "used before":
        await sign_in()
    with pytest.raises(OAuthError) as caught:
        await sign_in()
    assert caught.value.code == "invalid_grant"
    assert assertion not in str(caught.value)
