"""Lenient decoding: malformed optional members are treated as absent; extra members are kept.

`extra_members` says what an object with extra members is; one without is an instance of its Struct.

Source: server/utilities/pagination, server/utilities/caching, basic/versioning (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import Raw

from .._wire import (
    STRUCTS,
    UNREADABLE,
    UNSET,
    Struct,
    StructType,
    ValidationError,
    convert,
    decoder,
    fields,
    is_many,
    is_object,
    replace,
    to_builtins,
)
from ..facts import TTL, Method, structs_of
from ..foreign_text import safe_text
from .extra_members import (
    EXTRA,
    builtins_with_extra,
    builtins_without_extra,
    known_names,
    with_extra_members,
)

NAMED_ITEMS = 10
"""Invalid items of one page that are logged one by one; further ones are counted."""

_SCOPE = "cacheScope"
_SCOPES = ("public", "private")

_logger = logging.getLogger(__name__)

Decode: TypeAlias = Callable[[bytes | Raw], Any]
DecoderOf: TypeAlias = Callable[[Any], Decode]
Convert: TypeAlias = Callable[[Any, Any], Any]


@lru_cache(maxsize=1024)
def result_decoder(method: Method) -> Decode:
    """A decoder for the result of a method, made once.

    A page whose next cursor is null is the last. Malformed cache hints are treated as absent, and
    so is a negative time. An invalid item is left out of its page, with a warning.

    Source: server/utilities/pagination (2026-07-28: whether a non-null value was provided),
    server/utilities/caching (2026-07-28).
    """
    return _result_decoder(method, decoder, convert)


@lru_cache(maxsize=1024)
def extra_result_decoder(method: Method) -> Decode:
    """Like `result_decoder`, for objects that keep their extra members."""
    return _result_decoder(method, extra_decoder, convert_with_extra)


def _result_decoder(method: Method, decoder_of: DecoderOf, convert_to: Convert) -> Decode:
    if method.items is not None:
        return page_decoder(method.name, method.result, method.items, decoder_of, convert_to)
    if method.cacheable:
        return _lenient_decoder(method.result, decoder_of, convert_to)
    return decoder_of(method.result)


def _lenient_decoder(kind: Any, decoder_of: DecoderOf, convert_to: Convert) -> Decode:
    """A decoder for a result whose optional members may be malformed."""
    decode = decoder_of(kind)

    def decode_leniently(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except ValidationError:
            members = msgspec.json.decode(data, type=dict[str, Any])
            if not drop_malformed_members(members):
                raise
            return convert_to(members, kind)

    return decode_leniently


def drop_malformed_members(members: dict[str, Any]) -> bool:
    """Remove malformed optional members from a result; returns whether there were any."""
    capabilities = members.get("capabilities")
    if is_object(capabilities):
        members["capabilities"] = readable(capabilities)
    before = len(members)
    ttl = members.get(TTL, 0)
    if isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0:
        del members[TTL]
    if members.get(_SCOPE, _SCOPES[0]) not in _SCOPES:
        del members[_SCOPE]
    return len(members) < before or members.get("capabilities") is not capabilities


def sent_capabilities(raw: Raw | None) -> Mapping[str, Any]:
    """The capabilities in params or a result as they were sent, unknown members included."""
    members: Mapping[str, Any] = msgspec.json.decode(raw or b"{}")
    return readable(members["capabilities"])


def readable(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """A peer's capabilities without malformed extensions, whose settings are no object.

    A malformed extension is treated as not declared.

    Source: basic/versioning#extension-negotiation (2026-07-28).
    """
    extensions = capabilities.get("extensions")
    if not is_object(extensions) or all(map(is_object, extensions.values())):
        return capabilities
    usable = {name: value for name, value in extensions.items() if is_object(value)}
    return {**capabilities, "extensions": usable}


def page_decoder(
    name: str,
    page_type: Any,
    items: str,
    decoder_of: DecoderOf = decoder,
    convert_to: Convert = convert,
) -> Decode:
    """A decoder for a page of a list that leaves out invalid items.

    A warning names each item that is left out; the others keep their order. A page without invalid
    items is decoded as a whole.

    Args:
        name: The method, for the warnings.
        page_type: The Struct of the page, or a union with it.
        items: Python name of its list.
        decoder_of: Makes the decoder for a type.
        convert_to: Turns decoded JSON into a type.

    Raises:
        ValidationError: (from the decoder) JSON of another shape outside the items.
        msgspec.DecodeError: (from the decoder) not JSON.
    """
    decode = decoder_of(page_type)
    struct, field = next(
        (struct, each)
        for struct in structs_of(page_type)
        for each in fields(struct)
        if each.name == items
    )
    wire_name = field.encode_name

    def decode_page(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except UNREADABLE:
            parts: dict[str, Raw] = msgspec.json.decode(data, type=dict[str, Raw])
            raw_items = _elements(parts.get(wire_name))
            if raw_items is not None:
                parts[wire_name] = Raw(b"[]")
            members = {member: _builtins(part) for member, part in parts.items()}
            drop_malformed_members(members)
            page = convert_to(members, page_type)
            if not isinstance(page, struct):
                return page
            decode_item = decoder_of(get_args(field.type)[0])
            good = _good_items(f"{name}: {wire_name}", raw_items or (), decode_item)
            return replace(page, **{items: list(good)})

    return decode_page


def _good_items(place: str, raw_items: Iterable[Raw], decode_item: Decode) -> Iterator[Any]:
    """The valid items; the others are logged as warnings."""
    bad = 0
    for position, raw in enumerate(raw_items):
        try:
            yield decode_item(raw)
        except UNREADABLE as error:
            bad += 1
            if bad <= NAMED_ITEMS:
                item, reason = f"{place}[{position}]{_label(raw)}", safe_text(str(error))
                _logger.warning("%s is left out: %s", item, reason)
    if bad > NAMED_ITEMS:
        _logger.warning("%s: %d more are left out", place, bad - NAMED_ITEMS)


def _label(raw: Raw) -> str:
    """The name or the URI of an item, quoted for a log line; empty if it has neither."""
    try:
        item = _builtins(raw)
    except UNREADABLE:
        return ""
    texts = [item.get(member) for member in ("name", "uri")] if is_object(item) else []
    return next((f" '{safe_text(text)}'" for text in texts if isinstance(text, str)), "")


def _elements(raw: Raw | None) -> list[Raw] | None:
    """The elements of a JSON array; `None` if it is something else."""
    try:
        return None if raw is None else msgspec.json.decode(raw, type=list[Raw])
    except msgspec.ValidationError:
        return None


def _builtins(raw: bytes | Raw) -> Any:
    return msgspec.json.decode(raw)


def extra_decoder(kind: Any) -> Decode:
    """A decoder for one type whose objects keep their extra members; see `decoder`."""
    decode = decoder(kind)

    def decode_with_extra(data: bytes | Raw) -> Any:
        return _with_extra(decode(data), _builtins(data), _all_members)

    return decode_with_extra


def convert_with_extra(value: Any, kind: Any) -> Any:
    """Turn decoded JSON into `kind`, whose objects keep their extra members; see `convert`."""
    return _with_extra(convert(value, kind), value, _all_members)


def recast(value: Any, kind: Any) -> Any:
    """Turn Structs, or JSON that may hold some, into `kind`, of any revision.

    Members that `kind` does not have are dropped, except the extra members of an object.

    Raises:
        UNWRITABLE: The value has no JSON form.
        ValidationError: The value has another shape; the text has the path.
    """
    try:
        return convert(builtins_without_extra(value), kind)
    except TypeError:  # there may be extra members
        wire = builtins_with_extra(value)
        return _with_extra(convert(to_builtins(value), kind), wire, _kept_members)


def is_made_of(value: Any, module: str) -> bool:
    """Whether all Structs in a value, at any depth, are of one module."""
    if isinstance(value, STRUCTS):
        kind = type(value)
        return kind.__module__ == module and all(
            is_made_of(getattr(value, name), module) for name in _members_with_structs(kind)
        )
    if is_many(value):
        return all(is_made_of(item, module) for item in value)
    if is_object(value):
        members = value.values()
        return all(isinstance(each, Struct) and is_made_of(each, module) for each in members)
    return value is None or value is UNSET


def _all_members(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    return wire


def _kept_members(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = wire.get(EXTRA, {})
    return kept


def _with_extra(
    value: Any, wire: Any, extra_of: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Any:
    """A typed value whose objects keep those of some members that their types do not have.

    Args:
        value: The value.
        wire: The JSON that it was made from.
        extra_of: The members of a JSON object that are to be kept.
    """
    if isinstance(value, Struct) and is_object(wire):
        kind = type(value)
        changed: dict[str, Any] = {}
        for name, wire_name in _members_with_structs(kind).items():
            member = getattr(value, name)
            kept = _with_extra(member, wire.get(wire_name), extra_of)
            if kept is not member:
                changed[name] = kept
        known = known_names(kind)
        extra = {name: member for name, member in extra_of(wire).items() if name not in known}
        if not extra:
            return replace(value, **changed) if changed else value
        return with_extra_members(value, changed, extra)
    if is_many(value):
        return [_with_extra(item, at, extra_of) for item, at in zip(value, wire, strict=True)]
    if is_object(value):
        return {name: _with_extra(item, wire[name], extra_of) for name, item in value.items()}
    return value


@cache
def _members_with_structs(kind: StructType) -> Mapping[str, str]:
    """Python name to wire name of each member of a Struct that may hold Structs."""
    return {each.name: each.encode_name for each in fields(kind) if _holds_structs(each.type)}


def _holds_structs(kind: Any) -> bool:
    return bool(structs_of(kind)) or any(map(_holds_structs, get_args(kind)))
