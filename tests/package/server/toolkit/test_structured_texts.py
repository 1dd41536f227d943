"""Results of tools that are no objects: structured as `{"result": value}`, texts among them.

Source: server/tools#structured-content, server/tools#output-schema.
"""

from __future__ import annotations

import logging
import sys
from datetime import date
from enum import Enum
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.live import TEXT
from kit.scripted import connect_scripted
from kit.wire import ALL, facts
from mcpgen_runtime import Image, Server, Text, ToolResult, connect
from mcpgen_runtime._wire import UNSET, to_builtins
from mcpgen_runtime.errors import RemoteProtocolError
from mcpgen_runtime.json_schema.flat_schemas import MEMBERS, flat_complaint
from mcpgen_runtime.json_schema.validation import validator
from mcpgen_runtime.tool_results import structured_value

STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]
every = pytest.mark.parametrize("revision", ALL)
IMAGE = Image(b"png", "image/png")


class Color(Enum):
    RED = "red"


def returning_server(annotation: Any, value: Any, **options: Any) -> Server:
    """A server whose tool `give` returns the value."""

    def give() -> Any:
        return value

    give.__annotations__ = {} if annotation is ... else {"return": annotation}
    server = Server("s")
    server.add_tool(give, **options)
    return server


async def result_of(server: Server, revision: str) -> tuple[list[Any], Any, Any]:
    """The texts, the structured value and the output schema of the tool `give`."""
    async with connect(server, revision=revision) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("give")
        assert not result.is_error, result
        texts = [getattr(block, "text", block.type) for block in result.content]
        schema = getattr(tool, "output_schema", None)
        return texts, structured_value(result), schema and to_builtins(schema)


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }


OPTIONAL_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@every
@pytest.mark.parametrize(
    ("annotation", "value", "texts", "schema"),
    [
        (str, "x", ["x"], {"type": "string"}),
        (int, 3, ["3"], {"type": "integer"}),
        (bool, True, ["true"], {"type": "boolean"}),
        (str | None, "x", ["x"], OPTIONAL_TEXT),
        (str | None, None, [], OPTIONAL_TEXT),
        (list[str], ["x"], ['["x"]'], {"type": "array", "items": {"type": "string"}}),
        (Literal["a", "b"], "a", ["a"], {"enum": ["a", "b"], "type": "string"}),
        (Color, Color.RED, ["red"], {"title": "Color", "enum": ["red"], "type": "string"}),
        (date, date(2026, 7, 1), ["2026-07-01"], {"type": "string", "format": "date"}),
    ],
)
@pytest.mark.requirement("content.structured-text-fallback", "tools.output-conforms")
async def test_values_other_than_objects_are_a_member_named_result(
    annotation: Any, value: Any, texts: list[str], schema: dict[str, Any], revision: str
) -> None:
    result = await result_of(returning_server(annotation, value), revision)
    plain = to_builtins(value)
    if revision in STRUCTURED:
        assert result == (texts, {"result": plain}, wrap_schema(schema))
    else:
        assert result == (texts, UNSET, None)


@pytest.mark.parametrize("revision", STRUCTURED)
@pytest.mark.parametrize(
    ("annotation", "value", "texts"),
    [
        (str, "x", ["x"]),
        (list[str], ["x"], ['["x"]']),
        (dict[str, int], {"a": 1}, ['{"a":1}']),
        (int | None, None, []),
        (..., {"a": 1}, ['{"a":1}']),
        (Image, IMAGE, ["image"]),
    ],
)
async def test_without_structured_results_content_is_all(
    annotation: Any, value: Any, texts: list[str], revision: str
) -> None:
    server = returning_server(annotation, value, structured=False)
    assert await result_of(server, revision) == (texts, UNSET, None)


def test_an_output_schema_needs_structured_results() -> None:
    with pytest.raises(TypeError, match="expected structured=True beside an output_schema"):
        returning_server(str, "x", structured=False, output_schema={"type": "object"})


@every
@pytest.mark.parametrize(
    ("annotation", "value", "texts"),
    [
        (list[str | Image], ["a", "b"], ["a", "b"]),
        (list[str | Image], ["a", IMAGE], ["a", "image"]),
        (list[Image], [], []),
        (str | Text, "a", ["a"]),
        (None, None, []),
        (..., "a", ["a"]),
    ],
)
async def test_content_is_not_structured(
    annotation: Any, value: Any, texts: list[str], revision: str
) -> None:
    assert await result_of(returning_server(annotation, value), revision) == (texts, UNSET, None)


