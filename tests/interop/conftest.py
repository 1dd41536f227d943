"""Peers take a second to start, so the tests of one file share a session per revision."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

# Only `nox -s interop` has the peers; elsewhere these files could not even be imported.
collect_ignore_glob = [] if find_spec("fastmcp") else ["test_*.py", "official/test_*.py"]


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop of a whole session."""
    name: str = request.param
    return name
