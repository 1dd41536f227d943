"""Records of tasks in an engine that speaks the protocol of Redis.

task:ID        a string: version, fence, and whether the task has ended, then the record
lease:ID       exists while a process has the lease: the name of the process and the fence
tasks:OWNER    a sorted set: the tasks of an owner in the order of their creation
leases         a sorted set: the tasks that have not ended, by the time to check their lease
"""

from __future__ import annotations

import hashlib
import struct

import msgspec

from ...errors import InternalError, InvalidParamsError
from ...foreign_text import safe_repr
from ...runtime.task_store import LEASE_SECONDS, TaskPage, TaskRecord
from .redis_engine import RedisEngine

RECORD_BYTES = 4 * 2**20
"""Most bytes of a record. A longer result fails its task."""

_HEAD = struct.Struct(">QQ?")
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

_LEASE = (
    _LATER
    + """
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[1])
later(ARGV[3])
"""
)
"""Gives a task its first lease."""

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

_CHANGE = """
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
if ARGV[3] ~= '' then redis.call('ZREM', KEYS[2], ARGV[3]) end
return 1
"""
"""Replaces a record, and stops checking the lease of a task that has ended."""


class RedisTaskStore:
    """Records in an engine. See `TaskStore`.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: RedisEngine) -> None:
        self._engine = engine
        self._leases = engine.key("leases")

    async def create(self, record: TaskRecord) -> None:
        """Set a string and its lease, and add the task to those of its owner."""
        expiry = () if record.ttl_ms is None else ("PX", record.ttl_ms)
        commands: list[tuple[str | bytes | int, ...]] = [
            self._script(_LEASE, record.task_id, _lease_of(record)),
            ("SET", self._key(record.task_id), _value_of(record), *expiry),
        ]
        if record.owner:
            tasks = self._tasks_of(record.owner)
            lasts = record.ttl_ms is not None and record.ttl_ms <= _INDEX_MS
            commands += [
                ("ZADD", tasks, 0, _member_of(record)),
                ("PEXPIRE", tasks, _INDEX_MS) if lasts else ("PERSIST", tasks),
                ("ZRANGE", tasks, 0, _CHECKED_OLDEST - 1),
            ]
        replies = await self._engine.call_all(*commands)
        if record.owner:
            await self._load_values(self._tasks_of(record.owner), replies[-1])

    async def load(self, task_id: str) -> TaskRecord | None:
        """Get a string."""
        return _record_in(await self._engine.call("GET", self._key(task_id)))

    async def change(self, record: TaskRecord) -> bool:
        """Compare the head of a string, and set the string."""
        return await self._change(record, record.fence)

    async def claim(self, task_id: str, worker: str) -> TaskRecord | None:
        """Set the lease, unless another process has it, and then the string."""
        before = await self.load(task_id)
        if before is None or before.is_terminal:
            return None
        record = before.next_version(worker=worker, fence=before.fence + 1)
        lease = self._lease_key(task_id)
        taken = await self._engine.call("SET", lease, _lease_of(record), "PX", _LEASE_MS, "NX")
        if taken is None or not await self._change(record, before.fence):
            return None
        return record

    async def renew(self, record: TaskRecord) -> int | None:
        """Set the lease, unless another process has it."""
        fence = _HEAD.pack(0, record.fence, False)[8:]
        head: bytes | None = await self._engine.call(
            *self._script(_RENEW, record.task_id, _lease_of(record), fence)
        )
        return None if head is None else int.from_bytes(head, "big")

    async def page(self, owner: str | None, cursor: str | None, limit: int) -> TaskPage:
        """Read a range of a sorted set, and the strings; remove members that have expired."""
        if owner is None:
            return TaskPage(await self._find_lost(limit), None)
        tasks = self._tasks_of(owner)
        begin = b"-" if cursor is None else b"[" + _encode_cursor(cursor)
        members: list[bytes] = await self._engine.call(
            "ZRANGEBYLEX", tasks, begin, "+", "LIMIT", 0, limit + 1
        )
        values = await self._load_values(tasks, members)
        records = [record for value in values[:limit] if (record := _record_in(value)) is not None]
        next_cursor = members[limit].decode() if len(members) > limit else None
        return TaskPage(tuple(records), next_cursor)

    async def _find_lost(self, limit: int) -> tuple[TaskRecord, ...]:
        members: list[bytes] = await self._engine.call(
            "EVAL", _LOST, 1, self._leases, _LEASE_MS, _INDEX_MS, limit
        )
        values = await self._load_values(self._leases, members, 0)
        return tuple(record for value in values if (record := _record_in(value)) is not None)

    async def _load_values(
        self, tasks: str, members: list[bytes], begin: int = _TIME_DIGITS
    ) -> list[bytes | None]:
        """Load the strings of members of a sorted set; remove members without a string.

        Args:
            tasks: The sorted set.
            members: The members.
            begin: Index in each member at which the id of its task begins.
        """
        if not members:
            return []
        keys = [self._key(member[begin:].decode()) for member in members]
        values: list[bytes | None] = await self._engine.call("MGET", *keys)
        expired = [member for member, value in zip(members, values, strict=True) if value is None]
        if expired:
            await self._engine.call("ZREM", tasks, *expired)
        return values

    async def _change(self, record: TaskRecord, fence: int) -> bool:
        before = _HEAD.pack(record.version - 1, fence, False)
        ended = record.task_id if record.is_terminal else ""
        keys = (self._key(record.task_id), self._leases)
        words = (before, _value_of(record), ended)
        return bool(await self._engine.call("EVAL", _CHANGE, len(keys), *keys, *words))

    def _script(
        self, script: str, task_id: str, lease: str, *more: str | bytes
    ) -> tuple[str | bytes | int, ...]:
        """The command that runs a script for the lease of a task."""
        keys = (self._leases, self._lease_key(task_id), self._key(task_id))
        return ("EVAL", script, len(keys), *keys, _LEASE_MS, _INDEX_MS, task_id, lease, *more)

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
    return _HEAD.pack(record.version, record.fence, record.is_terminal) + data


def _record_in(value: bytes | None) -> TaskRecord | None:
    return None if value is None else _decode(value[_HEAD.size :])


def _lease_of(record: TaskRecord) -> str:
    return f"{record.worker} {record.fence}"


def _member_of(record: TaskRecord) -> str:
    """A member that sorts by time: microseconds in hexadecimal digits, then the id."""
    return f"{round(record.created * 1e6):0{_TIME_DIGITS}x}{record.task_id}"


def _encode_cursor(cursor: str) -> bytes:
    """Check a cursor and encode it as a member.

    Raises:
        InvalidParamsError: The cursor has not the form of a member.
    """
    digits = cursor[:_TIME_DIGITS]
    is_time = len(digits) == _TIME_DIGITS and not set(digits) - set("0123456789abcdef")
    if not is_time or not cursor.isascii() or len(cursor) > _CURSOR_CHARACTERS:
        text = f"cursor: expected the nextCursor of a page, got {safe_repr(cursor)}"
        raise InvalidParamsError(text)
    return cursor.encode()
