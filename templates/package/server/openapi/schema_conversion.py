"""Schemas of an OpenAPI document as JSON Schemas 2020-12 that stand alone.

A referenced schema becomes an entry of `$defs`, so a schema may refer to itself. Schemas of
OpenAPI 3.0 are rewritten where they differ: `nullable`, `exclusiveMinimum`, `example`. A request
has no members that are `readOnly`, a response none that are `writeOnly`.

Source: OpenAPI Specification 3.0.4 and 3.1.1, Schema Object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from ..._wire import is_many, is_object
from ...foreign_text import safe_repr, safe_text
from ...json_schema.patterns import PatternError, pattern_of
from .document import Document

SCHEMA_NODES = 20_000
"""Most parts of the schemas of one request or response, definitions included."""

SCHEMA_DEPTH = 64
"""Most levels of schemas within each other, without references."""

SCHEMA_TEXT = 4 * 1024 * 1024
"""Most characters of the values and texts in these schemas."""

_DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "https://spec.openapis.org/oas/3.")
_REFUSED = ("$id", "$dynamicRef", "$recursiveRef")  # these change the meaning of references

_SCHEMAS = frozenset(
    {
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
    }
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_OTHER_VALUES = frozenset({"const", "default", "example"})
_NULL: Mapping[str, Any] = {"type": "null"}
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: Any) -> bool:
    kinds = value if is_many(value) else [value]
    return bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)


def _are_names(value: Any) -> bool:
    return is_many(value) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _are_schemas(value: Any) -> bool:
    return is_many(value) and bool(value)


_FORMS: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "required": _are_names,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "dependentRequired": lambda value: is_object(value) and all(map(_are_names, value.values())),
    **dict.fromkeys(("enum", "examples"), is_many),
    **dict.fromkeys(_SCHEMA_LISTS, _are_schemas),
    **dict.fromkeys(_SCHEMA_MAPS, is_object),
    **dict.fromkeys(("title", "description", "format", "pattern"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _is_number),
    **{
        f"{bound}{what}": _is_count
        for bound in ("max", "min")
        for what in ("Length", "Items", "Contains", "Properties")
    },
}
"""The form of the value of a keyword. Schemas of this form are not checked again."""


class SchemaConverter:
    """Converts the schemas of one request or response.

    Args:
        document: The document that the references point into.
        direction: `request` or `response`.

    Attributes:
        left_out: Texts about unsupported parts of the schemas.
    """

    def __init__(self, document: Document, direction: Literal["request", "response"]) -> None:
        self._document = document
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._names: dict[str, str] = {}
        self._nodes = 0
        self._text = 0
        self.left_out: list[str] = []

    def convert(self, schema: Any, depth: int = 0) -> Any:
        """A converted schema, whose references point into `$defs`; see `definitions`.

        Raises:
            ValueError: Not a schema, a reference that leads nowhere, or too many parts.
        """
        self._document.take_work()
        self._nodes += 1
        if self._nodes > SCHEMA_NODES:
            raise ValueError(f"expected schemas with at most {SCHEMA_NODES} parts")
        if depth > SCHEMA_DEPTH:
            raise ValueError(f"expected schemas with at most {SCHEMA_DEPTH} levels")
        if isinstance(schema, bool):
            return schema
        if not is_object(schema):
            raise ValueError(f"expected a schema, got {safe_repr(schema)}")
        self._check_keywords(schema)
        if "$ref" not in schema:
            return self._keywords(schema, depth)
        if self._document.is_3_0:  # other keywords beside a reference have no effect there
            beside = {name: schema[name] for name in ("description",) if name in schema}
            self.take_text(beside)
        else:
            beside = self._keywords(schema, depth)
        return {**beside, "$ref": f"#/$defs/{self._definition_name(schema['$ref'])}"}

    def take_text(self, value: Any) -> None:
        """Count a value that a schema takes from the document.

        Raises:
            ValueError: The schemas have too many characters, or the value is nested too deep.
        """
        self._text += self._document.take_text(value)
        if self._text > SCHEMA_TEXT:
            raise ValueError(f"expected schemas with at most {SCHEMA_TEXT} characters")

    def definitions(self) -> dict[str, Any]:
        """The `$defs` that the schemas converted so far refer to."""
        converted: dict[str, Any] = {}
        while len(converted) < len(self._names):
            for reference, name in list(self._names.items()):
                if name not in converted:
                    converted[name] = self.convert(self._document.target(reference))
        return converted

    def is_hidden(self, schema: Any) -> bool:
        """Whether a member with this schema is absent in the direction."""
        if is_object(schema) and "$ref" in schema and self._hidden not in schema:
            schema = self._document.target(schema["$ref"])
        return is_object(schema) and schema.get(self._hidden) is True

    def _check_keywords(self, schema: Mapping[str, Any]) -> None:
        for keyword in _REFUSED:
            if keyword in schema:
                raise ValueError(f"a schema has {keyword}, which is not supported")
        dialect = schema.get("$schema", _DIALECTS[0])
        if not isinstance(dialect, str) or not dialect.startswith(_DIALECTS):
            raise ValueError(f"$schema: expected {_DIALECTS[0]}, got {safe_repr(dialect)}")

    def _definition_name(self, reference: Any) -> str:
        """The name in `$defs` for the target of a reference."""
        name = self._names.get(reference) if isinstance(reference, str) else None
        if name is None:
            self._document.target(reference)
            stem = re.sub(r"[^A-Za-z0-9_.\-]", "_", reference.rpartition("/")[2])[:64] or "root"
            name = unique_name(stem, self._names.values())
            self._names[reference] = name
        return name

    def _keywords(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for keyword, value in schema.items():
            if keyword in _SCHEMAS:
                converted[keyword] = self.convert(value, depth + 1)
            elif keyword in _SCHEMA_LISTS and is_many(value):
                converted[keyword] = [self.convert(each, depth + 1) for each in value]
            elif keyword in _SCHEMA_MAPS and is_object(value):
                members = self._members(keyword, value)
                converted[keyword] = {name: self.convert(each, depth + 1) for name, each in members}
            elif keyword not in _FORMS and keyword not in _OTHER_VALUES:
                continue
            elif keyword == "pattern":
                if self._is_searchable(value):
                    converted[keyword] = value
            else:
                self.take_text(value)
                if keyword == "example":
                    converted.setdefault("examples", [value])
                else:
                    converted[keyword] = value
        if is_object(properties := schema.get("properties")) and is_many(schema.get("required")):
            hidden = {name for name, each in properties.items() if self.is_hidden(each)}
            converted["required"] = [name for name in schema["required"] if name not in hidden]
        if self._document.is_3_0:
            converted = _of_3_0(converted, schema)
        for keyword, value in converted.items():
            has_form = _FORMS.get(keyword)
            if has_form is not None and not has_form(value):
                raise ValueError(f"a schema has {keyword} {safe_repr(value)}")
        return converted

    def _members(self, keyword: str, members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, schema in members.items():
            if keyword == "properties" and self.is_hidden(schema):
                continue
            self.take_text(name)
            if keyword != "patternProperties" or self._is_searchable(name):
                yield name, schema

    def _is_searchable(self, pattern: Any) -> bool:
        """Whether a regular expression can be searched in linear time; else `left_out` has it."""
        try:
            if isinstance(pattern, str):
                pattern_of(pattern)
        except PatternError as error:
            self.left_out.append(f"a pattern, which is not checked here: {safe_text(str(error))}")
            return False
        return True


def _of_3_0(converted: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with keywords of OpenAPI 3.0 replaced by those of JSON Schema."""
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if converted.get(exclusive) is True and inclusive in converted:
            converted[exclusive] = converted.pop(inclusive)
        elif isinstance(converted.get(exclusive), bool):
            del converted[exclusive]
    if converted.get("format") == "byte":
        converted.setdefault("contentEncoding", "base64")
    return with_null(converted) if schema.get("nullable") is True else converted


def with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that also allows null."""
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {"anyOf": [schema, _NULL]}
    nullable: dict[str, Any] = {**schema, "type": [kind, "null"]}
    if is_many(choices := schema.get("enum")) and None not in choices:
        nullable["enum"] = [*choices, None]
    return nullable


def unique_name(stem: str, taken: Any) -> str:
    """The stem, with the first number that makes the name unique if the stem is taken."""
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    return name
