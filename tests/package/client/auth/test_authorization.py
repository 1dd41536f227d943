"""A client of protected servers, from `connect(auth=...)` to the token in each request."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import sys
from types import ModuleType
from typing import Any

import anyio
import pytest

import mcpgen_runtime
from documents import examples
from kit.auth_answers import REDIRECT_URI
from kit.http_script import Script, says
from kit.http_server import Asked, HttpServer, Reply
from kit.live import open_and_close
from kit.rules import revisions_holding
from kit.wire import SESSIONS
from mcpgen_runtime import (
    AuthorizationError,
    Bearer,
    ClientCredentials,
    EnterpriseManaged,
    HttpStatusError,
    McpError,
    MemoryStore,
    OAuth,
    OAuthError,
    Redirect,
    Timeouts,
    WorkloadIdentity,
    connect,
    connect_sync,
)
from package.client.auth.protected import (
    NEWEST,
    Issuer,
    Protected,
    agreeing_user,
    client_of,
    run_issuer,
    run_protected_server,
    serve_script,
    store_grant,
)
from package.tables import table
from requirements import requirement

OVER_HTTP = revisions_holding("auth-flow.401-at-any-request")
"""The revisions with authorization."""
every_revision = pytest.mark.parametrize("revision", OVER_HTTP)
with_metadata = pytest.mark.parametrize(
    "revision", revisions_holding("auth-flow.resource-implemented")
)
with_step_up = pytest.mark.parametrize("revision", revisions_holding("auth-scope.step-up-parse"))
with_iss = pytest.mark.parametrize("revision", revisions_holding("auth-flow.iss-failure-aborts"))


@requirement(
    "auth-flow.start-on-401",
    "auth-flow.bearer-header",
    "auth-flow.bearer-every-request",
    "auth-flow.bearer-not-in-query",
    "auth-flow.pkce",
    "auth-flow.pkce-s256",
    "auth-flow.token-request-form",
    "auth-flow.resource-implemented",
    "auth-flow.resource-in-authorization-request",
    "auth-flow.resource-in-token-request",
    "auth-flow.resource-same-in-both",
    "auth-flow.resource-sent-always",
    "auth-flow.redirect-registered",
    "auth-flow.state-used",
    "auth-server-metadata.prm-used-by-client",
)
@every_revision
async def test_a_client_gets_a_token_and_sends_it_with_every_request(revision: str) -> None:
    async with run_protected_server(revision, session="s") as (script, server):
        script.challenge = 'Bearer scope="a b"'
        async with client_of(script, agreeing_user(script.issuer)) as client:
            assert (await client.list_tools())[0].name == "echo"
        first, *rest = script.authorizations
    assert first is None
    assert set(rest) == {"Bearer access-1"}
    to_server = [asked for asked in server.asked if asked.target.startswith("/mcp")]
    expected = {"POST", "GET", "DELETE"} if revision in SESSIONS else {"POST"}
    assert {asked.verb for asked in to_server} == expected
    assert all("access" not in asked.target for asked in server.asked)
    ((identifier, registered),) = script.issuer.registered.items()
    assert registered["redirect_uris"] == [REDIRECT_URI]
    (visit,), (form,) = script.issuer.visits, script.issuer.forms
    assert visit.pop("state")
    digest = hashlib.sha256(form.pop("code_verifier").encode()).digest()
    assert visit.pop("code_challenge") == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    both = {"client_id": identifier, "redirect_uri": REDIRECT_URI}
    both |= {} if script.own_issuer else {"resource": script.url}
    flow = {"response_type": "code", "code_challenge_method": "S256", "scope": "a b"}
    assert visit == {**both, **flow}
    assert form == {**both, "grant_type": "authorization_code", "code": "code-1"}
    assert script.issuer.credentials == [None]


@requirement("auth-flow.optional")
@every_revision
async def test_without_auth_no_token_is_sent_and_a_refusal_is_an_error(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        with pytest.raises(HttpStatusError, match="401"):
            await open_and_close(client_of(script, None))
        script.open = lambda asked: True
        async with client_of(script, None) as client:
            await client.call_tool("echo")
        assert set(script.authorizations) == {None}
        assert script.issuer.asked == []


@requirement("auth-flow.401-at-any-request")
@every_revision
async def test_a_refusal_may_come_at_any_request(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        script.open = lambda asked: asked.what != "tools/call"
        async with client_of(script, agreeing_user(script.issuer)) as client:
            await client.list_tools()
            assert script.issuer.visits == []
            await client.call_tool("echo")
        assert len(script.issuer.visits) == 1


async def test_the_opening_waits_for_the_user_without_a_time_limit() -> None:
    limits = Timeouts(opening=8.0, probe=4.0)
    left: list[float] = []
    async with run_protected_server() as (script, _):

        async def visit(url: str) -> str:
            left.append(anyio.current_effective_deadline() - anyio.current_time())
            return await script.issuer.visit(url)

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        async with client_of(script, auth, timeouts=limits) as client:
            assert client.revision == script.revision
    assert left[0] > limits.opening  # what is left is the limit of the test


RENEWALS: dict[str, dict[str, Any]] = table("stored_tokens")
"""Whether the token has expired and can be renewed; the tokens sent, and the kinds of grants."""


@requirement("auth-flow.local-public-client")
@pytest.mark.parametrize("case", RENEWALS.values(), ids=RENEWALS)
@every_revision
async def test_a_stored_token_is_used_and_renewed_before_any_browser(
    revision: str, case: dict[str, Any]
) -> None:
    store = MemoryStore()
    async with run_protected_server(revision) as (script, _):
        await store_grant(script, store, renew_at=1.0 if case["ended"] else None)
        if case["renewable"]:
            script.issuer.refresh_tokens["refresh-x"] = frozenset()
        async with client_of(script, agreeing_user(script.issuer, store=store)) as client:
            await client.list_tools()
        assert list(dict.fromkeys(script.authorizations)) == case["sent"]
        assert [form["grant_type"] for form in script.issuer.forms] == case["kinds"]
        assert len(script.issuer.visits) == len(case["kinds"]) - 1
        assert script.issuer.forms[0]["client_id"] == "client-x"


@every_revision
async def test_a_failing_token_endpoint_keeps_the_refresh_token(revision: str) -> None:
    store = MemoryStore()
    async with run_protected_server(revision) as (script, _):
        await store_grant(script, store)
        script.issuer.refresh_tokens["refresh-x"] = frozenset()
        script.issuer.refused = (503, {"error": "invalid_grant"})
        auth = agreeing_user(script.issuer, store=store)
        with pytest.raises(AuthorizationError, match="HTTP 503"):
            await open_and_close(client_of(script, auth))
        assert script.issuer.visits == []
        script.issuer.refused = None
        async with client_of(script, auth) as client:
            await client.list_tools()
        assert script.issuer.visits == []


@requirement("auth-scope.step-up-union", "auth-scope.step-up-union-source")
@pytest.mark.parametrize("revision", revisions_holding("auth-scope.step-up-union"))
async def test_scopes_of_a_stored_grant_are_asked_for_again(revision: str) -> None:
    store = MemoryStore()
    async with run_protected_server(revision) as (script, _):
        script.scopes = ["other"]
        script.challenge = 'Bearer scope="basic"'
        async with client_of(script, agreeing_user(script.issuer, store=store)) as client:
            await client.list_tools()
        script.needed["tools/call"] = frozenset({"write"})
        async with client_of(script, agreeing_user(script.issuer, store=store)) as client:
            await client.call_tool("echo")
    assert [visit["scope"] for visit in script.issuer.visits] == ["basic", "basic write"]


@requirement(
    "auth-scope.step-up-response",
    "auth-scope.step-up-for-user",
    "auth-scope.step-up-reauthorize",
    "auth-scope.step-up-scopes-2025-11-25",
    "auth-scope.challenge-no-relation-assumed",
    "auth-scope.step-up-union",
    "auth-scope.step-up-union-source",
)
@with_step_up
async def test_a_call_that_needs_more_scopes_asks_the_user_for_them(revision: str) -> None:
    async with run_protected_server(revision) as (script, server):
        script.needed = {
            "tools/call": frozenset({"write"}),
            "resources/read": frozenset({"audit"}),
        }
        async with client_of(script, agreeing_user(script.issuer)) as client:
            await client.list_tools()
            await client.call_tool("echo")
            await client.read_resource("x://y")
            script.issuer.valid.clear()
            script.issuer.refresh_tokens.clear()
            await client.list_tools()
        union = revision in revisions_holding("auth-scope.step-up-union")
        last = ("write audit", "write audit") if union else ("audit", None)
        assert [visit.get("scope") for visit in script.issuer.visits] == [None, "write", *last]
        kinds = [form["grant_type"] for form in script.issuer.forms]
        assert kinds == [*["authorization_code"] * 3, "refresh_token", "authorization_code"]
        assert [asked.what for asked in server.asked].count("tools/call") == 2


@requirement(
    "auth-scope.step-up-few-retries",
    "auth-scope.step-up-retry-limit",
    "auth-scope.step-up-track-attempts",
    "auth-scope.min-client-cache-failures",
)
@with_step_up
async def test_endless_refusals_end_after_three_authorizations(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        header = 'Bearer error="insufficient_scope", scope="more"'
        script.on["tools/call"] = says(b"", 403, WWW_Authenticate=header)
        async with client_of(script, agreeing_user(script.issuer)) as client:
            for _ in range(2):
                with pytest.raises(HttpStatusError, match="403"):
                    await client.call_tool("echo")
                assert len(script.issuer.visits) == 3
            with pytest.raises(HttpStatusError, match="403"):
                await client.call_tool("another")
            assert len(script.issuer.visits) == 5


@requirement("auth-scope.min-client-cache-failures")
@with_step_up
async def test_a_user_who_denies_a_step_up_is_not_asked_again(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        script.needed["tools/call"] = frozenset({"write"})

        async def visit(url: str) -> str:
            agreed = await script.issuer.visit(url)
            if len(script.issuer.visits) == 1:
                return agreed
            return agreed.replace("code=", "error=access_denied&x=")

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        async with client_of(script, auth) as client:
            with pytest.raises(OAuthError, match="access_denied"):
                await client.call_tool("echo")
            with pytest.raises(HttpStatusError, match="403"):
                await client.call_tool("echo")
        assert len(script.issuer.visits) == 2


@requirement("auth-scope.step-up-parse")
@with_step_up
@pytest.mark.parametrize(("status", "error"), [(403, "other"), (400, "insufficient_scope")])
async def test_a_403_without_insufficient_scope_starts_no_flow(
    revision: str, status: int, error: str
) -> None:
    async with run_protected_server(revision) as (script, _):
        script.on["tools/call"] = says(b"", status, WWW_Authenticate=f'Bearer error="{error}"')
        async with client_of(script, agreeing_user(script.issuer)) as client:
            with pytest.raises(HttpStatusError, match=f"{status}"):
                await client.call_tool("echo")
        assert len(script.issuer.visits) == 1


@every_revision
async def test_a_token_refused_when_just_issued_ends_the_attempt(revision: str) -> None:
    class Refusing(dict[str, frozenset[str]]):
        def get(self, *_: Any) -> Any:
            return None

    async with run_protected_server(revision) as (script, server):
        script.issuer.valid = Refusing()
        with pytest.raises(HttpStatusError, match="401"):
            await open_and_close(client_of(script, agreeing_user(script.issuer)))
        assert [asked.target for asked in server.asked if asked.verb == "POST"].count("/mcp") == 2
        assert len(script.issuer.visits) == len(script.issuer.forms) == 1


@requirement(
    "auth-server-metadata.prm-reread-on-new-challenge",
    "auth-registration.reregister-after-as-change",
    "auth-registration.no-reuse-after-as-change",
    "auth-registration.state-per-as",
    "auth-registration.credentials-keyed-by-issuer",
    "auth-registration.no-cross-as-assumption",
    "auth-flow.only-own-as-tokens",
)
@with_metadata
async def test_another_authorization_server_gets_nothing_of_the_first(revision: str) -> None:
    async with (
        run_protected_server(revision) as (script, server),
        run_issuer(Issuer("b-")) as second,
    ):
        first = script.issuer

        async def visit(url: str) -> str:
            return await (first if url.startswith(first.url) else second).visit(url)

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        script.challenge = 'Bearer scope="one"'
        async with client_of(script, auth) as client:
            script.issuer, script.challenge = second, 'Bearer scope="two"'
            await client.list_tools()
        assert [visit["scope"] for visit in (*first.visits, *second.visits)] == ["one", "two"]
        assert list(second.registered) == ["b-client-0"]
        (form,) = second.forms
        assert (form["grant_type"], form["client_id"]) == ("authorization_code", "b-client-0")
        assert "access-1" not in form.values()
        assert "refresh-1" not in form.values()
        listing = [asked for asked in server.asked if asked.what == "tools/list"]
        tokens = [asked.fields["authorization"] for asked in listing]
        assert tokens == ["Bearer access-1", "Bearer b-access-1"]


@with_metadata
async def test_given_credentials_stay_at_their_first_issuer(revision: str) -> None:
    async with run_protected_server(revision) as (script, _), run_issuer() as other:
        script.issuer.registered["me"] = {"redirect_uris": [REDIRECT_URI]}
        redirect = Redirect(REDIRECT_URI, script.issuer.visit)
        auth = OAuth(client_id="me", redirect=redirect, store=MemoryStore())
        async with client_of(script, auth):
            script.issuer = other
        with pytest.raises(AuthorizationError, match="expected the authorization server"):
            await open_and_close(client_of(script, auth))
        assert (other.visits, other.forms) == ([], [])


@requirement("auth-security.no-credential-logging")
@every_revision
async def test_logs_and_texts_hold_no_secret(
    caplog: pytest.LogCaptureFixture, revision: str
) -> None:
    caplog.set_level(logging.DEBUG)
    store = MemoryStore()
    async with run_protected_server(revision) as (script, _):
        auth = agreeing_user(script.issuer, store=store)
        async with client_of(script, auth) as client:
            script.issuer.valid.clear()
            script.issuer.refused = (400, {"error": "temporarily_unavailable"})
            with pytest.raises(OAuthError) as caught:
                await client.call_tool("echo")
            shown = f"{caplog.text} {auth!r} {store!r} {client!r} {caught.value!r}"
        secrets = ["access-1", "refresh-1", "code-1", script.issuer.forms[0]["code_verifier"]]
        assert [secret for secret in secrets if secret in shown] == []


@requirement("auth-security.https-in-production")
@every_revision
async def test_no_token_is_sent_without_tls(revision: str) -> None:
    for auth in (OAuth("Agent"), Bearer("hidden")):
        with pytest.raises(AuthorizationError, match="https") as caught:
            await open_and_close(connect("http://mcp.example/mcp", auth=auth, revision=revision))
        assert "hidden" not in str(caught.value)


async def test_a_foreign_token_is_sent_and_requested_again_if_refused() -> None:
    async with run_protected_server() as (script, _):
        script.issuer.valid["second"] = frozenset()
        tokens = iter(["first", "second"])
        async with client_of(script, Bearer(lambda: next(tokens))) as client:
            await client.list_tools()
        assert script.authorizations[:2] == ["Bearer first", "Bearer second"]
        with pytest.raises(HttpStatusError, match="401"):
            await open_and_close(client_of(script, Bearer("wrong")))


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "\xe9"])
async def test_a_token_that_no_header_can_hold_is_not_sent(token: str) -> None:
    async with HttpServer(Script("2025-11-25")) as server:
        with pytest.raises(AuthorizationError, match="visible ASCII") as caught:
            await open_and_close(connect(server.url, auth=Bearer(token)))
        assert token not in str(caught.value) or not token
        assert server.asked == []


async def test_an_authorization_is_begun_and_finished_in_two_places() -> None:
    store = MemoryStore()
    async with run_protected_server() as (script, _):
        pending = await agreeing_user(script.issuer, store=store).begin(script.url)
        text, url = pending.dumps(), pending.url
        assert "state" not in repr(pending)
        returned = await script.issuer.visit(url)
        other = agreeing_user(script.issuer, store=store).pending(text)
        await other.finish(returned)
        with pytest.raises(AuthorizationError, match="was finished"):
            await other.finish(returned)
        with pytest.raises(AuthorizationError, match="was finished"):
            other.dumps()
        visits = len(script.issuer.visits)
        async with client_of(script, agreeing_user(script.issuer, store=store)) as client:
            await client.list_tools()
        assert len(script.issuer.visits) == visits


@requirement("auth-flow.resource-identifies-server")
@with_metadata
async def test_two_servers_of_one_issuer_have_tokens_of_their_own(revision: str) -> None:
    store = MemoryStore()
    async with run_protected_server(revision) as (script, _):
        other = Protected(script.issuer, revision)
        async with serve_script(other):
            for each in (script, other):
                async with client_of(each, agreeing_user(script.issuer, store=store)) as client:
                    await client.list_tools()
        for sent in (script.issuer.visits, script.issuer.forms):
            assert [each["resource"] for each in sent] == [script.url, other.url]
        assert len(script.issuer.registered) == 1
        assert "Bearer access-1" not in other.authorizations


async def test_clients_in_threads_share_a_way_to_a_token() -> None:
    async with run_protected_server() as (script, _):
        auth = agreeing_user(script.issuer)

        def work() -> str:
            with connect_sync(script.url, auth=auth, revision=script.revision) as client:
                name: str = client.list_tools()[0].name
                return name

        assert [await anyio.to_thread.run_sync(work) for _ in range(2)] == ["echo", "echo"]
        assert len(script.issuer.visits) == 1


@requirement("auth-flow.refresh-not-assumed")
@every_revision
async def test_without_refresh_tokens_the_user_is_asked_after_expiry(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        script.issuer.renewable = False
        async with client_of(script, agreeing_user(script.issuer)) as client:
            await client.list_tools()
            script.issuer.valid.clear()
            await client.call_tool("echo")
        kinds = [form["grant_type"] for form in script.issuer.forms]
        assert kinds == ["authorization_code"] * 2


@requirement("auth-flow.iss-failure-aborts")
@with_iss
async def test_a_return_that_was_wrong_ends_a_pending_authorization_and_a_stray_one_does_not(
    revision: str,
) -> None:
    async with run_protected_server(revision) as (script, _):
        pending = await agreeing_user(script.issuer).begin(script.url)
        returned = await script.issuer.visit(pending.url)
        for stray in (returned.replace("state=", "state=x"), f"{returned}&state=x", "http://[/"):
            with pytest.raises(AuthorizationError, match=r"state|malformed|repeats"):
                await pending.finish(stray)
        with pytest.raises(AuthorizationError, match="another issuer"):
            await pending.finish(returned.replace("iss=", "iss=https://evil.example/"))
        with pytest.raises(AuthorizationError, match="was finished"):
            await pending.finish(returned)
        assert script.issuer.forms == []
    with pytest.raises(ValueError, match="pending authorization"):
        OAuth("Agent").pending("nonsense")


@requirement("auth-security.ssrf-redirects", "auth-flow.only-own-as-tokens")
@every_revision
async def test_a_redirect_to_another_origin_is_followed_with_no_token_and_for_no_metadata(
    revision: str,
) -> None:
    seen: list[Asked] = []

    async def elsewhere(asked: Asked, reply: Reply) -> None:
        seen.append(asked)
        await reply.json({"secret": "of the inside"})

    async with HttpServer(elsewhere) as evil, run_protected_server(revision) as (script, _):

        async def redirect(asked: Asked, reply: Reply) -> None:
            await reply.whole(307, Location=evil.url)

        async def refuse(asked: Asked, reply: Reply) -> None:
            if asked.target.startswith("/.well-known/"):
                await reply.whole(302, Location=evil.url)
            elif asked.target == "/mcp":
                await reply.whole(401, WWW_Authenticate="Bearer")
            else:
                await reply.whole(404)

        script.on["tools/call"] = redirect
        async with client_of(script, agreeing_user(script.issuer)) as client:
            with pytest.raises(HttpStatusError, match="307"):
                await client.call_tool("echo")
        async with HttpServer(refuse) as server:
            auth = agreeing_user(script.issuer)
            with pytest.raises(McpError) as caught:
                await open_and_close(connect(server.url, auth=auth, revision=revision))
        assert "inside" not in str(caught.value)
    assert seen == []


async def test_a_user_signs_in_in_two_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pkg", mcpgen_runtime)
    signin = ModuleType("signin")
    exec(compile(examples()["signin.py"], "signin.py", "exec"), vars(signin))
    store = MemoryStore()
    async with run_protected_server() as (script, _):
        url, text = await signin.begin(script.url, store)
        await signin.finish(text, await script.issuer.visit(url), store)
        assert await signin.names_of_tools(script.url, store) == ["echo"]


GRANT_TYPE = "urn:ietf:params:oauth:grant-type:"
with_extensions = pytest.mark.parametrize("revision", revisions_holding("auth-ext.dpop-scheme"))


class BoundServer(Protected):
    """Takes tokens with a proof only, and gives its nonce by a challenge."""

    def __init__(self, issuer: Issuer, revision: str = NEWEST) -> None:
        super().__init__(issuer, revision)
        self.proofs: list[dict[str, Any]] = []
        self.keys: list[Any] = []
        self.nonce = "rs-1"
        self.is_endless = False

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        proof = asked.fields.get("dpop")
        if proof is None:
            await super().__call__(asked, reply)
            return
        scheme, _, token = asked.fields["authorization"].partition(" ")
        assert (scheme, token in self.issuer.valid) == ("DPoP", True)
        header, claims = (
            json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
            for part in proof.split(".")[:2]
        )
        self.keys.append(header["jwk"])
        self.proofs.append(claims)
        if self.is_endless:
            self.nonce = f"n-{len(self.proofs)}"
        if self.proofs[-1].get("nonce") != self.nonce:
            header = 'DPoP error="use_dpop_nonce"'
            await reply.whole(401, WWW_Authenticate=header, DPoP_Nonce=self.nonce)
            return
        await Script.__call__(self, asked, reply)


@requirement("auth-ext.dpop-scheme", "auth-ext.dpop-rs-nonce", "auth-ext.dpop-fresh-proof")
@with_extensions
async def test_a_bound_token_is_sent_with_fresh_proof_and_server_nonce(revision: str) -> None:
    store = MemoryStore()
    async with run_issuer() as issuer:
        issuer.token_type = "DPoP"
        script = BoundServer(issuer, revision)
        script.open = lambda asked: asked.what != "tools/call"
        first, second = (agreeing_user(issuer, dpop=True, store=store) for _ in range(2))
        async with (
            serve_script(script),
            client_of(script, first) as client,
            client_of(script, second) as other,
        ):
            await client.call_tool("echo")
            script.nonce = "rs-2"
            await client.call_tool("echo")
            await other.call_tool("echo")
        assert len(issuer.visits) == 1
    assert len({str(key) for key in script.keys}) == 1
    assert "Bearer" not in str(script.authorizations)
    assert {claims["htu"] for claims in script.proofs} == {script.url}
    assert len({claims["jti"] for claims in script.proofs}) == len(script.proofs)
    nonces = [claims.get("nonce") for claims in script.proofs]
    assert nonces[:2] == [None, "rs-1"]
    assert "rs-2" in nonces


@requirement("auth-ext.graceful-degradation")
@with_extensions
async def test_a_server_that_needs_an_extension_refuses_other_clients(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):

        async def refuse(asked: Asked, reply: Reply) -> None:
            await reply.whole(401, WWW_Authenticate='DPoP algs="ES256"')

        script.on = dict.fromkeys(("initialize", "server/discover", "tools/list"), refuse)
        with pytest.raises(HttpStatusError, match="401"):
            async with client_of(script, agreeing_user(script.issuer)) as client:
                await client.list_tools()
        assert len(script.issuer.visits) <= 1


@requirement("auth-ext.off-by-default")
@pytest.mark.parametrize("revision", revisions_holding("auth-ext.client-declares"))
async def test_a_client_declares_no_extension_by_default(revision: str) -> None:
    async with run_protected_server(revision) as (script, server):
        async with client_of(script, agreeing_user(script.issuer)) as client:
            await client.list_tools()
        metas = [each.message["params"]["_meta"] for each in server.asked if each.target == "/mcp"]
    assert metas
    for meta in metas:
        assert "extensions" not in meta["io.modelcontextprotocol/clientCapabilities"]
    assert [form["grant_type"] for form in script.issuer.forms] == ["authorization_code"]
    assert all("dpop" not in each.fields for each in server.asked)


@requirement("auth-ext.client-declares")
@pytest.mark.parametrize("revision", revisions_holding("auth-ext.client-declares"))
async def test_a_client_declares_the_extension_it_uses_in_each_request(revision: str) -> None:
    name = "io.modelcontextprotocol/oauth-client-credentials"
    async with run_protected_server(revision) as (script, server):
        script.issuer.machine = True
        settings = {"extensions": {"com.example/own": {"a": 1}}}
        auth = ClientCredentials("me", "s")
        async with client_of(script, auth, capabilities=settings) as client:
            await client.list_tools()
        metas = [each.message["params"]["_meta"] for each in server.asked if each.verb == "POST"]
        assert len(metas) > 1
        for meta in metas:
            declared = meta["io.modelcontextprotocol/clientCapabilities"]["extensions"]
            assert declared == {name: {}, "com.example/own": {"a": 1}}
        assert script.issuer.visits == []
        assert [form["grant_type"] for form in script.issuer.forms] == ["client_credentials"]


@with_extensions
async def test_a_server_that_always_wants_another_nonce_is_left(revision: str) -> None:
    async with run_issuer() as issuer:
        issuer.token_type = "DPoP"
        script = BoundServer(issuer, revision)

        script.is_endless = True
        async with serve_script(script):
            with pytest.raises(HttpStatusError, match="401"):
                await open_and_close(client_of(script, agreeing_user(issuer, dpop=True)))
        assert len(script.proofs) == 5


@requirement(
    "auth-ext.wif-grant",
    "auth-ext.wif-assertion",
    "auth-ext.wif-resource",
    "auth-ext.wif-no-registration",
)
@with_extensions
async def test_a_platform_vouches_for_a_client(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        issuer = script.issuer

        async def fetch(url: str, token_endpoint: str) -> str:
            assert (url, token_endpoint) == (issuer.url, f"{issuer.url}/token")
            return "of.the.platform"

        async with client_of(script, WorkloadIdentity(fetch)) as client:
            await client.list_tools()
        form = {"grant_type": f"{GRANT_TYPE}jwt-bearer", "assertion": "of.the.platform"}
        assert issuer.forms == [{**form, "resource": script.url}]
        assert (issuer.credentials, issuer.registered) == ([None], {})
        assert script.authorizations[-1] == "Bearer access-1"


@requirement("auth-ext.ema-jwt-bearer")
@with_extensions
async def test_an_identity_provider_vouches_for_a_client(revision: str) -> None:
    async with run_protected_server(revision) as (script, _):
        script.issuer.machine = True
        asked: list[tuple[str, str]] = []

        def fetch(url: str, resource: str) -> str:
            asked.append((url, resource))
            return "of.the.provider"

        async with client_of(script, EnterpriseManaged("me", "s", id_jag=fetch)) as client:
            await client.list_tools()
        assert asked == [(script.issuer.url, script.url)]
        form = {"grant_type": f"{GRANT_TYPE}jwt-bearer", "assertion": "of.the.provider"}
        assert script.issuer.forms == [{**form, "client_id": "me", "resource": script.url}]
        assert script.authorizations[-1] == "Bearer access-1"


@requirement(
    "auth-ext.cc-grant",
    "auth-ext.cc-no-dcr",
    "auth-ext.cc-secret-basic",
    "auth-ext.cc-auth-methods",
    "auth-ext.cc-renewal",
    "auth-ext.baseline-holds",
)
@with_extensions
async def test_a_client_with_a_secret_gets_and_renews_tokens_without_a_user(revision: str) -> None:
    store = MemoryStore()
    async with run_protected_server(revision) as (script, _):
        issuer = script.issuer
        issuer.machine = True
        await store_grant(script, store, refresh_token=None, renew_at=1.0)
        issuer.registered.clear()
        auth = ClientCredentials("client-x", "s", store=store)
        async with client_of(script, auth) as client:
            await client.list_tools()
        assert set(script.authorizations) == {None, "Bearer access-1"}
        form = {"grant_type": "client_credentials", "client_id": "client-x"}
        assert issuer.forms == [{**form, "resource": script.url}]
        assert issuer.credentials == [f"Basic {base64.b64encode(b'client-x:s').decode()}"]
        assert (issuer.visits, issuer.registered) == ([], {})
