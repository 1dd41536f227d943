"""Time limits of clients, and the timeouts of their HTTP transports. Loads no HTTP.

Limits are paused while a user is prompted, and restart with each sign of activity.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio
import msgspec

_limits: ContextVar[tuple[PausableLimit, ...]] = ContextVar("limits", default=())


class TimeLimit:
    """A time limit that restarts with each sign of activity.

    Args:
        silence: Seconds after the last activity.
        longest: Seconds in total.

    Attributes:
        deadline: The end of the limit, on the clock of the event loop.
    """

    def __init__(self, silence: float, longest: float) -> None:
        self._silence = silence
        self._began = now = anyio.current_time()
        self._latest = now + longest
        self.deadline = now + silence

    def begin_anew(self) -> None:
        """Restart the limit after activity."""
        self.deadline = min(anyio.current_time() + self._silence, self._latest)

    def left(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(0.0, self.deadline - anyio.current_time())

    @property
    def seconds(self) -> float:
        """Seconds from the beginning to the deadline."""
        return self.deadline - self._began


class PausableLimit:
    """A time limit that several tasks may pause; it continues when the last pause ends.

    Args:
        scope: The scope whose deadline is the limit.
    """

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._pauses = 0
        self._left = 0.0

    @property
    def left(self) -> float:
        """Seconds until the limit, without further pauses."""
        return self._left if self._pauses else self._scope.deadline - anyio.current_time()

    def pause(self) -> None:
        """Stop the clock."""
        if not self._pauses:
            self._left = self.left
            self._scope.deadline = float("inf")
        self._pauses += 1

    def extend(self, seconds: float) -> None:
        """Extend the limit to at least this many seconds from now."""
        if self._pauses:
            self._left = max(self._left, seconds)
        else:
            self._scope.deadline = max(self._scope.deadline, anyio.current_time() + seconds)

    def resume(self) -> None:
        """End one pause."""
        self._pauses -= 1
        if not self._pauses:
            self._scope.deadline = anyio.current_time() + self._left


@contextmanager
def pausable(limit: anyio.CancelScope | PausableLimit) -> Generator[PausableLimit]:
    """Let `pause_limits` move the deadline of a scope, besides those of the `pausable` around it.

    This applies in the body, in tasks that are started there, and where the result is passed again.
    """
    if not isinstance(limit, PausableLimit):
        limit = PausableLimit(limit)
    token = _limits.set((*_limits.get(), limit))
    try:
        yield limit
    finally:
        _limits.reset(token)


@contextmanager
def pause_limits() -> Generator[None]:
    """Stop the clock of all pausable limits of the running task during the body."""
    limits = _limits.get()
    for limit in limits:
        limit.pause()
    try:
        yield
    finally:
        for limit in limits:
            limit.resume()


class HttpTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts and pauses of Streamable HTTP and of HTTP+SSE, in seconds.

    Attributes:
        accept: For a server to accept a message whose response, if any, arrives on another stream.
        endpoint: For a server of HTTP+SSE to send the address for messages.
        renewal: For opening a session in place of a lost session.
        ending: For the request that ends a session.
        linger: For reading a stream after its response: if the stream ends, the connection can be
            reused.
        first_pause: Pause before a stream is resumed, unless the server stated a time (`retry`).
        longest_pause: Limit of this pause, which doubles with each consecutive failed attempt.
        shortest_pause: Shortest pause, also if the server states a shorter one. It doubles while
            connections end without a message.
        longest_poll: Limit of that doubling; the server may request a longer pause.
        longest_retry: Limit of the pause that a server may request.
        refused: From the first refusal of a message with a temporary status on: for waiting, as
            `Retry-After` says, and sending the message again. A longer `Retry-After` fails the
            request at once.

    Source: basic/transports (sending, listening, resumability and redelivery).
    """

    accept: float = 30.0
    endpoint: float = 5.0
    renewal: float = 30.0
    ending: float = 2.0
    linger: float = 1.0
    first_pause: float = 0.5
    longest_pause: float = 30.0
    shortest_pause: float = 0.1
    longest_poll: float = 5.0
    longest_retry: float = 3600.0
    refused: float = 60.0


HTTP_TIMEOUTS = HttpTimeouts()
"""The defaults."""
