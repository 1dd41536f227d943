"""Declarations for the types of a revision, which the TypeScript of an extension may import.

They serve references, and members that a type inherits by `extends` or `&`. The schema of the
revision has the rest, so a type that is no object has no members here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.schema.typescript.syntax import (
    NO_COMMENT,
    Comment,
    Declaration,
    Index,
    Interface,
    Keyword,
    Literal,
    Member,
    Module,
    Object,
    Position,
    Reference,
    Type,
)

_NOWHERE = Position(1, 1)
_KEYWORDS = {"string": "string", "boolean": "boolean", "integer": "number", "number": "number"}


def with_core(module: Module, definitions: Mapping[str, Node]) -> Module:
    """Add the definitions of a revision to a module, under the names it imports them by.

    Declarations of the module take precedence over definitions of the same name.
    """
    core = {name: _interface(name, node) for name, node in definitions.items()}
    local = {
        own: replace(core[name], name=own)
        for own, name in module.renamed.items()
        if name in core and own not in module.types
    }
    types: dict[str, Declaration] = {**core, **local, **module.types}
    return replace(module, types=types)


def without_core(document: Node, module: Module, definitions: Mapping[str, Node]) -> Node:
    """The module's own definitions, with references to the revision by the revision's names."""
    local = {own: name for own, name in module.renamed.items() if own not in module.types}
    own = {name: node for name, node in document["$defs"].items() if name in module.types}

    def rename(node: Json) -> Json:
        if is_array(node):
            return [rename(part) for part in node]
        if not is_object(node):
            return node
        copy = {key: rename(part) for key, part in node.items()}
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in local and local[name] in definitions:
            copy["$ref"] = f"#/$defs/{local[name]}"
        return copy

    return {**document, "$defs": rename(own)}


def _interface(name: str, node: Node) -> Interface:
    properties: Mapping[str, Json] = node.get("properties", {})
    required = node.get("required", ())
    members = tuple(
        Member(wire, _type(child), wire not in required, _comment(child), _NOWHERE)
        for wire, child in properties.items()
    )
    index = Index(Keyword("unknown", _NOWHERE), _NOWHERE) if not properties else None
    return Interface(name, (), Object(members, index, _NOWHERE), NO_COMMENT, _NOWHERE)


def _comment(node: Json) -> Comment:
    """The comment that makes the number of a member an integer."""
    is_whole = is_object(node) and node.get("type") == "integer"
    return Comment(keywords={"type": "integer"}) if is_whole else NO_COMMENT


def _type(node: Json) -> Type:
    if is_object(node):
        if "$ref" in node:
            return Reference(node["$ref"].rpartition("/")[2], (), _NOWHERE)
        if "const" in node:
            return Literal(node["const"], _NOWHERE)
        kind = node.get("type")
        if isinstance(kind, str) and kind in _KEYWORDS:
            return Keyword(_KEYWORDS[kind], _NOWHERE)
    return Keyword("unknown", _NOWHERE)
