"""Strict decoding: what decodes is what the schema of its revision allows, and nothing else.

Types alone allow more: null for absence, an absent constant, any member in a map. So a value is
checked by the definitions of the schema, which its type has as `__definitions__`, and then decoded
by the type. The checks of a definition are made when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import ge, gt, le, lt
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin

from ._extra_members import kept_members, with_kept_members
from ._structs import STRUCTS, Raw, ValidationError
from ._structs import Untagged as _Untagged
from ._structs import convert as _convert
from ._structs import decoder as _decoder
from ._unions import UntaggedType, Variant, format_text, is_many, is_object

if TYPE_CHECKING:
    from typing_extensions import TypeForm  # type checkers have it built in

T = TypeVar("T")

Check: TypeAlias = Callable[[Any], None]
"""Raises `Mismatch` for a JSON value that a schema does not allow."""

_OBJECTS = (*STRUCTS, _Untagged)
_decode_any = _decoder(Any)

_NAMES = {
    "array": "array",
    "boolean": "bool",
    "integer": "int",
    "null": "null",
    "number": "float",
    "object": "object",
    "string": "str",
}
"""The types of JSON Schema, as errors name them."""

_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (ge, ">="),
    "maximum": (le, "<="),
    "exclusiveMinimum": (gt, ">"),
    "exclusiveMaximum": (lt, "<"),
}
_LENGTHS: Mapping[str, tuple[Any, Callable[[Any, Any], bool], str]] = {
    "minLength": (str, ge, ">="),
    "maxLength": (str, le, "<="),
    "minItems": ((list, tuple), ge, ">="),
    "maxItems": ((list, tuple), le, "<="),
    "minProperties": (Mapping, ge, ">="),
    "maxProperties": (Mapping, le, "<="),
}
"""Keywords that bound numbers and lengths: the operator that has to hold, and its sign."""


class Mismatch(ValueError):
    """A value differs from its schema.

    Attributes:
        path: The steps to the place, innermost first.
        tells: Whether a constant differs, which tells the members of a union apart.
    """

    def __init__(self, reason: str, *path: str, tells: bool = False) -> None:
        super().__init__(reason)
        self.path = [*path]
        self.tells = tells

    def error(self) -> ValidationError:
        """The error for the caller of a decoder."""
        place = "".join(reversed(self.path))
        return ValidationError(f"{self} - at `${format_text(place)}`" if place else str(self))


class Untagged(_Untagged):
    """A union without a tag: a value belongs to the first member that allows it.

    Members whose tests the value passes come first, since others may allow it too. A value that the
    package builds may belong to none: its tests decide alone.
    """

    @classmethod
    def decode(cls, value: Any, decode_as: Callable[[Any, Any], Any]) -> Any:
        """Decode a JSON value as that member; see `UntaggedType.decode`."""
        for variant in sorted(cls.variants, key=lambda each: not _passes(each, value)):
            check = _check_of(variant.type)
            try:
                if check is not None:
                    check(value)
            except Mismatch:
                continue
            return decode_as(value, variant.type)
        return UntaggedType.decode(cls, value, decode_as)


def _passes(variant: Variant, value: Any) -> bool:
    return is_object(value) and variant.fits(value)


def decoder(kind: TypeForm[T], *, extra: bool = False) -> Callable[[bytes | Raw], T]:
    """The decoder of a type, created once.

    Args:
        kind: The type: a model, a union of models, or any type of JSON data.
        extra: Whether objects keep the members that their types do not have, as `extra`.

    Raises:
        ValidationError: (from the decoder) The schema does not allow the JSON; the text has the
            path.
        DecodeError: (from the decoder) The bytes are not JSON.
    """
    any_kind: Any = kind  # a type is a key
    return _checking_decoder(any_kind, extra)


@lru_cache(maxsize=1024)
def _checking_decoder(kind: Any, extra: bool) -> Callable[[bytes | Raw], Any]:
    check = _check_of(kind)
    decode = _decoder(kind)
    is_untagged = isinstance(kind, UntaggedType)  # its decoder would try a member before the tests
    keep = kept_members(kind, extra)
    if check is None and keep is None:
        return decode

    def decode_strictly(data: bytes | Raw) -> Any:
        wire = _decode_any(data)
        _apply(check, wire)
        value = _convert(wire, kind) if is_untagged else decode(data)
        return value if keep is None else with_kept_members(value, wire, keep)

    return decode_strictly


def convert(value: Any, kind: TypeForm[T], *, extra: bool = False) -> T:
    """Turn decoded JSON (dicts, lists, scalars) into a type.

    Args:
        value: The JSON value; objects of models in it count as valid.
        kind: The type.
        extra: Whether objects keep the members that their types do not have, as `extra`; otherwise
            these are dropped.

    Raises:
        ValidationError: The schema does not allow the value; the text has the path.
    """
    any_kind: Any = kind
    _apply(_check_of(any_kind), value)
    return convert_leniently(value, kind, extra=extra)


def convert_leniently(value: Any, kind: TypeForm[T], *, extra: bool = False) -> T:
    """`convert` for values that the package builds, in which constants may be absent."""
    converted: T = _convert(value, kind)
    hashable: Any = kind
    keep = kept_members(hashable, extra)
    if keep is None:
        return converted
    kept: T = with_kept_members(converted, value, keep)
    return kept


def _apply(check: Check | None, value: Any) -> None:
    try:
        if check is not None:
            check(value)
    except Mismatch as mismatch:
        raise mismatch.error() from None
    except RecursionError as error:
        raise ValidationError("nested too deep") from error


@lru_cache(maxsize=4096)
def _check_of(kind: Any) -> Check | None:
    """The check of the values of a type; `None` if its decoder accepts what the schema allows."""
    if isinstance(kind, type) and (definition := _definition_of(kind)) is not None:
        return definition
    if isinstance(kind, UntaggedType):
        parts = tuple(variant.type for variant in kind.variants)
        return _check_alternatives([_check_of(part) or _accept for part in parts])
    parts = tuple(_alternatives(kind))
    if parts != (kind,):
        return _check_union(parts)
    if get_origin(kind) not in (list, dict):
        return None
    part = get_args(kind)[-1]
    inner = _check_of(part)
    if get_origin(kind) is dict:
        takes_null = {Any, NoneType, None}.intersection(_alternatives(part))
        return _check_values_of_map(inner, bool(takes_null))
    return None if inner is None else _check_items(inner)


def _check_values_of_map(inner: Check | None, takes_null: bool) -> Check | None:
    """The check of a map, where null would be absence to a decoder that is lenient."""
    if takes_null:
        return None if inner is None else _check_object({}, (), inner)

    def check(value: Any) -> None:
        if value is None:
            raise Mismatch("Expected a value, got `null`")
        if inner is not None:
            inner(value)

    return _check_object({}, (), check)


def _alternatives(kind: Any) -> Iterator[Any]:
    """The members of a union, those of unions, aliases and annotated types in it included."""
    if hasattr(kind, "__value__"):  # a named alias
        yield from _alternatives(kind.__value__)
    elif get_origin(kind) is Annotated:
        yield from _alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for part in get_args(kind):
            yield from _alternatives(part)
    else:
        yield kind


def _check_union(parts: Sequence[Any]) -> Check | None:
    """The check of a union of types, of which those of scalars need none."""
    arrays = [_check_of(part) or _accept for part in parts if get_origin(part) is list]
    objects = [
        _check_of(part) or _accept
        for part in parts
        if get_origin(part) is dict or (isinstance(part, type) and issubclass(part, _OBJECTS))
    ]
    if {*arrays, *objects} <= {_accept}:
        return None
    check_array, check_object = _check_alternatives(arrays), _check_alternatives(objects)

    def check(value: Any) -> None:
        if arrays and is_many(value):
            check_array(value)
        elif objects and is_object(value):
            check_object(value)

    return check


def _definition_of(kind: type) -> Check | None:
    """The check by the definition of a model, or of a class derived from it."""
    nodes: Mapping[str, Any] | None = getattr(kind, "__definitions__", None)
    if nodes is None:
        return None
    definitions = _made.setdefault(id(nodes), Definitions(nodes))
    bases = (kind,) if isinstance(kind, UntaggedType) else kind.__mro__
    names = (base.__name__ for base in bases if base.__name__ in nodes)
    return next((definitions.refer(name) for name in names), None)


def _accept(_: Any) -> None:
    """Accept any value."""


def _refuse(value: Any) -> None:
    raise Mismatch(f"Expected no value, got `{_name_of(value)}`")


class Definitions:
    """The definitions of a schema, with the checks that were made of them.

    Args:
        nodes: The definitions by name. A reference is a name, or a JSON pointer below `$defs`.
    """

    def __init__(self, nodes: Mapping[str, Any]) -> None:
        self._nodes = nodes
        self._made: dict[str, Check] = {}

    def refer(self, reference: str) -> Check:
        """The check by a definition, which may refer to itself."""

        def check(value: Any) -> None:
            made = self._made.get(reference)
            if made is None:
                made = self._made[reference] = self._make(self._node(reference))
            if not isinstance(value, STRUCTS):
                made(value)

        return check

    def _node(self, reference: str) -> Any:
        node: Any = self._nodes
        for step in reference.split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            node = node[int(name) if is_many(node) else name]
        return node

    def _make(self, node: Any) -> Check:
        """The check by a schema."""
        if not is_object(node):
            return _refuse if node is False else _accept
        checks = [*self._keyword_checks(node)]
        if len(checks) < 2:
            return checks[0] if checks else _accept

        def check_all(value: Any) -> None:
            for check in checks:
                check(value)

        return check_all

    def _keyword_checks(self, node: Mapping[str, Any]) -> Iterator[Check]:
        if "$ref" in node:
            yield self.refer(node["$ref"].split("/", 2)[2])
        if "type" in node:
            yield _check_type(node["type"] if is_many(node["type"]) else [node["type"]])
        if "const" in node:
            yield _check_values([node["const"]])
        if "enum" in node:
            yield _check_values(node["enum"])
        if node.keys() & {"properties", "required", "additionalProperties"}:
            members = {name: self._make(each) for name, each in node.get("properties", {}).items()}
            others = self._make(node.get("additionalProperties", True))
            yield _check_object(members, node.get("required", ()), others)
        if is_object(node.get("items")):
            yield _check_items(self._make(node["items"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                yield self._alternatives(node[keyword])
        yield from map(self._make, node.get("allOf", ()))
        yield from (_check_bound(word, node[word]) for word in _BOUNDS if word in node)
        yield from (_check_length(word, node[word]) for word in _LENGTHS if word in node)

    def _alternatives(self, nodes: Sequence[Any]) -> Check:
        """The check of a union: by the constant that differs in all members, if there is one."""
        checks = [self._make(node) for node in nodes]
        constants = [self._constants(node) for node in nodes]
        for name in constants[0] if constants else ():
            values = [each.get(name) for each in constants]
            tagged = {tag: check for tag, check in zip(values, checks, strict=True) if tag}
            if len(tagged) == len(checks):
                return _check_tagged(name, tagged)
        return _check_alternatives(checks)

    def _constants(self, node: Any) -> dict[str, Any]:
        """The texts that required members of a schema are."""
        if is_object(node) and "$ref" in node:
            node = self._node(node["$ref"].split("/", 2)[2])
        if not is_object(node):
            return {}
        members: Mapping[str, Any] = node.get("properties", {})
        constants = {
            name: member["const"]
            for name, member in members.items()
            if is_object(member) and isinstance(member.get("const"), str)
        }
        return {name: constants[name] for name in node.get("required", ()) if name in constants}


def _check_type(kinds: Sequence[str]) -> Check:
    expected = " | ".join(_NAMES[kind] for kind in kinds)
    allowed = {*kinds, "integer"} if "number" in kinds else {*kinds}

    def check(value: Any) -> None:
        kind = _kind_of(value)
        if kind not in allowed and not (
            kind == "number" and "integer" in allowed and value.is_integer()
        ):
            raise Mismatch(f"Expected `{expected}`, got `{_NAMES[kind]}`")

    return check


def _kind_of(value: Any) -> str:
    """The type of a JSON value in JSON Schema."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if is_many(value) else "object"


