"""A fixture that frees the parsed files after the last test of the conventions."""

from __future__ import annotations

from pathlib import Path

import pytest

from conventions.sources import docstring_lines, tree_of

FOLDER = Path(__file__).parent


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Free the trees of all files: later tests would look through them for garbage."""
    if nextitem is None or FOLDER not in nextitem.path.parents:
        for cached in (tree_of, docstring_lines):
            cached.cache_clear()
