"""Requests to authorization servers, and the tokens that come of them."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import pytest

from kit.cached import Clock
from kit.certificates import write_certificate
from kit.http_script import Script, says
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.live import open_and_close
from kit.wire import streamable
from mcpgen_runtime import (
    REVISIONS,
    AuthorizationError,
    ClientCredentials,
    ConnectFailedError,
    HttpStatusError,
    McpError,
    MemoryStore,
    PrivateKey,
    connect,
)
from mcpgen_runtime.auth.steps import Fetch, Fetched, Flow, PrepareRedirect
from mcpgen_runtime.auth.token_endpoint import AccessToken, Grant, encode_record, grant_key
from mcpgen_runtime.client.auth.flow_driver import AuthFetcher, FlowDriver
from mcpgen_runtime.client.auth.token_authorizer import TokenAuthorizer
from requirements import EVERY_REVISION, requirement


async def reply_nothing(asked: Asked, reply: Reply) -> None:
    await reply.whole(200, b"{}")


async def fetch(
    step: Fetch, permits: Callable[[str], bool] = lambda address: True, **how: Any
) -> Fetched:
    """The response to one request of a flow."""
    fetcher = AuthFetcher(permits, **how)
    try:
        return await fetcher.fetch(step)
    finally:
        await fetcher.close()


@requirement("auth-security.ssrf-dns-rebinding", revisions=EVERY_REVISION)
async def test_a_name_that_changes_its_address_leads_to_no_refused_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is at a permitted address when it is checked, and at a refused one afterwards."""
    known = socket.getaddrinfo
    addresses = chain(["127.0.0.2"], repeat("127.0.0.1"))

    def resolve(host: Any, *arguments: Any, **more: Any) -> Any:
        named = host in ("moving.example", b"moving.example")
        return known(next(addresses) if named else host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with HttpServer(reply_nothing) as server:
        step = Fetch("GET", server.url.replace("127.0.0.1", "moving.example"))
        with pytest.raises(ConnectFailedError):
            await fetch(step, lambda address: address == "127.0.0.2")
        assert server.asked == []


async def test_a_request_carries_what_it_was_given_and_no_more() -> None:
    async with HttpServer(reply_nothing) as server:
        step = Fetch("POST", server.url, {"Accept": "application/json"}, b"a=1")
        response = await fetch(step)
    assert (response.status, response.body) == (200, b"{}")
    names = server.asked[0].fields.keys() - {"host", "content-length", "connection"}
    assert names - {"accept-encoding", "user-agent"} == {"accept"}
    assert server.asked[0].body == b"a=1"


async def test_a_flow_without_a_user_can_not_send_one_anywhere() -> None:
    def steps() -> Flow[None]:
        try:
            yield PrepareRedirect()
        finally:
            ended.append(None)

    ended: list[None] = []
    driver = FlowDriver(AuthFetcher(lambda address: True), MemoryStore())
    with pytest.raises(AuthorizationError) as refusal:  # its traceback keeps the flow alive
        await driver.run(steps())
    assert ("requires a user" in str(refusal.value), ended) == (True, [None])


async def test_a_document_of_512_kib_is_read_and_a_longer_one_is_not() -> None:
    async def long(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, b" " * (512 * 1024 + ("longer" in asked.target)))

    async with HttpServer(long) as server:
        assert len((await fetch(Fetch("GET", server.url))).body) == 512 * 1024
        with pytest.raises(McpError):
            await fetch(Fetch("GET", f"{server.url}?longer"))


async def test_an_event_stream_has_no_document() -> None:
    async def stream(asked: Asked, reply: Reply) -> None:
        await reply.whole(401, b"data: x", Content_Type="text/event-stream; a=b", DPoP_Nonce="n")

    async with HttpServer(stream) as server:
        fields = {"content-type": "text/event-stream; a=b", "dpop-nonce": "n"}
        response = await fetch(Fetch("GET", server.url))
        assert response == Fetched(401, {**fields, "www-authenticate": ""})


async def test_a_silent_server_is_left_after_a_time() -> None:
    async def silent(asked: Asked, reply: Reply) -> None:
        await reply.gone()

    async with HttpServer(silent) as server:
        with pytest.raises(AuthorizationError, match=r"no response within 0\.1 s"):
            await fetch(Fetch("GET", f"{server.url}?secret"), seconds=0.1)


@pytest.fixture(scope="module")
def untrusted_tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """TLS with a certificate that nobody has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_certificate(tmp_path_factory.mktemp("tls"), "127.0.0.1"))
    return context


@requirement("auth-flow.communication-security", revisions=EVERY_REVISION)
async def test_an_untrusted_certificate_ends_the_request(untrusted_tls: ssl.SSLContext) -> None:
    def serve() -> None:
        with suppress(OSError):
            stream, _ = listener.accept()
            with stream, suppress(OSError):
                untrusted_tls.wrap_socket(stream, server_side=True)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(McpError, match=r"(?i)certificate"):
            await fetch(Fetch("GET", f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        thread.join()


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


async def refusal(handler: Handler, revision: str, **how: Any) -> str:
    """The text of the error of a client."""
    async with HttpServer(handler) as server:
        with pytest.raises(HttpStatusError) as refused:
            await open_and_close(connect(server.url, revision=revision, **how))
    return str(refused.value)


@streamable
async def test_a_refusal_without_credentials_names_the_ways_to_some(revision: str) -> None:
    text = await refusal(says(b"", 401, WWW_Authenticate="Bearer"), revision)
    assert "HTTP 401" in text
    assert "auth=OAuth(" in text
    assert "auth='...'" in text


@pytest.mark.parametrize("how", [{"auth": "s3cret"}, {"headers": {"authorization": "s3cret"}}])
@streamable
async def test_a_refusal_of_credentials_says_so(how: dict[str, Any], revision: str) -> None:
    challenge = 'Bearer error="invalid_token", error_description="it ended yesterday"'
    text = await refusal(says(b"", 401, WWW_Authenticate=challenge), revision, **how)
    assert "the server's reason: it ended yesterday" in text
    assert "the credentials of auth= or headers= were refused" in text
    assert "s3cret" not in text
    assert "OAuth(" not in text


@streamable
async def test_the_reason_is_escaped_bounded_and_given_once(revision: str) -> None:
    loud = 'Bearer error_description="\x1b[2Jred{}"'.format("x" * 5000)
    text = await refusal(says(b"", 401, WWW_Authenticate=loud), revision)
    assert "\x1b" not in text
    assert len(text) < 1000
    challenge = 'Bearer error_description="who are you"'
    twice = says(b"who are you", 401, "text/plain", WWW_Authenticate=challenge)
    assert (await refusal(twice, revision)).count("who are you") == 1
    insufficient = says(b"", 403, WWW_Authenticate='Bearer error="insufficient_scope"')
    code = await refusal(insufficient, revision)
    assert "the server's reason: insufficient_scope" in code
    assert "auth=" not in code


@pytest.mark.parametrize(
    ("auth", "text"),
    [("oauth", "auth: use OAuth"), ("Bearer s3cret", "without the word Bearer")],
)
async def test_a_text_that_is_no_token_is_refused_before_it_is_sent(auth: str, text: str) -> None:
    async with HttpServer(Script("2025-11-25")) as server:
        with pytest.raises(ValueError, match=text) as refused:
            await open_and_close(connect(server.url, auth=auth))
        assert "s3cret" not in str(refused.value)
        assert server.asked == []
