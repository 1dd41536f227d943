"""Questions about the types of messages: names of their members, and what a union may be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from ._unions import UntaggedType
from ._wire import STRUCTS, StructType, fields


def members_of(kind: Any) -> frozenset[str]:
    """Wire names of the members of a Struct, or of all members of a union without a tag."""
    if isinstance(kind, UntaggedType):
        return frozenset(name for each in kind.variants for name in members_of(each.type))
    if isinstance(kind, type) and issubclass(kind, STRUCTS):
        return frozenset(field.encode_name for field in fields(kind))
    return frozenset()


@lru_cache(maxsize=4096)
def python_names(kind: StructType) -> Mapping[str, str]:
    """Wire name to Python name of each member of a Struct."""
    return {field.encode_name: field.name for field in fields(kind)}


@lru_cache(maxsize=4096)
def meta_name(kind: StructType) -> str | None:
    """Python name of the member `_meta` of a Struct: `meta`, unless another one is called so."""
    return next((field.name for field in fields(kind) if field.encode_name == "_meta"), None)


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
