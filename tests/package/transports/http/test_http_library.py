"""The HTTP libraries, httpx2 and aiohttp: what they do alike, and bounds on hostile servers."""

from __future__ import annotations

import errno
import gc
import gzip
import itertools
import json
import logging
import os
import socket
import ssl
import tracemalloc
import warnings
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from kit.http_script import (
    Script,
    SseScript,
    says,
    stay_silent,
    stream_events,
)
from kit.http_server import Asked, Handler, HttpServer, Reply, unused_port
from kit.live import expect_refusal
from kit.wire import STREAMABLE
from mcpgen_runtime import (
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
    connect,
)
from mcpgen_runtime.errors import FrameError
from mcpgen_runtime.runtime.time_limits import HTTP_TIMEOUTS
from mcpgen_runtime.transports.http.aiohttp_library import FRAMING_LIMIT, open_library
from mcpgen_runtime.transports.http.http_client import (
    POSTED,
    REDIRECTS,
    REFUSAL_LIMIT,
    HttpRequests,
    OpenLibrary,
)
from mcpgen_runtime.transports.http.http_library import (
    Httpx2Library,
    Response,
    Secrets,
    lost_response_error,
    reason_of,
)
from mcpgen_runtime.transports.http.streamable_http import EventStream

pytestmark = pytest.mark.processes
NEWEST = STREAMABLE[-1]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(params=["httpx2", "aiohttp"])
def opener(request: pytest.FixtureRequest, anyio_backend: str) -> OpenLibrary | None:
    """Opens a library. Clients of `connect` have aiohttp on asyncio, and httpx2 on trio."""
    if request.param == "httpx2":
        return None
    if anyio_backend == "trio":
        pytest.skip("aiohttp lacks trio")
    return open_library


@asynccontextmanager
async def posting(
    opener: OpenLibrary | None, handler: Handler
) -> AsyncIterator[tuple[Callable[..., Any], HttpServer, HttpRequests]]:
    """A function that posts to a server and gives the response; the server, and the requests."""
    async with HttpServer(handler) as server:
        requests = HttpRequests(open_library=opener)

        async def post(url: str = server.url, body: bytes = b"{}") -> Response:
            return await requests.open("POST", url, POSTED, body)

        with anyio.fail_after(20):
            yield post, server, requests
        await requests.close()