def _name_of(value: Any) -> str:
    return _NAMES[_kind_of(value)]


def _check_values(allowed: Sequence[Any]) -> Check:
    def check(value: Any) -> None:
        if not any(value == each and (value is each or _alike(value, each)) for each in allowed):
            came = repr(value) if isinstance(value, str) else f"`{_name_of(value)}`"
            raise Mismatch(f"Invalid enum value {format_text(came)}", tells=True)

    return check


def _alike(value: Any, other: Any) -> bool:
    """Whether two equal values are equal as JSON, where `true` is no number."""
    return isinstance(value, bool) == isinstance(other, bool)


def _check_object(members: Mapping[str, Check], required: Sequence[str], others: Check) -> Check:
    def check(value: Any) -> None:
        if not is_object(value):
            return
        for name, member in value.items():
            try:
                members.get(name, others)(member)
            except Mismatch as mismatch:
                mismatch.path.append(f".{name}")
                raise
        for name in required:
            if name not in value:
                raise Mismatch(f"Object missing required field `{format_text(name)}`")

    return check


def _check_items(inner: Check) -> Check:
    def check(value: Any) -> None:
        if is_many(value):
            for at, item in enumerate(value):
                try:
                    inner(item)
                except Mismatch as mismatch:
                    mismatch.path.append(f"[{at}]")
                    raise

    return check


