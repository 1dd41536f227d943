"""Limits made small, so that a test reaches them: the only way in which tests change a limit."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
SETTING = re.compile(r"\| `((?:pkg|mcpgen)\.[\w.]+)` \|$", re.MULTILINE)


class SetLimit(Protocol):
    """Sets a constant until the end of the test."""

    def __call__(self, setting: str, value: float) -> None:
        """Set a limit."""


@cache
def documented() -> frozenset[str]:
    """The constants in the tables of docs/limits.md."""
    return frozenset(SETTING.findall(PAGE.read_text("utf-8")))


@pytest.fixture
def set_limit(monkeypatch: pytest.MonkeyPatch) -> SetLimit:
    """A function that sets a documented limit until the end of the test."""

    def change(setting: str, value: float) -> None:
        assert setting in documented(), f"expected a setting of docs/limits.md, got {setting}"
        module, _, constant = re.sub(r"^pkg\b", "mcpgen_runtime", setting).rpartition(".")
        monkeypatch.setattr(importlib.import_module(module), constant, value)

    return change
