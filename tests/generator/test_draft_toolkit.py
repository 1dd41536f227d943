"""New content, items and requests of a draft are in the toolkit of its package."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.draft_packages import check_program, definitions_of, write_package
from generator.schemas import COUNT, TEXT, const, obj, ref

pytestmark = pytest.mark.costly

NAMES = ["2025-11-25", "2026-07-28"]


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of a draft that has new content, members and a request."""
    definitions = definitions_of(request.param)
    for owner, wire, kind in (
        ("Tool", "costClass", TEXT),
        ("Tool", "weight", COUNT),
        ("Prompt", "mood", TEXT),
        ("Resource", "shelf", TEXT),
    ):
        definitions[owner]["properties"][wire] = kind
    definitions["Tool"]["required"].append("costClass")
    definitions["Prompt"]["required"] = [*definitions["Prompt"]["required"], "mood"]
    numbers = {"type": "array", "items": COUNT}
    video = obj("type data mimeType", type=const("video"), data=TEXT, mimeType=TEXT)
    scene = obj("type data", type=const("scene"), data=TEXT, points=numbers)
    definitions["ContentBlock"]["anyOf"] += [ref("VideoContent"), ref("SceneContent")]
    definitions |= {"VideoContent": video, "SceneContent": scene}
    folder = tmp_path_factory.mktemp("draft")
    stated = '[defaults.Tool]\ncostClass = "high"'
    write_package(folder, definitions, stated=stated, more=("none", "prompts", "resources"))
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

@server.prompt(mood="calm")
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


def test_blocks_of_content_are_what_the_union_of_the_schema_says(folder: Path) -> None:
    check_program(folder, BLOCKS)


OPTIONS = """
import anyio
import pytest
from pkg import Server
from pkg.testing import connected

server = Server("costs")

@server.tool(cost_class="low", weight=2)
def given() -> str:
    return "x"

@server.tool()
def by_default() -> str:
    return "x"

@server.prompt(mood="calm")
def ask() -> str:
    return "?"

@server.resource("a://b", shelf="top")
def read() -> str:
    return "c"

for register in (server.tool(cost_class=5), server.tool(weight="heavy")):
    with pytest.raises(TypeError, match="costClass|weight"):
        register(ask)
with pytest.raises(TypeError, match="nothing sets Prompt.mood; a keyword of the decorator"):
    server.prompt("other")(ask)
with pytest.raises(TypeError, match="unexpected keyword argument 'shelf'"):
    server.tool(shelf="top")

async def main() -> None:
    async with connected(server) as pair:
        tools = {tool.name: tool for tool in await pair.client.list_tools()}
        assert len(tools) == 2
        assert (tools["given"].cost_class, tools["given"].weight) == ("low", 2), tools
        assert (tools["by_default"].cost_class, tools["by_default"].weight) == ("high", None)
        (prompt,) = await pair.client.list_prompts()
        (resource,) = await pair.client.list_resources()
        assert (prompt.mood, resource.shelf) == ("calm", "top")

anyio.run(main)
"""


def test_new_members_of_items_are_keywords_of_their_decorators(folder: Path) -> None:
    check_program(folder, OPTIONS)
