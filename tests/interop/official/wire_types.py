"""The types on the wire of the official SDK, as judges of values that are asked strictly."""

from __future__ import annotations

import copy
import importlib
import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter

from decoding import leniency
from decoding.leniency import Node, Reading, Row
from interop.official.next_revision import SETTINGS_FILE, known_wire, package_of
from mcpgen.schema.structure import unescape

WIRE = {revision: f"mcp_types.{package_of(revision)}" for revision in known_wire()}
"""The revisions with types on the wire, and their modules."""


SETTINGS = tomllib.loads(SETTINGS_FILE.read_text("utf-8"))


LEFT_OUT = SETTINGS["values"]["left_out_types"]
"""Definitions that the SDK has no type for."""


def whole_numbers(value: Any) -> Any:
    """A value with whole floats as integers: JSON Schema says that they are, pydantic does not."""
    match value:
        case dict():
            return {key: whole_numbers(each) for key, each in value.items()}
        case list():
            return [whole_numbers(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def judge(
    revision: str, name: str, prepared: Callable[[Any], Any] = whole_numbers
) -> Callable[[Any], bool]:
    """A function that says whether the SDK's type of a definition takes a value.

    Args:
        revision: The revision.
        name: The definition.
        prepared: What makes the value that the SDK is given.
    """
    official = SETTINGS["naming"]["types"].get(name, name)
    kind: Any = getattr(importlib.import_module(WIRE[revision]), official)
    validate = TypeAdapter[Any](kind).validate_json

    def accepts(value: Any) -> bool:
        text = json.dumps(prepared(value))
        try:
            validate(text, strict=True, by_alias=True, by_name=False)
        except ValueError:
            return False
        return True

    return accepts


def null_members(name: str, node: Node, _: Reading) -> Node:
    """Null is absence, for members that are not required, but for those with one value."""
    required = node.get("required", ())
    members = {
        wire: each if wire in required or "const" in each else {"anyOf": [each, {"type": "null"}]}
        for wire, each in node.get("properties", {}).items()
    }
    return {**node, "properties": members} if members else node


CORRECTIONS = "what the SDK corrects"
"""A row that is no change of each definition: the errata of `render.toml`."""

WHOLE = "whole numbers with a point"
"""A row that is no change of the schema: `whole_numbers`."""

ROWS: Mapping[str, Row] = {
    "null for an optional member": null_members,
}


def as_read(reading: Reading, revision: str, without: str = "") -> dict[str, Node]:
    """The definitions of a revision as the SDK reads them."""
    definitions: Any = copy.deepcopy({**reading.definitions})
    for row in () if without == CORRECTIONS else SETTINGS["errata"][revision]:
        *keys, last = (unescape(key) for key in row["pointer"].split("/")[2:])
        holder = definitions
        for key in keys:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        assert holder[last] == row["old"]
        holder[last] = row["new"]
    return leniency.as_read(reading._replace(definitions=definitions), without, ROWS)
