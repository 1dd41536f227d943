"""The state that the processes of a server share: a bus, and stores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from ..asgi.event_store import EventStore, MemoryEventStore
from ..asgi.used_ids import MemoryUsedIds, UsedIds
from .bus import Bus
from .session_store import SessionStore

if TYPE_CHECKING:
    from .redis_engine import RedisEngine

USED_IDS = 100_000
"""Most used ids that a state in memory stores."""


class SharedState(msgspec.Struct, frozen=True):
    """The bus and the stores that processes share, for engines other than Redis too.

    Attributes:
        bus: Carries messages among workers.
        sessions: Stores the records of sessions.
        events: Stores the events of streams.
        used: Stores the ids of used DPoP proofs.
        ended: Stores the ids of ended sealed sessions; `None` for `used`.
        tasks: Stores the records of tasks, a `TaskStore`; `None` for a separate store per process.
        opened: Makes the context manager inside which the state is used; once per event loop.
        engine: The engine of the stores, if they are in one.
    """

    bus: Bus
    sessions: SessionStore
    opened: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    events: EventStore = msgspec.field(default_factory=MemoryEventStore)
    tasks: Any = None
    used: UsedIds = msgspec.field(default_factory=lambda: MemoryUsedIds(USED_IDS))
    ended: UsedIds | None = None
    engine: RedisEngine | None = None


def state_of(name: str, shared: SharedState | str) -> SharedState:
    """The state for a value of the option `shared`.

    Args:
        name: Name of the server. Servers with other names share nothing, even in the same engine.
        shared: The value.

    Raises:
        ValueError: The value is not the URL of an engine.
        MissingExtraError: `valkey` is not installed.
    """
    if isinstance(shared, SharedState):
        return shared
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
        used=RedisUsedIds(engine, "used"),
        ended=RedisUsedIds(engine, "ended"),
        engine=engine,
    )
