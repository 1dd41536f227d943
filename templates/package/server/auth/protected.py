"""The settings of a protected server.

Source: basic/authorization; RFC 9728.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from ...auth.address_rules import checked_https_url
from ...auth.challenges import Challenge, format_challenge
from ...auth.identifiers import comparable_uri, protected_resource_url
from ...auth.scopes import OFFLINE_ACCESS, checked_scopes, union
from ..serving import ProcessLimit
from .dpop_validation import DpopValidation
from .verifiers import TokenVerifier, TrustedIssuers, VerifyToken

_OWN_MEMBERS = frozenset(
    {"resource", "authorization_servers", "scopes_supported", "bearer_methods_supported"}
)


@dataclass(frozen=True)
class Protected:
    """Protects an application: `server.asgi(auth=Protected(...))`.

    Every request needs an access token in its `Authorization` header. The application is a resource
    server: the authorization servers in `issuers` issue its tokens.

    Attributes:
        resource: The public URL that clients connect to.
        issuers: Identifiers of the authorization servers, as in their metadata and in `iss` of
            their tokens; compared character by character.
        verifier: Verifies tokens: a `JwtVerifier`, an `Introspection`, `AnyOf` several, or a
            coroutine function that takes a token and returns its `Principal`, or `None`.
        scopes: Scopes that every request requires.
        session_scopes: Further scopes that users need in the course of a session, such as those of
            tools. No request requires them for that; the challenge for a token names them. Some
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
            fragment, no issuer is given, a scope is invalid or `offline_access`, or a challenge
            cannot contain the realm or the URL of the metadata document.
    """

    resource: str
    _: KW_ONLY
    issuers: Sequence[str]
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
        checked_https_url("resource", self.resource)
        for name in ("issuers", "audiences"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: expected a list of strings, got {getattr(self, name)!r}")
        if not self.issuers:
            raise ValueError("issuers: expected at least one authorization server")
        for issuer in self.issuers:
            checked_https_url("issuers", issuer)
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
        url = self.metadata_url
        if url is None:
            url = protected_resource_url(self.resource)
        format_challenge(Challenge("Bearer", {"realm": self.realm, "resource_metadata": url}))

    @property
    def first_scopes(self) -> tuple[str, ...]:
        """The scopes to request at first: those of every request, and those of a whole session."""
        return union(self.scopes, self.session_scopes)

    @property
    def trusted(self) -> TrustedIssuers:
        """The issuers and audiences whose tokens are accepted."""
        audiences = (self.resource,) if self.audiences is None else self.audiences
        return TrustedIssuers(frozenset(self.issuers), frozenset(map(comparable_uri, audiences)))

    def process_limits(self) -> list[ProcessLimit]:
        """What authorization lacks where several processes serve together."""
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
