"""The wire trace: both directions of any channel, one JSON object a line, secrets masked.

The variable MCP_TRACE names the file. Several processes may name the same one: each line is one
append.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from .._wire import encode
from ..channel import Channel, RequestId, close_request_stream_of, close_sse_stream_of, transport_of
from ..errors import EndOfChannel, FrameError, RequestLost, TransportError
from .masking import masked, masked_text

VARIABLE = "MCP_TRACE"

_logger = logging.getLogger(__name__.partition(".")[0])

_DISK_FAILURES = {errno.EIO, errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


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
    JSON, or the text where it was none. What could not be received has `error` instead. Long
    texts may be cut, see `masking.SEARCH_LIMIT`.

    A trace never ends a session: where the file can't be written any further, that is logged once
    as a warning, and nothing more is recorded.

    Args:
        name: What it calls the channel.
        path: The file.

    Raises:
        TransportError: The file can't be opened, for another reason than a disk that is full or
            broken.
    """

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._path = path
        self._file = -1
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno not in _DISK_FAILURES:
                raise TransportError(
                    f"expected in {VARIABLE} a file to append to, came {path!r}: {error.strerror}"
                ) from error
            self._stop(error)

    def received(self, message: bytes) -> None:
        """Record what came."""
        if self._file >= 0:
            self._record("received", message=_readable(message))

    def not_received(self, error: Exception) -> None:
        """Record why nothing came."""
        if self._file >= 0:
            text = str(error).encode(errors="replace").decode()
            self._record("received", error=masked_text(text))

    def sent(self, message: bytes) -> None:
        """Record what goes out."""
        if self._file >= 0:
            self._record("sent", message=_readable(message))

    def close(self) -> None:
        """Close the file. Idempotent; what comes later is not recorded."""
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # of a network file system, about writes that were said to work
                os.close(file)

    def _record(self, direction: Literal["received", "sent"], **what: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        head = {"time": now, "direction": direction, "channel": self._name, "pid": os.getpid()}
        rest = memoryview(encode(head | what) + b"\n")
        try:
            while rest:  # a disk that becomes full takes a part first
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self._stop(error)
            self.close()

    def _stop(self, error: OSError) -> None:
        _logger.warning(
            "%s: nothing more is recorded in %r: %s", VARIABLE, self._path, error.strerror
        )


class TracedChannel:
    """A channel that records what passes.

    Args:
        channel: The channel.
        trace: Where to; closed with the channel.
    """

    def __init__(self, channel: Channel, trace: Trace) -> None:
        self._channel = channel
        self._trace = trace
        self.close_request_stream = close_request_stream_of(channel)
        self.release = close_sse_stream_of(channel)
        self.transport = transport_of(channel)

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
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return masked_text(message.decode(errors="replace"))
