"""Our client on servers of old releases of the official Python SDK, which the probe ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from interop.hearing import Person
from kit.live import text_of
from mcpgen_runtime import ClientTasks, McpError, connect, connect_sync

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

RELEASES = ("1.0.0", "1.2.1", "1.5.0", "1.6.0", "1.8.1", "1.9.3")
SCRIPT = str(Path(__file__).with_name("old_python_server.py"))
WITH_TASKS = os.environ.get("MCP_SMOLAGENTS", "")
"""The Python of an environment with the last release of the official SDK that has tasks."""

ENVIRONMENTS = Path(os.environ.get("MCP_OLD_PYTHON_PEERS", ".")).resolve()


def command(release: str) -> list[str]:
    """Starts a server on one release."""
    scripts = ENVIRONMENTS / release / ("Scripts" if os.name == "nt" else "bin")
    assert scripts.is_dir(), "MCP_OLD_PYTHON_PEERS names no folder with environments"
    return [str(scripts / "python"), SCRIPT]


async def visit(release: str) -> object:
    """The name, the tools and a sum of a server, or why there is no connection."""
    try:
        async with connect(command(release)) as client:
            tools = [tool.name for tool in await client.list_tools()]
            total = text_of(await client.call_tool("add", {"a": 1, "b": 2}))
            return client.server_info["name"], tools, total
    except McpError as error:
        return error


@pytest.fixture(scope="module")
async def first_visits() -> dict[str, object]:
    """Results of `visit` by release. All visits go on side by side: they wait for timeouts."""
    visits: dict[str, object] = {}

    async def keep(release: str) -> None:
        visits[release] = await visit(release)

    async with anyio.create_task_group() as tasks:
        for release in RELEASES:
            tasks.start_soon(keep, release)
    return visits


@pytest.mark.parametrize("release", RELEASES)
async def test_an_old_server_is_connected_without_a_setting(
    release: str, first_visits: dict[str, object]
) -> None:
    """If the test is repeated, another visit is made."""
    outcome = first_visits.pop(release, None) or await visit(release)
    assert outcome == ("old", ["add", "greet"], "3")


@pytest.mark.parametrize("release", RELEASES)
async def test_an_old_server_starts_once_where_the_handshake_is_pinned(
    release: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with connect(command(release), revision="handshake") as client:
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
    assert "server/discover" not in capfd.readouterr().err


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]])
def test_an_old_server_is_connected_without_an_event_loop(release: str) -> None:
    with connect_sync(command(release)) as client:
        assert text_of(client.call_tool("add", {"a": 1, "b": 2})) == "3"


async def test_a_server_on_the_official_sdk_gets_answers_by_tasks() -> None:
    assert WITH_TASKS, "MCP_SMOLAGENTS names no Python: run nox -s interop"
    how: Any = {"handlers": Person, "tasks": ClientTasks(poll_interval=0.1)}
    async with connect([WITH_TASKS, SCRIPT], revision="2025-11-25", **how) as client:
        assert text_of(await client.call_tool("greet")) == "<Greet Ada>"
