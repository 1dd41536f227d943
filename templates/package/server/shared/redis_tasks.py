"""Records of tasks in an engine that speaks the protocol of Redis.

task:ID        a string: version, fence, and whether the task has ended; then the length of its
               summary, the summary, and the record
lease:ID       exists while a process has the lease: the name of the process and the fence
tasks:OWNER    a sorted set: the tasks of an owner in the order of their creation
leases         a sorted set: the tasks that have not ended, by the time to check their lease

A page reads summaries alone: records have up to 4 MiB each.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from typing import Any

import msgspec

from ..._wire import UNREADABLE
from ...errors import InternalError, InvalidParamsError
from ...foreign_text import safe_repr
from ...runtime.task_store import (
    LEASE_SECONDS,
    SMALL_RECORD,
    RecordedCall,
    TaskPage,
    TaskRecord,
)
from . import redis_ledger
from .redis_engine import RedisEngine
from .redis_ledger import LEDGER, client_digest

logger = logging.getLogger(__name__)

RECORD_BYTES = 4 * 2**20
"""Most bytes of a record. A longer result fails its task."""

_HEAD = struct.Struct(">QQ?")
_SUMMARY = struct.Struct(">I")
_SUMMARY_BYTES = 4096  # that a page reads of each record; of a record with a longer summary, more
_LONGEST_SUMMARY = 64 * 1024
_SUMMARY_TEXT = 500  # most characters of a text in a summary
_LEASE_MS = round(LEASE_SECONDS * 1000)
_INDEX_MS = 30 * 86_400_000  # lifetime of the list of an owner after its newest task
_TIME_DIGITS = 16
_CURSOR_CHARACTERS = 200
_CHECKED_OLDEST = 2  # oldest tasks of the owner that each new task checks for expiry

_LATER = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function later(id)
  redis.call('ZADD', KEYS[1], now + ARGV[1] + 10, id) -- not a millisecond early
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
"""
"""Defines `later`, which schedules the check of a lease that begins now for its expiry."""

_TASKS = (
    LEDGER
    + """
local tasks = ledger(KEYS[1], KEYS[2], ARGV[1] .. 'task:', tonumber(ARGV[2]))
local id, client, value, size = ARGV[3], ARGV[4], ARGV[5], math.max(#ARGV[5], tonumber(ARGV[6]))
local key = ARGV[1] .. 'task:' .. id
"""
)
"""The ledger of tasks, and a record with its size."""

_CREATE = (
    _TASKS
    + """
tasks.release_expired()
if not tasks.has_room(id, client, size) then return 0 end
if ARGV[7] == '' then redis.call('SET', key, value)
else redis.call('SET', key, value, 'PX', ARGV[7]) end
tasks.charge(id, client, size)
redis.call('SET', KEYS[4], ARGV[8], 'PX', ARGV[9])
redis.call('ZADD', KEYS[3], now + ARGV[9] + 10, id) -- not a millisecond early
redis.call('PEXPIRE', KEYS[3], ARGV[10])
return 1
"""
)
"""Stores a record with its first lease; 0 without room."""

_RENEW = (
    _LATER
    + """
local head, lease = redis.call('GETRANGE', KEYS[3], 0, 16), redis.call('GET', KEYS[2])
if string.sub(head, 9) ~= ARGV[5] or (lease and lease ~= ARGV[4]) then return false end
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[1])
later(ARGV[3])
return string.sub(head, 1, 8)
"""
)
"""Renews a lease unless another process has it, or the task has another fence or has ended."""

_LOST = (
    _LATER
    + """
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do later(id) end
return ids
"""
)
"""Returns tasks whose lease may have expired; other processes skip them for one lease time."""

_LOAD_LOST = """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
return redis.call('GET', KEYS[2])
"""
"""Returns a record that nobody has a lease on."""

_CHANGE = (
    _TASKS
    + """
if redis.call('GETRANGE', key, 0, #ARGV[7] - 1) ~= ARGV[7] then return 0 end
if ARGV[9] == '' and not tasks.has_room(id, client, size) then return -1 end
redis.call('SET', key, value, 'KEEPTTL')
tasks.charge(id, client, size)
if ARGV[8] ~= '' then redis.call('ZREM', KEYS[3], id) end
return 1
"""
)
"""Replaces a record, and stops checking the lease of a task that has ended.

Returns 0 for another record, -1 without room. A claim needs no room.
"""


