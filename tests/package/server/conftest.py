"""Where `MCP_WORKERS` is set, an engine for the workers of the servers that these tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kit import asgi_client
from kit.engine import run_engine
from kit.waiting import WaitingServer
from kit.web_process import write_server


@pytest.fixture(scope="session", autouse=True)
def shared_engine() -> Iterator[None]:
    """An engine for all tests, if they are to share one."""
    if not os.environ.get("MCP_WORKERS"):
        yield
        return
    with run_engine() as engine:
        asgi_client.SHARED.append(engine.url)
        yield
        asgi_client.SHARED.clear()


KEYS = count()


@pytest.fixture
def key() -> str:
    """An argument for a tool of a process; no other test has it."""
    return f"k{next(KEYS)}"


@pytest.fixture
def waiting() -> WaitingServer:
    """A server whose tools wait for the test."""
    return WaitingServer(drain=5)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """See that nothing in this process fails in a way that only the log tells."""
    yield
    from kit.faults import check_quiet

    check_quiet(caplog)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the server of `kit.web_process` in it."""
    write_server(tmp_path)
    return tmp_path
