"""Streams of events that stay open until one side leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio

from ...errors import ConnectionClosedError
from .request import Receive
from .sse_response import SseResponse, until_gone


class StreamLimits:
    """The long streams of an application.

    Args:
        limit: How many there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._scopes: set[anyio.CancelScope] = set()
        self._closed = False

    def __len__(self) -> int:
        """How many there are, or are about to be."""
        return self._taken

    @contextmanager
    def place(self) -> Generator[bool]:
        """Have one more counted while the block runs; `False` if there may be no more."""
        if self._taken >= self._limit:
            yield False
            return
        self._taken += 1
        try:
            yield True
        finally:
            self._taken -= 1

    async def hold(
        self,
        receive: Receive,
        wire: SseResponse,
        keep_alive: float | None,
        work: Callable[[], Awaitable[object]],
    ) -> bool:
        """Keep a stream open, and run `work` meanwhile.

        Args:
            receive: Tells when the client leaves.
            wire: The stream.
            keep_alive: Seconds of silence after which a comment is sent; `None` for never.
            work: What sends events, until it is cancelled or returns.

        Returns:
            Whether the client is gone; if not, it is the server that ends the stream.
        """
        gone = False
        async with anyio.create_task_group() as tasks:
            scope = tasks.cancel_scope

            def leave() -> None:
                nonlocal gone
                gone = True
                scope.cancel()

            wire.on_cut = leave
            self._scopes.add(scope)
            if self._closed:
                scope.cancel()
            try:
                tasks.start_soon(until_gone, receive, wire, keep_alive)
                await work()
                scope.cancel()
            except ConnectionClosedError:
                leave()
            finally:
                self._scopes.discard(scope)
                wire.on_cut = None
        return gone

    def close(self) -> None:
        """End them all from the server's side, and those that are opened from now on."""
        self._closed = True
        for scope in list(self._scopes):
            scope.cancel()
