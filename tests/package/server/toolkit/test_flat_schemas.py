"""Flat schemas, as most results have them: checked without the library, and as it checks them."""

from __future__ import annotations

import logging
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.live import TEXT
from kit.scripted import connect_scripted
from kit.wire import ALL, facts
from mcpgen_runtime import RemoteProtocolError
from mcpgen_runtime.json_schema.flat_schemas import MEMBERS, flat_complaint

STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]
WRAPPED = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
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
    "schema",
    [
        {"type": "object", "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": [], "required": []},
        {"type": "object", "required": ["a", "a"]},
        {"type": "object", "title": 5},
        {"type": "object", "properties": {f"a{n}": {"type": "null"} for n in range(MEMBERS + 1)}},
        {"$schema": "https://nowhere.test/dialect", "type": "object"},
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
    listing = {"tools": [{**tool, "outputSchema": WRAPPED}]}
    right, wrong = ({**TEXT, "structuredContent": {"result": each}} for each in ("done", 5))
    async with connect_scripted(revision, listing, right, wrong) as (client, _):
        await client.list_tools()
        with caplog.at_level(logging.WARNING):
            assert (await client.call_tool("a")).data == "done"
            with pytest.raises(RemoteProtocolError, match="result: 5 is not of type 'string'"):
                await client.call_tool("a")
    assert not caplog.records
