"""Tools over the wire: what is listed, what a call answers, and what each revision gets of it."""

from __future__ import annotations

import base64
import json
import logging
import threading
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest

from kit.wire import ALL, HANDSHAKE, PER_REQUEST, facts, speaking_to
from mcpgen_runtime.server.chosen import Context, Server
from mcpgen_runtime.server.toolkit.content import (
    Annotations,
    Audio,
    Content,
    Contents,
    EmbeddedResource,
    Icon,
    Image,
    ResourceLink,
    Text,
    ToolAnnotations,
    ToolResult,
)

STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]
UNSTRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content == "none"]
OBJECTS = [name for name in ALL if facts(name).behaviour.structured_content == "object"]

every = pytest.mark.parametrize("revision", ALL)


@dataclass
class Forecast:
    city: str
    degrees: float


class Row(TypedDict):
    name: str


class Point(msgspec.Struct):
    x: int


server = Server("tools", "1")


@server.tool(
    title="Weather",
    annotations=ToolAnnotations(read_only_hint=True, title="W"),
    icons=[Icon(src="data:,x", sizes=["any"])],
    meta={"com.example/k": 1},
)
async def forecast(city: str, days: int = 3, *, ctx: Context) -> Forecast:
    """Forecast for a city.

    Args:
        city: Where.
    """
    return Forecast(city, days / 2)


@server.tool()
async def text(value: str) -> str:
    return value


@server.tool()
def in_thread() -> str:
    return threading.current_thread().name


@server.tool()
async def nothing() -> None: ...


@server.tool()
async def number() -> int:
    return 3


@server.tool()
async def rows() -> list[Row]:
    return [{"name": "a"}]


@server.tool()
async def point() -> Point:
    return Point(1)


@server.tool()
async def wrong() -> Forecast:
    return Forecast("Oslo", "warm")  # type: ignore[arg-type] # breaks its own schema


@server.tool()
async def loose(kind: str):  # type: ignore[no-untyped-def] # nothing said about the result
    return {"dict": {"a": 1}, "list": [1, 2], "text": "t", "none": None, "block": Text("b")}[kind]


@server.tool()
async def blocks() -> list[Content | str]:
    return [
        "plain",
        Text("noted", annotations=Annotations(audience=["user"], priority=0.9)),
        Image(b"\xfb\xff\xfe", "image/png"),
        EmbeddedResource(Contents("x://a", text="inside")),
    ]


@server.tool()
async def newer() -> list[Audio | ResourceLink]:
    return [
        Audio(b"abc", "audio/wav"),
        ResourceLink(uri="x://a", name="a", description="the a", mime_type="text/plain"),
    ]


@server.tool()
async def told() -> ToolResult:
    return ToolResult(content=["said"], structured={"a": 1}, meta={"com.example/k": 1})


async def call(revision: str, name: str, arguments: Any = None) -> Any:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    async with speaking_to(server, revision) as end:
        return await end.ask("tools/call", params)


def texts(answer: Any) -> list[str]:
    return [block["text"] for block in answer["result"]["content"]]


@pytest.mark.requirement(
    "tools.list-result-shape",
    "tools.list-result-shape-2026",
    "tools.name-and-schema-required",
    "tools.input-schema-root-object",
    "tools.input-schema-property-objects",
    "tools.list-answered",
)
@every
async def test_tools_are_listed_in_the_order_of_registration(revision: str) -> None:
    async with speaking_to(server, revision) as end:
        first = (await end.ask("tools/list"))["result"]
        again = (await end.ask("tools/list"))["result"]
    assert first == again
    assert [tool["name"] for tool in first["tools"]][:3] == ["forecast", "text", "in_thread"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in first["tools"])
    hints = {"resultType", "ttlMs", "cacheScope"}
    assert hints & first.keys() == (hints if revision in PER_REQUEST else set())


@every
async def test_a_listed_tool_has_what_its_revision_has(revision: str) -> None:
    async with speaking_to(server, revision) as end:
        tool = (await end.ask("tools/list"))["result"]["tools"][0]
    assert tool["description"] == "Forecast for a city."
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city"],
    }
    assert ("outputSchema" in tool) == (revision in STRUCTURED)
    assert ("title" in tool) == (revision in STRUCTURED)
    assert tool.get("annotations", {"title": "W", "readOnlyHint": True}) == {
        "title": "W",
        "readOnlyHint": True,
    }


@pytest.mark.requirement("tools.call-result-content-required", "content.text-shape")
@every
async def test_a_string_is_one_text_and_none_is_no_content(revision: str) -> None:
    answer = await call(revision, "text", {"value": "h\u00e9"})
    assert answer["result"]["content"] == [{"type": "text", "text": "h\u00e9"}]
    assert "isError" not in answer["result"]
    assert (await call(revision, "nothing"))["result"]["content"] == []


