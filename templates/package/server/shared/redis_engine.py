"""Shared state in an engine that speaks the protocol of Redis: Redis, Valkey, KeyDB, and others.

Only commands of Redis 6.2 are used. The keys of one server begin with `mcp:{name}:`; the braces
keep the keys in one slot of a cluster. Keys expire unless a running server renews them.

    session:ID     a string: the version of the record as 8 bytes, then the record
    fresh          a sorted set: the sessions whose clients have not confirmed them yet, by age
    changes        a stream of at most `KEPT_CHANGES` entries, and of `CHANGES_BYTES`
    changes:size   the bytes of its entries
    events:ID      a stream: the events of all streams of a session, `0-1`, `0-2` and so on
    streams:ID     a hash: the states of the streams of a session, and the size of its events
    used:DIGEST    exists while an id counts as used; `ended:DIGEST` for an ended sealed session
    used, ended    a sorted set: these ids by age
    inbox:WORKER   a stream of letters
    letters:WORKER a hash: the bytes of the letters since the inbox was empty, of each client
    alive:WORKER   exists while the worker calls `beat`
    wake:READER    a stream that ends the wait of a reader for events

See `redis_ledger` for the bytes that each client has stored. Scripts also use keys that they make
from ids; all keys of a server are in one slot. What another version or another program has stored
in an entry is skipped, with a line in the log.

A cursor names an entry by its id and by random bytes in its data. If the entry does not exist any
more, the engine has lost its data, or the reader was too slow: both cases are a gap. The id alone
is not enough: an engine that lost its data may assign the same id within a millisecond.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import struct
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec

from ...channel import RequestId
from ...errors import MissingExtraError
from ...runtime.pending_requests import PARTING_SECONDS
from ..asgi import event_store
from ..asgi.event_store import StoredEvent, StoredEvents, split_event_id
from . import bus, redis_ledger
from .bus import (
    ALIVE_SECONDS,
    LETTERS,
    WAIT_SECONDS,
    Changes,
    SharedStateError,
    SharedStateFullError,
)
from .redis_connection import RedisConnection, Words
from .redis_ledger import LEDGER, client_digest
from .redis_watcher import StreamWatcher
from .session_store import SessionRecord, decode_record, encode_record

logger = logging.getLogger(__name__)

SCHEMES = ("redis", "rediss", "unix")
"""Schemes of URLs: TCP, TLS, and a socket of the file system."""

EVENTS = 1000
"""Most events of one session; the oldest are dropped."""

EVENT_BYTES = 2**20
"""Most bytes of the messages of one session, not counting the newest; the oldest are dropped."""

EVENT_SECONDS = 3600.0
"""Seconds for which the events of a session are stored after its last event."""

EVENT_MESSAGE_BYTES = 16 * 2**20
"""Most bytes of one stored message. A longer message is sent without an event id."""

OPEN_ID_BYTES = 8192
"""Most bytes of the ids of requests that a stream has to answer; with more it has no event ids."""

STORED_IDS = 200_000
"""Most used ids of DPoP proofs, and most ids of ended sealed sessions; the oldest are dropped."""

_CLOSED = "the engine of the shared state is not opened yet, or closed"
_SECONDS = 5.0  # time limit of a command, and of a connection attempt
_DAY_MS = 86_400_000
_BATCH = 500  # most entries of one read
_TOKEN_BYTES = 8  # random bytes before the data of an entry
_SEPARATOR = " "  # in a cursor, between id and token
_VERSION = struct.Struct(">Q")

_PUBLISH = """
local added = redis.call('XADD', KEYS[1], '*', 'd', ARGV[1])
local size, count = redis.call('INCRBY', KEYS[2], #ARGV[1]), redis.call('XLEN', KEYS[1])
while count > 1 and (count > tonumber(ARGV[2]) or size > tonumber(ARGV[3])) do
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', KEYS[1], first[1])
  count, size = count - 1, redis.call('DECRBY', KEYS[2], #first[2][2])
end
if count == 1 then redis.call('SET', KEYS[2], #ARGV[1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return added
"""
"""Appends a change, drops the oldest ones, and returns the id of the entry."""

_SEND = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local size, client = #ARGV[1] + 200, '@' .. ARGV[2]
local all = tonumber(redis.call('HGET', KEYS[3], '#') or 0)
local own = tonumber(redis.call('HGET', KEYS[3], client) or 0)
if own + size > tonumber(ARGV[4]) - all - size then return -1 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'd', ARGV[1])
redis.call('HINCRBY', KEYS[3], '#', size)
redis.call('HINCRBY', KEYS[3], client, size)
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return 1
"""
"""Appends a letter to the inbox of a worker: 0 if the worker is not alive, -1 without room."""

_TAKEN = """
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
redis.call('XDEL', KEYS[1], ARGV[1])
if redis.call('XLEN', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) end
"""
"""Drops the letters that were read; an empty inbox has room again."""

_SESSIONS = (
    LEDGER
    + """
local base = ARGV[1]
local sessions = ledger(KEYS[1], KEYS[2], base .. 'session:', tonumber(ARGV[2]))
local events = ledger(KEYS[3], KEYS[4], base .. 'events:', 0)
local function drop(id)
  redis.call('DEL', base .. 'session:' .. id, base .. 'events:' .. id, base .. 'streams:' .. id)
  redis.call('ZREM', KEYS[5], id)
  sessions.release(id)
  events.release(id)
end
local function make_room(id, client, size)
  if sessions.has_room(id, client, size) then return true end
  for _, each in ipairs(redis.call('ZRANGE', KEYS[5], 0, 99)) do
    local of = sessions.client(each)
    if not of then redis.call('ZREM', KEYS[5], each)
    elseif of == client and each ~= id then
      drop(each)
      if sessions.has_room(id, client, size) then return true end
    end
  end
  for _, each in ipairs(sessions.least_used(client, id)) do
    drop(each[1])
    if sessions.has_room(id, client, size) then return true end
  end
  return false
end
"""
)
"""Defines `drop`, which deletes a session with its events, and `make_room`.

A client without room loses a session that it has not confirmed, else the one least recently used.
"""

_CREATE_SESSION = (
    _SESSIONS
    + """
local id, client, size = ARGV[3], ARGV[4], #ARGV[5] + 500
sessions.release_expired()
if not make_room(id, client, size) then return 0 end
if ARGV[6] == '' then redis.call('SET', base .. 'session:' .. id, ARGV[5])
else redis.call('SET', base .. 'session:' .. id, ARGV[5], 'PX', ARGV[6]) end
sessions.charge(id, client, size)
redis.call('ZADD', KEYS[5], now, id)
redis.call('PEXPIRE', KEYS[5], 2592000000)
return 1
"""
)
"""Stores the record of a new session; 0 without room."""

_CHANGE_SESSION = (
    _SESSIONS
    + """
local id, client, key = ARGV[3], ARGV[4], base .. 'session:' .. ARGV[3]
if redis.call('GETRANGE', key, 0, #ARGV[6] - 1) ~= ARGV[6] then return 0 end
if not make_room(id, client, #ARGV[5] + 500) then return -1 end
redis.call('SET', key, ARGV[5], 'KEEPTTL')
sessions.charge(id, client, #ARGV[5] + 500)
if ARGV[7] == '1' then redis.call('ZREM', KEYS[5], id) end
return 1
"""
)
"""Replaces a record if it begins with the expected version: 0 if not, -1 without room."""

_END_SESSION = _SESSIONS + "drop(ARGV[3])"
"""Deletes a session with its events."""

_EVENTS = (
    LEDGER
    + """
local base, id = ARGV[1], ARGV[3]
local key, streams = base .. 'events:' .. id, base .. 'streams:' .. id
local sessions = ledger(KEYS[1], KEYS[2], base .. 'session:', 0)
local events = ledger(KEYS[3], KEYS[4], base .. 'events:', tonumber(ARGV[2]))
local function drop(id)
  redis.call('DEL', base .. 'events:' .. id, base .. 'streams:' .. id)
  events.release(id)
end
"""
)
"""Defines `drop`, which deletes the events of a session."""

_ADD = (
    _EVENTS
    + """
local name, message = 's' .. ARGV[4], ARGV[5]
local state = redis.call('HGET', streams, name)
if state then
  if string.sub(state, 2, 9) == ARGV[8] then return tonumber(string.match(state, '^%d+', 10)) end
  if string.sub(state, 1, 1) == '1' then return 0 end
end
local size = tonumber(redis.call('HGET', streams, 'size') or 0)
local count = redis.call('XLEN', key)
local client = sessions.client(id) or ''
local kept = math.max(#message, math.min(size + #message, tonumber(ARGV[10])))
local need = kept + 100 * count + 1000
events.release_expired()
if not events.has_room(id, client, need) then
  for _, each in ipairs(events.least_used(client, id)) do
    drop(each[1])
    if events.has_room(id, client, need) then break end
  end
  if not events.has_room(id, client, need) then return -1 end
end
local number = redis.call('HINCRBY', streams, 'last', 1)
redis.call('HSET', streams, name, ARGV[7] .. ARGV[8] .. number .. ' ' .. ARGV[6])
redis.call('XADD', key, '0-' .. number, 's', ARGV[4], 'd', message, 'o', ARGV[7])
size, count = redis.call('HINCRBY', streams, 'size', #message), count + 1
while count > 1 and (count > tonumber(ARGV[9]) or size > tonumber(ARGV[10])) do
  local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  local dropped, of = string.sub(first[1], 3), 's' .. first[2][2]
  redis.call('XDEL', key, first[1])
  redis.call('HSET', streams, 'edge', dropped)
  if first[2][6] == '1' then redis.call('HDEL', streams, of) end
  size = redis.call('HINCRBY', streams, 'size', 0 - #first[2][4])
  count = count - 1
end
redis.call('PEXPIRE', key, ARGV[11])
redis.call('PEXPIRE', streams, ARGV[11])
events.charge(id, client, size + 100 * count + 1000)
return number
"""
)
"""Adds an event unless its stream has ended, drops the oldest events, and returns the number.

Returns 0 if the stream has ended, -1 without room. The client of a session is that of its record. A
client without room loses the events of the session that has had none for longest.

The field of a stream holds: whether the stream has ended; the token of the command that added its
last event, so that a repeated command adds none; the number of that event; and open request ids.
"""

_DISCARD = _EVENTS + "drop(id)"
"""Deletes the events of a session."""

_USE = """
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], now, KEYS[1])
for _, old in ipairs(redis.call('ZRANGE', KEYS[2], 0, 9)) do
  local is_over = redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[3])
  if is_over or redis.call('EXISTS', old) == 0 then
    redis.call('ZREM', KEYS[2], old)
    redis.call('DEL', old)
  end
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1
"""
"""Sets an id, unless another command has set it; drops ids that expired, and the oldest."""


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
        self._watcher: StreamWatcher | None = None
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
        wake = self.key("wake", os.urandom(_TOKEN_BYTES).hex())
        watcher = StreamWatcher(self.wait, self.call_all, wake)
        self._client, self._connection, self._watcher = client, connection, watcher
        try:
            yield
        finally:
            self._client = self._connection = self._watcher = None
            with anyio.move_on_after(PARTING_SECONDS, shield=True):
                await watcher.close()
                await connection.close()
                await client.aclose()

    def key(self, *parts: str) -> str:
        """A key of this server."""
        return self._prefix + ":".join(parts)

    def ledger(self, kind: str) -> tuple[str, str]:
        """The keys of the ledger of the entries of one kind; see `redis_ledger`."""
        return self.key("ledger", kind), self.key("due", kind)

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

    async def wait_for_entries(self, key: str, number: int, seconds: float) -> None:
        """Wait for an entry of a stream after `0-NUMBER`, for some seconds at most.

        All that wait share one connection.

        Raises:
            SharedStateError: The engine can't be reached, or the key is no stream.
        """
        if self._watcher is None:
            raise SharedStateError(_CLOSED)
        await self._watcher.wait(key, number, seconds)

    async def run(self, script: str, keys: Sequence[str], *words: str | bytes | int) -> Any:
        """The reply of a script, which the engine gets once.

        Raises:
            SharedStateError: The engine can't be reached, or refused the script.
        """
        digest = _digest_of(script)
        try:
            return await self.call("EVALSHA", digest, len(keys), *keys, *words)
        except SharedStateError as error:
            if not str(error.__cause__).startswith("NOSCRIPT"):
                raise
        return await self.call("EVAL", script, len(keys), *keys, *words)

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
        if not last_entry or _data_of(last_entry[0])[:_TOKEN_BYTES].hex() != token:
            return Changes(await self._add(b""), gap=True)
        entries = _entries_of(read, "changes", _TOKEN_BYTES)
        if not entries:
            return Changes(cursor)
        newest, data = entries[-1]
        changes = [data[_TOKEN_BYTES:] for _, data in entries if len(data) > _TOKEN_BYTES]
        return Changes(_cursor_of(newest, data), changes)

    async def send(self, worker: str, letter: bytes, client: str = "") -> bool:
        """Append a letter to the inbox of a worker."""
        keys = [self._engine.key(each, worker) for each in ("alive", "inbox", "letters")]
        words = (letter, client_digest(client), LETTERS, redis_ledger.INBOX_BYTES, _DAY_MS)
        sent: int = await self._engine.run(_SEND, keys, *words)
        if sent < 0:
            raise SharedStateFullError("the process of the call has too many messages to read")
        return bool(sent)

    async def receive(self, worker: str) -> Sequence[bytes]:
        """Read the inbox."""
        inbox, letters = self._engine.key("inbox", worker), self._engine.key("letters", worker)
        wait = round(WAIT_SECONDS * 1000)
        cursor = self._cursors.get(worker, "0")
        [read] = await self._engine.wait(
            ("XREAD", "COUNT", _BATCH, "BLOCK", wait, "STREAMS", inbox, cursor)
        )
        entries = _entries_of(read, "inbox")
        if entries:
            self._cursors[worker] = entries[-1][0]
            await self._engine.run(_TAKEN, (inbox, letters), entries[-1][0])
        return [data for _, data in entries if data]

    async def beat(self, worker: str) -> None:
        """Renew the key of a worker."""
        alive = self._engine.key("alive", worker)
        await self._engine.call("SET", alive, "1", "PX", round(ALIVE_SECONDS * 1000))

    async def _add(self, change: bytes) -> str:
        data = os.urandom(_TOKEN_BYTES) + change
        keys = (self._changes, f"{self._changes}:size")
        added: bytes = await self._engine.run(
            _PUBLISH, keys, data, bus.KEPT_CHANGES, redis_ledger.CHANGES_BYTES, _DAY_MS
        )
        return _cursor_of(added.decode(), data)


class RedisSessionStore:
    """Records of sessions in an engine. See `SessionStore`."""

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine
        self._keys = [*engine.ledger("session"), *engine.ledger("events"), engine.key("fresh")]

    async def create(self, identifier: str, record: SessionRecord, seconds: float | None) -> None:
        """Set a string, and count its bytes."""
        expiry = "" if seconds is None else _milliseconds(seconds)
        if not await self._run(_CREATE_SESSION, identifier, record, expiry):
            raise _full_error()

    async def load(
        self, identifier: str, seconds: float | None, before: SessionRecord | None = None
    ) -> SessionRecord | None:
        """Get a string, and set its expiry; or its version alone, if that is the one before."""
        key = self._engine.key("session", identifier)
        if before is not None:
            version = await self._engine.call("GETRANGE", key, 0, _VERSION.size - 1)
            if version == _VERSION.pack(before.version):
                await self.touch(identifier, seconds)
                return before
        expiry = ("PERSIST",) if seconds is None else ("PX", _milliseconds(seconds))
        value = await self._engine.call("GETEX", key, *expiry)
        return None if value is None else decode_record(value[_VERSION.size :])

    async def change(self, identifier: str, record: SessionRecord) -> bool:
        """Compare the version of a string, and set the string."""
        before = _VERSION.pack(record.version - 1)
        is_used = "1" if record.is_confirmed else "0"
        changed = await self._run(_CHANGE_SESSION, identifier, record, before, is_used)
        if changed < 0:
            raise _full_error()
        return bool(changed)

    async def touch(self, identifier: str, seconds: float | None) -> None:
        """Set the expiry of a string."""
        if seconds is not None:
            key = self._engine.key("session", identifier)
            await self._engine.call("PEXPIRE", key, _milliseconds(seconds))

    async def end(self, identifier: str) -> None:
        """Delete a string, and the events of its session."""
        await self._engine.run(_END_SESSION, self._keys, self._engine.key(), 0, identifier)

    async def _run(
        self, script: str, identifier: str, record: SessionRecord, *more: str | bytes | int
    ) -> int:
        words = (identifier, client_digest(record.client), _value_of(record), *more)
        reply: int = await self._engine.run(
            script, self._keys, self._engine.key(), redis_ledger.SESSION_BYTES, *words
        )
        return reply


class RedisEventStore:
    """Events in an engine. See `EventStore`.

    A session has at most `EVENTS` events of `EVENT_BYTES` in all, which expire `EVENT_SECONDS`
    after the last event.
    """

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine
        self._keys = [*engine.ledger("session"), *engine.ledger("events")]

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
        key = self._engine.key("events", session)
        await self._engine.wait_for_entries(key, number or 0, event_store.WAIT_SECONDS)
        read = ("XRANGE", key, f"0-{(number or 0) + 1}", "+", "COUNT", _BATCH)
        return await self._read(session, cursor, read)

    async def discard(self, session: str, stream: str | None = None) -> None:
        """Delete a stream, whose events are dropped later, or all events of a session."""
        if stream is None:
            await self._engine.run(_DISCARD, self._keys, self._engine.key(), 0, session)
        else:
            await self._engine.call("HDEL", self._engine.key("streams", session), "s" + stream)

    async def _add(
        self,
        session: str,
        stream: str,
        message: bytes,
        requests: Sequence[RequestId],
        is_last: str,
    ) -> str | None:
        identifiers = msgspec.json.encode(requests)
        for name, data, most in (
            ("a message", message, EVENT_MESSAGE_BYTES),
            ("ids of open requests", identifiers, OPEN_ID_BYTES),
        ):
            if len(data) > most:
                raise SharedStateFullError(f"expected {name} of at most {most} bytes")
        number: int = await self._engine.run(
            _ADD,
            self._keys,
            self._engine.key(),
            redis_ledger.STORED_EVENT_BYTES,
            session,
            stream,
            message,
            identifiers,
            is_last,
            os.urandom(_TOKEN_BYTES),
            EVENTS,
            EVENT_BYTES,
            _milliseconds(EVENT_SECONDS),
        )
        if number < 0:
            raise SharedStateFullError("the events of all clients, or of one, have too many bytes")
        return f"{stream}-{number}" if number else None

    async def _read(self, session: str, event: str, command: Words) -> StoredEvents | None:
        """The events of the stream of an event, as a command reads them; see `EventStore.after`."""
        stream, begin = split_event_id(event)
        fields = ("s" + stream, "edge", "last")
        entries, (state, edge, last) = await self._engine.call_all(
            command, ("HMGET", self._engine.key("streams", session), *fields)
        )
        if state is None or begin is None:
            return None
        try:
            if not int(edge or 0) <= begin <= int(last):
                return None
            return _events_of(stream, begin, entries, state)
        except (ValueError, TypeError, msgspec.DecodeError):
            logger.warning("the events of a session have another form, and are unknown")
            return None


class RedisUsedIds:
    """Ids in an engine. See `UsedIds`.

    Args:
        engine: The engine.
        kind: What the ids are; ids of one kind make no room for those of another.
    """

    def __init__(self, engine: RedisEngine, kind: str) -> None:
        self._engine = engine
        self._kind = kind

    async def use(self, digest: bytes, seconds: float) -> bool:
        """Set a string, unless another call has set it.

        A command that was sent twice, because the connection broke, finds the string that it set.
        """
        keys = (self._engine.key(self._kind, digest.hex()), self._engine.key(self._kind))
        words = (os.urandom(_TOKEN_BYTES), _milliseconds(seconds), STORED_IDS)
        return bool(await self._engine.run(_USE, keys, *words))

    async def is_used(self, digest: bytes) -> bool:
        """Check that a string exists."""
        return bool(await self._engine.call("EXISTS", self._engine.key(self._kind, digest.hex())))


def _value_of(record: SessionRecord) -> bytes:
    return _VERSION.pack(record.version) + encode_record(record)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _cursor_of(identifier: str, data: bytes) -> str:
    return f"{identifier}{_SEPARATOR}{data[:_TOKEN_BYTES].hex()}"


def _events_of(
    stream: str, begin: int, entries: Sequence[Any], state: bytes
) -> StoredEvents | None:
    """The events of a stream after one of them; `None` if that one belongs to another stream."""
    events: list[StoredEvent] = []
    is_over = False
    cursor = begin
    for identifier, (_, name, _, message, _, flag) in entries:
        cursor = int(identifier[2:])
        if name.decode() == stream:
            is_over = is_over or flag == b"1"
            if cursor > begin:
                events.append(StoredEvent(f"{stream}-{cursor}", message))
        elif cursor == begin:
            return None
    requests = msgspec.json.decode(state[1 + _TOKEN_BYTES :].partition(b" ")[2])
    return StoredEvents(stream, events, f"{stream}-{cursor}", is_over, requests)


def _full_error() -> SharedStateFullError:
    return SharedStateFullError("the sessions of all clients have too many bytes in the engine")


def _data_of(entry: Any) -> bytes:
    """The data of an entry; empty for an entry of another form."""
    match entry:
        case [_, [b"d", bytes() as data]]:
            return data
        case _:
            return b""


def _entries_of(read: Any, name: str, least: int = 1) -> list[tuple[str, bytes]]:
    """The ids and data of the entries in a RESP2 reply to XREAD of one stream."""
    if not read:
        return []
    entries = [(entry[0].decode(), _data_of(entry)) for entry in read[0][1]]
    foreign = sum(len(data) < least for _, data in entries)
    if foreign:
        logger.warning("%s: %d entries have another form, and are skipped", name, foreign)
    return entries


@cache
def _digest_of(script: str) -> str:
    """The name by which an engine knows a script."""
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
