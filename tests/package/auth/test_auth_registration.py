"""How a client comes to its id at an authorization server."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import JWKRegistry

from kit.auth_answers import (
    ISSUER,
    NEWEST,
    NOW,
    PRM_URL,
    REDIRECT_URI,
    RESOURCE,
    World,
    around,
    comes_back,
    discover_server,
    issuer_of,
    json_response,
    query_of,
    serve_issuer,
    world_of,
)
from kit.rules import revisions_holding
from mcpgen_runtime import (
    AuthorizationError,
    OAuth,
    OAuthError,
    PrivateKey,
    Redirect,
    client_metadata_document,
)
from mcpgen_runtime.auth.flows import code_flow
from mcpgen_runtime.auth.registration import (
    ClientProfile,
    Registration,
    check_metadata_url,
    identify_client,
    registration_key,
)
from mcpgen_runtime.auth.steps import Fetch, Fetched
from mcpgen_runtime.auth.token_endpoint import ASSERTION_TYPE, ClientIdentity, encode_record
from requirements import EVERY_REVISION, requirement

CLIENT = "https://me.example/client.json"


def identity(
    world: World,
    profile: ClientProfile,
    revision: str = NEWEST,
    redirect: str = REDIRECT_URI,
    scopes: tuple[str, ...] = (),
    **metadata: Any,
) -> ClientIdentity:
    serve_issuer(world, issuer_of(revision), **metadata)
    server = discover_server(world, revision)
    return world.run(identify_client(around(revision), profile, server, redirect, scopes))


def run_whole(world: World, profile: ClientProfile, revision: str) -> None:
    """Run a whole flow with the user, from a server that was found."""
    server = discover_server(world, revision)
    world.run(code_flow(around(revision), profile, server, ()))


def sent_metadata(world: World) -> dict[str, Any]:
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
@pytest.mark.parametrize("revision", revisions_holding("auth-registration.priority-order"))
def test_the_first_way_to_an_id_that_applies_is_taken(
    given: str | None, supported: object, endpoint: str | None, revision: str
) -> None:
    profile = ClientProfile("Agent", client_id=given, metadata_url=CLIENT)
    world = world_of(
        revision, client_id_metadata_document_supported=supported, registration_endpoint=endpoint
    )
    if given is None and supported is not True and endpoint is None:
        with pytest.raises(AuthorizationError, match="give the `client_id`"):
            run_whole(world, profile, revision)
        assert (world.asked, world.visited) == ([], [])
        return
    run_whole(world, profile, revision)
    expected = given or (CLIENT if supported is True else "registered")
    (url,) = world.visited
    assert query_of(url)["client_id"] == world.form()["client_id"] == expected
    assert (f"POST {ISSUER}/register" in world.urls()) is (expected == "registered")


@requirement(
    "auth-registration.dcr-supported",
    "auth-registration.dcr-request-format",
    "auth-registration.application-type-sent",
    "auth-registration.application-type-native",
    "auth-registration.application-type-web",
    "auth-flow.refresh-grant-type-metadata",
)
@pytest.mark.parametrize("revision", revisions_holding("auth-registration.dcr-request-format"))
@pytest.mark.parametrize(
    ("redirect", "kind"), [(REDIRECT_URI, "native"), ("https://app.example/cb", "web")]
)
def test_a_registration_says_what_the_revision_asks_for(
    revision: str, redirect: str, kind: str
) -> None:
    world = World({"POST https://mcp.example/register": json_response({"client_id": "r"}, 201)})
    identity(world, ClientProfile("Agent"), revision, redirect)
    assert world.asked[-1].fields["Content-Type"] == "application/json"
    request = sent_metadata(world)
    typed = request.pop("application_type", None)
    assert typed == (
        kind if revision in revisions_holding("auth-registration.application-type-sent") else None
    )
    assert request == {
        "client_name": "Agent",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def test_registration_requests_the_server_scopes_and_more() -> None:
    world = World(
        {f"GET {PRM_URL}": json_response({**RESOURCE, "scopes_supported": ["read", "write"]})}
    )
    identity(world, ClientProfile(), scopes=("admin", "read"))
    assert sent_metadata(world)["scope"] == "admin read write"
    world.asked.clear()
    identity(world, ClientProfile(), scopes=("write",))
    assert world.asked == []


def registering_world(*, names_scopes: bool, limits: bool = False) -> World:
    """An authorization server that counts its clients."""
    scopes: dict[str, set[str]] = {}

    def register(step: Fetch) -> Fetched:
        request = json.loads(step.body or b"")
        members: dict[str, Any] = {"client_id": f"client-{len(scopes)}"}
        scopes[members["client_id"]] = set(request["scope"].split())
        if names_scopes:
            members["scope"] = request["scope"]
        return json_response(members, 201)

    def comes_back_with_scopes(url: str) -> str:
        query = query_of(url)
        if limits and not set(query["scope"].split()) <= scopes[query["client_id"]]:
            return comes_back(url).replace("code=", "error=invalid_scope&x=")
        return comes_back(url)

    world = World({f"POST {ISSUER}/register": register})
    world.returned = comes_back_with_scopes
    return world


def sign_in(world: World, *scopes: str) -> None:
    world.run(code_flow(around(), ClientProfile(), discover_server(world), scopes))


def clients_of(world: World) -> list[str]:
    """The client of each authorization."""
    return [query_of(url)["client_id"] for url in world.visited]


@pytest.mark.parametrize(
    ("names_scopes", "limits", "clients"),
    [
        pytest.param(False, False, [0, 0, 0], id="its scopes have no limit"),
        pytest.param(True, True, [0, 1, 1], id="its registration names a limit"),
        pytest.param(False, True, [0, 0, 1, 1], id="the user is refused at the limit"),
    ],
)
def test_a_client_is_registered_anew_for_scopes_beyond_its_limit(
    names_scopes: bool, limits: bool, clients: list[int]
) -> None:
    world = registering_world(names_scopes=names_scopes, limits=limits)
    for scopes in (("read",), ("read", "write"), ("write",)):
        sign_in(world, *scopes)
    assert clients_of(world) == [f"client-{number}" for number in clients]


def test_scopes_that_a_new_client_is_refused_too_end_the_attempt() -> None:
    world = registering_world(names_scopes=False)
    world.returned = lambda url: comes_back(url).replace("code=", "error=invalid_scope&x=")
    with pytest.raises(OAuthError, match="invalid_scope"):
        sign_in(world, "read")
    assert len(world.visited) == 1


LOOPBACK = ["http://127.0.0.1:{}/callback", "http://[::1]:{}/callback", "http://localhost:{}/back"]


@pytest.mark.parametrize(
    "other",
    [
        "http://127.0.0.1:3118/other",
        "http://localhost:3118/callback",
        "http://[::1]:3118/callback",
        "https://127.0.0.1:3118/callback",
        "http://127.0.0.1:3118/callback?x=1",
        "https://app.example:8443/callback",
    ],
)
def test_only_the_port_of_a_redirect_uri_on_loopback_may_differ(other: str) -> None:
    world = registering_world(names_scopes=True)
    over_tls = [f"https://{host}/callback" for host in ("app.example", "[::1]:1", "[::1]:2")]
    for uri in (REDIRECT_URI, other, *over_tls):
        world.redirect_uri = uri
        sign_in(world, "read")
    assert clients_of(world) == [f"client-{number}" for number in range(5)]


def test_a_client_registers_without_scopes_if_they_are_refused() -> None:
    def register(step: Fetch) -> Fetched:
        if b"scope" in (step.body or b""):
            return json_response({"error": "invalid_client_metadata"}, 400)
        return json_response({"client_id": "r"}, 201)

    world = World({f"POST {ISSUER}/register": register})
    assert identity(world, ClientProfile(), scopes=("read",)).client_id == "r"
    assert len(world.asked) == 2
    world.asked.clear()
    identity(world, ClientProfile(), scopes=("write",))
    assert world.asked == []


@requirement(
    "auth-registration.dcr-response-used",
    "auth-registration.registration-failure-handled",
    "auth-registration.registration-failure-surfaced",
)
@pytest.mark.parametrize("code", ["invalid_redirect_uri", "invalid_client_metadata"])
@pytest.mark.parametrize("revision", revisions_holding("auth-registration.dcr-response-used"))
def test_a_refused_registration_says_why(revision: str, code: str) -> None:
    refusal = {"error": code, "error_description": "no loopback"}
    world = world_of(revision)
    world.answers[f"POST {issuer_of(revision)}/register"] = json_response(refusal, 400)
    with pytest.raises(OAuthError, match=f"{code}: no loopback") as caught:
        run_whole(world, ClientProfile(), revision)
    assert caught.value.code == code
    assert world.urls() == [f"POST {issuer_of(revision)}/register"]
    assert (world.records, world.visited) == ({}, [])


def test_a_record_without_later_members_is_limited_for_ever() -> None:
    world = World()
    members = {"issuer": ISSUER, "client_id": "old", "redirect_uris": [REDIRECT_URI]}
    record = msgspec.json.encode({**members, "scopes": ["read"]})
    world.records[registration_key(ISSUER)] = record
    assert identity(world, ClientProfile(), scopes=("read",)).client_id == "old"
    assert world.records[registration_key(ISSUER)] == record
    assert identity(world, ClientProfile(), scopes=("write",)).client_id == "registered"


NO_METHOD = {"token_endpoint_auth_method": None}
BASIC, POST = "client_secret_basic", "client_secret_post"


@pytest.mark.parametrize(
    ("registered", "supported", "chosen"),
    [
        ({"client_secret": "s", "token_endpoint_auth_method": "none"}, ["none"], ("s", "none")),
        ({"client_secret": ""}, ["none"], (None, "none")),
        (NO_METHOD, ["none"], (None, "none")),
        ({"client_secret": 7, "token_endpoint_auth_method": "other"}, ["none"], (None, None)),
        ({"client_secret": "s"}, None, ("s", BASIC)),
        ({"client_secret": "s", **NO_METHOD}, ["none"], ("s", BASIC)),
        ({"client_secret": "s"}, ["none", POST, BASIC], ("s", BASIC)),
        ({"client_secret": "s"}, ["none", POST], ("s", POST)),
    ],
)
def test_a_registered_secret_has_a_method_that_both_sides_know(
    registered: dict[str, object],
    supported: list[str] | None,
    chosen: tuple[str | None, str | None],
) -> None:
    answer = json_response({"client_id": "r", **registered}, 201)
    world = World({f"POST {ISSUER}/register": answer})
    listed: dict[str, Any] = {"token_endpoint_auth_methods_supported": supported}
    client = identity(world, ClientProfile(), **listed)
    assert (client.client_secret, client.method) == chosen


@pytest.mark.parametrize("method", ["client_secret_post", "private_key_jwt"])
def test_a_chosen_method_without_assertions_is_registered(method: Any) -> None:
    world = World()
    identity(world, ClientProfile(method=method))
    expected = "none" if method == "private_key_jwt" else method
    assert sent_metadata(world)["token_endpoint_auth_method"] == expected


@pytest.mark.parametrize("identifier", [None, "", 7])
def test_a_registration_without_an_id_is_an_error(identifier: object) -> None:
    world = World({f"POST {ISSUER}/register": json_response({"client_id": identifier}, 201)})
    with pytest.raises(AuthorizationError, match="expected a `client_id`"):
        identity(world, ClientProfile())
    assert world.records == {}


def test_no_client_is_registered_that_could_not_authenticate() -> None:
    world = World()
    supported: Any = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
    with pytest.raises(AuthorizationError, match="supports no method for a registered client"):
        identity(world, ClientProfile(), **supported)
    assert (world.asked, world.records) == ([], {})


KNOWN = Registration(ISSUER, "old", redirect_uris=(REDIRECT_URI,))


@pytest.mark.parametrize(
    ("known", "client"),
    [
        pytest.param(KNOWN, "old", id="it fits"),
        pytest.param(replace(KNOWN, expires_at=NOW + 1), "old", id="its secret expires later"),
        pytest.param(replace(KNOWN, expires_at=NOW), "registered", id="its secret has expired"),
        pytest.param(
            replace(KNOWN, redirect_uris=("http://127.0.0.1:1/other",)),
            "registered",
            id="another redirect URI",
        ),
        pytest.param(replace(KNOWN, issuer="https://b.example"), "registered", id="another issuer"),
        pytest.param(None, "registered", id="garbage"),
    ],
)
def test_a_registration_that_does_not_fit_any_more_is_made_anew(
    known: Registration | None, client: str
) -> None:
    world = World()
    record = b"garbage" if known is None else encode_record(known)
    world.records[registration_key(ISSUER)] = record
    assert identity(world, ClientProfile()).client_id == client


@requirement(
    "auth-registration.cimd-client-support",
    "auth-registration.cimd-no-shared-secret",
    "auth-registration.cimd-portable",
)
@pytest.mark.parametrize("revision", revisions_holding("auth-registration.cimd-no-shared-secret"))
def test_a_metadata_url_is_the_id_of_a_client_without_secret(revision: str) -> None:
    profile = ClientProfile(metadata_url=CLIENT, client_secret="of nobody")
    world = World()
    for issuer in (ISSUER, "https://b.example"):
        serve_issuer(world, issuer, client_id_metadata_document_supported=True)
        world.answers[f"GET {PRM_URL}"] = json_response(
            {**RESOURCE, "authorization_servers": [issuer]}
        )
        run_whole(world, profile, revision)
        assert query_of(world.visited[-1])["client_id"] == CLIENT
        assert world.form()["client_id"] == CLIENT
        assert "client_secret" not in world.form()
        assert "Authorization" not in world.asked[0].fields
        assert world.urls() == [f"POST {issuer}/token"]


@requirement("auth-registration.cimd-private-key-jwt")
@pytest.mark.parametrize("revision", revisions_holding("auth-registration.cimd-private-key-jwt"))
def test_the_key_of_a_published_document_verifies_assertions(revision: str) -> None:
    key = PrivateKey.generate()
    document = client_metadata_document(
        CLIENT,
        "Agent",
        (REDIRECT_URI,),
        token_endpoint_auth_method="private_key_jwt",
        jwks={"keys": [key.public_jwk()]},
    )
    world = world_of(revision, client_id_metadata_document_supported=True)
    run_whole(world, ClientProfile(metadata_url=CLIENT, key=key), revision)
    form = world.form()
    assert form["client_assertion_type"] == ASSERTION_TYPE
    published = JWKRegistry.import_key(document["jwks"]["keys"][0])
    claims = jwt.decode(form["client_assertion"], published, [key.algorithm]).claims
    assert (claims["iss"], claims["sub"]) == (CLIENT, CLIENT)


@requirement(
    "auth-registration.cimd-url-shape",
    "auth-registration.cimd-url-shape-draft",
    revisions=EVERY_REVISION,
)
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
    with pytest.raises(ValueError, match="metadata_url"):
        OAuth("Agent", metadata_url=url)
    with pytest.raises(ValueError, match="metadata_url"):
        client_metadata_document(url, "Agent", (REDIRECT_URI,))


@requirement(
    "auth-registration.cimd-required-members",
    "auth-registration.cimd-client-id-matches",
    "auth-registration.cimd-url-shape-draft",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("url", [CLIENT, "https://ME.example:8443/Client/?v=1"])
def test_the_document_to_publish_names_its_own_address(url: str) -> None:
    document = client_metadata_document(url, "Agent", (REDIRECT_URI,))
    assert document["client_id"] == url
    assert document["client_name"] == "Agent"
    assert document["redirect_uris"] == [REDIRECT_URI]
    assert document["token_endpoint_auth_method"] == "none"


@requirement(
    "auth-registration.cimd-required-members",
    "auth-registration.cimd-no-shared-secret",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    ("name", "uris", "more"),
    [
        ("", (REDIRECT_URI,), {}),
        ("Agent", (), {}),
        ("Agent", ("http://app.example/cb",), {}),
        ("Agent", (REDIRECT_URI,), {"client_secret": "s"}),
        *(
            ("Agent", (REDIRECT_URI,), {"token_endpoint_auth_method": f"client_secret_{kind}"})
            for kind in ("basic", "post", "jwt")
        ),
    ],
)
def test_a_document_without_what_it_needs_is_not_made(
    name: str, uris: tuple[str, ...], more: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="expected"):
        client_metadata_document(CLIENT, name, uris, **more)


@requirement("auth-flow.redirect-localhost-or-https", revisions=EVERY_REVISION)
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
    for use in (lambda: Redirect(uri), lambda: client_metadata_document(CLIENT, "Agent", (uri,))):
        with nullcontext() if allowed else pytest.raises(ValueError, match="redirect URI"):
            assert use()


@pytest.mark.parametrize("template", LOOPBACK)
def test_another_port_on_loopback_keeps_the_client(template: str) -> None:
    world = registering_world(names_scopes=True)
    ports = (4001, 4002, 4002, 4003)
    for port in ports:
        world.redirect_uri = template.format(port)
        sign_in(world, "read")
    assert clients_of(world) == ["client-0"] * len(ports)
    uris = [query_of(url)["redirect_uri"] for url in world.visited]
    assert uris == [template.format(port) for port in ports]
    first = template.format(ports[0])
    assert world.preferred == [(), (first,), (first,), (first,)]


def test_a_refused_port_leads_to_another_registration() -> None:
    world = registering_world(names_scopes=True)

    def refuses_other_ports(url: str) -> str:
        number = int(query_of(url)["client_id"].removeprefix("client-"))
        if query_of(url)["redirect_uri"] != LOOPBACK[0].format(4001 + number):
            raise AuthorizationError("the user saw a page of the server and did not come back")
        return comes_back(url)

    world.returned = refuses_other_ports
    for port, refused in ((4001, False), (4002, True), (4002, False), (4003, False)):
        world.redirect_uri = LOOPBACK[0].format(port)
        with pytest.raises(AuthorizationError) if refused else nullcontext():
            sign_in(world, "read")
    assert clients_of(world) == ["client-0", "client-0", "client-1", "client-2"]
