"""The Inspector's command line as client of our server, over each transport."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interop.processes import DEADLINE, ENVIRONMENT, NODE_22, NPM, OURS

pytestmark = pytest.mark.interop

INSPECTOR = NPM / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@pytest.fixture(params=["stdio", "http", "sse"])
def target(request: pytest.FixtureRequest, url: str) -> list[str]:
    """Words of the command line that name our server."""
    if request.param == "stdio":
        return ["-e", f"PYTHONPATH={ENVIRONMENT['PYTHONPATH']}", *OURS]
    return [url if request.param == "http" else url.replace("/mcp", "/sse")]


def inspect(folder: Path, *arguments: str) -> tuple[int, Any]:
    """Run the Inspector to its end; gives the exit code, and what it printed."""
    done = subprocess.run(
        [*NODE_22, str(INSPECTOR), "--cli", *arguments],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "HOME": str(folder)},
        timeout=DEADLINE,
        check=False,
    )
    printed = done.stdout if done.returncode == 0 else done.stderr.splitlines()[-1]
    return done.returncode, json.loads(printed)


def test_tools_are_listed(target: list[str], tmp_path: Path) -> None:
    code, output = inspect(tmp_path, *target, "--method", "tools/list", "--strict")
    tools = {tool["name"]: tool for tool in output["tools"]}
    assert (code, tools["add"]["inputSchema"]["required"]) == (0, ["a", "b"])
    assert tools["change"]["inputSchema"]["properties"] == {}


CALL = ("--method", "tools/call", "--tool-name")
PROMPT = ("--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "city=Oslo")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((*CALL, "add", "--tool-arg", "a=1", "b=2"), '"structuredContent": {"result": 3}'),
        ((*CALL, "change"), '"text": "changed"'),
        (("--method", "resources/read", "--uri", "city://Oslo/weather"), '"text": "sun in Oslo"'),
        (PROMPT, '"text": "Greetings from Oslo"'),
    ],
)
def test_tools_resources_and_prompts_are_used(
    target: list[str], words: tuple[str, ...], part: str, tmp_path: Path
) -> None:
    code, output = inspect(tmp_path, *target, *words)
    assert (code, part in json.dumps(output)) == (0, True), output


def test_an_error_of_the_server_is_shown(target: list[str], tmp_path: Path) -> None:
    code, output = inspect(tmp_path, *target, "--method", "tools/call", "--tool-name", "refuse")
    assert code != 0
    assert "not today" in output["error"]["message"]
