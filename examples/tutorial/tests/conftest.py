"""Fixtures of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that tests run on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new database for each test."""
    monkeypatch.setenv("LIBRARY_DB", str(tmp_path / "library.db"))
