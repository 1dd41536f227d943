"""Questions about the generated types of a revision: fields, members of unions, content blocks."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Union

from ..._wire import (
    STRUCTS,
    StructType,
    Untagged,
    fields,
    tag_of,
)


def structs_in(annotation: Any) -> Iterator[StructType]:
    """The Structs of a type: the type itself, or the members of its unions and lists."""
    origin = typing.get_origin(annotation)
    if hasattr(annotation, "__value__"):  # a named alias
        yield from structs_in(annotation.__value__)
    elif origin is Annotated:
        yield from structs_in(typing.get_args(annotation)[0])
    elif origin in (Union, types.UnionType, list):
        for part in typing.get_args(annotation):
            yield from structs_in(part)
    elif isinstance(annotation, type) and issubclass(annotation, Untagged):
        for variant in annotation.variants:
            yield from structs_in(variant.type)
    elif isinstance(annotation, type) and issubclass(annotation, STRUCTS):
        yield annotation


def field_type(struct: StructType, wire_name: str) -> Any:
    """Type of the field with this wire name, or `None` if the Struct has no such field."""
    for field in fields(struct):
        if field.encode_name == wire_name:
            return field.type
    return None


def requires(struct: StructType, wire_name: str) -> bool:
    """Whether a Struct has a required field with this wire name."""
    return any(field.required and field.encode_name == wire_name for field in fields(struct))


def struct_with(annotation: Any, wire_name: str) -> StructType:
    """The first Struct of a type that has this field.

    Raises:
        LookupError: No Struct has it.
    """
    for struct in structs_in(annotation):
        if field_type(struct, wire_name) is not None:
            return struct
    raise LookupError(f"no member of {annotation!r} has the field {wire_name!r}")


def content_types(annotation: Any) -> dict[str, StructType]:
    """The content blocks that a type admits, by their `type` on the wire; empty for any value."""
    tagged = ((tag_of(struct), struct) for struct in structs_in(annotation))
    return {tag[1]: struct for tag, struct in tagged if tag is not None}
