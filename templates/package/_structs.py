"""The models as msgspec Structs, and JSON in and out.

An optional member that is absent is `None`; where null is a value of its own, it is `UNSET`. A
value that JSON can't express raises `EncodingError`, and so do numbers for which msgspec writes
null.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import repeat
from types import MappingProxyType, new_class
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET as UNSET
from msgspec import DecodeError as DecodeError
from msgspec import Raw as Raw
from msgspec import UnsetType as UnsetType
from msgspec import ValidationError as ValidationError

from ._unions import (
    UntaggedType,
    Variant,
    format_text,
    is_many,
    is_object,
    is_tolerant,
    with_integers,
    without_null,
)

EXTRA = f"extra {os.urandom(8).hex()}"
"""Wire name of the field for extra members. No peer can guess it; it never leaves the process."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding bytes that are not JSON, or JSON of another form than expected."""

_SHORT = 1024
"""Longest JSON, in bytes, in which the search for null costs less than `_pack`."""

_find_null = re.compile(rb"null").search

UNWRITABLE = (
    msgspec.MsgspecError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Exceptions of encoding a value, or of converting it to plain dicts, if it has no JSON form."""

# How MessagePack writes a number that is not finite; no text in UTF-8 has these bytes in a row.
_FLOAT, _NOT_FINITE = b"\xcb", re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")

create: Callable[..., Any] = msgspec.StructMeta.__call__
"""Makes an object of a class from members by their Python names, without other spellings."""

STRUCTS = (msgspec.Struct,)
"""The classes whose objects are objects on the wire."""

StructType: TypeAlias = type[msgspec.Struct]
"""A class derived from one of `STRUCTS`."""

fields = msgspec.structs.fields
"""The members of a Struct: `name`, `encode_name` (on the wire), `type`, `default`, `required`."""

replace = msgspec.structs.replace
"""A copy of an object with some members changed."""

asdict = msgspec.structs.asdict
"""The members of an object by Python name; nested objects stay as they are."""

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
    MessageType = msgspec.StructMeta
else:
    _create = msgspec.StructMeta.__call__

    class MessageType(msgspec.StructMeta):
        """The metaclass of messages; decoding does not call it.

        A constant member, such as `type`, may be passed, and keywords may be names on the wire:
        `ImageContent(type="image", data="...", mimeType="image/png")`.
        """

        def __call__(self, *args: Any, **members: Any) -> Any:
            """Create an object with these members.

            Raises:
                TypeError: The class does not have a member, or a required member is missing.
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
    """The default of a member that is sent even if the caller omits it.

    Args:
        name: Wire name of the member, if it differs from the Python name.
    """
    same = repeat(value).__next__  # called for each object, and costs no frame
    default: T = msgspec.field(default_factory=same, name=name)
    return default


class EncodingError(ValueError):
    """A value has no JSON form; the text names the part that has none."""


def error_text(error: Exception) -> str:
    """The text of an error of msgspec, shortened: the error quotes data of the peer."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    what, at, path = str(error).rpartition(" - at `")
    return f"{format_text(what)}{at}{format_text(path)}"


def is_null(value: Raw) -> bool:
    """Whether raw JSON is null."""
    return memoryview(value)[0] == ord("n")


def _decode_untagged(kind: type[Any], value: Any) -> Any:
    """Decode a JSON value as a member of a union without a tag.

    Raises:
        ValueError: The value fits no member, or breaks a rule of the member that it fits. (msgspec
            adds the path of the value to a ValueError, but not to a ValidationError.)
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
"""`encode` without its checks: raises `UNWRITABLE`, and writes null for NaN and infinities.

Extra members alone raise a TypeError, too: see `_write_extra`.
"""


def _write_extra(value: Any) -> bytes:
    """Encode a value that may have extra members; they follow the other members of their object."""
    data: bytes = _encoder_of_extra.encode(value)
    return data.replace(b'"%b":0,' % EXTRA.encode(), b"")


def _encode_extra(value: Any) -> Raw:
    """The JSON of extra members, at least one: a placeholder value, and then the members."""
    if isinstance(value, ExtraMembers):
        return Raw(b"0," + encode(value.members)[1:-1])
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


_encoder_of_extra = msgspec.json.Encoder(enc_hook=_encode_extra)


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
    """Encode as `encode` does, but raise `UNWRITABLE`: the exceptions of msgspec."""
    try:
        data = _write(value)
    except TypeError:
        data = _write_extra(value)
    if len(data) > _SHORT or _find_null(data) is not None:
        _check_finite(value)
    return data


def _encode_as_null(raw: Any) -> None:
    """Encode raw JSON and extra members as null: they were checked when they were encoded."""


_pack: Callable[[Any], bytes] = msgspec.msgpack.Encoder(enc_hook=_encode_as_null).encode
"""Shows numbers that are not finite; for long JSON in less time than a search for null takes."""


def _check_finite(value: Any) -> None:
    """Refuse NaN and the infinities, for which msgspec writes null.

    Raises:
        ValueError: The value holds such a number; the text has the number and its path.
    """
    try:
        packed = _pack(value)
        if _FLOAT not in packed or _NOT_FINITE.search(packed) is None:
            return
    except OverflowError:  # an integer that only JSON can express
        pass
    left: list[tuple[str, Any]] = [("$", msgspec.to_builtins(value, enc_hook=_encode_as_null))]
    while left:
        path, item = left.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"{item} - at `{format_text(path)}`")
        if is_object(item):
            left += [(f"{path}.{format_text(str(name))}", member) for name, member in item.items()]
        elif is_many(item):
            left += [(f"{path}[{at}]", member) for at, member in enumerate(item)]


