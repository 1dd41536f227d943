"""Types of parameters and return values: conversion from and to JSON data, and JSON Schemas.

msgspec converts the types that it supports. Three kinds of type need more:

- A type with a part of pydantic 2 (a model, a type, a `Field`, a constraint of `annotated_types`)
  is converted by pydantic as a whole, since only pydantic implements all its rules. pydantic is not
  imported here: the type exists only if the user's program has imported pydantic.
- A union of several dataclasses has no tag. The members are tried in the order of their fit.
- A path is a string in JSON.

For msgspec, a class created here replaces each of these types; msgspec's hooks call the class.
Constraints of `annotated_types` without pydantic become constraints of msgspec. A constraint that
cannot be checked is a `TypeError` at registration.

In schemas the definitions of all parts move to the root. Choices get their type and the order of
their source, times get their format, and nested `anyOf` and repeated descriptions are removed.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, time
from functools import cache, lru_cache, partial
from typing import Annotated, Any, Literal, TypeAlias, Union

import msgspec

from .._wire import UNWRITABLE, is_many, is_object, to_builtins
from ..foreign_text import safe_repr

Use: TypeAlias = Literal["validation", "serialization"]
"""The direction that a JSON Schema describes: values that are decoded or encoded."""

_SHOWN_ERRORS = 5
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")
Schema: TypeAlias = dict[str, Any]

REFERENCE = "#/$defs/{name}"
"""The reference to a definition, as a template for msgspec."""

FORMATS: Mapping[Any, str] = {datetime: "date-time", time: "time"}
"""Formats that msgspec omits, since a time may lack a time zone."""

_NO_SUBSCHEMA = frozenset({"default", "const", "enum", "examples", "required"})
_SCHEMA_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_MEMBER_OF_ANY_OF = frozenset({"anyOf", "description"})


class ValueType(msgspec.Struct, frozen=True):
    """The type of one parameter or return value.

    Attributes:
        annotation: The type in the user's annotation.
        kind: The type for msgspec.
    """

    annotation: Any
    kind: Any

    def schema(self, use: Use = "validation") -> Schema:
        """The JSON Schema; its root is a reference only if the type is recursive.

        Raises:
            TypeError: The type has no JSON form, or is a union that can't be decoded.
        """
        return schema_of(self.kind, use, self.annotation)

    def read(self, value: Any, *, strict: bool = True) -> Any:
        """Convert decoded JSON to a value.

        Args:
            strict: Whether JSON types must match; otherwise strings become numbers and booleans.

        Raises:
            msgspec.ValidationError: The data does not fit.
        """
        return convert(value, self.kind, strict=strict)

    def write(self, value: Any) -> Any:
        """Convert a value to JSON data, as plain objects, validated against the type.

        Raises:
            ValueError: The value does not fit, or has no JSON form.
            TypeError: A part of the value has no JSON form.
        """
        if isinstance(self.kind, CustomType) and self.kind.write is not None:
            return self.kind.write(value)
        plain = to_json(value)
        convert(plain, self.kind, strict=True)
        return plain


def value_type(annotation: Any) -> ValueType:
    """The `ValueType` of an annotation.

    Raises:
        TypeError: A constraint of the annotation can't be checked.
    """
    parts = TypeParts()
    parts.add(annotation)
    if parts.pydantic and not parts.of_msgspec:
        return ValueType(annotation, _pydantic_class(annotation))
    if parts.pydantic_constraints:
        raise TypeError(
            f"{parts.pydantic_constraints[0]!r} can't be checked beside {parts.of_msgspec[0]!r}: "
            "expected constraints as msgspec.Meta in Structs and attrs classes"
        )
    return ValueType(annotation, _type_for_msgspec(annotation))


def convert(value: Any, kind: Any, *, strict: bool) -> Any:
    """Convert decoded JSON to a type for msgspec, with the hooks of this module.

    Raises:
        msgspec.ValidationError: The data does not fit.
    """
    return msgspec.convert(value, kind, strict=strict, str_keys=True, dec_hook=HOOKS[strict])


def to_json(value: Any) -> Any:
    """Convert a value of any type to JSON data, as plain objects.

    Raises:
        ValueError: The value has no JSON form.
        TypeError: A part of the value has no JSON form.
    """
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_encode)
    except TypeError:  # a Struct with extra members, or a value without a JSON form
        return to_builtins(value)


def schema_of(kind: Any, use: Use = "validation", annotation: Any = None) -> Schema:
    """The JSON Schema of a type for msgspec; the root is a reference if the type is recursive.

    Args:
        annotation: The type in the user's annotation, if it differs; it has the order of choices.

    Raises:
        TypeError: The type has no JSON form, or is a union that msgspec can't decode.
    """
    parts = TypeParts()
    parts.add(kind if annotation is None else annotation)
    return complete(_raw_schema(kind, use), parts)


class CustomType(type):
    """The metaclass of classes that replace types which msgspec does not support.

    Attributes:
        read: Converts JSON data to a value; the second argument is whether JSON types must match.
        write: Converts a value to JSON data, if msgspec does not.
        make_schema: Creates the JSON Schema.
    """

    read: Callable[[Any, bool], Any]
    write: Callable[[Any], Any] | None
    make_schema: Callable[[Use], Schema]

    def __instancecheck__(cls, value: object) -> bool:
        return True  # `read` has validated it


def _custom_class(
    annotation: Any,
    read: Callable[[Any, bool], Any],
    make_schema: Callable[[Use], Schema],
    write: Callable[[Any], Any] | None = None,
) -> Any:
    name = getattr(annotation, "__name__", None) or str(annotation)
    kind: Any = CustomType(name, (), {})
    kind.read, kind.write, kind.make_schema = read, write, make_schema
    return kind


def _decode(kind: Any, value: Any, *, strict: bool) -> Any:
    """Decode a value of a type that msgspec does not support."""
    if isinstance(kind, CustomType):
        return kind.read(value, strict)
    if _is_path(kind):
        if not isinstance(value, str) or "\0" in value:
            raise ValueError(f"expected a path, got {safe_repr(value)}")
        return kind(value)
    if is_pydantic_class(kind):
        return _pydantic_value(_class_adapter(kind), value, strict)
    raise TypeError(f"expected a type with a JSON form, got {kind!r}")


HOOKS = {strict: partial(_decode, strict=strict) for strict in (True, False)}


def _encode(value: Any) -> Any:
    """Encode a value that msgspec does not support as JSON data."""
    kind: Any = value.__class__
    if _is_path(kind):
        return str(value)
    if is_pydantic_class(kind):
        return _class_adapter(kind).dump_python(value, mode="json", by_alias=True)
    raise TypeError(f"expected a value with a JSON form, got {type(value).__name__}")


def _is_path(kind: type[Any]) -> bool:
    """Whether a class is a path of `pathlib`; does not import `pathlib`."""
    pure_path: type | None = getattr(sys.modules.get("pathlib"), "PurePath", None)
    return pure_path is not None and issubclass(kind, pure_path)


def custom_schema(kind: Any, *, use: Use) -> Schema:
    """The JSON Schema of a type that msgspec does not support.

    Raises:
        TypeError: The type has no JSON form.
    """
    if isinstance(kind, CustomType):
        return kind.make_schema(use)
    if _is_path(kind):
        return {"type": "string"}
    if is_pydantic_class(kind):
        return _pydantic_schema(_class_adapter(kind), use)
    raise TypeError(
        f"{kind!r} has no JSON form; Any, a dataclass, a TypedDict, and a class of pydantic, attrs "
        "or msgspec have one"
    )


def _pydantic_class(annotation: Any) -> Any:
    adapter = _adapter_of(annotation)
    return _custom_class(
        annotation,
        partial(_pydantic_value, adapter),
        partial(_pydantic_schema, adapter),
        lambda value: adapter.dump_python(
            adapter.validate_python(value), mode="json", by_alias=True
        ),
    )


def one_line(error: Exception) -> str:
    """The text of an error of a library, on one line."""
    return " ".join(str(error).split())


def _type_for_msgspec(annotation: Any) -> Any:
    """A type for msgspec: with msgspec's constraints, tagged unions and formats of times."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        notes = [each for note in arguments[1:] for each in as_msgspec(note)]
        kind = _type_for_msgspec(arguments[0])
        for note in notes:
            kind = Annotated[kind, note]
        return kind
    if origin in (Union, types.UnionType):
        return _union([_type_for_msgspec(each) for each in arguments], annotation)
    # Within a generic class of the user, msgspec itself resolves the type arguments.
    is_generic_class = hasattr(origin, "__orig_bases__")
    if arguments and origin not in (Literal, Callable) and not is_generic_class:
        read = tuple(_type_for_msgspec(each) for each in arguments)
        if read == arguments:
            return annotation
        copy_with: Any = getattr(annotation, "copy_with", None)
        return copy_with(read) if copy_with else origin[read]
    if annotation in FORMATS:
        return Annotated[
            annotation, msgspec.Meta(extra_json_schema={"format": FORMATS[annotation]})
        ]
    return annotation


