"""Packages of a few parts and transports, under both type checkers in strict mode."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator.selections import made, pairwise, written

pytestmark = [pytest.mark.typing, pairwise]


def checked(folder: Path, *command: str) -> None:
    """Run a type checker in a folder; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_finds_nothing_in_strict_mode(
    tmp_path: Path, chosen: str, transports: str, revisions: tuple[str, ...]
) -> None:
    written(made(chosen, transports, revisions), tmp_path)
    checked(tmp_path, "mypy", "--strict", "--cache-dir=cache", "pkg")


def test_pyright_finds_nothing_in_strict_mode(
    tmp_path: Path, chosen: str, transports: str, revisions: tuple[str, ...]
) -> None:
    written(made(chosen, transports, revisions), tmp_path)
    settings = {"include": ["pkg"], "typeCheckingMode": "strict", "reportPrivateUsage": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked(tmp_path, "pyright", "--pythonpath", sys.executable)
