"""Records of tasks, and where they are stored.

The format of a record is independent of the wire: tasks of 2025-11-25 and of the extension of
2026-07-28 are rendered from it. A change names the version that it replaces, so of two concurrent
writers one is refused; the record of a task that has ended never changes.

The process that runs a task holds a lease on it, which it renews. After the lease has run out,
another process may claim the task. Each claim increments the fence of the record, so a process that
was paused beyond its lease can no longer change it.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from ..errors import InternalError, InvalidParamsError
from ..foreign_text import safe_repr

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

TERMINAL: frozenset[TaskStatus] = frozenset({"completed", "failed", "cancelled"})
"""Statuses of tasks that have ended."""

RECORDS = 10_000
"""Most records of a `MemoryTaskStore`; see `Shares` for the limit of one client."""

RECORD_BYTES = 128 * 1024 * 1024
"""Most bytes of the larger records (see `SMALL_RECORD`) of a `MemoryTaskStore`; see `Shares`."""

SMALL_RECORD = 4096
"""Longest record, in bytes, that does not count towards `RECORD_BYTES`: its end always fits."""

LEASE_SECONDS = 3.0
"""Seconds of a lease, from the creation, claim or last renewal of a task."""

_NO_RESULT: Mapping[str, Any] = {}


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that another process may run again, on behalf of the client that made it.

    Attributes:
        params: The params, as wire object.
        revision: Name of the revision.
        info: The client's implementation info, if it stated one.
        capabilities: The declared capabilities of the client.
        session: Id of the session, if there is one.
        principal: Members of the principal, without credentials; `None` without authentication.
    """

    params: Mapping[str, Any]
    revision: str
    info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any]
    session: str | None
    principal: Mapping[str, Any] | None


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one task. `msgspec.json` encodes and decodes it.

    Attributes:
        task_id: The id, which cannot be guessed.
        owner: Identifies the principal that the task belongs to; empty without authentication.
        client: Identifies the client whose share of a store the record takes: the principal, else
            the network address, else the connection.
        version: Number of changes, including the creation.
        worker: The process that runs the task.
        fence: Number of processes that the task has belonged to.
        status: The status. A tool call whose result has `isError` is completed.
        created: Time of the creation, in seconds since the epoch.
        updated: Time of the last change, in seconds since the epoch.
        ttl_ms: Milliseconds after the creation until the record may be discarded; `None` for never.
        poll_interval_ms: Milliseconds that clients should wait between polls.
        message: A description of the state.
        input_requests: The open input requests by key, as wire objects.
        input_responses: Responses by key that the process of the task has not taken yet.
        result: The result of a completed task, as wire object.
        error: The JSON-RPC error of a failed task.
        call: The call, if another process may run it again.
    """

    task_id: str
    owner: str
    client: str = ""
    version: int = 1
    worker: str = ""
    fence: int = 1
    status: TaskStatus = "working"
    created: float
    updated: float
    ttl_ms: int | None
    poll_interval_ms: int
    message: str | None = None
    input_requests: Mapping[str, Any] | None = None
    input_responses: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    call: RecordedCall | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL

    @property
    def expires(self) -> float:
        """The time from which the record may be discarded, in seconds since the epoch."""
        return float("inf") if self.ttl_ms is None else self.created + self.ttl_ms / 1000

    def next_version(self, **changes: Any) -> TaskRecord:
        """The next version of the record, with some members changed."""
        return msgspec.structs.replace(
            self, **changes, version=self.version + 1, updated=time.time()
        )

    def seed(self) -> dict[str, Any]:
        """The wire object of the extension, without input requests, result and error."""
        return self._wire_members(self.status, self.message, "ttlMs", "pollIntervalMs")

    def wire(self) -> dict[str, Any]:
        """The complete wire object of the extension."""
        wire = self.seed()
        match self.status:
            case "input_required":
                wire["inputRequests"] = self.input_requests or {}
            case "completed":
                wire["result"] = self.result or {}
            case "failed":
                wire["error"] = self.error or {}
            case _:
                pass
        return wire

    def core_wire(self) -> dict[str, Any]:
        """The wire object of 2025-11-25; `failed` if the result of a tool has `isError`."""
        status, message = self.status, self.message
        result = self.result or _NO_RESULT
        if status == "completed" and result.get("isError"):
            content: list[dict[str, Any]] = result.get("content", [])
            texts = (each["text"] for each in content if each.get("text"))
            status, message = "failed", next(texts, "the tool reported an error")
        return self._wire_members(status, message, "ttl", "pollInterval")

    def _wire_members(
        self, status: TaskStatus, message: str | None, ttl: str, interval: str
    ) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "taskId": self.task_id,
            "status": status,
            "createdAt": _timestamp(self.created),
            "lastUpdatedAt": _timestamp(self.updated),
            ttl: self.ttl_ms,
            interval: self.poll_interval_ms,
        }
        if message is not None:
            wire["statusMessage"] = message
        return wire


class TaskPage(NamedTuple):
    """Some records of one owner.

    Attributes:
        records: The records, in the order of creation.
        next_cursor: Cursor of the next page; `None` on the last page.
    """

    records: tuple[TaskRecord, ...]
    next_cursor: str | None


class TaskStore(Protocol):
    """Stores the records of tasks, which several processes may share.

    Each serving process can load a record from its creation to the end of its time to live. Records
    contain arguments and results of tools.
    """

    async def create(self, record: TaskRecord) -> None:
        """Store the first version of a record, with a lease.

        Raises:
            InternalError: The store is full.
        """
        ...

    async def load(self, task_id: str, before: TaskRecord | None = None) -> TaskRecord | None:
        """The record of a task; `None` if it does not exist or has expired.

        Args:
            task_id: Id of the task.
            before: A record that was loaded before; returned as it is if it is the stored version.
                Whoever waits for a change loads often, and records may be long.
        """
        ...

    async def change(self, record: TaskRecord) -> bool:
        """Store a record in place of its previous version.

        Returns:
            `False`, and nothing was written, if the stored record is not the previous version, has
            another fence, has ended, or does not exist.

        Raises:
            InternalError: The store is full; the previous version stays.
        """
        ...

    async def claim(self, task_id: str, worker: str) -> TaskRecord | None:
        """Take over a task whose lease has run out, with a new lease and the next fence.

        Returns:
            `None` if the lease has not run out, or the task has ended or does not exist.
        """
        ...

    async def renew(self, record: TaskRecord) -> int | None:
        """Renew the lease of a task, and return the stored version.

        Returns:
            `None` if the task belongs to another process, has ended, or does not exist.
        """
        ...

    async def page(self, owner: str | None, cursor: str | None, limit: int) -> TaskPage:
        """The records of an owner that have not expired, in the order of creation.

        The records may lack whatever `core_wire` does not show; of `call` there is as much as says
        whether the task may be run again.

        Args:
            owner: See `TaskRecord`. `None` returns tasks of all owners whose lease may have run
                out: one page, in any order; other processes may claim these meanwhile.
            cursor: The `next_cursor` of the previous page; `None` for the first page.
            limit: Most records of the page.

        Raises:
            InvalidParamsError: The cursor is not valid.
        """
        ...


class Shares:
    """Divides a bounded amount among clients, so that no client can take everything.

    A client may take an amount if at least as much stays free as the client then has. So the first
    client gets at most half, a second client half of the rest, and so on.

    Args:
        limit: The amount.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._taken: dict[str, int] = {}

    def has(self, client: str, amount: int = 1) -> bool:
        """Whether a client may take a further amount."""
        return self._taken.get(client, 0) + amount <= self._free

    def take(self, client: str, amount: int = 1) -> None:
        """Take an amount; a negative amount is returned."""
        self._free -= amount
        taken = self._taken.get(client, 0) + amount
        if taken:
            self._taken[client] = taken
        else:
            self._taken.pop(client, None)


