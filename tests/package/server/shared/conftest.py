"""Fixtures of tests with state that processes share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from kit.engine import Engine, run_engine
from mcpgen_runtime import MemoryBus, MemorySessionStore, MemoryTaskStore, SharedState
from mcpgen_runtime.server.features.shared_task_server import with_tasks
from mcpgen_runtime.server.shared.state import state_of
from package.server.shared.shared_servers import Waiting, Workers, run_session


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
async def state(kind: str, engine: Engine) -> AsyncIterator[SharedState]:
    """The open state of a server named `tester`."""
    in_memory = SharedState(MemoryBus(), MemorySessionStore(), tasks=MemoryTaskStore())
    state = with_tasks(state_of("tester", engine.url if kind == "redis" else in_memory))
    async with state.opened():
        yield state


@pytest.fixture
async def workers(
    revision: str, engine: Engine, request: pytest.FixtureRequest
) -> AsyncIterator[Workers]:
    """Workers whose clients use one session; the file's `MAKE` makes their servers, if any."""
    make = getattr(request.module, "MAKE", Waiting)
    async with run_session(engine.url, revision, make) as workers:
        yield workers
