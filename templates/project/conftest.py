"""Fixtures of all tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that tests run on."""
    return "asyncio"
