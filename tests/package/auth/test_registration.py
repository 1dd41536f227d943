"""How a client comes to its id at an authorization server."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mcp_protocol import client_metadata_document
from mcp_protocol.auth.client_authentication import ClientIdentity
from mcp_protocol.auth.records import Registration, encoded_record, registration_key
from mcp_protocol.auth.registration import (
    ClientProfile,
    check_metadata_url,
    check_redirect_uri,
    identified,
)
from mcp_protocol.errors import AuthorizationError, OAuthError
from package.auth.answers import (
    AS_URL,
    ISSUER,
    METADATA,
    NEWEST,
    REDIRECT_URI,
    World,
    around,
    found,
    said,
)
from package.rules import holding
from requirements import requirement

CLIENT = "https://me.example/client.json"


def identity(
    world: World,
    profile: ClientProfile,
    revision: str = NEWEST,
    redirect: str = REDIRECT_URI,
    **metadata: Any,
) -> ClientIdentity:
    world.answers[f"GET {AS_URL}"] = said({**METADATA, **metadata})
    server = found(world, revision)
    return world.run(identified(around(revision), profile, server, redirect))


def sent(world: World) -> dict[str, Any]:
    body = world.asked[-1].body
    assert body is not None
    value: dict[str, Any] = json.loads(body)
    return value


@requirement(
    "auth-registration.priority-order",
    "auth-registration.static-credentials-option",
    "auth-registration.cimd-check-flag",
    "auth-registration.cimd-fallback",
    "auth-registration.dcr-deprecated",
    "auth-registration.client-id-before-flow",
)
@pytest.mark.parametrize("given", ["id", None])
@pytest.mark.parametrize("supported", [True, False, "true", None])
@pytest.mark.parametrize("endpoint", [f"{ISSUER}/register", None])
def test_the_first_way_to_an_id_that_applies_is_taken(
    given: str | None, supported: object, endpoint: str | None
) -> None:
    world = World()
    profile = ClientProfile("Agent", client_id=given, metadata_url=CLIENT)
    metadata: dict[str, Any] = {
        "client_id_metadata_document_supported": supported,
        "registration_endpoint": endpoint,
    }
    if given is None and supported is not True and endpoint is None:
        with pytest.raises(AuthorizationError, match="give the `client_id`"):
            identity(world, profile, **metadata)
        return
    client = identity(world, profile, **metadata)
    expected = given or (CLIENT if supported is True else "registered")
    assert client.client_id == expected
    assert bool(world.asked) is (expected == "registered")


@requirement(
    "auth-registration.dcr-supported",
    "auth-registration.dcr-request-format",
    "auth-registration.application-type-sent",
    "auth-registration.application-type-native",
    "auth-registration.application-type-web",
)
@pytest.mark.parametrize("revision", holding("auth-registration.dcr-request-format"))
@pytest.mark.parametrize(
    ("redirect", "kind"), [(REDIRECT_URI, "native"), ("https://app.example/cb", "web")]
)
def test_a_registration_says_what_the_revision_asks_for(
    revision: str, redirect: str, kind: str
) -> None:
    world = World({"POST https://mcp.example/register": said({"client_id": "r"}, 201)})
    identity(world, ClientProfile("Agent"), revision, redirect)
    assert world.asked[-1].fields["Content-Type"] == "application/json"
    request = sent(world)
    typed = request.pop("application_type", None)
    assert typed == (
        kind if revision in holding("auth-registration.application-type-sent") else None
    )
    assert request == {
        "client_name": "Agent",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


@requirement("auth-registration.dcr-response-used")
def test_what_the_server_registered_counts_and_not_what_was_asked_for() -> None:
    answer = {
        "client_id": "given",
        "client_secret": "s",
        "token_endpoint_auth_method": "client_secret_post",
    }
    world = World({f"POST {ISSUER}/register": said(answer, 201)})
    client = identity(world, ClientProfile())
    assert (client.client_id, client.client_secret, client.method) == (
        "given",
        "s",
        "client_secret_post",
    )


@requirement(
    "auth-registration.registration-failure-handled",
    "auth-registration.registration-failure-surfaced",
)
def test_a_refused_registration_says_why() -> None:
    refusal = {"error": "invalid_redirect_uri", "error_description": "no loopback"}
    world = World({f"POST {ISSUER}/register": said(refusal, 400)})
    with pytest.raises(OAuthError, match="invalid_redirect_uri: no loopback"):
        identity(world, ClientProfile())
    assert len(world.asked) == 1
    assert world.records == {}


@requirement("auth-registration.credentials-keyed-by-issuer", "auth-registration.state-per-as")
@requirement(
    "auth-registration.no-cross-as-assumption", "auth-registration.no-reuse-after-as-change"
)
@requirement("auth-registration.reregister-after-as-change")
def test_a_registration_is_used_again_at_its_issuer_only() -> None:
    world = World()
    assert identity(world, ClientProfile()).client_id == "registered"
    world.asked.clear()
    assert identity(world, ClientProfile()).client_id == "registered"
    assert world.asked == []
    assert list(world.records) == [registration_key(ISSUER)]
    other = Registration("https://b.example", "of-b", redirect_uris=(REDIRECT_URI,))
    world.records[registration_key(ISSUER)] = encoded_record(other)
    assert identity(world, ClientProfile()).client_id == "registered"


@pytest.mark.parametrize(
    "known",
    [
        Registration(ISSUER, "old", redirect_uris=("http://127.0.0.1:1/callback",)),
        Registration(ISSUER, "old", redirect_uris=(REDIRECT_URI,), expires_at=1),
        None,
    ],
)
def test_a_registration_that_does_not_fit_any_more_is_made_anew(known: Registration | None) -> None:
    world = World()
    record = b"garbage" if known is None else msgspec.json.encode(known)
    world.records[registration_key(ISSUER)] = record
    assert identity(world, ClientProfile()).client_id == "registered"


@requirement(
    "auth-registration.cimd-client-support",
    "auth-registration.cimd-no-shared-secret",
    "auth-registration.cimd-portable",
)
def test_the_address_of_metadata_is_the_id_of_a_client_without_secret() -> None:
    client = identity(
        World(), ClientProfile(metadata_url=CLIENT), client_id_metadata_document_supported=True
    )
    assert client == ClientIdentity(CLIENT, None, "none")


@requirement("auth-registration.cimd-url-shape", "auth-registration.cimd-url-shape-draft")
@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/c.json",
        "https://example.com",
        "https://example.com/",
        "https://u:p@example.com/c.json",
        "https://example.com/a/../c.json",
        "https://example.com/./c.json",
        "https://example.com/c.json#x",
        "nonsense",
    ],
)
def test_an_address_that_can_be_no_client_id_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="metadata_url"):
        check_metadata_url(url)


@requirement("auth-registration.cimd-required-members", "auth-registration.cimd-client-id-matches")
def test_the_document_to_publish_names_its_own_address() -> None:
    document = client_metadata_document(CLIENT, "Agent", (REDIRECT_URI,))
    assert document["client_id"] == CLIENT
    assert document["redirect_uris"] == [REDIRECT_URI]
    assert document["token_endpoint_auth_method"] == "none"


@pytest.mark.parametrize(
    ("name", "uris", "more"),
    [
        ("", (REDIRECT_URI,), {}),
        ("Agent", (), {}),
        ("Agent", ("http://app.example/cb",), {}),
        ("Agent", (REDIRECT_URI,), {"client_secret": "s"}),
        ("Agent", (REDIRECT_URI,), {"token_endpoint_auth_method": "client_secret_basic"}),
    ],
)
def test_a_document_without_what_it_needs_is_not_made(
    name: str, uris: tuple[str, ...], more: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="expected"):
        client_metadata_document(CLIENT, name, uris, **more)


@requirement("auth-flow.redirect-localhost-or-https")
@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("http://localhost:3000/cb", True),
        ("http://127.0.0.1:3000/cb", True),
        ("http://[::1]:3000/cb", True),
        ("https://app.example/cb", True),
        ("http://app.example/cb", False),
        ("https://app.example/cb#x", False),
        ("custom:/cb", False),
        ("javascript:alert(1)", False),
    ],
)
def test_a_redirect_uri_is_https_or_loopback(uri: str, allowed: bool) -> None:
    if allowed:
        check_redirect_uri(uri)
        return
    with pytest.raises(ValueError, match="redirect URI"):
        check_redirect_uri(uri)
