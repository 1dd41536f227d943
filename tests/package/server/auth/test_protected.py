"""A protected server: who is let in, and how the others are told what they lack."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from kit.asgi_client import SESSION, asgi
from kit.faults import refusals
from kit.guarded import (
    PRM,
    SHARE,
    WHOAMI,
    WRITE,
    Guarded,
    call_with,
    challenge_in,
    protected_settings,
    signed_in,
    use_token,
)
from kit.issuer import IDP, RESOURCE, bearer, new_key, token_of
from kit.wire import PER_REQUEST, SESSIONS, initialize, request, sessions, streamable
from mcpgen_runtime import AnyOf, InvalidTokenError, JwtVerifier, Principal
from requirements import EVERY_REVISION, requirement


@requirement("auth-resource-server.role")
@streamable
async def test_a_request_with_a_token_has_its_principal_in_the_tool(revision: str) -> None:
    guarded = Guarded()
    async with signed_in(guarded.server, revision, token_of("alice")) as http:
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == "alice"
        for path in ("/authorize", "/token", "/register"):
            assert (await http.get(path)).status == 404
            assert (await http.request("POST", None, path)).status == 404


@requirement(
    "auth-resource-server.401-when-unauthenticated",
    "auth-resource-server.challenge-on-401",
    "auth-resource-server.challenge-members",
    "auth-resource-server.challenge-no-error-without-credentials",
    "auth-resource-server.every-request-verified",
    "auth-resource-server.stateless-no-bypass",
    "auth-server-metadata.prm-header-on-401",
    "auth-server-metadata.prm-header-or-well-known",
    "auth-scope.challenge-has-scope",
    "auth-security.session-not-authentication",
    "auth-security.local-server-http-restricted",
    "transport-security.verify-every-request",
    "transport-security.session-not-authentication",
)
@streamable
async def test_every_request_without_a_token_gets_401_and_a_challenge(revision: str) -> None:
    guarded = Guarded()
    async with asgi(guarded.server, auth=protected_settings(scopes=["a", "b"])) as http:
        replies = [await call_with(http, revision, None)]
        await use_token(http, revision, token_of(scope="a b"))
        http.fields["authorization"] = None  # the session id alone lets nobody in
        replies += [await http.request(method, None) for method in ("POST", "GET", "DELETE")]
        replies.append(await http.ask(revision, "tools/call", WHOAMI))
        replies.append(await http.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        replies.append(await http.post(initialize(revision)))
        others = ("Basic dXNlcjpwYXNz", "Negotiate abc")
        replies += [await call_with(http, revision, value) for value in others]
    for reply in replies:
        assert reply.status == 401
        challenge = challenge_in(reply)
        assert challenge.parameters == {
            "realm": "mcp",
            "scope": "a b",
            "resource_metadata": f"https://h{PRM}/mcp",
        }
    assert guarded.calls == []


@requirement("auth-resource-server.400-malformed", "auth-resource-server.challenge-error-codes")
@pytest.mark.parametrize(
    "value",
    [
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a, Bearer b",
        "Bearer a,b",
        "Bearer \xe4",
        "DPoP a b",
    ],
)
@streamable
async def test_a_malformed_authorization_field_gets_400(value: str, revision: str) -> None:
    guarded = Guarded()
    async with asgi(guarded.server, auth=protected_settings()) as http:
        reply = await call_with(http, revision, value)
    assert reply.status == 400
    assert challenge_in(reply).parameters["error"] == "invalid_request"
    assert guarded.calls == []


@requirement("auth-resource-server.challenge-quoting")
@streamable
async def test_settings_stand_quoted_in_the_challenge(revision: str) -> None:
    realm, scopes = 'say "a\\b", c=d', ["a:b", "c/d"]
    auth = protected_settings(realm=realm, scopes=scopes)
    fields = (None, bearer("garbage"), bearer(token_of(scope="")))
    async with asgi(Guarded().server, auth=auth) as http:
        replies = [await call_with(http, revision, each) for each in fields]
    assert [reply.status for reply in replies] == [401, 401, 403]
    for reply in replies:
        value = reply.fields["www-authenticate"]
        assert value.isprintable()
        assert 'scope="a:b c/d"' in value
        parameters = challenge_in(reply).parameters
        assert (parameters["realm"], parameters["scope"]) == (realm, "a:b c/d")


@requirement(
    "auth-resource-server.401-invalid-token",
    "auth-resource-server.validate-before-processing",
    "auth-resource-server.validation-failure-response",
    "auth-resource-server.challenge-error-codes",
)
@streamable
async def test_an_invalid_token_gets_401_before_anything_is_done(revision: str) -> None:
    guarded = Guarded()
    async with signed_in(guarded.server, revision, token_of()) as http:
        http.fields["authorization"] = bearer("garbage")
        call = await http.ask(revision, "tools/call", WHOAMI)
        stream = await http.get()
    for reply in (call, stream):
        assert reply.status == 401
        assert challenge_in(reply).parameters["error"] == "invalid_token"
        assert reply.fields["content-type"] == "application/json"
        assert "result" not in reply.json
    assert guarded.calls == []


@requirement("auth-ext.cc-server-validates", "auth-ext.wif-server")
@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 200),
        ({"aud": "https://other"}, 401),
        ({"exp": 1}, 401),
        ({"key": new_key("one")}, 401),
        ({"scope": "other"}, 403),
    ],
    ids=["valid", "other audience", "ended", "other key", "no scope"],
)
@streamable
async def test_a_token_without_a_user_is_validated_as_any_other(
    claims: dict[str, Any], status: int, revision: str
) -> None:
    guarded = Guarded()
    async with signed_in(guarded.server, revision, token_of(sub=None, client_id="robot")) as http:
        http.fields["authorization"] = bearer(token_of(sub=None, client_id="robot", **claims))
        reply = await http.ask(revision, "tools/call", WHOAMI)
        assert reply.status == status
    assert guarded.calls == (["robot whoami"] if status == 200 else [])


@pytest.mark.parametrize(
    ("query", "in_header", "status"),
    [
        ("access_token={token}", False, 401),
        ("access_token={token}", True, 400),
        ("access_token=", True, 400),
        ("a=1&access_token=b", True, 400),
        ("a=1", True, 200),
        ("xaccess_token=", True, 200),
    ],
)
async def test_a_token_in_the_query_lets_nobody_in(
    query: str, in_header: bool, status: int
) -> None:
    token = token_of()
    async with asgi(Guarded().server, auth=protected_settings()) as http:
        http.fields["authorization"] = bearer(token) if in_header else None
        reply = await http.post(initialize(SESSIONS[-1]), f"/mcp?{query.format(token=token)}")
    assert reply.status == status
    if status == 400:
        assert challenge_in(reply).parameters["error"] == "invalid_request"


@requirement(
    "auth-resource-server.403-insufficient",
    "auth-resource-server.challenge-error-codes",
    "auth-scope.insufficient-status",
    "auth-scope.insufficient-challenge",
    "auth-scope.insufficient-scope-parameter",
    "auth-scope.insufficient-resource-metadata",
    "auth-scope.insufficient-single-challenge",
    "auth-scope.insufficient-description",
    "auth-scope.insufficient-no-existing-scopes",
    "auth-scope.min-precise-challenge",
)
@streamable
async def test_a_tool_without_its_scopes_gets_403_with_all_of_them(revision: str) -> None:
    guarded = Guarded()
    async with signed_in(guarded.server, revision, token_of(scope="mcp:read other")) as http:
        reply = await http.ask(revision, "tools/call", SHARE)
        assert (reply.status, reply.json["id"]) == (403, 1)
        challenge = challenge_in(reply)
        assert challenge.parameters["realm"] == "mcp"
        assert challenge.parameters["error"] == "insufficient_scope"
        assert challenge.parameters["resource_metadata"] == f"https://h{PRM}/mcp"
        assert "lacks a scope" in challenge.parameters["error_description"]
        asked = challenge.parameters["scope"].split()
        granted = [] if revision in PER_REQUEST else ["other"]  # clients ask for these alone
        assert sorted(asked) == sorted(["mcp:read", "files:write", "files:share", *granted])
        assert guarded.calls == []
        http.fields["authorization"] = bearer(token_of(scope=" ".join(asked)))
        assert (await http.ask(revision, "tools/call", SHARE)).text == "a.txt"


@requirement("auth-scope.insufficient-single-challenge")
@streamable
async def test_scopes_of_requests_and_tool_are_in_one_challenge(revision: str) -> None:
    async with signed_in(
        Guarded().server, revision, token_of(scope="a"), protected_settings(scopes=["a"])
    ) as http:
        http.fields["authorization"] = bearer(token_of(scope=""))
        reply = await http.ask(revision, "tools/call", WRITE)
        assert (reply.status, challenge_in(reply).parameters["scope"]) == (403, "a files:write")
        if revision in SESSIONS:
            reply = await http.get()
            assert (reply.status, challenge_in(reply).parameters["scope"]) == (403, "a")


@streamable
async def test_scopes_imply_others_and_other_names_of_themselves(revision: str) -> None:
    whole = "api://app/read"  # as Entra has it: tokens name the last part
    auth = protected_settings(scopes=[whole], implies={"admin": ["read"], "read": [whole]})
    for scope in ("read", "admin"):
        async with asgi(Guarded().server, auth=auth) as http:
            refused = await http.post(initialize(revision))
            assert challenge_in(refused).parameters["scope"] == whole
            await use_token(http, revision, token_of(scope=None, scp=scope))
            assert (await http.ask(revision, "tools/call", WHOAMI)).text == "alice"


@pytest.mark.parametrize("revision", SESSIONS[:1])  # the one with batches
async def test_a_batch_with_one_forbidden_call_executes_nothing(revision: str) -> None:
    guarded = Guarded()
    async with signed_in(guarded.server, revision, token_of()) as http:
        calls = [
            request(revision, "tools/call", params, id=number)
            for number, params in enumerate((WHOAMI, WRITE, SHARE))
        ]
        reply = await http.post(calls)
        assert reply.status == 403
        asked = challenge_in(reply).parameters["scope"].split()
        assert sorted(asked) == ["files:share", "files:write", "mcp:read"]
        assert guarded.calls == []
        assert (await http.post(calls[:1])).status == 200
    assert guarded.calls == ["alice whoami"]


@requirement("auth-resource-server.tokens-validated")
@streamable
async def test_a_verifier_of_the_users_own_runs_for_each_request(revision: str) -> None:
    seen: list[str] = []

    async def api_key(token: str) -> Principal | None:
        seen.append(token)
        if token == "revoked":
            raise InvalidTokenError("revoked")
        return Principal("bob", scopes={"mcp:read"}) if token == "key-1" else None

    verifier = AnyOf(JwtVerifier(keys={"keys": []}), api_key)
    async with signed_in(
        Guarded().server, revision, "key-1", protected_settings(verifier=verifier)
    ) as http:
        before = len(seen)
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == "bob"
        assert len(seen) == before + 1
        for token in ("revoked", "key-2"):
            http.fields["authorization"] = bearer(token)
            assert (await http.ask(revision, "tools/call", WHOAMI)).status == 401


MEANINGLESS: list[dict[str, Any]] = [
    *({"issuers": []}, {"issuers": ["http://idp.example"]}, {"issuers": IDP}),
    *(
        {"resource": each}
        for each in ("http://h/mcp", "https://h/mcp#part", "h/mcp", "https://h/\xe9")
    ),
    *({"scopes": ["offline_access"]}, {"scopes_supported": ["offline_access"]}),
    *({"scopes": ["a b"]}, {"implies": {"admin": ["offline_access"]}}, {"audiences": RESOURCE}),
    {"metadata": {"authorization_servers": [], "resource": "", "resource_name": "x"}},
    *({"metadata": {name: []}} for name in ("scopes_supported", "bearer_methods_supported")),
    *({"realm": "a\r\nSet-Cookie: b"}, {"realm": "\xe9"}, {"metadata_url": "https://h/a\nb"}),
    *({"session_scopes": ["offline_access"]}, {"session_scopes": "files:write"}),
]


@requirement("auth-server-metadata.prm-authorization-servers", revisions=EVERY_REVISION)
@requirement(
    "auth-scope.no-offline-access-in-challenge",
    "auth-scope.no-offline-access-in-prm",
    revisions=EVERY_REVISION,
)
def test_settings_that_protect_nothing_are_refused(snapshot: SnapshotAssertion) -> None:
    assert refusals(lambda settings: protected_settings(**settings), MEANINGLESS) == snapshot


@pytest.mark.parametrize(
    ("audiences", "statuses"),
    [(["HTTPS://API:443/x", "b"], [200, 200, 401]), ([], [401, 401, 401])],
)
async def test_audiences_stand_instead_of_the_resource(
    audiences: list[str], statuses: list[int]
) -> None:
    async with asgi(Guarded().server, auth=protected_settings(audiences=audiences)) as http:
        tokens = [bearer(token_of(aud=aud)) for aud in ("https://api/x", "b", RESOURCE)]
        message = initialize(SESSIONS[-1])
        assert [(await http.post(message, Authorization=t)).status for t in tokens] == statuses


@requirement("auth-flow.optional")
@streamable
async def test_without_auth_nobody_needs_a_token(revision: str) -> None:
    async with asgi(Guarded().server) as http:
        if revision in SESSIONS:
            await http.initialize(revision)
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == ""
        assert (await http.get(f"{PRM}/mcp")).status == 404
        forbidden = await http.ask(revision, "tools/call", WRITE)
        assert "needs the scopes files:write" in forbidden.json["error"]["message"]


@pytest.mark.workers
@requirement(
    "auth-security.session-user-bound",
    "auth-security.session-id-untrusted",
    "transport-security.session-bound-to-user",
)
@sessions
async def test_a_session_is_unknown_to_every_other_principal(revision: str) -> None:
    others = [
        token_of("mallory"),
        token_of("alice", client_id="alice"),  # a client of that id, acting for itself
        token_of(sub=None, client_id="alice"),
    ]
    guarded = Guarded()
    async with signed_in(guarded.server, revision, token_of("alice")) as http:
        stolen = http.fields[SESSION]
        for token in others:
            for name in (stolen, "unknown"):
                http.fields |= {SESSION: name, "authorization": bearer(token)}
                replies = [
                    await http.ask(revision, "tools/call", WHOAMI),
                    await http.get(),
                    await http.get(last_event_id="1-1"),
                    await http.delete(),
                ]
                assert [reply.status for reply in replies] == [404] * 4
                if name == stolen:
                    bodies = [reply.body for reply in replies]
                assert [reply.body for reply in replies] == bodies
        renewed = "bearer  " + token_of("alice", "mcp:read more", client_id="registered-anew")
        http.fields |= {SESSION: stolen, "authorization": renewed}
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == "alice"
    assert guarded.calls == ["alice whoami"]


@requirement("auth-scope.challenge-has-scope", "auth-scope.min-precise-challenge")
@streamable
async def test_the_first_challenge_names_the_scopes_of_a_session(revision: str) -> None:
    auth = protected_settings(session_scopes=["files:write", "mcp:read"])
    async with asgi(Guarded().server, auth=auth) as http:
        refused = await http.ask(revision, "tools/call", WHOAMI)
        scope = challenge_in(refused).parameters["scope"]
        assert (refused.status, scope) == (401, "mcp:read files:write")
        await use_token(http, revision, token_of("alice", "mcp:read"))
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == "alice"
        lacking = await http.ask(revision, "tools/call", SHARE)
        scopes = challenge_in(lacking).parameters["scope"].split()
        assert (lacking.status, {*scopes}) == (403, {"mcp:read", "files:write", "files:share"})
