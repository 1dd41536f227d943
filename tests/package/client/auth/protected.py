"""A protected MCP server and its authorization server, over real sockets, and a user who agrees."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio

from kit.auth_answers import REDIRECT_URI, query_of
from kit.http_script import Script
from kit.http_server import Asked, HttpServer, Reply
from mcpgen_runtime import REVISIONS, OAuth, Redirect, Store, connect
from mcpgen_runtime.auth.flows import challenge_of
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import AccessToken, Grant, encode_record, grant_key

NEWEST = REVISIONS.newest().name
PRM = "/.well-known/oauth-protected-resource/mcp"


class Issuer:
    """An authorization server with rotation of refresh tokens."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.renewable = True
        self.asked: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.credentials: list[str | None] = []
        self.registered: dict[str, dict[str, Any]] = {}
        self.valid: dict[str, frozenset[str]] = {}
        self.refresh_tokens: dict[str, frozenset[str]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.expires_in: float | None = None
        self.refused: tuple[int, dict[str, Any]] | None = None
        self.gate = anyio.Event()
        self.gate.set()
        self.url = ""
        self.visits: list[dict[str, str]] = []
        self.token_type = "Bearer"
        self.machine = False
        self._count = 0

    def metadata(self) -> dict[str, Any]:
        """Its metadata."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [
                "client_secret_basic" if self.machine else "none"
            ],
            "authorization_response_iss_parameter_supported": True,
        }

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        path = urlsplit(asked.target).path
        self.asked.append(path)
        if path == "/.well-known/oauth-authorization-server":
            await reply.json(self.metadata())
        elif path == "/register":
            identifier = f"{self.name}client-{len(self.registered)}"
            self.registered[identifier] = json.loads(asked.body)
            await reply.json({"client_id": identifier}, 201)
        elif path == "/token":
            self.credentials.append(asked.fields.get("authorization"))
            await self.issue_token(dict(parse_qsl(asked.body.decode())), reply)
        else:
            await reply.whole(404)

    async def issue_token(self, form: dict[str, str], reply: Reply) -> None:
        """Answer a token request."""
        self.forms.append(form)
        await self.gate.wait()
        if self.refused is not None:
            status, body = self.refused
            await reply.json(body, status)
            return
        scopes = self.granted_scopes(form)
        if scopes is None:
            await reply.json({"error": "invalid_grant"}, 400)
            return
        self._count += 1
        access, refresh = (f"{self.name}{kind}-{self._count}" for kind in ("access", "refresh"))
        self.valid[access] = scopes
        answer: dict[str, Any] = {"access_token": access, "token_type": self.token_type}
        if self.renewable:
            self.refresh_tokens[refresh] = scopes
            answer["refresh_token"] = refresh
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        await reply.json(answer)

    def granted_scopes(self, form: dict[str, str]) -> frozenset[str] | None:
        """The scopes of a token request; `None` if its grant is invalid."""
        if form["grant_type"] == "refresh_token":
            return self.refresh_tokens.pop(form["refresh_token"], None)
        if form["grant_type"] == "client_credentials" or "assertion" in form:
            return frozenset(form.get("scope", "").split())
        request = self.codes.pop(form.get("code", ""), None)
        if request is None or challenge_of(form["code_verifier"]) != request["code_challenge"]:
            return None
        if form["redirect_uri"] != request["redirect_uri"]:
            return None
        return frozenset(request.get("scope", "").split())

    async def visit(self, url: str) -> str:
        """A browser whose user agrees at once."""
        request = query_of(url)
        assert url.startswith(f"{self.url}/authorize?")
        assert request["redirect_uri"] in self.registered[request["client_id"]]["redirect_uris"]
        self.visits.append(request)
        code = f"{self.name}code-{len(self.visits)}"
        self.codes[code] = request
        return f"{request['redirect_uri']}?code={code}&state={request['state']}&iss={self.url}"


class Protected(Script):
    """An MCP server that asks for a token."""

    def __init__(self, issuer: Issuer, revision: str = NEWEST, session: str | None = None) -> None:
        super().__init__(revision, session)
        self.issuer = issuer
        self.needed: dict[str, frozenset[str]] = {}
        self.authorizations: list[str | None] = []
        self.url = ""
        self.open: Callable[[Asked], bool] = lambda asked: False
        self.own_issuer = is_own_issuer(revision)
        self.challenge = "Bearer"
        self.scopes: list[str] | None = None

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        path = urlsplit(asked.target).path
        if self.own_issuer and path != "/mcp":
            await self.issuer(asked, reply)
            return
        if path == PRM:
            document = {"resource": self.url, "authorization_servers": [self.issuer.url]}
            named = {} if self.scopes is None else {"scopes_supported": self.scopes}
            await reply.json(document | named)
            return
        header = asked.fields.get("authorization")
        self.authorizations.append(header)
        scopes = self.issuer.valid.get((header or "").removeprefix("Bearer "))
        needed = self.needed.get(asked.what, frozenset())
        if self.open(asked):
            await super().__call__(asked, reply)
        elif scopes is None:
            await reply.whole(401, WWW_Authenticate=self.challenge)
        elif needed <= scopes:
            await super().__call__(asked, reply)
        else:
            wanted = " ".join(sorted(needed))
            header = f'Bearer error="insufficient_scope", scope="{wanted}"'
            await reply.whole(403, WWW_Authenticate=header)


def is_own_issuer(revision: str) -> bool:
    """Whether clients of a revision look for the authorization server at the server's origin."""
    return REVISIONS[revision].facts.authorization.discovery == "origin"


@asynccontextmanager
async def run_issuer(issuer: Issuer | None = None) -> AsyncIterator[Issuer]:
    """An authorization server that runs."""
    issuer = issuer or Issuer()
    async with HttpServer(issuer) as server:
        issuer.url = server.url.removesuffix("/mcp")
        yield issuer


@asynccontextmanager
async def run_protected_server(
    revision: str = NEWEST, session: str | None = None, issuer: Issuer | None = None
) -> AsyncIterator[tuple[Protected, HttpServer]]:
    """A protected server that runs, and its authorization server (`Protected.issuer`)."""
    async with run_issuer(issuer) as running:
        script = Protected(running, revision, session)
        async with serve_script(script) as server:
            yield script, server


@asynccontextmanager
async def serve_script(script: Protected) -> AsyncIterator[HttpServer]:
    """Run a protected server whose authorization server runs."""
    async with HttpServer(script) as server:
        script.url = server.url
        if script.own_issuer:
            script.issuer.url = server.url.removesuffix("/mcp")
        with anyio.fail_after(30):
            yield server


def agreeing_user(issuer: Issuer, **more: Any) -> OAuth:
    """A way to a token by the user of an authorization server."""
    return OAuth("Agent", redirect=Redirect(REDIRECT_URI, issuer.visit), **more)


@asynccontextmanager
async def client_of(script: Protected, auth: Any, **more: Any) -> AsyncIterator[Any]:
    """An open client of a protected server."""
    async with connect(script.url, revision=script.revision, auth=auth, **more) as client:
        yield client


async def store_grant(script: Protected, store: Store, **token: Any) -> None:
    """Put a grant of an earlier run into a store."""
    issuer = script.issuer
    issuer.registered["client-x"] = {"redirect_uris": [REDIRECT_URI]}
    grant = Grant(
        issuer.url,
        AccessToken(**{"value": "old", "refresh_token": "refresh-x", **token}),
        f"{issuer.url}/token",
        ("none",),
        "client-x",
        resource=script.url,
    )
    await store.save(grant_key(canonical_resource(script.url)), encode_record(grant))
