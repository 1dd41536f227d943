"""A page of another origin speaks to a server by `fetch`, in headless Chromium."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from playwright.sync_api import Browser, Page

from kit.asgi_client import fields_of
from kit.issuer import IDP, KEY, jwk_set
from kit.pages import serve_pages
from kit.wire import INITIALIZED, SESSIONS, STREAMABLE, initialize, request, streamable
from mcpgen_runtime import JwtVerifier, Protected, Server

pytestmark = pytest.mark.browser

SPEAK = (Path(__file__).parent / "documents" / "speak.js").read_text("utf-8")

Step = tuple[str, Mapping[str, str | None], Any]


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of an empty page."""
    with serve_pages(lambda request: ("text/html", "")) as origin:
        yield origin


@pytest.fixture
def page(browser: Browser, origin: str) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(origin)
    yield page
    page.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serves a server with HTTP settings until the test ends; returns its URL."""
    with anyio.from_thread.start_blocking_portal() as portal:
        futures: list[Future[Any]] = []

        def start(**settings: Any) -> str:
            server = Server("weather")

            @server.tool()
            def forecast(city: str) -> str:
                return f"sun in {city}"

            run = partial(server.run_async, http="127.0.0.1:0", **settings)
            future, url = portal.start_task(run)
            futures.append(future)
            return str(url)

        yield start
        for future in futures:
            future.cancel()


def steps_of(revision: str) -> list[Step]:
    """A tool call, and the requests before and after it, as a page sends them."""
    params = {"name": "forecast", "arguments": {"city": "Oslo"}}
    call = request(revision, "tools/call", params)
    if revision not in SESSIONS:
        return [("POST", fields_of(revision, call), call)]
    fields = {"MCP-Protocol-Version": revision}
    return [
        ("POST", {}, initialize(revision)),
        ("POST", fields, INITIALIZED),
        ("POST", fields, call),
        ("DELETE", fields, None),
    ]


@pytest.mark.parametrize("answers", ["json", "sse"])
@streamable
def test_a_page_of_a_listed_origin_calls_a_tool(
    page: Page, origin: str, serve: Callable[..., str], revision: str, answers: str
) -> None:
    url = serve(origins=[origin], answers=answers)
    seen, session = page.evaluate(SPEAK, [url, steps_of(revision)])
    call = 2 if revision in SESSIONS else 0
    assert [status < 300 for status, *_ in seen] == [True] * len(seen), seen
    assert "sun in Oslo" in seen[call][1]
    assert (session is not None) is (revision in SESSIONS)


@pytest.mark.parametrize("settings", [{}, {"origins": ["https://app.example"]}])
@pytest.mark.parametrize("revision", [SESSIONS[-1], STREAMABLE[-1]])
def test_a_page_of_another_origin_reads_nothing(
    page: Page, serve: Callable[..., str], revision: str, settings: dict[str, Any]
) -> None:
    seen, session = page.evaluate(SPEAK, [serve(**settings), steps_of(revision)])
    assert ({status for status, *_ in seen}, session) == ({0}, None), seen


def test_a_page_reads_the_challenge_and_the_metadata(
    page: Page, origin: str, serve: Callable[..., str]
) -> None:
    settings = Protected(
        "http://127.0.0.1:1/mcp", issuers=[IDP], verifier=JwtVerifier(keys=jwk_set(KEY))
    )
    url = serve(origins=[origin], auth=settings)
    steps = [("POST", {"Authorization": "Bearer x"}, initialize(SESSIONS[-1]))]
    [[status, _, challenge]], _ = page.evaluate(SPEAK, [url, steps])
    assert (status, "resource_metadata=" in challenge) == (401, True)
    place = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    [[status, text, _]], _ = page.evaluate(SPEAK, [place, [("GET", {}, None)]])
    assert (status, json.loads(text)["authorization_servers"]) == (200, [IDP])
