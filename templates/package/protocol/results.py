"""Decoding of results: lists without their invalid items, and hints that may be malformed.

Source: server/utilities/pagination, server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import Raw

from .._decoding import convert, decoder
from .._wire import UNREADABLE, ValidationError, fields, is_object, replace
from ..facts import TTL, Method, structs_in
from ..foreign_text import safe_text
from .lifecycle import without_malformed_extensions

NAMED_ITEMS = 10
"""Most invalid items of a page that are logged one by one; further items are counted."""

_SCOPE = "cacheScope"
_SCOPES = ("public", "private")

_logger = logging.getLogger(__name__)

Decode: TypeAlias = Callable[[bytes | Raw], Any]
DecoderOf: TypeAlias = Callable[[Any], Decode]
Convert: TypeAlias = Callable[[Any, Any], Any]


@lru_cache(maxsize=1024)
def result_decoder(method: Method, extra: bool = False) -> Decode:
    """The decoder for results of a method; cached.

    A page with null as next cursor is the last page. Malformed cache hints and negative times are
    treated as absent. An invalid item is left out of its page, with a warning.

    Args:
        method: The method.
        extra: Whether objects keep the members that their types do not have.

    Source: server/utilities/pagination (2026-07-28: whether a non-null value was provided),
    server/utilities/caching (2026-07-28).
    """
    decoder_of: DecoderOf = partial(decoder, extra=True) if extra else decoder
    convert_to: Convert = partial(convert, extra=True) if extra else convert
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
            drop_malformed_members(members)
            return convert_to(members, kind)

    return decode_leniently


def drop_malformed_members(members: dict[str, Any]) -> None:
    """Remove malformed optional members from a result."""
    capabilities = members.get("capabilities")
    if is_object(capabilities):
        members["capabilities"] = without_malformed_extensions(capabilities)
    if TTL in members and not (type(members[TTL]) is int and members[TTL] >= 0):
        del members[TTL]
    if _SCOPE in members and members[_SCOPE] not in _SCOPES:
        del members[_SCOPE]


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
        page_type: The Struct of the page, or a union with that Struct.
        items: Python name of the list in the Struct.
        decoder_of: Makes the decoder for a type.
        convert_to: Turns decoded JSON into a type.

    Raises:
        ValidationError: (from the decoder) The page without its items does not fit.
        msgspec.DecodeError: (from the decoder) The page is not JSON.
    """
    decode = decoder_of(page_type)
    struct, field = next(
        (struct, each)
        for struct in structs_in(page_type)
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
    """Decode the valid items; log the others as warnings."""
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
    """The elements of a JSON array; `None` if the value is not an array."""
    with suppress(msgspec.ValidationError):
        return None if raw is None else msgspec.json.decode(raw, type=list[Raw])
    return None


def _builtins(raw: bytes | Raw) -> Any:
    return msgspec.json.decode(raw)
