"""Peers take a second to start, so the tests of one file share a session per revision."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop of a whole session."""
    name: str = request.param
    return name
