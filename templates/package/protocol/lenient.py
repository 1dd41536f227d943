"""What a peer may say wrong without harm: it counts as not said.

Source: server/utilities/pagination, server/utilities/caching, basic/versioning (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

import msgspec
from msgspec import Raw

from .._wire import (
    TTL,
    UNREADABLE,
    Method,
    ValidationError,
    convert,
    decoder,
    is_object,
    structs_of,
)
from ..foreign_text import safe_text

NAMED_ITEMS = 10
"""Bad items of one page that a warning of their own names; the others are counted."""

_SCOPE = "cacheScope"
_SCOPES = ("public", "private")

_logger = logging.getLogger(__name__)


@lru_cache(maxsize=1024)
def result_decoder(method: Method) -> Callable[[bytes | Raw], Any]:
    """A decoder for the result of a method, made once.

    A page whose next cursor is null is the last. Hints for caches that mean nothing count as
    absent, and so does a time below zero. An item that breaks the schema is left out of its page,
    with a warning.

    Source: server/utilities/pagination (2026-07-28: whether a non-null value was provided),
    server/utilities/caching (2026-07-28).
    """
    if method.items is not None:
        return page_decoder(method.name, method.result, method.items)
    if method.cacheable:
        return _mending_decoder(method.result, mend_result)
    return method.decode_result


def _mending_decoder(
    kind: Any, mend: Callable[[dict[str, Any]], bool]
) -> Callable[[bytes | Raw], Any]:
    """A decoder for an object with members that may be wrong in a way that can be put right.

    Args:
        mend: Puts the members of a misshapen object right; says whether it changed any.

    Raises:
        ValidationError: (from the decoder) JSON of another shape; the text has the path.
        msgspec.DecodeError: (from the decoder) not JSON.
    """
    decode = decoder(kind)

    def decode_mended(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except ValidationError:
            members = msgspec.json.decode(data, type=dict[str, Any])
            if not mend(members):
                raise
            return convert(members, kind)

    return decode_mended


def mend_result(members: dict[str, Any]) -> bool:
    """Put right what a server may say wrong in a result without harm; whether anything was."""
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


def readable(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """A peer's capabilities without extensions that have no object of settings.

    An extension that is declared like that counts as not declared.

    Source: basic/versioning#extension-negotiation (2026-07-28).
    """
    extensions = capabilities.get("extensions")
    if not is_object(extensions) or all(map(is_object, extensions.values())):
        return capabilities
    usable = {name: value for name, value in extensions.items() if is_object(value)}
    return {**capabilities, "extensions": usable}


def page_decoder(name: str, page_type: Any, items: str) -> Callable[[bytes | Raw], Any]:
    """A decoder for a page of a list that leaves out items that break the schema.

    A warning names each item that is left out; the others keep their order. A page without a bad
    item is decoded as a whole, at full speed.

    Args:
        name: The method, for the warnings.
        page_type: The Struct of the page, or a union with it.
        items: Python name of its list.

    Raises:
        ValidationError: (from the decoder) JSON of another shape outside the items.
        msgspec.DecodeError: (from the decoder) not JSON.
    """
    decode = decoder(page_type)
    struct, field = next(
        (struct, each)
        for struct in structs_of(page_type)
        for each in msgspec.structs.fields(struct)
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
            mend_result(members)
            page = convert(members, page_type)
            if not isinstance(page, struct):
                return page
            decode_item = decoder(get_args(field.type)[0])
            good = _good_items(f"{name}: {wire_name}", raw_items or (), decode_item)
            return msgspec.structs.replace(page, **{items: list(good)})

    return decode_page


def _good_items(
    place: str, raw_items: Iterable[Raw], decode_item: Callable[[bytes | Raw], Any]
) -> Iterator[Any]:
    """The items that follow the schema; warnings tell of the others."""
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


def _builtins(raw: Raw) -> Any:
    return msgspec.json.decode(raw)
