"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPEC_VARIABLE = "MCP_SPEC"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop an async test runs on: each test runs on both."""
    name: str = request.param
    return name


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop that a server in a process of its own runs on."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def root() -> Path:
    """Top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def spec() -> Path:
    """A checkout of the specification repository; the test is skipped where there is none."""
    place = os.environ.get(SPEC_VARIABLE)
    if not place:
        pytest.skip(f"{SPEC_VARIABLE} names no checkout of the specification repository")
    path = (ROOT / place).resolve()
    if not (path / "schema").is_dir():
        pytest.fail(f"{SPEC_VARIABLE}: expected a folder with schema/, got {path}")
    return path
