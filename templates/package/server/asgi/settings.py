"""Settings of an ASGI application: trusted hosts, limits, response forms.

Features add settings of their own, as bases of `chosen_http.ServerHttpSettings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypedDict

if TYPE_CHECKING:
    from ..serving import ProcessLimit, Service

Answers: TypeAlias = Literal["auto", "json", "sse"]
"""The form of the response to a POST: JSON, a stream of events, or chosen per response.

With `sse` the stream opens before the handler has finished. With `auto` it opens when a message
precedes the response, or after `keep_alive` seconds of silence.
With `json` nothing can precede the response: progress and log messages of a call are dropped, and
in a session its requests to the client are sent on the stream that the client opened by GET.
"""

_ANSWERS = ("auto", "json", "sse")


@dataclass(frozen=True)
class Limits:
    """Limits of one application, so that no client can exhaust its memory.

    Attributes:
        body: Bytes of a request body; more get 413. Also bytes of messages that one client of
            HTTP+SSE has posted and its session has not received; more get 503.
        bodies: Bytes of all bodies of more than 64 KiB together, from the first part to the
            response; more get 503, first the body whose next part is the longest overdue.
        reading: Incomplete bodies at a time. One more ends the body whose next part is the longest
            overdue, with 503.
        body_seconds: Seconds for a request body to arrive; then the request gets 408.
        discard: Bytes of a body that are read and dropped after its request was refused, for
            `body_seconds` at most: clients that read nothing before they have written the whole
            body get the refusal. Then the connection is closed.
        unread: Bytes of all responses and events of more than 64 KiB together that clients have not
            read yet. Then requests get 503; those of a principal, or of a network without
            authentication, once half of these bytes are unread by it.
        fields: Header fields of a request; more get 431. With `Server.run` the head of a request
            may have 64 KiB; other servers have limits of their own.
        head_seconds: Seconds for the head of a request to arrive, also of the first request of a
            connection. Then the connection is closed. Applies to `Server.run`; other servers have
            limits of their own.
        send_seconds: Seconds that a client may leave a response unread before the connection is
            aborted. Slow readers are not affected: `Server.run` checks whether the client reads;
            under other servers, each 64 KiB of an event add a second.
        in_flight: Messages being served at a time for connected clients, over all clients and
            transports; more get 503. Responses to the server's requests and cancellations are
            always accepted.
        per_session: Requests of one session being served at a time, whether its client is
            connected or not; also notifications, and messages of one client of HTTP+SSE that its
            session has not received. More get 503.
        abandoned: Requests and notifications in sessions being served at a time after their client
            closed the connection, which does not cancel them. One more cancels the request that was
            abandoned first: the client gets an error when it resumes the stream.
        abandoned_seconds: Seconds after which an abandoned request is cancelled, with its own
            requests to the client, unless the client has resumed the stream.
        streams: Open streams of events over all clients; more get 503.
        sessions: Sessions open at a time. One more ends an idle session: first sessions whose
            client did nothing after `initialize`, if they exceed a hundredth of this limit; then
            sessions of the address that has most; among these the longest idle session. If no
            session is idle, `initialize` gets 503.
        idle: Seconds after which an unused session ends; `None` for never.
        initialize: Bytes of an `initialize` request; more get 413.
        session_bytes: Estimated bytes kept for all sessions: `initialize`, subscribed URIs, pending
            messages, and messages posted over HTTP+SSE and not yet received. Filters of
            subscription streams count too. When they exceed the limit, idle sessions that keep
            more than is needed end; if that does not suffice, requests get 503.
        pending: Messages of a session that wait for its client to open a stream; more are refused.
        pending_bytes: Bytes of these messages; more are refused.
        sealed_seconds: Seconds from the start of a sealed session to its end.

    Raises:
        ValueError: A limit is not above zero.
    """

    body: int = 4 * 2**20
    bodies: int = 128 * 2**20
    reading: int = 1000
    body_seconds: float = 30.0
    discard: int = 64 * 2**20
    unread: int = 128 * 2**20
    fields: int = 100
    head_seconds: float = 30.0
    send_seconds: float = 60.0
    in_flight: int = 1000
    per_session: int = 100
    abandoned: int = 1000
    abandoned_seconds: float = 600.0
    streams: int = 10_000
    sessions: int = 10_000
    idle: float | None = 1800.0
    initialize: int = 64 * 2**10
    session_bytes: int = 64 * 2**20
    pending: int = 100
    pending_bytes: int = 2**20
    sealed_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value <= 0:
                raise ValueError(f"Limits.{each.name}: expected more than 0, got {value}")


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

    def path_endpoint(self, service: Service, quotas: Any, bodies: Any, authenticator: Any) -> Any:
        """A `PathEndpoint` for paths other than `path`; `None` for none."""
        return None

    def authenticator(self, service: Service, worker: Any) -> Any:
        """The `Authentication` of requests on one event loop; `None` for none."""
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
