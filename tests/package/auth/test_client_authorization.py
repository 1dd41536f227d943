"""A client of protected servers, from `connect(auth=...)` to the token in each request."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_protocol import (
    AuthorizationError,
    Bearer,
    ClientCredentials,
    FileStore,
    HttpStatusError,
    MemoryStore,
    OAuth,
    OAuthError,
    Redirect,
    Timeouts,
    connect,
    connect_sync,
)
from mcp_protocol.auth.documents import canonical_resource
from mcp_protocol.auth.records import Grant, encoded_record, grant_key
from mcp_protocol.auth.tokens import AccessToken
from mcp_protocol.runtime.pausable_limits import pausable, paused
from package.auth.answers import REDIRECT_URI
from package.auth.protected import Issuer, Protected, agreeing, client_of, issuing, protected
from package.http_script import Script
from package.http_server import Asked, HttpServer, Reply
from package.rules import holding
from requirements import requirement

pytestmark = pytest.mark.anyio

OVER_HTTP = holding("auth-server-metadata.prm-used-by-client")


async def stored(script: Protected, store: MemoryStore | FileStore, **token: Any) -> None:
    """Put a grant of an earlier run into a store."""
    issuer = script.issuer
    issuer.registered["client-x"] = {"redirect_uris": [REDIRECT_URI]}
    grant = Grant(
        issuer.url,
        AccessToken(**{"value": "old", "refresh_token": "refresh-x", **token}),
        f"{issuer.url}/token",
        ("none",),
        "client-x",
        resource=script.url,
    )
    await store.save(grant_key(canonical_resource(script.url)), encoded_record(grant))


@requirement(
    "auth-flow.start-on-401",
    "auth-flow.bearer-header",
    "auth-flow.bearer-every-request",
    "auth-server-metadata.prm-used-by-client",
)
@pytest.mark.parametrize("revision", OVER_HTTP)
async def test_a_client_comes_to_a_token_and_sends_it_with_every_request(revision: str) -> None:
    async with protected(revision, session="s") as (script, server):
        async with client_of(script, agreeing(script.issuer)) as client:
            assert (await client.list_tools())[0].name == "echo"
        first, *rest = script.authorizations
    assert first is None
    assert set(rest) == {"Bearer access-1"}
    assert {"POST", "GET", "DELETE"} <= {asked.verb for asked in server.asked} or session_free(
        revision
    )
    assert len(script.issuer.visits) == 1
    assert script.issuer.forms[0]["resource"] == script.url


def session_free(revision: str) -> bool:
    """Whether a revision has no sessions."""
    from mcp_protocol.facts import Lifecycle
    from mcp_protocol.revisions import REVISIONS

    return REVISIONS[revision].lifecycle is Lifecycle.PER_REQUEST


@requirement("auth-flow.optional", "auth-ext.off-by-default")
async def test_without_auth_no_token_is_sent_and_a_refusal_is_an_error() -> None:
    async with protected() as (script, _):
        with pytest.raises(HttpStatusError, match="401"):
            async with client_of(script, None):
                pass
        assert set(script.authorizations) == {None}
        assert script.issuer.asked == []


@requirement("auth-flow.401-at-any-request")
async def test_a_refusal_may_come_at_any_request() -> None:
    async with protected() as (script, _):
        script.open = lambda asked: asked.what != "tools/call"
        async with client_of(script, agreeing(script.issuer)) as client:
            await client.list_tools()
            assert script.issuer.visits == []
            await client.call_tool("echo")
        assert len(script.issuer.visits) == 1


async def test_the_opening_waits_for_the_user_without_a_time_limit() -> None:
    limits = Timeouts(opening=8.0, probe=4.0)
    left: list[float] = []
    async with protected() as (script, _):

        async def visit(url: str) -> str:
            left.append(anyio.current_effective_deadline() - anyio.current_time())
            return await script.issuer.visit(url)

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        async with client_of(script, auth, timeouts=limits) as client:
            assert client.revision == script.revision
    assert left[0] > limits.opening  # what is left is the limit of the test


async def test_a_time_limit_goes_on_after_a_pause_where_it_was() -> None:
    with anyio.CancelScope(deadline=anyio.current_time() + 5) as scope, pausable(scope):
        before = scope.deadline
        with paused():
            assert scope.deadline == float("inf")
            while anyio.current_time() == before - 5:
                await anyio.lowlevel.checkpoint()
        assert before <= scope.deadline < float("inf")
    with paused():
        pass


@requirement("auth-flow.local-public-client")
async def test_a_token_of_an_earlier_run_is_used_and_renewed_before_a_browser_opens() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        await stored(script, store)
        script.issuer.refresh_tokens["refresh-x"] = frozenset()
        async with client_of(script, agreeing(script.issuer, store=store)) as client:
            await client.list_tools()
        assert script.authorizations[0] == "Bearer old"
        assert set(script.authorizations[1:]) == {"Bearer access-1"}
        assert script.issuer.visits == []
        assert script.issuer.forms[0]["client_id"] == "client-x"


async def test_a_token_that_has_ended_is_renewed_before_it_is_sent() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        await stored(script, store, renew_at=1.0)
        script.issuer.refresh_tokens["refresh-x"] = frozenset()
        async with client_of(script, agreeing(script.issuer, store=store)) as client:
            await client.list_tools()
        assert set(script.authorizations) == {"Bearer access-1"}


async def test_a_refresh_token_that_is_refused_is_forgotten_and_the_user_asked() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        await stored(script, store)
        async with client_of(script, agreeing(script.issuer, store=store)) as client:
            await client.list_tools()
        kinds = [form["grant_type"] for form in script.issuer.forms]
        assert kinds == ["refresh_token", "authorization_code"]


async def test_a_token_endpoint_that_fails_leaves_the_refresh_token_for_later() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        await stored(script, store)
        script.issuer.refresh_tokens["refresh-x"] = frozenset()
        script.issuer.refused = (503, {"error": "invalid_grant"})
        auth = agreeing(script.issuer, store=store)
        with pytest.raises(AuthorizationError, match="HTTP 503"):
            async with client_of(script, auth):
                pass
        assert script.issuer.visits == []
        script.issuer.refused = None
        async with client_of(script, auth) as client:
            await client.list_tools()
        assert script.issuer.visits == []


@pytest.mark.parametrize("tasks", [50])
async def test_many_tasks_renew_once(tasks: int) -> None:
    async with protected() as (script, _):
        async with client_of(script, agreeing(script.issuer)) as client:
            script.issuer.valid.clear()
            async with anyio.create_task_group() as group:
                for _ in range(tasks):
                    group.start_soon(client.call_tool, "echo")
        kinds = [form["grant_type"] for form in script.issuer.forms]
        assert kinds == ["authorization_code", "refresh_token"]
        assert len(script.issuer.visits) == 1


async def test_two_clients_with_one_store_renew_once(tmp_path: Path) -> None:
    store = FileStore(tmp_path, encrypted=False)
    async with protected() as (script, _):
        await stored(script, store)
        script.issuer.refresh_tokens["refresh-x"] = frozenset()

        async def work() -> None:
            own = FileStore(tmp_path, encrypted=False)
            async with client_of(script, agreeing(script.issuer, store=own)) as client:
                await client.list_tools()

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(work)
        assert [form["grant_type"] for form in script.issuer.forms] == ["refresh_token"]
        assert script.issuer.visits == []


async def test_a_task_that_is_cancelled_while_it_renews_blocks_no_other(tmp_path: Path) -> None:
    store = FileStore(tmp_path, encrypted=False)
    async with protected() as (script, _):
        async with client_of(script, agreeing(script.issuer, store=store)) as client:
            script.issuer.valid.clear()
            script.issuer.gate = anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "echo")
                while len(script.issuer.forms) < 2:
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            script.issuer.gate.set()
            script.issuer.refresh_tokens["refresh-1"] = frozenset()
            await client.call_tool("echo")
        assert len(script.issuer.visits) <= 2


@requirement(
    "auth-scope.step-up-response",
    "auth-scope.step-up-for-user",
    "auth-scope.step-up-reauthorize",
    "auth-scope.step-up-parse",
)
async def test_a_call_that_needs_more_scopes_asks_the_user_for_them() -> None:
    async with protected() as (script, _):
        script.needed["tools/call"] = frozenset({"write"})
        async with client_of(script, agreeing(script.issuer, scopes=["read"])) as client:
            await client.list_tools()
            await client.call_tool("echo")
        assert [visit.get("scope") for visit in script.issuer.visits] == ["read", "read write"]


@requirement(
    "auth-scope.step-up-few-retries",
    "auth-scope.step-up-retry-limit",
    "auth-scope.step-up-track-attempts",
    "auth-scope.min-client-cache-failures",
)
async def test_endless_refusals_end_after_three_authorizations_and_are_remembered() -> None:
    async with protected() as (script, _):

        async def refuse(asked: Asked, reply: Reply) -> None:
            header = 'Bearer error="insufficient_scope", scope="more"'
            await reply.whole(403, WWW_Authenticate=header)

        script.on["tools/call"] = refuse
        async with client_of(script, agreeing(script.issuer)) as client:
            for _ in range(2):
                with pytest.raises(HttpStatusError, match="403"):
                    await client.call_tool("echo")
                assert len(script.issuer.visits) == 3
            with pytest.raises(HttpStatusError, match="403"):
                await client.call_tool("another")
            assert len(script.issuer.visits) == 5


async def test_a_user_who_denies_a_step_up_is_not_asked_again() -> None:
    async with protected() as (script, _):
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


async def test_a_403_without_insufficient_scope_starts_no_flow() -> None:
    async with protected() as (script, _):

        async def refuse(asked: Asked, reply: Reply) -> None:
            await reply.whole(403, WWW_Authenticate='Bearer error="other"')

        script.on["tools/call"] = refuse
        async with client_of(script, agreeing(script.issuer)) as client:
            with pytest.raises(HttpStatusError, match="403"):
                await client.call_tool("echo")
        assert len(script.issuer.visits) == 1


async def test_a_token_that_is_refused_as_soon_as_it_is_given_ends_the_attempt() -> None:
    async with protected() as (script, _):
        script.issuer.valid = Refusing()
        with pytest.raises(HttpStatusError, match="401"):
            async with client_of(script, agreeing(script.issuer)):
                pass
        assert len(script.issuer.visits) == 1


class Refusing(dict[str, frozenset[str]]):
    """Takes tokens and knows none."""

    def get(self, *_: Any) -> Any:
        return None


@requirement(
    "auth-server-metadata.prm-reread-on-new-challenge",
    "auth-registration.reregister-after-as-change",
    "auth-flow.only-own-as-tokens",
)
async def test_another_authorization_server_gets_nothing_of_the_first_one() -> None:
    async with protected() as (script, _), protected() as (other, _):
        first = script.issuer

        async def visit(url: str) -> str:
            return await (first if url.startswith(first.url) else other.issuer).visit(url)

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        async with client_of(script, auth) as client:
            script.issuer = other.issuer
            await client.list_tools()
        assert len(first.visits) == len(other.issuer.visits) == 1
        assert len(other.issuer.registered) == 1
        assert [form["grant_type"] for form in other.issuer.forms] == ["authorization_code"]
        assert "refresh-1" not in {form.get("refresh_token") for form in other.issuer.forms}


@requirement("auth-registration.preregistered-mismatch-error")
async def test_registered_credentials_stay_at_the_issuer_they_were_used_at() -> None:
    store = MemoryStore()
    async with protected() as (script, _), protected() as (other, _):
        script.issuer.registered["me"] = {"redirect_uris": [REDIRECT_URI]}
        redirect = Redirect(REDIRECT_URI, script.issuer.visit)
        async with client_of(script, OAuth(client_id="me", redirect=redirect, store=store)):
            pass
        script.issuer = other.issuer
        with pytest.raises(AuthorizationError, match="the credentials are those of"):
            async with client_of(script, OAuth(client_id="me", redirect=redirect, store=store)):
                pass
        assert other.issuer.visits == []
        assert other.issuer.forms == []


async def test_a_redirect_to_another_origin_gets_no_token() -> None:
    async with protected() as (script, _):
        seen: list[Asked] = []

        async def elsewhere(asked: Asked, reply: Reply) -> None:
            seen.append(asked)
            await reply.whole(404)

        async with HttpServer(elsewhere) as evil:

            async def redirect(asked: Asked, reply: Reply) -> None:
                await reply.whole(307, Location=evil.url)

            script.on["tools/call"] = redirect
            async with client_of(script, agreeing(script.issuer)) as client:
                with pytest.raises(HttpStatusError, match="307"):
                    await client.call_tool("echo")
        assert seen == []


@requirement("auth-security.no-credential-logging")
async def test_logs_and_texts_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    store = MemoryStore()
    async with protected() as (script, _):
        auth = agreeing(script.issuer, store=store)
        async with client_of(script, auth) as client:
            script.issuer.valid.clear()
            script.issuer.refused = (400, {"error": "temporarily_unavailable"})
            with pytest.raises(OAuthError) as caught:
                await client.call_tool("echo")
            shown = f"{caplog.text} {auth!r} {store!r} {client!r} {caught.value!r}"
        secrets = ["access-1", "refresh-1", "code-1", script.issuer.forms[0]["code_verifier"]]
        assert [secret for secret in secrets if secret in shown] == []


@requirement("auth-security.https-in-production")
async def test_no_token_is_sent_without_tls() -> None:
    for auth in (OAuth("Agent"), Bearer("hidden")):
        with pytest.raises(AuthorizationError, match="https") as caught:
            async with connect("http://mcp.example/mcp", auth=auth):
                pass
        assert "hidden" not in str(caught.value)


async def test_a_token_from_elsewhere_is_sent_and_asked_for_again_when_refused() -> None:
    async with protected() as (script, _):
        script.issuer.valid["second"] = frozenset()
        tokens = iter(["first", "second"])
        async with client_of(script, Bearer(lambda: next(tokens))) as client:
            await client.list_tools()
        assert script.authorizations[:2] == ["Bearer first", "Bearer second"]
        with pytest.raises(HttpStatusError, match="401"):
            async with client_of(script, Bearer("wrong")):
                pass


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "\xe9"])
async def test_a_token_that_no_header_can_hold_is_not_sent(token: str) -> None:
    async with HttpServer(Script("2025-11-25")) as server:
        with pytest.raises(AuthorizationError, match="can't be sent") as caught:
            async with connect(server.url, auth=Bearer(token)):
                pass
        assert token not in str(caught.value) or not token
        assert server.asked == []


async def test_an_authorization_is_begun_and_finished_in_two_places() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        pending = await agreeing(script.issuer, store=store).begin(script.url)
        text, url = pending.dumps(), pending.url
        assert "state" not in repr(pending)
        returned = await script.issuer.visit(url)
        other = agreeing(script.issuer, store=store).pending(text)
        await other.finish(returned)
        with pytest.raises(AuthorizationError, match="was finished"):
            await other.finish(returned)
        with pytest.raises(AuthorizationError, match="was finished"):
            other.dumps()
        visits = len(script.issuer.visits)
        async with client_of(script, agreeing(script.issuer, store=store)) as client:
            await client.list_tools()
        assert len(script.issuer.visits) == visits


@requirement("auth-flow.iss-failure-aborts")
async def test_a_return_that_was_wrong_ends_a_pending_authorization() -> None:
    async with protected() as (script, _):
        pending = await agreeing(script.issuer).begin(script.url)
        returned = await script.issuer.visit(pending.url)
        with pytest.raises(AuthorizationError, match="another issuer"):
            await pending.finish(returned.replace("iss=", "iss=https://evil.example/"))
        with pytest.raises(AuthorizationError, match="was finished"):
            await pending.finish(returned)
        assert script.issuer.forms == []
    with pytest.raises(ValueError, match="pending authorization"):
        OAuth("Agent").pending("nonsense")


@requirement("auth-security.ssrf-redirects", "auth-security.ssrf-no-reflection")
async def test_metadata_behind_a_redirect_is_not_followed() -> None:
    async with protected() as (script, _):
        seen: list[Asked] = []

        async def inside(asked: Asked, reply: Reply) -> None:
            seen.append(asked)
            await reply.json({"secret": "of the inside"})

        async with HttpServer(inside) as target:

            async def refuse(asked: Asked, reply: Reply) -> None:
                if asked.target.startswith("/.well-known/"):
                    await reply.whole(302, Location=target.url)
                else:
                    await reply.whole(401, WWW_Authenticate="Bearer")

            async with HttpServer(refuse) as server:
                with pytest.raises(AuthorizationError, match="no metadata") as caught:
                    async with connect(
                        server.url, auth=agreeing(script.issuer), revision=script.revision
                    ):
                        pass
        assert seen == []
        assert "inside" not in str(caught.value)


class BoundServer(Protected):
    """Takes tokens with a proof only, and gives its nonce by a challenge."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer)
        self.proofs: list[dict[str, Any]] = []
        self.nonce: Any = "rs-1"

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        proof = asked.fields.get("dpop")
        if proof is None:
            await super().__call__(asked, reply)
            return
        scheme, _, token = asked.fields["authorization"].partition(" ")
        assert (scheme, token in self.issuer.valid) == ("DPoP", True)
        self.proofs.append(claims_of(proof))
        if self.proofs[-1].get("nonce") != self.nonce:
            header = 'DPoP error="use_dpop_nonce"'
            await reply.whole(401, WWW_Authenticate=header, DPoP_Nonce=self.nonce)
            return
        self.open = lambda asked: True
        await super().__call__(asked, reply)


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