@every
async def test_a_plain_function_runs_beside_the_event_loop(revision: str) -> None:
    assert texts(await call(revision, "in_thread")) != [threading.current_thread().name]


@pytest.mark.requirement(
    "tools.output-conforms",
    "tools.output-schema-root-object",
    "content.structured-object",
    "content.structured-conforms-if-schema",
)
@pytest.mark.parametrize("revision", STRUCTURED)
@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("forecast", {"city": "Oslo", "degrees": 1.5}, {"city": "Oslo", "degrees": 1.5}),
        ("point", {"x": 1}, {"x": 1}),
        ("number", {"result": 3}, 3),
        ("rows", {"result": [{"name": "a"}]}, [{"name": "a"}]),
        ("told", {"a": 1}, None),
    ],
)
async def test_a_typed_result_is_structured_and_readable_as_text(
    revision: str, name: str, value: Any, shown: Any
) -> None:
    answer = await call(revision, name, {"city": "Oslo"} if name == "forecast" else None)
    assert answer["result"]["structuredContent"] == value
    if shown is not None:
        assert [json.loads(text) for text in texts(answer)] == [shown]
    async with speaking_to(server, revision) as end:
        listed = (await end.ask("tools/list"))["result"]["tools"]
    schema = next(tool for tool in listed if tool["name"] == name).get("outputSchema")
    assert schema is None or schema["type"] == "object"


@pytest.mark.parametrize("revision", UNSTRUCTURED)
@pytest.mark.parametrize("name", ["point", "number", "rows", "told"])
async def test_older_sessions_get_the_whole_result_as_text(revision: str, name: str) -> None:
    result = (await call(revision, name))["result"]
    assert "structuredContent" not in result
    assert len(result["content"]) == 1


@pytest.mark.requirement("tools.output-conforms")
@every
async def test_a_result_that_breaks_its_schema_does_not_leave(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        result = (await call(revision, "wrong"))["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert result["content"] == [{"type": "text", "text": "tool 'wrong' failed"}]
    assert "Expected `float`, got `str`" in caplog.text


@every
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("dict", ['{"a":1}']),
        ("list", ["[1,2]"]),
        ("text", ["t"]),
        ("none", []),
        ("block", ["b"]),
    ],
)
async def test_without_an_annotation_the_value_decides(
    revision: str, kind: str, content: list[str]
) -> None:
    answer = await call(revision, "loose", {"kind": kind})
    assert texts(answer) == content
    structured = revision in STRUCTURED and kind == "dict"
    assert ("structuredContent" in answer["result"]) == structured


@pytest.mark.requirement(
    "content.image-shape",
    "content.embedded-shape",
    "content.base64",
    "content.annotations-audience",
)
@every
async def test_blocks_leave_in_order_with_their_bytes_in_base64(revision: str) -> None:
    content = (await call(revision, "blocks"))["result"]["content"]
    assert content == [
        {"type": "text", "text": "plain"},
        {
            "type": "text",
            "text": "noted",
            "annotations": {"audience": ["user"], "priority": 0.9},
        },
        {"type": "image", "data": "+//+", "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {"uri": "x://a", "text": "inside", "mimeType": "text/plain"},
        },
    ]


@pytest.mark.requirement(
    "content.no-audio-2024",
    "content.no-resource-link-before-2025-06",
    "content.audio-shape",
    "content.resource-link-shape",
    "content.block-type-discriminates",
)
@every
async def test_a_block_unknown_to_the_revision_becomes_a_line_of_text(revision: str) -> None:
    audio, link = (await call(revision, "newer"))["result"]["content"]
    if audio["type"] == "audio":
        assert base64.b64decode(audio["data"]) == b"abc"
    else:
        assert audio == {"type": "text", "text": "[audio: audio/wav, 3 bytes]"}
        assert revision == HANDSHAKE[0]
    if link["type"] == "resource_link":
        assert (link["uri"], link["name"]) == ("x://a", "a")
        assert revision in STRUCTURED
    else:
        assert link == {"type": "text", "text": "a: x://a (the a)"}
        assert revision in UNSTRUCTURED


@pytest.mark.requirement("content.structured-object")
@pytest.mark.parametrize("revision", OBJECTS)
async def test_a_bare_list_is_not_structured_where_objects_are_wanted(revision: str) -> None:
    result = (await call(revision, "rows"))["result"]
    assert isinstance(result["structuredContent"], dict)
