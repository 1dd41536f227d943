"""Pytest in a process of its own, on files that a test writes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_pytest(
    folder: Path, *words: str, plugins: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with plugins below `tests`, and with few of others."""
    (folder / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n", "utf-8")
    paths = " ".join(f"{ROOT / name}" for name in ("generator", "generated", "tests"))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {paths}\n", "utf-8")
    # Pytest starts twice as fast without the plugins that it is not told to load.
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = (sys.executable, "-m", "pytest", "-pxdist", "-pno:cacheprovider", *words)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
