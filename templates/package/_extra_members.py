"""Objects with extra members: members that the schema of their type does not have.

Such an object is an instance of a class derived from its Struct, with the field `extra`. msgspec
cannot encode the value of that field, so `_structs` detects it and writes the members among the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import new_class
from typing import Any

import msgspec

from ._structs import EXTRA, Spliced, Struct, StructType

__all__ = [
    "EXTRA",
    "ExtraMembers",
    "builtins_with_extra",
    "builtins_without_extra",
    "known_names",
    "with_extra_members",
]

builtins_without_extra = msgspec.to_builtins
"""Turn Structs into dicts with wire names; raises a TypeError for objects with extra members."""


class ExtraMembers(Spliced, Mapping[str, Any]):
    """Members of a JSON object that its schema does not have, by wire name; read-only."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = dict(members)

    def __getitem__(self, name: str) -> Any:
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return repr(self.members)


def builtins_with_extra(value: Any) -> Any:
    """Turn Structs into dicts with wire names, the extra members of an object under `EXTRA`."""
    return msgspec.to_builtins(value, enc_hook=_members_of)


def _members_of(value: Any) -> dict[str, Any]:
    if isinstance(value, ExtraMembers):
        return dict(value)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


@cache
def known_names(kind: StructType) -> frozenset[str | None]:
    """Wire names of the fields of a Struct, and of its tag."""
    names = (field.encode_name for field in msgspec.structs.fields(kind))
    return frozenset((*names, kind.__struct_config__.tag_field))


def with_extra_members(
    value: Struct, changed: Mapping[str, Any], extra: Mapping[str, Any]
) -> msgspec.Struct:
    """A copy of an object with some members replaced, and with extra members (at least one)."""
    members = msgspec.structs.asdict(value)
    return _type_with_extra(type(value))(**{**members, **changed}, extra=extra)


@cache
def _type_with_extra(kind: type[Struct]) -> type[msgspec.Struct]:
    """A class derived from a Struct, with the same name and a field for extra members."""
    known, none = known_names(kind), kind.extra
    check = getattr(kind, "__post_init__", None)

    def post_init(self: Any) -> None:
        given = {name: member for name, member in self.extra.items() if name not in known}
        msgspec.structs.force_setattr(self, "extra", ExtraMembers(given) if given else none)
        if check is not None:
            check(self)

    def reduce(self: Any) -> Any:
        return _restored, (kind, msgspec.structs.asdict(self))

    namespace = {
        "__annotations__": {"extra": Mapping[str, Any]},
        "extra": msgspec.field(name=EXTRA, default=none),
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__post_init__": post_init,
        "__reduce__": reduce,
    }
    # `msgspec.defstruct` takes no class with a metaclass of its own.
    keywords = {"frozen": True, "kw_only": True}
    return new_class(kind.__name__, (kind,), keywords, lambda body: body.update(namespace))


def _restored(kind: type[Struct], members: Mapping[str, Any]) -> msgspec.Struct:
    """Make an object with extra members from a pickle."""
    return _type_with_extra(kind)(**members)
