"""The wire trace: both directions of a channel, one JSON object per line, with secrets masked.

The environment variable MCP_TRACE names the file. Several processes may use the same file: each
line is one append.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from .._wire import encode, is_many, is_object
from ..channel import Channel, OutgoingMessage, RequestId, logger
from ..errors import EndOfChannel, FrameError, RequestLost, TransportError

VARIABLE = "MCP_TRACE"

SecretNames: TypeAlias = Callable[[str], Collection[str]]
"""Returns the secret arguments of a tool: names of arguments, and of members within."""

_CLOSED = -1  # in place of a descriptor
_DISK_FAILURES = {errno.EIO, errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class TraceSink(Protocol):
    """Stores the records of a trace.

    Attributes:
        closed: Whether further records are dropped.
    """

    @property
    def closed(self) -> bool: ...

    def write(self, record: Mapping[str, Any]) -> None:
        """Store one record."""
        ...

    def close(self) -> None:
        """Drop later records. Idempotent."""
        ...


TRACE_SINK: ContextVar[TraceSink | None] = ContextVar("trace_sink", default=None)
"""Receives the records of the channels that are opened in this context, besides MCP_TRACE."""


def trace_channel(channel: Channel, name: str, secret_names: SecretNames | None = None) -> Channel:
    """Wrap a channel to record its messages, if a trace is enabled; otherwise return it.

    Args:
        name: Name of the channel in the trace, such as `client` or a server's name.
        secret_names: The secret arguments of each tool, where these are declared.
    """
    trace = trace_of(name, secret_names)
    if trace is not None:
        channel = TracedChannel(channel, trace)
    sink = TRACE_SINK.get()
    return channel if sink is None else TracedChannel(channel, Trace(name, sink, secret_names))


def trace_of(name: str, secret_names: SecretNames | None = None) -> Trace | None:
    """The trace for a channel; `None` if MCP_TRACE is not set.

    Raises:
        TransportError: The file can't be written.
    """
    path = os.environ.get(VARIABLE)
    return open_trace(path, name, secret_names) if path else None


def open_trace(path: str, name: str, secret_names: SecretNames | None = None) -> Trace:
    """A trace in a file, to which it is appended; see `Trace`.

    Raises:
        TransportError: The file can't be written.
    """
    return Trace(name, _TraceFile(path), secret_names)


class Trace:
    """Records the messages of one channel.

    A record has `time` (UTC), `direction` (`received` or `sent`), `channel`, `pid` and `message`:
    the decoded JSON, or the text if it is not JSON. It has `masked`, which is true, if secrets in
    the message were replaced by `***`, or a long text was cut (see `masking.SEARCH_LIMIT`). The
    record of a failed receive has `error` in place of the message, and `end`, which is true, if
    the peer closed the channel.

    Args:
        name: Name of the channel.
        sink: Stores the records.
        secret_names: The secret arguments of each tool, which are masked.
    """

    def __init__(self, name: str, sink: TraceSink, secret_names: SecretNames | None = None) -> None:
        self._name = name
        self._sink = sink
        self._secret_names = secret_names

    def record_received(self, message: bytes) -> None:
        """Record a received message."""
        if not self._sink.closed:
            self._record("received", **_mask_message(message, self._secret_names))

    def record_failure(self, error: Exception) -> None:
        """Record the error of a failed receive."""
        if not self._sink.closed:
            from .masking import mask_text  # its patterns take long to compile

            text = str(error).encode(errors="replace").decode()
            end = {"end": True} if isinstance(error, EndOfChannel) else {}
            self._record("received", error=mask_text(text), **end)

    def record_sent(self, message: bytes) -> None:
        """Record a message to send."""
        if not self._sink.closed:
            self._record("sent", **_mask_message(message, self._secret_names))

    def close(self) -> None:
        """Close the sink; later messages are not recorded. Idempotent."""
        self._sink.close()

    def _record(self, direction: Literal["received", "sent"], **what: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        head = {"time": now, "direction": direction, "channel": self._name, "pid": os.getpid()}
        self._sink.write(head | what)


class _TraceFile:
    """A file to which records are appended, one line each.

    A failing trace never ends a session: if the file can no longer be written, one warning is
    logged and nothing more is recorded.

    Raises:
        TransportError: The file can't be opened, except for a disk that is full or broken.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _CLOSED
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno not in _DISK_FAILURES:
                raise TransportError(
                    f"expected in {VARIABLE} a file to append to, came {path!r}: {error.strerror}"
                ) from error
            self._stop(error)

    @property
    def closed(self) -> bool:
        return self._file == _CLOSED

    def write(self, record: Mapping[str, Any]) -> None:
        rest = memoryview(encode(record) + b"\n")
        try:
            while rest:  # a full disk may accept a part
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self._stop(error)
            self.close()

    def close(self) -> None:
        file, self._file = self._file, _CLOSED
        with suppress(OSError):  # already closed, or a failed write of a network file system
            os.close(file)

    def _stop(self, error: OSError) -> None:
        logger.warning(
            "%s: nothing more is recorded in %r: %s", VARIABLE, self._path, error.strerror
        )


