"""A server's reading of a request: by which revision, and on what terms, it is served.

A request with per-request `_meta` stands for itself, whatever was said before on the connection.
Any other belongs to the session, if a handshake made one.

Source: basic/index#meta, basic/versioning (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import UNREADABLE, convert, decoder, error_text, is_object
from ..errors import InvalidParamsError, UnsupportedRevisionError
from ..facts import Lifecycle, Revision, Revisions
from ..foreign_text import safe_repr
from .lenient import readable
from .lifecycle import RequestMetadata

_NO_META: Mapping[str, Any] = {}
_KEPT = 64 * 1024  # bytes of `_meta` that are kept for the next request


class _MetaOnly(msgspec.Struct, gc=False):
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_find_meta = decoder(_MetaOnly)
_decode_meta = decoder(dict[str, Any])


def read_meta(params: Raw | None) -> Mapping[str, Any]:
    """The `_meta` of params that may have one; empty if absent.

    Raises:
        InvalidParamsError: `params` or `_meta` is not an object.
    """
    return _read(_raw_meta(params))


def _raw_meta(params: Raw | None) -> bytes | None:
    """The JSON of `_meta`; `None` if absent."""
    if params is None:
        return None
    raw = bytes(params)
    if raw == b"null" or (raw[:1] == b"{" and b'"_meta"' not in raw):
        return None
    try:
        meta = _find_meta(raw).meta
    except UNREADABLE as error:
        raise InvalidParamsError(f"params: {error_text(error)}") from None
    return None if meta is UNSET else bytes(meta)


def _read(raw: bytes | None) -> Mapping[str, Any]:
    if raw is None:
        return _NO_META
    try:
        meta: Mapping[str, Any] = _decode_meta(raw)
    except UNREADABLE as error:
        raise InvalidParamsError(f"params._meta: {error_text(error)}") from None
    return meta


class RequestMetaReader:
    """Reads the terms of requests for a server that speaks `revisions`."""

    def __init__(self, revisions: Revisions) -> None:
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self.alone = len(self._modern) == len(revisions)
        """Whether there is no handshake to fall back to."""
        self._signs: frozenset[str] = frozenset()
        if self._modern:
            self._newest = self._modern.newest()
            keys = self._newest.facts.meta
            required = (keys.protocol_version, keys.client_info, keys.client_capabilities)
            self._signs = frozenset(key for key in required if key is not None)
        # Most clients say the same each time: then it need not be read again.
        self._last: tuple[bytes | None, Mapping[str, Any], RequestMetadata | None] = (
            None,
            _NO_META,
            None,
        )

    @property
    def supported(self) -> tuple[str, ...]:
        """The per-request revisions, newest first."""
        return tuple(sorted(self._modern, reverse=True))

    def read(self, params: Raw | None) -> tuple[Mapping[str, Any], RequestMetadata | None]:
        """The `_meta` of a request, and the terms it states: `None` for those of the session.

        Raises:
            InvalidParamsError: `params` or `_meta` is not an object, or a required key is missing
                or has the wrong type.
            UnsupportedRevisionError: The revision is not one of these.
        """
        raw = _raw_meta(params)
        last, meta, terms = self._last
        if raw != last or (raw is None and self.alone):
            meta = _read(raw)
            terms = self._stated(meta)
            if raw is None or len(raw) <= _KEPT:
                self._last = (raw, meta, terms)
        return dict(meta), terms

    def _stated(self, meta: Mapping[str, Any]) -> RequestMetadata | None:
        if not self._modern or not (self.alone or not self._signs.isdisjoint(meta)):
            return None
        return self._check(self._revision(meta), meta)

    def _revision(self, meta: Mapping[str, Any]) -> Revision:
        key = self._newest.facts.meta.protocol_version
        name = meta.get(key) if key else None
        if not isinstance(name, str):
            supported = ", ".join(self.supported)
            got = "nothing" if name is None else safe_repr(name)
            raise InvalidParamsError(
                f"params._meta: expected {key!r} with one of {supported}, got {got}"
            )
        if name not in self._modern:
            code = self._newest.facts.errors.unsupported_revision
            raise UnsupportedRevisionError(name, self.supported, code)
        return self._modern[name]

    def _check(self, revision: Revision, meta: Mapping[str, Any]) -> RequestMetadata:
        keys = revision.facts.meta
        declared = meta.get(keys.client_capabilities or "", _NO_META)
        if is_object(declared) and (usable := readable(declared)) is not declared:
            declared = usable
            meta = {**meta, keys.client_capabilities or "": usable}
        try:
            convert(meta, revision.meta_type)
        except msgspec.ValidationError as error:
            raise InvalidParamsError(f"params._meta: {error_text(error)}") from None
        return RequestMetadata(
            revision=revision,
            peer_capabilities=declared,
            peer_info=meta.get(keys.client_info or ""),
            log_level=meta.get(keys.log_level or ""),
        )


class Shared:
    """What the connections of one client or server may share.

    Args:
        revisions: The revisions they speak.

    Attributes:
        terms: Reads what a request says of itself.
        stamps: By revision, what every request or result of this side says in `_meta`.
        encoded_stamps: The same as JSON.
    """

    __slots__ = ("encoded_stamps", "stamps", "terms")

    def __init__(self, revisions: Revisions) -> None:
        self.terms = RequestMetaReader(revisions)
        self.stamps: dict[str, Mapping[str, Any]] = {}
        self.encoded_stamps: dict[str, Raw] = {}
