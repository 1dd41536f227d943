"""The models as msgspec Structs, and JSON in and out.

An optional member that is absent is `None`; where null is a value of its own, it is `UNSET`. A
value that JSON can't express raises `EncodingError`, and so do numbers for which msgspec writes
null.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType, ValidationError

from ._unions import (
    UntaggedType,
    Variant,
    has_integers,
    is_many,
    is_object,
    shown,
    with_integers,
)

__all__ = [
    "EXTRA",
    "STRUCTS",
    "UNREADABLE",
    "UNSET",
    "UNWRITABLE",
    "EncodingError",
    "MessageType",
    "Raw",
    "Spliced",
    "Struct",
    "StructType",
    "UnsetType",
    "Untagged",
    "ValidationError",
    "always_sent",
    "asdict",
    "constant_of",
    "convert",
    "decoder",
    "encode",
    "encode_finite",
    "error_text",
    "fields",
    "replace",
    "tag_of",
    "to_builtins",
]

EXTRA = f"extra {os.urandom(8).hex()}"
"""Wire name of the field for extra members. No peer can guess it; it never leaves the process."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding bytes that are no JSON, or none of the expected form."""

_SHORT = 1024
"""Bytes of JSON in which a null is found as quickly as in anything else that could be searched."""

_find_null = re.compile(rb"null").search
"""Finds a null in JSON: quicker than `in`, also in what is short."""

