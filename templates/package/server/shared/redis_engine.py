"""Shared state in an engine that speaks the protocol of Redis: Redis, Valkey, KeyDB, and others.

Only commands of Redis 6.2 are used. The keys of one server begin with `mcp:{name}:`; the braces
keep the keys in one slot of a cluster. Keys expire unless a running server renews them.

    session:ID     a string: the version of the record as 8 bytes, then the record
    changes        a stream of at most `KEPT_CHANGES` entries
    events:ID      a stream: the events of all streams of a session, `0-1`, `0-2` and so on
    streams:ID     a hash: the states of the streams of a session, and the size of its events
    used:DIGEST    exists while an id counts as used
    inbox:WORKER   a stream of letters
    alive:WORKER   exists while the worker calls `beat`

A cursor names an entry by its id and by random bytes in its data. If the entry does not exist any
more, the engine has lost its data, or the reader was too slow: both cases are a gap. The id alone
is not enough: an engine that lost its data may assign the same id within a millisecond.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec

from ...channel import RequestId
from ...errors import MissingExtraError
from ...runtime.pending_requests import PARTING_SECONDS
from ..asgi import event_store
from ..asgi.event_store import StoredEvent, StoredEvents, split_event_id
from . import bus
from .bus import ALIVE_SECONDS, LETTERS, WAIT_SECONDS, Changes, SharedStateError
from .redis_connection import RedisConnection, Words
from .session_store import SessionRecord, decode_record, encode_record

SCHEMES = ("redis", "rediss", "unix")
"""Schemes of URLs: TCP, TLS, and a socket of the file system."""

EVENTS = 1000
"""Most events of one session; the oldest are dropped."""

EVENT_BYTES = 2**20
"""Most bytes of the messages of one session, not counting the newest; the oldest are dropped."""

EVENT_SECONDS = 3600.0
"""Seconds for which the events of a session are stored after its last event."""

_CLOSED = "the engine of the shared state is not opened yet, or closed"
_SECONDS = 5.0  # time limit of a command, and of a connection attempt
_DAY_MS = 86_400_000
_BATCH = 500  # most entries of one read
_TOKEN_BYTES = 8  # random bytes before the data of an entry
_SEPARATOR = " "  # in a cursor, between id and token
_VERSION = struct.Struct(">Q")

_REPLACE = """
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
"""
"""Replaces a string if its value begins with the expected bytes."""

_ADD = """
local streams, name = KEYS[2], 's' .. ARGV[1]
local state = redis.call('HGET', streams, name)
if state then
  if string.sub(state, 2, 9) == ARGV[5] then return tonumber(string.match(state, '^%d+', 10)) end
  if string.sub(state, 1, 1) == '1' then return 0 end
