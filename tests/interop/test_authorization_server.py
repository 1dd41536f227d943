"""Our client and our protected server with a real authorization server, oidc-provider."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import unescape
from typing import Any
from urllib.parse import urljoin

import anyio
import httpx2
import pytest
import uvicorn

from interop.processes import HERE, NPM, serving
from mcp_protocol import (
    ClientCredentials,
    Context,
    Device,
    DeviceCode,
    DpopValidation,
    JwtVerifier,
    MemoryStore,
    OAuth,
    Protected,
    Redirect,
    Server,
    connect,
)
from mcp_protocol.auth.documents import canonical_resource
from mcp_protocol.auth.records import Grant, decoded_record, encoded_record, grant_key
from package.rules import holding

pytestmark = [pytest.mark.interop, pytest.mark.anyio]

CALLBACK = "http://127.0.0.1:33418/callback"
REVISIONS = holding("auth-server-metadata.as-metadata-both-client")
"""Those whose clients read OpenID metadata, the only one that oidc-provider has."""

_INPUT = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
_ACTION = re.compile(r'<form[^>]* action="([^"]+)"')


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Our server runs in a thread of its own; one loop is enough."""
    return "asyncio"


@dataclass(frozen=True)
class Place:
    """What runs.

    Attributes:
        url: The protected server.
        issuer: The authorization server.
    """

    url: str
    issuer: str


@contextmanager
def running(dpop: DpopValidation | None = None) -> Iterator[Place]:
    """A protected server, and the authorization server that it trusts."""
    assert (NPM / "node_modules/oidc-provider").is_dir(), "run nox -s interop"
    server = Server("protected")

    @server.tool()
    async def whoami(ctx: Context) -> str:
        return ctx.principal.subject

    @server.tool(scopes=["files:write"])
    async def write(ctx: Context) -> str:
        return " ".join(sorted(ctx.principal.scopes))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        script = str(HERE / "npm" / "authorization_server.mjs")
        with serving("node", script, url, says=re.compile(r"http://127\.0\.0\.1:\d+")) as issuer:
            auth = Protected(
                url, issuers=[issuer], verifier=JwtVerifier(), scopes=["mcp:read"], dpop=dpop
            )
            app = server.asgi(auth=auth)
            config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2)
            host = uvicorn.Server(config)
            thread = threading.Thread(target=host.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                yield Place(url, issuer)
            finally:
                host.should_exit = True
                thread.join()


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with running() as running_place:
        yield running_place


async def visit(url: str) -> str:
    """A browser whose user agrees; gives the URL of the callback."""
    async with httpx2.AsyncClient(timeout=30) as browser:
        while not url.startswith(CALLBACK):
            response = await browser.get(url)
            assert response.is_redirect, response.text
            url = urljoin(url, response.headers["location"])
    return url


def signed_in(**more: Any) -> OAuth:
    return OAuth("Agent", redirect=Redirect(CALLBACK, visit), **more)


async def said(client: Any, tool: str) -> str:
    result = await client.call_tool(tool, {})
    text: str = result.content[0].text
    return text


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_user_signs_in_and_steps_up(place: Place, revision: str) -> None:
    async with connect(place.url, auth=signed_in(), revision=revision) as client:
        assert await said(client, "whoami") == "alice"
        assert "files:write" in (await said(client, "write")).split()


async def test_a_token_is_renewed_and_the_refresh_token_replaced(place: Place) -> None:
    store = MemoryStore()
    async with connect(place.url, auth=signed_in(store=store)) as client:
        assert await said(client, "whoami") == "alice"
    key = grant_key(canonical_resource(place.url))
    first = decoded_record(await store.load(key), Grant)
    assert first is not None
    assert first.token is not None
    assert first.token.refresh_token is not None
    await store.save(key, encoded_record(replace(first, token=replace(first.token, renew_at=0.0))))

    async def nobody(url: str) -> str:
        raise AssertionError("the user was asked again")

    auth = OAuth("Agent", redirect=Redirect(CALLBACK, nobody), store=store)
    async with connect(place.url, auth=auth) as client:
        assert await said(client, "whoami") == "alice"
    second = decoded_record(await store.load(key), Grant)
    assert second is not None
    assert second.token is not None
    assert second.token.value != first.token.value
    assert second.token.refresh_token != first.token.refresh_token


async def test_two_halves_meet_in_another_object(place: Place) -> None:
    store = MemoryStore()
    pending = await signed_in(store=store).begin(place.url)
    returned = await visit(pending.url)
    await signed_in(store=store).pending(pending.dumps()).finish(returned)
    async with connect(place.url, auth=signed_in(store=store)) as client:
        assert await said(client, "whoami") == "alice"


async def test_a_machine_authorizes_itself(place: Place) -> None:
    auth = ClientCredentials("machine", "secret-of-the-machine", issuer=place.issuer)
    async with connect(place.url, auth=auth) as client:
        assert await said(client, "whoami") == "machine"


async def test_a_user_authorizes_on_another_device(place: Place) -> None:
    async def typed(code: DeviceCode) -> None:
        async with httpx2.AsyncClient(timeout=30) as browser:
            response = await browser.get(code.verification_uri_complete or "")
            for _ in range(10):
                if response.is_redirect:
                    url = urljoin(str(response.url), response.headers["location"])
                    response = await browser.get(url)
                    continue
                action = _ACTION.search(response.text)
                if action is None:
                    return
                form = {name: unescape(value) for name, value in _INPUT.findall(response.text)}
                url = urljoin(str(response.url), unescape(action[1]))
                response = await browser.post(url, data={**form, "confirm": "yes"})

    with anyio.fail_after(60):
        async with connect(place.url, auth=OAuth("Agent", interaction=Device(typed))) as client:
            assert await said(client, "whoami") == "alice"


async def test_a_token_is_bound_to_a_key() -> None:
    with running(DpopValidation(required=True)) as bound:
        async with connect(bound.url, auth=signed_in(dpop=True)) as client:
            assert await said(client, "whoami") == "alice"
