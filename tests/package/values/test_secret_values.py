"""Secret members of schemas, and their values in copies and in error texts."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen_runtime.runtime.masking import mask_members
from mcpgen_runtime.server.toolkit.argument_errors import MASK, secret_members, without_values

SECRET = {"type": "string", "writeOnly": True}


@pytest.mark.parametrize(
    "schema",
    [
        SECRET,
        {"type": "string", "format": "password"},
        {"$ref": "#/$defs/Secret"},
        {"anyOf": [{"type": "null"}, SECRET]},
        {"type": "array", "items": SECRET},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/Secret"}},
        {"$ref": "#/$defs/Loop", "items": SECRET},
    ],
)
def test_a_member_is_secret_if_its_schema_says_so_anywhere(schema: dict[str, Any]) -> None:
    definitions = {"Secret": SECRET, "Loop": {"items": {"$ref": "#/$defs/Loop"}}}
    inner = {"properties": {"key": schema, "open": {"$ref": "#/$defs/Loop"}}}
    for whole in (inner, {"properties": {"deep": inner}}, {"anyOf": [{"type": "null"}, inner]}):
        assert secret_members({**whole, "$defs": definitions}) == {"key"}


@pytest.mark.parametrize("schema", [True, {"writeOnly": False}, {"format": "uri"}, {"$ref": "x"}])
def test_a_member_is_open_if_its_schema_says_nothing(schema: Any) -> None:
    assert secret_members({"properties": {"key": schema}}) == frozenset()


def test_secret_members_are_masked_at_any_depth() -> None:
    value = {"key": "a", "rest": [{"key": {"b": 1}, "name": "c"}, "key"]}
    masked = {"key": MASK, "rest": [{"key": MASK, "name": "c"}, "key"]}
    assert mask_members(value, {"key"}) == masked


def test_a_text_shows_no_secret_value_and_no_end_of_one() -> None:
    arguments = {"key": [{"a": "sk"}, 4711, True, None], "more": [{"key": "sk'-long"}], "name": "n"}
    text = "got 'sk' and 4711, True, None, \"sk'-long\" of 'n'"
    shown = f"got {MASK} and {MASK}, True, None, {MASK} of 'n'"
    assert without_values(text, arguments, {"key"}) == shown
    numbers = {"key": [47, 4711]}
    assert without_values("47 and 4711", numbers, {"key"}) == f"{MASK} and {MASK}"
