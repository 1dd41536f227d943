"""The wire trace: both directions of any channel, one JSON object a line, secrets masked.

The variable MCP_TRACE names the file. Several processes may name the same one: each line is one
append.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import Any, Literal, TypeGuard

import msgspec

from ._wire import encode
from .channel import Channel, RequestId, abandon_of, release_of
from .errors import EndOfChannel, FrameError, RequestLost, TransportError

VARIABLE = "MCP_TRACE"
MASK = "***"

_SECRET_NAME = re.compile(
    r"authorization|api[-_.]?key|access[-_.]?key|private[-_.]?key|passw(or)?d|passphrase|secret"
    r"|cookie|credential|(?<!progress)token$",
    re.IGNORECASE,
)
# Between name and value, as headers, queries, settings and JSON within a string write it.
_IS = r"""(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?"""
_VALUE = r"""[^\s"'&,;\\{}\[\]]+"""
_SECRET_TEXT = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b(bearer\s+)[\w.~+/=-]{8,}", rf"\1{MASK}"),
        (rf"(authorization{_IS}(?:bearer\s+|basic\s+)?){_VALUE}", rf"\1{MASK}"),
        (
            rf"((?:api[-_]?key|passw(?:or)?d|secret|(?<!progress)token|cookie){_IS}){_VALUE}",
            rf"\1{MASK}",
        ),
        (r"(://[^/\s:@]*:)[^/\s@]+(@)", rf"\1{MASK}\2"),
    )
)


def traced(channel: Channel, name: str) -> Channel:
    """The channel, recorded if MCP_TRACE is set; otherwise the channel itself.

    Args:
        name: What the trace calls the channel, such as `client` or a server's name.
    """
    trace = trace_of(name)
    return channel if trace is None else TracedChannel(channel, trace)


def trace_of(name: str) -> Trace | None:
    """The trace under a name; `None` if MCP_TRACE is not set.

    Raises:
        TransportError: The file can't be written.
    """
    path = os.environ.get(VARIABLE)
    return Trace(name, path) if path else None


class Trace:
    """A file to which messages are appended.

    A line has `time` (UTC), `direction` (`received` or `sent`), `channel`, `pid` and `message`: the
    JSON, or the text where it was none. What could not be received has `error` instead.

    Args:
        name: What it calls the channel.
        path: The file.

    Raises:
        TransportError: The file can't be written.
    """

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise TransportError(
                f"expected in {VARIABLE} a file to append to, came {path!r}: {error.strerror}"
            ) from error

    def received(self, message: bytes) -> None:
        """Record what came."""
        self._record("received", message=_readable(message))

    def not_received(self, error: Exception) -> None:
        """Record why nothing came."""
        self._record("received", error=_masked_text(str(error)))

    def sent(self, message: bytes) -> None:
        """Record what goes out."""
        self._record("sent", message=_readable(message))

    def close(self) -> None:
        """Close the file. Idempotent; what comes later is not recorded."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _record(self, direction: Literal["received", "sent"], **what: Any) -> None:
        if self._file < 0:
            return
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        head = {"time": now, "direction": direction, "channel": self._name, "pid": os.getpid()}
        os.write(self._file, encode(head | what) + b"\n")


class TracedChannel:
    """A channel that records what passes.

    Args:
        channel: The channel.
        trace: Where to; closed with the channel.
    """

    def __init__(self, channel: Channel, trace: Trace) -> None:
        self._channel = channel
        self._trace = trace
        self.abandon = abandon_of(channel)
        self.release = release_of(channel)

    async def receive(self) -> bytes:
        """Receive, and record it, or why not."""
        try:
            message = await self._channel.receive()
        except (EndOfChannel, FrameError, RequestLost) as error:
            self._trace.not_received(error)
            raise
        self._trace.received(message)
        return message

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        """Record, and send: an answer can't be on record before its question."""
        self._trace.sent(message)
        await self._channel.send(message, about)

    async def close(self) -> None:
        """Close the channel and the file."""
        try:
            await self._channel.close()
        finally:
            self._trace.close()


def _readable(message: bytes) -> Any:
    try:
        return masked(msgspec.json.decode(message))
    except (msgspec.DecodeError, RecursionError):
        return _masked_text(message.decode(errors="replace"))


def masked(value: Any) -> Any:
    """A copy of decoded JSON without secrets: members by name, tokens within text by shape.

    Members of a JSON Schema's `properties` keep their schemas; only plain values are masked there.
    """
    if _is_object(value):
        return {name: _masked_member(name, member) for name, member in value.items()}
    if _is_array(value):
        return [masked(item) for item in value]
    return _masked_text(value) if isinstance(value, str) else value


def _masked_member(name: str, value: Any) -> Any:
    if name == "properties" and _is_object(value):
        return {
            inner: masked(member) if _is_object(member) else _masked_member(inner, member)
            for inner, member in value.items()
        }
    if value is not None and not isinstance(value, bool) and _SECRET_NAME.search(name):
        return MASK
    return masked(value)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _masked_text(text: str) -> str:
    for pattern, replacement in _SECRET_TEXT:
        text = pattern.sub(replacement, text)
    return text