@requirement("auth-ext.dpop-scheme", "auth-ext.dpop-rs-nonce", "auth-ext.dpop-fresh-proof")
async def test_a_bound_token_is_sent_with_a_new_proof_and_the_nonce_of_the_server() -> None:
    store = MemoryStore()
    async with issuing() as issuer:
        issuer.token_type = "DPoP"
        script = BoundServer(issuer)
        async with HttpServer(script) as server:
            script.url = server.url
            with anyio.fail_after(30):
                async with client_of(script, agreeing(issuer, dpop=True, store=store)) as client:
                    await client.list_tools()
                    script.nonce = "rs-2"
                    await client.call_tool("echo")
                async with client_of(script, agreeing(issuer, dpop=True, store=store)) as client:
                    await client.list_tools()
        assert len(issuer.visits) == 1
    assert {claims["htu"] for claims in script.proofs} == {script.url}
    assert len({claims["jti"] for claims in script.proofs}) == len(script.proofs)
    nonces = [claims.get("nonce") for claims in script.proofs]
    assert nonces[:2] == [None, "rs-1"]
    assert "rs-2" in nonces


async def test_a_stored_token_that_is_not_bound_is_not_sent_where_it_has_to_be() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        await stored(script, store)
        script.issuer.refused = (400, {"error": "invalid_request"})
        with pytest.raises(OAuthError):
            async with client_of(script, agreeing(script.issuer, dpop=True, store=store)):
                pass
        assert set(script.authorizations) == {None}


