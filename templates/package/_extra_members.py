"""Members of JSON objects that their types do not have: objects keep them where asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
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
    value: Any, wire: Any, extra_of: Callable[[StructType, Mapping[str, Any]], Mapping[str, Any]]
) -> Any:
    """Add members that their types do not have to the objects of a typed value.

    Args:
        value: The value.
        wire: The JSON data that the value was decoded from.
        extra_of: Selects the members of a JSON object to keep, by its type.
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
        extra = {name: member for name, member in extra_of(kind, wire).items() if name not in known}
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


_KEEPING: set[str] = set()
"""Names of the classes whose objects keep all members: mostly none, so that no type is searched."""


def keep_extra(name: str) -> bool:
    """Note that objects of a class keep the members that it does not have; returns true."""
    _KEEPING.add(name)
    return True


@lru_cache(4096)
def kept_members(
    kind: Any, extra: bool
) -> Callable[[StructType, Mapping[str, Any]], Mapping[str, Any]] | None:
    """The function that selects the members to keep in values of a type; `None` for none.

    Args:
        kind: The type.
        extra: Whether all objects keep them; otherwise those whose class was rendered so.
    """
    if extra:
        return _all_members
    return _members_by_type if _KEEPING and _holds_keeping(kind) else None


def _all_members(_: StructType, wire: Mapping[str, Any]) -> Mapping[str, Any]:
    return wire


def _members_by_type(kind: StructType, wire: Mapping[str, Any]) -> Mapping[str, Any]:
    return wire if _keeps(kind) else {}


def _keeps(kind: StructType) -> bool:
    return getattr(kind, "__keeps_extra__", False)


def _holds_keeping(kind: Any) -> bool:
    """Whether an object that keeps all members may be in a value of a type."""
    left, seen = [*_structs_within(kind)], set[StructType]()
    while left:
        struct = left.pop()
        if _keeps(struct):
            return True
        if struct not in seen:
            seen.add(struct)
            left += (each for field in fields(struct) for each in _structs_within(field.type))
    return False


def _structs_within(kind: Any) -> Iterator[StructType]:
    """The Structs of a type, those in maps and lists included."""
    yield from structs_in(kind)
    for part in get_args(kind):
        yield from _structs_within(part)
