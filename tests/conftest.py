"""Fixtures that every test may use."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPEC_VARIABLE = "MCP_SPEC"
NEWEST_REVISION = max(path.name for path in (ROOT / "schema").glob("20*"))


REVISION_NAME = re.compile(r"20\d\d-\d\d-\d\d")
"""A revision in the name of a test; `--quick` keeps the newest one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `nox -s quick`."""
    parser.addoption("--quick", action="store_true", help="newest revision, asyncio, no slow tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--quick` leaves out."""
    if not config.getoption("--quick"):
        return
    left_out = [item for item in items if not is_quick(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if is_quick(item)]


def is_quick(item: pytest.Item) -> bool:
    """Whether a test belongs to the inner loop."""
    revisions = set(REVISION_NAME.findall(item.name))
    newest = not revisions or NEWEST_REVISION in revisions
    return newest and "trio" not in item.name and item.get_closest_marker("slow") is None


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