@requirement("auth-ext.client-declares", "auth-ext.off-by-default")
@pytest.mark.parametrize("revision", holding("auth-ext.client-declares"))
async def test_an_extension_is_declared_in_each_request_of_a_client_that_uses_it(
    revision: str,
) -> None:
    name = "io.modelcontextprotocol/oauth-client-credentials"
    async with protected(revision) as (script, server):
        script.issuer.machine = True
        settings = {"extensions": {"com.example/own": {"a": 1}}}
        auth = ClientCredentials("me", "s")
        async with client_of(script, auth, capabilities=settings) as client:
            await client.list_tools()
        for asked in server.asked:
            if asked.verb == "POST":
                meta = asked.message["params"]["_meta"]
                declared = meta["io.modelcontextprotocol/clientCapabilities"]["extensions"]
                assert declared == {name: {}, "com.example/own": {"a": 1}}
        assert script.issuer.visits == []
        assert [form["grant_type"] for form in script.issuer.forms] == ["client_credentials"]


async def test_two_servers_of_one_issuer_have_tokens_of_their_own() -> None:
    store = MemoryStore()
    async with protected() as (script, _):
        other = Protected(script.issuer)
        async with HttpServer(other) as second:
            other.url = second.url
            for each in (script, other):
                async with client_of(each, agreeing(script.issuer, store=store)) as client:
                    await client.list_tools()
        resources = [form["resource"] for form in script.issuer.forms]
        assert resources == [script.url, other.url]
        assert len(script.issuer.registered) == 1
        assert "Bearer access-1" not in other.authorizations


