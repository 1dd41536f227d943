"""Declarations with type parameters, expanded for each list of arguments that is used.

`Box<string>` becomes a declaration of this name. Unused generic declarations are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mcpgen.errors import TypeScriptError
from mcpgen.schema.typescript.syntax import (
    Alias,
    Array,
    Declaration,
    Index,
    Indexed,
    Intersection,
    KeyOf,
    Keyword,
    Literal,
    Object,
    Position,
    Reference,
    Template,
    Tuple,
    Type,
    Union,
)

MAX_INSTANCES = 500
"""Limit of the declarations that are expanded in one file."""

MAX_ROW = 40
"""Limit of the expanded declarations that refer to one another in a row."""

Failure = Callable[[Position, str, object], TypeScriptError]
"""Makes the error for a place from the expected and the actual content."""


@dataclass(frozen=True)
class Generic:
    """A declaration with type parameters, each with its default, if it has one."""

    declaration: Declaration
    parameters: Mapping[str, Type | None]


def instantiate(
    types: Mapping[str, Declaration], generics: Mapping[str, Generic], failure: Failure
) -> Mapping[str, Declaration]:
    """Expand all declarations with type parameters.

    Raises:
        TypeScriptError: The number of arguments is wrong, or there are more than `MAX_INSTANCES`.
    """
    return _Instances(generics, failure).of_all(types) if generics else types


@dataclass
class _Instances:
    generics: Mapping[str, Generic]
    failure: Failure
    written: dict[str, Declaration] = field(default_factory=dict[str, Declaration])
    row: int = 0

    def of_all(self, types: Mapping[str, Declaration]) -> Mapping[str, Declaration]:
        own = {name: self.declare(each, {}) for name, each in types.items()}
        return {**own, **self.written}

    def declare(self, each: Declaration, arguments: Mapping[str, Type]) -> Declaration:
        if isinstance(each, Alias):
            return replace(each, type=self.type(each.type, arguments))
        extends = tuple(self.type(parent, arguments) for parent in each.extends)
        body = self.type(each.body, arguments)
        assert isinstance(body, Object)
        return replace(each, extends=extends, body=body)

    def type(self, type_: Type, arguments: Mapping[str, Type]) -> Type:
        """A type with arguments in the place of parameters."""

        def all_of(types: tuple[Type, ...]) -> tuple[Type, ...]:
            return tuple(self.type(each, arguments) for each in types)

        match type_:
            case Reference(name=name) if name in arguments:
                return arguments[name]
            case Reference(arguments=own):
                type_ = replace(type_, arguments=all_of(own))
                return self.instance(type_) if type_.name in self.generics else type_
            case Union(members=members) | Intersection(members=members):
                return replace(type_, members=all_of(members))
            case Template(parts=parts):
                return replace(type_, parts=all_of(parts))
            case Array(item=item):
                return replace(type_, item=self.type(item, arguments))
            case KeyOf(type=inner):
                return replace(type_, type=self.type(inner, arguments))
            case Indexed(type=inner, key=key):
                whole = self.type(inner, arguments)
                return replace(type_, type=whole, key=self.type(key, arguments))
            case Tuple(items=items, rest=rest):
                rest = rest and self.type(rest, arguments)
                return replace(type_, items=all_of(items), rest=rest)
            case Object(members=members, index=index):
                inner_members = (replace(m, type=self.type(m.type, arguments)) for m in members)
                values = index and Index(self.type(index.type, arguments), index.at)
                return replace(type_, members=tuple(inner_members), index=values)
            case _:
                return type_

    def instance(self, type_: Reference) -> Reference:
        """A reference to the declaration that is expanded for some arguments."""
        generic = self.generics[type_.name]
        arguments = dict(zip(generic.parameters, type_.arguments, strict=False))
        for name, default in generic.parameters.items():
            if name not in arguments and default is not None:
                arguments[name] = self.type(default, arguments)
        if len(arguments) < len(generic.parameters) or len(type_.arguments) > len(arguments):
            expected = f"{type_.name} with {len(generic.parameters)} type arguments"
            raise self.failure(type_.at, expected, len(type_.arguments))
        name = f"{type_.name}<{','.join(map(_spell, arguments.values()))}>"
        if name not in self.written:
            if len(self.written) >= MAX_INSTANCES or self.row >= MAX_ROW:
                expected = f"at most {MAX_INSTANCES} types with arguments, {MAX_ROW} in a row"
                raise self.failure(type_.at, expected, "more")
            self.row += 1
            self.written[name] = Alias(name, type_, generic.declaration.comment, type_.at)
            named = replace(generic.declaration, name=name)
            self.written[name] = self.declare(named, arguments)
            self.row -= 1
        return Reference(name, (), type_.at)


def _spell(type_: Type) -> str:
    """A type as a part of a name."""
    match type_:
        case Keyword(name=name):
            return name
        case Reference(name=name, arguments=arguments):
            return f"{name}<{','.join(map(_spell, arguments))}>" if arguments else name
        case Literal(value=value):
            return str(value)
        case Array(item=item):
            return f"{_spell(item)}[]"
        case Union(members=members):
            return "|".join(map(_spell, members))
        case _:
            return f"{type(type_).__name__}{type_.at.line}_{type_.at.column}"
