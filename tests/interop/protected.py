"""A protected server of ours in a thread, authorization servers, and a user who signs in."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import httpx2
import uvicorn

from interop.processes import HERE, run_server
from mcpgen_runtime import (
    Context,
    JwtVerifier,
    MemoryStore,
    OAuth,
    Protected,
    Redirect,
    Server,
    connect,
)
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import (
    AccessToken,
    Grant,
    decode_record,
    encode_record,
    grant_key,
)

CALLBACK = "http://127.0.0.1:33418/callback"
ALICE = {"username": "alice", "password": "wonderland"}
"""Credentials that a user types at nanoidp."""

_PAGES = 20


class Place:
    """A port of loopback that is taken before a server is there to listen: others need its URL."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.url = f"{self.origin}/mcp"


@contextmanager
def new_place() -> Iterator[Place]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Place(listener)


@contextmanager
def in_thread(app: Any, place: Place) -> Iterator[None]:
    """Serve an ASGI application in a thread while the block runs."""
    config = uvicorn.Config(
        app, log_level="error", timeout_graceful_shutdown=2, ws="none", lifespan="auto"
    )
    host = uvicorn.Server(config)
    thread = threading.Thread(target=host.run, kwargs={"sockets": [place.listener]})
    thread.start()
    try:
        yield
    finally:
        host.should_exit = True
        thread.join()


def run_issuer(script: str, resource: str) -> AbstractContextManager[str]:
    """An authorization server in a process; yields its issuer identifier."""
    program = "node" if script.endswith(".mjs") else sys.executable
    return run_server(program, str(HERE / script), resource, says=r"http://127\.0\.0\.1:\d+")


nanoidp = partial(run_issuer, "nanoidp_server.py")
oidc_provider = partial(run_issuer, "npm/authorization_server.mjs")


@contextmanager
def run_protected_server(place: Place, issuer: str, **settings: Any) -> Iterator[str]:
    """Our server, which trusts an issuer, and whose tools say who calls them; yields its URL."""
    plain: dict[str, Any] = {"verifier": JwtVerifier(), "scopes": ["mcp:read"]}
    auth = Protected(place.url, issuers=[issuer], **{**plain, **settings})
    server = Server("protected")

    @server.tool()
    async def whoami(ctx: Context) -> str:
        return ctx.principal.subject

    @server.tool()
    async def client(ctx: Context) -> str:
        return ctx.principal.client_id or ""

    @server.tool(scopes=["files:write"])
    async def write(ctx: Context) -> str:
        return " ".join(sorted(ctx.principal.scopes))

    with in_thread(server.asgi(auth=auth), place):
        yield place.url


class _Form(HTMLParser):
    """The first form of a page: its action, and its inputs with the values that they have."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action: str | None = None
        self.inputs: dict[str, str] = {}
        self._is_first = True
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "form" and self._is_first and self.action is None:
            self.action = attributes.get("action") or ""
        name = attributes.get("name")
        if tag in ("input", "button") and name and self._is_first and self.action is not None:
            self.inputs[name] = attributes.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self.action is not None:
            self._is_first = False


async def browse(url: str, typed: Mapping[str, str], until: str = CALLBACK) -> str:
    """A browser whose user fills in each form and sends it."""
    # A user takes longer than a client, which may open the browser before its own page listens.
    patient = httpx2.AsyncHTTPTransport(retries=6)
    async with httpx2.AsyncClient(timeout=30, transport=patient) as browser:
        response = await browser.get(url)
        for _ in range(_PAGES):
            if response.is_redirect:
                url = urljoin(str(response.url), response.headers["location"])
                if url.startswith(until):
                    return url
                response = await browser.get(url)
                continue
            form = _Form(response.text)
            if form.action is None:
                return response.text
            filled = {name: typed.get(name, value) for name, value in form.inputs.items()}
            url = urljoin(str(response.url), form.action)
            response = await browser.post(url, data=filled)
    raise AssertionError(f"the browser comes to no end: {response.text[:1000]}")


def user(**typed: str) -> Redirect:
    """A way to a user who signs in by forms."""

    async def visit(url: str) -> str:
        return await browse(url, typed)

    return Redirect(CALLBACK, visit)


async def refuse(url: str) -> str:
    raise AssertionError("the user was asked")


def signed_in(redirect: Redirect, **more: Any) -> OAuth:
    return OAuth("Agent", redirect=redirect, **more)


async def stored_token(store: MemoryStore, url: str) -> AccessToken:
    """The token of a server that a store holds."""
    grant = decode_record(await store.load(grant_key(canonical_resource(url))), Grant)
    assert grant is not None
    assert grant.token is not None
    return grant.token


async def end_token(store: MemoryStore, url: str) -> AccessToken:
    """Have the token that a store holds for a server be one that has ended."""
    key = grant_key(canonical_resource(url))
    grant = decode_record(await store.load(key), Grant)
    assert grant is not None
    ended = replace(await stored_token(store, url), renew_at=0.0)
    await store.save(key, encode_record(replace(grant, token=ended)))
    return ended


async def check_renewal(url: str, **settings: Any) -> MemoryStore:
    """A client whose token has ended gets another one without its user; gives its store."""
    store = MemoryStore()
    async with connect(url, auth=signed_in(store=store, **settings)) as client:
        await client.list_tools()
    first = await end_token(store, url)
    auth = signed_in(Redirect(CALLBACK, refuse), store=store)
    async with connect(url, auth=auth) as client:
        assert await text_of(client, "whoami")
    second = await stored_token(store, url)
    assert second.value != first.value
    assert second.refresh_token != first.refresh_token
    return store


async def text_of(client: Any, tool: str, **arguments: Any) -> str:
    """The text of the first block of the result of a tool, for clients of any library."""
    return str((await client.call_tool(tool, arguments)).content[0].text)
