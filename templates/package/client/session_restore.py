"""Restoring what a server stored for a session that was lost: the log level and subscriptions.

A transport may replace a lost session by a new one without notice to its user. The client then
repeats the requests whose effect lasts for a session, before any other request.

Source: server/utilities/logging, server/resources#subscriptions; basic/transports (session
management, to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from .._wire import Raw, decoder, to_builtins
from ..errors import McpError
from ..protocol.notifications import SUBSCRIBE, UNSUBSCRIBE

SET_LEVEL = "logging/setLevel"
LASTING = frozenset({SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
"""Requests whose effect lasts for as long as a session."""

_decode = decoder(dict[str, Any])
_logger = logging.getLogger(__name__)


class SessionRestore:
    """The requests whose effect lasts for a session, and the state of that session.

    Attributes:
        lost: Whether the session was replaced and the requests are not repeated yet.
        on_loss: Called when the session is replaced.
        stream_failure: Why the stream for messages of the server is unavailable; `None` while it
            is available, or if there is none.
        on_stream_failure: Called with such a failure.
    """

    def __init__(self) -> None:
        self.lost = False
        self.on_loss: set[Callable[[], None]] = set()
        self.stream_failure: McpError | None = None
        self.on_stream_failure: set[Callable[[McpError], None]] = set()
        self._lasting: dict[tuple[str, str], Any] = {}

    def sent(self, name: str, params: Any) -> None:
        """Store the params of a successful request: a Struct, a wire object or raw JSON."""
        wire = _decode(params) if isinstance(params, Raw) else to_builtins(params)
        if name == SET_LEVEL:
            self._lasting[name, ""] = wire
        elif name == SUBSCRIBE:
            self._lasting[SUBSCRIBE, wire["uri"]] = wire
        else:
            self._lasting.pop((SUBSCRIBE, wire["uri"]), None)

    def lose(self) -> None:
        """Mark the session as replaced."""
        self.lost = True
        for call in tuple(self.on_loss):
            call()

    def stream_changed(self, failure: McpError | None) -> None:
        """Store why the stream for messages of the server is unavailable; `None` if it is back."""
        self.stream_failure = failure
        if failure is not None:
            for call in tuple(self.on_stream_failure):
                call(failure)

    async def restore(self, request: Callable[[str, Any], Awaitable[Any]]) -> None:
        """Repeat the requests if the session was replaced. Failures are logged."""
        if not self.lost:
            return
        self.lost = False
        for (name, uri), params in tuple(self._lasting.items()):
            try:
                await request(name, params)
            except McpError as error:
                _logger.warning("%s %s: not restored in the new session: %s", name, uri, error)