UNWRITABLE = (
    msgspec.MsgspecError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Exceptions of encoding, or of making plain dicts, for a value that has no JSON form."""

# How MessagePack writes a number that is not finite; no text in UTF-8 has these bytes in a row.
_FLOAT, _NOT_FINITE = b"\xcb", re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")

_GOT_FLOAT = "got `float`"
"""Stands in the error for a number such as `1.0` where an integer is expected."""

# Bytes of JSON, and the signs of small values in them: more than a long text has.
_SAMPLE, _QUOTES, _COMMAS = 1024, 20, 60


STRUCTS = (msgspec.Struct,)
"""The classes whose objects are objects on the wire."""

StructType: TypeAlias = type[msgspec.Struct]
"""One of the classes derived from these."""

fields = msgspec.structs.fields
"""The members of a Struct: `name`, `encode_name` (on the wire), `type`, `default`, `required`."""

replace = msgspec.structs.replace
"""A copy of an object with some members changed."""

asdict = msgspec.structs.asdict
"""The members of an object by Python name, not those of objects within."""

T = TypeVar("T")


def _own_members(struct: type[msgspec.Struct], members: Mapping[str, Any]) -> dict[str, Any]:
    """Members by their Python names, without constants of the class."""
    own, config = struct.__struct_fields__, struct.__struct_config__
    names = dict(zip(struct.__struct_encode_fields__, own, strict=True))
    tag = (config.tag_field, config.tag)
    return {
        name if name in own else names.get(name, name): value
        for name, value in members.items()
        if name in own or (getattr(struct, name, UNSET) != value and (name, value) != tag)
    }


if TYPE_CHECKING:
    from msgspec import StructMeta as MessageType
else:
    _create = msgspec.StructMeta.__call__

    class MessageType(msgspec.StructMeta):
        """The type of classes of messages, which decoding does not pass through.

        A constant member, such as `type`, may be given, and a member may have its name on the wire:
        `ImageContent(type="image", data="...", mimeType="image/png")`.
        """

        def __call__(self, *args: Any, **members: Any) -> Any:
            """An object with these members.

            Raises:
                TypeError: The class has no such member, or requires another one.
            """
            try:
                return _create(self, *args, **members)
            except TypeError:
                own = _own_members(self, members)
                if own == members:
                    raise
            return _create(self, *args, **own)


class Struct(
    msgspec.Struct,
    metaclass=MessageType,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """An object of the protocol: members that are absent are neither sent nor shown."""

    extra: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Members that the schema does not have; empty unless they were asked for."""


def always_sent(value: T, *, name: str | None = None) -> T:
    """The default of a member that is sent even where it was not given.

    Args:
        name: Its wire name, where that differs.
    """
    default: T = msgspec.field(default_factory=lambda: value, name=name)
    return default


class EncodingError(ValueError):
    """A value has no JSON form; the text says what of it has none."""


def error_text(error: Exception) -> str:
    """The text of a failure by msgspec, within bounds: it quotes what a peer sent."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    what, at, path = str(error).rpartition(" - at `")
    return f"{shown(what)}{at}{shown(path)}"


def _decode_untagged(kind: type[Any], value: Any) -> Any:
    """The form of a JSON value that is to be a union without a tag.

    Raises:
        ValueError: It fits no member, or breaks a rule of the one it fits. (To this, and not to a
            ValidationError, msgspec adds where in the message the value stands.)
    """
    if not isinstance(kind, UntaggedType):
        raise NotImplementedError(f"no JSON form is known for {kind!r}")
    if isinstance(value, msgspec.Struct):
        return value
    try:
        return kind.decode(value, convert)
    except ValidationError as error:
        raise ValueError(error_text(error)) from None


_write: Callable[[Any], bytes] = msgspec.json.Encoder().encode
"""`encode` without its checks: raises `UNWRITABLE`, and writes null for what is not finite.

A TypeError may mean no more than that there are extra members: see `_write_extra`.
"""


class Spliced:
    """A value of the field `EXTRA`: at least one member, encoded among those of its object."""

    members: Mapping[str, Any]


def _write_extra(value: Any) -> bytes:
    """The same for a value that may have extra members: they follow the others of their object."""
    data: bytes = _encoder_of_extra.encode(value)
    return data.replace(b'"%b":0,' % EXTRA.encode(), b"")


def _splice(value: Any) -> Raw:
    """JSON that stands in the place of one value, and goes on with more members after it."""
    if isinstance(value, Spliced):
        return Raw(b"0," + encode(value.members)[1:-1])
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


_encoder_of_extra = msgspec.json.Encoder(enc_hook=_splice)


def encode(value: Any) -> bytes:
    """Encode to compact UTF-8 JSON without raw newlines; members that are absent are left out.

    Raises:
        EncodingError: The value has no JSON form: an object of an unknown type, a key that is no
            text, half of a surrogate pair, nesting without end, NaN or an infinity.
    """
    try:
        return encode_finite(value)
    except UNWRITABLE as error:
        raise EncodingError(f"no JSON form: {error_text(error)}") from error


def encode_finite(value: Any) -> bytes:
    """The same as `encode`, but raises `UNWRITABLE`: the exceptions of msgspec."""
    try:
        data = _write(value)
    except TypeError:
        data = _write_extra(value)
    if len(data) > _SHORT or _find_null(data) is not None:
        _check_finite(value, data)
    return data


def _check_finite(value: Any, data: bytes) -> None:
    """Refuse NaN and the infinities, for which msgspec writes null.

    A null is seldom one of them, and a long text takes longer to search than to write. So a few
    long texts are passed over one by one; where there are many values, a null is looked for, and
    then a float in their MessagePack form, which begins all of them alike.

    Args:
        value: What was encoded.
        data: Its JSON, which has a null or is longer than `_SHORT`.

    Raises:
        ValueError: There is one; the text says which, and where.
    """
    many = len(data) <= _SHORT or _has_many_values(data)
    if many and (_find_null(data) is None or _is_packed_finite(value)):
        return
    left: list[tuple[str, Any]] = [("$", msgspec.to_builtins(value, enc_hook=_no_value))]
    while left:
        path, item = left.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"{item} - at `{shown(path)}`")
        if is_object(item):
            left += [(f"{path}.{shown(str(name))}", member) for name, member in item.items()]
        elif is_many(item):
            left += [(f"{path}[{at}]", member) for at, member in enumerate(item)]


def _has_many_values(data: bytes) -> bool:
    """Whether JSON has many small values, rather than a few long texts, by a look at its middle."""
    sample = data[len(data) // 2 : len(data) // 2 + _SAMPLE]
    return sample.count(b'"') > _QUOTES or sample.count(b",") > _COMMAS


def _is_packed_finite(value: Any) -> bool:
    try:
        packed = _pack(value)
    except OverflowError:  # an integer that only JSON can express
        return False
    return _FLOAT not in packed or _NOT_FINITE.search(packed) is None


def _no_value(raw: Any) -> None:
    """Stands for what was encoded before, and has no numbers of the kind."""


_pack: Callable[[Any], bytes] = msgspec.msgpack.Encoder(enc_hook=_no_value).encode


@lru_cache(maxsize=1024)
def decoder(kind: Any) -> Callable[[bytes | Raw], Any]:
    """A decoder for one type, made once.

    Raises:
        ValidationError: (from the decoder) JSON of another shape; the text has the path.
        msgspec.DecodeError: (from the decoder) not JSON.
    """
    if isinstance(kind, UntaggedType):
        return _untagged_decoder(kind)
    decode: Callable[[bytes | Raw], Any] = msgspec.json.Decoder(
        kind, dec_hook=_decode_untagged
    ).decode
    if not has_integers(kind, _types_of):
        return decode

    def decode_with_integers(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except ValidationError as error:
            if _GOT_FLOAT not in str(error):
                raise
        return convert(msgspec.json.decode(data), kind)

    return decode_with_integers


def _untagged_decoder(kind: UntaggedType) -> Callable[[bytes | Raw], Any]:
    """A decoder for a whole message that is a union without a tag.

    It reads the members that the tests look at, then the message once more as what it is: that is
    quicker than to make dicts of all of it first.
    """
    tests = kind.variants
    if not all(variant.decides for variant in tests):
        return lambda data: convert(msgspec.json.decode(data), kind)
    values = {name for variant in tests for name in (*variant.consts, *variant.inner)}
    names = sorted(values.union(*(variant.required for variant in tests)))
    probe = msgspec.defstruct(
        "_Probe",
        [
            (
                f"at_{at}",
                Any if name in values else Raw | UnsetType,
                msgspec.field(name=name, default=UNSET),
            )
            for at, name in enumerate(names)
        ],
    )
    look = msgspec.json.Decoder(probe).decode

    def decode(data: bytes | Raw) -> Any:
        members = zip(names, msgspec.structs.astuple(look(data)), strict=True)
        seen = {name: value for name, value in members if value is not UNSET}
        for variant in tests:
            if variant.fits(seen):
                return decoder(variant.type)(data)
        return convert(msgspec.json.decode(data), kind)  # says what was expected

    return _likeliest_first(kind, decode)


def _likeliest_first(
    kind: UntaggedType, decode: Callable[[bytes | Raw], Any]
) -> Callable[[bytes | Raw], Any]:
    """The same decoder, quicker where one look tells that the first plain member is meant.

    A plain member is told by what it requires, so whatever decodes as it fits it. The members
    before it are told by texts; where none of those stands in the message, they are not meant.
    """
    signs = [b"\\u"]  # may spell any of the texts in another way
    for variant in kind.variants:
        if not variant.consts and not variant.inner:
            decode_plain = decoder(variant.type)
            break
        texts = [value for values in variant.consts.values() for value in values]
        if not texts or not all(isinstance(text, str) for text in texts):
            return decode
        signs += [encode(text) for text in texts]
    else:
        return decode

    def decode_likeliest(data: bytes | Raw) -> Any:
        text = bytes(data)
        for sign in signs:
            if sign in text:
                return decode(data)
        try:
            return decode_plain(data)
        except ValidationError:
            return decode(data)  # it is another, or says what is wrong

    return decode_likeliest


def convert(value: Any, kind: Any) -> Any:
    """Turn decoded JSON (dicts, lists, scalars) into `kind`.

    Members that `kind` does not have fall away.

    Raises:
        ValidationError: The value has another shape; the text has the path.
    """
    try:
        try:
            return msgspec.convert(value, kind, dec_hook=_decode_untagged)
        except ValidationError as error:
            if _GOT_FLOAT not in str(error):
                raise
        return msgspec.convert(with_integers(value), kind, dec_hook=_decode_untagged)
    except ValidationError:
        raise
    except UNWRITABLE as error:  # half of a surrogate pair, nesting without end
        raise ValidationError(f"no JSON form: {error_text(error)}") from error


def to_builtins(value: Any) -> Any:
    """Turn Structs into dicts with wire names, all the way down."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:  # there may be extra members
        return msgspec.json.decode(_write_extra(value))


class Untagged(metaclass=UntaggedType):
    """Base of the run-time stand-ins for unions without a tag.

    Type checkers see the union itself; msgspec sees a type it does not know and asks a hook.
    """

    variants: ClassVar[tuple[Variant, ...]] = ()


@lru_cache(maxsize=4096)
def _types_of(kind: Any) -> Mapping[str, Any] | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {field.encode_name: field.type for field in fields(kind)}
    return None


def constant_of(kind: StructType, name: str) -> Any:
    """The value of a member that is constant, by Python name; `UNSET` for any other name."""
    return getattr(kind, name, UNSET)


def tag_of(kind: StructType) -> tuple[str, str] | None:
    """Wire name and value of the constant that tells a Struct from others, if it has one."""
    config = kind.__struct_config__
    return None if config.tag_field is None else (config.tag_field, str(config.tag))
