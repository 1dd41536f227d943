"""What a draft adds to content, items and requests is in the toolkit of its package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.schemas import TEXT, const, obj, ref
from generator.test_fitting import definitions_of, save_schema
from generator.test_undecided_unions import check_program
from mcpgen.model import schema_sources
from mcpgen.package import output, pipeline
from mcpgen.package.build_request import BuildRequest

NAMES = ["2025-11-25", "2026-07-28"]
every = pytest.mark.parametrize("name", NAMES)


def package(folder: Path, definitions: dict[str, Any], stated: str = "") -> Path:
    """A folder with a package of a revision that has these definitions."""
    file = folder / "own.toml"
    file.write_text(stated)
    source = schema_sources.of_file(save_schema(folder, definitions), file if stated else None)
    output.write(folder / "pkg", pipeline.build(BuildRequest("pkg", (source,)), form=dict))
    return folder


BLOCKS = """
import anyio
from pkg import Image, Server, Text, ToolResult
from pkg.rdraft.models import SceneContent, Tool, VideoContent
from pkg.testing import connected

server = Server("films")
video = VideoContent(data="AAAA", mime_type="video/mp4")
scene = SceneContent(data="no base64!", points=[1, 2])

@server.tool()
def one() -> VideoContent:
    return video

@server.tool()
def several() -> list[VideoContent | SceneContent | str]:
    return ["two:", video, scene]

@server.tool()
def unannotated():
    return [video, Image(b"x", "image/png")]

@server.tool()
def whole() -> ToolResult:
    return ToolResult(content=[video, "text"])

@server.prompt()
def show() -> list[object]:
    return [video, "look"]

@server.tool()
def tool() -> Tool:
    return Tool(name="x", input_schema={"type": "object"})

async def main() -> None:
    async with connected(server) as pair:
        tools = {tool.name: tool for tool in await pair.client.list_tools()}
        assert [*filter(None, (each.output_schema for each in tools.values()))] == [
            tools["tool"].output_schema
        ]
        results = {name: await pair.client.call_tool(name) for name in tools}
        assert results["one"].content == [video], results["one"]
        assert results["several"].content[1:] == [video, scene], results["several"]
        assert [each.type for each in results["unannotated"].content] == ["video", "image"]
        assert results["whole"].content[0] == video
        assert results["tool"].content[0].type == "text"
        messages = (await pair.client.get_prompt("show")).messages
        assert [each.content.type for each in messages] == ["video", "text"], messages

anyio.run(main)
"""


def add_blocks(definitions: dict[str, Any]) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    definitions["VideoContent"] = obj(
        "type data mimeType", type=const("video"), data=TEXT, mimeType=TEXT
    )
    definitions["SceneContent"] = obj("type data", type=const("scene"), data=TEXT, points=numbers)
    definitions["ContentBlock"]["anyOf"] += [ref("VideoContent"), ref("SceneContent")]


@every
def test_blocks_of_content_are_what_the_union_of_the_schema_says(name: str, tmp_path: Path) -> None:
    definitions = definitions_of(name)
    add_blocks(definitions)
    check_program(package(tmp_path, definitions), BLOCKS)
