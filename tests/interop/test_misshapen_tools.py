"""Servers whose tools break the schema: beside zod 4, their input schemas come without a type."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from interop.revisions import HANDSHAKE
from mcpgen_runtime import connect

pytestmark = pytest.mark.interop

SERVERS = Path(os.environ.get("MCP_NPM_MISSHAPEN", ".")).resolve() / "node_modules"
FILESYSTEM = SERVERS / "@modelcontextprotocol/server-filesystem/dist/index.js"
GITLAB = SERVERS / "@modelcontextprotocol/server-gitlab/dist/index.js"


def left_out(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Tools that the warnings name as left out."""
    said = [record.getMessage() for record in caplog.records]
    assert all("inputSchema: expected" in warning for warning in said)
    return [warning.partition(" is left out: ")[0] for warning in said]


@pytest.mark.parametrize("revision", [None, HANDSHAKE[0]])
async def test_a_file_server_lists_its_good_tool_and_names_the_others(
    revision: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    command = ["node", str(FILESYSTEM), str(tmp_path)]
    async with connect(command, revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["list_allowed_directories"]
        result = await client.call_tool("list_allowed_directories")
        assert str(tmp_path) in result.content[0].text
        (tmp_path / "note").write_text("still called by its name")
        result = await client.call_tool("read_file", {"path": str(tmp_path / "note")})
    assert result.content[0].text == "still called by its name"
    names = left_out(caplog)
    assert names[0] == "tools/list: tools[0] 'read_file'"
    assert len(names) == 8


async def test_a_server_without_a_good_tool_is_met_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    environment = {**os.environ, "GITLAB_PERSONAL_ACCESS_TOKEN": "none"}
    async with connect(["node", str(GITLAB)], env=environment) as client:
        assert await client.list_tools() == []
    assert left_out(caplog)[0] == "tools/list: tools[0] 'create_or_update_file'"
