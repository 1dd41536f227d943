"""Packages of a few parts and transports, under both type checkers in strict mode."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator.selections import MIDDLE, NEWEST, made, pairwise, written

pytestmark = pytest.mark.typing


def checked(folder: Path, *command: str) -> None:
    """Run a type checker in a folder; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def checked_by_pyright(folder: Path) -> None:
    settings = {"include": ["pkg"], "typeCheckingMode": "strict", "reportPrivateUsage": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    checked(folder, "pyright", "--pythonpath", sys.executable)


@pairwise
def test_mypy_finds_nothing_in_strict_mode(
    tmp_path: Path, chosen: str, transports: str, revisions: tuple[str, ...]
) -> None:
    written(made(chosen, transports, revisions), tmp_path)
    checked(tmp_path, "mypy", "--strict", "--cache-dir=cache", "pkg")


@pairwise
def test_pyright_finds_nothing_in_strict_mode(
    tmp_path: Path, chosen: str, transports: str, revisions: tuple[str, ...]
) -> None:
    written(made(chosen, transports, revisions), tmp_path)
    checked_by_pyright(tmp_path)


def test_neither_reports_errors_in_a_package_of_pydantic_models(tmp_path: Path) -> None:
    written(made("all", "all", (MIDDLE, NEWEST), "pydantic"), tmp_path)
    checked(tmp_path, "mypy", "--strict", "--cache-dir=cache", "pkg")
    checked_by_pyright(tmp_path)
