"""What a client keeps between runs: registrations by issuer, and grants by server.

Records are JSON and hold secrets. A grant names the issuer that gave it, so nothing of one
authorization server is ever sent to another.
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
    """A client as an authorization server registered it.

    Attributes:
        issuer: The authorization server.
        client_id: The id that it gave.
        client_secret: The secret that it gave.
        method: The authentication at the token endpoint that it gave.
        redirect_uris: The redirect URIs that are registered.
        expires_at: When the secret ends, in seconds since 1970; 0 for never.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    redirect_uris: tuple[str, ...] = ()
    expires_at: float = 0


@dataclass(frozen=True)
class Grant:
    """What was granted for one server.

    Attributes:
        issuer: The authorization server that granted it.
        token: The access token, and the refresh token; `None` if neither is left.
        token_endpoint: Where it can be renewed.
        methods: How clients may authenticate there; `None` if the metadata does not say.
        client_id: The client that it was granted to.
        client_secret: Its secret.
        method: How it authenticates; `None` to choose.
        resource: The `resource` of the requests; `None` for none.
        requested: The scopes that were asked for.
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
    """The key of the record of a registration."""
    return f"registration {issuer}"


def grant_key(server: str) -> str:
    """The key of the record of a grant."""
    return f"grant {server}"


def encoded_record(record: object) -> bytes:
    """A record as JSON."""
    return msgspec.json.encode(record)


def decoded_record(data: bytes | None, kind: type[_Record]) -> _Record | None:
    """A record from JSON; `None` if there is none, or none that can be read."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
