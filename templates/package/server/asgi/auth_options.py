"""The settings and options of protected applications; see `server.auth`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict
from urllib.parse import urlsplit

from .settings import HttpSettings

if TYPE_CHECKING:
    from ..auth.authenticator import Authenticator
    from ..auth.protected import Protected
    from ..auth.verifiers import VerifyToken
    from ..serving import ProcessLimit, Service

Auth: TypeAlias = "Protected | VerifyToken"
"""The protection of an application, or a verifier of tokens."""


class AuthOptions(TypedDict, total=False):
    """The attributes of `ProtectionSettings`, as keyword arguments."""

    auth: Auth | None


@dataclass(frozen=True)
class ProtectionSettings(HttpSettings):
    """The protection of an application.

    Attributes:
        auth: Requires an access token of every request: `Protected`, `StaticTokens`, or a coroutine
            function that takes a token and returns its `Principal` or `None`; `None` for none.

    Raises:
        TypeError: `auth` has another type.
    """

    auth: Auth | None = None

    def __post_init__(self) -> None:
        _ = self.protected  # raises for a value of another type
        super().__post_init__()

    @property
    def protected(self) -> Protected | None:
        """The settings for the value of `auth`; `None` if it is `None`."""
        if self.auth is None:
            return None
        from ..auth.protected import protected_by  # only protected servers need it

        return protected_by(self.auth)

    @property
    def is_protected(self) -> bool:
        """See `HttpSettings`."""
        return self.auth is not None

    @property
    def public_hosts(self) -> Collection[str]:
        """See `HttpSettings`."""
        protected = self.protected
        if protected is None or not protected.resource:
            return ()
        return (urlsplit(protected.resource).hostname or "",)

    @property
    def process_limits(self) -> Sequence[ProcessLimit]:
        """See `HttpSettings`."""
        protected = self.protected
        return () if protected is None else protected.process_limits()

    def authenticator(self, service: Service, worker: Any) -> Authenticator | None:
        """See `HttpSettings`."""
        protected = self.protected
        if protected is None:
            return None
        from ..auth.authenticator import Authenticator  # only protected servers need it

        used = None if worker is None else worker.state.used
        revisions, scopes = service.revisions, service.required_scopes
        return Authenticator(protected, revisions, scopes, self.path, used)
