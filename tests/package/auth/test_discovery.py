"""From a server to the authorization server that it trusts."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol.auth.challenges import parse_challenges
from mcp_protocol.auth.discovery import discovered, initial_scopes, step_up_scopes
from mcp_protocol.auth.documents import canonical_resource
from mcp_protocol.auth.steps import Fetched
from mcp_protocol.errors import AuthorizationError
from package.auth.answers import (
    AS_URL,
    ISSUER,
    METADATA,
    PRM_URL,
    RESOURCE,
    SERVER,
    World,
    around,
    found,
    said,
)
from package.rules import holding
from requirements import requirement

ROOT_PRM = "https://mcp.example/.well-known/oauth-protected-resource"
CUSTOM = "https://mcp.example/custom/metadata.json"
TENANT = f"{ISSUER}/tenant1"
WITH_PRM = holding("auth-server-metadata.prm-used-by-client")


def challenge(**parameters: str) -> Any:
    return parse_challenges(
        "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())
    )


@requirement(
    "auth-server-metadata.prm-used-by-client", "auth-server-metadata.as-metadata-both-client"
)
@pytest.mark.parametrize("revision", WITH_PRM)
def test_the_authorization_server_is_the_one_that_the_server_names(revision: str) -> None:
    world = World()
    server = world.run(discovered(around(revision), [], None))
    assert (server.issuer.issuer, server.resource) == (ISSUER, SERVER)
    assert world.urls() == [f"GET {PRM_URL}", f"GET {AS_URL}"]


@requirement(
    "auth-server-metadata.prm-header-url-wins",
    "auth-server-metadata.prm-url-from-header-2025-06-18",
    "auth-server-metadata.prm-both-mechanisms",
    "auth-ext.dpop-challenge-recognized",
)
@pytest.mark.parametrize("revision", WITH_PRM)
def test_the_address_of_the_challenge_is_used_and_no_other(revision: str) -> None:
    world = World({f"GET {CUSTOM}": said(RESOURCE)})
    challenges = challenge(resource_metadata=CUSTOM)
    world.run(discovered(around(revision), challenges, None))
    assert world.urls() == [f"GET {CUSTOM}", f"GET {AS_URL}"]


def test_a_challenge_whose_metadata_is_missing_ends_discovery() -> None:
    world = World()
    with pytest.raises(AuthorizationError, match="HTTP 404"):
        world.run(discovered(around(), challenge(resource_metadata=CUSTOM), None))
    assert world.urls() == [f"GET {CUSTOM}"]


@requirement("auth-server-metadata.prm-probe-order")
def test_the_root_is_asked_after_the_path() -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    world.answers[f"GET {ROOT_PRM}"] = said({**RESOURCE, "resource": "https://mcp.example"})
    server = world.run(discovered(around(), [], None))
    assert server.resource == "https://mcp.example"
    assert world.urls()[:2] == [f"GET {PRM_URL}", f"GET {ROOT_PRM}"]


@requirement(
    "auth-server-metadata.prm-resource-mismatch-refused",
    "auth-server-metadata.prm-resource-equals-probed-identifier",
    "auth-server-metadata.prm-resource-equals-request-url",
)
@pytest.mark.parametrize(
    "resource",
    ["https://evil.example/mcp", "https://mcp.example/other", f"{SERVER}/", "http://mcp.example"],
)
@pytest.mark.parametrize("place", [PRM_URL, CUSTOM])
def test_metadata_of_another_resource_is_not_used(resource: str, place: str) -> None:
    world = World({f"GET {place}": said({**RESOURCE, "resource": resource})})
    challenges = challenge(resource_metadata=CUSTOM) if place == CUSTOM else []
    with pytest.raises(AuthorizationError, match="another resource") as caught:
        world.run(discovered(around(), challenges, None))
    assert world.urls() == [f"GET {place}"]
    assert "evil" not in str(caught.value)


@requirement("auth-server-metadata.prm-none-found")
def test_a_server_without_metadata_and_without_settings_is_given_up() -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    with pytest.raises(AuthorizationError, match="no metadata"):
        world.run(discovered(around(), [], None))
    assert world.visited == []


def test_a_configured_issuer_takes_the_place_of_missing_metadata() -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    server = world.run(discovered(around(server="https://MCP.example/mcp#x"), [], ISSUER))
    assert (server.issuer.issuer, server.resource) == (ISSUER, "https://mcp.example/mcp")


@requirement("auth-registration.preregistered-mismatch-error")
def test_credentials_of_another_issuer_are_an_error_that_names_both() -> None:
    world = World()
    with pytest.raises(AuthorizationError, match=rf"of https://other\.example; .* {ISSUER}"):
        world.run(discovered(around(), [], "https://other.example"))
    assert world.urls() == [f"GET {PRM_URL}"]


@requirement(
    "auth-server-metadata.as-metadata-several-urls",
    "auth-server-metadata.as-metadata-order-with-path",
)
@pytest.mark.parametrize("last", [0, 1, 2])
def test_the_places_of_metadata_are_tried_in_order(last: int) -> None:
    places = [
        f"GET {ISSUER}/.well-known/oauth-authorization-server/tenant1",
        f"GET {ISSUER}/.well-known/openid-configuration/tenant1",
        f"GET {TENANT}/.well-known/openid-configuration",
    ]
    world = World({f"GET {PRM_URL}": said({**RESOURCE, "authorization_servers": [TENANT]})})
    world.answers[places[last]] = said({**METADATA, "issuer": TENANT})
    assert world.run(discovered(around(), [], None)).issuer.issuer == TENANT
    assert world.urls()[1:] == places[: last + 1]


def test_a_page_in_place_of_metadata_counts_as_none() -> None:
    world = World({f"GET {AS_URL}": Fetched(200, {}, b"<html>")})
    openid = f"GET {ISSUER}/.well-known/openid-configuration"
    world.answers[openid] = said(METADATA)
    assert world.run(discovered(around(), [], None)).issuer.issuer == ISSUER
    world.answers[openid] = Fetched(404)
    with pytest.raises(AuthorizationError, match="no metadata at its well-known URLs"):
        world.run(discovered(around(), [], None))


@requirement(
    "auth-server-metadata.as-metadata-issuer-identical",
    "auth-server-metadata.as-metadata-issuer-mismatch-unused",
    "auth-server-metadata.as-metadata-issuer-by-reference",
    "auth-flow.iss-record-authentic",
)
@pytest.mark.parametrize("issuer", ["https://honest.example", f"{ISSUER}/", "HTTPS://as.example"])
@pytest.mark.parametrize("revision", WITH_PRM)
def test_metadata_of_another_issuer_is_not_used(issuer: str, revision: str) -> None:
    world = World({f"GET {AS_URL}": said({**METADATA, "issuer": issuer})})
    with pytest.raises(AuthorizationError, match="not the issuer that was asked for") as caught:
        world.run(discovered(around(revision), [], None))
    assert "honest" not in str(caught.value)


def test_a_slash_of_an_issuer_can_be_forgiven() -> None:
    world = World({f"GET {AS_URL}": said({**METADATA, "issuer": f"{ISSUER}/"})})
    server = world.run(discovered(around(accept_issuer_slash=True), [], None))
    assert server.issuer.issuer == f"{ISSUER}/"


@requirement("auth-security.ssrf-considered")
@pytest.mark.parametrize("member", ["challenge", "issuer"])
@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/x", "https://2130706433/x", "file:///etc/passwd"]
)
def test_a_server_can_make_the_client_fetch_nothing_private(member: str, url: str) -> None:
    world = World({f"GET {PRM_URL}": said({**RESOURCE, "authorization_servers": [url]})})
    challenges = challenge(resource_metadata=url) if member == "challenge" else []
    with pytest.raises(AuthorizationError):
        world.run(discovered(around(), challenges, None))
    assert world.urls() == ([] if member == "challenge" else [f"GET {PRM_URL}"])


ORIGIN = holding("auth-server-metadata.legacy-base-url")
LEGACY = "https://mcp.example/.well-known/oauth-authorization-server"


@requirement(
    "auth-server-metadata.legacy-metadata-at-root",
    "auth-server-metadata.legacy-version-header",
    "auth-server-metadata.as-metadata-rfc8414-client",
)
@pytest.mark.parametrize("revision", ORIGIN)
def test_an_older_server_is_its_own_authorization_server(revision: str) -> None:
    world = World({f"GET {LEGACY}": said({**METADATA, "issuer": "https://mcp.example"})})
    server = world.run(discovered(around(revision), [], None))
    assert (server.issuer.issuer, server.resource) == ("https://mcp.example", None)
    assert world.urls() == [f"GET {LEGACY}"]
    assert world.asked[0].fields["MCP-Protocol-Version"] == revision


@requirement(
    "auth-server-metadata.legacy-default-endpoints", "auth-server-metadata.legacy-metadata-first"
)
@pytest.mark.parametrize("revision", ORIGIN)
@pytest.mark.parametrize("pinned", [True, False])
def test_an_older_server_without_metadata_has_default_endpoints(
    revision: str, pinned: bool
) -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    where = around(revision) if pinned else around(older=revision)
    server = world.run(discovered(where, [], None))
    endpoints = [
        server.endpoint(name, where)
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint")
    ]
    assert endpoints == [
        f"https://mcp.example/{name}" for name in ("authorize", "token", "register")
    ]
    assert world.urls()[-1] == f"GET {LEGACY}"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{",
        b'{"resource": 7}',
        b'{"resource": "https://mcp.example/mcp"}',
        b'{"resource": "https://mcp.example/mcp", "authorization_servers": []}',
        b'{"resource": "https://mcp.example/mcp", "authorization_servers": [7]}',
        b'{"a":' * 5000,
    ],
)
def test_malformed_metadata_is_an_error_without_its_text(document: bytes) -> None:
    world = World({f"GET {CUSTOM}": Fetched(200, {}, document)})
    with pytest.raises(AuthorizationError, match="expected"):
        world.run(discovered(around(), challenge(resource_metadata=CUSTOM), None))


@requirement("auth-scope.select-from-challenge", "auth-scope.challenge-authoritative")
@requirement("auth-scope.select-from-prm", "auth-scope.select-omit", "auth-scope.least-privilege")
@pytest.mark.parametrize(
    ("challenged", "supported", "scopes"),
    [
        ("a b", ["c"], ("a", "b")),
        (None, ["c", "d"], ("c", "d")),
        (None, None, ()),
        ("", ["c"], ()),
    ],
)
def test_scopes_come_from_the_challenge_or_the_metadata(
    challenged: str | None, supported: list[str] | None, scopes: tuple[str, ...]
) -> None:
    document = dict(RESOURCE) if supported is None else {**RESOURCE, "scopes_supported": supported}
    server = found(World({f"GET {PRM_URL}": said(document)}))
    challenges = [] if challenged is None else challenge(scope=challenged)
    assert initial_scopes(challenges, server, ()) == scopes


@requirement(
    "auth-scope.step-up-union",
    "auth-scope.step-up-union-source",
    "auth-scope.step-up-scopes-2025-11-25",
    "auth-scope.challenge-no-relation-assumed",
)
@pytest.mark.parametrize(
    ("revision", "scopes"),
    [
        *((name, ("basic", "write")) for name in holding("auth-scope.step-up-union")),
        *((name, ("write",)) for name in holding("auth-scope.step-up-scopes-2025-11-25")),
    ],
)
def test_a_step_up_asks_for_the_scopes_that_the_revision_says(
    revision: str, scopes: tuple[str, ...]
) -> None:
    server = found(
        World({f"GET {PRM_URL}": said({**RESOURCE, "scopes_supported": ["x"]})}), revision
    )
    assert step_up_scopes(challenge(scope="write"), server, (), ("basic",)) == scopes


@requirement(
    "auth-flow.resource-canonical-uri",
    "auth-flow.resource-canonical-lowercase",
    "auth-flow.resource-no-trailing-slash",
    "auth-flow.resource-most-specific",
    "auth-flow.resource-identifies-server",
    "auth-flow.resource-no-query",
)
@pytest.mark.parametrize(
    ("url", "resource"),
    [
        ("HTTPS://MCP.Example.com/Mcp", "https://mcp.example.com/Mcp"),
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com/server/mcp#x", "https://mcp.example.com/server/mcp"),
        ("https://mcp.example.com/server/", "https://mcp.example.com/server/"),
    ],
)
def test_a_server_is_identified_by_its_canonical_url(url: str, resource: str) -> None:
    assert canonical_resource(url) == resource


@requirement("auth-server-metadata.as-metadata-default-suffix")
def test_no_other_well_known_names_are_asked_for() -> None:
    world = World({f"GET {PRM_URL}": said({**RESOURCE, "authorization_servers": [TENANT]})})
    with pytest.raises(AuthorizationError):
        world.run(discovered(around(), [], None))
    names = {url.split("/.well-known/")[1].split("/")[0] for url in world.urls()}
    assert names == {
        "oauth-protected-resource",
        "oauth-authorization-server",
        "openid-configuration",
    }
