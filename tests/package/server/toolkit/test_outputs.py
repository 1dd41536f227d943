"""Return values as results: content of either kind, results told in full, what does not fit."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from msgspec import UNSET

from kit.wire import ALL, facts
from mcpgen_runtime import Server, connect
from mcpgen_runtime._wire import ValidationError, to_builtins
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.server.toolkit import content, output_conversion
from mcpgen_runtime.server.toolkit.content import Annotations, Image, Text, ToolResult
from requirements import EVERY_REVISION

NEWEST = ALL[-1]
MODELS: Any = importlib.import_module(f"mcpgen_runtime.r{NEWEST.replace('-', '_')}.models")
every = pytest.mark.parametrize("revision", ALL)


def builder(revision: str) -> output_conversion.ContentResultBuilder:
    method = REVISIONS[revision].client_requests["tools/call"]
    return output_conversion.ContentResultBuilder(
        method.result, facts(revision).behaviour.structured_content
    )


def sent_result(revision: str, annotation: Any, value: Any) -> Any:
    """The result of a tool with this return annotation, as wire object."""
    made = builder(revision).full(
        *output_conversion.from_annotation(annotation, "tool").results(value)
    )
    return to_builtins(made)


@every
def test_content_of_generated_models_is_content_too(revision: str) -> None:
    link = MODELS.ResourceLink(name="a", uri="x://a", title="The a")
    image = MODELS.ImageContent(data="+w==", mime_type="image/png")
    audio = MODELS.AudioContent(data="+w==", mime_type="audio/wav")
    content = sent_result(revision, list[MODELS.ContentBlock], [link, image, audio])["content"]
    assert content[0] in (
        {"type": "resource_link", "name": "a", "uri": "x://a", "title": "The a"},
        {"type": "text", "text": "The a: x://a"},
    )
    assert content[1] == {"type": "image", "data": "+w==", "mimeType": "image/png"}
    assert content[2]["type"] in ("audio", "text")


@pytest.mark.requirement("content.base64", revisions=EVERY_REVISION)
def test_data_of_generated_models_has_to_be_base64() -> None:
    image = MODELS.ImageContent(data="%%%", mime_type="image/png")
    with pytest.raises(ValueError, match="data: expected base64, got '%%%'"):
        sent_result(NEWEST, MODELS.ImageContent, image)


@every
def test_annotations_stay_with_a_block_that_becomes_text(revision: str) -> None:
    audio = MODELS.AudioContent(
        data="", mime_type="audio/wav", annotations=MODELS.Annotations(priority=0.5)
    )
    (block,) = sent_result(revision, None, audio)["content"]
    assert block["annotations"] == {"priority": 0.5}


CONTENT = [
    *(None, Text, Text | Image, list[Text], list[str | Image], tuple[Text, ...]),
    *(Sequence[Text | None], Annotated[Text, "noted"], Text | None),
]


@pytest.mark.parametrize("annotation", CONTENT, ids=str)
def test_these_annotations_mean_content(annotation: Any) -> None:
    assert output_conversion.from_annotation(annotation, "tool").form == "content"


@pytest.mark.parametrize(
    "annotation",
    [int, list[str], bool | None, list[int], Any | None, str | None, Annotated[str, "noted"]],
    ids=str,
)
def test_these_annotations_mean_a_value_in_an_object(annotation: Any) -> None:
    assert output_conversion.from_annotation(annotation, "tool").form == "wrapped"


@pytest.mark.parametrize(
    ("annotation", "value", "complaint"),
    [
        (str, 3, "Expected `str`, got `int`"),
        (Text, 3, "expected content, got int; content is a str, Text, Image"),
        (int, "3", "Expected `int`, got `str`"),
        (dict[str, int], {"a": "b"}, "Expected `int`"),
        (dict[str, int], object(), "unsupported"),
        (int, ToolResult(content=["x"]), "expected ToolResult.structured"),
        (int, ToolResult(structured="x"), "Expected `int`, got `str`"),
    ],
)
@pytest.mark.requirement("tools.output-conforms", revisions=EVERY_REVISION)
def test_a_value_that_is_not_what_was_promised_does_not_pass(
    annotation: Any, value: Any, complaint: str
) -> None:
    with pytest.raises(output_conversion.OutputError, match=complaint):
        output_conversion.from_annotation(annotation, "tool").results(value)


@pytest.mark.requirement("tools.output-conforms", revisions=EVERY_REVISION)
async def test_content_alone_does_not_keep_a_schema(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.tool(output_schema={"type": "object", "required": ["a"]})
    def give(value: Any) -> Any:
        return value

    async with connect(server, revision="2025-06-18") as client:
        assert (await client.call_tool("give", {"value": "text"})).is_error
        assert "got content alone" in caplog.text
        assert (await client.call_tool("give", {"value": {}})).is_error
        assert "'a' is a required property" in caplog.text
        result = await client.call_tool("give", {"value": {"a": 1}})
    assert result.structured_content == {"a": 1}
    assert result.content[0].text == '{"a":1}'


@pytest.mark.requirement("content.structured-text-fallback", revisions=EVERY_REVISION)
def test_a_result_told_in_full_has_what_was_told() -> None:
    told = output_conversion.from_annotation(int, "tool").results(
        ToolResult(structured=3, meta={"k": 1})
    )
    assert told == ([{"type": "text", "text": "3"}], {"result": 3}, {"k": 1})
    told = output_conversion.from_annotation(ToolResult, "tool").results(
        ToolResult(content=[Text("x")])
    )
    assert told == ([{"type": "text", "text": "x"}], UNSET, None)
    assert output_conversion.from_annotation(ToolResult, "tool").results(ToolResult()) == (
        [],
        UNSET,
        None,
    )


@pytest.mark.requirement("content.annotations-audience", "content.annotations-priority")
@every
def test_annotations_of_a_block_are_held_against_the_revision(revision: str) -> None:
    wrong: Any = Annotations(audience=["system"])  # type: ignore[list-item] # the mistake
    with pytest.raises(ValidationError):
        sent_result(revision, Text, Text("x", annotations=wrong))


def test_a_type_that_is_no_result_has_no_shape() -> None:
    with pytest.raises(LookupError, match="has the field 'content'"):
        content.struct_with(Annotated[int, "no struct"], "content")
