"""The base of the modules of a revision: models, JSON encoding, rows of method tables.

`_structs` has the code that depends on the library of the models; `_unions` selects the member of a
union without a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from ._structs import (
    STRUCTS,
    UNREADABLE,
    UNSET,
    UNWRITABLE,
    DecodeError,
    EncodingError,
    Raw,
    Struct,
    StructType,
    UnsetType,
    Untagged,
    ValidationError,
    always_sent,
    asdict,
    convert,
    create,
    decoder,
    encode,
    error_text,
    fields,
    tag_of,
    to_builtins,
)
from ._structs import replace as _replace
from ._unions import UntaggedType, Variant, format_text, is_many, is_object
from .method_facts import UNSTATED, MethodFacts

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # type checkers have it built in

__all__ = [
    "STRUCTS",
    "UNREADABLE",
    "UNSET",
    "UNWRITABLE",
    "DecodeError",
    "EncodingError",
    "MethodRow",
    "Params",
    "Raw",
    "Result",
    "Role",
    "Struct",
    "StructType",
    "UnsetType",
    "Untagged",
    "ValidationError",
    "Variant",
    "always_sent",
    "asdict",
    "convert",
    "create",
    "decoder",
    "encode",
    "error_text",
    "extend_union",
    "fields",
    "is_many",
    "is_object",
    "replace",
    "tag_of",
    "to_builtins",
]

Role: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""

Message = TypeVar("Message")

if TYPE_CHECKING:
    Params = TypeVarWithDefault("Params", default=Any)
    Result = TypeVarWithDefault("Result", default=Any)
else:
    Params, Result = TypeVar("Params"), TypeVar("Result")


def replace(message: Message, /, **changes: Any) -> Message:
    """A copy of a message, or of an object in one, with some members changed.

        result = replace(result, is_error=True)

    Args:
        message: An object of `models`, which does not change.
        changes: New values of members, by Python name; they are not checked before they are sent.

    Raises:
        TypeError: `message` is no such object, or lacks one of these members.
    """
    if not isinstance(message, STRUCTS):
        raise TypeError(f"replace: expected an object of a message, got a {_type_name(message)}")
    kind: StructType = message.__class__
    if not changes.keys() <= _member_names(kind):
        _check_members(message, changes)
    return _replace(message, **changes)


def _type_name(value: object) -> str:
    return type(value).__qualname__


@lru_cache(1024)
def _member_names(kind: StructType) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def _check_members(message: Any, names: Iterable[str]) -> None:
    """Check that an object has all of these members.

    Raises:
        TypeError: The object lacks a member.
    """
    kind: StructType = message.__class__
    members = [field.name for field in fields(kind)]
    if getattr(message, "extra", None) and "extra" not in members:
        members.append("extra")
    unknown = ", ".join(format_text(name) for name in names if name not in members)
    if unknown:
        raise TypeError(
            f"replace: {_type_name(message)} has no member {unknown}; its members are "
            f"{', '.join(members)}"
        )


def extend_union(kind: Any, *variants: Variant) -> Any:
    """A union of further objects, whose tests come first, and a type."""
    base = kind.variants if isinstance(kind, UntaggedType) else (Variant(kind),)
    return UntaggedType("Extended", (Untagged,), {"variants": (*variants, *base)})


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodRow(Generic[Params, Result]):
    """One request or notification of a revision, in one direction.

    To type checkers it has the types of its params and its result; `Any` in a table of rows.

    Attributes:
        name: The name on the wire, such as `tools/call`.
        kind: Request or notification.
        sender: The sending side. A method that both sides may send has a row for each.
        params: Type of its params, or `None` where the schema has none.
        params_required: Whether a message without params is malformed.
        result: Type of its result, to decode with; `None` for notifications.
        capability: Path of the required capability, empty for none. A request requires a capability
            of the receiver, a notification one of the sender.
        items: Python name of the list that the result of a list request holds, or `None`.
        facts: Rules of the method that only the prose of the revision states.
        python_name: Name of the handler and of the client's coroutine function.
    """

    name: str
    kind: Literal["request", "notification"] = "request"
    sender: Role
    params: Any
    params_required: bool = False
    result: Any
    capability: tuple[str, ...] = ()
    items: str | None = None
    facts: MethodFacts = UNSTATED
    python_name: str

    @cached_property
    def decode_params(self) -> Callable[[bytes | Raw], Params]:
        """Decoder for the params."""
        decode: Callable[[bytes | Raw], Params] = decoder(self.params)
        return decode

    @cached_property
    def decode_result(self) -> Callable[[bytes | Raw], Result]:
        """Decoder for the result, strict as the schema.

        A connection decodes results with `results.result_decoder` instead.
        """
        decode: Callable[[bytes | Raw], Result] = decoder(self.result)
        return decode
