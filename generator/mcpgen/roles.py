"""The definitions with a role of their own in every connection: who a side is, what it can do.

They have the names that every dated revision has. In a schema that calls one otherwise, it is the
type of the member that holds it; where a schema has nothing of the kind, it is an object of which
nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcpgen.json_types import Node
from mcpgen.normalized import Definition, NormalizedSchema, target

_META = "_meta"
_NAMES = {
    "implementation": "Implementation",
    "client_capabilities": "ClientCapabilities",
    "server_capabilities": "ServerCapabilities",
    "meta": "RequestMetaObject",
}
_HELD_BY = {
    "implementation": ("InitializeRequestParams", "clientInfo"),
    "client_capabilities": ("InitializeRequestParams", "capabilities"),
    "server_capabilities": ("InitializeResult", "capabilities"),
}
_EMPTY: Node = {"type": "object", "properties": {}, "required": []}


def find(normal: NormalizedSchema) -> tuple[NormalizedSchema, Mapping[str, str]]:
    """The definition for each role, and the schema with those that it lacks."""
    added: dict[str, Definition] = {}
    found: dict[str, str] = {}
    for role, name in _NAMES.items():
        found[role] = _held(normal, role) or name
        if name not in normal.definitions and found[role] == name:
            added[name] = Definition(name, _EMPTY, "/$defs")
    if not added:
        return normal, found
    return replace(normal, definitions={**normal.definitions, **added}), found


def _held(normal: NormalizedSchema, role: str) -> str | None:
    """The object that a member refers to, if no definition has the name for the role."""
    owner, wire = _HELD_BY.get(role, ("", _META))
    if _NAMES[role] in normal.definitions or owner not in normal.definitions:
        return None
    node = normal.definitions[owner].properties.get(wire, {})
    if "$ref" not in node:
        return None
    definition = normal.named(target(node))
    return definition.name if definition is not None and definition.is_object else None