@every
async def test_a_text_is_checked_like_any_value(revision: str) -> None:
    async with connect(returning_server(str, 3), revision=revision) as client:
        assert (await client.call_tool("give")).is_error
    explicit = returning_server(str, ToolResult(structured="x", content=["y"]))
    texts, structured, _ = await result_of(explicit, revision)
    assert texts == ["y"]
    assert structured == ({"result": "x"} if revision in STRUCTURED else UNSET)


@every
async def test_values_come_back_as_the_type_of_the_caller(revision: str) -> None:
    for annotation, value in (
        (str, "[1]"),
        (str | None, None),
        (dict[str, int] | None, None),
        (date, date(2026, 7, 1)),
        (Color, Color.RED),
    ):
        async with connect(returning_server(annotation, value), revision=revision) as client:
            assert await client.call_tool("give", returns=annotation) == value


def test_a_text_costs_no_conversion() -> None:
    """The Python functions that run for a call, counted."""

    def calls(annotation: Any) -> int:
        count = 0

        def profile(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event == "call" and "mcpgen_runtime" in frame.f_code.co_filename

        server = returning_server(annotation, "x")
        tool = server._dispatcher.registries.tools.find("give")
        assert tool is not None
        results = _builder()
        tool.function = _immediate
        sys.setprofile(profile)
        try:
            tool.call({}, None, results).send(None)
        except StopIteration:
            pass
        finally:
            sys.setprofile(None)
        return count

    assert calls(str) <= calls(...) + 1


async def _immediate() -> str:
    return "x"


def _builder() -> Any:
    from mcpgen_runtime.revisions import REVISIONS
    from mcpgen_runtime.server.toolkit.output_conversion import tool_result_builder

    result = REVISIONS[ALL[-1]].client_requests["tools/call"].result
    return tool_result_builder(result, "any")


SCALARS = ["array", "boolean", "integer", "null", "number", "object", "string"]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=4,
)


@given(
    st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(
                st.sampled_from("abc"),
                st.fixed_dictionaries({"type": st.sampled_from(SCALARS)}),
            ),
            "required": st.lists(st.sampled_from("abc"), unique=True),
        },
    ),
    VALUES,
)
def test_flat_schemas_are_read_as_the_library_reads_them(schema: Any, value: Any) -> None:
    complaint = flat_complaint(schema)
    assert complaint is not None
    assert (complaint(value) is None) == (jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (wrap_schema({"type": "string"}), {"result": 1}, "result: 1 is not of type 'string'"),
        (wrap_schema({"type": "string"}), {}, "'result' is a required property"),
        (wrap_schema({"type": "string"}), "x", "'x' is not of type 'object'"),
    ],
)
def test_errors_of_flat_schemas_have_the_same_texts(schema: Any, value: Any, text: str) -> None:
    complaint = flat_complaint(schema)
    assert complaint is not None
    assert complaint(value) == text == validator(schema, "testing")(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": [], "required": []},
        {"type": "object", "required": [1]},
        {"type": "object", "required": ["a", "a"]},
        {"type": "object", "title": 5},
        {"type": "object", "properties": {f"a{n}": {"type": "null"} for n in range(MEMBERS + 1)}},
        {"$schema": "https://nowhere.test/dialect", "type": "object"},
        {"type": "string"},
        {},
    ],
    ids=str,
)
def test_other_schemas_are_left_to_the_library(schema: Any) -> None:
    assert flat_complaint(schema) is None


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_texts_are_checked_without_the_library(
    revision: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    listing = {"tools": [{**tool, "outputSchema": wrap_schema({"type": "string"})}]}
    right, wrong = ({**TEXT, "structuredContent": {"result": each}} for each in ("done", 5))
    async with connect_scripted(revision, listing, right, wrong) as (client, _):
        await client.list_tools()
        with caplog.at_level(logging.WARNING):
            assert (await client.call_tool("a")).data == "done"
            with pytest.raises(RemoteProtocolError, match="result: 5 is not of type 'string'"):
                await client.call_tool("a")
    assert not caplog.records