async def test_a_server_that_always_wants_another_nonce_is_left() -> None:
    async with issuing() as issuer:
        issuer.token_type = "DPoP"
        script = BoundServer(issuer)

        class Count:
            """Differs from each nonce."""

            def __eq__(self, other: object) -> bool:
                return False

            def __hash__(self) -> int:
                return 0

            def __str__(self) -> str:
                return f"n-{len(script.proofs)}"

        script.nonce = Count()
        async with HttpServer(script) as server:
            script.url = server.url
            with anyio.fail_after(30), pytest.raises(HttpStatusError, match="401"):
                async with client_of(script, agreeing(issuer, dpop=True)):
                    pass
        assert len(script.proofs) == 5


async def test_a_client_without_a_user_can_have_bound_tokens_too() -> None:
    store = MemoryStore()
    async with issuing() as issuer:
        issuer.token_type, issuer.machine = "DPoP", True
        script = BoundServer(issuer)
        async with HttpServer(script) as server:
            script.url = server.url
            with anyio.fail_after(30):
                for _ in range(2):
                    auth = ClientCredentials("me", "s", dpop=True, store=store)
                    async with client_of(script, auth) as client:
                        await client.list_tools()
        assert len(issuer.forms) == 1


async def test_clients_in_threads_share_a_way_to_a_token() -> None:
    async with protected() as (script, _):
        auth = agreeing(script.issuer)

        def work() -> str:
            with connect_sync(script.url, auth=auth, revision=script.revision) as client:
                name: str = client.list_tools()[0].name
                return name

        assert [await anyio.to_thread.run_sync(work) for _ in range(2)] == ["echo", "echo"]
        assert len(script.issuer.visits) == 1


@requirement("auth-ext.cc-renewal")
async def test_a_token_without_refresh_token_is_had_again_after_its_end() -> None:
    async with protected() as (script, _):
        script.issuer.machine = True
        script.issuer.expires_in = 0
        async with client_of(script, ClientCredentials("me", "s")) as client:
            await client.list_tools()
            await client.call_tool("echo")
        assert {form["grant_type"] for form in script.issuer.forms} <= {
            "client_credentials",
            "refresh_token",
        }
        assert script.issuer.visits == []
