"""Extensions of authorization at work in a client: bound tokens, and tokens without a user."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kit.http_script import Script
from kit.http_server import Asked, Reply
from kit.rules import revisions_holding
from mcpgen_runtime import (
    ClientCredentials,
    EnterpriseManaged,
    HttpStatusError,
    MemoryStore,
    WorkloadIdentity,
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
from requirements import requirement

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
                async with client_of(script, agreeing_user(issuer, dpop=True)):
                    pass
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
