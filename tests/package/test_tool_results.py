"""The value of a tool's result."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen_runtime import UNSET, models
from mcpgen_runtime.r2025_06_18.models import CallToolResult as ObjectResult
from mcpgen_runtime.tool_results import plain_value, structured_value

IMAGE = models.ImageContent(data="", mime_type="image/png")


def result_of(*content: Any, **members: Any) -> Any:
    blocks = [models.TextContent(text=each) if isinstance(each, str) else each for each in content]
    return models.CallToolResult(content=blocks, **members)


def wrapped(value: Any, *content: Any, **members: Any) -> Any:
    return result_of(*content, structured_content={"result": value}, **members)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (result_of("a"), "a"),
        (result_of("a", is_error=True), None),
        (result_of(), None),
        (result_of("a", "b"), None),
        (result_of("a", IMAGE), None),
        (result_of("a", structured_content={"b": 1}), {"b": 1}),
        (result_of("a", structured_content=None), None),
        (result_of("a", structured_content=UNSET), "a"),
        (result_of(structured_content=[1]), [1]),
        (result_of("5", structured_content={"result": 5, "more": 6}), {"result": 5, "more": 6}),
        (wrapped(5, "5"), 5),
        (wrapped(5, "6"), {"result": 5}),
        (wrapped(5, '{"result": 5}'), {"result": 5}),
        (wrapped([1], "[" * 100_000), {"result": [1]}),
        (wrapped(5), {"result": 5}),
        (wrapped(5, "5", IMAGE), 5),
        (wrapped(5, "{"), {"result": 5}),
        (wrapped("a", "a"), "a"),
        (wrapped("a", '"a"'), "a"),
        (wrapped(None), None),
        (wrapped(None, "x"), {"result": None}),
        (wrapped([1, "b"], "1", "b"), [1, "b"]),
        (wrapped([1, "b"], '[1, "b"]'), [1, "b"]),
        (wrapped([1, "b"], "1"), {"result": [1, "b"]}),
        (wrapped([1, "b"], "1", "b", IMAGE), {"result": [1, "b"]}),
        (wrapped([], IMAGE), {"result": []}),
        (wrapped([]), []),
        (wrapped(5, meta={"fastmcp": {"wrap_result": True}}), 5),
        (wrapped(5, meta={"fastmcp": {"wrap_result": 1}}), {"result": 5}),
        (wrapped(5, meta={"fastmcp": True}), {"result": 5}),
        (result_of("a", "b", meta={"fastmcp": {"wrap_result": True}}), None),
    ],
)
def test_the_value_of_a_result_is_what_the_function_returned(result: Any, value: Any) -> None:
    assert plain_value(result) == value
    assert result.data == value


def test_null_counts_as_absent_where_a_value_is_an_object() -> None:
    result = ObjectResult(content=[])
    assert structured_value(result) is UNSET
    assert structured_value(result_of(structured_content=None)) is None
    assert plain_value(result) is None