end
local number = redis.call('HINCRBY', streams, 'last', 1)
redis.call('HSET', streams, name, ARGV[4] .. ARGV[5] .. number .. ' ' .. ARGV[3])
redis.call('XADD', KEYS[1], '0-' .. number, 's', ARGV[1], 'd', ARGV[2], 'o', ARGV[4])
local size = redis.call('HINCRBY', streams, 'size', #ARGV[2])
local count = redis.call('XLEN', KEYS[1])
while count > 1 and (count > tonumber(ARGV[6]) or size > tonumber(ARGV[7])) do
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local dropped, of = string.sub(first[1], 3), 's' .. first[2][2]
  redis.call('XDEL', KEYS[1], first[1])
  redis.call('HSET', streams, 'edge', dropped)
  if first[2][6] == '1' then redis.call('HDEL', streams, of) end
  size = redis.call('HINCRBY', streams, 'size', 0 - #first[2][4])
  count = count - 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[8])
redis.call('PEXPIRE', streams, ARGV[8])
return number
"""
"""Adds an event unless its stream has ended, drops the oldest events, and returns the number.

The field of a stream holds: whether the stream has ended; the token of the command that added its
last event, so that a repeated command adds none; the number of that event; and open request ids.
"""


class RedisEngine:
    """Connections to one engine, for use inside the context manager `opened`.

    Args:
        url: The URL of the engine.
        name: Name of the server.

    Raises:
        ValueError: The URL is not that of an engine.
        MissingExtraError: `valkey` is not installed.
    """

    def __init__(self, url: str, name: str) -> None:
        try:
            import valkey.asyncio
            from valkey.exceptions import ResponseError, ValkeyError
        except ImportError:
            raise MissingExtraError("shared='redis://...'", "valkey") from None
        self._library: Any = valkey.asyncio  # the types of the library are incomplete
        self._refused: Callable[[str], Exception] = ResponseError
        self._failures = (ValkeyError, OSError, TimeoutError)
        self._connection: RedisConnection | None = None
        self._url = url
        self._prefix = f"mcp:{{{name}}}:"
        self._client: Any = None
        self._check()

    def _check(self) -> None:
        try:
            parts = urlsplit(self._url)
            if parts.scheme in SCHEMES and (parts.hostname or parts.path):
                self._library.ConnectionPool.from_url(self._url)
                return
        except ValueError:
            pass
        raise ValueError(
            "shared: expected the URL of an engine, such as redis://127.0.0.1:6379/0, rediss://... "
            "for TLS, or unix:///path, got another text (not shown: it may have a password)"
        )

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Enable connections while the block runs. They are made on demand.

        Raises:
            RuntimeError: The event loop is not an asyncio loop.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            text = "shared='redis://...' needs asyncio: its library does not run on trio"
            raise RuntimeError(text) from None
        from valkey.asyncio.retry import Retry
        from valkey.backoff import NoBackoff

        options: dict[str, Any] = {
            "retry": Retry(NoBackoff(), 1),  # once, after the engine closed the connection
            "socket_connect_timeout": _SECONDS,
            "lib_name": None,  # a name would be sent by a command that 6.2 lacks
            "lib_version": None,
        }
        if urlsplit(self._url).scheme == "rediss":
            options["ssl_check_hostname"] = True
        client = self._library.Valkey.from_url(self._url, **options, socket_timeout=_SECONDS)
        client.response_callbacks.clear()  # this module parses the replies
        untimed = self._library.ConnectionPool.from_url(self._url, **options, socket_timeout=None)
        connection = RedisConnection(
            untimed.make_connection, self._failures, self._refused, _SECONDS
        )
        self._client, self._connection = client, connection
        try:
            yield
        finally:
            self._client = self._connection = None
            with anyio.move_on_after(PARTING_SECONDS, shield=True):
                await connection.close()
                await client.aclose()

    def key(self, *parts: str) -> str:
        """A key of this server."""
        return self._prefix + ":".join(parts)

    async def call(self, *words: str | bytes | int) -> Any:
        """The reply to a command that does not block.

        Raises:
            SharedStateError: The engine can't be reached, or refused the command.
        """
        connection = self._connection
        if connection is None:
            raise SharedStateError(_CLOSED)
        try:
            return await connection.call(words)
        except self._failures as error:
            raise self._error(error) from error

    async def call_all(self, *commands: Words) -> list[Any]:
        """The replies to commands that do not block, sent together.

        Raises:
            SharedStateError: The engine can't be reached, or refused a command.
        """
        connection = self._connection
        if connection is None:
            raise SharedStateError(_CLOSED)
        try:
            return await asyncio.gather(*map(connection.call, commands))
        except self._failures as error:
            raise self._error(error) from error

    async def wait(self, *commands: Words) -> list[Any]:
        """The replies to commands that may block, over a separate connection.

        Raises:
            SharedStateError: The engine can't be reached, or refused a command.
        """
        if self._client is None:
            raise SharedStateError(_CLOSED)
        pipeline = self._client.pipeline(transaction=False)
        for words in commands:
            pipeline.execute_command(*words)
        try:
            replies: list[Any] = await pipeline.execute()
        except self._failures as error:
            raise self._error(error) from error
        return replies

    async def replace(self, key: str, head: bytes, value: bytes) -> bool:
        """Replace a string if its value begins with `head`; `False` otherwise.

        Raises:
            SharedStateError: The engine can't be reached, or refused the command.
        """
        return bool(await self.call("EVAL", _REPLACE, 1, key, head, value))

    def _error(self, error: BaseException) -> SharedStateError:
        """An error whose text contains no part of the URL."""
        kind = type(error).__name__
        return SharedStateError(f"the engine of the shared state can't be used: {kind}")


class RedisBus:
    """A bus in an engine. See `Bus`."""

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine
        self._changes = engine.key("changes")
        self._cursors: dict[str, str] = {}

    async def publish(self, change: bytes) -> None:
        """Append a change to the stream."""
        await self._add(change)

    async def changes(self, cursor: str | None) -> Changes:
        """Read the entries after a cursor."""
        if cursor is None:
            return Changes(await self._add(b""))
        wait = round(WAIT_SECONDS * 1000)
        last, _, token = cursor.partition(_SEPARATOR)
        read, last_entry = await self._engine.wait(
            ("XREAD", "COUNT", _BATCH, "BLOCK", wait, "STREAMS", self._changes, last),
            ("XRANGE", self._changes, last, last),
        )
        if not last_entry or last_entry[0][1][1][:_TOKEN_BYTES].hex() != token:
            return Changes(await self._add(b""), gap=True)
        entries = _entries_of(read)
        if not entries:
            return Changes(cursor)
        newest, data = entries[-1]
        changes = [data[_TOKEN_BYTES:] for _, data in entries if len(data) > _TOKEN_BYTES]
        return Changes(_cursor_of(newest, data), changes)

    async def send(self, worker: str, letter: bytes) -> bool:
        """Append a letter to the inbox of a worker."""
        inbox = self._engine.key("inbox", worker)
        alive, _, _ = await self._engine.call_all(
            ("EXISTS", self._engine.key("alive", worker)),
            ("XADD", inbox, "MAXLEN", "~", LETTERS, "*", "d", letter),
            ("PEXPIRE", inbox, _DAY_MS),
        )
        return bool(alive)

    async def receive(self, worker: str) -> Sequence[bytes]:
        """Read the inbox."""
        inbox = self._engine.key("inbox", worker)
        wait = round(WAIT_SECONDS * 1000)
        cursor = self._cursors.get(worker, "0")
        [read] = await self._engine.wait(
            ("XREAD", "COUNT", _BATCH, "BLOCK", wait, "STREAMS", inbox, cursor)
        )
        entries = _entries_of(read)
        if entries:
            self._cursors[worker] = entries[-1][0]
            await self._engine.call("XTRIM", inbox, "MINID", entries[-1][0])
        return [data for _, data in entries]

    async def beat(self, worker: str) -> None:
        """Renew the key of a worker."""
        alive = self._engine.key("alive", worker)
        await self._engine.call("SET", alive, "1", "PX", round(ALIVE_SECONDS * 1000))

    async def _add(self, change: bytes) -> str:
        data = os.urandom(_TOKEN_BYTES) + change
        added, _ = await self._engine.call_all(
            ("XADD", self._changes, "MAXLEN", "~", bus.KEPT_CHANGES, "*", "d", data),
            ("PEXPIRE", self._changes, _DAY_MS),
        )
        return _cursor_of(added.decode(), data)


class RedisSessionStore:
    """Records of sessions in an engine. See `SessionStore`."""

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine

    async def create(self, identifier: str, record: SessionRecord, seconds: float | None) -> None:
        """Set a string."""
        key = self._engine.key("session", identifier)
        expiry = () if seconds is None else ("PX", _milliseconds(seconds))
        await self._engine.call("SET", key, _value_of(record), *expiry)

    async def load(self, identifier: str, seconds: float | None) -> SessionRecord | None:
        """Get a string, and set its expiry."""
        key = self._engine.key("session", identifier)
        expiry = ("PERSIST",) if seconds is None else ("PX", _milliseconds(seconds))
        value = await self._engine.call("GETEX", key, *expiry)
        return None if value is None else decode_record(value[_VERSION.size :])

    async def change(self, identifier: str, record: SessionRecord) -> bool:
        """Compare the version of a string, and set the string."""
        key = self._engine.key("session", identifier)
        before = _VERSION.pack(record.version - 1)
        return await self._engine.replace(key, before, _value_of(record))

    async def touch(self, identifier: str, seconds: float | None) -> None:
        """Set the expiry of a string."""
        if seconds is not None:
            key = self._engine.key("session", identifier)
            await self._engine.call("PEXPIRE", key, _milliseconds(seconds))

    async def end(self, identifier: str) -> None:
        """Delete a string."""
        await self._engine.call("DEL", self._engine.key("session", identifier))


class RedisEventStore:
    """Events in an engine. See `EventStore`.

    A session has at most `EVENTS` events of `EVENT_BYTES` in all, which expire `EVENT_SECONDS`
    after the last event.
    """

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine

    async def add(
        self, session: str, stream: str, message: bytes, requests: Sequence[RequestId] = ()
    ) -> str | None:
        """Append an event."""
        return await self._add(session, stream, message, requests, "0")

    async def finish(self, session: str, stream: str, message: bytes = b"") -> str | None:
        """Append the last event."""
        return await self._add(session, stream, message, (), "1")

    async def after(self, session: str, event: str) -> StoredEvents | None:
        """Read the events from an event on."""
        _, number = split_event_id(event)
        if not number:
            return None
        key = self._engine.key("events", session)
        return await self._read(session, event, ("XRANGE", key, f"0-{number}", "+"))

    async def wait(self, session: str, cursor: str) -> StoredEvents | None:
        """Wait for the events after an event, and read them."""
        _, number = split_event_id(cursor)
        block = ("BLOCK", round(event_store.WAIT_SECONDS * 1000))
        key = self._engine.key("events", session)
        read = ("XREAD", "COUNT", _BATCH, *block, "STREAMS", key, f"0-{number}")
        return await self._read(session, cursor, read)

    async def discard(self, session: str, stream: str | None = None) -> None:
        """Delete a stream, whose events are dropped later, or all events of a session."""
        streams = self._engine.key("streams", session)
        if stream is None:
            await self._engine.call("DEL", streams, self._engine.key("events", session))
        else:
            await self._engine.call("HDEL", streams, "s" + stream)

    async def _add(
        self,
        session: str,
        stream: str,
        message: bytes,
        requests: Sequence[RequestId],
        is_last: str,
    ) -> str | None:
        number = await self._engine.call(
            "EVAL",
            _ADD,
            2,
            self._engine.key("events", session),
            self._engine.key("streams", session),
            stream,
            message,
            msgspec.json.encode(requests),
            is_last,
            os.urandom(_TOKEN_BYTES),
            EVENTS,
            EVENT_BYTES,
            _milliseconds(EVENT_SECONDS),
        )
        return f"{stream}-{number}" if number else None

    async def _read(self, session: str, event: str, command: Words) -> StoredEvents | None:
        """The events of the stream of an event, as a command reads them; see `EventStore.after`."""
        stream, begin = split_event_id(event)
        fields = ("s" + stream, "edge", "last")
        call = self._engine.wait if "BLOCK" in command else self._engine.call_all
        read, (state, edge, last) = await call(
            command, ("HMGET", self._engine.key("streams", session), *fields)
        )
        if state is None or begin is None or not int(edge or 0) <= begin <= int(last):
            return None
        entries = read[0][1] if command[0] == "XREAD" and read else read or ()
        events: list[StoredEvent] = []
        is_over = False
        cursor = begin
        for identifier, (_, name, _, message, _, flag) in entries:
            cursor = int(identifier[2:])
            if name.decode() == stream:
                is_over = is_over or flag == b"1"
                if cursor > begin:
                    events.append(StoredEvent(f"{stream}-{cursor}", message))
            elif cursor == begin and command[0] == "XRANGE":
                return None  # the event belongs to another stream
        requests = msgspec.json.decode(state[1 + _TOKEN_BYTES :].partition(b" ")[2])
        return StoredEvents(stream, events, f"{stream}-{cursor}", is_over, requests)


class RedisUsedIds:
    """Ids in an engine. See `UsedIds`."""

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine

    async def use(self, digest: bytes, seconds: float) -> bool:
        """Set a string, unless another call has set it.

        A command that was sent twice, because the connection broke, finds the string that it set.
        """
        key, own = self._engine.key("used", digest.hex()), os.urandom(_TOKEN_BYTES)
        expiry = ("PX", _milliseconds(seconds))
        if await self._engine.call("SET", key, own, *expiry, "NX") is not None:
            return True
        stored: bytes | None = await self._engine.call("GET", key)
        return stored == own

    async def is_used(self, digest: bytes) -> bool:
        """Check that a string exists."""
        return bool(await self._engine.call("EXISTS", self._engine.key("used", digest.hex())))


def _value_of(record: SessionRecord) -> bytes:
    return _VERSION.pack(record.version) + encode_record(record)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _cursor_of(identifier: str, data: bytes) -> str:
    return f"{identifier}{_SEPARATOR}{data[:_TOKEN_BYTES].hex()}"


def _entries_of(read: Any) -> list[tuple[str, bytes]]:
    """The ids and data of the entries in a RESP2 reply to XREAD of one stream."""
    if not read:
        return []
    [(_, entries)] = read
    return [(identifier.decode(), data) for identifier, (_, data) in entries]
