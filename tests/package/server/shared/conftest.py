"""Fixtures of tests with state that processes share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from kit.engine import Engine, run_engine
from mcpgen_runtime import MemoryBus, MemorySessionStore, MemoryTaskStore, SharedState
from mcpgen_runtime.runtime import task_store
from mcpgen_runtime.server.features.shared_task_server import with_tasks
from mcpgen_runtime.server.shared import redis_tasks
from mcpgen_runtime.server.shared.state import state_of
from mcpgen_runtime.server.toolkit import tasks


@pytest.fixture(scope="session")
def one_engine() -> Iterator[Engine]:
    """An engine for all tests."""
    with run_engine() as engine:
        yield engine


@pytest.fixture
def engine(one_engine: Engine) -> Engine:
    """An engine that has nothing stored."""
    one_engine.ask("FLUSHALL")
    return one_engine


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that the library of the engine runs on."""
    return "asyncio"


@pytest.fixture(params=["memory", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    """Where a state is: in memory, or in an engine."""
    name: str = request.param
    return name


@pytest.fixture
def shared(kind: str, engine: Engine) -> str | SharedState:
    """A value of the option `shared`."""
    if kind == "redis":
        return engine.url
    return SharedState(MemoryBus(), MemorySessionStore(), tasks=MemoryTaskStore())


@pytest.fixture
async def state(shared: str | SharedState) -> AsyncIterator[SharedState]:
    """The open state of a server named `tester`."""
    state = with_tasks(state_of("tester", shared))
    async with state.opened():
        yield state


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of tasks that run out soon, and are renewed and looked for often."""
    # No setting: all processes of a server have to use the same times.
    for module, name, value in (
        (tasks, "_RENEW_SECONDS", 0.05),
        (tasks, "POLL_SECONDS", 0.02),
        (tasks, "_FIND_SECONDS", 0.05),
        (redis_tasks, "_LEASE_MS", 500),
        (task_store, "LEASE_SECONDS", 0.5),
    ):
        monkeypatch.setattr(module, name, value)
