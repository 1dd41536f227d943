"""Members of JSON objects that their types do not have: objects keep them where asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from ._structs import STRUCTS, Struct, StructType, fields, known_names, replace, with_extra_members
from ._unions import UntaggedType, is_many, is_object


def structs_in(kind: Any) -> Iterator[StructType]:
    """The Structs of a type: the type itself, or the members of its unions and lists."""
    origin = get_origin(kind)
    if hasattr(kind, "__value__"):  # a named alias
        yield from structs_in(kind.__value__)
    elif origin is Annotated:
        yield from structs_in(get_args(kind)[0])
    elif origin in (Union, UnionType, list):
        for part in get_args(kind):
            yield from structs_in(part)
    elif isinstance(kind, UntaggedType):
        for variant in kind.variants:
            yield from structs_in(variant.type)
    elif isinstance(kind, type) and issubclass(kind, STRUCTS):
        yield kind


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
    return any(structs_in(kind)) or any(map(_holds_structs, get_args(kind)))


def all_members(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of a JSON object to keep where all are."""
    return wire
