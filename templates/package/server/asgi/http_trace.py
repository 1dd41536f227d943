"""The wire trace over HTTP: what one request brings, and what it is answered with."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from ...framing.line_framing import TooLong
from ...framing.sse import MEDIA_TYPE, EventDecoder
from .request import Send

if TYPE_CHECKING:
    from ...runtime.trace import Trace


class TracedSend:
    """A way out that records messages as they leave: documents whole, events one by one.

    Args:
        send: The way out.
        trace: Where to.
    """

    def __init__(self, send: Send, trace: Trace) -> None:
        self._send = send
        self._trace = trace
        self._events: EventDecoder | None = None

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Record, and send."""
        if message["type"] == "http.response.start":
            if (b"content-type", MEDIA_TYPE.encode()) in message["headers"]:
                self._events = EventDecoder()
        elif self._events is None:
            if message["body"]:
                self._trace.sent(message["body"])
        else:
            for event in self._events.feed(message["body"]):
                if not isinstance(event, TooLong) and event.data:
                    self._trace.sent(event.data)
        await self._send(message)