def _union(members: Sequence[Any], annotation: Any) -> Any:
    """A union for msgspec; members without a tag are tried in the order of their fit."""
    union: Any = Union[tuple(members)]  # noqa: UP007 - the members are known at run time only
    try:
        msgspec.json.Decoder(union)
    except TypeError:
        objects = [each for each in members if has_fields(each)]
        rest = [each for each in members if not has_fields(each)]
        if len(objects) < 2:
            return union  # msgspec raises the error
        kind = _custom_class(
            annotation,
            partial(_best_member, objects),
            lambda use: {"anyOf": [_raw_schema(each, use) for each in objects]},
        )
        return Union[(kind, *rest)] if rest else kind
    return union


def _raw_schema(kind: Any, use: Use) -> Schema:
    """The schema of a type by msgspec, with its definitions in `$defs`."""
    try:
        (root,), definitions = msgspec.json.schema_components(
            [kind], ref_template=REFERENCE, schema_hook=partial(custom_schema, use=use)
        )
    except UnicodeEncodeError as error:  # half of a surrogate pair in a Literal
        raise TypeError(str(error)) from error
    return {**root, "$defs": {**root.get("$defs", {}), **definitions}}


def _best_member(kinds: Sequence[Any], value: Any, strict: bool) -> Any:
    """Convert a value to the member of a union that fits best.

    Members with fewer unknown names come first, then those with fewer missing names.
    """
    names: frozenset[str] = frozenset(value) if is_object(value) else frozenset()

    def misfit(kind: Any) -> tuple[int, int]:
        fields = _field_names(kind)
        return len(names - fields), len(fields - names)

    reasons: list[str] = []
    for kind in sorted(kinds, key=misfit):
        try:
            return convert(value, kind, strict=strict)
        except (msgspec.ValidationError, *UNWRITABLE) as error:
            reasons.append(f"{getattr(kind, '__name__', kind)}: {one_line(error)}")
    raise ValueError(f"expected one of {len(kinds)} types; {'; '.join(reasons)}")


