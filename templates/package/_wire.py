"""What the modules of a revision are built on: models, JSON in and out, rows of method tables.

`_structs` has what depends on the library that the models are written for, `_unions` says what a
value of a union without a tag is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from ._structs import (
    STRUCTS,
    UNREADABLE,
    UNSET,
    UNWRITABLE,
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
    decoder,
    encode,
    error_text,
    fields,
    tag_of,
    to_builtins,
)
from ._structs import replace as _copied
from ._unions import UntaggedType, Variant, is_many, is_object, shown
from .method_facts import UNSTATED, MethodFacts

__all__ = [
    "STRUCTS",
    "TTL",
    "UNREADABLE",
    "UNSET",
    "UNWRITABLE",
    "EncodingError",
    "Method",
    "Raw",
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
    "decoder",
    "encode",
    "error_text",
    "extended",
    "fields",
    "is_many",
    "is_object",
    "members_of",
    "meta_name",
    "python_names",
    "replace",
    "structs_of",
    "tag_of",
    "to_builtins",
]

Role: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""

TTL = "ttlMs"
"""Wire name of the milliseconds for which a result may be used again."""

Message = TypeVar("Message")


def replace(message: Message, /, **changes: Any) -> Message:
    """A copy of a message, or of an object in one, with some members changed.

        result = replace(result, is_error=True)

    Args:
        message: An object of `models`, which stays as it is.
        changes: New values of members, by Python name; they are not checked before they are sent.

    Raises:
        TypeError: It is no such object, or has no member of one of these names.
    """
    if not isinstance(message, STRUCTS):
        raise TypeError(f"replace: expected an object of a message, got a {_type_name(message)}")
    kind: StructType = message.__class__
    if not changes.keys() <= _member_names(kind):
        _check_members(message, changes)
    return _copied(message, **changes)


def _type_name(value: object) -> str:
    return type(value).__qualname__


@lru_cache(1024)
def _member_names(kind: StructType) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def _check_members(message: Any, names: Iterable[str]) -> None:
    """Refuse names of members that an object does not have.

    Raises:
        TypeError: There are such names.
    """
    kind: StructType = message.__class__
    known = [field.name for field in fields(kind)]
    if getattr(message, "extra", None) and "extra" not in known:
        known.append("extra")
    unknown = ", ".join(shown(name) for name in names if name not in known)
    if unknown:
        raise TypeError(
            f"replace: {_type_name(message)} has no member {unknown}; its members are "
            f"{', '.join(known)}"
        )


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


def extended(kind: Any, *variants: Variant) -> Any:
    """A union of a type with further objects, whose tests come first."""
    base = kind.variants if isinstance(kind, UntaggedType) else (Variant(kind),)
    return UntaggedType("Extended", (Untagged,), {"variants": (*variants, *base)})


@dataclass(frozen=True, eq=False, kw_only=True)
class Method:
    """One request or notification of a revision, in one direction.

    Attributes:
        name: The wire's name, such as `tools/call`.
        kind: Whether it is answered.
        sender: Who sends it. A method that both may send has a row for each.
        params: Type of its params, or `None` where the schema has none.
        params_required: Whether a message without params is malformed.
        result: Type of its result, to decode with; `None` for notifications.
        capability: Path of the capability it depends on, empty for none. For a request it is one
            of the receiver's, for a notification one of the sender's own.
        items: Python name of the list that the result of a list request holds, or `None`.
        facts: Rules of the method that only the prose of the revision states.
        python_name: Name of its handler and of its coroutine.
    """

    name: str
    kind: Literal["request", "notification"]
    sender: Role
    params: Any
    params_required: bool
    result: Any
    capability: tuple[str, ...] = ()
    items: str | None = None
    facts: MethodFacts = UNSTATED
    python_name: str

    @cached_property
    def wire_names(self) -> Mapping[str, str]:
        """Python name to wire name of each of its params."""
        if self.params is None:
            return {}
        return {field.name: field.encode_name for field in fields(self.params)}

    @cached_property
    def optional(self) -> frozenset[str]:
        """Python names of the params that are `None` where they are absent."""
        if self.params is None:
            return frozenset()
        return frozenset(f.name for f in fields(self.params) if f.default is None)

    @cached_property
    def default_params(self) -> Mapping[str, Any]:
        """Required params, by wire name, that the connection fills in: `_meta`, or none."""
        if self.params is None:
            return {}
        has_meta = any(f.required and f.name == "meta" for f in fields(self.params))
        return {"_meta": {}} if has_meta else {}

    @cached_property
    def decode_params(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the params."""
        return decoder(self.params)

    @cached_property
    def cacheable(self) -> bool:
        """Whether its result says for how long it may be used."""
        return TTL in members_of(self.result)

    @cached_property
    def params_structs(self) -> frozenset[StructType]:
        """The Structs that its params may be."""
        return structs_of(self.params)

    @cached_property
    def result_structs(self) -> frozenset[StructType]:
        """The Structs that its result may be."""
        return structs_of(self.result)

    @cached_property
    def decode_result(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the result, by the letter of the schema.

        A connection decodes results with `lenient.result_decoder` instead.
        """
        return decoder(self.result)