def _check_bound(keyword: str, bound: float) -> Check:
    holds, sign = _BOUNDS[keyword]

    def check(value: Any) -> None:
        if _kind_of(value) in ("integer", "number") and not holds(value, bound):
            raise Mismatch(f"Expected `{_name_of(value)}` {sign} {bound}")

    return check


def _check_length(keyword: str, bound: int) -> Check:
    of, holds, sign = _LENGTHS[keyword]

    def check(value: Any) -> None:
        length = len(value) if isinstance(value, of) else bound
        if not holds(length, bound):
            raise Mismatch(f"Expected `{_name_of(value)}` of length {sign} {bound}")

    return check


def _check_alternatives(checks: Sequence[Check]) -> Check:
    def check(value: Any) -> None:
        failed: list[Mismatch] = []
        for each in checks:
            try:
                return each(value)
            except Mismatch as mismatch:
                failed.append(mismatch)
        raise _closest(failed)

    return check


def _closest(failed: Sequence[Mismatch]) -> Mismatch:
    """The error of the member of a union that was most likely meant."""
    return max(failed, key=lambda each: (not each.tells, len(each.path)))


def _check_tagged(name: str, checks: Mapping[str, Check]) -> Check:
    def check(value: Any) -> None:
        if not is_object(value):
            raise Mismatch(f"Expected `object`, got `{_name_of(value)}`")
        if name not in value:
            raise Mismatch(f"Object missing required field `{name}`")
        tag = value[name]
        chosen = checks.get(tag) if isinstance(tag, str) else None
        if chosen is None:
            raise Mismatch(f"Invalid value {format_text(repr(tag))}", f".{name}", tells=True)
        chosen(value)

    return check


_made: dict[int, Definitions] = {}
"""The checks of each schema, by the identity of its definitions, which modules hold."""
