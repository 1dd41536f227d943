"""How many requests a client has open at a server: as many as the server accepts.

A server that has too much to do refuses requests before any work on them. Of 500 calls at once,
most would fail then, although the server could serve all of them, one after the other. So a request
waits here for its place. At first there are many places. A refusal leaves as many as the server has
accepted, and each response makes room for the next request. After the time that the server named,
there are more places again, by 1, 2, 4 and so on, until the next refusal.
"""

from __future__ import annotations

from collections import deque

import anyio

from ...channel import RequestId
from ...errors import ConnectionClosedError
from .event_stream import StartSoon


class OpenRequests:
    """The places for open requests, and the requests that wait for one.

    Args:
        start_soon: Starts a task that ends with the channel.
        most: Most places.
    """

    def __init__(self, start_soon: StartSoon, most: int) -> None:
        self._start_soon = start_soon
        self._most = self._places = most
        self._open: set[RequestId] = set()
        self._waiting: deque[tuple[RequestId, anyio.Event]] = deque()
        self._closed = False
        self._growing = False
        self._pause = 0.0
        self._grow_at = 0.0
        self._step = 1

    async def enter(self, identifier: RequestId, *, was_refused: bool = False) -> None:
        """Wait for a place. A request that was refused is the next one that gets one.

        Raises:
            ConnectionClosedError: The channel was closed meanwhile.
        """
        if len(self._open) < self._places and not self._waiting:
            self._open.add(identifier)
            return
        place = (identifier, anyio.Event())
        if was_refused:
            self._waiting.appendleft(place)
        else:
            self._waiting.append(place)
        try:
            await place[1].wait()
        except BaseException:
            if place in self._waiting:
                self._waiting.remove(place)
            self.leave(identifier)
            raise
        if self._closed:
            raise ConnectionClosedError("the connection is closed")

    def leave(self, identifier: RequestId) -> None:
        """Free the place of a request that is not open any more. Idempotent."""
        if identifier in self._open:
            self._open.remove(identifier)
            self._admit()

    def refuse(self, identifier: RequestId, seconds: float) -> None:
        """Free the place of a request that the server refused, and keep those of the others.

        Args:
            identifier: The request.
            seconds: Seconds until the server may accept more requests than it has now.
        """
        self._open.discard(identifier)
        self._places = min(self._places, len(self._open))
        self._pause, self._step = seconds, 1
        self._grow_at = anyio.current_time() + seconds
        if not self._growing:
            self._growing = self._start_soon(self._grow)

    def close(self) -> None:
        """Wake all requests that wait; `enter` then raises."""
        self._closed = True
        for _, turn in self._waiting:
            turn.set()
        self._waiting.clear()

    def _admit(self) -> None:
        while self._waiting and len(self._open) < self._places:
            identifier, turn = self._waiting.popleft()
            self._open.add(identifier)
            turn.set()

    async def _grow(self) -> None:
        """Add places after each pause, until there are as many as at first."""
        while self._places < self._most:
            if (left := self._grow_at - anyio.current_time()) > 0:
                await anyio.sleep(left)
                continue
            self._places = min(self._most, self._places + self._step)
            self._step *= 2
            self._grow_at = anyio.current_time() + self._pause
            self._admit()
        self._growing = False