@cache
def _field_names(kind: Any) -> frozenset[str]:
    parts = TypeParts()
    parts.add(kind)
    return frozenset(parts.classes[typing.get_origin(kind) or kind])


def _adapter_of(annotation: Any) -> Any:
    """pydantic's adapter of a type."""
    pydantic: Any = sys.modules["pydantic"]
    try:
        return pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUserError as error:
        raise TypeError(one_line(error)) from error


_class_adapter = lru_cache(maxsize=1024)(_adapter_of)
"""pydantic's adapter of a class, created once."""


def _pydantic_value(adapter: Any, value: Any, strict: bool) -> Any:
    """Convert decoded JSON to a value by pydantic."""
    pydantic: Any = sys.modules["pydantic"]
    try:
        if strict:  # as JSON, in which a date is a string
            return adapter.validate_json(msgspec.json.encode(value), strict=True)
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        details = error.errors()
        texts = [_pydantic_error(each) for each in details[:_SHOWN_ERRORS]]
        if len(details) > _SHOWN_ERRORS:
            texts.append(f"and {len(details) - _SHOWN_ERRORS} more")
        raise ValueError("; ".join(texts)) from error


def _pydantic_error(detail: Mapping[str, Any]) -> str:
    path = ".".join(map(str, detail["loc"]))
    text = detail["msg"][:1].lower() + detail["msg"][1:]
    if detail["type"] != "missing":
        text += f", got {safe_repr(detail['input'])}"
    return f"{path}: {text}" if path else text


def _pydantic_schema(adapter: Any, use: Use) -> Schema:
    """The JSON Schema of an adapter's type."""
    pydantic: Any = sys.modules["pydantic"]
    try:
        schema: Schema = adapter.json_schema(
            mode=use,
            ref_template="#/$defs/{model}",
            schema_generator=_schema_generator(pydantic.json_schema.GenerateJsonSchema),
        )
    except pydantic.errors.PydanticInvalidForJsonSchema as error:
        raise TypeError(one_line(error)) from error
    return schema


@cache
def _schema_generator(base: Any) -> Any:
    """pydantic's generator of JSON Schemas, without a title for each field."""
    return type("FieldsWithoutTitles", (base,), {"field_title_should_be_set": _never})


def _never(*_: object) -> bool:
    return False


def as_msgspec(note: Any) -> Iterator[Any]:
    """Convert a constraint of `annotated_types` to constraints of msgspec; keep any other note.

    Raises:
        TypeError: msgspec can't check the constraint.
    """
    if type(note).__module__.partition(".")[0] != "annotated_types":
        yield note
        return
    inner: Iterator[Any] = iter(note) if hasattr(note, "__iter__") else iter((note,))
    for each in inner:
        limits = {name: getattr(each, name) for name in _LIMITS if hasattr(each, name)}
        if not limits:
            raise TypeError(f"{each!r} can't be checked without pydantic")
        yield msgspec.Meta(**{name: limit for name, limit in limits.items() if limit is not None})


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
        elif has_fields(kind) or hasattr(kind, "_fields"):  # as a NamedTuple has
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
    package = str(getattr(note, "__module__", "")).partition(".")[0]
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
    fitting = (
        order
        for order in orders
        if len(order) == len(values) and all(map(order.__contains__, values))
    )
    node["enum"] = list(next(fitting, values))
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
