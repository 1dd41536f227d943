"""Tests in a browser are collected where playwright is installed: in the session `browser`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, named by MCP_CHROMIUM."""
    program = os.environ.get("MCP_CHROMIUM")
    if not program:
        pytest.skip("MCP_CHROMIUM names no browser; `nox -s browser` sets it")
    from playwright.sync_api import sync_playwright  # absent in other sessions

    with sync_playwright() as playwright:
        # Its sandbox needs rights that containers lack; the pages are ours. Sites have processes
        # of their own on machines of little memory too.
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--site-per-process"]
        )
        yield browser
        browser.close()
