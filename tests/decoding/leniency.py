"""Changes of a schema, and whether a message then decodes: the rows of docs/types.md."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

Node: TypeAlias = dict[str, Any]
Definitions: TypeAlias = Mapping[str, Node]

ANY_OBJECT: Node = {"type": "object"}


class Reading(NamedTuple):
    """A schema, as the rows use it."""

    definitions: Definitions
    default: Callable[[str, str], Any]
    tests: Mapping[frozenset[str], list[tuple[str, Node]]]  # by union: members, with their tests
    maps: Collection[str]  # what is a map in the package, such as Tool._meta

    def members(self, union: Node) -> list[str]:
        """The names of the members of a union, those of unions in it included."""
        names: list[str] = []
        for part in union.get("anyOf", ()):
            inner = self.definitions.get(_target(part), {})
            names += self.members(inner) or [_target(part)]
        return names

    def constants(self, name: str) -> Node:
        """The constants of a definition, with those that it takes in by `allOf`."""
        node = self.definitions.get(name, {})
        constants = _constants(node)
        for part in node.get("allOf", ()):
            constants |= _constants(part) | self.constants(_target(part))
        return constants


def absent_constants(name: str, node: Node, reading: Reading) -> Node:
    """A required member with one possible value may be absent, where it tells nothing."""
    if "anyOf" in node and frozenset(reading.members(node)) not in reading.tests:
        return {**node, "anyOf": [_with_tag(each, node, reading) for each in node["anyOf"]]}
    parts = node.get("allOf", ())
    names = {wire for part in (node, *parts) for wire in _constants(part)}
    if parts:
        node = {**node, "allOf": [_not_required(part, names) for part in parts]}
    return _not_required(node, names)


def stated_defaults(name: str, node: Node, reading: Reading) -> Node:
    """A required member that stands for a default where it is absent."""
    members = node.get("properties", {})
    return _not_required(node, {w for w in members if reading.default(name, w) is not None})


def null_members(name: str, node: Node, _: Reading) -> Node:
    """Null is absence, for members that are not required, and for values of maps."""
    required = node.get("required", ())
    if node.get("additionalProperties"):
        values = {"anyOf": [node["additionalProperties"], {"type": "null"}]}
        node = {**node, "additionalProperties": values}
    members = {
        wire: each if wire in required else {"anyOf": [each, {"type": "null"}]}
        for wire, each in node.get("properties", {}).items()
    }
    return {**node, "properties": members} if members else node


def any_meta(name: str, node: Node, _: Reading) -> Node:
    """`_meta` is any object."""
    members = node.get("properties", {})
    return {**node, "properties": {**members, "_meta": ANY_OBJECT}} if "_meta" in members else node


def open_objects(name: str, node: Node, reading: Reading) -> Node:
    """An object that is declared open, and is a map in the package, is any object."""
    whole = reading.definitions.get(_target(node), node)
    is_open = whole.get("additionalProperties") in ({}, True)
    return ANY_OBJECT if is_open and name in reading.maps else node


def json_schemas(name: str, node: Node, _: Reading) -> Node:
    """Of a JSON Schema as a value, only a required `type` is read."""
    members = node.get("properties", {})
    if "$schema" not in members and members.get("type", {}).get("const") != "object":
        return node
    if "$ref" in str(members):
        return node
    fixed = (
        {"type": {"enum": [members["type"]["const"]]}} if "type" in node.get("required", ()) else {}
    )
    return {**ANY_OBJECT, "properties": fixed, "required": list(fixed)}


def marked_members(name: str, node: Node, reading: Reading) -> Node:
    """A value with the mark of one member of a union is that member, or invalid."""
    whole: Any = False
    tests = reading.tests.get(frozenset(reading.members(node)), []) if "anyOf" in node else []
    for member, test in reversed(tests):
        whole = {"if": test, "then": {"$ref": f"#/$defs/{member}"}, "else": whole}
    return whole or node


def _constants(node: Node) -> Node:
    members = node.get("properties", {})
    return {wire: each["const"] for wire, each in members.items() if "const" in each}


def _with_tag(part: Node, union: Node, reading: Reading) -> Node:
    """A member of a union, with the constants required that other members have otherwise."""
    constants = [reading.constants(name) for name in reading.members(union) if name]
    tags = [
        wire
        for wire, value in reading.constants(_target(part)).items()
        if any(each.get(wire) != value for each in constants)
    ]
    return {"allOf": [part, {"required": tags}]} if tags else part


def _target(node: Node) -> str:
    return str(node.get("$ref", "")).rpartition("/")[2]


def _not_required(node: Node, names: Collection[str]) -> Node:
    required = [wire for wire in node.get("required", ()) if wire not in names]
    return {**node, "required": required} if "required" in node else node


Row: TypeAlias = Callable[[str, Node, Reading], Node]

ROWS: Mapping[str, Row] = {
    "members of a JSON Schema": json_schemas,
    "members of open objects": open_objects,
    "members of `_meta`": any_meta,
    "several members of a union": marked_members,
    "null for an optional member": null_members,
    "absent constants": absent_constants,
    "absent members with a default": stated_defaults,
}
"""The rows, in the order in which they change a schema."""


def as_read(
    reading: Reading, without: str = "", table: Mapping[str, Row] = ROWS
) -> dict[str, Node]:
    """The definitions as the package reads them, or what another table is about."""
    rows = [row for name, row in table.items() if name != without]
    return {name: _read(name, node, rows, reading) for name, node in reading.definitions.items()}


def _read(name: str, node: Any, rows: list[Row], reading: Reading) -> Any:
    if not isinstance(node, dict):
        return node
    whole: Node = {}
    for key, part in node.items():
        if key == "properties":
            whole[key] = {
                wire: _read(f"{name}.{wire}", each, rows, reading) for wire, each in part.items()
            }
        elif key in ("items", "additionalProperties"):
            whole[key] = _read(f"{name}.", part, rows, reading)
        elif key in ("anyOf", "oneOf"):
            whole[key] = [_read(f"{name}.", each, rows, reading) for each in part]
        elif key == "allOf":
            parts = [reading.definitions.get(_target(each), each) for each in part]
            whole[key] = [_read(name, each, rows, reading) for each in parts]
        else:
            whole[key] = part
    for row in rows:
        whole = row(name, whole, reading)
    return whole