class TracedChannel(Channel):
    """A channel that records messages.

    Args:
        channel: The channel.
        trace: The trace; closed with the channel.
    """

    def __init__(self, channel: Channel, trace: Trace) -> None:
        self._channel = channel
        self._trace = trace
        self.transport = channel.transport or type(channel).__name__
        self._closing = False

    @property
    def session_id(self) -> str | None:  # type: ignore[override]  # of the channel, at any time
        """See `Channel`."""
        return self._channel.session_id

    async def receive(self) -> bytes:
        """Receive a message and record it, or the error."""
        try:
            message = await self._channel.receive()
        except (EndOfChannel, FrameError, RequestLost) as error:
            if not self._closing:
                self._trace.record_failure(error)
            raise
        self._trace.record_received(message)
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Record the message, then send it, so that a response is recorded after its request."""
        self._trace.record_sent(message.data)
        await self._channel.send(message)

    async def close(self) -> None:
        """Close the channel and the file."""
        self._closing = True
        try:
            await self._channel.close()
        finally:
            self._trace.close()

    def close_request_stream(self, identifier: RequestId) -> bool:
        """Close the stream of a request of this side; see `Channel`."""
        return self._channel.close_request_stream(identifier)

    async def close_sse_stream(self, identifier: RequestId) -> bool:
        """Close the connection of a request of the peer; see `Channel`."""
        return await self._channel.close_sse_stream(identifier)


def _mask_message(message: bytes, secret_names: SecretNames | None) -> dict[str, Any]:
    """The members of a record for a message, decoded if it is JSON, with secrets masked."""
    from .masking import mask_text, mask_value  # their patterns take long to compile

    try:
        decoded = msgspec.json.decode(message)
        has_secrets = secret_names is not None and _mask_arguments(decoded, secret_names)
        masked = mask_value(decoded)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        decoded, has_secrets = message.decode(errors="replace"), False
        masked = mask_text(decoded)
    is_masked = has_secrets or masked != decoded
    return {"message": masked, "masked": True} if is_masked else {"message": masked}


def _mask_arguments(message: Any, secret_names: SecretNames) -> bool:
    """Mask the declared secrets among the arguments of a decoded call, in place.

    Returns:
        Whether any was masked.
    """
    is_masked = False
    for each in message if is_many(message) else (message,):
        params = _member(each, "params")
        tool = _member(params, "name")
        names = secret_names(tool) if isinstance(tool, str) else ()
        if names and "arguments" in params:
            from .masking import mask_members

            arguments = params["arguments"]
            params["arguments"] = mask_members(arguments, names)
            is_masked = is_masked or params["arguments"] != arguments
    return is_masked


def _member(value: Any, name: str) -> Any:
    return value.get(name) if is_object(value) else None
