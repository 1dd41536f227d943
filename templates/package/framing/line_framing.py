"""Line framing of messages. Opens no stream and decodes no JSON.

A message is one line. A chunk may end anywhere, so the reader keeps the incomplete tail, and
searches only new bytes for newlines: feeding byte by byte is not quadratic.
"""

from __future__ import annotations

from ..channel import MESSAGE_LIMIT, TooLong
from ..errors import LocalProtocolError


class LineReader:
    """Splits a byte stream into messages.

    Lines end with LF or CRLF. Blank lines are skipped.

    Args:
        limit: Longest message accepted, in bytes; it bounds the memory that a peer can use.

    Source: basic/transports (stdio).
    """

    __slots__ = ("_dropping", "_limit", "_tail")

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Feed the next bytes of the stream; return the messages that they complete, in order.

        A message over the limit is reported once, as soon as the limit is exceeded; the rest of its
        line is dropped.
        """
        first, *rest = data.split(b"\n")
        if not rest:
            return self._keep(first)
        messages: list[bytes | TooLong] = []
        if self._tail:
            self._tail += first
            first = bytes(self._tail)
            self._tail.clear()
        if self._dropping:
            self._dropping = False
        else:
            self._add(first, messages)
        last = rest.pop()
        for line in rest:
            self._add(line, messages)
        messages += self._keep(last)
        return messages

    def end(self) -> list[bytes | TooLong]:
        """End the stream; return the last message if it has no newline."""
        return self.feed(b"\n") if self._tail else []

    def _keep(self, data: bytes) -> list[bytes | TooLong]:
        if not self._dropping:
            self._tail += data
            # One more byte may be the CR of a CRLF.
            if len(self._tail) > self._limit + 1:
                self._tail.clear()
                self._dropping = True
                return [TooLong(self._limit)]
        return []

    def _add(self, line: bytes, messages: list[bytes | TooLong]) -> None:
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > self._limit:
            messages.append(TooLong(self._limit))
        elif line and not line.isspace():
            messages.append(line)


def frame_line(message: bytes) -> bytes:
    """Frame one message as a line.

    Raises:
        LocalProtocolError: The message has a raw newline, so it would be two lines.

    Source: basic/transports (stdio).
    """
    if b"\n" in message:
        at = message.index(b"\n")
        raise LocalProtocolError(f"expected a message on one line, came a newline at byte {at}")
    return message + b"\n"