async def answer(asked: Asked, reply: Reply) -> None:
    """A short body, with a cookie and a field that is there twice."""
    await reply.raw(
        b"HTTP/1.1 200\r\nSet-Cookie: tracked=1; Path=/\r\nA: 1\r\na: 2\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )


async def test_a_connection_is_used_again_without_cookies(opener: OpenLibrary | None) -> None:
    async with posting(opener, answer) as (post, server, requests):
        for _ in range(3):
            response = await post()
            assert (response.header("A"), response.header("b")) == ("1, 2", None)
            assert (response.status, response.reason, response.url) == (200, "", server.url)
            assert await requests.read(response) == b"{}"
            await requests.discard(await post())
        assert await (await post()).read(2, 1, 1) == b"{}"
        with pytest.raises(FrameError):
            await (await post()).read(1, 1, 1)
    assert server.connections == 1
    assert {asked.fields.get("cookie") for asked in server.asked} == {None}
    assert {asked.fields["accept-encoding"] for asked in server.asked} == {"identity"}


@pytest.mark.parametrize("requests_before", [0, 1])
async def test_a_closed_client_sends_nothing(
    requests_before: int, opener: OpenLibrary | None
) -> None:
    async with posting(opener, answer) as (post, server, requests):
        for _ in range(requests_before):
            await requests.read(await post())
        await requests.close()
        await requests.close()
        with pytest.raises(ConnectionClosedError, match="the HTTP client is closed"):
            await post()
    assert len(server.asked) == requests_before


async def test_a_large_request_that_the_server_does_not_accept_is_lost(
    opener: OpenLibrary | None,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # which accepts no connection
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        requests = HttpRequests(silence=0.3, open_library=opener)
        with anyio.fail_after(20), pytest.raises(ResponseLostError, match=r"within 0\.3 s"):
            await requests.open("POST", url, POSTED, bytes(32_000_000))
        await requests.close()


async def test_a_large_request_arrives_whole_with_its_length(opener: OpenLibrary | None) -> None:
    body = bytes(range(256)) * 8192
    async with posting(opener, answer) as (post, server, requests):
        assert await requests.read(await post(body=body)) == b"{}"
    (asked,) = server.asked
    assert asked.body == body
    assert asked.fields["content-length"] == str(len(body))


@pytest.mark.parametrize("reading", ["in time", "late"])
async def test_parts_before_wrong_framing_are_read(
    reading: str, opener: OpenLibrary | None
) -> None:
    if reading == "late" and opener is None:
        pytest.skip("httpx2 receives only what is read")
    parts, first_read, client_left = list[bytes](), anyio.Event(), anyio.Event()

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.part(b"first")
        await first_read.wait()
        await reply.raw(b"6\r\nsecond\r\nno size\r\n")
        await reply.gone()
        client_left.set()

    async def take(part: bytes) -> None:
        parts.append(bytes(part))
        first_read.set()
        if reading == "late":
            await client_left.wait()

    async with posting(opener, handler) as (post, _, _):
        response = await post()
        with pytest.raises(ResponseLostError, match="broke"):
            await response.each_part(take)
    assert parts == [b"first", b"second"]


async def test_the_proxy_of_the_environment_is_used(
    opener: OpenLibrary | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with HttpServer(answer) as proxy, HttpServer(answer) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/mcp"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for url in ("http://server.invalid/mcp", server.url):
            requests = HttpRequests(open_library=opener)
            assert await requests.read(await requests.open("POST", url, POSTED, b"{}")) == b"{}"
            await requests.close()
    assert [asked.target for asked in proxy.asked] == ["http://server.invalid/mcp"]
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("variable", "own", "named"),
    [
        ("http_proxy", False, True),
        ("all_proxy", False, True),
        ("https_proxy", False, False),
        ("http_proxy", True, False),
    ],
)
async def test_a_proxy_of_the_environment_is_named_as_a_suspect(
    variable: str,
    own: bool,
    named: bool,
    opener: OpenLibrary | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with unused_port() as port:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{port}")
        async with httpx2.AsyncClient(trust_env=False) as client:
            requests = HttpRequests(client=client) if own else HttpRequests(open_library=opener)
            with pytest.raises(ConnectFailedError) as caught:
                await requests.open("POST", f"http://localhost:{port}/mcp", POSTED, b"{}")
            await requests.close()
    assert str(caught.value).endswith(" (the environment names a proxy)") is named


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("https_proxy", "ftp://127.0.0.1:1", "Unknown scheme"),
        ("https_proxy", "http://127.0.0.1:port", "port"),
        ("https_proxy", "http://127.0.0.1:65536", "(?i)port"),
        ("https_proxy", "127.0.0.1:65536", "(?i)port|Unknown scheme"),
        ("https_proxy", "http://127.0.0.1:0", "a proxy needs a host and a port"),
        ("https_proxy", "http://", "a proxy needs a host and a port"),
        ("SSL_CERT_FILE", "/there/is/none", "No such file"),
    ],
)
async def test_a_bad_environment_variable_is_an_error_where_it_matters(
    name: str,
    value: str,
    reason: str,
    opener: OpenLibrary | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("no_proxy", "127.0.0.1,other:65536")
    async with posting(opener, answer) as (post, _, requests):
        with pytest.raises(ConnectFailedError, match=reason) as caught:
            await post("https://server.invalid/a?b")
        assert str(caught.value).startswith("no connection to https://server.invalid/a: ")
        assert await requests.read(await post()) == b"{}"


@pytest.mark.parametrize(
    ("credentials", "field"),
    [
        ("user:p%40ss@", "Basic dXNlcjpwQHNz"),
        ("user@", "Basic dXNlcjo="),
        (":p@", "Basic OnA="),
        ("", None),
    ],
)
async def test_credentials_of_a_url_are_sent_in_a_field(
    credentials: str, field: str | None, opener: OpenLibrary | None
) -> None:
    async with posting(opener, answer) as (post, server, requests):
        await requests.discard(await post(server.url.replace("//", f"//{credentials}")))
    (asked,) = server.asked
    assert asked.fields.get("authorization") == field


async def test_the_system_watches_connections_that_are_silent(
    opener: OpenLibrary | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: set[tuple[object, ...]] = set()

    def record(raw: socket.socket, *option: Any) -> None:
        options.add(option)
        set_option(raw, *option)

    set_option = socket.socket.setsockopt
    monkeypatch.setattr(socket.socket, "setsockopt", record)
    async with posting(opener, answer) as (post, _, requests):
        await requests.discard(await post())
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in options
    if hasattr(socket, "TCP_KEEPIDLE"):
        assert (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30) in options
        assert (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10) in options
        assert (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3) in options


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_option_that_the_system_refuses_is_the_reason_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(raw: socket.socket, *option: Any) -> None:
        raise OSError(errno.EPERM, "x")

    requests = HttpRequests(open_library=open_library)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(socket.socket, "setsockopt", refuse)
        with pytest.raises(ConnectFailedError, match=os.strerror(errno.EPERM)):
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            await requests.open("POST", url, POSTED, b"{}")
    await requests.close()


async def test_a_channel_that_is_cancelled_leaves_nothing_open() -> None:
    script = Script(NEWEST, on={"tools/call": stay_silent})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with HttpServer(script) as server:
            with anyio.CancelScope() as scope:
                async with (
                    connect(server.url, revision=NEWEST) as client,
                    anyio.create_task_group() as tasks,
                ):
                    arguments: dict[str, object] = {}
                    tasks.start_soon(client.call_tool, "echo", arguments)
                    await server.until("tools/call")
                    scope.cancel()
            await server.until_left()
        gc.collect()


def chained(error: Exception, **members: Any) -> Exception:
    """An error that was raised for another one, or while another one was handled."""
    for name, value in members.items():
        setattr(error, f"__{name}__", value)
    return error


REFUSED, RESET = OSError(errno.ECONNREFUSED, "x"), OSError(errno.ECONNRESET, "x")
REFUSED_TEXT, RESET_TEXT = os.strerror(errno.ECONNREFUSED), os.strerror(errno.ECONNRESET)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (REFUSED, REFUSED_TEXT),
        (OSError(99_999, "own"), "own"),
        (OSError("plain"), "plain"),
        (OSError(), "OSError"),
        (ssl.SSLError(1, "bad certificate"), "bad certificate"),
        (socket.gaierror(-2, "unknown name"), "unknown name"),
        (chained(ValueError("outer"), cause=REFUSED), REFUSED_TEXT),
        (chained(ValueError("outer"), cause=ValueError("inner")), "outer"),
        (chained(ValueError("outer"), context=REFUSED, suppress_context=True), REFUSED_TEXT),
        (chained(ValueError("outer"), context=REFUSED, suppress_context=False), "outer"),
        (ExceptionGroup("several", [REFUSED, RESET, REFUSED]), f"{REFUSED_TEXT}; {RESET_TEXT}"),
    ],
)
def test_the_reason_of_a_failure_is_that_of_the_system(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
    assert str(lost_response_error("http://u@host/a?b", error)) == (
        f"http://host/a: the connection broke before the answer was there: {reason}"
    )
    assert str(lost_response_error("http://host/a", error, "own")).endswith(": own")


def test_a_secret_is_masked_until_its_last_connection_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = Secrets(), Secrets()
    for connection in (first, first, second):
        connection.add("hunter2")
    first.add("")
    log = logging.getLogger("httpx2")
    caplog.set_level(logging.INFO, logger="httpx2")
    log.info("%s in %s", "hunter2", "a URL")
    first.clear()
    first.clear()
    log.info("hunter2 again")
    second.clear()
    log.info("hunter2 at last")
    log.info("b'Mcp-Session-Id', b'secret', b'x'; b\"mcp-session-id\", b\"it's\"")
    assert [record.getMessage() for record in caplog.records if record.name == "httpx2"] == [
        "*** in a URL",
        "*** again",
        "hunter2 at last",
        "b'Mcp-Session-Id', b'***', b'x'; b\"mcp-session-id\", b'***'",
    ]


URL = "http://user@host.example/a?b"


async def test_the_timeouts_of_a_client_are_its_own() -> None:
    timeout = httpx2.Timeout(connect=1.5, read=1, write=4.5, pool=6.5)
    async with httpx2.AsyncClient(timeout=timeout) as client:
        library = Httpx2Library(2.5, 3.5, client=client)
        errors = [httpx2.ConnectTimeout("t"), httpx2.WriteTimeout("t"), httpx2.PoolTimeout("t")]
        texts = [str(library.error(error, URL)) for error in errors]
        await library.close()
        assert not client.is_closed
    assert [text.rpartition(": ")[2] for text in texts] == [
        "none within 1.5 s",
        "no more of the request was accepted within 4.5 s",
        "the HTTP client had none free within 6.5 s",
    ]


@pytest.mark.parametrize(
    ("accepted", "codings"),
    [
        ("gzip, deflate, br", "gzip, deflate"),
        ("deflate;q=0.5 , GZIP", "gzip, deflate"),
        ("zstd, br", "identity"),
        ("", "identity"),
    ],
)
async def test_codings_without_a_bound_are_not_accepted(accepted: str, codings: str) -> None:
    async with httpx2.AsyncClient(headers={"Accept-Encoding": accepted}) as client:
        assert Httpx2Library(1, 1, client=client).codings == codings
    assert Httpx2Library(1, 1).codings == "identity"


async def test_a_client_of_ones_own_follows_no_redirect_and_asks_for_bounded_codings() -> None:
    asked: list[httpx2.Request] = []
    failures = [httpx2.LocalProtocolError("hunter2"), KeyError("own")]

    def redirect(request: httpx2.Request) -> httpx2.Response:
        if asked:
            raise failures.pop(0)
        asked.append(request)
        return httpx2.Response(302, headers={"Location": "/b"}, content=b"body")

    async with httpx2.AsyncClient(
        transport=httpx2.MockTransport(redirect),
        follow_redirects=True,
        headers={"Accept-Encoding": "br, gzip"},
        auth=("client", "secret"),
    ) as client:
        library = Httpx2Library(1, 1, client=client, auth=httpx2.BasicAuth("user", "p@ss"))
        response = await library.send("POST", URL, {"X-Own": "1"}, b"{}")
        assert (response.status, response.reason, response.url) == (302, "Found", URL)
        assert await response.read(100, 1, 1) == b"body"
        with pytest.raises(LocalProtocolError, match=r"^headers: "):
            await library.send("POST", URL, {"X": "a\u4e16"}, b"{}")
        with pytest.raises(LocalProtocolError, match="a header field can't be sent") as hidden:
            await library.send("POST", URL, {}, b"{}")
        assert hidden.value.__cause__ is None
        with pytest.raises(KeyError, match="own"):
            await library.send("POST", URL, {}, b"{}")
    (request,) = asked
    names = ("x-own", "accept-encoding", "authorization")
    assert [request.headers[name] for name in names] == ["1", "gzip", "Basic dXNlcjpwQHNz"]


LIMIT = 100_000
HARM = "\x1b[2J\x9b\x85" + "x" * 5000
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def send_parts(*parts: Iterable[bytes] | bytes) -> Handler:
    """A handler that sends bytes as they are, for ever where a part has no end."""

    async def handler(asked: Asked, reply: Reply) -> None:
        for part in parts:
            for piece in (part,) if isinstance(part, bytes) else part:
                await reply.raw(piece)
        await reply.cut()

    return handler


def repeat(piece: bytes) -> Iterable[bytes]:
    """A piece for ever, in larger ones."""
    return itertools.repeat(piece * (32_768 // len(piece)))


@asynccontextmanager
async def requests_to(
    handler: Handler, *, with_httpx2: bool = False
) -> AsyncIterator[tuple[HttpRequests, Any, HttpServer]]:
    """A requester, the address of a server, and the server."""
    async with HttpServer(handler) as server, httpx2.AsyncClient() as client:
        own = client if with_httpx2 else None
        requests = HttpRequests(client=own, limit=LIMIT, open_library=open_library)
        try:
            with anyio.fail_after(20):
                yield requests, server.url, server
        finally:
            await requests.close()


async def test_an_event_that_is_too_long_ends_its_request_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def hear(message: bytes) -> None:
        heard.append(message)

    heard: list[bytes] = []
    events = [b"data: %b\n\n" % text for text in (b"x" * (LIMIT + 1), b"{}")]
    async with requests_to(stream_events(*events)) as (requests, url, _):
        for id, error in ((1, FrameError), (None, ResponseLostError)):
            stream = EventStream(requests, None, hear, id, HTTP_TIMEOUTS)
            with pytest.raises(error):
                await stream.follow(await requests.open("GET", url, {}))
            assert heard == ([] if id else [b"{}"])
    assert "an event without a request was dropped" in caplog.text


ENDLESS_HEADS = {
    "a line": (b"HTTP/1.1 200 ", repeat(b"x")),
    "fields": (OK, repeat(b"a: b\r\n")),
    "a field": (OK + b"a: ", repeat(b"b")),
    "a field in lines": (OK + b"a: ", repeat(b"b\r\n ")),
    "blank": (repeat(b"\r\n"),),
    "no HTTP": (repeat(b"\x1b[2J"),),
    "informational": (repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),),
    "early hints": (repeat(b"HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n"),),
}


@pytest.mark.parametrize("head", ENDLESS_HEADS)
async def test_the_head_of_a_response_is_taken_up_to_a_limit(head: str, anyio_backend: str) -> None:
    if anyio_backend == "trio" and head in ("informational", "early hints"):
        pytest.skip("httpx2 has no such limit")
    async with requests_to(send_parts(*ENDLESS_HEADS[head])) as (requests, url, _):
        tracemalloc.start()
        try:
            with pytest.raises(ResponseLostError) as caught:
                await requests.open("POST", url, POSTED, b"{}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
    if anyio_backend == "asyncio" and head != "no HTTP":
        assert f"more than {FRAMING_LIMIT} bytes" in str(caught.value)
    assert peak < 60 * FRAMING_LIMIT


async def test_a_few_informational_responses_are_passed_over() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000
    handler = send_parts(early, OK, b"Content-Length: 2\r\n\r\n{}")
    async with requests_to(handler) as (requests, url, _):
        response = await requests.open("POST", url, POSTED, b"{}")
        assert await requests.read(response) == b"{}"


ENDLESS_BODIES = {
    "chunked": (b"Transfer-Encoding: chunked\r\n\r\n", repeat(b"400\r\n%b\r\n" % (b"a" * 1024))),
    "of a length": (b"Content-Length: 99999999999\r\n\r\n", repeat(b"a")),
    "to the end": (b"\r\n", repeat(b"a")),
}


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("body", ENDLESS_BODIES)
async def test_the_body_of_an_answer_is_taken_up_to_a_limit(body: str, with_httpx2: bool) -> None:
    handler = send_parts(OK, *ENDLESS_BODIES[body])
    async with requests_to(handler, with_httpx2=with_httpx2) as (requests, url, _):
        response = await requests.open("POST", url, POSTED, b"{}")
        with pytest.raises(FrameError, match=f"at most {LIMIT} bytes"):
            await requests.read(response)


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS_FRAMES = {
    "an extension": (CHUNKED + b"4;", repeat(b"a")),
    "a size": (CHUNKED, repeat(b"0")),
    "a trailer": (CHUNKED + b"0\r\na: ", repeat(b"b")),
    "trailers": (CHUNKED + b"0\r\n", repeat(b"a: b\r\n")),
}


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("frame", ENDLESS_FRAMES)
async def test_framing_of_a_body_is_read_up_to_a_limit(
    frame: str, with_httpx2: bool, anyio_backend: str
) -> None:
    handler = send_parts(OK, *ENDLESS_FRAMES[frame])
    async with requests_to(handler, with_httpx2=with_httpx2) as (requests, url, _):
        response = await requests.open("POST", url, POSTED, b"{}")
        with pytest.raises(ResponseLostError) as caught:
            await requests.read(response)
    assert len(str(caught.value)) < 500
    by_aiohttp = anyio_backend == "asyncio" and not with_httpx2
    limit = f"more than {FRAMING_LIMIT} bytes" if by_aiohttp else "Receive buffer too long"
    assert limit in str(caught.value)


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("body", ENDLESS_BODIES)
async def test_the_body_of_a_refusal_is_taken_up_to_a_limit(body: str, with_httpx2: bool) -> None:
    handler = send_parts(b"HTTP/1.1 500 No\r\n", *ENDLESS_BODIES[body])
    async with requests_to(handler, with_httpx2=with_httpx2) as (requests, url, _):
        with pytest.raises(HttpStatusError) as caught:
            await requests.open("POST", url, POSTED, b"{}")
    assert len(caught.value.body) <= REFUSAL_LIMIT


async def test_redirects_are_followed_a_few_times() -> None:
    numbers = itertools.count()

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(307, Location=f"/{next(numbers)}{'x' * 5000}")

    async with requests_to(handler) as (requests, url, server):
        with pytest.raises(McpError, match="more than 5 redirects") as caught:
            await requests.open("POST", url, POSTED, b"{}")
        assert len(server.asked) == REDIRECTS
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_body_that_bursts_is_taken_up_to_a_limit(coding: str) -> None:
    body = (gzip.compress if coding == "gzip" else zlib.compress)(bytes(20 * LIMIT))
    handler = says(body, Content_Encoding=coding)
    async with requests_to(handler, with_httpx2=True) as (requests, url, server):
        response = await requests.open("POST", url, POSTED, b"{}")
        with pytest.raises(FrameError, match=f"at most {LIMIT} bytes"):
            await requests.read(response)
        assert server.asked[0].fields["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "zstd", "gzip, br", "x" * 5000])
async def test_a_body_that_is_compressed_without_bound_is_refused(coding: str) -> None:
    handler = says(gzip.compress(gzip.compress(b"{}")), Content_Encoding=coding)
    async with requests_to(handler, with_httpx2=True) as (requests, url, _):
        with pytest.raises(RemoteProtocolError, match="expected gzip, deflate, came ") as caught:
            await requests.open("POST", url, POSTED, b"{}")
    assert len(str(caught.value)) < 500


def whole(status: int, body: bytes = b"", **fields: str) -> Handler:
    """A handler with one response, whose fields may have any characters."""
    lines = [f"HTTP/1.1 {status} {fields.pop('reason', 'Test')}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1")
    return send_parts(head + body)


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
REFUSALS = {
    "reason": whole(400, reason=HARM),
    "body": whole(400, HARM.encode(), Content_Type="text/plain"),
    "content type": whole(200, b"{}", Content_Type=f"text/{HARM}"),
    "coding": whole(200, b"{}", Content_Type="application/json", Content_Encoding=HARM),
    "redirect": whole(302, Location=f"https://elsewhere/{HARM}"),
    "session": whole(400, Mcp_Session_Id=HARM),
    "type of an event": send_parts(EVENTS + f"event: {HARM}\ndata: x\n\n".encode()),
    "no HTTP": send_parts(HARM.encode("latin-1") + b"\r\n\r\n"),
    "no answer": whole(200, json.dumps([HARM]).encode(), Content_Type="application/json"),
}


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("where", REFUSALS)
async def test_an_error_shows_server_text_on_one_short_line(
    where: str, with_httpx2: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcpgen_runtime")
    script = Script(STREAMABLE[0])
    async with HttpServer(script) as server, httpx2.AsyncClient() as own:
        client = own if with_httpx2 else None
        with anyio.fail_after(20):
            async with connect(server.url, revision=STREAMABLE[0], http_client=client) as session:
                script.on["tools/call"] = REFUSALS[where]
                with pytest.raises(McpError) as caught:
                    await session.call_tool("echo", {})
    shown = [str(caught.value), *(record.getMessage() for record in caplog.records)]
    assert [text for text in shown if not text.isprintable()] == []
    assert max(map(len, shown)) < 1000


@pytest.mark.parametrize(
    ("type", "data"),
    [("x" + HARM[:3] + HARM[5:], "/messages"), ("endpoint", f"http://elsewhere/{HARM[:3]}x")],
    ids=["type", "endpoint"],
)
async def test_an_error_of_the_older_transport_shows_events_safely(type: str, data: str) -> None:
    event = f"event: {type}\ndata: {data}{'x' * 5000}\n\n".encode()
    script = SseScript(STREAMABLE[0], on={"GET": stream_events(event, last=Reply.gone)})
    async with HttpServer(script) as server:
        with anyio.fail_after(20), pytest.raises(RemoteProtocolError) as caught:
            await expect_refusal(connect(server.url, transport="sse"))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
