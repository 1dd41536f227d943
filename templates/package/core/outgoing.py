"""Requests we sent and that are not answered yet: ids, deadlines, who wants progress.

An id is a counter and never comes again, which satisfies every revision; the progress token of a
request is its id, so it is unique for as long as the request lives.
"""

from __future__ import annotations

import msgspec

from ..channel import RequestId
from ..facts import Method, Revision


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


class Calls:
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
