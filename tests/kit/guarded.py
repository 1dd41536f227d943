"""A protected server for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kit.asgi_client import Http, asgi, fields_of
from kit.asgi_stream import Reply
from kit.issuer import IDP, KEY, RESOURCE, bearer, jwk_set
from kit.wire import SESSIONS, request
from mcpgen_runtime import Context, JwtVerifier, Protected, Server
from mcpgen_runtime.auth.challenges import Challenge, parse_challenges

PRM = "/.well-known/oauth-protected-resource"
"""Where the metadata of a server at the root of its host is."""


def protected_settings(**settings: Any) -> Protected:
    """Settings of a protected server whose issuer has `KEY`."""
    how: dict[str, Any] = {
        "issuers": [IDP],
        "verifier": JwtVerifier(keys=jwk_set(KEY)),
        "scopes": ["mcp:read"],
        **settings,
    }
    return Protected(how.pop("resource", RESOURCE), **how)


class Guarded:
    """A server, and what its tools did."""

    def __init__(self, **settings: Any) -> None:
        self.server = server = Server("guarded", **settings)
        self.calls: list[str] = []

        @server.tool()
        async def whoami(ctx: Context) -> str:
            self.calls.append(f"{ctx.principal.subject} whoami")
            return ctx.principal.subject

        @server.tool(scopes=["files:write"])
        async def write(path: str, ctx: Context) -> str:
            self.calls.append(f"{ctx.principal.subject} write")
            return f"{ctx.principal.subject} wrote {path}"

        @server.tool(scopes=["files:write", "files:share"])
        async def share(path: str) -> str:
            self.calls.append("share")
            return path


async def use_token(http: Http, revision: str, token: str) -> None:
    """Use a token from now on, in a session where the revision has those."""
    http.fields["authorization"] = bearer(token)
    if revision in SESSIONS:
        await http.initialize(revision)


@asynccontextmanager
async def signed_in(
    server: Server, revision: str, token: str, auth: Any = None
) -> AsyncIterator[Http]:
    """A client of a protected server that uses a token, in a session where there are those."""
    async with asgi(server, auth=auth or protected_settings()) as http:
        await use_token(http, revision, token)
        yield http


async def call_with(http: Http, revision: str, authorization: str | None) -> Reply:
    """The response to the first request of a client, with this field."""
    message = request(revision, "tools/call", WHOAMI)
    return await http.post(message, **fields_of(revision, message), authorization=authorization)


def challenge_in(reply: Any, scheme: str = "Bearer") -> Challenge:
    """The challenge of a response for a scheme."""
    challenges = [
        c for c in parse_challenges(reply.fields["www-authenticate"]) if c.is_scheme(scheme)
    ]
    assert len(challenges) == 1, reply.fields["www-authenticate"]
    return challenges[0]


WHOAMI = {"name": "whoami", "arguments": {}}
WRITE = {"name": "write", "arguments": {"path": "a.txt"}}
SHARE = {"name": "share", "arguments": {"path": "a.txt"}}


def text_in(reply: Any) -> str:
    """The text of the tool's result in a response."""
    text: str = reply.result["content"][0]["text"]
    return text
