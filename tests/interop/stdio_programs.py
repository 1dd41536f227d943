"""Programs that the official client runs over standard streams, and a repository for some."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp

from interop.processes import ENVIRONMENT


@asynccontextmanager
async def open_session(
    command: list[str], variables: dict[str, str], *, modern: bool
) -> AsyncIterator[mcp.ClientSession]:
    """A session with a program, opened by `server/discover` or by `initialize`."""
    parameters = mcp.StdioServerParameters(
        command=command[0], args=command[1:], env={**ENVIRONMENT, **variables}
    )
    async with (
        mcp.stdio_client(parameters) as (read, write),
        mcp.ClientSession(read, write) as session,
    ):
        await (session.discover() if modern else session.initialize())
        yield session


def repository(folder: Path) -> Path:
    """A new repository with one commit, and a change that is not staged."""
    git = ["git", "-C", f"{folder}", "-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    folder.mkdir()
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com")):
        subprocess.run([*git, "config", name, value], check=True)
    (folder / "a.txt").write_text("one\n")
    subprocess.run([*git, "add", "."], check=True)
    dates = {
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    }
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True, env={**os.environ, **dates})
    (folder / "a.txt").write_text("two\n")
    return folder
