"""The place of a lock."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a lock, which is not there yet."""
    return tmp_path / "mcp.lock.json"
