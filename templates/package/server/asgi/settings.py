"""Settings of an ASGI application: trusted hosts, limits, response forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias, TypedDict

from .event_store import EventStore, MemoryEventStore

Answers: TypeAlias = Literal["auto", "json", "sse"]
"""How a POST is answered: `json` or `sse` always, or by JSON unless something comes before.

With `sse` the stream opens while the answer is still being made. With `auto` it opens when there is
something to send before the answer, or after `keep_alive` seconds of silence.
With `json` nothing can come before: progress and log messages of a call are left out, and in a
session its requests to the client go on the stream that the client opened by GET.
"""

SSE_PATH = "/sse"
"""Where the stream of HTTP+SSE is, unless it is said to be elsewhere."""

_ANSWERS = ("auto", "json", "sse")


@dataclass(frozen=True)
class Limits:
    """What one application holds at most, so that no client can fill its memory.

    Attributes:
        body: Bytes of a request's body; more get 413. What one client of HTTP+SSE has posted and
            was not received yet may have as many; more get 503.
        bodies: Bytes that bodies of more than 64 KiB have together, from the first part to the
            answer; more get 503. Before that the one whose next part is the longest overdue does.
        reading: Requests whose body is not whole yet, at a time. One more ends the one whose next
            part is the longest overdue: it gets 503.
        body_seconds: Seconds that a request's body may take to arrive; then it gets 408.
        discard: Bytes of a body that are read and dropped after its request was refused, for
            `body_seconds` at most: so a client that reads nothing before it has written all gets
            the refusal. Then the connection is closed.
        fields: Header fields of a request; more get 431. All of its head may have 64 KiB where
            `Server.run` serves; other servers have limits of their own.
        head_seconds: Seconds that a request's head may take to arrive, and a new connection be
            silent, before it is closed. Needs `Server.run`: other servers have limits of their own.
        send_seconds: Seconds that a client may leave an answer unread before it is cut. One who
            reads slowly is not: `Server.run` sees that it reads, and other servers give it a
            second more for each 64 KiB of an event.
        in_flight: Messages being served at a time for clients that are there, over all of them and
            all transports; more get 503. Answers to the server's requests and cancellations are
            always taken.
        per_session: Requests of one session being served at a time, whether its client is there or
            not, as many notifications, and messages of one client of HTTP+SSE that were not
            received yet; more get 503.
        abandoned: Requests and notifications of sessions being served at a time though their client
            has closed the connection, which is no cancellation there. One more cancels the one
            abandoned first: its client finds an error if it resumes the stream.
        abandoned_seconds: Seconds after which such a request is cancelled, and with it what it asks
            the client, unless the client is back.
        streams: Streams of events that clients hold open, over all of them; more get 503.
        sessions: Sessions open at a time. One more ends one that is idle: first those whose client
            did nothing after `initialize`, if there are more than a hundredth of this; then those
            of the address that has most; of them the one idle the longest. If none is idle it
            gets 503.
        idle: Seconds after which a session ends that nobody uses; `None` for never.
        initialize: Bytes of a request that opens a session; more get 413.
        session_bytes: Bytes, about, that all sessions keep of what their clients said, and of what
            waits for them: `initialize`, URIs subscribed to, pending messages, and what clients of
            HTTP+SSE have posted and was not received yet. Filters of subscription streams count
            too. For more, idle sessions end that keep more than is asked for; then it is refused,
            requests with 503.
        pending: Messages of a session that wait for its client to open a stream; more are refused.
        pending_bytes: Bytes of these messages; more are refused.

    Raises:
        ValueError: One of them is not above zero.
    """

    body: int = 4 * 2**20
    bodies: int = 128 * 2**20
    reading: int = 1000
    body_seconds: float = 30.0
    discard: int = 64 * 2**20
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

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value <= 0:
                raise ValueError(f"Limits.{each.name}: expected more than 0, got {value}")


@dataclass(frozen=True)
class ServerHttpSettings:
    """How an application speaks HTTP.

    Attributes:
        path: Path of the endpoint, below where the application is mounted; with or without a
            slash at its end, both are served.
        hosts: Values of `Host` that are served, with or without a port; `*` for all. By default
            the names of loopback, the address that a request comes in at, and the name that
            `Server.run` was given. So whoever listens at 0.0.0.0 is reached by any address of the
            machine, but by none of its names until they are listed here.
        origins: Values of `Origin` that are served, such as `https://app.example`; `*` for all.
            By default those whose host is served: all, if all hosts are. A request without
            `Origin` is no browser's.
        answers: How a POST is answered; what a client's `Accept` leaves out is never sent.
        events: Keeps the events of streams, so that a client whose connection broke can have the
            rest; `None` for streams that can't be taken up again.
        keep_alive: Seconds of silence before a comment is sent on a stream, and before a POST that
            has no answer yet is given a stream, where its client takes one and `answers` is not
            `json`; `None` for never. It has to be less than the time that proxies in between allow
            for a silent answer.
        retry: Seconds a client is told to wait before it comes back to a stream.
        limits: What is held at most.
        sse_path: Path of the stream of HTTP+SSE (2024-11-05); `None` to leave it out.
        messages_path: Path that clients of HTTP+SSE post to.

    Raises:
        ValueError: A path that does not begin with a slash, or another value that means nothing.
        TypeError: One text instead of a list.
    """

    path: str = "/mcp"
    hosts: Sequence[str] | None = None
    origins: Sequence[str] | None = None
    answers: Answers = "auto"
    events: EventStore | None = field(default_factory=MemoryEventStore)
    keep_alive: float | None = 15.0
    retry: float = 1.0
    limits: Limits = field(default_factory=Limits)
    sse_path: str | None = None
    messages_path: str = "/messages"

    def __post_init__(self) -> None:
        for name in ("path", "sse_path", "messages_path"):
            path = getattr(self, name)
            if path is not None and not path.startswith("/"):
                raise ValueError(f"{name}: expected a path that begins with '/', got {path!r}")
        for name in ("hosts", "origins"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: expected a list of texts, got {getattr(self, name)!r}")
        if self.answers not in _ANSWERS:
            raise ValueError(
                f"answers: expected one of {', '.join(_ANSWERS)}, got {self.answers!r}"
            )
        for name in ("keep_alive", "retry"):
            seconds = getattr(self, name)
            if seconds is not None and seconds <= 0:
                raise ValueError(f"{name}: expected more than 0, got {seconds}")


class ServerHttpOptions(TypedDict, total=False):
    """The attributes of `ServerHttpSettings`, but for the path, as keyword arguments."""

    hosts: Sequence[str] | None
    origins: Sequence[str] | None
    answers: Answers
    events: EventStore | None
    keep_alive: float | None
    retry: float
    limits: Limits
    sse_path: str | None
    messages_path: str
