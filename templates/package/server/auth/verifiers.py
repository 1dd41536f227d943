"""Verifiers of access tokens: the interface, static tokens, combination of several, cache, claims.

A custom verifier, for example of API keys, is a coroutine function that takes a token:

    async def my_verify(token: str) -> Principal | None:
        row = await keys.find(hashlib.sha256(token.encode()).digest())
        return None if row is None else Principal(row.owner, scopes=row.scopes)
"""

from __future__ import annotations

import hashlib
import hmac
import string
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..._wire import is_many, is_object
from ...auth.identifiers import comparable_uri
from ...auth.json_documents import finite_number
from ...errors import McpError
from ...runtime.request_context import Principal

VerifyToken: TypeAlias = Callable[[str], Awaitable[Principal | None]]
"""Returns the principal of a token; `None` for a token of a kind unknown to the verifier."""

STORED_TOKENS = 10_000
"""Most tokens in a `PrincipalCache`."""
_TOKEN_CHARACTERS = f"{string.ascii_letters}{string.digits}-._~+/"


class InvalidTokenError(McpError):
    """A verifier rejects a token. The text is logged, and not sent to the client."""


@dataclass(frozen=True)
class TrustedIssuers:
    """The issuers and audiences whose tokens a resource server accepts.

    Attributes:
        issuers: Issuer identifiers, compared character by character.
        audiences: Values of `aud` that name this server, as `comparable_uri` returns them.
    """

    issuers: frozenset[str]
    audiences: frozenset[str]

    def is_intended(self, audience: object) -> bool:
        """Whether a value of `aud`, a string or an array of strings, names this server."""
        values = audience if is_many(audience) else (audience,)
        return any(isinstance(v, str) and comparable_uri(v) in self.audiences for v in values)


class TokenVerifier(ABC):
    """A verifier that depends on the issuers and audiences of the server."""

    @abstractmethod
    def bind(self, trusted: TrustedIssuers) -> VerifyToken:
        """The verification function for one server on one event loop.

        The function raises `InvalidTokenError` to reject a token, and any other exception if the
        verification itself fails; the client then gets status 503.
        """


class StaticTokens:
    """Accepts a fixed set of tokens: `server.run(http=..., auth=StaticTokens({"token": "alice"}))`.

    There is no authorization server, so no metadata document is published. Tokens are compared in
    constant time, never expire, and are stored as digests only.

    Args:
        tokens: The principal of each token, or its subject for a principal without scopes.

    Raises:
        TypeError: The tokens are not a mapping, or a value is neither a principal nor a subject.
        ValueError: There is no token, a token has a character that no header can carry, or a
            subject is empty. The text does not repeat tokens.
    """

    def __init__(self, tokens: Mapping[str, Principal | str]) -> None:
        if not is_object(tokens):
            raise TypeError("StaticTokens: expected a mapping of tokens to subjects or principals")
        if not tokens:
            raise ValueError("StaticTokens: expected at least one token")
        if not all(is_bearer_token(each) for each in tokens):
            raise ValueError(
                "StaticTokens: expected a token of the characters A-Z, a-z, 0-9 and -._~+/, "
                "perhaps with = at its end"
            )
        self._principals = [(_digest(each), _principal(tokens[each])) for each in tokens]

    def __repr__(self) -> str:
        return f"<StaticTokens of {len(self._principals)}>"

    async def __call__(self, token: str) -> Principal | None:
        """The principal of a token; `None` if the token is not in the set."""
        digest = _digest(token)
        principal: Principal | None = None
        for accepted, owner in self._principals:  # all, so that the duration reveals no match
            if hmac.compare_digest(accepted, digest):
                principal = owner
        return principal


