"""The base of the modules of a revision: models, JSON encoding, rows of method tables.

`_structs` has the code that depends on the library of the models, `_decoding` that of what decodes;
`_unions` selects the member of a union without a tag.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from ._decoding import Untagged as Untagged
from ._decoding import convert_leniently
from ._decoding import decoder as decoder
from ._extra_members import members_with_structs as members_with_structs
from ._extra_members import structs_in as structs_in
from ._extra_members import with_kept_members as with_kept_members
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
from ._structs import ValidationError as ValidationError
from ._structs import always_sent as always_sent
from ._structs import asdict as asdict
from ._structs import create as create
from ._structs import encode as encode
from ._structs import error_text as error_text
from ._structs import fields as fields
from ._structs import replace as _replace
from ._structs import tag_of as tag_of
from ._structs import to_builtins as to_builtins
from ._unions import UntaggedType, format_text
from ._unions import Variant as Variant
from ._unions import is_many as is_many
from ._unions import is_object as is_object
from .method_facts import UNSTATED, MethodFacts

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # type checkers have it built in

convert = convert_leniently

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
