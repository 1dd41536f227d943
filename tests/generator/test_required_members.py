"""A server of a draft that requires more than servers set: refused as it is made, or given it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.schemas import TEXT
from generator.test_fitting import definitions_of, save_schema
from generator.test_undecided_unions import check_program
from mcpgen.model import schema_sources
from mcpgen.package import output, pipeline
from mcpgen.package.build_request import BuildRequest

pytestmark = pytest.mark.lengthy

NAMES = ["2025-06-18", "2026-07-28"]

REFUSES = """
import pytest
from pkg import Server

with pytest.raises(TypeError, match="Server: revision 'draft': .*`seal`"):
    Server("notes")
"""

CHECKS = """
import pytest
from pkg import Server

server = Server("notes")

with pytest.raises(TypeError, match="tool 'add': revision 'draft': nothing sets Tool.owner"):
    @server.tool()
    def add(a: int) -> int:
        return a

with pytest.raises(TypeError, match="prompt 'ask': revision 'draft': nothing sets GetPrompt"):
    @server.prompt()
    def ask() -> str:
        return "?"

server = Server("notes")

with pytest.raises(TypeError, match="resource 'a://b': revision 'draft': .*`mimeType`"):
    @server.resource("a://b")
    def read() -> str:
        return "c"

server = Server("notes")

@server.resource("a://b", mime_type="text/plain")
def other() -> str:
    return "c"
"""

GIVES = """
import anyio
from pkg import Server
from pkg.testing import connected

server = Server("notes")

@server.tool()
def add(a: int) -> int:
    return a

async def main() -> None:
    async with connected(server) as pair:
        (tool,) = await pair.client.list_tools()
        assert tool.owner == "us", tool
        assert pair.client.server_info["seal"] == "s1", pair.client.server_info

anyio.run(main)
"""


def package(folder: Path, name: str, required: list[tuple[str, str]], stated: str = "") -> Path:
    """A package of a revision whose objects require further texts."""
    definitions: dict[str, Any] = definitions_of(name)
    for owner, wire in required:
        definitions[owner]["properties"].setdefault(wire, TEXT)
        definitions[owner]["required"] = [*definitions[owner].get("required", ()), wire]
    file = folder / "own.toml"
    file.write_text(stated)
    source = schema_sources.of_file(save_schema(folder, definitions), file if stated else None)
    output.write(folder / "pkg", pipeline.build(BuildRequest("pkg", (source,)), form=dict))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_server_without_a_required_member_is_not_made(name: str, tmp_path: Path) -> None:
    check_program(package(tmp_path, name, [("Implementation", "seal")]), REFUSES)


@pytest.mark.parametrize("name", NAMES)
def test_items_without_a_required_member_are_not_registered(name: str, tmp_path: Path) -> None:
    required = [("Tool", "owner"), ("Resource", "mimeType"), ("GetPromptResult", "seal")]
    check_program(package(tmp_path, name, required), CHECKS)


@pytest.mark.parametrize("name", NAMES)
def test_facts_give_a_required_member_its_value(name: str, tmp_path: Path) -> None:
    stated = '[defaults.Tool]\nowner = "us"\n[defaults.Implementation]\nseal = "s1"'
    required = [("Tool", "owner"), ("Implementation", "seal")]
    check_program(package(tmp_path, name, required, stated), GIVES)
