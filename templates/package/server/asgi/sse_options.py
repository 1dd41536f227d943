"""The settings and options of HTTP+SSE."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypedDict
from urllib.parse import quote

from ...facts import has_streamable_http
from ...framing.sse import STREAM_PATH
from .settings import HttpSettings, check_path

if TYPE_CHECKING:
    from ..serving import Service
    from .quotas import Quotas
    from .request import Authentication, RequestBodies
    from .sse_endpoint import SseEndpoints

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
            text = "HTTP+SSE has sessions only, each in one process; expected no sse_path"
            raise ValueError(f"stateless: {text}")
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

    def messages_reference(self, root: str) -> str:
        """The URI reference of the endpoint for messages that clients get, without query.

        Args:
            root: The path of the mount point.
        """
        endpoint, path = self.messages_endpoint, self.messages_path
        if endpoint is None:  # one slash, since two would precede a host
            return quote("/" + (root.rstrip("/") + path).lstrip("/"))
        if endpoint != RELATIVE:
            return endpoint
        reference = posixpath.relpath(path, posixpath.dirname(self.sse_path or STREAM_PATH))
        # Quoted, since the text before a colon would be a scheme otherwise.
        return quote(f"{reference}/" if path.endswith("/") else reference)

    def checked_for(self, service: Service) -> Self:
        """See `HttpSettings`."""
        settings = self
        if self.sse_path is None and not has_streamable_http(service.revisions):
            settings = replace(self, sse_path=STREAM_PATH)
        if settings.sse_path is not None:
            _check_paths(service, settings)
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

        paths = (self.sse_path, self.messages_path)
        reference_of = self.messages_reference
        return SseEndpoints(service, self, paths, reference_of, quotas, bodies, authenticator)


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


def _check_paths(service: Service, settings: SseSettings) -> None:
    """Check that the two endpoints can be served.

    Raises:
        ValueError: Two of the paths are equal, or no served revision has HTTP+SSE.
    """
    if not any(each.facts.transports.http_sse for each in service.revisions.values()):
        raise ValueError("sse_path: none of the revisions that are served has HTTP+SSE")
    paths = (settings.path, settings.sse_path, settings.messages_path)
    if len(set(paths)) < len(paths):
        raise ValueError(f"sse_path: expected it, messages_path and path to differ, got {paths}")
