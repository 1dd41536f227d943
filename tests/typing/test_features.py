"""Packages with some features and without others, under mypy in strict mode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from generator.selections import LAST_WITH_SESSIONS, MIDDLE, NEWEST, made, written

pytestmark = pytest.mark.typing

NONE = ("none",)


def test_packages_of_any_features_are_strictly_typed(tmp_path: Path) -> None:
    some = ("auth", "mount", "inspector")
    others = ("groups", "proxy", "openapi", "telemetry")
    for name, chosen in {"none": NONE, "some": some, "others": others}.items():
        written(made("all", "all", (NEWEST,), features=chosen), tmp_path, f"with_{name}")
    written(made("client", "http", (MIDDLE,), features=NONE), tmp_path, "client_alone")
    written(made("server", "stdio", (LAST_WITH_SESSIONS,), features=NONE), tmp_path, "server_alone")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
