"""Requests to authorization servers, on the wire."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, repeat
from typing import Any

import pytest

from kit.certificates import write_certificate
from kit.http_server import Asked, HttpServer, Reply
from mcpgen_runtime import (
    AuthorizationError,
    ConnectFailedError,
    McpError,
    MemoryStore,
)
from mcpgen_runtime.auth.steps import (
    Fetch,
    Fetched,
    Flow,
    PrepareRedirect,
)
from mcpgen_runtime.client.auth.flow_driver import AuthFetcher, FlowDriver
from requirements import EVERY_REVISION, requirement

pytestmark = pytest.mark.anyio


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