class AnyOf(TokenVerifier):
    """Several verifiers. The first verifier that knows the kind of a token decides.

    Args:
        verifiers: Verifiers and coroutine functions, in the order to try.

    Raises:
        ValueError: No verifier is given.
    """

    def __init__(self, *verifiers: TokenVerifier | VerifyToken) -> None:
        if not verifiers:
            raise ValueError("AnyOf: expected at least one verifier")
        self._verifiers = verifiers

    def bind(self, trusted: TrustedIssuers) -> VerifyToken:
        """See `TokenVerifier.bind`."""
        verifiers = [bind_verifier(each, trusted) for each in self._verifiers]

        async def verify(token: str) -> Principal | None:
            for each in verifiers:
                principal = await each(token)
                if principal is not None:
                    return principal
            return None

        return verify


def bind_verifier(verifier: TokenVerifier | VerifyToken, trusted: TrustedIssuers) -> VerifyToken:
    """The verification function for one server; see `TokenVerifier.bind`."""
    return verifier.bind(trusted) if isinstance(verifier, TokenVerifier) else verifier


class PrincipalCache:
    """A cache of verified tokens, which evicts the least recently used token.

    The keys are digests, so the cache contains no tokens. A principal is stored until its token
    expires, for at most `seconds`.

    Args:
        seconds: Longest time in the cache, in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._entries: OrderedDict[bytes, tuple[Principal | None, float]] = OrderedDict()

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self._entries)

    def get(self, token: str) -> tuple[Principal | None] | None:
        """The cached result for a token, in a tuple; `None` if the token is not in the cache."""
        key = _digest(token)
        entry = self._entries.get(key)
        if entry is None:
            return None
        principal, until = entry
        if until <= time.time():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return (principal,)

    def add(self, token: str, principal: Principal | None, seconds: float | None = None) -> None:
        """Store the principal of a token; `None` for an unknown token."""
        until = time.time() + (self._seconds if seconds is None else seconds)
        if principal is not None and principal.expires is not None:
            until = min(until, principal.expires)
        self._entries[_digest(token)] = principal, until
        if len(self._entries) > STORED_TOKENS:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Remove all tokens."""
        self._entries.clear()


def principal_of(claims: Mapping[str, Any], issuer: str | None, expires: float | None) -> Principal:
    """The principal that the claims of a token or an introspection response describe.

    Scopes are in `scope` or `scp`, a string or an array; the client is in `client_id` or `azp`.

    Raises:
        InvalidTokenError: The claims name neither a subject nor a client, or a malformed scope.
    """
    subject = claims.get("sub")
    client = claims.get("client_id", claims.get("azp"))
    client = client if isinstance(client, str) else None
    if not isinstance(subject, str) or not subject:
        subject = client
    if not subject:
        raise InvalidTokenError("sub: expected a subject")
    scope = claims.get("scope", claims.get("scp", ""))
    words: object = scope.split() if isinstance(scope, str) else scope
    scopes = [each for each in words if isinstance(each, str)] if is_many(words) else []
    try:
        return Principal(
            subject,
            scopes=scopes,
            issuer=issuer,
            client_id=client,
            claims=dict(claims),
            expires=expires,
        )
    except ValueError:
        raise InvalidTokenError("scope: expected scopes") from None


def time_of(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is a time, in seconds since the epoch; `None` if absent.

    Raises:
        InvalidTokenError: The claim is not a number, or no float represents it.
    """
    value = claims.get(name)
    if value is None:
        return None
    seconds = finite_number(value)
    if seconds is None:
        raise InvalidTokenError(f"{name}: expected a time in seconds")
    return seconds


def is_bearer_token(token: str) -> bool:
    """Whether a text has the form of a bearer token (`b64token`, RFC 6750, section 2.1)."""
    stem = token.rstrip("=")
    return bool(stem) and not stem.strip(_TOKEN_CHARACTERS)


def _principal(owner: object) -> Principal:
    principal = Principal(owner) if isinstance(owner, str) else owner
    if not isinstance(principal, Principal):
        raise TypeError(
            f"StaticTokens: expected a Principal or its subject, got a {type(owner).__name__}"
        )
    if not principal.subject:
        raise ValueError("StaticTokens: expected a subject that is not empty")
    return principal


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
