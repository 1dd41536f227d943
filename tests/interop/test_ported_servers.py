"""Published servers of the official SDK 1, ported by `mcpgen port` alone, beside the originals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interop.processes import run_mcpgen
from interop.stdio_programs import open_session, repository

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

PYTHON = os.environ.get("MCP_PORTED_SERVERS", "")
"""The Python of an environment with the servers, and with what their ports run on."""

CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "fetch": [("fetch", {"url": "tides"}), ("nothing", {})],
    "git": [
        *((f"git_{name}", {}) for name in ("status", "log", "diff_unstaged", "diff_staged")),
        ("git_branch", {"branch_type": "local"}),
        ("git_branch", {"branch_type": "some"}),
        ("git_diff", {"target": "nowhere"}),
        ("nothing", {}),
    ],
}
LEFT = {"fetch": 0, "git": 5}
"""Places that are left to a person, which no call here reaches."""


def ported(name: str, folder: Path) -> dict[str, Any]:
    """The record of a port of an installed server, which is written to a folder."""
    asked = f"import mcp_server_{name} as it; print(it.__path__[0])"
    done = subprocess.run([PYTHON, "-c", asked], capture_output=True, text=True, check=True)
    program = folder / f"mcp_server_{name}"
    shutil.copytree(done.stdout.strip(), program, ignore=shutil.ignore_patterns("__pycache__"))
    words = ("port", f"{program}", "-o", f"{folder / 'my_protocol'}", "--write", "--json")
    record: dict[str, Any] = json.loads(run_mcpgen(*words, codes=(0, 1)).stdout)
    return record


async def answers(name: str, folder: Path, root: Path | None) -> dict[str, Any]:
    """The name, the lists and the results of a server; the modules in `root` come first."""
    variables = {"PYTHONPATH": f"{root or ''}", "PATH": os.environ["PATH"] if name == "git" else ""}
    command = [PYTHON, "-m", f"mcp_server_{name}"]
    async with open_session(command, variables, modern=False) as session:
        opened = session.server_info
        assert opened is not None
        lists: dict[str, Any] = {"tools": await session.list_tools()}
        if name == "fetch":
            lists["prompts"] = await session.list_prompts()
        for tool, arguments in CALLS[name]:
            given = {"repo_path": f"{folder}", **arguments} if name == "git" else arguments
            lists[f"{tool} {arguments}"] = await session.call_tool(tool, given)
    made = {key: each.model_dump(by_alias=True, exclude_none=True) for key, each in lists.items()}
    return {"name": opened.name, **made}


@pytest.mark.parametrize("name", CALLS)
async def test_a_ported_server_lists_and_answers_as_before(name: str, tmp_path: Path) -> None:
    assert PYTHON, "MCP_PORTED_SERVERS names no Python: run nox -s interop"
    record = ported(name, tmp_path)
    assert len(record["left"]) == LEFT[name]
    folder = repository(tmp_path / "repository")
    theirs = await answers(name, folder, None)
    assert theirs["tools"]["tools"]
    assert await answers(name, folder, tmp_path) == theirs
