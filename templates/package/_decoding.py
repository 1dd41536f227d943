"""Decoding of JSON by types: the functions that models, tables and users call.

`_structs` has the code that depends on the library of the models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ._extra_members import kept_members, with_kept_members
from ._structs import Raw
from ._structs import Untagged as Untagged
from ._structs import convert as _convert
from ._structs import decoder as _decoder

if TYPE_CHECKING:
    from typing_extensions import TypeForm  # type checkers have it built in

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
    any_kind: Any = kind  # a type is a key
    decode: Callable[[bytes | Raw], T] = _decoder(any_kind)
    keep = kept_members(any_kind, extra)
    if keep is None:
        return decode

    def decode_with_extra(data: bytes | Raw) -> T:
        kept: T = with_kept_members(decode(data), _decode_any(data), keep)
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
    hashable: Any = kind
    keep = kept_members(hashable, extra)
    if keep is None:
        return converted
    kept: T = with_kept_members(converted, value, keep)
    return kept


convert_leniently = convert
"""`convert` for values that the package builds: strict decoding is for those of peers."""
