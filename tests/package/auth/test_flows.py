"""The authorization code flow, up to the URL and from the return on."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest

from kit.auth_answers import (
    AS_URL,
    ISSUER,
    METADATA,
    NEWEST,
    NOW,
    PRM_URL,
    REDIRECT_URI,
    RESOURCE,
    TOKEN,
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
from mcpgen_runtime import AuthorizationError, DeviceCode, IdentityProvider, OAuthError, PrivateKey
from mcpgen_runtime.auth.discovery import with_offline_access
from mcpgen_runtime.auth.flows import (
    CodeRequest,
    begin_code_flow,
    challenge_of,
    code_flow,
    finish_code_flow,
    new_verifier,
)
from mcpgen_runtime.auth.identifiers import OFFLINE_ACCESS
from mcpgen_runtime.auth.jwt_signing import ProofKey, base64url
from mcpgen_runtime.auth.registration import ClientProfile
from mcpgen_runtime.auth.steps import Call, Fetch, Fetched, Save, ShowCode, Visit
from mcpgen_runtime.auth.token_endpoint import Grant
from requirements import EVERY_REVISION, requirement

PROFILE = ClientProfile("Agent")
WITH_RESOURCE = revisions_holding("auth-flow.resource-implemented")
with_iss = pytest.mark.parametrize("revision", revisions_holding("auth-flow.iss-recorded"))


def request_in(world: World, revision: str = NEWEST, /, **metadata: Any) -> CodeRequest:
    """The first half, with more in the metadata of the authorization server."""
    serve_issuer(world, issuer_of(revision), **metadata)
    server = discover_server(world, revision)
    return world.run(begin_code_flow(around(revision), PROFILE, server, ("a", "b")))


def finish_flow(world: World, request: CodeRequest, returned: str) -> Grant:
    return world.run(finish_code_flow(around(), PROFILE, request, returned))


@requirement("auth-flow.pkce-verifier-format", "auth-flow.pkce-s256", revisions=EVERY_REVISION)
def test_a_verifier_is_new_each_time_and_hashed_as_challenge() -> None:
    first, second = new_verifier(), new_verifier()
    assert first != second
    assert re.fullmatch(r"[A-Za-z0-9\-._~]{64}", first)
    assert challenge_of(first) == base64url(hashlib.sha256(first.encode()).digest())
    assert "=" not in challenge_of(first)


@requirement("auth-server-metadata.legacy-defaults-other-rules")
@pytest.mark.parametrize(
    "revision", revisions_holding("auth-server-metadata.legacy-default-endpoints")
)
def test_default_endpoints_are_used_with_pkce_and_no_resource(revision: str) -> None:
    base = "https://mcp.example"
    world = World({f"POST {base}/register": json_response({"client_id": "x"}, 201)})
    world.answers[f"POST {base}/token"] = json_response(TOKEN)
    server = discover_server(world, revision)
    world.run(code_flow(around(revision), PROFILE, server, ()))
    sent, form = query_of(world.visited[0]), world.form()
    assert world.visited[0].startswith(f"{base}/authorize?")
    assert not {"resource"} & {*sent, *form}
    assert sent["code_challenge"] == challenge_of(form["code_verifier"])


@requirement(
    "auth-flow.pkce-support-verified",
    "auth-flow.pkce-support-source",
    "auth-flow.pkce-absent-rfc8414",
    "auth-flow.pkce-absent-oidc",
)
@pytest.mark.parametrize("methods", [None, [], ["plain"], "S256"])
@pytest.mark.parametrize("revision", revisions_holding("auth-flow.pkce-support-verified"))
@pytest.mark.parametrize("openid", [True, False])
def test_a_server_without_pkce_is_refused_before_registration(
    methods: object, revision: str, openid: bool
) -> None:
    document = {**METADATA, "code_challenge_methods_supported": methods}
    url = f"{ISSUER}/.well-known/openid-configuration" if openid else AS_URL
    world = World({f"GET {AS_URL}": json_response({}, 404), f"GET {url}": json_response(document)})
    server = discover_server(world, revision)
    with pytest.raises(AuthorizationError, match="PKCE with S256"):
        world.run(code_flow(around(revision), PROFILE, server, ()))
    assert (world.asked, world.visited) == ([], [])


@requirement("auth-flow.state-mismatch-discarded")
@pytest.mark.parametrize("revision", revisions_holding("auth-flow.state-mismatch-discarded"))
@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("?code=stolen", "another `state`"),
        ("?code=stolen&state=other", "another `state`"),
        ("?code=stolen&state=EARLIER", "another `state`"),
        ("?error=access_denied&error_description=foreign&state=other", "another `state`"),
        ("?code=stolen&state=STATE&code=b", "repeats"),
        ("?state=STATE", "has no code"),
        ("?code=&state=STATE", "has no code"),
        ("?code=stolen&state=STATE" + "&x=" * 99, "the authorization response is malformed"),
    ],
)
def test_a_return_with_another_state_is_discarded(returned: str, text: str, revision: str) -> None:
    world = World()
    earlier, request = request_in(world, revision), request_in(world, revision)
    world.asked.clear()
    query = returned.replace("STATE", request.state).replace("EARLIER", earlier.state)
    issuer = quote(issuer_of(revision), safe="")
    with pytest.raises(AuthorizationError, match=text) as caught:
        finish_flow(world, request, f"{REDIRECT_URI}{query}&iss={issuer}")
    assert world.asked == []
    assert "stolen" not in str(caught.value)
    assert "foreign" not in str(caught.value)


SAME = "https%3A%2F%2Fas.example"


@requirement(
    "auth-flow.iss-advertised-absent",
    "auth-flow.iss-advertised-present",
    "auth-flow.iss-unadvertised-present",
    "auth-flow.iss-before-code-sent",
    "auth-flow.iss-no-normalization",
    "auth-flow.iss-error-responses",
    "auth-security.mix-up",
)
@with_iss
@pytest.mark.parametrize("what", ["code=the-code", "error=access_denied&error_description=evil"])
@pytest.mark.parametrize(
    ("advertised", "iss"),
    [
        (True, None),
        *product(
            (True, False),
            (
                "https%3A%2F%2Fevil.example",
                f"{SAME}%2F",
                f"{SAME}%3A443",
                "HTTPS%3A%2F%2FAS.example",
                "https%3A%2F%2F%2561s.example",
                "",
            ),
        ),
    ],
)
def test_a_return_of_another_issuer_sends_no_code_and_is_hidden(
    revision: str, what: str, advertised: bool, iss: str | None
) -> None:
    world = World()
    request = request_in(world, revision, authorization_response_iss_parameter_supported=advertised)
    world.asked.clear()
    suffix = "" if iss is None else f"&iss={iss}"
    with pytest.raises(AuthorizationError, match=r"issuer|lacks `iss`") as caught:
        finish_flow(world, request, f"{REDIRECT_URI}?{what}&state={request.state}{suffix}")
    assert not isinstance(caught.value, OAuthError)
    assert "evil" not in str(caught.value)
    assert world.asked == []


@requirement(
    "auth-flow.iss-recorded",
    "auth-flow.iss-record-per-request",
    "auth-flow.iss-advertised-present",
    "auth-flow.iss-unadvertised-present",
    "auth-flow.iss-unadvertised-absent",
    "auth-flow.iss-decode-first",
)
@with_iss
@pytest.mark.parametrize(("advertised", "named"), [(True, True), (False, True), (False, False)])
def test_two_authorizations_at_once_keep_their_own_issuers(
    revision: str, advertised: bool, named: bool
) -> None:
    world, requests = World(), {}
    for issuer in (ISSUER, "https://b.example"):
        serve_issuer(world, issuer, authorization_response_iss_parameter_supported=advertised)
        world.answers[f"GET {PRM_URL}"] = json_response(
            {**RESOURCE, "authorization_servers": [issuer]}
        )
        server = discover_server(world, revision)
        flow = begin_code_flow(around(revision), PROFILE, server, ())
        requests[issuer] = world.run(flow)
    world.asked.clear()
    one, two = requests
    for issuer, other in ((two, one), (one, two)):  # the callbacks come in reverse order
        request = requests[issuer]
        with pytest.raises(AuthorizationError, match="another issuer"):
            finish_flow(world, request, comes_back(request.url, iss=quote(other, safe="")))
        assert world.asked == []
        more = {"iss": quote(issuer, safe="")} if named else {}
        assert finish_flow(world, request, comes_back(request.url, **more)).issuer == issuer
        assert world.urls() == [f"POST {issuer}/token"]
        world.asked.clear()


def test_an_endpoint_keeps_its_own_query_and_offline_access_needs_consent() -> None:
    world = World()
    serve_issuer(world, ISSUER, authorization_endpoint=f"{ISSUER}/authorize?tenant=t")
    for scopes, prompt in ((("a",), None), (("a", OFFLINE_ACCESS), "consent")):
        server = discover_server(world)
        request = world.run(begin_code_flow(around(), PROFILE, server, scopes))
        query = query_of(request.url)
        assert (query["tenant"], query["response_type"]) == ("t", "code")
        assert query.get("prompt") == prompt


def test_a_user_who_says_no_is_an_error_with_its_code() -> None:
    world = World()
    request = request_in(world)
    back = f"{REDIRECT_URI}?error=access_denied&error_description=no%0athanks&state={request.state}"
    with pytest.raises(OAuthError, match=r"access_denied: no\\nthanks") as caught:
        finish_flow(world, request, back)
    assert caught.value.code == "access_denied"
    with pytest.raises(OAuthError, match=r"access_denied$"):
        finish_flow(world, request, f"{REDIRECT_URI}?error=access_denied&state={request.state}")


@requirement("auth-flow.offline-access-allowed", "auth-flow.offline-access-only-if-listed")
@pytest.mark.parametrize("revision", revisions_holding("auth-flow.offline-access-allowed"))
@pytest.mark.parametrize("listed", [["a", OFFLINE_ACCESS], ["a"], None])
def test_offline_access_is_asked_for_where_the_issuer_lists_it(
    revision: str, listed: list[str] | None
) -> None:
    document = dict(METADATA) if listed is None else {**METADATA, "scopes_supported": listed}
    resource = {**RESOURCE, "scopes_supported": [OFFLINE_ACCESS]}  # which does not count
    server = discover_server(
        World(
            {f"GET {AS_URL}": json_response(document), f"GET {PRM_URL}": json_response(resource)}
        ),
        revision,
    )
    wanted = OFFLINE_ACCESS in (listed or [])
    assert (OFFLINE_ACCESS in with_offline_access(("a",), server)) is wanted


@requirement(
    "auth-flow.as-endpoints-https",
    "auth-security.ssrf-considered",
    "auth-security.url-scheme-allowlist",
    "auth-security.url-dangerous-rejected",
    "auth-security.url-sanitize",
)
@pytest.mark.parametrize(
    "member", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://as.example/x",
        "https://10.0.0.1/",
        "https://as.example/`id`",
        None,
    ],
)
@pytest.mark.parametrize("revision", revisions_holding("auth-flow.as-endpoints-https"))
def test_an_endpoint_that_may_not_be_used_ends_the_flow(
    revision: str, member: str, url: Any
) -> None:
    world = world_of(revision, **{member: url})
    server = discover_server(world, revision)
    with pytest.raises(AuthorizationError, match=f"`{member}`|give the `client_id`"):
        world.run(code_flow(around(revision), PROFILE, server, ()))
    assert (world.asked, world.visited) == ([], [])


def test_no_secret_is_in_the_text_of_a_value() -> None:
    registered = {
        "client_id": "i",
        "client_secret": "hide",
        "token_endpoint_auth_method": "client_secret_basic",
    }
    world = World({f"POST {ISSUER}/register": json_response(registered, 201)})
    request = request_in(world)
    grant = finish_flow(world, request, comes_back(request.url))
    provider = IdentityProvider("https://h/token", "i", "hide", "hide")
    shown = repr((request, grant, world.asked, ClientProfile("x", "i", "hide"), provider))
    credentials = world.asked[-1].fields["Authorization"].removeprefix("Basic ")
    secrets = ("hide", "access-1", "refresh-1", "the-code", credentials)
    for secret in (*secrets, request.verifier, request.state):
        assert secret not in shown
    hidden: Any = "hide"
    steps = (
        Fetch("POST", "https://h", {"Authorization": hidden}, hidden),
        Fetched(200, {"location": hidden}, hidden),
        Visit(hidden),
        ShowCode(DeviceCode(hidden, "https://h/v", hidden)),
        Call(repr, (hidden,)),
        Save("key", hidden),
    )
    assert "hide" not in repr(steps)
    assert all("access" not in url for url in (*world.visited, *world.urls()))


def test_a_code_is_bound_to_the_key_of_proofs() -> None:
    world, proofs = World(), ProofKey(PrivateKey.generate(), lambda: NOW)
    server = discover_server(world, WITH_RESOURCE[-1])
    with pytest.raises(AuthorizationError, match="expected a token of type DPoP"):
        world.run(code_flow(around(WITH_RESOURCE[-1], proofs=proofs), PROFILE, server, ()))
    assert query_of(world.visited[0])["dpop_jkt"] == proofs.key.thumbprint()


@pytest.mark.parametrize("text", ["9" * 5000, "1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_are_no_json_are_errors(text: str) -> None:
    body = json.dumps({**TOKEN, "expires_in": 0.5}).replace("0.5", text).encode()
    world = World({f"POST {ISSUER}/token": Fetched(200, {}, body)})
    server = discover_server(world)
    with pytest.raises(AuthorizationError, match="token endpoint: expected a JSON object"):
        world.run(code_flow(around(), PROFILE, server, ()))
