"""What POSTs need that take long: comments on a quiet stream, and a look whether the client left.

Most POSTs are over before it is their turn, and pay nothing for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from .answers import SessionAnswer
from .background import Background

logger = logging.getLogger(__name__)

_SECONDS = 15.0


class LongCalls:
    """The POSTs being answered now.

    Args:
        background: Runs what watches for clients that leave.
        keep_alive: Seconds of silence on a stream after which a comment is sent, at twice that at
            the latest; `None` for never.
    """

    def __init__(self, background: Background, keep_alive: float | None) -> None:
        self._background = background
        self._keep_alive = keep_alive
        self._answers: set[SessionAnswer] = set()

    def add(self, answer: SessionAnswer) -> None:
        """Look after a POST."""
        self._answers.add(answer)

    def discard(self, answer: SessionAnswer) -> None:
        """Look after it no more."""
        self._answers.discard(answer)

    async def attend(self) -> None:
        """Look after them, until cancelled."""
        seconds = _SECONDS if self._keep_alive is None else self._keep_alive
        while True:
            await anyio.sleep(seconds)
            for answer in list(self._answers):
                if not answer.watched:
                    answer.watched = True
                    self._background.start_soon(_safely, answer.watch)
                if self._keep_alive is not None:
                    self._background.start_soon(_safely, answer.comment)


async def _safely(work: Callable[[], Awaitable[None]]) -> None:
    """Do what no other call may suffer from: some servers raise errors of their own."""
    try:
        await work()
    except Exception as error:
        logger.debug("a connection failed: %r", error)
