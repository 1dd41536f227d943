"""Records of sessions that any process serves, and the stores of these records.

A record is small plain data. A change names the version that it replaces. So of two concurrent
writers the second is refused, loads the record again and retries.

Source: basic/transports#session-management (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec
from msgspec.structs import replace

from ...runtime.request_context import Identity

RECORD_FORMAT = b"\x01"
"""First byte of an encoded record; records of other formats are treated as unknown."""


SharedRule: TypeAlias = tuple[int, frozenset[str], frozenset[str], bool]
"""Shows or hides items: number of their server, their keys, their tags, whether they are shown.

The server itself has the number 0, mounted servers have the following numbers."""


class SessionRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of one session. `encode_record` and `decode_record` make bytes of it.

    Attributes:
        revision: Name of the revision.
        capabilities: The capabilities that the client declared.
        info: The client's implementation info.
        owner: The identity of the principal that opened the session; `None` without authorization.
        version: Number of changes, including the creation.
        is_ready: Whether the client has confirmed the handshake, or used the session.
        is_confirmed: Whether the client sent `notifications/initialized`.
        log_level: Least level of log messages; `None` until it is set.
        subscriptions: Resources to whose updates the client subscribed.
        listener: Id of the worker that has the newest stream opened by GET; empty for none.
        rules: Rules of this session alone; the last rule that matches an item decides.
        client: Identifies the client whose share of a store the record takes: the principal, else
            the network address.
    """

    revision: str
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any] | None
    owner: Identity | None = None
    version: int = 1
    is_ready: bool = False
    is_confirmed: bool = False
    log_level: str | None = None
    subscriptions: frozenset[str] = frozenset()
    listener: str = ""
    rules: tuple[SharedRule, ...] = ()
    client: str = ""


class SessionStore(Protocol):
    """Stores the records of sessions. All methods raise `SharedStateError` if the store fails.

    `create`, `load` and `touch` set the time after which an unused record is dropped: `seconds`
    from the call, or never with `None`.
    """

    async def create(self, identifier: str, record: SessionRecord, seconds: float | None) -> None:
        """Store the record of a new session.

        Raises:
            SharedStateFullError: The records of all clients have too many bytes.
        """
        ...

    async def load(
        self, identifier: str, seconds: float | None, before: SessionRecord | None = None
    ) -> SessionRecord | None:
        """The record of a session; `None` if the session has ended or never existed.

        Args:
            identifier: Id of the session.
            seconds: See above.
            before: A long record that was loaded before; returned if it is the stored version.
        """
        ...

    async def change(self, identifier: str, record: SessionRecord) -> bool:
        """Store the next version of a record; `False` if the version before it is not stored.

        Raises:
            SharedStateFullError: The records of all clients have too many bytes.
        """
        ...

    async def touch(self, identifier: str, seconds: float | None) -> None:
        """Postpone the expiry of a session that is in use."""
        ...

    async def end(self, identifier: str) -> None:
        """Drop a record, if it exists."""
        ...


class MemorySessionStore:
    """Stores records for the applications of one event loop."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[SessionRecord, float]] = {}

    async def create(self, identifier: str, record: SessionRecord, seconds: float | None) -> None:
        """Store a record."""
        now = anyio.current_time()
        self._records = {each: entry for each, entry in self._records.items() if entry[1] > now}
        self._records[identifier] = record, _expiry(seconds)

    async def load(
        self, identifier: str, seconds: float | None, before: SessionRecord | None = None
    ) -> SessionRecord | None:
        """Load a record."""
        record, until = self._records.get(identifier, (None, 0.0))
        if record is None or until <= anyio.current_time():
            return None
        self._records[identifier] = record, _expiry(seconds)
        return record

    async def change(self, identifier: str, record: SessionRecord) -> bool:
        """Store the next version."""
        before, until = self._records.get(identifier, (None, 0.0))
        if before is None or before.version != record.version - 1:
            return False
        self._records[identifier] = record, until
        return True

    async def touch(self, identifier: str, seconds: float | None) -> None:
        """Postpone the expiry of a session."""
        await self.load(identifier, seconds)

    async def end(self, identifier: str) -> None:
        """Drop a record."""
        self._records.pop(identifier, None)


def _expiry(seconds: float | None) -> float:
    return float("inf") if seconds is None else anyio.current_time() + seconds


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SessionRecord).decode


def encode_record(record: SessionRecord) -> bytes:
    """Encode a record.

    Raises:
        UNWRITABLE: The client sent a value that msgpack can't represent.
    """
    return RECORD_FORMAT + _encode(record)


def decode_record(data: bytes) -> SessionRecord | None:
    """Decode a record; `None` for bytes of another format."""
    if not data.startswith(RECORD_FORMAT):
        return None
    try:
        return _decode(data[1:])
    except msgspec.DecodeError:  # a newer process has stored it
        return None


_MERGED = ("revision", "capabilities", "info", "is_ready", "is_confirmed", "log_level")


def merge_records(
    stored: SessionRecord, before: SessionRecord, ours: SessionRecord
) -> SessionRecord:
    """Merge the changes of this worker into a stored record.

    Args:
        stored: The stored record, with changes of other workers.
        before: The record before all changes.
        ours: The record with the changes of this worker.
    """
    changes: dict[str, Any] = {
        name: value for name in _MERGED if (value := getattr(ours, name)) != getattr(before, name)
    }
    added = ours.subscriptions - before.subscriptions
    removed = before.subscriptions - ours.subscriptions
    return replace(
        stored,
        subscriptions=(stored.subscriptions | added) - removed,
        rules=_merge_rules(stored.rules, before.rules, ours.rules),
        **changes,
    )


def _merge_rules(
    stored: Sequence[SharedRule], before: Sequence[SharedRule], ours: Sequence[SharedRule]
) -> tuple[SharedRule, ...]:
    """Merge the changes of this worker into stored rules; keeps the order within each server."""
    if stored == before:
        return (*ours,)
    new = [rule for rule in ours if rule not in before]
    removed = {*before} - {*ours}
    kept = [rule for rule in stored if rule not in removed and rule not in new]
    return (*sorted([*kept, *new], key=itemgetter(0)),)
