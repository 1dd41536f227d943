"""Records that a client stores: registrations by issuer, and grants by MCP server.

Records are JSON and contain secrets. A record names its issuer, so that credentials of one
authorization server are never sent to another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from .client_authentication import AuthMethod
from .tokens import AccessToken

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class Registration:
    """A client registration at an authorization server.

    Attributes:
        issuer: The authorization server.
        client_id: The issued client id.
        client_secret: The issued client secret; `None` for a public client.
        method: The registered authentication method of the token endpoint.
        redirect_uris: The registered redirect URIs.
        expires_at: When the secret expires, in seconds since 1970; 0 for never.
        scopes: The scopes that the client may request; `None` if neither side named any.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    redirect_uris: tuple[str, ...] = ()
    expires_at: float = 0
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Grant:
    """The authorization of a client for one MCP server.

    Attributes:
        issuer: The authorization server that granted it.
        token: The access token and the refresh token; `None` without a usable token.
        token_endpoint: The token endpoint of the issuer.
        methods: The authentication methods of the token endpoint; `None` if unknown.
        client_id: The client that the authorization was granted to; `None` for a configured one.
        client_secret: The client secret.
        method: The authentication method of the client; `None` to choose one.
        resource: The `resource` parameter of requests; `None` to omit it.
        requested: The requested scopes.
        proof_key: The private key that the token is bound to, as JSON Web Key; `None` for none.
        algorithm: The algorithm of that key.
    """

    issuer: str
    token: AccessToken | None
    token_endpoint: str
    methods: tuple[str, ...] | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    resource: str | None = None
    requested: tuple[str, ...] = ()
    proof_key: str | None = field(default=None, repr=False)
    algorithm: str = "ES256"


def registration_key(issuer: str) -> str:
    """The store key of a registration."""
    return f"registration {issuer}"


def grant_key(server: str) -> str:
    """The store key of a grant."""
    return f"grant {server}"


def encoded_record(record: object) -> bytes:
    """A record as JSON."""
    return msgspec.json.encode(record)


def decoded_record(data: bytes | None, kind: type[_Record]) -> _Record | None:
    """A record from JSON; `None` if there is no record, or it is malformed."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
