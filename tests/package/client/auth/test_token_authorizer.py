"""The token of one connection without an MCP server: which requests get it, and when it changes."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mcpgen_runtime import ClientCredentials, MemoryStore
from mcpgen_runtime.auth.jwt_signing import PrivateKey, decode_base64url
from mcpgen_runtime.auth.token_endpoint import AccessToken, Grant, encode_record, grant_key
from mcpgen_runtime.client.auth.token_authorizer import TokenAuthorizer
from mcpgen_runtime.errors import ConnectFailedError
from mcpgen_runtime.revisions import REVISIONS

pytestmark = pytest.mark.anyio

SERVER = "http://127.0.0.1:1/mcp"
"""Where nobody listens."""

NOW = 1000.0
TOKEN = AccessToken("access", renew_at=NOW + 5, refresh_token="refresh")
GRANT = Grant("http://127.0.0.1:1", TOKEN, "http://127.0.0.1:1/token")
OLD = {"Authorization": "Bearer access"}


class CountingStore(MemoryStore):
    """A store that counts how often it is read."""

    loads = 0

    async def load(self, key: str) -> bytes | None:
        self.loads += 1
        return await super().load(key)


class Refusal:
    """A response of the MCP server."""

    def __init__(self, status: int, challenge: str = "") -> None:
        self.status = status
        self._fields = {"www-authenticate": challenge, "dpop-nonce": ""}

    def header(self, name: str) -> str | None:
        return self._fields[name] or None


class Clock:
    """A clock that is set."""

    time = NOW

    def __call__(self) -> float:
        return self.time


async def authorizer_with(
    grant: Grant | None, store: MemoryStore | None = None, **how: Any
) -> tuple[TokenAuthorizer, Clock]:
    """An authorizer of a client that has a grant, and its clock."""
    clock, store = Clock(), store or MemoryStore()
    source = ClientCredentials("me", "secret", store=store, **how)
    source.settings = replace(source.settings, now=clock)
    if grant is not None:
        await store.save(grant_key(SERVER), encode_record(grant))
    return TokenAuthorizer(source, SERVER, REVISIONS), clock


async def test_a_stored_token_is_read_once_and_sent_to_its_server() -> None:
    store = CountingStore()
    authorizer, _ = await authorizer_with(GRANT, store)
    assert await authorizer.fields("POST", "http://127.0.0.1:2/mcp") == {}
    assert store.loads == 0
    for url in (SERVER, "http://127.0.0.1:1/other", SERVER):
        assert await authorizer.fields("POST", url) == OLD
    assert store.loads == 1
    await authorizer.close()


async def test_without_a_grant_no_token_is_sent() -> None:
    for grant in (None, replace(GRANT, token=None)):
        authorizer, _ = await authorizer_with(grant)
        assert await authorizer.fields("POST", SERVER) == {}


async def test_a_token_of_another_binding_is_not_sent() -> None:
    key = PrivateKey.generate()
    bound = replace(GRANT, proof_key=key.private_jwk(), token=replace(TOKEN, scheme="DPoP"))
    authorizer, _ = await authorizer_with(bound)
    assert await authorizer.fields("POST", SERVER) == {}
    authorizer, _ = await authorizer_with(GRANT, dpop=True)
    assert await authorizer.fields("POST", SERVER) == {}
    authorizer, _ = await authorizer_with(bound, dpop=True)
    fields = await authorizer.fields("POST", SERVER)
    assert fields.keys() == {"Authorization", "DPoP"}
    assert fields["Authorization"] == "DPoP access"


@pytest.mark.parametrize("is_configured", [False, True])
async def test_proofs_are_by_the_key_that_the_token_is_bound_to(is_configured: bool) -> None:
    first, second = PrivateKey.generate(), PrivateKey.generate()
    store, places = MemoryStore(), list[Any]()
    authorizer, _ = await authorizer_with(None, store, dpop=first if is_configured else True)
    response: Any = Refusal(401, "DPoP")
    sent: Mapping[str, str] = {}
    for key, value in ((first, "one"), (second, "two"), (second, "three")):
        token = replace(TOKEN, value=value, scheme="DPoP")
        bound = replace(GRANT, proof_key=key.private_jwk(), algorithm=key.algorithm, token=token)
        await store.save(grant_key(SERVER), encode_record(bound))
        if sent:
            assert await authorizer.wants_retry(response, sent, ("POST", SERVER, None), 0)
        sent = await authorizer.fields("POST", SERVER)
        assert sent["Authorization"] == f"DPoP {value}"
        header = json.loads(decode_base64url(sent["DPoP"].partition(".")[0]))
        places.append(header["jwk"]["x"])
    own, other = (json.loads(key.private_jwk())["x"] for key in (first, second))
    assert places == ([own] * 3 if is_configured else [own, other, other])


async def test_a_failed_refresh_is_tried_again_after_10_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    authorizer, clock = await authorizer_with(GRANT)
    attempts = {}
    for time in (NOW, NOW + 4.9, NOW + 5, NOW + 14.9, NOW + 15, NOW + 15.1):
        clock.time = time
        assert await authorizer.fields("POST", SERVER) == OLD
        attempts[time - NOW] = len(caplog.records)
    assert [*attempts.values()] == [0, 0, 1, 1, 2, 2]
    assert caplog.messages[0].startswith("the access token could not be refreshed: ")
    await authorizer.close()


SCOPES = 'Bearer error="insufficient_scope", scope="more"'


@pytest.mark.parametrize(
    ("response", "method", "url", "attempts"),
    [
        (Refusal(401, "Bearer"), "POST", "http://127.0.0.1:2/mcp", 0),
        (Refusal(200, "Bearer"), "POST", SERVER, 0),
        (Refusal(400, "Bearer"), "POST", SERVER, 0),
        (Refusal(404), "GET", SERVER, 0),
        (Refusal(401, "Bearer"), "POST", SERVER, 5),
        (Refusal(401, "Bearer"), "DELETE", SERVER, 0),
        (Refusal(403, SCOPES), "DELETE", SERVER, 0),
        (Refusal(403), "POST", SERVER, 0),
        (Refusal(403, 'Bearer error="invalid_token"'), "POST", SERVER, 0),
        (Refusal(403, SCOPES.replace("Bearer", "Basic")), "POST", SERVER, 0),
        (Refusal(401, 'DPoP error="use_dpop_nonce"'), "POST", SERVER, 0),
    ],
)
async def test_a_response_that_another_token_can_not_change_is_final(
    response: Any, method: str, url: str, attempts: int
) -> None:
    authorizer, _ = await authorizer_with(GRANT)
    assert not await authorizer.wants_retry(response, OLD, (method, url, None), attempts)


@pytest.mark.parametrize("response", [Refusal(401, "Bearer"), Refusal(401), Refusal(403, SCOPES)])
async def test_a_refusal_that_another_token_may_change_asks_for_one(response: Any) -> None:
    authorizer, _ = await authorizer_with(GRANT)
    await authorizer.fields("POST", SERVER)
    with pytest.raises(ConnectFailedError, match="oauth-protected-resource"):
        await authorizer.wants_retry(response, OLD, ("POST", SERVER, None), 4)
    await authorizer.close()


async def test_a_newer_token_of_another_client_is_used_for_a_retry() -> None:
    store = MemoryStore()
    authorizer, _ = await authorizer_with(GRANT, store)
    await authorizer.fields("POST", SERVER)
    newer = replace(GRANT, token=replace(TOKEN, value="newer"))
    await store.save(grant_key(SERVER), encode_record(newer))
    for status, challenge in ((401, "Bearer"), (403, SCOPES)):
        response: Any = Refusal(status, challenge)
        assert await authorizer.wants_retry(response, OLD, ("POST", SERVER, None), 0)
    assert await authorizer.fields("POST", SERVER) == {"Authorization": "Bearer newer"}


def test_an_authorizer_shows_no_token() -> None:
    source = ClientCredentials("me", "secret")
    assert repr(TokenAuthorizer(source, SERVER, REVISIONS)) == (
        "<TokenAuthorizer of ClientCredentials>"
    )
    assert repr(source) == "<ClientCredentials 'me'>"
