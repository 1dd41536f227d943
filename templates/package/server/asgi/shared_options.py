"""The settings and options of state that processes share; see `server.shared`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypedDict

from .resumable_stream import ResumeSettings
from .sealed_options import SealedSettings

if TYPE_CHECKING:
    from ..serving import Service
    from ..shared.state import SharedState
    from ..shared.worker import SharedWorker

Shared: TypeAlias = "SharedState | str"
"""The URL of an engine, or a shared state."""


class SharedOptions(TypedDict, total=False):
    """The attributes of `SharedSettings`, as keyword arguments."""

    shared: Shared | None


@dataclass(frozen=True)
class SharedSettings(SealedSettings, ResumeSettings):
    """The state that processes share.

    Attributes:
        shared: The URL of an engine that speaks the protocol of Redis, such as
            `redis://127.0.0.1:6379/0`, or a `SharedState`; `None` for none. Changes then reach the
            clients of all processes, and any process serves any session.
    """

    shared: Shared | None = field(default=None, repr=False)  # a URL may have a password

    def checked_for(self, service: Service) -> Self:
        """See `HttpSettings`."""
        self.worker(service)
        return super().checked_for(service)

    def endpoint_type(self, kind: type[Any]) -> type[Any]:
        """See `HttpSettings`; sealed sessions need no shared ones."""
        endpoint = super().endpoint_type(kind)
        if endpoint is kind and self.shared is not None and not self.stateless:
            from ..shared.shared_endpoint import SharedEndpoint  # few servers share sessions

            if issubclass(SharedEndpoint, kind):
                return SharedEndpoint
        return endpoint

    def worker(self, service: Service) -> SharedWorker | None:
        """See `HttpSettings`."""
        if self.shared is None:
            return None
        from ..shared.worker import worker_of  # few servers share state

        return worker_of(service, self.shared)
