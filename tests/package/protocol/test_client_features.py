"""The values of forms, the order of messages of sampling, and the URIs of roots, by tables."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen_runtime.protocol.client_features import (
    content_complaint,
    field_complaint,
    messages_complaint,
)

LENGTHS = {"type": "string", "minLength": 2, "maxLength": 3}
RANGE = {"type": "number", "minimum": 1, "maximum": 2}
CHOICES = {"type": "string", "enum": ["a", "b"]}
TITLED = {"type": "string", "oneOf": [{"const": "a", "title": "A"}, True]}
SEVERAL = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}
FEW = {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 2}
FORMS: list[tuple[dict[str, Any], Any, str | None]] = [
    ({"type": "string"}, "", None),
    ({"type": "string"}, 5, "expected text, got 5"),
    ({}, 5, None),
    ({"type": "file"}, 5, None),
    (LENGTHS, "a", "expected at least 2 characters, got 1"),
    (LENGTHS, "ab", None),
    (LENGTHS, "abc", None),
    (LENGTHS, "abcd", "expected at most 3 characters, got 4"),
    ({**CHOICES, "minLength": 5}, "a", None),
    (CHOICES, "c", "expected one of a, b, got 'c'"),
    (TITLED, "a", None),
    (TITLED, "A", "expected one of a, got 'A'"),
    ({"type": "string", "format": "own"}, "x", None),
    (RANGE, 0.5, "expected at least 1, got 0.5"),
    (RANGE, 1, None),
    (RANGE, 2, None),
    (RANGE, 2.5, "expected at most 2, got 2.5"),
    (RANGE, True, "expected a number, got True"),
    (RANGE, "1", "expected a number, got '1'"),
    (RANGE, float("inf"), "expected a number, got inf"),
    ({"type": "number"}, -5, None),
    ({"type": "integer"}, 1.0, None),
    ({"type": "integer"}, 1.5, "expected an integer, got 1.5"),
    ({"type": "integer"}, False, "expected a number, got False"),
    ({"type": "boolean"}, False, None),
    ({"type": "boolean"}, 0, "expected true or false, got 0"),
    (SEVERAL, [], None),
    (SEVERAL, ["a", "A"], "expected one of a, got 'A'"),
    (SEVERAL, "a", "expected a list, got 'a'"),
    ({"type": "array", "items": {}}, ["a"], "expected one of , got 'a'"),
    (FEW, [], "expected at least 1 of the choices, got 0"),
    (FEW, ["a"], None),
    (FEW, ["a", "b"], None),
    (FEW, ["a", "b", "a"], "expected at most 2 of the choices, got 3"),
]


@pytest.mark.parametrize(("field", "value", "complaint"), FORMS)
def test_the_value_of_a_field_is_checked_so(
    field: dict[str, Any], value: Any, complaint: str | None
) -> None:
    assert field_complaint(field, value) == complaint


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("email", ["a@b"], ["a", "a@b@c", "a b@c"]),
        ("uri", ["memo:x"], ["x y"]),
        ("date", ["2026-02-28"], ["2026-02-30", "20260228", "2026-02-28T10:00"]),
        (
            "date-time",
            ["2026-02-28T10:00:00Z", "2026-02-28t10:00", "2026-02-28 10:00:00+01:00"],
            ["2026-02-28", "2026-02-30T10:00:00Z", "2026-02-28T10", "now"],
        ),
    ],
)
def test_a_text_has_its_format(kind: str, right: list[str], wrong: list[str]) -> None:
    field = {"type": "string", "format": kind}
    assert [field_complaint(field, value) for value in right] == [None] * len(right)
    for value in wrong:
        assert field_complaint(field, value) == f"expected text of the format {kind}, got {value!r}"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"a": "x"}, None),
        ({"a": "x", "b": 1, "c": None}, None),
        ({"b": 1}, "a: expected a value, got none"),
        ({"a": "x", "b": "y"}, "b: expected a number, got 'y'"),
    ],
)
def test_required_and_further_values_of_a_form(
    content: dict[str, Any], complaint: str | None
) -> None:
    form = {"required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}
    assert content_complaint(form, content) == complaint
    assert content_complaint({}, content) is None


def use(*ids: str) -> dict[str, Any]:
    """A message in which a model uses tools."""
    blocks = [{"type": "tool_use", "id": id, "name": "add", "input": {}} for id in ids]
    return {"role": "assistant", "content": blocks}


def results(*ids: str, **more: Any) -> dict[str, Any]:
    """A message with the results of tools."""
    blocks = [{"type": "tool_result", "toolUseId": id, "content": []} for id in ids]
    return {"role": "user", "content": blocks, **more}


TEXT = {"type": "text", "text": "hello"}
SAID = {"role": "user", "content": TEXT}
HISTORIES: list[tuple[list[dict[str, Any]], str | None]] = [
    ([], None),
    ([SAID, use("1"), results("1"), SAID], None),
    ([use("1", "2"), results("2", "1")], None),
    ([SAID, use("2", "1")], "the last message leaves '1', '2' without a result"),
    ([use("1"), SAID], "messages[1]: expected a result for '1' first"),
    ([use("1", "2"), results("1")], "messages[1]: expected a result for '2' first"),
    ([use("1"), results("1", "3")], "messages[1]: there is no use of a tool just before for"),
    ([use("1"), results("1"), results("1")], "messages[2]: there is no use of a tool just before"),
    ([use("1"), results("1", "1")], "messages[1]: expected one result for each use"),
    ([{**use("1"), "role": "user"}], "messages[0]: expected tool_use from the assistant"),
    ([use("1"), results("1", role="assistant")], "messages[1]: expected tool_result from the user"),
    (
        [use("1"), {"role": "user", "content": [*results("1")["content"], TEXT]}],
        "messages[1]: expected results of tools alone",
    ),
]


@pytest.mark.parametrize(("messages", "complaint"), HISTORIES)
def test_results_of_tools_follow_their_uses(
    messages: list[dict[str, Any]], complaint: str | None
) -> None:
    said = messages_complaint(messages)
    assert said is None if complaint is None else str(said).startswith(complaint)
