"""Where `MCP_WORKERS` is set, an engine for the workers of the servers that these tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from package import asgi_client
from package.server.shared.engine import run_engine


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
