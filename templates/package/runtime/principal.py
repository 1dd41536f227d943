"""The principal: on whose behalf a request is served, and what that principal may do.

A transport that authenticates sets `PRINCIPAL` before a request is handled. Handlers read it as
`Context.principal`; without authentication it is `ANONYMOUS`.

Source: basic/authorization.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeAlias

from ..auth.scopes import checked_scopes

Identity: TypeAlias = tuple[str | None, str, str | None]
"""Issuer, subject and client: what sessions, streams and request states are bound to."""

_NO_SCOPES: frozenset[str] = frozenset()


@dataclass(frozen=True, repr=False)
class Principal:
    """A user, or a client that acts for itself.

    Attributes:
        subject: Identifies the user at the issuer; empty for the anonymous principal.
        scopes: The granted scopes, with those that they imply.
        issuer: The authorization server that vouches for the subject, if one does.
        client_id: The OAuth client, if known.
        claims: Claims of the token, or members of the introspection response. Read-only.
        expires: Time from which the token is not accepted, in seconds since the epoch; `None` for
            never.
        unrestricted: Whether all scopes are granted.
        token: A credential for other services, from the environment of a local server. It never
            holds the access token of an HTTP request, which must not be passed to other services.

    Raises:
        TypeError: One string instead of a collection of scopes.
        ValueError: A scope contains a space or another character that scopes can't have.
    """

    subject: str
    _: KW_ONLY
    scopes: Collection[str] = _NO_SCOPES
    issuer: str | None = None
    client_id: str | None = None
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    expires: float | None = None
    unrestricted: bool = False
    token: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", checked_scopes(self.scopes))

    @classmethod
    def local(cls, subject: str = "local", *, token: str | None = None) -> Principal:
        """The user of a local server, who may do everything.

        Args:
            subject: Name of the user.
            token: A credential for other services, such as one from an environment variable.
        """
        return cls(subject, unrestricted=True, token=token)

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody was authenticated."""
        return self is ANONYMOUS

    @property
    def identity(self) -> Identity:
        """Issuer, subject and client."""
        return self.issuer, self.subject, self.client_id

    def with_scopes(self, scopes: Collection[str]) -> Principal:
        """The same principal with other scopes."""
        return replace(self, scopes=scopes)

    def has_scopes(self, *scopes: str) -> bool:
        """Whether all of these scopes are granted."""
        return self.unrestricted or frozenset(self.scopes).issuperset(scopes)

    def __repr__(self) -> str:
        """The principal without token and claims, which belong into no log."""
        parts = [repr(self.subject)]
        parts += [f"scopes={sorted(self.scopes)}"] if self.scopes else []
        parts += [f"issuer={self.issuer!r}"] if self.issuer is not None else []
        parts += [f"client_id={self.client_id!r}"] if self.client_id is not None else []
        return f"Principal({', '.join(parts)})"


ANONYMOUS = Principal("")
"""The principal of requests that were not authenticated: it has no scopes."""

PRINCIPAL: ContextVar[Principal] = ContextVar("principal", default=ANONYMOUS)
"""The principal of the request that the current task serves."""
