"""JSON Schemas of tools as Python types: a Struct for each object, a hint for anything else.

Objects with properties, arrays, scalars, enums, nullable values, unions and references within the
schema become types. Further restrictions (bounds, patterns) are left to validation against the
schema. Schemas without a type become `dict[str, Any]`, `list[Any]` or `Any`, with a note. Names and
texts of a schema reach code only as names of `mcpgen.names`, literals and docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpgen import names
from mcpgen.errors import safe_text
from mcpgen.json_types import is_array, is_object
from mcpgen.literals import Code, literal
from mcpgen.model.docstrings import docstring

MAX_CLASSES = 200
"""Limit of the classes of one schema; a schema that needs more gets no types."""

MAX_LEVELS = 50
"""Limit of the nesting of types, references included."""

_MAX_CODE = 1000
_MAX_SAMPLE = 400
_MAX_CHOICES = 100
_INDENT = 4


class NoTypesError(Exception):
    """A schema cannot become a Struct; the text is the reason."""


@dataclass(frozen=True)
class Hint:
    """The type of a value.

    Attributes:
        code: The annotation.
        family: The kind of JSON value: `string`, `number`, `boolean`, `null`, `array`, `object`, or
            `any`; several for a union.
        choices: The values of a `Literal`.
        sample: An expression for a sample value of the type, if there is a short one.
        wire: The sample value as JSON.
    """

    code: Code
    family: frozenset[str]
    choices: tuple[str | int, ...] = ()
    sample: Code | None = None
    wire: Any = None


@dataclass(frozen=True)
class StructField:
    """A field of a Struct, and a parameter of a call.

    Attributes:
        name: Its name in Python.
        type: Its annotation.
        value: The text after the annotation in the class: ` = ...`, or empty.
        default: The text after the annotation of a parameter, likewise.
        doc: Its docstring, if there is one.
    """

    name: str
    type: Code
    value: Code
    default: Code
    doc: Code | None


@dataclass(frozen=True)
class StructClass:
    """A class for objects of a schema."""

    name: str
    doc: Code
    fields: tuple[StructField, ...]


@dataclass
class Types:
    """The classes of one module.

    Attributes:
        taken: Names that are used in the module.
        classes: The classes; referenced classes come first.
    """

    taken: set[str]
    classes: list[StructClass] = field(default_factory=list[StructClass])

    def struct(
        self, schema: Any, name: str, doc: str, note: Callable[[str], None]
    ) -> tuple[StructClass, Hint]:
        """The class for a schema of objects.

        Args:
            schema: The schema.
            name: The name that the class should have.
            doc: The docstring of the class.
            note: Called with a note about each schema without a type.

        Raises:
            NoTypesError: The schema describes no object with named members. No class is added then.
        """
        classes, taken = len(self.classes), set(self.taken)
        try:
            hint = _Reader(self, schema, note).root(name, doc)
        except NoTypesError:
            del self.classes[classes:]
            self.taken = taken
            raise
        return next(each for each in self.classes if each.name == hint.code), hint

    def free_name(self, wish: str) -> str:
        """Reserve a class name that is not taken, and return it."""
        [name] = names.class_names([wish], self.taken).values()
        self.taken.add(name)
        return name


ANY = Hint(Code("Any"), frozenset({"any"}), sample=literal(None))
DICT = Hint(Code("dict[str, Any]"), frozenset({"object"}), sample=Code("{}"), wire={})
LIST = Hint(Code("list[Any]"), frozenset({"array"}), sample=Code("[]"), wire=[])
_SCALARS = {
    "string": Hint(Code("str"), frozenset({"string"}), sample=literal("text"), wire="text"),
    "integer": Hint(Code("int"), frozenset({"number"}), sample=literal(1), wire=1),
    "number": Hint(Code("float"), frozenset({"number"}), sample=literal(1.5), wire=1.5),
    "boolean": Hint(Code("bool"), frozenset({"boolean"}), sample=literal(True), wire=True),
    "null": Hint(Code("None"), frozenset({"null"}), sample=literal(None)),
}


class _Reader:
    """Reads one schema.

    Args:
        types: Receives the classes.
        document: The schema.
        note: Called with a note about each schema without a type.
    """

    def __init__(self, types: Types, document: Any, note: Callable[[str], None]) -> None:
        self._types = types
        self._document = document
        self._note = note
        self._count = 0
        self._references: dict[str, Hint] = {}
        self._open: set[str] = set()
        self._level = 0
        self._prefix = ""

    def root(self, name: str, doc: str) -> Hint:
        """The class of the schema itself.

        Raises:
            NoTypesError: The schema describes no object with named members.
        """
        schema, pointer = self._document, "#"
        visited: set[str] = set()
        while is_object(schema) and isinstance(schema.get("$ref"), str):
            pointer = schema["$ref"]
            if pointer in visited:
                raise NoTypesError("its references lead in a circle")
            visited.add(pointer)
            schema = self._target(pointer)
        if not is_object(schema):
            raise NoTypesError("it has no schema that is an object")
        if schema.get("type") != "object":
            raise NoTypesError('its schema does not say "type": "object"')
        properties = schema.get("properties", {})
        if not is_object(properties):
            raise NoTypesError("its properties are no object")
        if reason := _no_struct(schema):
            raise NoTypesError(f"its schema {reason}")
        self._prefix = name
        return self._class(schema, properties, name, pointer, doc)

    def _hint(self, schema: Any, name: str, pointer: str) -> Hint:
        self._level += 1
        try:
            if self._level > MAX_LEVELS:
                return self._fallback(ANY, pointer, "it is nested too deep")
            hint = self._any_hint(schema, name, pointer)
        finally:
            self._level -= 1
        if len(hint.code) > _MAX_CODE:
            return self._fallback(ANY, pointer, "its type is too long")
        return hint

    def _any_hint(self, schema: Any, name: str, pointer: str) -> Hint:
        if schema is True or schema == {}:
            return ANY
        if not is_object(schema):
            return self._fallback(ANY, pointer, "it has no schema that is an object")
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema["$ref"], pointer)
        if "const" in schema:
            return self._choices([schema["const"]], pointer)
        if is_array(schema.get("enum")):
            return self._choices(schema["enum"], pointer)
        kind = schema.get("type")
        options = next((schema[key] for key in ("anyOf", "oneOf", "allOf") if key in schema), None)
        if is_array(options) and options and not is_object(schema.get("properties")):
            if "allOf" in schema and len(options) > 1:
                return self._fallback(_widest([kind]), pointer, "it combines several schemas")
            return self._union([self._hint(option, name, pointer) for option in options], pointer)
        if is_array(kind):
            every = [self._hint({**schema, "type": each}, name, pointer) for each in kind]
            return self._union(every, pointer)
        return self._of_type(schema, kind, name, pointer)

    def _of_type(self, schema: dict[str, Any], kind: Any, name: str, pointer: str) -> Hint:
        if kind == "object" or (kind is None and is_object(schema.get("properties"))):
            return self._object(schema, name, pointer)
        if kind == "array":
            items = schema.get("items")
            if not is_object(items) or "prefixItems" in schema:
                return LIST
            inner = self._hint(items, f"{name}Item", f"{pointer}/items")
            return Hint(Code(f"list[{inner.code}]"), LIST.family, sample=LIST.sample, wire=[])
        if isinstance(kind, str) and kind in _SCALARS:
            return _SCALARS[kind]
        if kind is None:
            return ANY
        return self._fallback(ANY, pointer, "its type is none of JSON Schema")

    def _object(self, schema: dict[str, Any], name: str, pointer: str) -> Hint:
        properties = schema.get("properties")
        more = schema.get("additionalProperties")
        if not is_object(properties) or not properties:
            if is_object(more):
                inner = self._hint(more, f"{name}Value", f"{pointer}/additionalProperties")
                return Hint(Code(f"dict[str, {inner.code}]"), DICT.family, (), DICT.sample, {})
            return DICT
        if reason := _no_struct(schema):
            return self._fallback(DICT, pointer, f"it {reason}")
        return self._class(schema, properties, name, pointer, "")

    def _class(
        self,
        schema: dict[str, Any],
        properties: dict[str, Any],
        wish: str,
        pointer: str,
        doc: str,
    ) -> Hint:
        self._count += 1
        if self._count > MAX_CLASSES:
            raise NoTypesError(f"it needs more than {MAX_CLASSES} classes")
        name = self._types.free_name(wish)
        self._references[pointer] = Hint(Code(name), DICT.family)
        required = schema.get("required")
        required = set(map(str, required)) if is_array(required) else set[str]()
        fields: list[StructField] = []
        samples: dict[str, Hint] = {}
        for wire, python_name in field_names(properties).items():
            place = f"{pointer}/properties/{wire}"
            hint = self._hint(properties[wire], f"{name}{names.pascal(wire)}", place)
            fields.append(_field(wire, python_name, hint, properties[wire], wire in required))
            if wire in required:
                samples[wire] = hint
        text = doc or _text(schema.get("description")) or f"An object of {self._prefix}."
        self._types.classes.append(StructClass(name, docstring([text], _INDENT), tuple(fields)))
        own_hint = _with_sample(name, samples, field_names(properties))
        self._references[pointer] = own_hint
        return own_hint

    def _reference(self, target: str, pointer: str) -> Hint:
        if target in self._references:
            return self._references[target]
        if target in self._open:
            return self._fallback(ANY, pointer, "it refers to itself")
        try:
            schema = self._target(target)
        except NoTypesError as error:
            return self._fallback(ANY, pointer, str(error))
        self._open.add(target)
        name = f"{self._prefix}{names.pascal(target.rpartition('/')[2])}"
        hint = self._hint(schema, name, target)
        return self._references.setdefault(target, hint)

    def _target(self, target: str) -> Any:
        """The schema that a reference within the schema leads to.

        Raises:
            NoTypesError: The reference leads elsewhere.
        """
        if target != "#" and not target.startswith("#/"):
            raise NoTypesError("it refers to another document")
        node = self._document
        for token in target.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if not is_object(node) or key not in node:
                raise NoTypesError("it refers to what is not there")
            node = node[key]
        return node

    def _choices(self, values: Sequence[Any], pointer: str) -> Hint:
        texts = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
        numbers = tuple(dict.fromkeys(value for value in values if type(value) is int))
        hints: list[Hint] = []
        for family, choices in (("string", texts), ("number", numbers)):
            if choices:
                hints.append(_literal(family, choices))
        if any(isinstance(value, float) for value in values):
            hints.append(_SCALARS["number"])
        if any(isinstance(value, bool) for value in values):
            hints.append(_SCALARS["boolean"])
        if any(value is None for value in values):
            hints.append(_SCALARS["null"])
        if not hints or any(is_object(value) or is_array(value) for value in values):
            return self._fallback(ANY, pointer, "its choices are no scalars")
        return self._union(hints, pointer)

    def _union(self, hints: Sequence[Hint], pointer: str) -> Hint:
        """Merge types into a union with one member per kind of JSON value."""
        if not hints or any("any" in hint.family for hint in hints):
            return ANY
        members: dict[str, list[Hint]] = {}
        for hint in hints:
            if len(hint.family) > 1:
                return self._fallback(ANY, pointer, "it has unions within a union")
            [family] = hint.family
            members.setdefault(family, []).append(hint)
        merged = [self._merge(family, members[family], pointer) for family in members]
        merged.sort(key=lambda hint: "null" in hint.family)
        if len(merged) == 1:
            return merged[0]
        first = merged[0]
        code = Code(" | ".join(hint.code for hint in merged))
        families = frozenset[str]().union(*(hint.family for hint in merged))
        return Hint(code, families, (), first.sample, first.wire)

    def _merge(self, family: str, hints: Sequence[Hint], pointer: str) -> Hint:
        if len({hint.code for hint in hints}) == 1:
            return hints[0]
        if all(hint.choices for hint in hints):
            return _literal(family, tuple(dict.fromkeys(c for hint in hints for c in hint.choices)))
        if family == "number":
            whole = all(hint.choices or hint.code == "int" for hint in hints)
            return _SCALARS["integer" if whole else "number"]
        if family in ("array", "object"):
            widest = _widest([family])
            return self._fallback(widest, pointer, f"it has several kinds of {family}")
        return _SCALARS[family]

    def _fallback(self, hint: Hint, pointer: str, reason: str) -> Hint:
        self._note(f"{safe_text(pointer)} is {hint.code}: {reason}")
        return hint


_NO_FIELD = re.compile(r'["\\\x00-\x1f]')
"""Characters that msgspec refuses in the names of members on the wire."""


def _no_struct(schema: dict[str, Any]) -> str:
    """The reason why objects cannot be a Struct; empty if they can."""
    for wire in schema.get("properties") or ():
        if _NO_FIELD.search(wire):
            return f"has a member that no field can be named by: {safe_text(wire)!r}"
    return _open_members(schema)


def _open_members(schema: dict[str, Any]) -> str:
    """The reason why a Struct would lose members of an object; empty if it would not."""
    more = schema.get("additionalProperties")
    if more is True or is_object(more):
        return (
            "allows members of any name"
            if schema.get("properties") or more is True
            else ("has members of any name")
        )
    if "patternProperties" in schema:
        return "has members by patterns of names"
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema[key] if is_array(schema.get(key)) else ():
            if is_object(option) and ("properties" in option or "$ref" in option):
                return f"has members in {key}"
    return ""


def _widest(kinds: Iterable[Any]) -> Hint:
    [kind] = kinds
    return {"object": DICT, "array": LIST}.get(kind, ANY)


def _literal(family: str, choices: tuple[str | int, ...]) -> Hint:
    """A `Literal`; the scalar type if the choices are too many or too long."""
    values = ", ".join(literal(choice) for choice in choices)
    code = Code(f"Literal[{values}]")
    fits = all(isinstance(choice, str) or -(2**63) <= choice < 2**63 for choice in choices)
    if len(choices) > _MAX_CHOICES or len(code) > _MAX_CODE or not fits:
        return _SCALARS["string" if family == "string" else "integer"]
    return Hint(code, frozenset({family}), choices, literal(choices[0]), choices[0])


def field_names(wires: Iterable[str]) -> dict[str, str]:
    """Unique names of fields and parameters, by wire name."""
    reserved = {"self": "self_", "ctx": "ctx_"}
    plain = names.members(wires)
    taken = set(plain.values())
    fields: dict[str, str] = {}
    for wire, name in plain.items():
        other = reserved.get(name, name)
        fields[wire] = name if other == name else names.free_name(other, taken)
    return fields


def _field(wire: str, name: str, hint: Hint, schema: Any, required: bool) -> StructField:
    default: Code | None = None
    kind = hint.code
    if not required:
        default = _default(schema, hint)
        if default is None:
            absent = "UNSET" if "null" in hint.family else "None"
            if "any" in hint.family or absent == "UNSET":
                kind, default = Code(f"{hint.code} | UnsetType"), Code("UNSET")
            else:
                kind, default = Code(f"{hint.code} | None"), Code("None")
    arguments = [] if name == wire else [f"name={literal(wire)}"]
    arguments += [] if default is None or not arguments else [f"default={default}"]
    parameter = Code("" if default is None else f" = {default}")
    value = Code(f" = field({', '.join(arguments)})") if arguments else parameter
    text = _text(schema.get("description") if is_object(schema) else None)
    doc = docstring([text], _INDENT) if text else None
    return StructField(name, kind, value, parameter, doc)


def _default(schema: Any, hint: Hint) -> Code | None:
    """The default of a schema as a literal, if it is a short scalar of the type."""
    if not is_object(schema) or "default" not in schema:
        return None
    value = schema["default"]
    if hint.choices:
        return literal(value) if value in hint.choices and type(value) is not bool else None
    match hint.code, value:
        case "bool", bool():
            return literal(value)
        case "str", str() if len(value) <= _MAX_SAMPLE:
            return literal(value)
        case "int", int() if type(value) is int:
            return literal(value)
        case "float", int() | float() if type(value) is not bool:
            return literal(float(value))
        case _:
            return None


def _with_sample(name: str, required: dict[str, Hint], python_names: dict[str, str]) -> Hint:
    """The type of a class, with a sample value of its required fields."""
    hint = Hint(Code(name), DICT.family)
    if any(each.sample is None for each in required.values()):
        return hint
    pairs = [f"{python_names[wire]}={each.sample}" for wire, each in required.items()]
    sample = Code(f"{name}({', '.join(pairs)})")
    if len(sample) > _MAX_SAMPLE:
        return hint
    wire = {key: each.wire for key, each in required.items()}
    return Hint(hint.code, hint.family, (), sample, wire)


def _text(value: object) -> str:
    """A description, cut to a length that suits a docstring; empty for other values."""
    limit = 2000
    text = value.strip() if isinstance(value, str) else ""
    return text if len(text) <= limit else f"{text[:limit]}..."
