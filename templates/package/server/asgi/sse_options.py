"""The settings and options of HTTP+SSE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypedDict

from ...facts import has_streamable_http
from .settings import HttpSettings, check_path

if TYPE_CHECKING:
    from ..serving import Service
    from .body import RequestBodies
    from .quotas import Quotas
    from .request import Authentication
    from .sse_endpoint import SseEndpoints

SSE_PATH = "/sse"
"""The default path of the stream of HTTP+SSE."""

RELATIVE = "relative"
"""Value of `messages_endpoint` for a reference relative to the stream."""


class SseOptions(TypedDict, total=False):
    """The attributes of `SseSettings`, as keyword arguments."""

    sse_path: str | None
    messages_path: str
    messages_endpoint: str | None


@dataclass(frozen=True)
class SseSettings(HttpSettings):
    """The settings of HTTP+SSE (2024-11-05).

    Attributes:
        sse_path: Path of the stream; `None` to disable HTTP+SSE. If no revision that is served has
            Streamable HTTP, the default is `/sse`.
        messages_path: Path that clients post to, below the mount point.
        messages_endpoint: The address of `messages_path` that clients are given. By default the
            path with that of the mount point (`root_path`) before it. Behind a proxy that takes a
            prefix away: a path (`/team/messages`), an http or https URL, or `relative` for a
            reference relative to `sse_path`, which some clients cannot resolve.

    Raises:
        ValueError: A path does not begin with a slash, an address is invalid, or `sse_path`
            together with `stateless`.
    """

    sse_path: str | None = None
    messages_path: str = "/messages"
    messages_endpoint: str | None = None

    def __post_init__(self) -> None:
        if self.sse_path is not None and self.stateless:
            raise ValueError(f"stateless: {SESSIONS_ONLY}")
        check_path("sse_path", self.sse_path)
        check_path("messages_path", self.messages_path)
        _check_endpoint(self.messages_endpoint)
        super().__post_init__()

    @property
    def other_paths(self) -> frozenset[str]:
        """See `HttpSettings`."""
        return frozenset({self.sse_path, self.messages_path} if self.sse_path else ())

    @property
    def stream_path(self) -> str:
        """See `HttpSettings`."""
        return self.sse_path or ""

    def checked_for(self, service: Service) -> Self:
        """See `HttpSettings`."""
        settings = self
        if self.sse_path is None and not has_streamable_http(service.revisions):
            settings = replace(self, sse_path=SSE_PATH)
        if settings.sse_path is not None:
            from .sse_endpoint import check_paths  # most servers do not need it

            check_paths(service, settings)
        return super(SseSettings, settings).checked_for(service)

    def path_endpoint(
        self,
        service: Service,
        quotas: Quotas,
        bodies: RequestBodies,
        authenticator: Authentication | None,
    ) -> SseEndpoints | None:
        """See `HttpSettings`."""
        if self.sse_path is None:
            return None
        from .sse_endpoint import SseEndpoints  # most servers do not need it

        return SseEndpoints(service, self, quotas, bodies, authenticator)


SESSIONS_ONLY = "HTTP+SSE has sessions only, each in one process; expected no sse_path"
"""Why an option is refused together with HTTP+SSE."""


def _check_endpoint(endpoint: str | None) -> None:
    """Check that `messages_endpoint` is an address to which a query can be appended."""
    if endpoint is None or endpoint == RELATIVE:
        return
    is_path = endpoint.startswith("/") and not endpoint.startswith("//")
    is_address = endpoint.startswith(("http://", "https://"))
    if not (is_path or is_address) or any(each in "?#" or each <= " " for each in endpoint):
        raise ValueError(
            "messages_endpoint: expected a path that begins with '/', an http or https URL, or "
            f"{RELATIVE!r}, without query and spaces, got {endpoint!r}"
        )
