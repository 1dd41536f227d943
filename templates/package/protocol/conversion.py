"""Conversion between the types of revisions; extra members of objects are kept.

`extra_members` says what an object with extra members is; one without is an instance of its Struct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_args

from .._wire import (
    STRUCTS,
    UNSET,
    Struct,
    StructType,
    convert,
    fields,
    is_many,
    is_object,
    replace,
    to_builtins,
)
from ..facts import structs_of
from .extra_members import (
    EXTRA,
    builtins_with_extra,
    builtins_without_extra,
    known_names,
    with_extra_members,
)


def recast(value: Any, kind: Any) -> Any:
    """Turn Structs, or JSON that may hold some, into `kind`, of any revision.

    Members that `kind` does not have are dropped, except the extra members of an object.

    Raises:
        UNWRITABLE: The value has no JSON form.
        ValidationError: The value has another shape; the text has the path.
    """
    try:
        return convert(builtins_without_extra(value), kind)
    except TypeError:  # there may be extra members
        wire = builtins_with_extra(value)
        return with_kept_members(convert(to_builtins(value), kind), wire, _kept_members)


def is_made_of(value: Any, module: str) -> bool:
    """Whether all Structs in a value, at any depth, are of one module."""
    if isinstance(value, STRUCTS):
        kind = type(value)
        return kind.__module__ == module and all(
            is_made_of(getattr(value, name), module) for name in _members_with_structs(kind)
        )
    if is_many(value):
        return all(is_made_of(item, module) for item in value)
    if is_object(value):
        members = value.values()
        return all(isinstance(each, Struct) and is_made_of(each, module) for each in members)
    return value is None or value is UNSET


def _kept_members(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = wire.get(EXTRA, {})
    return kept


def with_kept_members(
    value: Any, wire: Any, extra_of: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Any:
    """A typed value whose objects keep those of some members that their types do not have.

    Args:
        value: The value.
        wire: The JSON that it was made from.
        extra_of: The members of a JSON object that are to be kept.
    """
    if isinstance(value, Struct) and is_object(wire):
        kind = type(value)
        changed: dict[str, Any] = {}
        for name, wire_name in _members_with_structs(kind).items():
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
        return [with_kept_members(item, at, extra_of) for item, at in zip(value, wire, strict=True)]
    if is_object(value):
        return {name: with_kept_members(item, wire[name], extra_of) for name, item in value.items()}
    return value


@cache
def _members_with_structs(kind: StructType) -> Mapping[str, str]:
    """Python name to wire name of each member of a Struct that may hold Structs."""
    return {each.name: each.encode_name for each in fields(kind) if _holds_structs(each.type)}


def _holds_structs(kind: Any) -> bool:
    return bool(structs_of(kind)) or any(map(_holds_structs, get_args(kind)))
