"""Encoding of server-sent events, and what both sides of HTTP know of them. Opens no stream.

Source: basic/transports; html.spec.whatwg.org (server-sent events).
"""

from __future__ import annotations

import re

from ..errors import LocalProtocolError
from ..foreign_text import safe_repr

MEDIA_TYPE = "text/event-stream"
"""The content type of an event stream."""

MESSAGE = "message"
"""The default type of an event, and the type of events with a message."""

ENDPOINT = "endpoint"
"""The type of the event with the URL of the endpoint. Source: basic/transports (2024-11-05)."""

STREAM_PATH = "/sse"
"""The usual path of the stream of HTTP+SSE."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


def encode_event(
    data: bytes, *, type: str | None = None, id: str | None = None, retry: int | None = None
) -> bytes:
    """One event as bytes.

    Args:
        data: The data; each line becomes a line of the event.
        type: The type; `None` for the default type, `message`.
        id: The id; `None` for none.
        retry: Milliseconds that a client should wait before it reconnects.

    Raises:
        LocalProtocolError: Type or id hold a line break or a NUL, and would be decoded differently.
    """
    head = b""
    if type is not None:
        head += b"event: %b\n" % _one_line("type", type)
    if id is not None:
        head += b"id: %b\n" % _one_line("id", id)
    if retry is not None:
        head += b"retry: %d\n" % retry
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    return b"%bdata: %b\n\n" % (head, data)


def encode_comment(text: str = "") -> bytes:
    """A comment line, which keeps a connection alive.

    Raises:
        LocalProtocolError: The text holds a line break.
    """
    return b":%b\n\n" % (b" " + _one_line("comment", text) if text else b"")


def _one_line(what: str, text: str) -> bytes:
    if not text.isprintable() and any(mark in text for mark in "\r\n\0"):
        raise LocalProtocolError(f"expected one line as {what} of an event, got {safe_repr(text)}")
    return text.encode()
