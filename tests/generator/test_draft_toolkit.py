"""New content, items and requests of a draft are in the toolkit of its package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.draft_packages import check_program, definitions_of, save_schema
from generator.schemas import TEXT, const, obj, ref
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import output, pipeline
from mcpgen.package.build_request import BuildRequest

pytestmark = pytest.mark.costly

NAMES = ["2025-11-25", "2026-07-28"]


def generate(folder: Path, definitions: dict[str, Any], stated: str) -> Path:
    """A folder with a package of a revision that has these definitions."""
    file = folder / "own.toml"
    file.write_text(stated)
    source = schema_sources.of_file(save_schema(folder, definitions), file)
    request = BuildRequest(
        "pkg", (source,), selection=selection(features=("none", "prompts", "resources", "methods"))
    )
    output.write(folder / "pkg", pipeline.build(request, form=dict))
    return folder


def add_members(definitions: dict[str, Any]) -> None:
    """Add members to what a server has, one of which is required."""
    for owner, wire, kind in (
        ("Tool", "costClass", TEXT),
        ("Tool", "weight", {"type": "integer"}),
        ("Prompt", "mood", TEXT),
        ("Resource", "shelf", TEXT),
    ):
        definitions[owner]["properties"][wire] = kind
    definitions["Tool"]["required"].append("costClass")


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of a draft that has new content, members and a request."""
    definitions = definitions_of(request.param)
    add_members(definitions)
    numbers = {"type": "array", "items": {"type": "integer"}}
    video = obj("type data mimeType", type=const("video"), data=TEXT, mimeType=TEXT)
    scene = obj("type data", type=const("scene"), data=TEXT, points=numbers)
    definitions["ContentBlock"]["anyOf"] += [ref("VideoContent"), ref("SceneContent")]
    asked = obj("method", method=const("trees/count"))
    result = obj("count", count={"type": "integer"})
    if request.param == NAMES[-1]:
        listed = definitions["ListToolsRequest"]
        asked = listed | {"properties": listed["properties"] | {"method": const("trees/count")}}
        result = obj("count resultType", count={"type": "integer"}, resultType=TEXT)
    definitions |= {"VideoContent": video, "SceneContent": scene}
    definitions |= {"TreesCountRequest": asked, "TreesCountResult": result}
    definitions["ClientRequest"]["anyOf"].append(ref("TreesCountRequest"))
    stated = '[defaults.Tool]\ncostClass = "high"'
    return generate(tmp_path_factory.mktemp("draft"), definitions, stated)


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

REQUIRED = """
import anyio
import pytest
from pkg import Server
from pkg.testing import connected

server = Server("costs")

@server.tool(cost_class="low")
def given() -> str:
    return "x"

with pytest.raises(TypeError, match="nothing sets Tool.costClass; a keyword of the decorator"):
    server.tool(given.__name__ + "2")(given)

async def main() -> None:
    async with connected(server) as pair:
        assert [tool.cost_class for tool in await pair.client.list_tools()] == ["low"]

anyio.run(main)
"""


def test_new_members_of_items_are_keywords_of_their_decorators(folder: Path) -> None:
    check_program(folder, OPTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_new_member_without_default_is_given_to_each_item(name: str, tmp_path: Path) -> None:
    definitions = definitions_of(name)
    add_members(definitions)
    check_program(generate(tmp_path, definitions, ""), REQUIRED)


OWN_REQUEST = """
import anyio
import pytest
from pkg import Server
from pkg.rdraft.server import ServerHandlers
from pkg.testing import connected

with pytest.raises(ValueError) as caught:
    Server("trees").method("trees/count")(lambda params: params)
for words in ("the specification has it already", "override trees_count of the ServerHandlers",
              "Server(handlers=[...])"):
    assert words in str(caught.value), caught.value

class Handlers(ServerHandlers):
    async def trees_count(self, params, ctx):
        return {"count": 3}

async def main() -> None:
    async with connected(Server("trees", handlers=[Handlers()])) as pair:
        assert (await pair.client.trees_count()).count == 3

anyio.run(main)
"""


def test_a_request_of_a_draft_names_the_way_to_handle_it(folder: Path) -> None:
    check_program(folder, OWN_REQUEST)
