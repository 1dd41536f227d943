"""The adapter of smolagents as client of our server: it looks into the properties of every tool."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from interop.processes import DEADLINE, ENVIRONMENT, HERE, OURS

pytestmark = pytest.mark.interop

PYTHON = os.environ.get("MCP_SMOLAGENTS", "")
"""The Python of an environment with smolagents, whose adapter needs an older release of the SDK."""


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_tools_with_and_without_arguments_are_adapted_and_called(way: str, url: str) -> None:
    assert PYTHON, "MCP_SMOLAGENTS names no Python: run nox -s interop"
    done = subprocess.run(
        [PYTHON, str(HERE / "smolagents_client.py"), *(OURS if way == "stdio" else [url])],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    inputs, called = map(json.loads, done.stdout.splitlines())
    assert (inputs["add"], inputs["change"]) == (["a", "b"], [])
    assert called == {"add": "3", "change": "changed"}
