"""Time limits of clients: paused while a user is asked, begun anew with each sign of life."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

_limits: ContextVar[tuple[PausableLimit, ...]] = ContextVar("limits", default=())


class TimeLimit:
    """A time limit that begins anew with each sign of life.

    Args:
        silence: Seconds after the last sign of life.
        longest: Seconds in all.

    Attributes:
        deadline: The end of the limit, on the clock of the event loop.
    """

    def __init__(self, silence: float, longest: float) -> None:
        self._silence = silence
        self._began = now = anyio.current_time()
        self._latest = now + longest
        self.deadline = now + silence

    def begin_anew(self) -> None:
        """Begin anew, after a sign of life."""
        self.deadline = min(anyio.current_time() + self._silence, self._latest)

    def left(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(0.0, self.deadline - anyio.current_time())

    @property
    def seconds(self) -> float:
        """Seconds from the beginning to the deadline."""
        return self.deadline - self._began


class PausableLimit:
    """A time limit that several tasks may pause; it goes on when the last of them ends its pause.

    Args:
        scope: The scope whose deadline is the limit.
    """

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._pauses = 0
        self._left = 0.0

    def pause(self) -> None:
        """Stop the clock."""
        if not self._pauses:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = float("inf")
        self._pauses += 1

    def extend(self, seconds: float) -> None:
        """Have at least this much time left."""
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
    """Let `paused` move the deadline of a scope, besides those of the `pausable` around it.

    This holds in the body, in tasks that are started there, and where the result is passed again.
    """
    if not isinstance(limit, PausableLimit):
        limit = PausableLimit(limit)
    token = _limits.set((*_limits.get(), limit))
    try:
        yield limit
    finally:
        _limits.reset(token)


@contextmanager
def paused() -> Generator[None]:
    """Stop the clock of all pausable limits around the running task for the time of the body."""
    limits = _limits.get()
    for limit in limits:
        limit.pause()
    try:
        yield
    finally:
        for limit in limits:
            limit.resume()
