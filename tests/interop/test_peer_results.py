"""Return values of tools as results: the same here as in FastMCP and the official SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Literal

import fastmcp
import mcp
import mcp.types
import pytest
from fastmcp.utilities.types import Image as FastmcpImage
from mcp.server.mcpserver import Image as SdkImage
from mcp.server.mcpserver import MCPServer

import mcpgen_runtime

pytestmark = [
    pytest.mark.interop,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
]

PNG = b"\x89PNG"


@dataclass
class Point:
    x: int


class Color(Enum):
    RED = "red"


CASES: list[tuple[Any, Any, set[str]]] = [
    (str, "x", set()),
    (int, 3, set()),
    (float, 1.5, set()),
    (bool, True, set()),
    (str | None, "x", set()),
    (str | None, None, set()),
    (str | int, "x", set()),
    (dict[str, int] | None, None, set()),
    (dict[str, int], {"a": 1}, set()),
    (dict[str, Any], {"a": 1}, set()),
    (Point, Point(1), set()),
    (Point | None, None, set()),
    (list[int], [1], {"SDK: content"}),
    (list[Point], [Point(1)], {"SDK: content"}),
    (tuple[int, str], (1, "a"), {"SDK: content"}),
    (list[str], ["a", "b"], {"SDK: content"}),
    (Literal["a", "b"], "a", set()),
    (Any, "x", set()),
    (Any, [1], {"SDK: content"}),
    (..., "x", set()),
    (..., 3, set()),
    (None, None, {"SDK: structured", "SDK: schema"}),  # a member `result` that is null
    (dict, {"a": 1}, {"SDK: structured", "SDK: schema"}),
    (Any, {"a": 1}, {"SDK: structured"}),
    (
        list,
        ["a", 1],
        {
            "SDK: content",
            "SDK: structured",
            "SDK: schema",
            *{"FastMCP: structured", "FastMCP: schema"},
        },
    ),
    (object, "x", {"FastMCP: structured", "FastMCP: schema"}),
    (Color, Color.RED, {"SDK: content", "SDK: structured", "SDK: schema"}),
    (date, date(2026, 7, 1), {"SDK: content", "SDK: structured", "SDK: schema"}),
]
"""Return annotation, value, and the parts in which a peer differs.

The official SDK sends each item of a list as a text of its own.
"""

CONTENT: list[tuple[Any, Any, set[str]]] = [
    ("image", "image", set()),
    ("list of images", ["image"], set()),
    ("list of images", [], set()),
    ("image or text", "x", set()),
    ("image or none", None, set()),
    ("images and texts", ["x", "image"], set()),
    ("images and texts", ["x", "y"], {"FastMCP: content"}),
]
"""The same for types with images, by the names of `image_types`."""


def image_types(kind: Any) -> dict[str, Any]:
    return {
        "image": kind,
        "list of images": list[kind],
        "image or text": str | kind,
        "image or none": kind | None,
        "images and texts": list[str | kind],
    }


def tool_returning(annotation: Any, value: Any) -> Any:
    def tool() -> Any:
        return value

    tool.__annotations__ = {} if annotation is ... else {"return": annotation}
    return tool


Result = dict[str, Any]


def as_official(result: Any, tool: Any) -> Result:
    """A result and its tool in the official SDK's types, without the layout of JSON texts."""
    content = []
    for block in result.content:
        text = getattr(block, "text", None)
        with_layout = isinstance(text, str) and text.startswith(("{", "["))
        content.append(json.loads(str(text)) if with_layout else text or block.type)
    return {
        "error": bool(result.is_error),
        "content": content,
        "structured": result.structured_content,
        "schema": tool.output_schema is not None,
    }


async def of_fastmcp(annotation: Any, value: Any) -> Result:
    server = fastmcp.FastMCP("peer")
    server.tool(tool_returning(annotation, value))
    async with fastmcp.Client(server) as client:
        (tool,) = await client.list_tools()
        return as_official(await client.call_tool_mcp("tool", {}), tool)


async def of_sdk(annotation: Any, value: Any) -> Result:
    server = MCPServer("peer")
    server.add_tool(tool_returning(annotation, value))
    async with mcp.Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        return as_official(await client.call_tool("tool", {}), tool)


async def ours(annotation: Any, value: Any) -> Result:
    server = mcpgen_runtime.Server("ours")
    server.add_tool(tool_returning(annotation, value))
    async with mcpgen_runtime.connect(server) as client:
        (listed,) = await client.list_tools()
        result = mcp.types.CallToolResult.model_validate_json(
            bytes(await client.request_raw("tools/call", {"name": "tool", "arguments": {}}))
        )
        return as_official(result, listed)


def differences(peers: dict[str, Result], result: Result) -> Iterator[str]:
    for peer, expected in peers.items():
        for part, value in expected.items():
            if value != result[part]:
                yield f"{peer}: {part}"


def id_of(value: Any) -> str:
    """A name that is the same in each process, also of a set."""
    return " and ".join(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(("annotation", "value", "differing"), CASES, ids=id_of)
async def test_a_value_becomes_the_result_that_peers_send(
    annotation: Any, value: Any, differing: set[str]
) -> None:
    peers = {
        "FastMCP": await of_fastmcp(annotation, value),
        "SDK": await of_sdk(annotation, value),
    }
    assert set(differences(peers, await ours(annotation, value))) == differing


@pytest.mark.parametrize(("annotation", "value", "differing"), CONTENT, ids=id_of)
async def test_images_become_the_content_that_peers_send(
    annotation: str, value: Any, differing: set[str]
) -> None:
    def with_image(image: Any) -> Any:
        if isinstance(value, list):
            return [image if each == "image" else each for each in value]
        return image if value == "image" else value

    ours_image = mcpgen_runtime.Image(PNG, "image/png")
    fastmcp_image, sdk_image = FastmcpImage(data=PNG), SdkImage(data=PNG)
    peers = {
        "FastMCP": await of_fastmcp(
            image_types(FastmcpImage)[annotation], with_image(fastmcp_image)
        ),
        "SDK": await of_sdk(image_types(SdkImage)[annotation], with_image(sdk_image)),
    }
    result = await ours(image_types(mcpgen_runtime.Image)[annotation], with_image(ours_image))
    assert set(differences(peers, result)) == differing
