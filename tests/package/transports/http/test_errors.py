"""Errors of a client for a server that cannot be reached or whose responses are unusable.

Each failure is one error of the package's own, which says what was expected, what came, and where.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import (
    ConnectFailedError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    RequestTimeoutError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.http_script import Script, error, result
from package.http_server import Asked, Handler, HttpServer, Reply, unused_port
from package.wire import SSE_ONLY, STREAMABLE

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


async def connection_error(url: str, **how: Any) -> McpError:
    """The error by which `connect` fails."""
    with anyio.fail_after(20), pytest.raises(McpError) as caught:
        async with connect(url, **how):
            raise AssertionError("it was opened")
    return caught.value


def constant_handler(
    status: int, body: bytes = b"", kind: str = "text/html", **fields: str
) -> Handler:
    """A handler with always the same response."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(status, body, Content_Type=kind, **fields)

    return handler


async def stay_silent(asked: Asked, reply: Reply) -> None:
    await reply.gone()


async def silent_stream(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.gone()


@pytest.mark.parametrize("revision", SSE_ONLY)
@pytest.mark.parametrize(
    ("get", "kind", "came"),
    [
        (constant_handler(405), HttpStatusError, "GET {url} answered HTTP 405"),
        (constant_handler(404, b"none"), HttpStatusError, "HTTP 404 Test: none; expected"),
        (constant_handler(200, b"<html>"), RemoteProtocolError, "came HTTP 200, text/html"),
        (silent_stream, RemoteProtocolError, "came nothing"),
    ],
)
async def test_a_revision_that_needs_http_sse_says_so_if_there_is_none(
    revision: str,
    get: Handler,
    kind: type[McpError],
    came: str,
) -> None:
    timeouts = Timeouts(http=HttpTimeouts(endpoint=0.2))
    script = Script(STREAMABLE[0], "s")
    script.on["GET"] = get
    async with HttpServer(script) as server:
        failure = await connection_error(server.url, revision=revision, timeouts=timeouts)
    assert type(failure) is kind
    assert came.replace("{url}", server.url) in str(failure)
    assert f"(over HTTP, {revision} is spoken by HTTP+SSE alone)" in str(failure)


async def test_a_refused_stream_is_no_answer_to_a_request() -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.json(error(None, -32000, "no session"), status=400)

    script = Script(STREAMABLE[0], "s")
    script.on["GET"] = get
    async with HttpServer(script) as server:
        failure = await connection_error(server.url, transport="sse")
    assert isinstance(failure, HttpStatusError)
    assert str(failure).endswith("; expected a stream of events")
    assert json.loads(failure.body)["error"]["message"] == "no session"


@pytest.mark.parametrize("handler", [stay_silent, silent_stream])
@pytest.mark.parametrize("revision", [None, *STREAMABLE])
async def test_silence_says_where_without_what_is_secret(
    revision: str | None, handler: Handler
) -> None:
    async with HttpServer(handler) as server:
        url = server.url.replace("//", "//user:pw@") + "?key=secret"
        timeouts = Timeouts(probe=0.1, opening=0.3)
        failure = await connection_error(url, revision=revision, timeouts=timeouts)
        assert isinstance(failure, RequestTimeoutError)
        assert str(failure) == f"opening the session with {server.url}: no answer within 0.3 s"


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("/login?back=secret", "(a redirect to /login)"),
        (
            "https://user:pw@there.invalid/mcp?key=secret",
            "(a redirect to https://there.invalid/mcp)",
        ),
        ("http://[#secret", "(a redirect to http://[)"),
    ],
)
async def test_a_redirect_is_told_without_what_is_secret(location: str, told: str) -> None:
    async with HttpServer(constant_handler(302, Location=location)) as server:
        failure = await connection_error(server.url)
    assert told in str(failure)
    assert "secret" not in str(failure)
    assert "pw" not in str(failure)


@pytest.mark.parametrize(("status", "redirects"), [(300, True), (399, True), (400, False)])
async def test_a_location_is_told_of_every_redirect_alone(status: int, redirects: bool) -> None:
    async with HttpServer(constant_handler(status, Location="/login")) as server:
        failure = await connection_error(server.url)
    assert ("(a redirect to /login)" in str(failure)) == redirects


@pytest.mark.parametrize("stream", [False, True])
async def test_an_unrequested_compression_of_a_body_is_refused(
    stream: bool,
) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        kind = "text/event-stream" if stream else "application/json"
        body = gzip.compress(json.dumps(result(asked)).encode())
        await reply.whole(200, body, Content_Type=kind, Content_Encoding="gzip")

    script = Script(STREAMABLE[-1])
    script.once["tools/call"] = [call]
    async with HttpServer(script) as server, connect(server.url) as client:
        with pytest.raises(RemoteProtocolError, match="expected a body as it is, came gzip"):
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"


@asynccontextmanager
async def run_plain_server(words: bytes) -> AsyncIterator[str]:
    """The URL of something that says the same to everybody, and is no HTTPS server."""

    async def greet(stream: SocketStream) -> None:
        async with stream:
            if words:
                await stream.send(words)
            await anyio.sleep_forever()

    listeners = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listeners, anyio.create_task_group() as tasks:
        tasks.start_soon(listeners.serve, greet)
        yield f"https://127.0.0.1:{listeners.extra(SocketAttribute.local_port)}/mcp"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", r"\[SSL: "),
        (b"", r"none within 0\.2 s"),
    ],
)
async def test_a_server_without_tls_is_told_from_one_that_is_not_there(
    words: bytes, reason: str
) -> None:
    async with run_plain_server(words) as url:
        failure = await connection_error(url, timeouts=Timeouts(connect=0.2))
    assert isinstance(failure, ConnectFailedError)
    with pytest.raises(McpError, match=f"no connection to {url}: {reason}"):
        raise failure


async def test_nobody_listening_is_told_in_the_words_of_the_system() -> None:
    with unused_port() as port:
        failure = await connection_error(f"https://127.0.0.1:{port}/mcp")
    assert isinstance(failure, ConnectFailedError)
    assert str(failure) == f"no connection to https://127.0.0.1:{port}/mcp: Connection refused"


class Refreshing(httpx2.Auth):
    """Asks somebody else for a token first.

    Args:
        url: Who that is.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        yield httpx2.Request("POST", self._url)
        yield request


async def test_an_authentication_that_reaches_nobody_says_whom() -> None:
    with unused_port() as port:
        url = f"http://127.0.0.1:{port}/token"
        async with HttpServer(Script(STREAMABLE[-1])) as server:
            failure = await connection_error(server.url, auth=Refreshing(url))
    assert isinstance(failure, ConnectFailedError)
    assert str(failure) == f"no connection to {url}: Connection refused"


async def test_where_there_is_a_proxy_it_is_named_as_a_suspect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with unused_port() as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        failure = await connection_error("http://server.invalid/mcp")
    assert isinstance(failure, ConnectFailedError)
    assert str(failure).endswith(": Connection refused (the environment names a proxy)")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("https_proxy", "ftp://127.0.0.1:1", "Unknown scheme"),
        ("https_proxy", "http://127.0.0.1:port", "port"),
        ("SSL_CERT_FILE", "/there/is/none", "No such file"),
    ],
)
async def test_a_bad_environment_variable_is_an_error_where_it_matters(
    name: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    failure = await connection_error("https://server.invalid/mcp")
    assert isinstance(failure, ConnectFailedError)
    assert reason in str(failure)
    async with HttpServer(Script(STREAMABLE[-1])) as server, connect(server.url) as client:
        assert await client.list_tools()
