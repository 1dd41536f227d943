"""The settings of a protected server.

Source: basic/authorization; RFC 9728.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from ...auth.address_rules import checked_https_url
from ...auth.challenges import Challenge, format_challenge
from ...auth.identifiers import (
    OFFLINE_ACCESS,
    comparable_uri,
    protected_resource_url,
    union_of_scopes,
)
from ...runtime.request_context import checked_scopes
from ..serving import ProcessLimit
from .dpop_validation import DpopValidation
from .verifiers import TokenVerifier, TrustedIssuers, VerifyToken

_ISSUER_SETTINGS = ("audiences", "metadata", "metadata_url", "scopes_supported")
_OWN_MEMBERS = frozenset(
    {"resource", "authorization_servers", "scopes_supported", "bearer_methods_supported"}
)


@dataclass(frozen=True)
class Protected:
    """Protects an application: `server.asgi(auth=Protected(...))`.

    Every request needs an access token in its `Authorization` header. The application is a resource
    server: the authorization servers in `issuers` issue its tokens. Without `issuers` clients get
    their tokens by other means: there is no metadata document, and challenges do not name one.

    Attributes:
        resource: The public URL that clients connect to; may be empty without `issuers`.
        issuers: Identifiers of the authorization servers, as in their metadata and in `iss` of
            their tokens; compared character by character. `None` for tokens that no authorization
            server issues, such as `StaticTokens`.
        verifier: Verifies tokens: a `JwtVerifier`, an `Introspection`, `AnyOf` several,
            `StaticTokens`, or a coroutine function that takes a token and returns its `Principal`,
            or `None`.
        scopes: Scopes that every request requires.
        session_scopes: Further scopes that users need in the course of a session, such as scopes of
            tools. Not every request requires them, but the challenge for a token names them: some
            clients register with the scopes of that challenge, and can never request others.
        implies: Implied scopes, by the scope that implies them.
        audiences: Values of `aud` that name this server; by default `resource`.
        dpop: Settings for tokens that are bound to a key of the client (DPoP); `None` to accept
            bearer tokens only. A bound token is never accepted without a proof.
        scopes_supported: Scopes in the metadata document; by default `scopes` and
            `session_scopes`.
        metadata_url: URL of the metadata document in challenges; by default the well-known URL of
            `resource`, or the well-known URL below the mount point of the application.
        metadata: Additional members of the metadata document, such as `resource_name`.
        realm: The realm of challenges.

    Raises:
        TypeError: A string is given instead of a list.
        ValueError: `resource` or an issuer is not an https URL (or http to loopback) without
            fragment, the list of issuers is empty, a setting needs issuers, a scope is invalid or
            `offline_access`, or a challenge cannot contain the realm or the URL of the metadata
            document.
    """

    resource: str = ""
    _: KW_ONLY
    issuers: Sequence[str] | None = None
    verifier: TokenVerifier | VerifyToken
    scopes: Sequence[str] = ()
    session_scopes: Sequence[str] = ()
    implies: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    audiences: Sequence[str] | None = None
    dpop: DpopValidation | None = None
    scopes_supported: Sequence[str] | None = None
    metadata_url: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    realm: str = "mcp"

    def __post_init__(self) -> None:
        for name in ("issuers", "audiences"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: expected a list of strings, got {getattr(self, name)!r}")
        if self.issuers is None:
            self._check_without_issuers()
        else:
            self._check_issuers(self.issuers)
        for scopes in (
            self.scopes,
            self.session_scopes,
            self.scopes_supported or (),
            *self.implies.values(),
        ):
            if OFFLINE_ACCESS in checked_scopes(scopes):
                raise ValueError(
                    f"scopes: expected no {OFFLINE_ACCESS}, which only clients request"
                )
        if own := _OWN_MEMBERS & self.metadata.keys():
            raise ValueError(
                f"metadata: expected no members of other settings, got {', '.join(sorted(own))}"
            )
        parameters = {"realm": self.realm}
        if self.issuers is not None:
            url = self.metadata_url or protected_resource_url(self.resource)
            parameters["resource_metadata"] = url
        format_challenge(Challenge("Bearer", parameters))

    def _check_issuers(self, issuers: Sequence[str]) -> None:
        checked_https_url("resource", self.resource)
        if not issuers:
            raise ValueError("issuers: expected at least one authorization server")
        for issuer in issuers:
            checked_https_url("issuers", issuer)

    def _check_without_issuers(self) -> None:
        needs_issuers = isinstance(self.verifier, TokenVerifier)
        if needs_issuers:
            name = type(self.verifier).__name__
            raise ValueError(f"issuers: {name} needs the authorization servers that issue tokens")
        for name in _ISSUER_SETTINGS:
            if getattr(self, name):
                raise ValueError(f"{name}: needs issuers, an argument of Protected")
        if self.resource or self.dpop is not None:  # the URL is part of each proof
            checked_https_url("resource", self.resource)

    @property
    def first_scopes(self) -> tuple[str, ...]:
        """The scopes that a client requests first: `scopes` and `session_scopes`."""
        return union_of_scopes(self.scopes, self.session_scopes)

    @property
    def trusted(self) -> TrustedIssuers:
        """The issuers and audiences whose tokens are accepted."""
        audiences = (self.resource,) if self.audiences is None else self.audiences
        issuers = frozenset(self.issuers or ())
        return TrustedIssuers(issuers, frozenset(map(comparable_uri, audiences)))

    def process_limits(self) -> list[ProcessLimit]:
        """The limits of authorization when several processes serve together."""
        if self.dpop is None:
            return []
        text = "a DPoP proof is accepted once by each worker"
        return [ProcessLimit(f"{text}, for at most {2 * self.dpop.seconds:g} s")]

    def with_implied(self, granted: Collection[str]) -> frozenset[str]:
        """Granted scopes, with all scopes that they imply, directly or indirectly."""
        scopes = set(granted)
        pending = list(scopes & self.implies.keys())
        while pending:
            implied = set(self.implies[pending.pop()]) - scopes
            scopes |= implied
            pending += implied & self.implies.keys()
        return frozenset(scopes)


def protected_by(auth: Any) -> Protected:
    """The settings for a value of the option `auth`.

    Args:
        auth: The settings, or a verifier of tokens that no authorization server issues.

    Raises:
        TypeError: The value is neither.
    """
    if isinstance(auth, Protected):
        return auth
    if _is_coroutine_function(auth):
        return Protected(verifier=auth)
    is_class = isinstance(auth, type)
    name = f"the class {auth.__name__}" if is_class else f"a {type(auth).__name__}"
    raise TypeError(
        "auth: expected StaticTokens({token: subject}), Protected(url, issuers=[...], "
        "verifier=JwtVerifier()), or a coroutine function that takes a token and returns its "
        f"Principal or None, got {name}"
    )


def _is_coroutine_function(value: Any) -> bool:
    if not callable(value) or isinstance(value, type):
        return False
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(value.__call__)
