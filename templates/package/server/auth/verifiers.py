"""What verifies an access token: the interface, and a choice of several verifiers.

A verifier of the user's own, for API keys for example, is a coroutine function that takes a token:

    async def my_verify(token: str) -> Principal | None:
        row = await keys.find(hashlib.sha256(token.encode()).digest())
        return None if row is None else Principal(row.owner, scopes=row.scopes)
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from ..._wire import is_many
from ...errors import McpError
from ...runtime.principal import Principal

VerifyToken: TypeAlias = Callable[[str], Awaitable[Principal | None]]
"""Returns the principal of a token; `None` for a token that the verifier does not know."""

_CACHED = 10_000  # tokens whose verification is kept
_DEFAULT_PORTS = {"http": 80, "https": 443}


class InvalidTokenError(McpError):
    """A verifier knows a token and refuses it. The text is logged, and not sent to the client."""


@dataclass(frozen=True)
class TrustedIssuers:
    """Whose tokens a resource server accepts.

    Attributes:
        issuers: Issuer identifiers, compared character by character.
        audiences: Values of `aud` that name this server; scheme and host in lower case.
    """

    issuers: frozenset[str]
    audiences: frozenset[str]

    def is_intended(self, audience: object) -> bool:
        """Whether a value of `aud`, a string or an array of strings, names this server."""
        values = audience if is_many(audience) else (audience,)
        return any(isinstance(v, str) and canonical(v) in self.audiences for v in values)


class TokenVerifier(ABC):
    """A verifier that depends on the issuers and the audience of the server."""

    @abstractmethod
    def bind(self, trusted: TrustedIssuers) -> VerifyToken:
        """The verification for one server, which runs in one event loop.

        The result raises `InvalidTokenError` for a token that it refuses, and any other exception
        if the token can't be verified now: the client then gets 503.
        """


class AnyOf(TokenVerifier):
    """Several verifiers: the first that knows a token decides.

    Args:
        verifiers: Verifiers and coroutine functions, in the order of trying.

    Raises:
        ValueError: There is none.
    """

    def __init__(self, *verifiers: TokenVerifier | VerifyToken) -> None:
        if not verifiers:
            raise ValueError("AnyOf: expected at least one verifier")
        self._verifiers = verifiers

    def bind(self, trusted: TrustedIssuers) -> VerifyToken:
        """See `TokenVerifier.bind`."""
        verifiers = [bound(each, trusted) for each in self._verifiers]

        async def verify(token: str) -> Principal | None:
            for each in verifiers:
                principal = await each(token)
                if principal is not None:
                    return principal
            return None

        return verify


def bound(verifier: TokenVerifier | VerifyToken, trusted: TrustedIssuers) -> VerifyToken:
    """The verification for one server."""
    return verifier.bind(trusted) if isinstance(verifier, TokenVerifier) else verifier


class PrincipalCache:
    """Principals of tokens that were verified, the one longest unused first.

    The keys are digests, so the cache holds no token. A principal is kept until its token expires,
    but `seconds` at most.

    Args:
        seconds: How long a principal is kept.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rows: OrderedDict[bytes, tuple[Principal | None, float]] = OrderedDict()

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self._rows)

    def get(self, token: str) -> tuple[Principal | None] | None:
        """The principal that is kept for a token, in a tuple; `None` if there is no entry."""
        key = _digest(token)
        row = self._rows.get(key)
        if row is None:
            return None
        principal, until = row
        if until <= time.time():
            del self._rows[key]
            return None
        self._rows.move_to_end(key)
        return (principal,)

    def add(self, token: str, principal: Principal | None, seconds: float | None = None) -> None:
        """Keep the principal of a token; `None` for a token that was refused."""
        until = time.time() + (self._seconds if seconds is None else seconds)
        if principal is not None and principal.expires is not None:
            until = min(until, principal.expires)
        self._rows[_digest(token)] = principal, until
        if len(self._rows) > _CACHED:
            self._rows.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()


def canonical(uri: str) -> str:
    """A URI to compare: scheme and host in lower case, no default port, no slash after the host.

    Text that is no URI with a host is returned as it is.

    Source: basic/authorization#canonical-server-uri; RFC 3986, section 6.2.
    """
    try:
        split = urlsplit(uri)
        port = split.port
    except ValueError:
        return uri
    if not split.netloc:
        return uri
    host = split.netloc.lower()
    if port is not None and port == _DEFAULT_PORTS.get(split.scheme):
        host = host.removesuffix(f":{port}")
    path = "" if split.path == "/" and not split.query else split.path
    return urlunsplit((split.scheme, host, path, split.query, split.fragment))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
