"""JSON Schemas of types: the parts of a type, and completion of schemas of msgspec and pydantic.

The definitions of all parts move to the root. Choices get their type and the order of their source,
times get their format, and nested `anyOf` and repeated descriptions are removed.

pydantic is not imported: a type has a part of pydantic only if the user's program imported it.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from .._wire import is_many, is_object


class TypeParts:
    """The parts of a type, collected recursively.

    Attributes:
        pydantic: Whether a part belongs to pydantic, or is a constraint that pydantic checks.
        pydantic_constraints: The constraints that pydantic checks.
        of_msgspec: Structs, attrs classes and constraints of msgspec, unknown to pydantic.
        choices: The values of each enum and each `Literal`, as JSON data in source order.
        classes: The types of the fields by wire name, for each class with fields.
    """

    def __init__(self) -> None:
        self.pydantic = False
        self.pydantic_constraints: list[Any] = []
        self.of_msgspec: list[Any] = []
        self.choices: list[list[Any]] = []
        self.classes: dict[type[Any], Mapping[str, Any]] = {}

    def add(self, annotation: Any) -> None:
        """Add a type and its parts."""
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            for note in arguments[1:]:
                self._add_note(note)
            self.add(arguments[0])
        elif origin is Literal:
            self.choices.append([getattr(each, "value", each) for each in arguments])
        elif origin is not None:
            self.add(origin)
            for each in arguments:
                self.add(each)
        elif isinstance(annotation, type):
            self._add_class(annotation)
        else:
            for name in ("__supertype__", "__value__"):  # of NewType, of a `type` statement
                if hasattr(annotation, name):
                    self.add(getattr(annotation, name))

    def _add_note(self, note: Any) -> None:
        if isinstance(note, msgspec.Meta):
            self.of_msgspec.append(note)
        elif _is_pydantic_constraint(note):
            self.pydantic = True
            self.pydantic_constraints.append(note)

    def _add_class(self, kind: type[Any]) -> None:
        if kind in self.classes:
            return
        if issubclass(kind, enum.Enum):
            self.choices.append([each.value for each in kind])
        elif is_pydantic_class(kind):
            self.pydantic = True
        elif has_fields(kind) or (tuple in kind.__mro__ and hasattr(kind, "_fields")):
            if issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__"):
                self.of_msgspec.append(kind)
            self._add_fields(kind)

    def _add_fields(self, kind: type[Any]) -> None:
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except (NameError, TypeError):  # msgspec raises an error with the name
            hints = {}
        names: Mapping[str, str] = {}
        if issubclass(kind, msgspec.Struct):
            names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
        self.classes[kind] = {names.get(name, name): hint for name, hint in hints.items()}
        for hint in hints.values():
            self.add(hint)


def is_pydantic_class(kind: type[Any]) -> bool:
    """Whether a class is a model, a dataclass or a type of pydantic."""
    return "pydantic" in sys.modules and (
        hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")
    )


def _is_pydantic_constraint(note: Any) -> bool:
    """Whether a note of an annotation is a constraint that pydantic checks."""
    if "pydantic" not in sys.modules:
        return False
    package = (note if isinstance(note, type) else type(note)).__module__.partition(".")[0]
    if package in ("pydantic", "pydantic_core", "annotated_types"):
        return True
    return hasattr(note, "__get_pydantic_core_schema__")


def _is_class(value: object) -> typing.TypeGuard[type[Any]]:
    return isinstance(value, type)


def has_fields(kind: Any) -> bool:
    """Whether a type is a dataclass, a TypedDict, or a class of attrs or msgspec."""
    origin: Any = typing.get_origin(kind) or kind
    return _is_class(origin) and (
        dataclasses.is_dataclass(origin)
        or typing.is_typeddict(origin)
        or hasattr(origin, "__attrs_attrs__")
        or issubclass(origin, msgspec.Struct)
    )


Schema: TypeAlias = dict[str, Any]

REFERENCE = "#/$defs/{name}"
"""The reference to a definition, as a template for msgspec."""

FORMATS: Mapping[Any, str] = {datetime: "date-time", time: "time"}
"""Formats that msgspec omits, since a time may lack a time zone."""

_NO_SUBSCHEMA = frozenset({"default", "const", "enum", "examples", "required"})
_SCHEMA_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_MEMBER_OF_ANY_OF = frozenset({"anyOf", "description"})


def complete(schema: Schema, parts: TypeParts) -> Schema:
    """A schema with its definitions at the root, completed by the members that msgspec omits.

    The root is a reference only if the type is recursive.

    Args:
        schema: The schema by msgspec; parts may have `$defs` of their own.
        parts: The parts of the type.
    """
    schema = _hoist_definitions(schema)
    _finish(schema, parts, schema["$defs"])
    definitions = schema.pop("$defs")
    reference = schema.get("$ref", "")
    name = reference.rpartition("/")[2]
    if set(schema) == {"$ref"} and not _mentions([definitions[name], definitions], reference):
        schema = definitions.pop(name)
    return {**schema, "$defs": definitions} if definitions else schema


def accepts(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> frozenset[str]:
    """The JSON types that a schema of `complete` accepts at its root; empty for every type."""
    if "$ref" in schema:
        return accepts(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    branches = schema.get("anyOf", schema.get("oneOf"))
    if branches is not None:
        members = [accepts(member, definitions) for member in branches]
        kinds = [kind for member in members for kind in member]
        return frozenset(kinds if all(members) else ())
    return frozenset({schema["type"]} if "type" in schema else ())


def _hoist_definitions(schema: Schema) -> Schema:
    """A schema with inner `$defs` moved to its root; clashing names get a number."""
    definitions: Schema = {}

    def definition_name(name: str, definition: Any) -> str:
        number = 1
        free = name
        while free in definitions and definitions[free] != definition:
            number += 1
            free = f"{name}{number}"
        return free

    def visit(node: Any, renamed: Mapping[str, str]) -> Any:
        if is_many(node):
            return [visit(each, renamed) for each in node]
        if not is_object(node):
            return node
        inner: Mapping[str, Any] = node.get("$defs", {})
        renamed = {**renamed, **{name: definition_name(name, inner[name]) for name in inner}}
        definitions.update({renamed[name]: definition for name, definition in inner.items()})
        for name, definition in inner.items():
            definitions[renamed[name]] = visit(definition, renamed)
        plain = {
            name: value if name in _NO_SUBSCHEMA else visit(value, renamed)
            for name, value in node.items()
            if name != "$defs"
        }
        if isinstance(plain.get("$ref"), str):
            name = plain["$ref"].rpartition("/")[2]
            plain["$ref"] = REFERENCE.format(name=renamed.get(name, name))
        return plain

    root: Schema = visit(schema, {})
    return {**root, "$defs": definitions}


def _finish(node: Any, parts: TypeParts, definitions: Mapping[str, Any]) -> None:
    """Complete a schema in place: types and order of choices, formats of times, tags of unions."""
    if is_many(node):
        for each in node:
            _finish(each, parts, definitions)
    if not _is_schema(node):
        return
    for name, value in node.items():
        if name in _SCHEMA_MAPS:
            for each in value.values():
                _finish(each, parts, definitions)
        elif name not in _NO_SUBSCHEMA:
            _finish(value, parts, definitions)
    if node.get("format") == "decimal" and node.get("type") == "string":
        del node["format"]  # msgspec's own, which no validator has
    if "enum" in node:
        _finish_choices(node, parts.choices)
    if "anyOf" in node:
        _flatten_any_of(node)
    for kind, hints in parts.classes.items():
        if node.get("title") == kind.__name__ and "properties" in node:
            _add_formats(node["properties"], hints)
            if "description" in node:
                node["description"] = inspect.cleandoc(node["description"])
    discriminator: Any = node.get("discriminator")
    if is_object(discriminator) and "propertyName" in discriminator:
        # Without its mapping of tags to definitions: a listed schema may have no definitions.
        node["discriminator"] = {"propertyName": discriminator["propertyName"]}
        _require(node, discriminator["propertyName"], definitions)


def _require(node: Schema, tag: str, definitions: Mapping[str, Any]) -> None:
    """Require a tag, which may have a default, in the objects of a schema, in place."""
    node = definitions.get(node.get("$ref", "").rpartition("/")[2], node)
    branches: Sequence[Schema] = node.get("oneOf") or node.get("anyOf") or ()
    for each in branches:
        _require(each, tag, definitions)
    required: Sequence[str] = node.get("required", ())
    if tag in node.get("properties", {}) and tag not in required:
        node["required"] = [tag, *required]


def _finish_choices(node: Schema, orders: Sequence[Sequence[Any]]) -> None:
    values = node["enum"]
    for order in orders:
        if len(order) == len(values) and all(value in order for value in values):
            node["enum"] = list(order)
            break
    kinds = {"string" if isinstance(each, str) else type(each).__name__ for each in values}
    if kinds in ({"string"}, {"int"}):
        node.setdefault("type", "string" if kinds == {"string"} else "integer")


def _flatten_any_of(node: Schema) -> None:
    """Replace members of `anyOf` that consist of another `anyOf` by its members."""
    members: list[Any] = []
    for each in node["anyOf"]:
        inner: Sequence[Any] = (each,)
        if is_object(each) and "anyOf" in each and _MEMBER_OF_ANY_OF.issuperset(each):
            inner = each["anyOf"]
            if "description" in each:
                node.setdefault("description", each["description"])
        members += [member for member in inner if member not in members]
    for member in members:
        if _is_schema(member) and member.get("description") == node.get("description"):
            member.pop("description", None)
    node["anyOf"] = members


def _add_formats(properties: Schema, hints: Mapping[str, Any]) -> None:
    for name, hint in hints.items():
        members = typing.get_args(hint) if typing.get_origin(hint) is not Annotated else ()
        for kind in (hint, *members):
            if kind in FORMATS and name in properties:
                options = properties[name].get("anyOf", [properties[name]])
                for option in options:
                    if option.get("type") == "string":
                        option.setdefault("format", FORMATS[kind])


def _is_schema(value: object) -> typing.TypeGuard[Schema]:
    return isinstance(value, dict)


def _mentions(value: object, reference: str) -> bool:
    if is_object(value):
        return value.get("$ref") == reference or any(
            _mentions(inner, reference) for inner in value.values()
        )
    return is_many(value) and any(_mentions(inner, reference) for inner in value)