class RedisTaskStore:
    """Records in an engine. See `TaskStore`.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine
        self._leases = engine.key("leases")
        self._keys = [*engine.ledger("task"), self._leases]

    async def create(self, record: TaskRecord) -> None:
        """Set a string and its lease, and add the task to those of its owner."""
        expiry = "" if record.ttl_ms is None else record.ttl_ms
        lease = (_lease_of(record), _LEASE_MS, _INDEX_MS)
        keys = (*self._keys, self._lease_key(record.task_id))
        if not await self._engine.run(_CREATE, keys, *self._words(record), expiry, *lease):
            raise _full_error()
        if record.owner:
            tasks = self._tasks_of(record.owner)
            lasts = record.ttl_ms is not None and record.ttl_ms <= _INDEX_MS
            *_, oldest = await self._engine.call_all(
                ("ZADD", tasks, 0, _member_of(record)),
                ("PEXPIRE", tasks, _INDEX_MS) if lasts else ("PERSIST", tasks),
                ("ZRANGE", tasks, 0, _CHECKED_OLDEST - 1),
            )
            await self._load_summaries(tasks, oldest)

    async def load(self, task_id: str, before: TaskRecord | None = None) -> TaskRecord | None:
        """Get a string; or its head alone, if that is the one of the version before."""
        if before is not None:
            head = await self._engine.call("GETRANGE", self._key(task_id), 0, _HEAD.size - 1)
            if head == _HEAD.pack(before.version, before.fence, before.is_terminal):
                return before
        return _record_in(await self._engine.call("GET", self._key(task_id)))

    async def change(self, record: TaskRecord) -> bool:
        """Compare the head of a string, and set the string."""
        changed = await self._change(record, record.fence)
        if changed < 0:
            raise _full_error()
        return bool(changed)

    async def claim(self, task_id: str, worker: str) -> TaskRecord | None:
        """Set the lease, unless another process has it, and then the string."""
        lease = self._lease_key(task_id)
        before = _record_in(await self._engine.run(_LOAD_LOST, (lease, self._key(task_id))))
        if before is None or before.is_terminal:
            return None
        record = before.next_version(worker=worker, fence=before.fence + 1)
        taken = await self._engine.call("SET", lease, _lease_of(record), "PX", _LEASE_MS, "NX")
        if taken is None or not await self._change(record, before.fence, "1"):
            return None
        return record

    async def renew(self, record: TaskRecord) -> int | None:
        """Set the lease, unless another process has it."""
        fence = _HEAD.pack(0, record.fence, False)[8:]
        keys = (self._leases, self._lease_key(record.task_id), self._key(record.task_id))
        words = (_LEASE_MS, _INDEX_MS, record.task_id, _lease_of(record), fence)
        head: bytes | None = await self._engine.run(_RENEW, keys, *words)
        return None if head is None else int.from_bytes(head, "big")

    async def page(self, owner: str | None, cursor: str | None, limit: int) -> TaskPage:
        """Read a range of a sorted set, and summaries; remove members that have expired."""
        if owner is None:
            lost: list[bytes] = await self._engine.run(
                _LOST, (self._leases,), _LEASE_MS, _INDEX_MS, limit
            )
            return TaskPage(await self._load_summaries(self._leases, lost, 0), None)
        tasks = self._tasks_of(owner)
        begin = b"-" if cursor is None else b"[" + _encode_cursor(cursor)
        members: list[bytes] = await self._engine.call(
            "ZRANGEBYLEX", tasks, begin, "+", "LIMIT", 0, limit + 1
        )
        records = await self._load_summaries(tasks, members[:limit])
        next_cursor = members[limit].decode("ascii", "replace") if len(members) > limit else None
        return TaskPage(records, next_cursor)

    async def _load_summaries(
        self, tasks: str, members: list[bytes], begin: int = _TIME_DIGITS
    ) -> tuple[TaskRecord, ...]:
        """Load the summaries of members of a sorted set; remove members without a record."""
        keys = [self._key(member[begin:].decode("utf-8", "replace")) for member in members]
        loads = (("GETRANGE", key, 0, _SUMMARY_BYTES - 1) for key in keys)
        values: list[bytes] = await self._engine.call_all(*loads)
        for place, value in enumerate(values):
            longer = _length_of(value)
            if len(value) < longer <= _LONGEST_SUMMARY:
                values[place] = await self._engine.call("GETRANGE", keys[place], 0, longer - 1)
        records = [_summary_in(value) for value in values]
        gone = [member for member, each in zip(members, values, strict=True) if not each]
        if gone:
            await self._engine.call("ZREM", tasks, *gone)
        return tuple(record for record in records if record is not None)

    async def _change(self, record: TaskRecord, fence: int, claims: str = "") -> int:
        before = _HEAD.pack(record.version - 1, fence, False)
        ended = "1" if record.is_terminal else ""
        changed: int = await self._engine.run(
            _CHANGE, self._keys, *self._words(record), before, ended, claims
        )
        return changed

    def _words(self, record: TaskRecord) -> tuple[str | bytes | int, ...]:
        """The arguments that scripts about a record begin with."""
        client, value = client_digest(record.client), _value_of(record)
        limit = redis_ledger.TASK_BYTES
        return self._engine.key(), limit, record.task_id, client, value, SMALL_RECORD

    def _key(self, task_id: str) -> str:
        return self._engine.key("task", task_id)

    def _lease_key(self, task_id: str) -> str:
        return self._engine.key("lease", task_id)

    def _tasks_of(self, owner: str) -> str:
        return self._engine.key("tasks", hashlib.sha256(owner.encode()).hexdigest())


_decode = msgspec.json.Decoder(TaskRecord).decode


def _value_of(record: TaskRecord) -> bytes:
    data = msgspec.json.encode(record)
    if len(data) > RECORD_BYTES:
        raise InternalError(f"expected a task of at most {RECORD_BYTES} bytes, got {len(data)}")
    head = _HEAD.pack(record.version, record.fence, record.is_terminal)
    summary = msgspec.json.encode(_summary_of(record))
    return b"".join((head, _SUMMARY.pack(len(summary)), summary, data))


def _summary_of(record: TaskRecord) -> TaskRecord:
    """A record with all that a list of tasks shows, and that says whether it may be run again."""
    result, call = record.result or {}, record.call
    message, shown = record.message, None
    if result.get("isError"):
        content: list[dict[str, Any]] = result.get("content", [])
        texts = (each["text"][:_SUMMARY_TEXT] for each in content if each.get("text"))
        shown = {"isError": True, "content": [{"text": text} for text in texts][:1]}
    if call is not None:
        call = RecordedCall(
            params={}, revision="", info=None, capabilities={}, session=None, principal=None
        )
    return msgspec.structs.replace(
        record,
        message=None if message is None else message[:_SUMMARY_TEXT],
        input_requests=None,
        input_responses=None,
        result=shown,
        error=None,
        call=call,
    )


def _length_of(value: bytes) -> int:
    """Bytes of a string up to the end of its summary; 0 without a summary."""
    if len(value) < _HEAD.size + _SUMMARY.size:
        return 0
    length: int = _SUMMARY.unpack_from(value, _HEAD.size)[0]
    return _HEAD.size + _SUMMARY.size + length


def _summary_in(value: bytes) -> TaskRecord | None:
    return _decoded(value[_HEAD.size + _SUMMARY.size : _length_of(value)]) if value else None


def _record_in(value: bytes | None) -> TaskRecord | None:
    return None if value is None else _decoded(value[_length_of(value) :])


def _decoded(data: bytes) -> TaskRecord | None:
    """A record; `None` for data of another form."""
    try:
        return _decode(data)
    except UNREADABLE:
        logger.warning("the record of a task has another form, and is skipped")
        return None


def _full_error() -> InternalError:
    return InternalError(
        f"expected tasks of at most {redis_ledger.TASK_BYTES} bytes, and no more of one client "
        "than are free for others"
    )


def _lease_of(record: TaskRecord) -> str:
    return f"{record.worker} {record.fence}"


def _member_of(record: TaskRecord) -> str:
    """A member that sorts by time: microseconds in hexadecimal digits, then the id."""
    return f"{round(record.created * 1e6):0{_TIME_DIGITS}x}{record.task_id}"


def _encode_cursor(cursor: str) -> bytes:
    """Check a cursor and encode it as a member."""
    digits = cursor[:_TIME_DIGITS]
    is_time = len(digits) == _TIME_DIGITS and not set(digits) - set("0123456789abcdef")
    if not is_time or not cursor.isascii() or len(cursor) > _CURSOR_CHARACTERS:
        text = f"cursor: expected the nextCursor of a page, got {safe_repr(cursor)}"
        raise InvalidParamsError(text)
    return cursor.encode()
