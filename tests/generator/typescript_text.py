"""TypeScript written for the tests: a small schema of the protocol's shape, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcpgen.schema.structure import structure
from mcpgen.schema.typescript import Fidelity, document
from mcpgen.schema.typescript.parse import parse

SMALL = """\
/* A schema of the protocol's shape, with one request. */
export const JSONRPC_VERSION = "2.0";

/** Asks whether the peer is there. See {@link Result | what comes back}. */
export interface PingRequest {
  jsonrpc: typeof JSONRPC_VERSION;
  id: string | number;
  method: "ping";
}

export interface Result {
  /** Anything about the result. */
  _meta?: { [key: string]: unknown };
}

export type EmptyResult = Result;
export type ClientRequest = PingRequest;
export type ServerResult = EmptyResult;
"""

DECLARED = """\
interface Cat { lives?: number; name: string }
interface Dog { name: string; good: boolean }
type Pet = Cat | Dog;
type Name = string;
type Names = Name[];
type Level = "low" | "high";
type Rest = Omit<Cat, "name">;
const KIND = "kind";
interface Box<T> { value: T }
type Two<A, B = A[]> = { a: A; b: B };
type Maybe<T> = T | null;
"""
"""Declarations of the types that the tables of the tests name."""


def read(
    text: str, container: str = "$defs", fidelity: Fidelity = Fidelity.TYPESCRIPT
) -> dict[str, Any]:
    """The structure of the definitions that a text declares."""
    whole: dict[str, Any] = structure(document(parse(text.encode(), "s.ts"), container, fidelity))
    definitions: dict[str, Any] = whole[container]
    return definitions


def member(type_: str, comment: str = "", **options: Any) -> dict[str, Any]:
    """The schema of a member with a type, which may name what `DECLARED` declares."""
    text = f"{DECLARED}interface It {{ {comment} it: {type_} }}"
    definition: dict[str, Any] = read(text, **options)["It"]
    schema: dict[str, Any] = definition["properties"]["it"]
    return schema


def save_text(folder: Path, text: str, name: str = "schema.ts") -> Path:
    """A file with a text."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


TAGS = {"default", "format", "maxItems", "maximum", "minItems", "minLength", "minimum", "pattern"}


def typescript_of(definitions: Mapping[str, Any]) -> str:
    """TypeScript for the definitions of a schema: the objects first, then all others."""
    objects: list[str] = []
    others: list[str] = []
    for name, schema in definitions.items():
        if schema.get("type") == "object":
            objects.append(f"export interface {name} {_body(schema)}")
        else:
            others.append(f"{_tags(schema)}export type {name} = {_type(schema)};")
    return "\n".join((*objects, *others))


def _tags(schema: Mapping[str, Any]) -> str:
    present = sorted(TAGS & {*schema})
    lines = [f" * @{key} {str(schema[key]).lower()}" for key in present]
    if schema.get("type") == "number":
        lines.append(" * @TJS-type number")
    return "\n".join(("/**", *lines, " */\n")) if lines else ""


def _body(schema: Mapping[str, Any]) -> str:
    lines = []
    for name, child in schema.get("properties", {}).items():
        mark = "" if name in schema.get("required", ()) else "?"
        lines.append(f"{_tags(child)}{json.dumps(name)}{mark}: {_type(child)};")
    if "additionalProperties" in schema:
        lines.append(f"[key: string]: {_type(schema['additionalProperties'])};")
    return "\n".join(("{", *lines, "}"))


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": target}:
            return str(target).removeprefix("#/$defs/")
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
        case {"anyOf": types}:
            return " | ".join(map(_type, types))
        case {"allOf": types}:
            return " & ".join(map(_type, types))
        case {"items": items}:
            return f"({_type(items)})[]"
        case {"type": "object", "additionalProperties": True}:
            return "object"
        case {"type": "object", "properties": _} | {"additionalProperties": _}:
            return _body(schema)
        case {"type": "object"}:
            return "Record<string, unknown>"
        case {"type": list(names)}:
            return " | ".join(_type({"type": name}) for name in names)
        case {"type": name}:
            return "number" if name == "integer" else str(name)
        case _:
            return "unknown"
