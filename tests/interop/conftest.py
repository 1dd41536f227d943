"""Peers take a second to start, so the tests of one file share a session per revision."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from interop.processes import OURS, run_server

# Only `nox -s interop` has the peers; elsewhere these files could not even be imported.
collect_ignore_glob = [] if find_spec("fastmcp") else ["test_*.py", "official/test_*.py"]


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop of a whole session."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Our own server, over HTTP."""
    with run_server(*OURS, "127.0.0.1:0") as served:
        yield served
