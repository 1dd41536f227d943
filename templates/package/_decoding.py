"""Decoding for users: typed, and with the members that types do not have if that is wanted.

An object with extra members is an instance of a class derived from its own; see `_extra_members`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from ._extra_members import known_names, with_extra_members
from ._structs import replace
from ._unions import UntaggedType
from ._wire import STRUCTS, Raw, Struct, StructType, fields, is_many, is_object
from ._wire import convert as _convert
from ._wire import decoder as _decoder

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["convert", "decoder", "members_with_structs", "structs_of", "with_kept_members"]

T = TypeVar("T")

_decode_any = _decoder(Any)


def decoder(kind: TypeForm[T], *, extra: bool = False) -> Callable[[bytes | Raw], T]:
    """The decoder of a type, created once.

    Args:
        kind: The type: a model, a union of models, or any type of JSON data.
        extra: Whether objects keep the members that their types do not have, as `extra`.

    Raises:
        ValidationError: (from the decoder) The JSON has another shape; the text has the path.
        DecodeError: (from the decoder) The bytes are not JSON.
    """
    decode = _decoder(kind)
    if not extra:
        return decode

    def decode_with_extra(data: bytes | Raw) -> T:
        kept: T = with_kept_members(decode(data), _decode_any(data), _all_members)
        return kept

    return decode_with_extra


def convert(value: Any, kind: TypeForm[T], *, extra: bool = False) -> T:
    """Turn decoded JSON (dicts, lists, scalars) into a type.

    Args:
        value: The JSON value.
        kind: The type.
        extra: Whether objects keep the members that their types do not have, as `extra`; otherwise
            these are dropped.

    Raises:
        ValidationError: The value has another shape; the text has the path.
    """
    converted = _convert(value, kind)
    if not extra:
        return converted
    kept: T = with_kept_members(converted, value, _all_members)
    return kept


def _all_members(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    return wire


def structs_of(kind: Any) -> frozenset[StructType]:
    """The Structs that a value of a type may be."""
    if hasattr(kind, "__value__"):  # a named alias
        return structs_of(kind.__value__)
    if isinstance(kind, UntaggedType):
        return frozenset(each for variant in kind.variants for each in structs_of(variant.type))
    if isinstance(kind, type) and issubclass(kind, STRUCTS):
        return frozenset({kind})
    if get_origin(kind) is Annotated:
        return structs_of(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return frozenset(each for member in get_args(kind) for each in structs_of(member))
    return frozenset()


def with_kept_members(
    value: Any, wire: Any, extra_of: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Any:
    """Add members that their types do not have to the objects of a typed value.

    Args:
        value: The value.
        wire: The JSON data that the value was decoded from.
        extra_of: Selects the members of a JSON object to keep.
    """
    if isinstance(value, Struct) and is_object(wire):
        kind = type(value)
        changed: dict[str, Any] = {}
        for name, wire_name in members_with_structs(kind).items():
            member = getattr(value, name)
            kept = with_kept_members(member, wire.get(wire_name), extra_of)
            if kept is not member:
                changed[name] = kept
        known = known_names(kind)
        extra = {name: member for name, member in extra_of(wire).items() if name not in known}
        if not extra:
            return replace(value, **changed) if changed else value
        return with_extra_members(value, changed, extra)
    if is_many(value):
        return [with_kept_members(item, wire[at], extra_of) for at, item in enumerate(value)]
    if is_object(value):
        return {name: with_kept_members(item, wire[name], extra_of) for name, item in value.items()}
    return value


@cache
def members_with_structs(kind: StructType) -> Mapping[str, str]:
    """Python name to wire name of each member of a Struct that may hold Structs."""
    return {each.name: each.encode_name for each in fields(kind) if _holds_structs(each.type)}


def _holds_structs(kind: Any) -> bool:
    return bool(structs_of(kind)) or any(map(_holds_structs, get_args(kind)))
