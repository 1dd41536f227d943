"""Records of tasks, and where a server stores them.

Source: ext-tasks/specification/draft/tasks#tasks, #security-considerations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ...errors import InternalError

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

TERMINAL: frozenset[TaskStatus] = frozenset({"completed", "failed", "cancelled"})
"""Statuses that never change."""

RECORDS = 10_000
"""Most records of a `MemoryTaskStore`."""


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one task. `msgspec.json` encodes and decodes it.

    Attributes:
        task_id: Its id, which nobody can guess.
        owner: Identifies the principal that it belongs to; empty without authentication.
        status: Its status.
        created: When it was created, in seconds since the epoch.
        updated: When it changed last, in seconds since the epoch.
        ttl_ms: Milliseconds from its creation after which it may be discarded; `None` for never.
        poll_interval_ms: Milliseconds between polls that clients are asked to keep.
        message: A description of its state.
        input_requests: The open input requests by key, as wire objects.
        result: The result of a completed task, as wire object.
        error: The JSON-RPC error of a failed task.
    """

    task_id: str
    owner: str
    status: TaskStatus = "working"
    created: float
    updated: float
    ttl_ms: int | None
    poll_interval_ms: int
    message: str | None = None
    input_requests: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended."""
        return self.status in TERMINAL

    def seed(self) -> dict[str, Any]:
        """The task without input requests, result and error, as wire object."""
        wire: dict[str, Any] = {
            "taskId": self.task_id,
            "status": self.status,
            "createdAt": _timestamp(self.created),
            "lastUpdatedAt": _timestamp(self.updated),
            "ttlMs": self.ttl_ms,
            "pollIntervalMs": self.poll_interval_ms,
        }
        if self.message is not None:
            wire["statusMessage"] = self.message
        return wire

    def wire(self) -> dict[str, Any]:
        """The whole task as wire object."""
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


class TaskStore(Protocol):
    """Stores the records of tasks, which several processes may share.

    A record that was saved must be found from then on, by each process that serves, until its time
    to live is over. Records contain arguments and results of tools.
    """

    async def load(self, task_id: str) -> TaskRecord | None:
        """The record of a task; `None` if there is none, or it has expired."""
        ...

    async def save(self, record: TaskRecord) -> None:
        """Write a record."""
        ...


class MemoryTaskStore:
    """Stores records until they expire, or the process ends.

    Args:
        limit: Most records. At the limit no task can be created.
        clock: Gives the time in seconds since the epoch.
    """

    def __init__(self, limit: int = RECORDS, clock: Callable[[], float] = time.time) -> None:
        self._limit = limit
        self._clock = clock
        self._records: dict[str, TaskRecord] = {}

    def __len__(self) -> int:
        return len(self._records)

    async def load(self, task_id: str) -> TaskRecord | None:
        """See `TaskStore.load`."""
        record = self._records.get(task_id)
        if record is not None and self._is_expired(record):
            del self._records[task_id]
            return None
        return record

    async def save(self, record: TaskRecord) -> None:
        """See `TaskStore.save`.

        Raises:
            InternalError: There are too many records that have not expired.
        """
        if record.task_id not in self._records and len(self._records) >= self._limit:
            for expired in [each for each in self._records.values() if self._is_expired(each)]:
                del self._records[expired.task_id]
            if len(self._records) >= self._limit:
                raise InternalError(f"expected at most {self._limit} tasks")
        self._records[record.task_id] = record

    def _is_expired(self, record: TaskRecord) -> bool:
        ttl = record.ttl_ms
        return ttl is not None and self._clock() >= record.created + ttl / 1000


def _timestamp(seconds: float) -> str:
    """A time as RFC 3339 has it, in UTC, with milliseconds."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
