"""Results of tools in revisions whose types are unlike those of the dated ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from kit.wire import ALL
from mcpgen_runtime._wire import ValidationError, to_builtins
from mcpgen_runtime.errors import InternalError
from mcpgen_runtime.protocol.initialization import optional_member
from mcpgen_runtime.r2026_07_28.models import CallToolResult, TextContent
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.toolkit.content import as_tool_result
from mcpgen_runtime.server.toolkit.output_conversion import (
    ContentResultBuilder,
    ValueResultBuilder,
    known_blocks,
    tool_result_builder,
)


class ValueResult(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A result that is one JSON value, as the oldest states of the schema have it."""

    tool_result: Any
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class ObjectResult(msgspec.Struct, rename="camel"):
    """A result that is one JSON object, as the oldest states of the schema have it."""

    tool_result: dict[str, Any]


class OpenResult(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A result whose content may be any value."""

    content: list[Any]
    is_error: bool | None = None
    structured_content: dict[str, Any] | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "+w==", "mimeType": "image/png"}


def test_a_text_is_the_value_itself() -> None:
    assert to_builtins(ValueResultBuilder(ValueResult).text("a")) == {"toolResult": "a"}


@pytest.mark.parametrize(
    ("content", "structured", "value"),
    [
        ([TEXT], {"b": 1}, {"b": 1}),
        ([TEXT], None, None),
        ([], [1, 2], [1, 2]),
        ([TEXT], UNSET, "a"),
        ([TEXT, TEXT], UNSET, [TEXT, TEXT]),
        ([IMAGE], UNSET, [IMAGE]),
        ([], UNSET, []),
    ],
    ids=[
        "an object before its text",
        "null before its text",
        "an array",
        "one text",
        "two texts",
        "an image",
        "nothing",
    ],
)
def test_the_value_is_structured_or_one_text_or_the_blocks(
    content: list[dict[str, Any]], structured: Any, value: Any
) -> None:
    made = ValueResultBuilder(ValueResult).full(content, structured, None)
    assert made.tool_result == value


def test_metadata_goes_with_the_value() -> None:
    made = ValueResultBuilder(ValueResult).full([TEXT], UNSET, {"x/y": 1})
    assert to_builtins(made) == {"toolResult": "a", "_meta": {"x/y": 1}}


@pytest.mark.parametrize("value", [None, 1, "a", [1], {"a": 1}])
def test_any_value_may_be_the_result(value: Any) -> None:
    result = ValueResultBuilder(ValueResult).full([], value, None)
    assert result.tool_result == value


def test_a_failure_can_only_be_an_error() -> None:
    with pytest.raises(InternalError, match="the disk is full"):
        ValueResultBuilder(ValueResult).failure("the disk is full")


def test_a_value_that_the_type_does_not_take_is_refused() -> None:
    shape = ValueResultBuilder(ObjectResult)
    assert shape.full([], {"a": 1}, None).tool_result == {"a": 1}
    with pytest.raises(ValidationError, match="Expected `object`, got `str`"):
        shape.text("a")


def test_the_type_with_the_value_is_found_in_a_union() -> None:
    assert to_builtins(ValueResultBuilder(OpenResult | ValueResult).text("a")) == {
        "toolResult": "a"
    }


def test_a_type_without_the_value_is_refused() -> None:
    with pytest.raises(LookupError, match="has the field 'toolResult'"):
        ValueResultBuilder(OpenResult)


def test_the_shape_is_content_if_the_type_has_it_else_a_value() -> None:
    assert isinstance(tool_result_builder(ValueResult, "none"), ValueResultBuilder)
    assert isinstance(tool_result_builder(OpenResult, "none"), ContentResultBuilder)
    assert isinstance(tool_result_builder(ValueResult | OpenResult, "none"), ContentResultBuilder)
    for revision in ALL:
        result = REVISIONS[revision].client_requests["tools/call"].result
        assert isinstance(tool_result_builder(result, "none"), ContentResultBuilder)


def test_content_of_any_value_holds_blocks_as_on_the_wire() -> None:
    shape = ContentResultBuilder(OpenResult, "object")
    assert to_builtins(shape.text("a")) == {"content": [TEXT]}
    assert to_builtins(shape.failure("a")) == {"content": [TEXT], "isError": True}
    made = shape.full([TEXT, IMAGE, {"type": "hologram"}], {"b": 1}, {"x/y": 1})
    assert to_builtins(made) == {
        "content": [TEXT, IMAGE, {"type": "hologram"}],
        "structuredContent": {"b": 1},
        "_meta": {"x/y": 1},
    }


class Members(msgspec.Struct):
    """A value with members of each kind."""

    name: str
    title: str | None = None
    value: int | UnsetType | None = UNSET


@pytest.mark.parametrize(
    ("value", "member", "expected"),
    [
        (Members("a"), "name", "a"),
        (Members("a"), "title", None),
        (Members("a", title="b"), "title", "b"),
        (Members("a", title=""), "title", ""),
        (Members("a"), "value", None),
        (Members("a", value=None), "value", None),
        (Members("a", value=0), "value", 0),
        (Members("a"), "instructions", None),
        (None, "instructions", None),
    ],
)
def test_an_optional_member_is_none_if_absent_or_unknown(
    value: Any, member: str, expected: Any
) -> None:
    assert optional_member(value, member) == expected


def test_blocks_of_unknown_kinds_become_lines_of_text() -> None:
    link = {"type": "resource_link", "uri": "x://a", "name": "a"}
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "audio", "data": "YWJj", "mimeType": "audio/wav", "annotations": {"priority": 1}},
        {"type": "sound"},
        link,
        {**link, "title": "A", "description": "the first"},
    ]
    assert known_blocks(blocks, {}) == blocks
    assert known_blocks(blocks, {"text": str, "audio": str})[:2] == blocks[:2]
    lines = ["a", "[audio: audio/wav, 3 bytes]", "[sound: unknown type, 0 bytes]"]
    lines += ["a: x://a", "A: x://a (the first)"]
    texts = known_blocks(blocks, {"text": str})
    assert [each["text"] for each in texts] == lines
    assert [each.get("annotations") for each in texts] == [None, {"priority": 1}, None, None, None]


def test_a_result_of_a_revision_is_no_error_unless_it_says_so() -> None:
    content: list[Any] = [TextContent(text="a")]
    plain = as_tool_result(CallToolResult(content=content))
    failed = as_tool_result(CallToolResult(content=content, is_error=True, meta={"k": 1}))
    assert plain is not None
    assert (plain.is_error, plain.structured, plain.meta) == (False, UNSET, None)
    assert failed is not None
    assert (failed.is_error, failed.meta) == (True, {"k": 1})
    assert failed.content == content
    assert as_tool_result(failed) is failed
    assert as_tool_result(content) is None
