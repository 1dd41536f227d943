"""Our client on servers of old releases of the official Python SDK, which the probe ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_protocol import connect, connect_sync
from package.live import text_of

pytestmark = pytest.mark.interop

RELEASES = ("1.0.0", "1.2.1", "1.5.0", "1.6.0", "1.8.1", "1.9.3")
SCRIPT = str(Path(__file__).with_name("old_python_server.py"))
ENVIRONMENTS = Path(os.environ.get("MCP_OLD_PYTHON_PEERS", ".")).resolve()


@pytest.fixture
def anyio_backend() -> str:
    """Pipes are read on both loops by other tests: here the releases differ."""
    return "asyncio"


@pytest.fixture(params=RELEASES)
def command(request: pytest.FixtureRequest) -> list[str]:
    """Starts a server on one release."""
    scripts = ENVIRONMENTS / request.param / ("Scripts" if os.name == "nt" else "bin")
    assert scripts.is_dir(), "MCP_OLD_PYTHON_PEERS names no folder with environments"
    return [str(scripts / "python"), SCRIPT]


async def test_an_old_server_is_connected_without_a_setting(command: list[str]) -> None:
    async with connect(command) as client:
        assert client.server_info["name"] == "old"
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"


async def test_an_old_server_starts_once_where_the_handshake_is_pinned(
    command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    async with connect(command, revision="handshake") as client:
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
    assert "server/discover" not in capfd.readouterr().err


def test_an_old_server_is_connected_without_an_event_loop(command: list[str]) -> None:
    with connect_sync(command) as client:
        assert text_of(client.call_tool("add", {"a": 1, "b": 2})) == "3"
