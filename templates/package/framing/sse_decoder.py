"""Decoding of server-sent events. Opens no stream and decodes no JSON.

An event consists of several lines and a blank line. Lines end with LF, CRLF or CR, and a chunk may
end anywhere: a CR ends its line at once, and a following LF is skipped, even in the next chunk. An
incomplete event at the end of the stream is dropped.

Source: basic/transports; html.spec.whatwg.org (server-sent events).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from ..channel import MESSAGE_LIMIT, TooLong
from .sse import MESSAGE

FIELD_LIMIT = 8192
"""Most bytes of an id or a type. A longer id counts as absent: it would not fit into the header
field that resumes a stream. A longer type is cut, and then matches no known type."""

_BOM = b"\xef\xbb\xbf"
_DATA = b"data:"
_TELLING = len(_BOM + _DATA + b" ")  # bytes of a line that show whether it has data
_DROPPED = b":"  # replaces a line over the limit: a comment, which is ignored
_RETRY_DIGITS = 9  # more than eleven days
_FIELD_NAME = 16  # bytes that the name of a field adds to its line


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event.

    Attributes:
        data: The lines of data, joined by LF; empty for an event that only sets the id.
        type: `message` by default.
        id: The last id that this or an earlier event of the stream set; empty for none.
    """

    data: bytes
    type: str = MESSAGE
    id: str = ""


Decoded: TypeAlias = "list[ServerSentEvent | TooLong]"
"""The events that the fed bytes completed, in order."""


class EventDecoder:
    """Splits a byte stream into events.

    Args:
        limit: Longest event accepted, in bytes. The decoder uses little more than twice as much
            memory in the worst case.

    Attributes:
        last_id: The last id that a complete event set; `None` before. A client resumes the stream
            with this id.
        retry: Milliseconds to wait before reconnecting, if the stream has set a value.
    """

    __slots__ = (
        "_data",
        "_dropping",
        "_id",
        "_in_data",
        "_limit",
        "_size",
        "_skip_lf",
        "_started",
        "_tail",
        "_tail_size",
        "_type",
        "last_id",
        "retry",
    )

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self.last_id: str | None = None
        self.retry: int | None = None
        self._limit = limit
        # Of an incomplete line: the needed part, the length, and whether the line has data.
        self._tail = bytearray()
        self._tail_size = 0
        self._in_data = False
        # One line of data is kept as received; several are collected in one array, as objects take
        # more memory than short lines.
        self._data: bytes | bytearray | None = None
        self._size = 0
        self._type = ""
        self._id: str | None = None
        self._dropping = self._skip_lf = self._started = False

    def feed(self, data: bytes) -> Decoded:
        """Feed the next bytes of the stream; return the events that they complete, in order.

        An event over the limit is reported once, as soon as the limit is exceeded.
        """
        if self._skip_lf and data:
            self._skip_lf = False
            data = data.removeprefix(b"\n")
        if not data:
            return []
        decoded: Decoded = []
        lines = data.splitlines()
        unfinished = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        self._skip_lf = data.endswith(b"\r")
        if lines and self._tail_size:
            self._finish_line(lines.pop(0), decoded)
        for line in lines:
            self._take(line, decoded)
        if unfinished:
            self._keep(unfinished, decoded)
        return decoded

    def _keep(self, part: bytes, decoded: Decoded) -> None:
        """Store a part of an incomplete line."""
        self._tail_size += len(part)
        if self._in_data:
            self._add_to_data(part, decoded)
            return
        self._tail += part
        if len(self._tail) >= _TELLING:
            if not self._started:
                self._started = True
                if self._tail.startswith(_BOM):
                    del self._tail[: len(_BOM)]
            if self._tail.startswith(_DATA) and not self._dropping:
                self._begin_data(decoded)
                return
        if self._tail_size + self._size > self._limit + _FIELD_NAME:
            self._drop(decoded)
            self._tail[:] = _DROPPED

    def _begin_data(self, decoded: Decoded) -> None:
        """Move the stored part of a line to the data of the event."""
        value = bytes(self._tail[len(_DATA) :]).removeprefix(b" ")
        self._tail.clear()
        self._in_data = True
        self._data = bytearray() if self._data is None else self._with_line_break(self._data)
        self._size += 1
        self._add_to_data(value, decoded)

    def _add_to_data(self, part: bytes, decoded: Decoded) -> None:
        """Add a part of a line of data; drop the event if it is too long."""
        self._size += len(part)
        if self._size - 1 > self._limit:
            self._drop(decoded)
        elif isinstance(self._data, bytearray):
            self._data += part

    def _finish_line(self, rest: bytes, decoded: Decoded) -> None:
        """Process the incomplete line with its end."""
        size, self._tail_size = self._tail_size + len(rest), 0
        self._tail += rest
        line = bytes(self._tail)
        self._tail.clear()
        if self._in_data:
            self._add_to_data(rest, decoded)
            self._in_data = False
        elif size > self._limit + _FIELD_NAME:
            self._drop(decoded)
        else:
            self._take(line, decoded)

    def _take(self, line: bytes, decoded: Decoded) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            self._close(decoded)
        elif len(line) > self._limit + _FIELD_NAME:
            self._drop(decoded)
        elif name == b"data":
            self._size += len(value) + 1
            if self._size - 1 > self._limit:
                self._drop(decoded)
            elif not self._dropping:
                self._add_line(value)
        elif name == b"event":
            self._type = value[:FIELD_LIMIT].decode(errors="replace")
        elif name == b"id":
            if len(value) > FIELD_LIMIT:
                self._id = ""
            elif b"\0" not in value:
                self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self.retry = int(value)

    def _add_line(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
        else:
            self._data = self._with_line_break(self._data)
            self._data += value

    @staticmethod
    def _with_line_break(data: bytes | bytearray) -> bytearray:
        """The data as an array to which a line can be added; an array is not copied."""
        lines = data if isinstance(data, bytearray) else bytearray(data)
        lines += b"\n"
        return lines

    def _close(self, decoded: Decoded) -> None:
        """Complete the event at a blank line; an event without data only sets the id."""
        if not self._dropping:
            if self._id is not None:
                self.last_id = self._id
            if self._data is not None:
                data = bytes(self._data)
                decoded.append(ServerSentEvent(data, self._type or MESSAGE, self.last_id or ""))
        self._data = self._id = None
        self._size = 0
        self._type = ""
        self._dropping = False

    def _drop(self, decoded: Decoded) -> None:
        if not self._dropping:
            decoded.append(TooLong(self._limit))
        self._dropping = True
        self._data = None
