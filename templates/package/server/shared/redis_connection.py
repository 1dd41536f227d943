"""One connection to an engine, which many tasks use concurrently.

    commands of one turn of the event loop -> one write -> the engine -> replies in the same order

A connection of a pool serves one command at a time; acquiring it and waiting for the reply is most
of the cost of a command. Here commands are pipelined: no command waits for earlier replies, so
concurrent commands share a write, a turn of the engine, and a read. The library makes the
connection, with TLS, password and database; then this class replaces the transport's protocol.

After a connection broke, a new connection is made, and commands without a reply are sent once more.
So each command has to be idempotent. No command may block, since all later commands would wait.

Each part of a reply is parsed once, when it has arrived. A reply of more than `REPLY_BYTES` closes
the connection and fails its command.

Source: the protocol of Redis, version 2 (RESP2).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Words: TypeAlias = tuple[str | bytes | int, ...]
"""A command and its arguments."""

REPLY_BYTES = 64 * 2**20
"""Most bytes of one reply."""

_TRIES = 2  # of a command
_END = b"\r\n"
_SIMPLE, _ERROR, _INTEGER, _BULK, _ARRAY = b"+-:$*"
_NUMBERED = frozenset((_INTEGER, _BULK, _ARRAY))
_ARRAY_BYTES = 8  # least memory that an item of an array takes, whatever its reply


class ReplyParser:
    """Parses replies that arrive in pieces.

    Args:
        refused: Makes an exception from the text of an error reply.
    """

    def __init__(self, refused: Callable[[str], Exception]) -> None:
        self._refused = refused
        self._received: bytes | bytearray = b""
        self._size = 0  # bytes of the current reply that were parsed
        self._arrays: list[tuple[int, list[Any]]] = []  # those without their last item: outer first

    def feed(self, data: bytes) -> Iterator[Any]:
        """The replies that are complete with these bytes.

        Raises:
            ValueError: A reply is not RESP2, or has more than `REPLY_BYTES`.
        """
        if self._received:
            self._received += data
        else:
            self._received = data
        received, begin, end = self._received, 0, len(self._received)
        while part := self._parse_part(received, begin):
            value, after = part
            self._size += after - begin
            begin = after
            if self._arrays:
                if value is self._arrays[-1][1]:
                    continue  # the items follow
                if not self._close_arrays(value):
                    continue
                value = self._arrays.pop()[1]
            self._size = 0
            yield value
        if isinstance(received, bytearray):
            del received[:begin]
        else:
            self._received = bytearray(received[begin:])
        self._check_size(end - begin)

    def _close_arrays(self, value: Any) -> bool:
        """Add an item to the innermost array; whether all arrays but the outer one are complete."""
        while True:
            length, items = self._arrays[-1]
            items.append(value)
            if len(items) < length:
                return False
            if len(self._arrays) == 1:
                return True
            value = self._arrays.pop()[1]

    def _parse_part(self, data: bytes | bytearray, begin: int) -> tuple[Any, int] | None:
        """A value, or an array without its items, and the index of its end; none if incomplete."""
        end = data.find(_END, begin)
        if end < 0:
            return None
        kind, after = data[begin], end + len(_END)
        if kind == _SIMPLE:
            return bytes(data[begin + 1 : end]), after
        if kind == _ERROR:
            return self._refused(data[begin + 1 : end].decode("utf-8", "replace")), after
        if kind not in _NUMBERED:
            raise ValueError(f"expected a reply of RESP2, got {bytes([kind])!r}")
        number = int(data[begin + 1 : end])
        if kind == _INTEGER:
            return number, after
        if number < 0:
            return None, after
        if kind == _BULK:
            self._check_size(number)
            end = after + number
            if len(data) < end + len(_END):
                return None
            return bytes(data[after:end]), end + len(_END)
        self._check_size(number * _ARRAY_BYTES)
        items: list[Any] = []
        if number:
            self._arrays.append((number, items))
        return items, after

    def _check_size(self, more: int) -> None:
        if self._size + more > REPLY_BYTES:
            raise ValueError(f"expected a reply of at most {REPLY_BYTES} bytes, got more")


class _Command:
    """A command without a reply, and how often the command was sent."""

    __slots__ = ("data", "deadline", "reply", "sent")

    def __init__(self, data: bytes, reply: asyncio.Future[Any], deadline: float) -> None:
        self.data = data
        self.reply = reply
        self.deadline = deadline
        self.sent = 0


class RedisConnection(asyncio.Protocol):
    """A connection that is made for the first command, and again after it broke.

    Args:
        new_connection: Makes a connection of the library that is not connected yet.
        failures: The exceptions of a failed connection attempt.
        refused: Makes an exception from the text of an error reply.
        seconds: Most seconds to wait for a reply, or for the connection to be made.
    """

    def __init__(
        self,
        new_connection: Callable[[], Any],
        failures: tuple[type[Exception], ...],
        refused: Callable[[str], Exception],
        seconds: float,
    ) -> None:
        self._new_connection = new_connection
        self._failures = failures
        self._refused = refused
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._commands: deque[_Command] = deque()
        self._unsent: list[bytes] = []
        self._parser = ReplyParser(refused)
        self._connection: Any = None
        self._transport: Any = None
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def call(self, words: Words) -> asyncio.Future[Any]:
        """The reply to a command.

        The future fails with an exception of the library, with the exception for an error reply of
        the engine, or with `OSError` if the connection broke twice or the reply took too long.
        """
        deadline = self._loop.time() + self._seconds
        command = _Command(_encode_command(words), self._loop.create_future(), deadline)
        self._commands.append(command)
        if self._timer is None:
            self._timer = self._loop.call_at(deadline, self._check_deadline)
        if self._transport is not None:
            self._send(command)
        else:
            self._connect_soon()
        return command.reply

    async def close(self) -> None:
        """Close the connection. Commands without a reply fail."""
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        self._disconnect(ConnectionError("closed"))

    def data_received(self, data: bytes) -> None:
        """Set the results of the commands whose replies have arrived."""
        try:
            for value in self._parser.feed(data):
                future = self._commands.popleft().reply
                if future.done():  # the caller was cancelled
                    continue
                if isinstance(value, Exception):
                    future.set_exception(value)
                else:
                    future.set_result(value)
        except (ValueError, IndexError) as error:  # a reply that is too long, or to no command
            failure = ConnectionError(str(error))
            if self._commands and not (failed := self._commands.popleft().reply).done():
                failed.set_exception(failure)
            self._disconnect(failure, tries=_TRIES)

    def connection_lost(self, exc: Exception | None) -> None:
        """Send the commands without a reply once more."""
        if self._transport is not None:
            self._disconnect(exc or ConnectionError("closed by the engine"), tries=_TRIES)

    def _send(self, command: _Command) -> None:
        command.sent += 1
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(command.data)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _connect_soon(self) -> None:
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        connection = self._new_connection()
        try:
            async with asyncio.timeout(self._seconds):
                await connection.connect()
        except self._failures as error:
            self._disconnect(error)
            return
        finally:
            self._connecting = None
        # The library has no public name for the transport. Its own `send` makes a task per command.
        self._transport = connection._writer.transport
        self._transport.set_protocol(self)
        self._connection = connection
        for command in self._commands:
            self._send(command)

    def _disconnect(self, error: Exception, tries: int = 0) -> None:
        """Close the connection; commands that were sent `tries` times or more fail."""
        if self._connection is not None:
            self._connection._close()  # without waiting, as its destructor does
        self._connection = self._transport = None
        self._parser = ReplyParser(self._refused)
        commands, self._commands = self._commands, deque()
        for command in commands:
            if command.reply.done():
                continue
            if command.sent < tries:
                self._commands.append(command)
            else:
                command.reply.set_exception(error)
        if self._commands:
            self._connect_soon()

    def _check_deadline(self) -> None:
        """Close the connection and fail all commands if the oldest is past its deadline."""
        self._timer = None
        if self._commands and self._commands[0].deadline <= self._loop.time():
            self._disconnect(TimeoutError("no reply in time"))
        elif self._commands:
            self._timer = self._loop.call_at(self._commands[0].deadline, self._check_deadline)


def _encode_command(words: Words) -> bytes:
    """Encode a command as an array of strings."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        text = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(text), text))
    return b"".join(parts)
