"""The state that the processes of a server share: a bus and a store, and what opens them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from ..asgi.event_store import EventStore, MemoryEventStore
from .bus import Bus
from .session_store import SessionStore


class SharedState(msgspec.Struct, frozen=True):
    """The bus and the store that processes share; other engines than Redis have them too.

    Attributes:
        bus: Tells workers of changes, and of each other.
        sessions: Stores the records of sessions.
        events: Stores the events of streams.
        opened: Makes the context manager in which both are used; each event loop enters one.
    """

    bus: Bus
    sessions: SessionStore
    opened: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    events: EventStore = msgspec.field(default_factory=MemoryEventStore)


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
    from .redis_engine import (  # loads a library
        RedisBus,
        RedisEngine,
        RedisEventStore,
        RedisSessionStore,
    )

    engine = RedisEngine(shared, name)
    return SharedState(
        RedisBus(engine), RedisSessionStore(engine), engine.opened, RedisEventStore(engine)
    )
