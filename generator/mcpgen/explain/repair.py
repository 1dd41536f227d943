"""Find the nearest valid form of a message by the smallest changes that its schema requires."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mcpgen.errors import format_value
from mcpgen.explain.revision import Revision
from mcpgen.explain.violations import Violation, resolve
from mcpgen.input_files import MAX_LEVELS
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model.name import Role

_MOST = 40
"""Limit of the changes, beyond which a message counts as another one."""
_DEPTH = 6
_VERSION = "protocolVersion"


@dataclass(frozen=True)
class Repair:
    """A valid form of a message.

    Attributes:
        message: The message.
        edits: The changes, in words.
    """

    message: Json
    edits: tuple[str, ...]


def nearest(revision: Revision, message: Json, sender: Role | None, request: Json) -> Repair | None:
    """The nearest valid form; `None` if there is none, as for an unknown method.

    Args:
        revision: The revision.
        message: The message.
        sender: The role of the sender, if known.
        request: The request that a response answers, if known.
    """
    changed, edits = deepcopy(message), list[str]()
    for _ in range(_MOST):
        wrong = revision.judge(changed, sender, request).violation
        if wrong is None:
            return Repair(changed, tuple(edits)) if edits else None
        edit = _repair(revision, changed, wrong)
        if edit is None:
            return None
        edits.append(edit)
    return None


def _repair(revision: Revision, message: Json, wrong: Violation) -> str | None:
    """Repair a violation in place; return the change in words, or `None` if there is no repair."""
    if not 0 < len(wrong.path) <= MAX_LEVELS:
        return None
    container: Any = message
    for step in wrong.path[:-1]:
        container = container[step]
    last: Any = wrong.path[-1]
    before: Json = container.get(last) if is_object(container) else container[last]
    if wrong.keyword == "additionalProperties":
        del container[last]
        return f"remove {wrong.pointer}"
    if wrong.keyword == "method":
        value: Json = revision.closest_method(str(before))
    elif wrong.keyword == "required":
        node: Json = wrong.schema.get("properties", {}) if is_object(wrong.schema) else {}
        value = _least(revision, node.get(last, {}), str(last))
        container[last] = value
        return f"add {wrong.pointer}: {format_value(value, 100)}"
    else:
        value = _convert(revision, before, wrong, str(last))
    if value is None or value == before:
        return None
    container[last] = value
    return f"change {wrong.pointer} from {format_value(before)} to {format_value(value, 100)}"


def _convert(revision: Revision, before: Json, wrong: Violation, name: str) -> Json:
    """The value that fits a schema and is nearest to another value."""
    schema = wrong.schema if is_object(wrong.schema) else {}
    match wrong.keyword:
        case "const":
            return schema["const"]
        case "enum":
            choices = {str(choice): choice for choice in schema["enum"]}
            [nearest_choice] = get_close_matches(str(before), choices, 1, 0)
            return choices[nearest_choice]
        case "minimum" | "maximum":
            return schema[wrong.keyword]
        case "maxLength" | "maxItems":
            return before[: schema[wrong.keyword]]
        case "anyOf" | "oneOf":
            options = [resolve(each, revision.definitions) for each in schema[wrong.keyword]]
            fits = [_as_type(before, each) for each in options if is_object(each)]
            nearby = next((value for value in fits if value is not None), None)
            return _least(revision, options[0], name) if nearby is None else nearby
        case "type":
            nearby = _as_type(before, schema)
            return _least(revision, schema, name) if nearby is None else nearby
        case _:
            return None


def _as_type(value: Json, schema: Node) -> Json:
    """Convert a value to the type of a schema; `None` if it cannot be converted."""
    kinds: Json = schema.get("type", ())
    for kind in (kinds,) if isinstance(kinds, str) else kinds:
        match kind:
            case "string" if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
            case "integer" if isinstance(value, str) and value.lstrip("-").isdecimal():
                return int(value)
            case "boolean" if value in ("true", "false"):
                return value == "true"
            case "array" if not is_array(value):
                return [value]
            case _:
                pass
    return None


def _least(revision: Revision, node: Json, name: str, depth: int = 0) -> Json:
    """The smallest value that a schema allows."""
    node = resolve(node, revision.definitions)
    if not is_object(node) or depth > _DEPTH:
        return {}
    if "const" in node or "enum" in node:
        return node["const"] if "const" in node else node["enum"][0]
    for keyword in ("anyOf", "oneOf"):
        if keyword in node:
            return _least(revision, node[keyword][0], name, depth + 1)
    default = revision.protocol.facts.default("*", name)
    if default is not None:
        return default
    kinds: Json = node.get("type", "object")
    simple: dict[Json, Json] = {"boolean": False, "null": None, "array": []}
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "string":
            is_version = name == _VERSION or name == revision.protocol.facts.meta.protocol_version
            return revision.version if is_version else ""
        case "integer" | "number":
            return node.get("minimum", 0)
        case kind if kind in simple:
            return simple[kind]
        case _:
            members = node.get("properties", {})
            return {
                wire: _least(revision, members.get(wire, {}), wire, depth + 1)
                for wire in node.get("required", ())
            }
