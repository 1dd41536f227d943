"""What a tool returns as a result: content, structured values, and what does not fit."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import UNSET

from kit.wire import ALL, every, facts, speaking_to
from mcpgen_runtime import (
    REVISIONS,
    Annotations,
    Audio,
    Contents,
    EmbeddedResource,
    Image,
    ResourceLink,
    Server,
    Text,
    ToolResult,
    ValidationError,
    connect,
    to_builtins,
)
from mcpgen_runtime.errors import InternalError
from mcpgen_runtime.server.toolkit.output_conversion import (
    ContentResultBuilder,
    ValueResultBuilder,
    known_blocks,
    tool_result_builder,
)

NEWEST = ALL[-1]
MODELS: Any = importlib.import_module(f"mcpgen_runtime.r{NEWEST.replace('-', '_')}.models")
STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]
IMAGE = Image(b"png", "image/png")


@dataclass
class Forecast:
    city: str
    degrees: float


class Point(msgspec.Struct):
    x: int


def returning(annotation: Any, value: Any, **options: Any) -> Server:
    """A server whose tool `give` returns the value."""

    def give() -> Any:
        return value

    give.__annotations__ = {} if annotation is ... else {"return": annotation}
    server = Server("s")
    server.add_tool(give, **options)
    return server


async def give(server: Server, revision: str) -> tuple[Any, Any]:
    """The tool as it is listed, and the result of its call."""
    async with speaking_to(server, revision) as end:
        (tool,) = (await end.ask("tools/list"))["result"]["tools"]
        return tool, (await end.ask("tools/call", {"name": "give"}))["result"]


def texts(result: Any) -> list[str]:
    return [block.get("text", block["type"]) for block in result["content"]]


def wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }


TEXT = {"type": "string"}
OPTIONAL_TEXT = {"anyOf": [TEXT, {"type": "null"}]}
NUMBERS = {"type": "object", "additionalProperties": {"type": "integer"}}
POINT = {
    "title": "Point",
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
}


@every
@pytest.mark.parametrize(
    ("annotation", "value", "shown", "structured", "schema"),
    [
        (str, "x", ["x"], {"result": "x"}, wrapped(TEXT)),
        (int, 3, ["3"], {"result": 3}, wrapped({"type": "integer"})),
        (bool, True, ["true"], {"result": True}, wrapped({"type": "boolean"})),
        (str | None, None, [], {"result": None}, wrapped(OPTIONAL_TEXT)),
        (
            date,
            date(2026, 7, 1),
            ["2026-07-01"],
            {"result": "2026-07-01"},
            wrapped({"type": "string", "format": "date"}),
        ),
        (Point, Point(1), ['{"x":1}'], {"x": 1}, POINT),
        (dict[str, int], {"a": 1}, ['{"a":1}'], {"a": 1}, NUMBERS),
        (ToolResult, ToolResult(content=["said"], structured={"a": 1}), ["said"], {"a": 1}, None),
        (str, ToolResult(content=["y"], structured="x"), ["y"], {"result": "x"}, wrapped(TEXT)),
        (..., {"a": 1}, ['{"a":1}'], {"a": 1}, None),
        (..., Point(1), ['{"x":1}'], {"x": 1}, None),
        (..., [1, 2], ["[1,2]"], None, None),
        (..., "a", ["a"], None, None),
        (..., None, [], None, None),
        (None, None, [], None, None),
        (list[str | Image], ["a", IMAGE], ["a", "image"], None, None),
        (list[Image], [], [], None, None),
        (Text | Image, IMAGE, ["image"], None, None),
        (tuple[Text, ...], (Text("a"), Text("b")), ["a", "b"], None, None),
        (Annotated[Text, "noted"], Text("a"), ["a"], None, None),
        (Text | None, None, [], None, None),
    ],
)
@pytest.mark.requirement(
    "content.structured-text-fallback",
    "content.structured-conforms-if-schema",
    "tools.call-result-content-required",
)
async def test_the_return_annotation_says_what_is_structured(
    annotation: Any, value: Any, shown: list[str], structured: Any, schema: Any, revision: str
) -> None:
    tool, result = await give(returning(annotation, value), revision)
    if revision not in STRUCTURED:
        structured = schema = None
    assert (texts(result), result.get("structuredContent")) == (shown, structured)
    assert tool.get("outputSchema") == schema
    assert "isError" not in result


@pytest.mark.parametrize("revision", STRUCTURED)
@pytest.mark.parametrize(
    ("annotation", "value", "shown"),
    [
        (dict[str, int], {"a": 1}, ['{"a":1}']),
        (int | None, None, []),
        (..., {"a": 1}, ['{"a":1}']),
        (Image, IMAGE, ["image"]),
    ],
)
async def test_without_structured_results_content_is_all(
    annotation: Any, value: Any, shown: list[str], revision: str
) -> None:
    tool, result = await give(returning(annotation, value, structured=False), revision)
    assert texts(result) == shown
    assert "structuredContent" not in result
    assert "outputSchema" not in tool


def test_an_output_schema_needs_structured_results() -> None:
    with pytest.raises(TypeError, match="expected structured=True beside an output_schema"):
        returning(str, "x", structured=False, output_schema={"type": "object"})


@pytest.mark.parametrize("annotation", [list[Image | int], list[str] | Image])
async def test_content_beside_other_values_is_structured(annotation: Any) -> None:
    tool, result = await give(returning(annotation, []), NEWEST)
    assert tool["outputSchema"]["properties"].keys() == {"result"}
    assert (texts(result), result["structuredContent"]) == (["[]"], {"result": []})


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        (MODELS.Annotations(priority=0.5), {"priority": 0.5}),
        (MODELS.PromptReference(name="p"), {"type": "ref/prompt", "name": "p"}),
    ],
    ids=["without a tag", "with a tag"],
)
async def test_a_model_that_is_no_content_is_structured(value: Any, structured: Any) -> None:
    tool, result = await give(returning(type(value), value), NEWEST)
    assert (result["structuredContent"], tool["outputSchema"]["type"]) == (structured, "object")


NEEDS_A = {"output_schema": {"type": "object", "required": ["a"]}}


@every
@pytest.mark.parametrize(
    ("annotation", "value", "options", "complaint"),
    [
        (str, 3, {}, "Expected `str`, got `int`"),
        (Forecast, Forecast("Oslo", "warm"), {}, "Expected `float`, got `str`"),  # type: ignore[arg-type] # the mistake
        (Text, 3, {}, "expected content, got int; content is a str, Text, Image"),
        (Any, object(), {}, "what has a JSON form is a dict, list"),
        (int, ToolResult(content=["x"]), {}, "expected ToolResult.structured"),
        (int, ToolResult(structured="x"), {}, "Expected `int`, got `str`"),
        (Any, "text", NEEDS_A, "got content alone"),
        (Any, {}, NEEDS_A, "'a' is a required property"),
        (
            MODELS.ImageContent,
            MODELS.ImageContent(data="%%%", mime_type="image/png"),
            {},
            "data: expected base64, got '%%%'",
        ),
    ],
)
@pytest.mark.requirement("tools.output-conforms", "content.base64")
async def test_a_result_that_is_not_what_was_promised_does_not_leave(
    annotation: Any,
    value: Any,
    options: Any,
    complaint: str,
    revision: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        _, result = await give(returning(annotation, value, **options), revision)
    assert result["content"] == [{"type": "text", "text": "tool 'give' failed"}]
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert complaint in caplog.text


@pytest.mark.requirement("content.annotations-audience", "content.annotations-priority")
@every
async def test_annotations_of_a_block_are_held_against_the_revision(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong: Any = Annotations(audience=["system"])  # type: ignore[list-item] # the mistake
    async with speaking_to(returning(Text, Text("x", annotations=wrong)), revision) as end:
        answer = await end.ask("tools/call", {"name": "give"})
    assert "error" in answer or answer["result"]["isError"]
    assert "system" in caplog.text


@pytest.mark.requirement("content.text-shape", "content.image-shape", "content.embedded-shape")
@every
async def test_blocks_leave_in_order_with_their_bytes_in_base64(revision: str) -> None:
    blocks = [
        "pl\u00e4in",
        Text("noted", annotations=Annotations(audience=["user"], priority=0.9)),
        Image(b"\xfb\xff\xfe", "image/png"),
        EmbeddedResource(Contents("x://a", text="inside")),
    ]
    _, result = await give(returning(list[Text | Image | EmbeddedResource | str], blocks), revision)
    assert result["content"] == [
        {"type": "text", "text": "pl\u00e4in"},
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
@pytest.mark.parametrize(
    ("annotation", "blocks"),
    [
        (
            list[Audio | ResourceLink],
            [
                Audio(b"abc", "audio/wav", annotations=Annotations(priority=0.5)),
                ResourceLink(uri="x://a", name="a", description="the a"),
            ],
        ),
        (
            list[MODELS.ContentBlock],
            [
                MODELS.AudioContent(
                    data="YWJj", mime_type="audio/wav", annotations=MODELS.Annotations(priority=0.5)
                ),
                MODELS.ResourceLink(uri="x://a", name="a", description="the a"),
            ],
        ),
    ],
    ids=["own classes", "classes of a revision"],
)
async def test_a_block_unknown_to_the_revision_becomes_a_line_of_text(
    revision: str, annotation: Any, blocks: Any
) -> None:
    _, result = await give(returning(annotation, blocks), revision)
    audio, link = result["content"]
    assert audio.pop("annotations") == {"priority": 0.5}
    if revision == ALL[0]:
        assert audio == {"type": "text", "text": "[audio: audio/wav, 3 bytes]"}
    else:
        assert audio == {"type": "audio", "data": "YWJj", "mimeType": "audio/wav"}
    if revision in STRUCTURED:
        described = {"uri": "x://a", "name": "a", "description": "the a"}
        assert link == {"type": "resource_link", **described}
    else:
        assert link == {"type": "text", "text": "a: x://a (the a)"}


def test_blocks_of_other_kinds_become_text_with_their_annotations() -> None:
    link = {"type": "resource_link", "uri": "x://a", "name": "a"}
    others: list[tuple[dict[str, Any], str]] = [
        ({"type": "audio", "data": "YWJj"}, "[audio: unknown type, 3 bytes]"),
        ({"type": "video", "mimeType": "video/x"}, "[video: video/x, 0 bytes]"),
        ({"type": "audio", "data": "%%%a"}, "[audio: unknown type]"),
        ({"type": "audio", "data": 5}, "[audio: unknown type]"),
        (link, "a: x://a"),
        ({**link, "title": "A", "description": "the a"}, "A: x://a (the a)"),
        ({**link, "title": "", "description": ""}, "a: x://a"),
    ]
    text, noted = {"type": "text", "text": "t"}, {"annotations": {"priority": 1}}
    blocks = [text, *(block | noted for block, _ in others)]
    made = [text, *({"type": "text", "text": said, **noted} for _, said in others)]
    assert known_blocks(blocks, {"text": Text}) == made
    assert known_blocks(blocks, {}) == blocks
    with pytest.raises(InternalError, match=r"^a\n\[audio: unknown type, 3 bytes\]$"):
        ValueResultBuilder(ValueResult).full([A, others[0][0]], UNSET, None, is_error=True)


async def test_a_result_told_in_full_has_what_was_told() -> None:
    _, result = await give(returning(int, ToolResult(structured=3, meta={"k": 1})), NEWEST)
    assert (texts(result), result["structuredContent"]) == (["3"], {"result": 3})
    assert result["_meta"]["k"] == 1
    optional: Any = str | None
    async with connect(returning(optional, None)) as client:
        assert await client.call_tool("give", returns=optional) is None
    _, result = await give(returning(ToolResult, ToolResult()), NEWEST)
    assert (result["content"], "structuredContent" in result) == ([], False)
    content = [MODELS.TextContent(text="a")]
    _, result = await give(returning(..., MODELS.CallToolResult(content=content)), NEWEST)
    assert (texts(result), "isError" in result) == (["a"], False)
    failed = MODELS.CallToolResult(content=content, is_error=True, meta={"k": 1})
    _, result = await give(returning(..., failed), NEWEST)
    assert (texts(result), result["isError"], result["_meta"]["k"]) == (["a"], True, 1)


class ValueResult(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A result that is one JSON value, as the oldest states of the schema have it."""

    tool_result: Any
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class ObjectResult(msgspec.Struct, rename="camel"):
    """A result that is one JSON object, as the oldest states of the schema have it."""

    tool_result: dict[str, Any]


