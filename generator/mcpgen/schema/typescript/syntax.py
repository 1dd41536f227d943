"""The declarations and types that are read from TypeScript, as frozen values.

Types compare by shape: positions and descriptions do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mcpgen.errors import TypeScriptError, format_value
from mcpgen.json_types import Json


class Position(NamedTuple):
    """A place in a source file. Both numbers count from 1; columns count characters."""

    line: int
    column: int


@dataclass(frozen=True)
class Comment:
    """The content of a documentation comment.

    Attributes:
        text: The description, without tags.
        keywords: The JSON Schema keywords that its tags set, such as `minimum`.
        nullable: Whether it has the tag `@nullable`.
        ignored: Whether it has the tag `@ignore`, which removes the member from schemas.
    """

    text: str = field(default="", compare=False)
    keywords: Mapping[str, Json] = field(default_factory=dict[str, Json], hash=False)
    nullable: bool = False
    ignored: bool = False


NO_COMMENT = Comment()


@dataclass(frozen=True)
class Keyword:
    """A type with a name of its own, such as `string` or `unknown`."""

    name: str
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Literal:
    """The type of one string, number or boolean, or of null; 1 and true are two types."""

    value: str | int | float | bool | None
    at: Position = field(compare=False)
    kind: type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value))


@dataclass(frozen=True)
class Reference:
    """A type by its name, with type arguments, such as `Omit<Tool, "name">`."""

    name: str
    arguments: tuple[Type, ...]
    at: Position = field(compare=False)


@dataclass(frozen=True)
class ConstantType:
    """The type of a constant: `typeof NAME`."""

    name: str
    at: Position = field(compare=False)


@dataclass(frozen=True)
class KeyOf:
    """The names of the members of a type: `keyof Tool`."""

    type: Type
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Indexed:
    """The type of a member or of the items of a type: `Request["params"]`."""

    type: Type
    key: Type
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Template:
    """A template of literals and types, such as `prefix/${string}`."""

    parts: tuple[Type, ...]
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Member:
    """A member of an object.

    Attributes:
        name: Its name on the wire.
        type: Its type.
        optional: Whether it may be absent.
        comment: Its documentation.
        at: The position of its name.
    """

    name: str
    type: Type
    optional: bool
    comment: Comment
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Index:
    """An index signature: `[key: string]: unknown`."""

    type: Type
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Object:
    """An object with members, and at most one index signature."""

    members: tuple[Member, ...]
    index: Index | None
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Array:
    """An array with items of one type."""

    item: Type
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Tuple:
    """An array whose items have types by position.

    Attributes:
        items: Types by position.
        required: The number of required items.
        rest: Type of further items; `None` if there may be none.
    """

    items: tuple[Type, ...]
    required: int
    rest: Type | None
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Union:
    """One of several types. A member may be a union too."""

    members: tuple[Type, ...]
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Intersection:
    """The intersection of several types."""

    members: tuple[Type, ...]
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Formatted:
    """A string with a JSON Schema format, such as `date-time`."""

    format: str
    at: Position = field(compare=False)


Type: TypeAlias = (
    Keyword
    | Literal
    | Reference
    | ConstantType
    | KeyOf
    | Indexed
    | Template
    | Object
    | Array
    | Tuple
    | Union
    | Intersection
    | Formatted
)


@dataclass(frozen=True)
class Interface:
    """An interface, with the types it extends and its own members."""

    name: str
    extends: tuple[Type, ...]
    body: Object
    comment: Comment
    at: Position


@dataclass(frozen=True)
class Alias:
    """A type alias."""

    name: str
    type: Type
    comment: Comment
    at: Position


@dataclass(frozen=True)
class Constant:
    """A constant. `value` is `None` if it is not a string, number or boolean that can be read."""

    name: str
    value: str | int | float | bool | None
    at: Position


Declaration: TypeAlias = Interface | Alias


@dataclass(frozen=True, eq=False)
class Module:
    """The declarations of a file, in its order. Not to be changed in place.

    Attributes:
        source: The file, for messages.
        types: Interfaces, aliases and enums by name; an enum is an alias of a union of literals.
        constants: Constants by name.
        renamed: Types that are imported under another name than their own, by that name.
    """

    source: str
    types: Mapping[str, Declaration]
    constants: Mapping[str, Constant]
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])

    def error(self, at: Position, expected: str, actual: object) -> TypeScriptError:
        """The error for a place in the file; `actual` is shown as short JSON."""
        return TypeScriptError(self.source, at.line, at.column, expected, format_value(actual))
