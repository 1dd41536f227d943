"""The base of the modules of a revision: models, JSON encoding, rows of method tables.

`_structs` has the code that depends on the library of the models; `_unions` selects the member of a
union without a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from ._structs import STRUCTS as STRUCTS
from ._structs import UNREADABLE as UNREADABLE
from ._structs import UNSET as UNSET
from ._structs import UNWRITABLE as UNWRITABLE
from ._structs import DecodeError as DecodeError
from ._structs import EncodingError as EncodingError
from ._structs import Raw as Raw
from ._structs import Struct as Struct
from ._structs import StructType as StructType
from ._structs import UnsetType as UnsetType
from ._structs import Untagged as Untagged
from ._structs import ValidationError as ValidationError
from ._structs import always_sent as always_sent
from ._structs import asdict as asdict
from ._structs import convert as _convert
from ._structs import create as create
from ._structs import decoder as _decoder
from ._structs import encode as encode
from ._structs import error_text as error_text
from ._structs import fields as fields
from ._structs import known_names, with_extra_members
from ._structs import replace as _replace
from ._structs import tag_of as tag_of
from ._structs import to_builtins as to_builtins
from ._unions import UntaggedType, format_text
from ._unions import Variant as Variant
from ._unions import is_many as is_many
from ._unions import is_object as is_object
from .method_facts import UNSTATED, MethodFacts

if TYPE_CHECKING:
    from typing_extensions import TypeForm
    from typing_extensions import TypeVar as TypeVarWithDefault  # type checkers have it built in

Role: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""

Message = TypeVar("Message")
T = TypeVar("T")

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
    members = _member_names(message.__class__)
    if not changes.keys() <= members.keys():
        allowed = [*members, "extra"] if getattr(message, "extra", None) else members
        unknown = ", ".join(format_text(name) for name in changes if name not in allowed)
        if unknown:
            raise TypeError(
                f"replace: {_type_name(message)} has no member {unknown}; its members are "
                f"{', '.join(dict.fromkeys(allowed))}"
            )
    return _replace(message, **changes)


def _type_name(value: object) -> str:
    return type(value).__qualname__


@lru_cache(1024)
def _member_names(kind: StructType) -> dict[str, None]:
    """The Python names of the members of a type, in order."""
    return dict.fromkeys(field.name for field in fields(kind))


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
    any_kind: Any = kind  # a type is a key
    decode: Callable[[bytes | Raw], T] = _decoder(any_kind)
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
    converted: T = _convert(value, kind)
    if not extra:
        return converted
    kept: T = with_kept_members(converted, value, _all_members)
    return kept


def _all_members(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    return wire


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
