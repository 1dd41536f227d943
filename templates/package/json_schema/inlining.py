"""Schemas without references, for clients that do not support references.

Each reference into `$defs` or `definitions` is replaced by its definition. References to recursive
definitions are kept, and references beside other rules, which older and newer JSON Schema interpret
differently.

Source: JSON Schema core 8.2 (2020-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._wire import is_many, is_object

INLINED_PARTS = 2_000
"""Most objects of a schema without references; a schema with more objects keeps its references."""

SCHEMA_MAPS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
"""Keywords whose members are schemas."""
DATA = frozenset({"default", "const", "enum", "examples", "example", "required"})
"""Keywords whose values are not schemas."""

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)
_PLACES = ("$defs", "definitions")
_OTHER_NAMES = frozenset({"$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"})
"""Keywords that change the target of references from a place in the document."""


class _StaysError(Exception):
    """The references of a schema cannot be replaced."""


def inline_references(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace references in a schema by their definitions; return the schema if impossible."""
    definitions = definitions_of(schema)
    if not definitions:
        return schema
    try:
        return _Inlining(definitions).root(schema)
    except (_StaysError, RecursionError):
        return schema


def definitions_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a schema, by their references."""
    return {
        _pointer(place, name): node
        for place in _PLACES
        if is_object(group := schema.get(place))
        for name, node in group.items()
    }


def references(node: Any) -> Iterator[str]:
    """The references within a schema.

    Raises:
        _StaysError: A keyword within the schema changes the target of references.
    """
    if not is_object(node):
        return
    for key, value in node.items():
        if key in _OTHER_NAMES and isinstance(value, str):
            raise _StaysError
        if key == "$ref" and isinstance(value, str):
            yield value
        elif key in SCHEMA_MAPS and is_object(value):
            for each in value.values():
                yield from references(each)
        elif key not in DATA:
            for each in value if is_many(value) else (value,):
                yield from references(each)


def _pointer(place: str, name: str) -> str:
    """The reference to a definition."""
    return f"#/{place}/{name.replace('~', '~0').replace('/', '~1')}"


class _Inlining:
    """The definitions of a schema, and those whose references are kept."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._uses = {name: set(references(node)) for name, node in definitions.items()}
        self._parts = 0
        self._kept: set[str] = set()
        self._recursive = {name for name in definitions if name in self._reachable(name)}

    def _reachable(self, name: str) -> set[str]:
        """The definitions that are reachable from a definition."""
        reached: set[str] = set()
        ahead = list(self._uses[name])
        while ahead:
            use = ahead.pop()
            if use not in reached:
                reached.add(use)
                ahead += self._uses.get(use, ())
        return reached

    def root(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The whole schema, with the definitions of references that are kept."""
        rest = {key: value for key, value in schema.items() if key not in _PLACES}
        result: dict[str, Any] = self._schema(rest)
        done: dict[str, Any] = {}
        while ahead := self._kept - done.keys():
            name = min(ahead)
            done[name] = self._schema(self._definitions[name])
        for place in _PLACES:
            names = [name for name in schema.get(place, ()) if _pointer(place, name) in done]
            kept = {name: done[_pointer(place, name)] for name in names}
            if kept:
                result[place] = kept
        return result

    def _schema(self, node: Any) -> Any:
        if not is_object(node):
            return node
        self._parts += 1
        if self._parts > INLINED_PARTS:
            raise _StaysError
        reference = node.get("$ref")
        if isinstance(reference, str) and reference != "#":
            if reference not in self._definitions:
                raise _StaysError
            beside = {key: value for key, value in node.items() if key != "$ref"}
            definition = self._definitions[reference]
            is_plain = is_object(definition) and _ANNOTATIONS.issuperset(beside)
            if is_plain and reference not in self._recursive:
                return {**self._schema(definition), **beside}
            self._kept.add(reference)
        return {key: self._value(key, value) for key, value in node.items()}

    def _value(self, key: str, value: Any) -> Any:
        if key in SCHEMA_MAPS and is_object(value):
            return {name: self._schema(each) for name, each in value.items()}
        if key in DATA:
            return value
        return [self._schema(each) for each in value] if is_many(value) else self._schema(value)
