"""Reads types of Zod schemas in the declaration files of SDKs as plain types.

`declare const ToolSchema: z.ZodObject<{ name: z.ZodString }, z.core.$loose>` declares a `Tool` with
a member `name` and further members of any kind. Such files expand every type, so a type that equals
a declared one becomes a reference to the first declaration of that shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from mcpgen.errors import TypeScriptError
from mcpgen.schema.typescript.syntax import (
    Alias,
    Array,
    ConstantType,
    Declaration,
    Formatted,
    Index,
    Interface,
    Intersection,
    Keyword,
    Literal,
    Member,
    Object,
    Position,
    Reference,
    Tuple,
    Type,
    Union,
)

Failure: TypeAlias = Callable[[Position, str, object], TypeScriptError]
"""Makes the error for a position from the expected and the actual content."""

_KEYWORDS = {
    "ZodAny": "any",
    "ZodBoolean": "boolean",
    "ZodCoercedBoolean": "boolean",
    "ZodCoercedNumber": "number",
    "ZodCoercedString": "string",
    "ZodNever": "never",
    "ZodNull": "null",
    "ZodNumber": "number",
    "ZodString": "string",
    "ZodUndefined": "undefined",
    "ZodUnknown": "unknown",
}
_FORMATS = {"ZodISODate": "date", "ZodISODateTime": "date-time", "ZodURL": "uri"}
_OPTIONAL = frozenset({"ZodDefault", "ZodOptional", "ZodPrefault"})
_TRANSPARENT = frozenset({"ZodCatch", "ZodNonOptional", "ZodReadonly", "ZodType"}) | _OPTIONAL


def declared_name(constant: str) -> str:
    """The name of the type that a constant with a Zod schema declares."""
    return constant.removesuffix("Schema") or constant


def plain_type(type_: Type, prefix: str, failure: Failure) -> Type:
    """The plain type of messages on the wire that a type of Zod describes.

    Args:
        type_: The type, nested at most as deep as the parser allows.
        prefix: The name that the file imports Zod by.
        failure: Makes the error for a type that cannot be read.

    Raises:
        TypeScriptError: Zod has no such type, or it describes no JSON.
    """
    return _Reader(prefix, failure).plain(type_)


def plain_alias(type_: Type, prefix: str) -> Type:
    """The plain type of an alias in a file with Zod: `z.infer<typeof ToolSchema>` is `Tool`."""
    match type_:
        case Reference(name=name, arguments=(ConstantType(name=constant),)) if name in (
            f"{prefix}.infer",
            f"{prefix}.input",
            f"{prefix}.output",
        ):
            return Reference(declared_name(constant), (), type_.at)
        case _:
            return type_


class _Reader:
    def __init__(self, prefix: str, failure: Failure) -> None:
        self._prefix = f"{prefix}."
        self._failure = failure

    def plain(self, type_: Type) -> Type:
        if not isinstance(type_, Reference) or not type_.name.startswith(self._prefix):
            return type_
        at = type_.at
        name = type_.name.removeprefix(self._prefix)
        if name in _KEYWORDS:
            return Keyword(_KEYWORDS[name], at)
        if name in _FORMATS:
            return Formatted(_FORMATS[name], at)
        match name, type_.arguments:
            case _, (inner, *_) if name in _TRANSPARENT:
                return self.plain(inner)
            case "ZodLiteral", (Literal() | Union() as value,):
                return value
            case "ZodEnum", (Object(members=members),) if members:
                return Union(tuple(member.type for member in members), at)
            case "ZodArray", (item,):
                return Array(self.plain(item), at)
            case "ZodNullable", (inner,):
                return Union((self.plain(inner), Keyword("null", at)), at)
            case "ZodUnion" | "ZodDiscriminatedUnion", (Tuple(items=items), *_) if items:
                return Union(tuple(map(self.plain, items)), at)
            case "ZodIntersection", (left, right):
                return Intersection((self.plain(left), self.plain(right)), at)
            case "ZodRecord", (_, value):
                return Object((), Index(self.plain(value), value.at), at)
            case "ZodPipe", (before, after):
                return self.plain(after if self._is_transform(before) else before)
            case "ZodObject", (Object() as shape, *config):
                return self._object(shape, config)
            case _:
                raise self._failure(at, "a type of Zod that describes JSON", type_.name)

    def _is_transform(self, type_: Type) -> bool:
        return isinstance(type_, Reference) and type_.name == f"{self._prefix}ZodTransform"

    def _object(self, shape: Object, config: list[Type]) -> Object:
        members = tuple(
            replace(member, type=self.plain(member.type), optional=self._is_optional(member))
            for member in shape.members
        )
        return replace(shape, members=members, index=self._index(config))

    def _is_optional(self, member: Member) -> bool:
        """Whether a message may lack a member; one with a default may."""
        type_ = member.type
        while isinstance(type_, Reference):
            name = type_.name.removeprefix(self._prefix)
            if name in _OPTIONAL:
                return True
            if name not in ("ZodCatch", "ZodReadonly"):
                return False
            type_ = type_.arguments[0]
        return False

    def _index(self, config: list[Type]) -> Index | None:
        if not config:
            return None
        kind = config[0]
        name = kind.name.removeprefix(self._prefix) if isinstance(kind, Reference) else ""
        match name, kind:
            case "core.$strip" | "core.$strict", _:
                return None
            case "core.$loose", _:
                return Index(Keyword("unknown", kind.at), kind.at)
            case "core.$catchall", Reference(arguments=(inner,)):
                return Index(self.plain(inner), kind.at)
            case _:
                expected = "core.$strip, core.$strict, core.$loose or core.$catchall of Zod"
                raise self._failure(kind.at, expected, name)


def with_references(types: Mapping[str, Declaration]) -> Mapping[str, Declaration]:
    """Replace types that equal a declared one by references to it."""
    names: dict[Type, str] = {}
    for name, declaration in types.items():
        if isinstance(declaration, Alias) and _has_shape(declaration.type):
            names.setdefault(declaration.type, name)
    return {
        name: (
            declaration
            if isinstance(declaration, Interface)
            else replace(declaration, type=_replace_known_parts(declaration.type, names))
        )
        for name, declaration in types.items()
    }


def _has_shape(type_: Type) -> bool:
    """Whether a type is distinctive enough that equal shapes mean the same type."""
    match type_:
        case Object(members=members):
            return bool(members)
        case Union() | Intersection():
            return True
        case _:
            return False


def _replace_known(type_: Type, names: Mapping[Type, str]) -> Type:
    name = names.get(type_) if _has_shape(type_) else None
    return _replace_known_parts(type_, names) if name is None else Reference(name, (), type_.at)


def _replace_known_parts(type_: Type, names: Mapping[Type, str]) -> Type:
    match type_:
        case Object(members=members, index=index):
            parts = (replace(each, type=_replace_known(each.type, names)) for each in members)
            below = index and replace(index, type=_replace_known(index.type, names))
            return replace(type_, members=tuple(parts), index=below)
        case Array(item=item):
            return replace(type_, item=_replace_known(item, names))
        case Union(members=members) | Intersection(members=members):
            return replace(type_, members=tuple(_replace_known(each, names) for each in members))
        case _:
            return type_
