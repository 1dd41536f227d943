"""Fixtures of tests with state that processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.engine import Engine, run_engine


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
