"""The meaning of names and type operators: members of objects, alternatives of unions."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mcpgen.schema.typescript.syntax import (
    NO_COMMENT,
    Alias,
    Array,
    ConstantType,
    Declaration,
    Formatted,
    Index,
    Indexed,
    Interface,
    Intersection,
    KeyOf,
    Keyword,
    Literal,
    Member,
    Module,
    Object,
    Position,
    Reference,
    Template,
    Tuple,
    Type,
    Union,
)

MAX_LEVELS = 100
"""Limit of the types and declarations that depend on one another in a row."""

MAX_PARTS = 50_000
"""Limit of members and types in one document, inherited ones too. Official: some 2,000."""

_MAPPED = {"Omit": 2, "Partial": 1, "Pick": 2, "Record": 2, "Required": 1}
"""Operators that return an object, with the number of their arguments."""

_TRANSPARENT = {"Array": 1, "Date": 0, "NonNullable": 1, "Readonly": 1, "ReadonlyArray": 1}

_INTRINSIC = ("any", "unknown", "null", "string", "number", "boolean", "never", "object")
"""Types that a compiler creates before it reads a file, in its order."""

_LITERALS: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
}


class Scope:
    """The declarations of a module, which give names and types their meaning.

    Args:
        module: The declarations.
        nulls: Whether null is an alternative of a union, as with strict null checks.
    """

    def __init__(self, module: Module, *, nulls: bool) -> None:
        self.module = module
        self._nulls = nulls
        self._parts = 0
        self._levels = 0
        self._active: set[str] = set()
        self._members: dict[str, Mapping[str, Member]] = {}
        self._ranks = _ranks(module)

    def count(self, at: Position, parts: int = 1) -> None:
        """Count expanded members and types, so that no small text becomes a large document.

        Raises:
            TypeScriptError: There are more than `MAX_PARTS`.
        """
        self._parts += parts
        if self._parts > MAX_PARTS:
            expected = f"a schema of at most {MAX_PARTS} members and types, after inheritance"
            raise self.module.error(at, expected, self._parts)

    @contextmanager
    def _inside(self, type_: Type | Declaration) -> Generator[None]:
        """Enter a type or a declaration, which must not lead back to itself."""
        name = type_.name if isinstance(type_, Interface | Alias) else ""
        if name in self._active:
            expected = "a declaration that does not depend on itself"
            raise self.module.error(type_.at, expected, name)
        if self._levels >= MAX_LEVELS:
            expected = f"types and declarations that depend on at most {MAX_LEVELS} in a row"
            raise self.module.error(type_.at, expected, "more")
        self._levels += 1
        self._active.update({name} - {""})
        yield
        self._active.discard(name)
        self._levels -= 1

    # Names

    def resolve(self, type_: Type) -> tuple[Type, str]:
        """The resolved type, and the last name that led to it; empty if there is none.

        Aliases are followed to an interface, which stays a reference, or to an unnamed type. A
        union with one alternative is replaced by the alternative.

        Raises:
            TypeScriptError: A name is not declared, or stands for itself.
        """
        with self._inside(type_):
            match type_:
                case Union():
                    alternatives = self.alternatives(type_)
                    if len(alternatives) == 1:
                        return self.resolve(alternatives[0])
                case ConstantType():
                    return self._constant(type_), ""
                case Indexed():
                    return self.resolve(self._indexed_type(type_))
                case Reference():
                    return self._resolve_reference(type_)
                case _:
                    pass
            return type_, ""

    def _resolve_reference(self, type_: Reference) -> tuple[Type, str]:
        declaration = self._declaration(type_)
        if isinstance(declaration, Interface):
            return type_, declaration.name
        if declaration is None:
            plain = self._plain(type_)
            return (type_, "") if plain is type_ else self.resolve(plain)
        with self._inside(declaration):
            plain, name = self.resolve(declaration.type)
        return plain, name or declaration.name

    def _declaration(self, type_: Reference) -> Declaration | None:
        """The declaration that a reference names; `None` for an operator of the language."""
        declaration = self.module.types.get(type_.name)
        if declaration is not None:
            self._check_arguments(type_, 0)
            return declaration
        arguments = {**_MAPPED, **_TRANSPARENT}.get(type_.name)
        if arguments is None:
            known = ", ".join(sorted({**_MAPPED, **_TRANSPARENT}))
            expected = f"a type that this file declares, or one of {known}"
            raise self.module.error(type_.at, expected, type_.name)
        self._check_arguments(type_, arguments)
        return None

    def _check_arguments(self, type_: Reference, number: int) -> None:
        actual = len(type_.arguments)
        if actual != number:
            expected = f"{type_.name} with {number} type argument{'' if number == 1 else 's'}"
            raise self.module.error(type_.at, expected, actual)

    def _plain(self, type_: Reference) -> Type:
        match type_.name:
            case "Array" | "ReadonlyArray":
                return Array(type_.arguments[0], type_.at)
            case "Readonly":
                return type_.arguments[0]
            case "NonNullable":
                each = self.alternatives(type_.arguments[0])
                kept = tuple(kind for kind in each if _kind(kind) != "null")
                return kept[0] if len(kept) == 1 else Union(kept, type_.at)
            case "Date":
                return Formatted("date-time", type_.at)
            case _:
                return type_

    def _constant(self, type_: ConstantType) -> Literal:
        constant = self.module.constants.get(type_.name)
        if constant is None or constant.value is None:
            expected = "the name of a constant that is a string, a number or a boolean"
            raise self.module.error(type_.at, expected, type_.name)
        return Literal(constant.value, type_.at)

    def _indexed_type(self, type_: Indexed) -> Type:
        """The type of the members with some names, or of the items of an array."""
        whole, _ = self.resolve(type_.type)
        if isinstance(whole, Array) and type_.key == Keyword("number", type_.at):
            return whole.item
        members = self.members(type_.type)
        names = sorted(self._names(type_.key))
        for name in names:
            if name not in members:
                expected = f"names of members of {_kind(type_.type)}"
                raise self.module.error(type_.at, expected, name)
        types = tuple(members[name].type for name in names)
        return types[0] if len(types) == 1 else Union(types, type_.at)

    def pattern(self, type_: Template) -> str:
        """A regular expression for the texts of a template literal type.

        Raises:
            TypeScriptError: A part is neither text nor number.
        """
        return "^" + "".join(self._part(part) for part in type_.parts) + "$"

    def _part(self, type_: Type) -> str:
        choices: list[str] = []
        for each in self.alternatives(type_):
            match each:
                case Literal(value=str(text)):
                    choices.append(_escape(text))
                case Literal(value=bool(value)):
                    choices.append(str(value).lower())
                case Literal(value=value):
                    choices.append(_escape(str(value)))
                case Keyword(name="string" | "any"):
                    choices.append(r"[\s\S]*")
                case Keyword(name="number"):
                    choices.append(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
                case Keyword(name="boolean"):
                    choices.append("true|false")
                case Template():
                    choices.append("".join(self._part(part) for part in each.parts))
                case _:
                    raise self.module.error(each.at, "a text or a number", _kind(each))
        return (
            choices[0] if len(choices) == 1 and "|" not in choices[0] else f"({'|'.join(choices)})"
        )

    # Unions

    def alternatives(self, type_: Type) -> Sequence[Type]:
        """The alternatives of a type, each once, in the order in which the file names them first.

        Nested unions are flattened. `never` and `undefined` are left out, and so are literals
        beside the keyword of their type. A type that is no union is its own only alternative.

        Raises:
            TypeScriptError: A name is not declared, or stands for itself.
        """
        members = list(dict.fromkeys(self._flatten(type_)))
        keywords = {each.name: each for each in members if isinstance(each, Keyword)}
        for name in ("any", "unknown"):
            if name in keywords:
                return [keywords[name]]
        ruled_out = tuple(kind for name in keywords for kind in _LITERALS.get(name, ()))
        kept = [
            each for each in members if not (isinstance(each, Literal) and each.kind in ruled_out)
        ]
        return sorted(kept, key=self._rank)

    def _flatten(self, type_: Type) -> list[Type]:
        self.count(type_.at)
        with self._inside(type_):
            match type_:
                case Union(members=members):
                    return [each for member in members for each in self._flatten(member)]
                case KeyOf(type=inner):
                    return [Literal(name, type_.at) for name in self.members(inner)]
                case Keyword(name="never" | "undefined"):
                    return []
                case Keyword(name="null") | Literal(value=None):
                    return [Keyword("null", type_.at)] if self._nulls else []
                case Reference():
                    return self._flatten_reference(type_)
                case ConstantType():
                    return [self._constant(type_)]
                case Indexed():
                    return self._flatten(self._indexed_type(type_))
                case _:
                    return [type_]

    def _flatten_reference(self, type_: Reference) -> list[Type]:
        declaration = self._declaration(type_)
        if declaration is None:
            plain = self._plain(type_)
            return [type_] if plain is type_ else self._flatten(plain)
        if isinstance(declaration, Interface):
            return [type_]
        if isinstance(declaration.type, Object | Intersection | Array | Tuple):
            return [type_]
        with self._inside(declaration):
            opened = self._flatten(declaration.type)
        if opened == [declaration.type] and isinstance(declaration.type, Reference):
            return opened if declaration.type.name in self.module.types else [type_]
        return opened

    def _rank(self, type_: Type) -> int:
        if isinstance(type_, Keyword):
            return _INTRINSIC.index(type_.name) - len(_INTRINSIC)
        declaration = isinstance(type_, Reference) and self.module.types.get(type_.name)
        if isinstance(declaration, Alias) and isinstance(declaration.type, Array | Tuple):
            return self._ranks[declaration.type]
        return self._ranks.get(declaration.name if declaration else type_, 0)

    # Objects

    def members(self, type_: Type) -> Mapping[str, Member]:
        """The members of an object, including inherited ones.

        Raises:
            TypeScriptError: The type is no object.
        """
        with self._inside(type_):
            match type_:
                case Object(members=members):
                    return {member.name: member for member in members}
                case Indexed():
                    return self.members(self._indexed_type(type_))
                case Intersection(members=parts):
                    return _merge(self.members(part) for part in parts)
                case Reference():
                    declaration = self._declaration(type_)
                    if declaration is None:
                        plain = self._plain(type_)
                        return self.members(self.mapped_type(type_) if plain is type_ else plain)
                    return self.declared_members(declaration)
                case _:
                    raise self.module.error(type_.at, "an object with members", _kind(type_))

    def declared_members(self, declaration: Declaration) -> Mapping[str, Member]:
        """The members of a declaration, including inherited ones.

        Raises:
            TypeScriptError: The declaration is no object.
        """
        known = self._members.get(declaration.name)
        if known is None:
            parts: Iterable[Type]
            if isinstance(declaration, Alias):
                parts = (declaration.type,)
            else:
                parts = (*declaration.extends, declaration.body)
            with self._inside(declaration):
                known = _merge(self.members(part) for part in parts)
            self.count(declaration.at, len(known))
            self._members[declaration.name] = known
        return known

    def mapped_type(self, type_: Reference) -> Object:
        """The object that `Record`, `Omit`, `Pick`, `Partial` or `Required` makes.

        Raises:
            TypeScriptError: Its arguments are not an object and names of members.
        """
        if type_.name == "Record":
            return self._record(type_)
        members = self.members(type_.arguments[0])
        self.count(type_.at, len(members))
        match type_.name:
            case "Partial":
                kept = [replace(member, optional=True) for member in members.values()]
            case "Required":
                kept = [replace(member, optional=False) for member in members.values()]
            case "Pick":
                names = self._names(type_.arguments[1])
                for name in sorted(names - members.keys()):
                    expected = f"names of members of {_kind(type_.arguments[0])}"
                    raise self.module.error(type_.at, expected, name)
                kept = [member for member in members.values() if member.name in names]
            case _:
                names = self._names(type_.arguments[1])
                kept = [member for member in members.values() if member.name not in names]
        return Object(tuple(kept), None, type_.at)

    def _record(self, type_: Reference) -> Object:
        keys, value = type_.arguments
        plain = self.alternatives(keys)
        if len(plain) == 1 and isinstance(plain[0], Keyword) and plain[0].name == "string":
            return Object((), Index(value, value.at), type_.at)
        names = sorted(self._names(keys))
        members = (Member(name, value, False, NO_COMMENT, type_.at) for name in names)
        return Object(tuple(members), None, type_.at)

    def _names(self, type_: Type) -> set[str]:
        names: set[str] = set()
        for each in self.alternatives(type_):
            if not isinstance(each, Literal) or not isinstance(each.value, str):
                raise self.module.error(each.at, "names of members as strings", _kind(each))
            names.add(each.value)
        return names


def _escape(text: str) -> str:
    """A regular expression of one text, as in ECMA-262."""
    return re.sub(r"[\\^$.*+?()\[\]{}|]", r"\\\g<0>", text)


def _merge(parts: Iterable[Mapping[str, Member]]) -> Mapping[str, Member]:
    members: dict[str, Member] = {}
    for part in parts:
        members.update(part)
    return members


def _kind(type_: Type) -> str:
    match type_:
        case Keyword(name=name) | Reference(name=name) | ConstantType(name=name):
            return name
        case Literal(value=value):
            return str(value)
        case _:
            return type(type_).__name__.lower()


def _ranks(module: Module) -> Mapping[Type | str, int]:
    """The order in which a compiler first meets types, which is the order of alternatives of
    unions.

    A compiler reads the declarations in turn and expands an alias at its first use. An unnamed type
    is ranked by its shape, after the types that it consists of.
    """
    ranks: dict[Type | str, int] = {}
    for declaration in module.types.values():
        pending: list[Type | Declaration | _Opened] = [declaration]
        while pending:
            each = pending.pop()
            match each:
                case _Opened(type=type_):
                    ranks.setdefault(type_, len(ranks))
                case Interface(name=name):
                    ranks.setdefault(name, len(ranks))
                    pending += reversed((*each.extends, each.body))
                case Alias(name=name):
                    if name not in ranks:
                        ranks[name] = len(ranks)
                        pending.append(each.type)
                case Reference(name=name) if name in module.types:
                    named = module.types[name]
                    if isinstance(named, Interface):
                        ranks.setdefault(name, len(ranks))
                    else:
                        pending.append(named)
                case _:
                    pending += (_Opened(each), *reversed(_parts(each)))
    return ranks


@dataclass(frozen=True)
class _Opened:
    """A type whose parts have been ranked."""

    type: Type


def _parts(type_: Type) -> Sequence[Type]:
    """The types that a type consists of, in their order."""
    match type_:
        case Array(item=inner) | KeyOf(type=inner):
            return (inner,)
        case Indexed(type=inner, key=key):
            return (inner, key)
        case Reference(arguments=arguments) | Template(parts=arguments):
            return arguments
        case Tuple(items=items, rest=rest):
            return items if rest is None else (*items, rest)
        case Union(members=members) | Intersection(members=members):
            return members
        case Object(members=members, index=index):
            types = tuple(member.type for member in members)
            return types if index is None else (*types, index.type)
        case _:
            return ()