@lru_cache(maxsize=1024)
def decoder(kind: Any) -> Callable[[bytes | Raw], Any]:
    """The decoder of a type; see `_wire.decoder`."""
    if isinstance(kind, UntaggedType):
        return _untagged_decoder(kind)
    decode: Callable[[bytes | Raw], Any] = msgspec.json.Decoder(
        kind, dec_hook=_decode_untagged
    ).decode
    if not is_tolerant(kind, _types_of):
        return decode

    def decode_tolerantly(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except ValidationError as error:
            if not _is_tolerable(error):
                raise
        return convert(msgspec.json.decode(data), kind)

    return decode_tolerantly


def _untagged_decoder(kind: Any) -> Callable[[bytes | Raw], Any]:
    """A decoder for a whole message that is a union without a tag.

    The first plain member, which has no constants, is tried first unless a constant of the members
    before it occurs in the JSON: only such a constant makes a message one of them.
    """
    signs = [b"\\u"]  # an escape may spell any of the constants
    plain: Callable[[bytes | Raw], Any] | None = None
    for variant in kind.variants:
        if not variant.consts and not variant.inner:
            plain = decoder(variant.type)
            break
        constants = [value for values in variant.consts.values() for value in values]
        if not constants or not all(isinstance(each, str) for each in constants):
            break
        signs += [encode(each) for each in constants]

    def decode(data: bytes | Raw) -> Any:
        text = bytes(data)
        if plain is not None:
            for sign in signs:
                if sign in text:
                    break
            else:
                try:
                    return plain(data)
                except ValidationError:  # another member, or the error lists the members
                    pass
        return convert(msgspec.json.decode(data), kind)

    return decode


def convert(value: Any, kind: Any) -> Any:
    """Turn decoded JSON into a type; see `_wire.convert`.

    Raises:
        ValidationError: The value has another shape, or no JSON form; the text has the path.
    """
    try:
        try:
            return msgspec.convert(value, kind, dec_hook=_decode_untagged)
        except ValidationError as error:
            if not _is_tolerable(error):
                raise
        tolerated = without_null(with_integers(value), kind, _members_of)
        return msgspec.convert(tolerated, kind, dec_hook=_decode_untagged)
    except ValidationError:
        raise
    except UNWRITABLE as error:  # half of a surrogate pair, nesting without end
        raise ValidationError(f"no JSON form: {error_text(error)}") from error


def to_builtins(value: Any) -> Any:
    """Turn Structs, nested ones included, into dicts with wire names."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:  # there may be extra members
        return msgspec.json.decode(_write_extra(value))


class Untagged(metaclass=UntaggedType):
    """Base of the run-time stand-ins for unions without a tag.

    Type checkers see the union itself; msgspec sees an unknown type and calls its hook.
    """

    variants: ClassVar[tuple[Variant, ...]] = ()


def _is_tolerable(error: ValidationError) -> bool:
    """Whether the JSON may be valid as JSON Schema counts integers, or without null in a map."""
    text = str(error)
    return "got `float`" in text or "got `null`" in text


def _members_of(kind: Any, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The type of each member by wire name; `None` if the object is no such Struct."""
    types = _types_of(kind)
    tag = None if types is None else tag_of(kind)
    return types if tag is None or value.get(tag[0], tag[1]) == tag[1] else None


@lru_cache(maxsize=4096)
def _types_of(kind: Any) -> Mapping[str, Any] | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {field.encode_name: field.type for field in fields(kind)}
    return None


def constant_of(kind: StructType, name: str) -> Any:
    """The value of a member that is constant, by Python name; `UNSET` for any other name."""
    return getattr(kind, name, UNSET)


def tag_of(kind: StructType) -> tuple[str, str] | None:
    """Wire name and value of the constant that identifies a Struct; `None` without a constant."""
    config = kind.__struct_config__
    return None if config.tag_field is None else (config.tag_field, str(config.tag))


builtins_without_extra = msgspec.to_builtins
"""Turn Structs into dicts with wire names; raises a TypeError for objects with extra members."""


class ExtraMembers(Mapping[str, Any]):
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
    return msgspec.to_builtins(value, enc_hook=_dict_of_extra)


def _dict_of_extra(value: Any) -> dict[str, Any]:
    if isinstance(value, ExtraMembers):
        return dict(value)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


@cache
def known_names(kind: StructType) -> frozenset[str | None]:
    """Wire names of the fields of a Struct, and of its tag."""
    names = (field.encode_name for field in fields(kind))
    return frozenset((*names, kind.__struct_config__.tag_field))


def with_extra_members(
    value: Struct, changed: Mapping[str, Any], extra: Mapping[str, Any]
) -> msgspec.Struct:
    """A copy of an object with some members replaced, and with extra members (at least one)."""
    members = asdict(value)
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
        return _restored, (kind, asdict(self))

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
