"""Messages on their way to a server, which may take too long, or be given up all at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from ...errors import ConnectionClosedError, ResponseLostError
from .outgoing import Outgoing
from .response import shown

if TYPE_CHECKING:
    import httpx2

TAKING_SECONDS = 30.0
"""How long a server may take to accept a message whose answer, if any, comes another way."""


class Posting:
    """The messages that are on their way."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()

    @contextmanager
    def within(self, seconds: float, message: Outgoing, url: httpx2.URL) -> Generator[None]:
        """Within, a message is posted to an address.

        Raises:
            AnswerLostError: It took longer.
            ConnectionClosedError: It was given up.
        """
        limit = anyio.current_time() + seconds
        with anyio.CancelScope(deadline=limit) as scope:
            self._scopes.add(scope)
            try:
                yield
                return
            finally:
                self._scopes.discard(scope)
        if anyio.current_time() >= limit:
            raise ResponseLostError(
                f"{shown(url)}: {message.what} was not accepted within {seconds:g} s"
            )
        raise ConnectionClosedError("the connection is closed")

    def give_up(self) -> None:
        """Post none of them to the end."""
        for scope in self._scopes:
            scope.cancel()
