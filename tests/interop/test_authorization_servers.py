"""Our client and our protected server with real authorization servers: nanoidp, oidc-provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest

from interop.protected import (
    ALICE,
    CALLBACK,
    browse,
    check_renewal,
    end_token,
    nanoidp,
    new_place,
    oidc_provider,
    run_protected_server,
    signed_in,
    text_of,
    user,
)
from kit.rules import revisions_holding
from mcpgen_runtime import (
    ClientCredentials,
    Device,
    DeviceCode,
    DpopValidation,
    Introspection,
    MemoryStore,
    OAuth,
    OAuthError,
    Redirect,
    connect,
)
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import grant_key

pytestmark = [pytest.mark.interop, pytest.mark.anyio, pytest.mark.on_asyncio]

ISSUERS: Mapping[str, Any] = {"nanoidp": nanoidp, "oidc-provider": oidc_provider}
RULES = {
    "nanoidp": "auth-server-metadata.prm-used-by-client",
    "oidc-provider": "auth-server-metadata.as-metadata-both-client",
}
"""Rules of what clients read: oidc-provider has OpenID metadata alone."""


class Services(NamedTuple):
    """Running servers: the protected one, its issuer, and what alice types there."""

    name: str
    url: str
    issuer: str
    typed: Mapping[str, str]


@contextmanager
def run_services(name: str, **settings: Any) -> Iterator[Services]:
    """A protected server, and the authorization server that it trusts."""
    with new_place() as place, ISSUERS[name](place.url) as issuer:
        if settings.pop("introspects", False):
            settings["verifier"] = Introspection(f"{issuer}/introspect", "server", "secret")
        with run_protected_server(place, issuer, **settings) as url:
            yield Services(name, url, issuer, ALICE if name == "nanoidp" else {})


@pytest.fixture(scope="module", params=ISSUERS)
def services(request: pytest.FixtureRequest) -> Iterator[Services]:
    with run_services(request.param) as running:
        yield running


@pytest.mark.parametrize(
    ("services", "revision"),
    [(name, revision) for name in ISSUERS for revision in revisions_holding(RULES[name])],
    indirect=["services"],
)
async def test_a_user_signs_in_and_steps_up(services: Services, revision: str) -> None:
    auth = signed_in(user(**services.typed))
    async with connect(services.url, auth=auth, revision=revision) as client:
        assert await text_of(client, "whoami") == "alice"
        assert "files:write" in (await text_of(client, "write")).split()


async def test_a_token_is_renewed_and_the_refresh_token_replaced(services: Services) -> None:
    await check_renewal(services.url, redirect=user(**services.typed))


async def test_two_halves_meet_in_another_object(services: Services) -> None:
    store = MemoryStore()
    pending = await signed_in(user(), store=store).begin(services.url)
    returned = await browse(pending.url, services.typed)
    await signed_in(user(), store=store).pending(pending.dumps()).finish(returned)
    async with connect(services.url, auth=signed_in(user(), store=store)) as client:
        assert await text_of(client, "whoami") == "alice"


async def test_a_machine_authorizes_itself(services: Services) -> None:
    secret = "secret" if services.name == "nanoidp" else "secret-of-the-machine"
    auth = ClientCredentials("machine", secret, issuer=services.issuer)
    async with connect(services.url, auth=auth) as client:
        assert await text_of(client, "whoami") == "machine"


async def test_a_user_authorizes_on_another_device(services: Services) -> None:
    async def typed(code: DeviceCode) -> None:
        if code.verification_uri_complete and services.name != "nanoidp":
            await browse(code.verification_uri_complete, {"confirm": "yes"})
            return
        words = {**ALICE, "user_code": code.user_code, "action": "authorize"}
        assert "Device authorized" in await browse(code.verification_uri, words)

    known: dict[str, Any] = {"client_id": "screen", "issuer": services.issuer}
    settings = known if services.name == "nanoidp" else {"client_name": "Agent"}
    with anyio.fail_after(60):
        auth = OAuth(**settings, interaction=Device(typed))
        async with connect(services.url, auth=auth) as client:
            assert await text_of(client, "whoami") == "alice"


only_nanoidp = pytest.mark.parametrize("services", ["nanoidp"], indirect=True)


@only_nanoidp
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


@only_nanoidp
async def test_a_used_refresh_token_has_the_user_asked_again(services: Services) -> None:
    store, visits = MemoryStore(), list[str]()

    async def visit(url: str) -> str:
        visits.append(url)
        return await browse(url, ALICE)

    key = grant_key(canonical_resource(services.url))
    auth = signed_in(Redirect(CALLBACK, visit), store=store)
    async with connect(services.url, auth=auth) as client:
        await client.list_tools()
    await end_token(store, services.url)
    used = await store.load(key)
    for _ in range(2):
        async with connect(services.url, auth=auth) as client:
            assert await text_of(client, "whoami") == "alice"
        await store.save(key, used)
    assert len(visits) == 2


@only_nanoidp
async def test_a_scope_that_a_machine_may_not_have_is_refused(services: Services) -> None:
    auth = ClientCredentials("machine", "secret", issuer=services.issuer)
    async with connect(services.url, auth=auth) as client:
        with pytest.raises(OAuthError, match="invalid_scope"):
            await text_of(client, "write")


@only_nanoidp
@pytest.mark.parametrize("is_own", [True, False])
async def test_a_token_for_another_server_is_refused(services: Services, is_own: bool) -> None:
    form = {"grant_type": "client_credentials", "scope": "mcp:read"}
    form |= {"resource": services.url} if is_own else {}
    async with httpx2.AsyncClient(timeout=30) as http:
        machine = ("machine", "secret")
        answer = await http.post(f"{services.issuer}/token", data=form, auth=machine)
        headers = {"authorization": f"Bearer {answer.json()['access_token']}"}
        reply = await http.post(services.url, json={}, headers=headers)
    assert (reply.status_code == 401) is not is_own


async def test_the_authorization_server_is_asked_about_tokens() -> None:
    with run_services("nanoidp", introspects=True) as services:
        async with connect(services.url, auth=signed_in(user(**ALICE))) as client:
            assert await text_of(client, "whoami") == "alice"


async def test_a_token_is_bound_to_a_key() -> None:
    with run_services("oidc-provider", dpop=DpopValidation(required=True)) as bound:
        async with connect(bound.url, auth=signed_in(user(), dpop=True)) as client:
            assert await text_of(client, "whoami") == "alice"
