"""The place of a lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from package.client.lock.locking import record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a lock, which is not there yet."""
    return tmp_path / "mcp.lock.json"


@pytest.fixture
async def recorded(path: Path) -> Path:
    """The file of a lock that has the shop."""
    await record(path)
    return path
