"""Time limits that pause while a user is asked to authorize."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

_limits: ContextVar[tuple[anyio.CancelScope, ...]] = ContextVar("limits", default=())


@contextmanager
def pausable(*scopes: anyio.CancelScope) -> Generator[None]:
    """Let `paused` move the deadlines of these scopes, in what this task awaits in the body."""
    token = _limits.set(scopes)
    try:
        yield
    finally:
        _limits.reset(token)


@contextmanager
def paused() -> Generator[None]:
    """Stop the clock of all pausable limits around the running task for the time of the body."""
    scopes = _limits.get()
    started = anyio.current_time()
    deadlines = [scope.deadline for scope in scopes]
    for scope in scopes:
        scope.deadline = float("inf")
    try:
        yield
    finally:
        passed = anyio.current_time() - started
        for scope, deadline in zip(scopes, deadlines, strict=True):
            scope.deadline = deadline + passed
