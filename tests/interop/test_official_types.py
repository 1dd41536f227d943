"""The example's `mcp.types` of version 1, beside that of the official SDK."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from interop.processes import run_mcpgen

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parent.parent.parent
TEMPLATES = ROOT / "examples" / "python-sdk-1" / "templates"
SCRIPT = Path(__file__).with_name("official_types.py")
PYTHON = os.environ.get("MCP_SMOLAGENTS", "")


def test_rendered_types_have_the_names_and_members_of_the_sdk(tmp_path: Path) -> None:
    assert PYTHON, "MCP_SMOLAGENTS names no Python: run nox -s interop"
    words = ("render", "-q", f"{TEMPLATES}", "-o", f"{tmp_path / 'out'}", "-r", "2025-11-25")
    run_mcpgen(*words)
    compare = (f"{SCRIPT}", "--compare", f"{tmp_path / 'out' / 'types.py'}")
    done = subprocess.run([PYTHON, *compare], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differences" in done.stdout
