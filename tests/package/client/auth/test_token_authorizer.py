"""The token of one connection without an MCP server: which requests get it, and when it changes."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from kit.cached import Clock
from kit.http_script import Script
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.wire import STREAMABLE
from mcpgen_runtime import (
    REVISIONS,
    ClientCredentials,
    HttpStatusError,
    MemoryStore,
    PrivateKey,
    connect,
)
from mcpgen_runtime.auth.token_endpoint import AccessToken, Grant, encode_record, grant_key
from mcpgen_runtime.client.auth.token_authorizer import TokenAuthorizer

SERVER = "http://127.0.0.1:1/mcp"
"""Where nobody listens."""

NOW = 1000.0
TOKEN = AccessToken("access", renew_at=NOW + 5, refresh_token="refresh")
GRANT = Grant("http://127.0.0.1:1", TOKEN, "http://127.0.0.1:1/token")
OLD = {"Authorization": "Bearer access"}


class Refusal:
    """A response of the MCP server."""

    def __init__(self, status: int, challenge: str = "") -> None:
        self.status = status
        self._fields = {"www-authenticate": challenge, "dpop-nonce": ""}

    def header(self, name: str) -> str | None:
        return self._fields[name] or None


async def authorizer_with(
    grant: Grant | None, store: MemoryStore | None = None, **how: Any
) -> tuple[TokenAuthorizer, Clock]:
    """An authorizer of a client that has a grant, and its clock."""
    clock, store = Clock(), store or MemoryStore()
    clock.now = NOW
    source = ClientCredentials("me", "secret", store=store, **how)
    source.settings = replace(source.settings, now=clock)
    if grant is not None:
        await store.save(grant_key(SERVER), encode_record(grant))
    return TokenAuthorizer(source, SERVER, REVISIONS), clock


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


async def test_a_failed_refresh_is_tried_again_after_10_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    authorizer, clock = await authorizer_with(GRANT)
    attempts = {}
    for time in (NOW, NOW + 4.9, NOW + 5, NOW + 14.9, NOW + 15, NOW + 15.1):
        clock.now = time
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


revisions = pytest.mark.parametrize("revision", STREAMABLE)


def refuses(status: int, challenge: str, body: bytes = b"") -> Handler:
    """A server that refuses each request."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status, body, WWW_Authenticate=challenge)

    return handler


async def refusal(handler: Handler, revision: str, **how: Any) -> str:
    """The text of the error of a client."""
    async with HttpServer(handler) as server:
        with pytest.raises(HttpStatusError) as refused:
            async with connect(server.url, revision=revision, **how):
                pass
    return str(refused.value)


@revisions
async def test_a_refusal_without_credentials_names_the_ways_to_some(revision: str) -> None:
    text = await refusal(refuses(401, "Bearer"), revision)
    assert "HTTP 401" in text
    assert "auth=OAuth(" in text
    assert "auth='...'" in text


@pytest.mark.parametrize("how", [{"auth": "s3cret"}, {"headers": {"authorization": "s3cret"}}])
@revisions
async def test_a_refusal_of_credentials_says_so(how: dict[str, Any], revision: str) -> None:
    challenge = 'Bearer error="invalid_token", error_description="it ended yesterday"'
    text = await refusal(refuses(401, challenge), revision, **how)
    assert "the server's reason: it ended yesterday" in text
    assert "the credentials of auth= or headers= were refused" in text
    assert "s3cret" not in text
    assert "OAuth(" not in text


@revisions
async def test_the_reason_is_escaped_bounded_and_given_once(revision: str) -> None:
    loud = 'Bearer error_description="\x1b[2Jred{}"'.format("x" * 5000)
    text = await refusal(refuses(401, loud), revision)
    assert "\x1b" not in text
    assert len(text) < 1000
    twice = refuses(401, 'Bearer error_description="who are you"', b"who are you")
    assert (await refusal(twice, revision)).count("who are you") == 1
    code = await refusal(refuses(403, 'Bearer error="insufficient_scope"'), revision)
    assert "the server's reason: insufficient_scope" in code
    assert "auth=" not in code


@pytest.mark.parametrize(
    ("auth", "text"),
    [("oauth", "auth: use OAuth"), ("Bearer s3cret", "without the word Bearer")],
)
async def test_a_text_that_is_no_token_is_refused_before_it_is_sent(auth: str, text: str) -> None:
    async with HttpServer(Script("2025-11-25")) as server:
        with pytest.raises(ValueError, match=text) as refused:
            async with connect(server.url, auth=auth):
                pass
        assert "s3cret" not in str(refused.value)
        assert server.asked == []
