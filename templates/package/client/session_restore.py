"""What a server keeps for a session of ours, asked for anew when the session is another one.

A transport may lose a session and open another in its place without a word to those who use it.
The log level and the subscriptions of the old one are then asked for again, before anything else.

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
    """The requests whose effect lasts for as long as a session.

    Attributes:
        lost: Whether the session is another one, and the requests are not made again yet.
        on_loss: Called when the session is another one.
        stream_failure: Why the stream with the server's own messages can't be had at present;
            `None` while it can, or where there was never one.
        on_stream_failure: Called with the failure when there is one.
    """

    def __init__(self) -> None:
        self.lost = False
        self.on_loss: set[Callable[[], None]] = set()
        self.stream_failure: McpError | None = None
        self.on_stream_failure: set[Callable[[McpError], None]] = set()
        self._asked: dict[tuple[str, str], Any] = {}

    def noted(self, name: str, params: Any) -> None:
        """Take note of such a request that succeeded, its params typed, a wire object or raw."""
        wire = _decode(params) if isinstance(params, Raw) else to_builtins(params)
        if name == SET_LEVEL:
            self._asked[name, ""] = wire
        elif name == SUBSCRIBE:
            self._asked[SUBSCRIBE, wire["uri"]] = wire
        else:
            self._asked.pop((SUBSCRIBE, wire["uri"]), None)

    def lose(self) -> None:
        """The session is another one."""
        self.lost = True
        for call in tuple(self.on_loss):
            call()

    def stream_changed(self, failure: McpError | None) -> None:
        """The stream with the server's own messages can't be had, or by `None` is there again."""
        self.stream_failure = failure
        if failure is not None:
            for call in tuple(self.on_stream_failure):
                call(failure)

    async def restore(self, ask: Callable[[str, Any], Awaitable[Any]]) -> None:
        """Make the requests again, if that has to be done; failures are logged."""
        if not self.lost:
            return
        self.lost = False
        for (name, about), params in tuple(self._asked.items()):
            try:
                await ask(name, params)
            except McpError as error:
                _logger.warning("%s %s: not restored in the new session: %s", name, about, error)
