"""Declarations in, a JSON Schema document out, as the specification's own tools write it.

`schema.json` is written from `schema.ts` by typescript-json-schema, with integers for numbers and
without strict null checks. Its conventions are kept, so that a schema has one structure whichever
file it comes from:

- an interface has all members of those it extends, and the index signature of its own body only;
- a reference to an interface, or to an alias of a union, an intersection or an object, is a `$ref`;
  an alias of anything else stands for what it names;
- in a union the schemas come first, then the literals as one `enum`, then plain types as one
  `type`; an alias of a union is replaced by its members there;
- `number` is an integer unless a tag says otherwise, in the specification's own files. In others it
  is an integer where the specification has one under the same name, or where a tag says so.

Information that this tool loses is kept by `Fidelity.TYPESCRIPT`. `Fidelity.PUBLISHED` loses it
too, so that a schema can be recognised by its digest.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Any

from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node
from mcpgen.schema.structure import escape
from mcpgen.schema.typescript.scope import Scope
from mcpgen.schema.typescript.syntax import (
    Alias,
    Array,
    Comment,
    ConstantType,
    Declaration,
    Formatted,
    Index,
    Indexed,
    Intersection,
    KeyOf,
    Keyword,
    Literal,
    Member,
    Module,
    Object,
    Reference,
    Template,
    Tuple,
    Type,
    Union,
)

MAX_LEVELS = 30
"""Limit of the nesting of objects, arrays and unions. Official schemas have 6 levels."""


class Fidelity(Enum):
    """The text that a document follows where TypeScript and published JSON disagree.

    `TYPESCRIPT`: an arbitrary scalar (string, number and boolean together) has numbers that need
    not be whole, null is a member of a union, a map has the type of its values.
    `PUBLISHED`: the same places as typescript-json-schema writes them.
    """

    TYPESCRIPT = "typescript"
    PUBLISHED = "published"


_DIALECTS = {
    "$defs": "https://json-schema.org/draft/2020-12/schema",
    "definitions": "http://json-schema.org/draft-07/schema#",
}


def document(
    module: Module, container: str, fidelity: Fidelity, whole: Collection[str] | None = None
) -> Node:
    """The JSON Schema document of a module.

    Args:
        module: The declarations.
        container: `$defs` for 2020-12, `definitions` for draft-07.
        fidelity: The text to follow where the two disagree.
        whole: Names of declarations, of members, and of members within a declaration
            (`Name.member`) whose numbers are integers; `None` for all.

    Raises:
        TypeScriptError: A type has no JSON Schema, or names something that is not declared; or a
            default is no value of its type.
    """
    return _Writer(module, container, fidelity, whole).document()


class _Writer:
    def __init__(
        self,
        module: Module,
        container: str,
        fidelity: Fidelity,
        whole: Collection[str] | None,
    ) -> None:
        self._module = module
        self._container = container
        self._published = fidelity is Fidelity.PUBLISHED
        self._scope = Scope(module, nulls=not self._published)
        self._referenced: dict[str, None] = {}
        self._levels = 0
        self._whole = whole
        self._owner = self._name = ""
        self._defaults: list[tuple[Member, Node]] = []

    def document(self) -> Node:
        definitions: dict[str, Node] = {}
        for name in self._module.types:
            pending = [name]
            while pending:
                each = pending.pop()
                if each not in definitions:
                    before = len(self._referenced)
                    definitions[each] = self._definition(self._module.types[each])
                    pending += list(self._referenced)[before:]
        whole = {"$schema": _DIALECTS[self._container], self._container: definitions}
        self._check_defaults(definitions)
        ordered: Node = json.loads(json.dumps(whole, sort_keys=True))
        return ordered

    def _check_defaults(self, definitions: Node) -> None:
        if not self._defaults:
            return  # most schemas have none, and the import takes long
        from jsonschema import Draft7Validator, Draft202012Validator

        validator: Any = Draft202012Validator if self._container == "$defs" else Draft7Validator
        for member, schema in self._defaults:
            value = schema["default"]
            if not validator({**schema, self._container: definitions}).is_valid(value):
                expected = f"a default of {member.name} that is a value of its type"
                raise self._module.error(member.at, expected, format_value(value))

    def _definition(self, declaration: Declaration) -> Node:
        self._owner = self._name = declaration.name
        if isinstance(declaration, Alias):
            schema = self._alias(declaration)
        else:
            members = self._scope.declared_members(declaration).values()
            schema = self._object(members, declaration.body.index, (declaration.name,))
        return _annotate(schema, declaration.comment)

    def _alias(self, declaration: Alias) -> Node:
        """The schema of an alias; a named type is copied unless a `$ref` to it came before."""
        plain, name = self._scope.resolve(declaration.type)
        if not name or not _is_named(plain) or name in self._referenced:
            return self._schema(declaration.type, (declaration.name,))
        copied = self._definition(self._module.types[name])
        return self._ref(name) if name in self._referenced else copied

    def _schema(self, type_: Type, trail: tuple[str, ...]) -> Node:
        """The schema of a type; `trail` names the aliases that are being expanded."""
        self._scope.count(type_.at)
        if self._levels >= MAX_LEVELS:
            expected = f"at most {MAX_LEVELS} levels of objects, arrays and unions"
            raise self._module.error(type_.at, expected, "more")
        self._levels += 1
        schema = self._write(type_, trail)
        self._levels -= 1
        return schema

    def _write(self, type_: Type, trail: tuple[str, ...]) -> Node:
        match type_:
            case Keyword():
                return self._keyword(type_)
            case Literal(value=value):
                return {"type": "null"} if value is None else self._values([value])
            case Formatted(format=name):
                return {"format": name, "type": "string"}
            case Template():
                return {"pattern": self._scope.pattern(type_), "type": "string"}
            case Array(item=item):
                return {"items": self._schema(item, trail), "type": "array"}
            case Tuple():
                return self._tuple(type_, trail)
            case Union() | KeyOf():
                return self._union(type_, trail)
            case Intersection(members=members):
                ordered = sorted(members, key=lambda member: isinstance(member, Keyword))
                return {"allOf": [self._schema(member, trail) for member in ordered]}
            case Object(members=members, index=index):
                if not members and index is None:
                    return {"properties": {}, "type": "object"}
                return self._object(members, index, trail)
            case Reference() | ConstantType() | Indexed():
                return self._reference(type_, trail)

    def _keyword(self, type_: Keyword) -> Node:
        match type_.name:
            case "any" | "unknown":
                return {}
            case "number":
                names = {self._name, f"{self._owner}.{self._name}"}
                is_whole = self._whole is None or not names.isdisjoint(self._whole)
                return {"type": "integer" if is_whole else "number"}
            case "object":
                return {"additionalProperties": True, "properties": {}, "type": "object"}
            case "boolean" | "null" | "string":
                return {"type": type_.name}
            case _:
                raise self._module.error(type_.at, "a type that JSON has", type_.name)

    def _tuple(self, type_: Tuple, trail: tuple[str, ...]) -> Node:
        items = [self._schema(item, trail) for item in type_.items]
        first, then = "prefixItems", "items"
        if self._container == "definitions" and items:
            first, then = "items", "additionalItems"
        schema: Node = {first: items} if items else {}
        if type_.rest is None:
            schema["maxItems"] = len(items)
        else:
            schema[then] = self._schema(type_.rest, trail)
        return {**schema, "minItems": type_.required, "type": "array"}

    def _reference(self, type_: Reference | ConstantType | Indexed, trail: tuple[str, ...]) -> Node:
        plain, name = self._scope.resolve(type_)
        if name and _is_named(plain):
            return self._ref(name)
        if isinstance(plain, Reference):
            return self._mapped_type(plain, trail)
        if name in trail:
            return self._ref(name)
        return self._schema(plain, (*trail, name) if name else trail)

    def _ref(self, name: str) -> Node:
        self._referenced.setdefault(name)
        return {"$ref": f"#/{self._container}/{escape(name)}"}

    def _mapped_type(self, type_: Reference, trail: tuple[str, ...]) -> Node:
        shape = self._scope.mapped_type(type_)
        loses_values = type_.name == "Record" and (self._published or _is_anything(shape.index))
        return self._object(shape.members, None if loses_values else shape.index, trail)

    # Unions

    def _union(self, type_: Type, trail: tuple[str, ...]) -> Node:
        schemas: list[Node] = []
        values: list[Json] = []
        plain: list[str] = []
        for each in self._scope.alternatives(type_):
            match each:
                case Literal(value=value):
                    values.append(value)
                case Keyword(name="boolean"):
                    values += [False, True]
                case _:
                    schema = self._schema(each, trail)
                    if schema.keys() == {"type"}:
                        plain.append(schema["type"])
                    else:
                        schemas.append(schema)
        if not (schemas or values or plain):
            raise self._module.error(type_.at, "a union of types that JSON has", "none")
        if len(values) == 2 and all(isinstance(value, bool) for value in values):
            plain.append("boolean")
        elif values:
            schemas.append(self._values(values))
        if plain:
            schemas.append({"type": self._scalars(plain)})
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _scalars(self, names: list[str]) -> Json:
        """The value of `type` for plain types, null last."""
        if not self._published and {"string", "integer", "boolean"} <= set(names):
            names = ["number" if name == "integer" else name for name in names]
        names = sorted(names, key=lambda name: name == "null")
        return names if len(names) > 1 else names[0]

    def _values(self, values: list[Json]) -> Node:
        kinds = {_type_of(value) for value in values}
        type_: Node = {"type": kinds.pop()} if len(kinds) == 1 else {}
        if len(values) > 1:
            named = {"type": "number"} if type_ == {"type": "integer"} else type_
            return {"enum": sorted(values, key=_javascript_text), **named}
        if self._published and type_ == {"type": "number"}:
            type_ = {"type": "integer"}
        return {"const": values[0], **type_}

    # Objects

    def _object(
        self, members: Iterable[Member], index: Index | None, trail: tuple[str, ...]
    ) -> Node:
        present = [member for member in members if not self._is_left_out(member)]
        schema: Node = {}
        if index is not None:
            closed = isinstance(index.type, Keyword) and index.type.name == "never"
            schema["additionalProperties"] = False if closed else self._schema(index.type, trail)
        if present:
            schema["properties"] = {each.name: self._property(each, trail) for each in present}
        required = sorted(member.name for member in present if not member.optional)
        if required:
            schema["required"] = required
        return {**schema, "type": "object"}

    def _property(self, member: Member, trail: tuple[str, ...]) -> Node:
        if "type" in member.comment.keywords:
            self._scope.count(member.at)
            schema = _annotate({}, member.comment)
        else:
            outer, self._name = self._name, member.name
            schema = _annotate(self._schema(member.type, trail), member.comment)
            self._name = outer
        if "default" in schema:
            self._defaults.append((member, schema))
        return schema

    def _is_left_out(self, member: Member) -> bool:
        """Whether a member is always absent, or is marked as no part of the schema."""
        name = member.type.name if isinstance(member.type, Keyword) else ""
        if name == "never" and not (member.optional or member.comment.ignored):
            expected = (
                f"a type with values for the required {member.name}, or {member.name}?: never"
            )
            raise self._module.error(member.at, expected, "never")
        return name in ("never", "undefined") or member.comment.ignored


def _is_named(type_: Type) -> bool:
    """Whether a named type is written as a reference where its name is used."""
    return isinstance(type_, Object | Intersection | Union | Reference)


def _is_anything(index: Index | None) -> bool:
    return index is None or (
        isinstance(index.type, Keyword) and index.type.name in ("any", "unknown")
    )


def _annotate(schema: Node, comment: Comment) -> Node:
    text: Node = {"description": comment.text} if comment.text else {}
    annotated: Node = {**schema, **comment.keywords, **text}
    return _with_null(annotated) if comment.nullable else annotated


def _with_null(schema: Node) -> Node:
    if schema.keys() <= {"description"}:
        return schema  # anything, null too
    if schema.keys() <= {"type", "description"}:
        type_ = schema["type"]
        names = [type_] if isinstance(type_, str) else list(type_)
        return {**schema, "type": names if "null" in names else [*names, "null"]}
    alternatives: list[Json] | None = schema.get("anyOf")
    if alternatives is None:
        return {"anyOf": [schema, {"type": "null"}]}
    null: Node = {"type": "null"}
    return schema if null in alternatives else {**schema, "anyOf": [*alternatives, null]}


def _type_of(value: Json) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return "string"


def _javascript_text(value: Json) -> str:
    match value:
        case bool():
            return str(value).lower()
        case _:
            return str(value)