class _Stored(NamedTuple):
    """A record in memory.

    Attributes:
        data: The record as JSON, which takes less memory than Python objects.
        number: The place in the order of creation.
        owner: See `TaskRecord`.
        client: See `TaskRecord`.
        version: See `TaskRecord`.
        fence: See `TaskRecord`.
        is_terminal: Whether the task has ended.
    """

    data: bytes
    number: int
    owner: str
    client: str
    version: int
    fence: int
    is_terminal: bool

    @property
    def counted(self) -> int:
        """The bytes that count towards the limit; 0 for a small record."""
        return len(self.data) if len(self.data) > SMALL_RECORD else 0


class MemoryTaskStore:
    """Stores records until they expire, or the process ends.

    Args:
        limit: Most records. At the limit no task can be created.
        clock: Returns the time in seconds since the epoch.
        size: Most bytes of records that are not small. A task whose result exceeds it fails.
    """

    def __init__(
        self,
        limit: int = RECORDS,
        clock: Callable[[], float] = time.time,
        *,
        size: int = RECORD_BYTES,
    ) -> None:
        self._clock = clock
        self._limits = (limit, size)
        self._shares = Shares(limit)
        self._bytes = Shares(size)
        self._last = 0  # number of tasks that were created
        self._records: dict[str, _Stored] = {}  # in the order of creation
        self._expiries: list[tuple[float, str]] = []  # a heap
        self._leases: dict[str, float] = {}  # when they run out, the first ones first

    def __len__(self) -> int:
        """Number of records that have not expired."""
        self._discard_expired()
        return len(self._records)

    async def create(self, record: TaskRecord) -> None:
        """See `TaskStore.create`.

        Raises:
            InternalError: The records that have not expired, of all clients or of this client, are
                too many or have too many bytes.
        """
        self._discard_expired()
        if not self._shares.has(record.client):
            raise self._full_error()
        self._store(record, self._last + 1)
        self._last += 1
        self._lease(record.task_id)
        self._shares.take(record.client)
        if record.ttl_ms is not None:
            heapq.heappush(self._expiries, (record.expires, record.task_id))

    async def load(self, task_id: str, before: TaskRecord | None = None) -> TaskRecord | None:
        """See `TaskStore.load`."""
        self._discard_expired()
        stored = self._records.get(task_id)
        if stored is None:
            return None
        if before is not None and (before.version, before.fence) == (stored.version, stored.fence):
            return before
        return _decode(stored.data)

    async def change(self, record: TaskRecord) -> bool:
        """See `TaskStore.change`.

        Raises:
            InternalError: The records, of all clients or of this client, have too many bytes.
        """
        self._discard_expired()
        before = self._records.get(record.task_id)
        if before is None or before.is_terminal or before.fence != record.fence:
            return False
        if before.version != record.version - 1:
            return False
        self._store(record, before.number)
        if record.is_terminal:
            self._leases.pop(record.task_id, None)
        return True

    async def claim(self, task_id: str, worker: str) -> TaskRecord | None:
        """See `TaskStore.claim`."""
        self._discard_expired()
        before = self._records.get(task_id)
        if before is None or before.is_terminal or self._leases[task_id] > self._clock():
            return None
        record = _decode(before.data).next_version(worker=worker, fence=before.fence + 1)
        self._store(record, before.number)
        self._lease(task_id)
        return record

    async def renew(self, record: TaskRecord) -> int | None:
        """See `TaskStore.renew`."""
        self._discard_expired()
        stored = self._records.get(record.task_id)
        if stored is None or stored.is_terminal or stored.fence != record.fence:
            return None
        self._lease(record.task_id)
        return stored.version

    def _lease(self, task_id: str) -> None:
        self._leases.pop(task_id, None)
        self._leases[task_id] = self._clock() + LEASE_SECONDS

    def _expired_leases(self, limit: int) -> tuple[TaskRecord, ...]:
        """Tasks whose lease has run out."""
        now = self._clock()
        expired = itertools.takewhile(lambda each: each[1] <= now, self._leases.items())
        return tuple(
            _decode(self._records[task_id].data) for task_id, _ in itertools.islice(expired, limit)
        )

    async def page(self, owner: str | None, cursor: str | None, limit: int) -> TaskPage:
        """See `TaskStore.page`."""
        self._discard_expired()
        if owner is None:
            return TaskPage(self._expired_leases(limit), None)
        begin = self._parse_cursor("0" if cursor is None else cursor)
        own = (
            each for each in self._records.values() if each.owner == owner and each.number >= begin
        )
        records: list[TaskRecord] = []
        for stored in own:
            if len(records) == limit:
                return TaskPage(tuple(records), str(stored.number))
            records.append(_decode(stored.data))
        return TaskPage(tuple(records), None)

    def _parse_cursor(self, cursor: str) -> int:
        is_number = cursor.isascii() and cursor.isdecimal() and len(cursor) <= _CURSOR_DIGITS
        if not is_number or int(cursor) > self._last:
            raise InvalidParamsError(
                f"cursor: expected the nextCursor of a page, got {safe_repr(cursor)}"
            )
        return int(cursor)

    def _store(self, record: TaskRecord, number: int) -> None:
        """Write a record in place of its previous version, if there is one."""
        client = record.client
        stored = _Stored(
            msgspec.json.encode(record),
            number,
            record.owner,
            client,
            record.version,
            record.fence,
            record.is_terminal,
        )
        before = self._records.get(record.task_id)
        more = stored.counted - (0 if before is None else before.counted)
        if more > 0 and not self._bytes.has(client, more):
            raise self._full_error()
        self._records[record.task_id] = stored
        self._bytes.take(client, more)

    def _full_error(self) -> InternalError:
        number, size = self._limits
        return InternalError(
            f"expected at most {number} tasks with {size} bytes, and no more of one client "
            "than are free for others"
        )

    def _discard_expired(self) -> None:
        now = self._clock()
        while self._expiries and self._expiries[0][0] <= now:
            _, task_id = heapq.heappop(self._expiries)
            stored = self._records.pop(task_id)
            self._leases.pop(task_id, None)
            self._shares.take(stored.client, -1)
            self._bytes.take(stored.client, -stored.counted)


_CURSOR_DIGITS = 20

_decode = msgspec.json.Decoder(TaskRecord).decode


def _timestamp(seconds: float) -> str:
    """A time in the format of RFC 3339, in UTC, with milliseconds."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
