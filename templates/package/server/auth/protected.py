"""The settings of a protected server, and its metadata document.

Source: basic/authorization; RFC 9728.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...auth.well_known import PROTECTED_RESOURCE, protected_resource_url
from ...runtime.principal import checked_scopes
from .dpop_validation import DpopValidation
from .issuer_fetch import check_url
from .verifiers import TokenVerifier, TrustedIssuers, VerifyToken, canonical

OFFLINE_ACCESS = "offline_access"
"""A scope that is between client and authorization server; resource servers do not name it."""

_OWN_MEMBERS = frozenset(
    {"resource", "authorization_servers", "scopes_supported", "bearer_methods_supported"}
)


@dataclass(frozen=True)
class Protected:
    """How an application is protected: `server.asgi(auth=Protected(...))`.

    Every request needs an access token in its `Authorization` header. The application is a resource
    server: tokens are issued by the authorization servers in `issuers`.

    Attributes:
        resource: The URL that clients connect to, as seen from outside.
        issuers: Identifiers of the authorization servers, as they stand in their metadata and in
            `iss` of their tokens; compared character by character.
        verifier: Verifies tokens: a `JwtVerifier`, an `Introspection`, `AnyOf` several, or a
            coroutine function that takes a token and returns its `Principal`, or `None`.
        scopes: Scopes that every request needs.
        implies: Scopes by the scope that includes them.
        audiences: Values of `aud` that name this server; by default `resource`.
        dpop: Accepts tokens that are bound to a key of the client (DPoP); `None` for bearer tokens
            only. A token that is bound to a key is never accepted without a proof.
        scopes_supported: Scopes in the metadata document; by default `scopes`.
        metadata_url: URL of the metadata document in challenges; by default the well-known URL of
            `resource`, or the one below the mount point of the application.
        metadata: Further members of the metadata document, such as `resource_name`.
        realm: The realm of challenges.

    Raises:
        TypeError: One string instead of a list.
        ValueError: `resource` or an issuer is not an https URL (http for loopback) without
            fragment, there is no issuer, or a scope is invalid or `offline_access`.
    """

    resource: str
    _: KW_ONLY
    issuers: Sequence[str]
    verifier: TokenVerifier | VerifyToken
    scopes: Sequence[str] = ()
    implies: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    audiences: Sequence[str] | None = None
    dpop: DpopValidation | None = None
    scopes_supported: Sequence[str] | None = None
    metadata_url: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    realm: str = "mcp"

    def __post_init__(self) -> None:
        check_url("resource", self.resource)
        for name in ("issuers", "audiences"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: expected a list of texts, got {getattr(self, name)!r}")
        if not self.issuers:
            raise ValueError("issuers: expected at least one authorization server")
        for issuer in self.issuers:
            check_url("issuers", issuer)
        for scopes in (self.scopes, self.scopes_supported or (), *self.implies.values()):
            if OFFLINE_ACCESS in checked_scopes(scopes):
                raise ValueError(
                    f"scopes: {OFFLINE_ACCESS} is for clients to ask for, not for a server to need"
                )
        if own := _OWN_MEMBERS & self.metadata.keys():
            raise ValueError(f"metadata: {', '.join(sorted(own))} follow from the other settings")

    @property
    def trusted(self) -> TrustedIssuers:
        """Whose tokens are accepted."""
        audiences = (self.resource,) if self.audiences is None else self.audiences
        return TrustedIssuers(frozenset(self.issuers), frozenset(map(canonical, audiences)))

    def with_implied(self, granted: Collection[str]) -> frozenset[str]:
        """Granted scopes, with all that they imply, directly or not."""
        scopes = set(granted)
        waiting = list(scopes & self.implies.keys())
        while waiting:
            more = set(self.implies[waiting.pop()]) - scopes
            scopes |= more
            waiting += more & self.implies.keys()
        return frozenset(scopes)

    def document(self) -> bytes:
        """The metadata document, as JSON."""
        scopes = self.scopes if self.scopes_supported is None else self.scopes_supported
        members: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
        }
        if scopes:
            members["scopes_supported"] = list(scopes)
        if self.dpop is not None:
            members["dpop_signing_alg_values_supported"] = list(self.dpop.algorithms)
            members["dpop_bound_access_tokens_required"] = self.dpop.required
        return msgspec.json.encode({**self.metadata, **members})

    def metadata_url_below(self, root: str) -> str:
        """URL of the metadata document, for an application that is mounted at a path.

        Below a mount point the outer application need not route the well-known path: the URL then
        is one that the mounted application serves itself.
        """
        if self.metadata_url is not None:
            return self.metadata_url
        root = root.rstrip("/")
        split = urlsplit(self.resource)
        if not root or not split.path.startswith(f"{root}/"):
            return protected_resource_url(self.resource)
        rest = split.path.removeprefix(root)
        return f"{split.scheme}://{split.netloc}{root}{PROTECTED_RESOURCE}{rest}"

    def is_metadata_path(self, path: str, root: str) -> bool:
        """Whether a path below a mount point is one of the metadata document."""
        if not path.startswith(PROTECTED_RESOURCE):
            return False
        resource_path = urlsplit(self.resource).path.rstrip("/")
        rest = path.removeprefix(PROTECTED_RESOURCE).rstrip("/")
        below = resource_path.removeprefix(root.rstrip("/"))
        return rest in ("", resource_path, below)
