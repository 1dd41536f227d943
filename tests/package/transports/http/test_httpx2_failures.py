"""Failures of httpx2 as errors of this package, and the codings that its clients accept."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from mcpgen_runtime.errors import (
    ConnectFailedError,
    ConnectionClosedError,
    LocalProtocolError,
    MissingExtraError,
    ResponseLostError,
)
from mcpgen_runtime.transports.http.aiohttp_library import AiohttpLibrary
from mcpgen_runtime.transports.http.http_library import Httpx2Library

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
URL = "http://user@host.example/a?b"
SHOWN = "http://host.example/a"
REFUSED = os.strerror(errno.ECONNREFUSED)
OTHER = httpx2.Request("POST", "http://other.example/token?secret")
BROKEN = "the connection broke before the answer was there"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            httpx2.ConnectTimeout("t"),
            ConnectFailedError,
            f"no connection to {SHOWN}: none within 2.5 s",
        ),
        (httpx2.ConnectError("boom"), ConnectFailedError, f"no connection to {SHOWN}: boom"),
        (httpx2.ProxyError("boom"), ConnectFailedError, f"no connection to {SHOWN}: boom"),
        (httpx2.UnsupportedProtocol("p"), ConnectFailedError, f"no connection to {SHOWN}: p"),
        (
            httpx2.ConnectError("boom", request=OTHER),
            ConnectFailedError,
            "no connection to http://other.example/token: boom",
        ),
        (
            httpx2.LocalProtocolError("secret"),
            LocalProtocolError,
            f"{SHOWN}: a header field can't be sent",
        ),
        (
            httpx2.WriteTimeout("t"),
            ResponseLostError,
            f"{SHOWN}: {BROKEN}: no more of the request was accepted within 3.5 s",
        ),
        (httpx2.ReadError("boom"), ResponseLostError, f"{SHOWN}: {BROKEN}: boom"),
        (
            httpx2.ReadError("boom", request=OTHER),
            ResponseLostError,
            f"http://other.example/token: {BROKEN}: boom",
        ),
        (
            OSError(errno.ECONNREFUSED, "x"),
            ResponseLostError,
            f"{SHOWN}: {BROKEN}: {REFUSED}",
        ),
        (
            ExceptionGroup("g", [OSError(errno.ECONNREFUSED, "x")]),
            ResponseLostError,
            f"{SHOWN}: {BROKEN}: {REFUSED}",
        ),
        (ValueError("not of the library"), None, ""),
    ],
)
async def test_a_failure_is_an_error_with_its_reason(
    error: Exception, kind: type[Exception] | None, text: str
) -> None:
    library = Httpx2Library(2.5, 3.5)
    translated = library.error(error, URL)
    if kind is None:
        assert translated is None
    else:
        assert type(translated) is kind
        assert str(translated) == text
    await library.close()


@pytest.mark.parametrize(
    ("variable", "own", "named"),
    [
        ("http_proxy", True, True),
        ("all_proxy", True, True),
        ("https_proxy", True, False),
        ("http_proxy", False, False),
    ],
)
async def test_a_proxy_of_the_environment_is_a_suspect(
    variable: str, own: bool, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    async with httpx2.AsyncClient(trust_env=False) as client:
        library = Httpx2Library(2.5, 3.5, client=None if own else client)
        text = str(library.error(httpx2.ConnectError("boom"), URL))
        await library.close()
    assert text.endswith(": boom (the environment names a proxy)") is named


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
        ("deflate", "deflate"),
        ("zstd, br", "identity"),
        ("", "identity"),
    ],
)
async def test_codings_without_a_bound_are_not_accepted(accepted: str, codings: str) -> None:
    async with httpx2.AsyncClient(headers={"Accept-Encoding": accepted}) as client:
        assert Httpx2Library(1, 1, client=client).codings == codings
    assert Httpx2Library(1, 1).codings == "identity"


@pytest.mark.parametrize(
    ("auth", "field"),
    [
        (None, "Basic Y2xpZW50OnNlY3JldA=="),
        (httpx2.BasicAuth("user", "p@ss"), "Basic dXNlcjpwQHNz"),
    ],
)
async def test_a_request_has_the_codings_and_follows_no_redirect(
    auth: httpx2.Auth | None, field: str
) -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(302, headers={"Location": "/b"}, content=b"body")

    async with httpx2.AsyncClient(
        transport=httpx2.MockTransport(answer),
        follow_redirects=True,
        headers={"Accept-Encoding": "br, gzip"},
        auth=("client", "secret"),
    ) as client:
        library = Httpx2Library(1, 1, client=client, auth=auth)
        response = await library.send("POST", URL, {"X-Own": "1"}, b"{}")
        assert (response.status, response.reason, response.url) == (302, "Found", URL)
        assert (response.header("location"), response.header("none")) == ("/b", None)
        parts: list[bytes] = []

        async def take(part: bytes) -> None:
            parts.append(part)

        await response.each_part(take)
        await response.close()
    (request,) = asked
    assert parts == [b"body"]
    assert request.headers["x-own"] == "1"
    assert request.headers["accept-encoding"] == "gzip"
    assert request.headers["authorization"] == field


@pytest.mark.parametrize(
    ("name", "open_library"),
    [
        ("httpx2", lambda: Httpx2Library(1, 1)),
        ("aiohttp", lambda: AiohttpLibrary(1, 1)),
    ],
)
def test_a_library_that_is_not_installed_is_named(
    name: str, open_library: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"a client over HTTP.*{name}"):
        open_library()


async def test_an_exception_of_the_reader_passes_unchanged() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=b"x" * 200_000)

    async def take(part: bytes) -> None:
        sizes.append(len(part))
        if len(sizes) == 2:
            raise KeyError("enough")

    sizes: list[int] = []
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        library = Httpx2Library(1, 1, client=client)
        response = await library.send("POST", URL, {}, b"{}")
        with pytest.raises(KeyError, match="enough"):
            await response.each_part(take)
    assert sizes == [65536, 65536]


async def test_a_closed_library_sends_nothing() -> None:
    library = Httpx2Library(1, 1)
    await library.close()
    with pytest.raises(ConnectionClosedError, match="the HTTP client is closed"):
        await library.send("POST", URL, {}, b"{}")


@pytest.mark.parametrize("fields", [{"X": "a\u4e16"}, {"X": 1}])
async def test_a_field_that_httpx2_refuses_is_an_error(fields: Any) -> None:
    async with httpx2.AsyncClient() as client:
        with pytest.raises(LocalProtocolError, match=r"^headers: "):
            await Httpx2Library(1, 1, client=client).send("POST", URL, fields, b"{}")
