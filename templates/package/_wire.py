"""What the modules of a revision are built on: models, JSON in and out, rows of method tables.

msgspec reads and writes JSON. An optional member that is absent is `None`; where null is a value of
its own, it is `UNSET`. A union whose members have no tag is a class derived from `Untagged` at run
time; it names the member by what a value contains. A value that JSON can't express raises
`EncodingError`, also the numbers for which msgspec writes null.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec
from msgspec import UNSET, Raw, UnsetType, ValidationError

from .method_facts import UNSTATED, MethodFacts

__all__ = [
    "EXTRA",
    "TTL",
    "UNREADABLE",
    "UNSET",
    "UNWRITABLE",
    "EncodingError",
    "Method",
    "Raw",
    "Role",
    "Spliced",
    "Struct",
    "UnsetType",
    "Untagged",
    "ValidationError",
    "Variant",
    "always_sent",
    "convert",
    "decoder",
    "encode",
    "encode_finite",
    "error_text",
    "extended",
    "is_many",
    "is_object",
    "members_of",
    "structs_of",
    "to_builtins",
]

EXTRA = f"extra {os.urandom(8).hex()}"
"""Wire name of the field for extra members. No peer can guess it; it never leaves the process."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises when bytes are no JSON, or none of the expected form."""

_SHORT = 1024
"""Bytes of JSON in which a null is found as quickly as in anything else that could be searched."""

_find_null = re.compile(rb"null").search
"""Finds a null in JSON: quicker than `in`, also in what is short."""

_TEXT = 300  # characters of what msgspec says, and of the place that it names

