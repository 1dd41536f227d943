"""Texts for people of what servers send, which may be anything."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol.client.item_texts import argument_types, block_text, first_line, item_row

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("rules", "types"),
    [
        (TEXT, ["string"]),
        ({"type": ["string", "null", 1, "integer"]}, ["string", "integer"]),
        ({"const": "a"}, ["'a'"]),
        ({"const": None}, ["null"]),
        ({"enum": [True, None, 2]}, ["true", "2"]),
        ({"enum": [*range(8)]}, [*map(str, range(8))]),
        ({"enum": [*range(9)]}, [*map(str, range(8)), "..."]),
        ({"anyOf": [TEXT, {"type": "null"}, TEXT, 1]}, ["string"]),
        ({"oneOf": [TEXT, {"type": "integer"}]}, ["string", "integer"]),
        ({"oneOf": [*({"const": n} for n in range(9))]}, [*map(str, range(8))]),
        ({"anyOf": 1}, []),
        ({"$ref": "#/$defs/A"}, ["string"]),
        ({"$ref": "#/$defs/B"}, []),
        ({"$ref": "#/definitions/A"}, []),
        ({"$ref": 1}, []),
        ({}, []),
    ],
)
def test_a_schema_is_shown_as_its_types(rules: Any, types: list[str]) -> None:
    schema = {"$defs": {"A": TEXT, "B": {"$ref": "#/$defs/B"}}}
    assert argument_types(rules, schema) == types


def test_four_levels_of_references_are_followed() -> None:
    links = {f"{number}": {"$ref": f"#/$defs/{number + 1}"} for number in range(1, 4)}
    schema = {"$defs": {**links, "4": TEXT}}
    assert argument_types({"$ref": "#/$defs/1"}, schema) == ["string"]
    schema = {"$defs": {**links, "4": {"anyOf": [TEXT]}}}
    assert argument_types({"$ref": "#/$defs/1"}, schema) == []


@pytest.mark.parametrize(
    ("properties", "required", "arguments"),
    [
        ({"a": TEXT}, ["a"], "a: string"),
        ({"a": TEXT}, [], "a?: string"),
        ({"a": TEXT}, "a", "a?: string"),
        ({"a": {**TEXT, "default": "x"}}, [], "a: string = 'x'"),
        ({"a": 1, "b": {}}, ["b"], "a?, b"),
        ([], [], ""),
    ],
)
def test_a_tool_is_shown_with_its_parameters(
    properties: Any, required: Any, arguments: str
) -> None:
    schema = {"properties": properties, "required": required}
    row = item_row({"name": "t", "description": " One.\nTwo.", "inputSchema": schema})
    assert (row.cells, row.line) == (("t", arguments, "One."), f"t({arguments})")


@pytest.mark.parametrize(
    ("item", "cells", "line"),
    [
        (
            {"name": "n", "uri": "a://b", "mimeType": "text/plain"},
            ("a://b", "n", "text/plain", ""),
            "a://b  n  text/plain",
        ),
        ({"name": "n", "uriTemplate": "a://{b}"}, ("a://{b}", "n", "", ""), "a://{b}  n"),
        (
            {"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}, 1]},
            ("p", "a, b?, ?", ""),
            "p(a, b?, ?)",
        ),
        ({"name": 1}, ("", "", ""), "()"),
    ],
)
def test_other_items_are_shown_by_address_or_arguments(
    item: Any, cells: tuple[str, ...], line: str
) -> None:
    row = item_row(item)
    assert (row.cells, row.line) == (cells, line)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "text", "text": 1}, ""),
        ({"type": "resource", "resource": {"uri": "a://b", "text": "c"}}, "c"),
        ({"type": "resource_link", "name": "n", "uri": "a://b"}, "[n: a://b]"),
        ({"type": "image", "mimeType": "image/png", "data": "eHk="}, "[image, image/png, 2 bytes]"),
        ({"type": "other", "a": 1}, '{ "type": "other", "a": 1 }'),
        (
            {"type": "resource", "resource": {"uri": "a://b", "blob": "eA=="}},
            "[a://b, application/octet-stream, 1 bytes]",
        ),
    ],
)
def test_a_block_is_shown_as_what_it_is(block: Any, text: str) -> None:
    assert " ".join(block_text(block).split()) == text


def test_a_list_shows_one_line_of_a_description() -> None:
    assert first_line("x" * 100) == "x" * 100
    assert first_line("x" * 101) == f"{'x' * 97}..."
