"""One connection to an engine, for commands of many tasks at once.

    commands of one turn of the event loop -> one write -> the engine -> replies in the same order

A connection of a pool serves one command at a time, and to get one and to wait for its reply is
most of what a command costs. Here no command waits for the replies before it, so commands that come
together share a write, a turn of the engine, and a read. The library makes the connection, with
TLS, password and database; from then on this is the protocol of its transport.

A connection that breaks is made anew, and commands without a reply are sent once more: each has to
do no harm if it is carried out twice. None may block, since all after it would wait for it.

Source: the protocol of Redis, version 2 (RESP2).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

Words: TypeAlias = tuple[str | bytes | int, ...]
"""A command and its arguments."""

_TRIES = 2  # of a command
_END = b"\r\n"


class _Command:
    """A command that has no reply yet, and how often it was sent."""

    __slots__ = ("data", "deadline", "reply", "sent")

    def __init__(self, data: bytes, reply: asyncio.Future[Any], deadline: float) -> None:
        self.data = data
        self.reply = reply
        self.deadline = deadline
        self.sent = 0


class RedisConnection(asyncio.Protocol):
    """A connection, made when a command needs it.

    Args:
        new_connection: Makes a connection of the library, not connected yet.
        failures: The exceptions that it raises.
        refused: Makes an exception of an error that the engine replies.
        seconds: Most seconds until a reply, and until the connection is made.
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
        self._received = b""
        self._connection: Any = None
        self._transport: Any = None
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def call(self, words: Words) -> asyncio.Future[Any]:
        """The reply to a command.

        The future fails with an exception of the library, with the one for an error that the engine
        replied, or with `OSError` if the connection broke twice or the reply took too long.
        """
        deadline = self._loop.time() + self._seconds
        command = _Command(_encoded(words), self._loop.create_future(), deadline)
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
        """Give the replies to their callers."""
        if self._received:
            data = self._received + data
        begin = 0
        while begin < len(data) and (reply := self._reply_in(data, begin)) is not None:
            value, begin = reply
            waiting = self._commands.popleft().reply
            if waiting.done():  # its caller was cancelled
                continue
            if isinstance(value, Exception):
                waiting.set_exception(value)
            else:
                waiting.set_result(value)
        self._received = data[begin:]

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
        # The library has no public name for it: its own way of sending makes a task per command.
        self._transport = connection._writer.transport
        self._transport.set_protocol(self)
        self._connection = connection
        for command in self._commands:
            self._send(command)

    def _disconnect(self, error: Exception, tries: int = 0) -> None:
        """Close the connection; commands fail that were sent so many times."""
        if self._connection is not None:
            self._connection._close()  # without waiting, as its destructor does
        self._connection = self._transport = None
        self._received = b""
        self._unsent.clear()
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
        """Fail all commands if the first one has waited for too long."""
        self._timer = None
        if self._commands and self._commands[0].deadline <= self._loop.time():
            self._disconnect(TimeoutError("no reply in time"))
        elif self._commands:
            self._timer = self._loop.call_at(self._commands[0].deadline, self._check_deadline)

    def _reply_in(self, data: bytes, begin: int) -> tuple[Any, int] | None:
        """The reply at an index, and where it ends; `None` if it is not complete yet."""
        end = data.find(_END, begin)
        if end < 0:
            return None
        kind, text, begin = data[begin : begin + 1], data[begin + 1 : end], end + len(_END)
        if kind == b"+":
            return text, begin
        if kind == b"-":
            return self._refused(text.decode("utf-8", "replace")), begin
        number = int(text)
        if kind == b":":
            return number, begin
        if number < 0:
            return (None, begin)
        if kind == b"$":
            end = begin + number
            return None if len(data) < end + len(_END) else (data[begin:end], end + len(_END))
        if kind != b"*":
            raise ValueError(f"expected a reply of RESP2, got {kind!r}")
        values: list[Any] = []
        for _ in range(number):
            reply = self._reply_in(data, begin)
            if reply is None:
                return None
            value, begin = reply
            values.append(value)
        return values, begin


def _encoded(words: Words) -> bytes:
    """A command on the wire: an array of strings."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        text = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(text), text))
    return b"".join(parts)
