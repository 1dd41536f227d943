"""Requests that are not answered yet: the peer's, which are being served, and our own.

An id of ours is a counter and never comes again, which satisfies every revision; the progress token
of a request is its id, so it is unique for as long as the request lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..channel import RequestId
from ..facts import Method, Revision
from .jsonrpc import is_id

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages, least first (RFC 5424). Source: server/utilities/logging."""


class InboundRequest(msgspec.Struct):
    """One request of the peer's that has no answer yet.

    Attributes:
        method: What was asked.
        revision: The revision it is served by.
        params: Its typed params.
        token: Its progress token, if progress is wanted.
        log_level: Least level of log messages that its sender wants; `None` for no wish.
        peer_capabilities: What its sender declared.
        progress: The last value reported.
    """

    method: Method
    revision: Revision
    params: Any
    token: RequestId | None
    log_level: str | None
    peer_capabilities: Mapping[str, Any]
    progress: float | None = None

    def quiet(self) -> None:
        """Neither progress nor log messages are sent for it, though it asked for them."""
        self.token = self.log_level = None

    def advance(self, value: float) -> bool:
        """Whether this progress may be reported: wanted, and more than the last."""
        if self.token is None or (self.progress is not None and value <= self.progress):
            return False
        self.progress = value
        return True


def token_of(meta: Mapping[str, Any]) -> RequestId | None:
    """The progress token in a request's `_meta`; what can be none (`is_id`) counts as absent."""
    token = meta.get("progressToken")
    return token if is_id(token) else None


def loud_enough(level: str, least: str | None) -> bool:
    """Whether a log message of `level` is wanted by someone who wants `least` and above."""
    return least is None or LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


class Call(msgspec.Struct):
    """One request of ours.

    Attributes:
        method: What was asked.
        revision: The revision its answer is judged by.
        wants_progress: Whether it carries a progress token.
        timeout: Seconds without answer or progress before it counts as lost; `None` for never.
        deadline: Moment the timeout runs out, on the caller's clock.
        limit: Moment it is lost whatever progress comes.
    """

    method: Method
    revision: Revision
    wants_progress: bool
    timeout: float | None
    deadline: float | None
    limit: float | None

    def extend(self, now: float) -> None:
        """Progress came: the timeout starts again, within the limit."""
        if self.timeout is not None:
            deadline = now + self.timeout
            self.deadline = deadline if self.limit is None else min(deadline, self.limit)


class OutboundRequests:
    """The open requests of one side."""

    def __init__(self) -> None:
        self._open: dict[RequestId, Call] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, call: Call) -> int:
        """Enter a request and give it an id."""
        self._last += 1
        self._open[self._last] = call
        return self._last

    def get(self, identifier: RequestId) -> Call | None:
        """The open request with that id, if there is one; `"7"` is not `7`."""
        return self._open.get(identifier)

    def pop(self, identifier: RequestId) -> Call | None:
        """Take a request out, because it is answered or given up."""
        return self._open.pop(identifier, None)

    def drain(self) -> list[RequestId]:
        """Take all out, because no answer can come any more."""
        left = list(self._open)
        self._open.clear()
        return left

    def next_deadline(self) -> float | None:
        """The earliest deadline among the open requests."""
        deadlines = [call.deadline for call in self._open.values() if call.deadline is not None]
        return min(deadlines, default=None)

    def expired(self, now: float) -> list[RequestId]:
        """Requests whose deadline has passed."""
        return [
            identifier
            for identifier, call in self._open.items()
            if call.deadline is not None and call.deadline <= now
        ]
