"""Settings of an ASGI application: trusted hosts, limits, response forms.

Features add settings of their own, as bases of `chosen_http.ServerHttpSettings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypedDict

from ..serving import ProcessLimit, Service
from .quotas import Quotas
from .request import Answers as Answers
from .request import Authentication, PathEndpoint, RequestBodies
from .request import Limits as Limits

_ANSWERS = ("auto", "json", "sse")


@dataclass(frozen=True)
class HttpSettings:
    """The settings that every package with HTTP has; a base of `ServerHttpSettings`.

    The methods are for features: by default they do nothing.

    Attributes:
        path: Path of the endpoint, below the mount point of the application; served with and
            without a slash at its end.
        hosts: Allowed values of `Host`, with or without a port; `*` for all. By default the names
            of loopback, the address that received the request, and the name passed to
            `Server.run`. So a server that listens at 0.0.0.0 is reached by each address of the
            machine, but by its names only if they are listed here.
        origins: Allowed values of `Origin`, such as `https://app.example`; `*` for all. By default
            the origins whose host is allowed: all, if all hosts are. Requests without `Origin` are
            allowed, since browsers always send one. Pages of listed origins may read responses.
        answers: The form of responses to POSTs; a client's `Accept` takes precedence.
        keep_alive: Seconds of silence before a comment is sent on a stream, and before a stream is
            opened for a POST that has no response yet, if its client accepts streams and `answers`
            is not `json`; `None` for never. Has to be less than the timeout of proxies for a
            silent response.
        limits: The limits.
        stateless: Whether each POST is served on its own in the revisions with sessions too, so
            that any process can serve it: no session id, no stream by GET, nothing to resume.
            Features that need a session are not declared, and are refused: requests to the client
            (elicitation, sampling, roots), subscriptions, list changes, log messages.

    Raises:
        ValueError: A path does not begin with a slash, or another value is invalid.
        TypeError: A string is given instead of a list.
    """

    draft_check: ClassVar[Callable[..., None] | None] = None
    """Checks the header fields of a draft; see `draft_headers.check_draft`."""

    parse_batch: ClassVar[Callable[..., Sequence[Any]] | None] = None
    """Parses a batch; see `protocol.batch_parsing.parse_array`."""

    serve_batch: ClassVar[Callable[..., Coroutine[Any, Any, None]] | None] = None
    """Responds to a batch; see `batches.serve_batch`."""

    path: str = "/mcp"
    hosts: Sequence[str] | None = None
    origins: Sequence[str] | None = None
    answers: Answers = "auto"
    keep_alive: float | None = 15.0
    limits: Limits = field(default_factory=Limits)
    stateless: bool = False

    def __post_init__(self) -> None:
        check_path("path", self.path)
        for name in ("hosts", "origins"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: expected a list of texts, got {getattr(self, name)!r}")
        if self.answers not in _ANSWERS:
            raise ValueError(
                f"answers: expected one of {', '.join(_ANSWERS)}, got {self.answers!r}"
            )
        check_seconds("keep_alive", self.keep_alive)

    @property
    def is_protected(self) -> bool:
        """Whether requests need an access token."""
        return False

    @property
    def public_hosts(self) -> Collection[str]:
        """Hosts of the public URL of the endpoint, which are allowed too."""
        return ()

    @property
    def process_limits(self) -> Sequence[ProcessLimit]:
        """Limits where several processes serve together."""
        return ()

    @property
    def other_paths(self) -> frozenset[str]:
        """The paths of the protocol besides `path`."""
        return frozenset()

    @property
    def stream_path(self) -> str:
        """The path of the stream of HTTP+SSE; empty without HTTP+SSE."""
        return ""

    @property
    def session_type(self) -> type[Any] | None:
        """The class of sessions; `None` for `HttpSession`."""
        return None

    def checked_for(self, service: Service) -> Self:
        """The settings as they apply to a server.

        Raises:
            ValueError: The server lacks what the settings need.
            MissingExtraError: An optional library is not installed.
        """
        return self

    def endpoint_type(self, kind: type[Any]) -> type[Any]:
        """The class of the endpoint to use in place of a class of `chosen_http.ENDPOINTS`."""
        return kind

    def path_endpoint(
        self,
        service: Service,
        quotas: Quotas,
        bodies: RequestBodies,
        authenticator: Authentication | None,
    ) -> PathEndpoint | None:
        """Serves paths other than `path`; `None` for none."""
        return None

    def authenticator(self, service: Service, worker: Any) -> Authentication | None:
        """Authenticates requests on one event loop; `None` for none."""
        return None

    def worker(self, service: Service) -> Any:
        """The worker of the state that processes share, on one event loop; `None` for none."""
        return None


def check_path(name: str, path: str | None) -> None:
    """Check a path of the settings.

    Raises:
        ValueError: It does not begin with a slash.
    """
    if path is not None and not path.startswith("/"):
        raise ValueError(f"{name}: expected a path that begins with '/', got {path!r}")


def check_seconds(name: str, seconds: float | None) -> None:
    """Check a duration of the settings.

    Raises:
        ValueError: It is not above zero.
    """
    if seconds is not None and seconds <= 0:
        raise ValueError(f"{name}: expected more than 0, got {seconds}")


class HttpServerOptions(TypedDict, total=False):
    """The attributes of `HttpSettings` but the path, as keyword arguments."""

    hosts: Sequence[str] | None
    origins: Sequence[str] | None
    answers: Answers
    keep_alive: float | None
    limits: Limits
    stateless: bool
