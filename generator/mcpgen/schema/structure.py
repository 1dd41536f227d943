"""The structure of a schema, without its prose: digest and differences.

Annotating keywords are left out only where a schema may stand, since a property may be named
`description`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_array, is_object

ANNOTATIONS = frozenset(
    {"$comment", "deprecated", "description", "examples", "markdownDescription", "title"}
)
"""Keywords that do not restrict values: prose, and deprecation."""

BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern")
"""Keywords that limit the values of a type."""

_MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)


def escape(token: str) -> str:
    """Escape a reference token of a JSON pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Unescape a reference token of a JSON pointer."""
    return token.replace("~1", "/").replace("~0", "~")


def subschemas(schema: Json, pointer: str = "") -> Iterator[tuple[str, Node]]:
    """Every schema object within a schema, itself first, each with its pointer."""
    if not is_object(schema):
        return
    yield pointer, schema
    for key, value in schema.items():
        here = f"{pointer}/{escape(key)}"
        if key in _MAPS and is_object(value):
            for name, child in value.items():
                yield from subschemas(child, f"{here}/{escape(name)}")
        elif key in _LISTS and is_array(value):
            for index, child in enumerate(value):
                yield from subschemas(child, f"{here}/{index}")
        elif key in _SINGLE:
            yield from subschemas(value, here)


def structure(schema: Json) -> Json:
    """A copy of a schema without annotations, with everything else in the same order."""
    if not is_object(schema):
        return schema
    kept = (item for item in schema.items() if item[0] not in ANNOTATIONS)
    return {key: _structure_of(key, value) for key, value in kept}


def _structure_of(keyword: str, value: Json) -> Json:
    if keyword in _MAPS and is_object(value):
        return {name: structure(child) for name, child in value.items()}
    if keyword in _LISTS and is_array(value):
        return [structure(child) for child in value]
    return structure(value) if keyword in _SINGLE else value


def canonical(document: Json) -> str:
    """A document as canonical JSON: keys sorted by code point, no white space, no escapes.

    Only characters that JSON requires are escaped, so the text must be encoded as UTF-8.
    """
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(schema: Json) -> str:
    """The fingerprint of a schema's structure: equal for two files that differ in prose only.

    It is the SHA-256, in hex, of `canonical(structure(schema))` in UTF-8. The order of keys and
    the annotation texts do not count; the order of arrays does.
    """
    return hashlib.sha256(canonical(structure(schema)).encode()).hexdigest()


def prose(schema: Json) -> dict[str, str]:
    """The descriptions in a schema, by the pointer of the schema each describes."""
    return {
        pointer: text.strip()
        for pointer, node in subschemas(schema)
        if isinstance(text := node.get("description"), str) and text.strip()
    }


def resolve(document: Json, pointer: str) -> Json:
    """The value at a JSON pointer.

    Raises:
        LookupError: There is nothing at the pointer.
    """
    value = document
    for token in pointer.split("/")[1:]:
        if is_array(value) and token.isdecimal():
            value = value[int(token)]
        elif is_object(value):
            value = value[unescape(token)]
        else:
            raise LookupError(pointer)
    return value


def replace_at(document: Json, pointer: str, new: Json) -> Json:
    """A copy of a document with another value at a pointer that exists in it."""
    if not pointer:
        return new
    head, _, rest = pointer[1:].partition("/")
    below = f"/{rest}" if rest else ""
    if is_array(document):
        at = int(head)
        return [*document[:at], replace_at(document[at], below, new), *document[at + 1 :]]
    name = unescape(head)
    return {**document, name: replace_at(document[name], below, new)}


def difference(ours: Json, theirs: Json, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Every difference of two documents: its pointer, and a description.

    Objects are compared by key, independent of order; arrays are compared item by item. `1`, `1.0`
    and `true` are different values.
    """
    if is_object(ours) and is_object(theirs):
        yield from _key_differences(ours, theirs, pointer)
    elif is_array(ours) and is_array(theirs) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from difference(one, other, f"{pointer}/{index}")
    elif type(ours) is not type(theirs) or ours != theirs:
        yield pointer, f"{format_value(ours)} here, {format_value(theirs)} there"


def _key_differences(
    ours: Mapping[str, Json], theirs: Mapping[str, Json], pointer: str
) -> Iterator[tuple[str, str]]:
    for name in [*ours, *(key for key in theirs if key not in ours)]:
        here = f"{pointer}/{escape(name)}"
        if name not in theirs:
            yield here, f"{format_value(ours[name])} here, nothing there"
        elif name not in ours:
            yield here, f"nothing here, {format_value(theirs[name])} there"
        else:
            yield from difference(ours[name], theirs[name], here)