class OpenResult(msgspec.Struct):
    """A result whose content may be any value."""

    content: list[Any]


A = {"type": "text", "text": "a"}
PICTURE = {"type": "image", "data": "+w==", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "structured", "value"),
    [
        pytest.param([A], {"b": 1}, {"b": 1}, id="an object before its text"),
        pytest.param([A], None, None, id="null before its text"),
        pytest.param([], [1, 2], [1, 2], id="an array"),
        pytest.param([A], UNSET, "a", id="one text"),
        pytest.param([A, A], UNSET, [A, A], id="two texts"),
        pytest.param([PICTURE], UNSET, [PICTURE], id="an image"),
        pytest.param([], UNSET, [], id="nothing"),
    ],
)
def test_a_result_of_one_value_is_structured_or_a_text_or_the_blocks(
    content: list[dict[str, Any]], structured: Any, value: Any
) -> None:
    made = ValueResultBuilder(ValueResult).full(content, structured, {"x/y": 1})
    assert to_builtins(made) == {"toolResult": value, "_meta": {"x/y": 1}}


def test_a_type_without_errors_and_content_is_found_and_kept_to() -> None:
    assert to_builtins(ValueResultBuilder(OpenResult | ValueResult).text("a")) == {
        "toolResult": "a"
    }
    blocks = ContentResultBuilder(OpenResult, "none").text("a")
    assert to_builtins(blocks) == {"content": [A]}
    with pytest.raises(InternalError, match="the disk is full"):
        ValueResultBuilder(ValueResult).failure("the disk is full")
    with pytest.raises(ValidationError, match="Expected `object`, got `str`"):
        ValueResultBuilder(ObjectResult).text("a")
    with pytest.raises(LookupError, match="has the field 'toolResult'"):
        ValueResultBuilder(OpenResult)
    assert isinstance(tool_result_builder(ValueResult, "none"), ValueResultBuilder)
    for result in (
        ValueResult | OpenResult,
        *(REVISIONS[revision].client_requests["tools/call"].result for revision in ALL),
    ):
        assert isinstance(tool_result_builder(result, "none"), ContentResultBuilder)