UNWRITABLE = (
    msgspec.MsgspecError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What encoding, or making plain dicts, raises for a value that has no JSON form."""

Role: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""

TTL = "ttlMs"
"""Wire name of the milliseconds for which a result may be used again."""

# How MessagePack writes a number that is not finite; no text in UTF-8 has these bytes in a row.
_FLOAT, _NOT_FINITE = b"\xcb", re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")

# Bytes of JSON, and the signs of small values in them: more than a long text has.
_SAMPLE, _QUOTES, _COMMAS = 1024, 20, 60


T = TypeVar("T")


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
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
    """What msgspec says of a failure, within bounds: its texts quote what a peer sent."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    what, at, path = str(error).rpartition(" - at `")
    return f"{_shown(what)}{at}{_shown(path)}"


def _shown(text: str) -> str:
    """A text on one line, cut. (`foreign_text` is no part of a package with types alone.)"""
    cut = text[:_TEXT]
    safe = cut if cut.isprintable() else ascii(cut)[1:-1]
    return safe if len(text) <= _TEXT else f"{safe}... ({len(text)} characters)"


class Variant(NamedTuple):
    """One member of an untagged union, and what a JSON object must hold to be it.

    Attributes:
        type: The member.
        required: Wire names that must be present.
        consts: Wire name to the values it may have; an absent name fails the test.
        inner: Wire name to what the object under it must hold.
    """

    type: Any
    required: tuple[str, ...] = ()
    consts: Mapping[str, tuple[Any, ...]] = {}
    inner: Mapping[str, tuple[str, ...]] = {}

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Whether the object has all that the schema requires of this member."""
        for name in self.required:
            if name not in value:
                return False
        for name, allowed in self.consts.items():
            if value.get(name) not in allowed:
                return False
        return all(_holds(value.get(name), names) for name, names in self.inner.items())


def _holds(value: Any, names: tuple[str, ...]) -> bool:
    return is_object(value) and all(name in value for name in names)


class UntaggedType(type):
    """The type of unions without a tag: it decides which member a value is."""

    variants: tuple[Variant, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a value is a member, which msgspec asks of what a hook returns."""
        return any(
            isinstance(instance, variant.type)
            for variant in cls.variants
            if isinstance(variant.type, type)
        )

    def decide(cls, value: Any) -> Any:
        """Convert a decoded JSON value into the member it fits.

        Raises:
            ValueError: It fits none, or breaks a rule of the one it fits. (To this, and not to a
                ValidationError, msgspec adds where in the message the value stands.)
        """
        if is_object(value):
            for variant in cls.variants:
                if variant.fits(value):
                    try:
                        return convert(value, variant.type)
                    except ValidationError as error:
                        raise ValueError(error_text(error)) from None
        raise ValueError(f"Expected one of {cls.names()}, got {_shape(value)}")

    def names(cls) -> str:
        """The members by name, for error texts."""
        return ", ".join(getattr(v.type, "__name__", str(v.type)) for v in cls.variants)


class Untagged(metaclass=UntaggedType):
    """Base of the run-time stand-ins for unions without a tag.

    Type checkers see the union itself; msgspec sees a type it does not know and asks `decide`.
    """

    variants: ClassVar[tuple[Variant, ...]] = ()


def extended(kind: Any, *variants: Variant) -> Any:
    """A union of a type with further objects, whose tests come first."""
    base = kind.variants if isinstance(kind, UntaggedType) else (Variant(kind),)
    return UntaggedType("Extended", (Untagged,), {"variants": (*variants, *base)})


def _shape(value: Any) -> str:
    if is_object(value):
        return "an object with " + (_shown(", ".join(sorted(value))) or "no members")
    return f"`{type(value).__name__}`"


def _decode_untagged(kind: type[Any], value: Any) -> Any:
    if isinstance(kind, UntaggedType):
        return value if isinstance(value, msgspec.Struct) else kind.decide(value)
    raise NotImplementedError(f"no JSON form is known for {kind!r}")


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
            raise ValueError(f"{item} - at `{_shown(path)}`")
        if is_object(item):
            left += [(f"{path}.{_shown(str(name))}", member) for name, member in item.items()]
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
    return decode


def _untagged_decoder(kind: UntaggedType) -> Callable[[bytes | Raw], Any]:
    """A decoder for a whole message that is a union without a tag.

    It reads the members that the tests look at, then the message once more as what it is: that is
    quicker than to make dicts of all of it first.
    """
    tests = kind.variants
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
        found = zip(names, msgspec.structs.astuple(look(data)), strict=True)
        seen = {name: value for name, value in found if value is not UNSET}
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


def members_of(kind: Any) -> frozenset[str]:
    """Wire names of the members of a Struct, or of all members of a union without a tag."""
    if isinstance(kind, UntaggedType):
        return frozenset(name for each in kind.variants for name in members_of(each.type))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return frozenset(field.encode_name for field in msgspec.structs.fields(kind))
    return frozenset()


def structs_of(kind: Any) -> frozenset[type[msgspec.Struct]]:
    """The Structs that a value of a type may be."""
    if isinstance(kind, UntaggedType):
        return frozenset(each for variant in kind.variants for each in structs_of(variant.type))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return frozenset({kind})
    if get_origin(kind) in (Union, UnionType):
        return frozenset(each for member in get_args(kind) for each in structs_of(member))
    return frozenset()


def convert(value: Any, kind: Any) -> Any:
    """Turn decoded JSON (dicts, lists, scalars) into `kind`.

    Members that `kind` does not have fall away.

    Raises:
        ValidationError: The value has another shape; the text has the path.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_decode_untagged)
    except ValidationError:
        raise
    except UNWRITABLE as error:  # half of a surrogate pair, nesting without end
        raise ValidationError(f"no JSON form: {error_text(error)}") from error


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether decoded JSON is an object."""
    return isinstance(value, (dict, Mapping))  # what it nearly always is comes first: it is quicker


def is_many(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list or a tuple."""
    return isinstance(value, list | tuple)


def to_builtins(value: Any) -> Any:
    """Turn Structs into dicts with wire names, all the way down."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:  # there may be extra members
        return msgspec.json.decode(_write_extra(value))


class Method(msgspec.Struct, frozen=True, eq=False, kw_only=True, dict=True):
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
        return {field.name: field.encode_name for field in msgspec.structs.fields(self.params)}

    @cached_property
    def optional(self) -> frozenset[str]:
        """Python names of the params that are `None` where they are absent."""
        if self.params is None:
            return frozenset()
        fields = msgspec.structs.fields(self.params)
        return frozenset(field.name for field in fields if field.default is None)

    @cached_property
    def default_params(self) -> Mapping[str, Any]:
        """Required params, by wire name, that the connection fills in: `_meta`, or none."""
        if self.params is None:
            return {}
        fields = msgspec.structs.fields(self.params)
        return {"_meta": {}} if any(f.required and f.name == "meta" for f in fields) else {}

    @cached_property
    def decode_params(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the params."""
        return decoder(self.params)

    @cached_property
    def cacheable(self) -> bool:
        """Whether its result says for how long it may be used."""
        return TTL in members_of(self.result)

    @cached_property
    def params_structs(self) -> frozenset[type[msgspec.Struct]]:
        """The Structs that its params may be."""
        return structs_of(self.params)

    @cached_property
    def result_structs(self) -> frozenset[type[msgspec.Struct]]:
        """The Structs that its result may be."""
        return structs_of(self.result)

    @cached_property
    def decode_result(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the result, by the letter of the schema.

        A connection decodes results with `lenient.result_decoder` instead.
        """
        return decoder(self.result)
