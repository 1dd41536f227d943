"""The state that the processes of a server share: a bus and a store, and what opens them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import msgspec

from ..asgi.event_store import EventStore, MemoryEventStore
from ..asgi.used_ids import MemoryUsedIds, UsedIds
from .bus import Bus
from .session_store import SessionStore

USED_IDS = 100_000
"""Ids that a state in memory stores."""


class SharedState(msgspec.Struct, frozen=True):
    """The bus and the stores that processes share; other engines than Redis have them too.

    Attributes:
        bus: Tells workers of changes, and of each other.
        sessions: Stores the records of sessions.
        events: Stores the events of streams.
        used: Stores the ids of DPoP proofs that were used, and of sealed sessions that were ended.
        tasks: Stores the records of tasks, a `TaskStore`; `None` for a store of each process.
        opened: Makes the context manager in which all are used; each event loop enters one.
    """

    bus: Bus
    sessions: SessionStore
    opened: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    events: EventStore = msgspec.field(default_factory=MemoryEventStore)
    tasks: Any = None
    used: UsedIds = msgspec.field(default_factory=lambda: MemoryUsedIds(USED_IDS))


def state_of(name: str, shared: SharedState | str) -> SharedState:
    """The state that the option `shared` stands for.

    Args:
        name: Name of the server: others share nothing with it, even by the same engine.
        shared: The option.

    Raises:
        ValueError: It is no URL of an engine.
        MissingExtraError: `valkey` is not installed.
    """
    if isinstance(shared, SharedState):
        return shared
    from ..toolkit.features import tasks_in_engine  # large, and loaded by servers alone
    from .redis_engine import (  # loads a library
        RedisBus,
        RedisEngine,
        RedisEventStore,
        RedisSessionStore,
        RedisUsedIds,
    )

    engine = RedisEngine(shared, name)
    return SharedState(
        RedisBus(engine),
        RedisSessionStore(engine),
        engine.opened,
        events=RedisEventStore(engine),
        used=RedisUsedIds(engine),
        tasks=tasks_in_engine(engine),
    )
