"""From a server to the authorization server that it trusts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.auth_answers import (
    AS_URL,
    ISSUER,
    METADATA,
    PRM_URL,
    RESOURCE,
    SERVER,
    World,
    around,
    discover_server,
    json_response,
    metadata_of,
    query_of,
)
from kit.rules import revisions_holding
from mcpgen_runtime import AuthorizationError
from mcpgen_runtime.auth.challenges import (
    Challenge,
    format_challenge,
    format_challenges,
    parse_challenges,
)
from mcpgen_runtime.auth.discovery import discover, initial_scopes
from mcpgen_runtime.auth.flows import code_flow
from mcpgen_runtime.auth.identifiers import OFFLINE_ACCESS, canonical_resource
from mcpgen_runtime.auth.registration import ClientProfile
from mcpgen_runtime.auth.steps import Fetched
from package.tables import table
from requirements import EVERY_REVISION, requirement

CHALLENGES = table("challenges")
"""Header fields with their challenges, those that name `CUSTOM`, and URLs of servers."""


@requirement("auth-server-metadata.www-authenticate-parsed", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("header", "challenges"), CHALLENGES["parsed"].items())
def test_challenges_are_read_in_the_forms_that_servers_write(
    header: str, challenges: list[list[Any]]
) -> None:
    parsed = parse_challenges(header)
    assert [[each.scheme, dict(each.parameters)] for each in parsed] == challenges


@given(st.text(max_size=200))
def test_any_header_can_be_read(header: str) -> None:
    for challenge in parse_challenges(header):
        assert challenge.scheme


_VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


@requirement("auth-resource-server.challenge-quoting", revisions=EVERY_REVISION)
@given(st.lists(st.dictionaries(st.sampled_from(["realm", "scope", "error"]), _VALUES), max_size=3))
def test_formatted_challenges_parse_to_the_same_challenges(rows: list[dict[str, str]]) -> None:
    challenges = tuple(Challenge("Bearer", row) for row in rows)
    assert parse_challenges(format_challenges(challenges)) == challenges


@requirement("auth-resource-server.challenge-quoting", revisions=EVERY_REVISION)
def test_a_challenge_is_written_with_quotes() -> None:
    challenge = Challenge("Bearer", {"error": "insufficient_scope", "scope": 'a"b\\c'})
    assert format_challenge(challenge) == ('Bearer error="insufficient_scope", scope="a\\"b\\\\c"')
    assert format_challenge(Challenge("Negotiate", token68="YWJj")) == "Negotiate YWJj"


@requirement("auth-resource-server.challenge-quoting", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    "challenge",
    [
        Challenge("Bea rer"),
        Challenge("Bearer", {"sc ope": "a"}),
        Challenge("Bearer", {"scope": "a\r\nSet-Cookie: b"}),
        Challenge("Bearer", {"scope": "\xe9"}),
    ],
)
def test_challenges_that_no_header_can_hold_are_refused(challenge: Challenge) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        format_challenge(challenge)
    assert "Cookie" not in str(caught.value)


@requirement("auth-server-metadata.www-authenticate-parsed", revisions=EVERY_REVISION)
def test_a_challenge_may_have_a_token_and_its_scheme_any_case() -> None:
    first, second = parse_challenges("Negotiate YWJj+/==, bearer realm=x")
    assert (first.token68, first.parameters) == ("YWJj+/==", {})
    assert (second.token68, second.parameters) == (None, {"realm": "x"})
    assert second.is_scheme("Bearer", "DPoP")
    assert not first.is_scheme("Bearer", "DPoP")


ROOT_PRM = "https://mcp.example/.well-known/oauth-protected-resource"
CUSTOM = "https://mcp.example/custom/metadata.json"
TENANT = f"{ISSUER}/tenant1"
WITH_PRM = revisions_holding("auth-server-metadata.prm-used-by-client")
ORIGIN = revisions_holding("auth-server-metadata.legacy-base-url")
PLACES = {
    ISSUER: [AS_URL, f"{ISSUER}/.well-known/openid-configuration"],
    TENANT: [
        f"{ISSUER}/.well-known/oauth-authorization-server/tenant1",
        f"{ISSUER}/.well-known/openid-configuration/tenant1",
        f"{TENANT}/.well-known/openid-configuration",
    ],
}
LEGACY = "https://mcp.example/.well-known/oauth-authorization-server"


def challenge(**parameters: str) -> Any:
    return parse_challenges(
        "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())
    )


@requirement(
    "auth-server-metadata.prm-header-url-wins",
    "auth-server-metadata.prm-url-from-header-2025-06-18",
    "auth-server-metadata.prm-both-mechanisms",
    "auth-ext.dpop-challenge-recognized",
    "auth-server-metadata.prm-resource-equals-request-url",
    "auth-server-metadata.www-authenticate-parsed",
)
@pytest.mark.parametrize("revision", WITH_PRM)
@pytest.mark.parametrize("header", CHALLENGES["naming_the_metadata"])
def test_the_address_of_the_challenge_is_used_and_no_other(revision: str, header: str) -> None:
    world = World({f"GET {CUSTOM}": json_response(RESOURCE)})
    challenges = parse_challenges(header)
    server = world.run(discover(around(revision), challenges, None))
    assert world.urls() == [f"GET {CUSTOM}", f"GET {AS_URL}"]
    assert initial_scopes(challenges, server, ()) == ("a", "b")


@pytest.mark.parametrize("resource", [f"{SERVER}?tenant=1", SERVER])
def test_the_metadata_of_a_challenge_may_leave_out_the_query(resource: str) -> None:
    world = World({f"GET {CUSTOM}": json_response({**RESOURCE, "resource": resource})})
    context = around(server=f"{SERVER}?tenant=1")
    server = world.run(discover(context, challenge(resource_metadata=CUSTOM), None))
    assert server.resource == resource


@requirement(
    "auth-server-metadata.prm-resource-mismatch-refused",
    "auth-server-metadata.prm-resource-equals-probed-identifier",
    "auth-server-metadata.prm-resource-equals-request-url",
)
@pytest.mark.parametrize(
    "resource",
    ["https://evil.example/mcp", "https://mcp.example/other", f"{SERVER}/a", "http://mcp.example"],
)
@pytest.mark.parametrize("place", [PRM_URL, ROOT_PRM, CUSTOM])
@pytest.mark.parametrize("revision", WITH_PRM)
def test_metadata_of_another_resource_is_not_used(resource: str, place: str, revision: str) -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    world.answers[f"GET {place}"] = json_response({**RESOURCE, "resource": resource})
    challenges = challenge(resource_metadata=CUSTOM) if place == CUSTOM else []
    with pytest.raises(AuthorizationError, match="another resource") as caught:
        world.run(discover(around(revision), challenges, None))
    assert world.urls()[-1] == f"GET {place}"
    assert "evil" not in str(caught.value)


@requirement(
    "auth-flow.resource-same-in-both",
    "auth-server-metadata.prm-probe-order",
    "auth-server-metadata.prm-used-by-client",
    "auth-server-metadata.prm-resource-equals-probed-identifier",
)
@pytest.mark.parametrize(
    "resource", [SERVER, f"{SERVER}/", "https://mcp.example", "https://MCP.example:443/"]
)
@pytest.mark.parametrize("place", [PRM_URL, ROOT_PRM, CUSTOM])
@pytest.mark.parametrize("revision", WITH_PRM)
def test_a_parent_is_sent_as_the_metadata_spells_it(
    resource: str, place: str, revision: str
) -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    world.answers[f"GET {place}"] = json_response({**RESOURCE, "resource": resource})
    challenges = challenge(resource_metadata=CUSTOM) if place == CUSTOM else []
    where = around(revision)
    server = world.run(discover(where, challenges, None))
    probed = {PRM_URL: [PRM_URL], ROOT_PRM: [PRM_URL, ROOT_PRM], CUSTOM: [CUSTOM]}[place]
    assert world.urls() == [f"GET {url}" for url in (*probed, AS_URL)]
    world.run(code_flow(where, ClientProfile(client_id="given"), server, ()))
    assert query_of(world.visited[0])["resource"] == world.form()["resource"] == resource


@requirement("auth-server-metadata.prm-none-found", "auth-server-metadata.prm-probe-root-endpoint")
@pytest.mark.parametrize(
    ("server", "places"),
    [(SERVER, [PRM_URL, ROOT_PRM]), ("https://mcp.example/", [ROOT_PRM])],
)
@pytest.mark.parametrize("revision", WITH_PRM)
def test_a_server_without_metadata_and_settings_is_an_error(
    server: str, places: list[str], revision: str
) -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    with pytest.raises(AuthorizationError, match="no metadata"):
        world.run(discover(around(revision, server), [], None))
    assert world.urls() == [f"GET {place}" for place in places]


@requirement(
    "auth-server-metadata.prm-both-mechanisms",
    "auth-server-metadata.as-metadata-rfc8414-client",
    "auth-server-metadata.as-metadata-both-client",
    "auth-server-metadata.as-metadata-several-urls",
    "auth-server-metadata.as-metadata-order-with-path",
    "auth-server-metadata.as-metadata-order-without-path",
    "auth-server-metadata.as-metadata-no-root-for-path-issuer",
    "auth-server-metadata.as-metadata-path-insertion-2025-06-18",
    "auth-server-metadata.as-metadata-trailing-slash",
    "auth-server-metadata.as-metadata-default-suffix",
)
@pytest.mark.parametrize(
    ("host", "last"),
    [(host, last) for host, places in PLACES.items() for last in range(len(places) + 1)],
)
@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("revision", WITH_PRM)
def test_the_places_of_metadata_are_tried_in_order_and_no_others(
    host: str, last: int, slash: str, revision: str
) -> None:
    issuer, places = host + slash, PLACES[host]
    world = World(
        {f"GET {PRM_URL}": json_response({**RESOURCE, "authorization_servers": [issuer]})}
    )
    document = json_response(metadata_of(issuer, token_endpoint=f"{ISSUER}/oauth/token"))
    world.answers[f"GET {AS_URL}"] = Fetched(404) if host == ISSUER else document  # of no concern
    flow = discover(around(revision), [], None)
    if last == len(places):
        with pytest.raises(AuthorizationError, match="no metadata at its well-known URLs"):
            world.run(flow)
    else:
        world.answers[f"GET {places[last]}"] = document
        server = world.run(flow)
        assert server.metadata.issuer == issuer
        assert server.endpoint("token_endpoint", around(revision)) == f"{ISSUER}/oauth/token"
    assert world.urls()[1:] == [f"GET {place}" for place in places[: last + 1]]


@requirement("auth-server-metadata.prm-none-found", "auth-flow.resource-canonical-uri")
@pytest.mark.parametrize("revision", WITH_PRM)
def test_a_configured_issuer_takes_the_place_of_missing_metadata(revision: str) -> None:
    world = World({f"GET {PRM_URL}": Fetched(404)})
    where = around(revision, "https://MCP.example/mcp#x")
    server = world.run(discover(where, [], ISSUER))
    assert (server.metadata.issuer, server.resource) == (ISSUER, "https://mcp.example/mcp")


@requirement("auth-registration.preregistered-mismatch-error")
@pytest.mark.parametrize("revision", WITH_PRM)
def test_credentials_of_another_issuer_are_an_error_with_both(revision: str) -> None:
    world = World()
    with pytest.raises(AuthorizationError, match=rf"server https://other\.example, .* {ISSUER}"):
        world.run(discover(around(revision), [], "https://other.example"))
    assert world.urls() == [f"GET {PRM_URL}"]


def test_a_page_in_place_of_metadata_counts_as_none() -> None:
    world = World({f"GET {AS_URL}": Fetched(200, {}, b"<html>")})
    openid = f"GET {ISSUER}/.well-known/openid-configuration"
    world.answers[openid] = json_response(METADATA)
    assert world.run(discover(around(), [], None)).metadata.issuer == ISSUER
    world.answers[openid] = Fetched(404)
    with pytest.raises(AuthorizationError, match="no metadata at its well-known URLs"):
        world.run(discover(around(), [], None))


@requirement(
    "auth-server-metadata.as-metadata-issuer-identical",
    "auth-server-metadata.as-metadata-issuer-mismatch-unused",
    "auth-server-metadata.as-metadata-issuer-by-reference",
    "auth-flow.iss-record-authentic",
)
@pytest.mark.parametrize("issuer", ["https://honest.example", "HTTPS://as.example", 7, None])
@pytest.mark.parametrize("forgiving", [True, False])
@pytest.mark.parametrize("revision", WITH_PRM)
def test_metadata_of_another_issuer_is_not_used(
    issuer: object, forgiving: bool, revision: str
) -> None:
    world = World({f"GET {AS_URL}": json_response({**METADATA, "issuer": issuer})})
    with pytest.raises(AuthorizationError, match="not the expected issuer") as caught:
        world.run(discover(around(revision, accept_issuer_slash=forgiving), [], None))
    assert "honest" not in str(caught.value)
    assert world.urls() == [f"GET {PRM_URL}", f"GET {AS_URL}"]


def test_a_slash_at_the_end_of_an_issuer_is_forgiven_if_wanted() -> None:
    world = World({f"GET {AS_URL}": json_response({**METADATA, "issuer": f"{ISSUER}/"})})
    forgiving = discover(around(accept_issuer_slash=True), [], None)
    assert world.run(forgiving).metadata.issuer == f"{ISSUER}/"
    with pytest.raises(AuthorizationError, match="not the expected issuer"):
        world.run(discover(around(), [], None))


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ("http://mcp.example/mcp", "the server's URL: expected https for authorization"),
        ("https://10.0.0.1/mcp", "the server's URL: the URL leads to a private"),
    ],
)
def test_a_server_whose_url_is_not_allowed_is_asked_nothing(server: str, text: str) -> None:
    world = World()
    with pytest.raises(AuthorizationError, match=text):
        world.run(discover(around(server=server), [], None))
    assert world.asked == []


def test_documents_of_errors_are_no_metadata() -> None:
    other = "https://b.example"
    wrong = json_response({**RESOURCE, "authorization_servers": [other]}, 404)
    world = World({f"GET {PRM_URL}": wrong, f"GET {AS_URL}": json_response(METADATA, 404)})
    where = around(older=ORIGIN[0])
    server = world.run(discover(where, [], None))
    assert server.metadata.issuer == "https://mcp.example"
    world.answers[f"GET {LEGACY}"] = json_response(metadata_of(ISSUER), 404)
    assert world.run(discover(where, [], None)).endpoint("token_endpoint", where) == (
        "https://mcp.example/token"
    )
    with pytest.raises(AuthorizationError, match=f"^{ISSUER} has no metadata at its well-known"):
        world.run(discover(around(), [], ISSUER))


@pytest.mark.parametrize("named", [ISSUER, f"{ISSUER}/"])
@pytest.mark.parametrize("wanted", [ISSUER, f"{ISSUER}/"])
def test_credentials_of_an_issuer_tolerate_a_final_slash(wanted: str, named: str) -> None:
    world = World({f"GET {PRM_URL}": json_response({**RESOURCE, "authorization_servers": [named]})})
    server = world.run(discover(around(accept_issuer_slash=True), [], wanted))
    assert server.metadata.issuer == ISSUER
    if wanted != named:
        with pytest.raises(AuthorizationError, match="expected the authorization server"):
            world.run(discover(around(), [], wanted))


@requirement("auth-security.ssrf-considered")
@pytest.mark.parametrize("member", ["challenge", "issuer"])
@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/x", "https://2130706433/x", "file:///etc/passwd"]
)
@pytest.mark.parametrize("revision", WITH_PRM)
def test_a_server_can_make_the_client_fetch_nothing_private(
    member: str, url: str, revision: str
) -> None:
    world = World({f"GET {PRM_URL}": json_response({**RESOURCE, "authorization_servers": [url]})})
    challenges = challenge(resource_metadata=url) if member == "challenge" else []
    with pytest.raises(AuthorizationError):
        world.run(discover(around(revision), challenges, None))
    assert world.urls() == ([] if member == "challenge" else [f"GET {PRM_URL}"])


@requirement(
    "auth-server-metadata.legacy-metadata-at-root",
    "auth-server-metadata.legacy-version-header",
    "auth-server-metadata.legacy-base-url",
    "auth-server-metadata.as-metadata-rfc8414-client",
)
@pytest.mark.parametrize("revision", ORIGIN)
@pytest.mark.parametrize("path", ["", "/mcp", "/v1/mcp"])
def test_an_older_server_is_its_own_authorization_server(revision: str, path: str) -> None:
    origin, endpoint = "https://mcp.example", "https://mcp.example/oauth/token"
    where = around(revision, origin + path)
    world = World({f"GET {LEGACY}": json_response(metadata_of(origin, token_endpoint=endpoint))})
    server = world.run(discover(where, [], None))
    assert (server.metadata.issuer, server.resource) == (origin, None)
    assert server.endpoint("token_endpoint", where) == endpoint
    assert world.urls() == [f"GET {LEGACY}"]
    assert world.asked[0].fields["MCP-Protocol-Version"] == revision


@requirement("auth-server-metadata.as-metadata-issuer-by-reference")
@pytest.mark.parametrize("revision", ORIGIN)
@pytest.mark.parametrize("issuer", ["https://honest.example", "https://mcp.example/mcp", ISSUER])
def test_an_older_server_does_not_speak_for_another_issuer(revision: str, issuer: str) -> None:
    world = World({f"GET {LEGACY}": json_response(metadata_of(issuer))})
    with pytest.raises(AuthorizationError, match="not the expected issuer"):
        world.run(discover(around(revision), [], None))
    assert world.urls() == [f"GET {LEGACY}"]


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
    server = world.run(discover(where, [], None))
    endpoints = [
        server.endpoint(name, where)
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint")
    ]
    assert endpoints == [
        f"https://mcp.example/{name}" for name in ("authorize", "token", "register")
    ]
    assert world.urls()[-1] == f"GET {LEGACY}"


@requirement("auth-security.ssrf-no-reflection")
@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"INSIDE",
        b'["INSIDE"]',
        b'{"INSIDE',
        b'{"resource": 7, "INSIDE": "INSIDE"}',
        b'{"resource": "INSIDE"}',
        b'{"resource": "https://mcp.example/mcp", "a": "INSIDE"}',
        b'{"resource": "https://mcp.example/mcp", "authorization_servers": []}',
        b'{"resource": "https://mcp.example/mcp", "authorization_servers": [7, "INSIDE"]}',
        b'{"INSIDE":' * 5000,
    ],
    ids=lambda document: document[:80].decode(),
)
@pytest.mark.parametrize("revision", WITH_PRM)
def test_malformed_metadata_is_an_error_without_its_text(document: bytes, revision: str) -> None:
    world = World({f"GET {CUSTOM}": Fetched(200, {}, document)})
    with pytest.raises(AuthorizationError) as caught:
        world.run(discover(around(revision), challenge(resource_metadata=CUSTOM), None))
    assert "INSIDE" not in str(caught.value)
    assert world.urls() == [f"GET {CUSTOM}"]


@requirement("auth-flow.offline-access-only-if-listed")
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("revision", WITH_PRM)
def test_offline_access_of_a_challenge_is_kept_if_it_is_listed(revision: str, listed: bool) -> None:
    scopes = ["a", OFFLINE_ACCESS] if listed else ["a"]
    document = json_response({**METADATA, "scopes_supported": scopes})
    server = discover_server(World({f"GET {AS_URL}": document}), revision)
    kept = listed or revision not in revisions_holding("auth-flow.offline-access-only-if-listed")
    named = initial_scopes(challenge(scope=f"a {OFFLINE_ACCESS}"), server, ())
    assert named == (("a", OFFLINE_ACCESS) if kept else ("a",))


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
@pytest.mark.parametrize("revision", WITH_PRM)
def test_scopes_come_from_the_challenge_or_the_metadata(
    challenged: str | None, supported: list[str] | None, scopes: tuple[str, ...], revision: str
) -> None:
    document = dict(RESOURCE) if supported is None else {**RESOURCE, "scopes_supported": supported}
    server = discover_server(World({f"GET {PRM_URL}": json_response(document)}), revision)
    challenges = [] if challenged is None else challenge(scope=challenged)
    assert initial_scopes(challenges, server, ()) == scopes


@requirement(
    "auth-flow.resource-canonical-uri",
    "auth-flow.resource-canonical-lowercase",
    "auth-flow.resource-no-trailing-slash",
    "auth-flow.resource-most-specific",
    "auth-flow.resource-no-query",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(("url", "resource"), CHALLENGES["canonical_urls"].items())
def test_a_server_is_identified_by_its_canonical_url(url: str, resource: str) -> None:
    assert canonical_resource(url) == resource
