"""Small schemas and facts for the tests of what is made from them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcpgen import schema
from mcpgen.model import methods
from mcpgen.model.methods import Methods
from mcpgen.model.name import NamedSchema, name_types
from mcpgen.model.normalize import normalize
from mcpgen.model.normalized import NormalizedSchema
from mcpgen.schema import Schema, facts
from mcpgen.schema.facts import Facts, Results

REVISION = "2030-01-01"


def ref(name: str) -> dict[str, Any]:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def obj(required: str = "", **properties: Any) -> dict[str, Any]:
    """An object with properties; those named in `required`, by spaces, must be there."""
    return {"type": "object", "properties": properties, "required": required.split()}


def const(value: Any) -> dict[str, Any]:
    """One fixed value."""
    return {"const": value, "type": "string" if isinstance(value, str) else "integer"}


def array(items: Any) -> dict[str, Any]:
    """An array of what one schema describes."""
    return {"type": "array", "items": items}


def any_of(*names: str) -> dict[str, Any]:
    """A union of definitions."""
    return {"anyOf": [ref(name) for name in names]}


TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}
OPEN: dict[str, Any] = {"type": "object", "additionalProperties": {}}


def schema_of(**definitions: Any) -> Schema:
    """A schema of these definitions."""
    return Schema(
        revision=REVISION, dialect="", definitions=definitions, digest="", source="schema.json"
    )


def facts_of(
    *,
    client: Mapping[str, tuple[str, ...]] | None = None,
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> Facts:
    """Facts of a revision about which nothing is known beyond what is given."""
    return replace(
        facts.load(schema.revisions()[0].name),
        capabilities={},
        results=Results(client=client or {}, server={}),
        defaults=defaults or {},
        renamed=renamed or {},
    )


def normal_of(later: Any = (), facts: Any = None, **definitions: Any) -> NormalizedSchema:
    """The plain form of these definitions."""
    return normalize(schema_of(**definitions), facts or facts_of(), later)


def named_of(known: Facts | None = None, **definitions: Any) -> NamedSchema:
    """These definitions with the types of roles and messages."""
    known = known or facts_of()
    return name_types(normal_of(facts=known, **definitions), known)


def methods_of(named: NamedSchema, known: Facts) -> Methods:
    """The methods of definitions before their unions are decided."""
    return methods.derive(named.types, named.messages, known)


def fields_of(models: str) -> dict[str, set[str]]:
    """The members of each type of a module of models, whose order does not matter."""
    types: dict[str, set[str]] = {}
    for node in ast.parse(models).body:
        if isinstance(node, ast.ClassDef):
            members = (ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign))
            types[node.name] = {*members}
        elif isinstance(node, ast.AnnAssign):
            types[ast.unparse(node.target)] = {*re.findall(r"\w+", ast.unparse(node))}
    return types
