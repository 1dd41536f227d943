"""Projects that start from real servers: npm's server-everything, and one with odd schemas."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from interop.processes import EVERYTHING, run_mcpgen
from interop.test_misshapen_tools import SERVERS

pytestmark = pytest.mark.interop

SERVER = ["node", EVERYTHING, "stdio"]
FILES = ["node", str(SERVERS / "@modelcontextprotocol/server-filesystem/dist/index.js")]


def make_project(side: str, name: str, command: list[str], folder: Path) -> tuple[Path, str]:
    """A project that starts from a server of a configuration, and what mcpgen says of it."""
    config = {"mcpServers": {"only": {"command": command[0], "args": command[1:]}}}
    (folder / "mcp.json").write_text(json.dumps(config))
    words = ["new", side, name, "--from-server", "mcp.json"]
    return folder / name, run_mcpgen(*words, cwd=folder, timeout=100).stdout


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A client of the server of npm, and what mcpgen says of it."""
    return make_project("client", "visitor", SERVER, tmp_path_factory.mktemp("visitor"))


@pytest.fixture(scope="module")
def parrot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server like that of npm."""
    return make_project("server", "parrot", SERVER, tmp_path_factory.mktemp("parrot"))[0]


async def test_a_client_calls_a_real_server_by_typed_calls(
    visitor: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, printed = visitor
    notes = [line for line in printed.splitlines() if line.startswith("note: ")]
    assert all(note.endswith("listed without /execution") for note in notes), notes
    monkeypatch.syspath_prepend(project / "src")
    mirror: Any = importlib.import_module("visitor.mirror")
    protocol: Any = importlib.import_module("visitor.protocol")
    async with protocol.connect(SERVER) as client:
        calls = mirror.Visitor(client, timeout=20)
        echoed = await calls.echo(message="hello")
        assert echoed.content[0].text == "Echo: hello"
        summed = await calls.get_sum(a=1, b=2.5)
        assert "3.5" in summed.content[0].text
        weather = await calls.get_structured_content(location="Chicago")
        assert isinstance(weather, mirror.GetStructuredContentResult)
        assert isinstance(weather.humidity, float | int)
        resource = await calls.read_dynamic_text_resource(resource_id="1")
        assert resource.contents[0].text
        prompt = await calls.args_prompt(city="Oslo")
        assert prompt.messages[0].content.text == "What's weather in Oslo?"
        with pytest.raises(mirror.ToolCallError):
            await calls.gzip_file_as_resource(data="nothing")


async def test_a_server_lists_the_same_tools_as_the_real_one(
    parrot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(parrot / "src")
    server: Any = importlib.import_module("parrot.server").server
    protocol: Any = importlib.import_module("parrot.protocol")
    testing: Any = importlib.import_module("parrot.protocol.testing")
    async with protocol.connect(SERVER) as real, testing.connected(server) as pair:
        theirs = {tool.name: tool.input_schema for tool in await real.list_tools()}
        ours = {tool.name: tool.input_schema for tool in await pair.client.list_tools()}
        assert ours.keys() <= theirs.keys()
        assert [name for name in ours if ours[name] != theirs[name]] == []
        assert len(ours) > 10


def test_tools_with_odd_schemas_take_a_dict_and_are_named(tmp_path: Path) -> None:
    project, printed = make_project("server", "files", [*FILES, str(tmp_path)], tmp_path)
    notes = [line for line in printed.splitlines() if "its arguments are a dict" in line]
    assert len(notes) >= 8
    module = (project / "src/files/mirror/__init__.py").read_text()
    assert "async def read_file(self, arguments: dict[str, Any], ctx: Context)" in module
