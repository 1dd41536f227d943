"""Validation of header fields that repeat values of the body, in revisions without sessions.

Source: basic/transports/streamable-http (2026-07-28: request metadata, parameter headers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from ..._wire import UNREADABLE, decoder
from ...errors import HeaderMismatchError, InvalidParamsError
from ...facts import Lifecycle, Method, Revision, Revisions
from ...foreign_text import safe_repr, safe_text
from ...framing import header_values
from ...protocol import jsonrpc
from ...protocol.lifecycle import DISCOVER
from ...protocol.param_headers import ParamHeadersOf, value_at
from ...protocol.server_connection import ServerMeta, UnsupportedRevisionError
from ...revision_facts import Facts, Headers
from . import request as http

BodyValues: TypeAlias = Any
"""Values of a message that header fields repeat: `meta.revision`, `arguments`, and names.

Absent members are UNSET. `None` stands for params of the wrong type.
"""

_ARGUMENTS = "arguments"
_META = "_meta"
_decode_any = decoder(Any)


class HeaderValidator:
    """Compares header fields with the body of a POST.

    Args:
        revisions: All revisions that are served.
        param_headers_of: Returns the arguments of a tool that header fields repeat.

    Attributes:
        revisions: The revisions without sessions.
        facts: The facts of the newest revision without sessions; `None` if there is none.
        meta_cache: The cache of `_meta` that all connections of these revisions share.
    """

    def __init__(self, revisions: Revisions, param_headers_of: ParamHeadersOf) -> None:
        self.revisions = revisions.of(Lifecycle.PER_REQUEST)
        self.facts: Facts | None = self.revisions.newest().facts if self.revisions else None
        self.meta_cache = ServerMeta(self.revisions)
        self._others = frozenset(revisions) - frozenset(self.revisions)
        self._other_values = frozenset(name.encode() for name in self._others)
        self._version_values = frozenset(name.encode() for name in self.revisions)
        self._param_headers_of = param_headers_of
        facts = self.facts or Facts()
        self._version_key = http.field_key(facts.headers.protocol_version or "")
        self._method_key = http.field_key(facts.headers.method or "")
        self._name_key = http.field_key(facts.headers.name or "")
        self._stated_key = (facts.meta.protocol_version or "").encode()
        self._attributes = {name: f"named_{i}" for i, name in enumerate(sorted(facts.name_members))}
        self._decode = _values_decoder(facts.meta.protocol_version or "", self._attributes)
        self._no_values: BodyValues = self._decode(b"{}")

    def values_of(self, message: jsonrpc.Message | None) -> BodyValues:
        """The values of a message that header fields repeat; all are UNSET for a batch."""
        if not isinstance(message, jsonrpc.Request) or message.params is None:
            return self._no_values
        try:
            return self._decode(message.params)
        except UNREADABLE:
            return None

    def applies(self, request: http.HttpRequest, message: jsonrpc.Message | None) -> bool:
        """Whether the header or the body of a POST names a revision without sessions.

        For `server/discover` only the header counts: gateways that know only older revisions
        forward this request like any other, and their header names the revision of later requests.
        """
        facts = self.facts
        if facts is None:
            return False
        value = request.headers.get(self._version_key)
        if value in self._version_values:
            return True
        if isinstance(message, jsonrpc.Request) and message.method != DISCOVER:
            raw = bytes(message.params or b"")
            # An escape may spell the key. `in` is slow: it takes its left side for a number first.
            may_state = raw.find(self._stated_key) >= 0 or raw.find(b"\\") >= 0
            if may_state and _revision(self.values_of(message)) is not None:
                return True
        if value is None or value in self._other_values:
            return False
        return request.field(facts.headers.protocol_version) not in self._others

    def names_revision(self, request: http.HttpRequest) -> bool:
        """Whether the header of a request names a revision without sessions."""
        version = None if self.facts is None else request.field(self.facts.headers.protocol_version)
        return version is not None and version in self.revisions

    def check(
        self, request: http.HttpRequest, message: jsonrpc.Request, values: BodyValues
    ) -> None:
        """Compare the header fields of a request with its body.

        Raises:
            HeaderMismatchError: They differ, or a field is missing.
            UnsupportedRevisionError: The revision is not served, or has sessions.
            InvalidParamsError: The params have the wrong type.
        """
        facts = self.facts
        assert facts is not None
        headers = facts.headers
        self._check_revision(request, values, facts)
        if values is None:
            raise InvalidParamsError("params: expected an object, and one as its _meta")
        if request.headers.get(self._method_key, b"").decode("latin-1") != message.method:
            _check_value(
                request, headers.method, message.method, encoded=not message.method.isascii()
            )
        method_facts = facts.method(message.method)
        if method_facts.named_by is None:
            return
        name = getattr(values, self._attributes[method_facts.named_by])
        if not isinstance(name, str):
            return  # invalid; the body is refused later
        value = request.headers.get(self._name_key, b"").decode("latin-1")
        if value != name or not _is_plain(name):
            _check_value(request, headers.name, name, encoded=True)
        if method_facts.param_headers and headers.param_prefix is not None:
            param_headers = self._param_headers_of(name)
            if param_headers:
                arguments = _decode_arguments(values.arguments)
                _check_arguments(request, headers.param_prefix, param_headers, arguments)

    def matches(
        self, request: http.HttpRequest, revision: Revision, method: Method, params: object
    ) -> bool:
        """Whether `check` would certainly accept the header fields; `False` if unsure."""
        headers = request.headers
        if (
            headers.get(self._version_key) != revision.name.encode()
            or headers.get(self._method_key) != method.name.encode()
        ):
            return False
        method_facts = method.facts
        if method_facts.named_by is None:
            return True
        name = getattr(params, method_facts.named_by, None)
        return (
            isinstance(name, str)
            and name.isascii()  # as `_is_plain` does
            and name.isprintable()
            and not name.startswith("=?")
            and headers.get(self._name_key) == name.encode()
            and not (method_facts.param_headers and self._param_headers_of(name))
        )

    def check_notification(self, request: http.HttpRequest, message: jsonrpc.Notification) -> None:
        """Compare the header fields of a notification with its body; all are optional.

        Raises:
            HeaderMismatchError: They differ.
            UnsupportedRevisionError: The revision is not served, or has sessions.
        """
        assert self.facts is not None
        headers: Headers = self.facts.headers
        version = request.field(headers.protocol_version)
        if version is not None and version not in self.revisions:
            raise self._unsupported_error(version, self.facts)
        if request.field(headers.method) is not None:
            _check_value(
                request, headers.method, message.method, encoded=not message.method.isascii()
            )

    def _check_revision(self, request: http.HttpRequest, values: BodyValues, facts: Facts) -> None:
        field = facts.headers.protocol_version
        in_body = _revision(values)
        value = request.headers.get(self._version_key)
        if value in self._version_values and value.decode() == in_body:
            return
        version = request.field(field)
        if version is None:
            supported = ", ".join(self.meta_cache.reader.supported)
            raise HeaderMismatchError(f"{field}: expected one of {supported}, got nothing")
        if in_body is not None and in_body != version:
            raise HeaderMismatchError(
                f"{field}: the header says {safe_repr(version, 80)}, "
                f"the body {safe_repr(in_body, 80)}"
            )
        if version not in self.revisions:
            raise self._unsupported_error(version, facts)

    def _unsupported_error(self, version: str, facts: Facts) -> UnsupportedRevisionError:
        code = facts.errors.unsupported_revision
        return UnsupportedRevisionError(safe_text(version), self.meta_cache.reader.supported, code)


def _values_decoder(key: str, attributes: Mapping[str, str]) -> Callable[[bytes | Raw], BodyValues]:
    """A decoder of params that returns the values that header fields repeat.

    Args:
        key: The key of `_meta` that names the revision.
        attributes: Attribute of the result for each member that names an item, such as `name`.
    """
    meta = msgspec.defstruct(
        "_StatedMeta", [("revision", Any, UNSET)], rename={"revision": key}, gc=False
    )
    values = msgspec.defstruct(
        "_BodyValues",
        [
            *((attribute, Any, UNSET) for attribute in attributes.values()),
            (_ARGUMENTS, Raw | msgspec.UnsetType, UNSET),
            ("meta", meta | msgspec.UnsetType, UNSET),
        ],
        rename={"meta": _META, **{to: member for member, to in attributes.items()}},
        gc=False,
    )
    decode: Callable[[bytes | Raw], BodyValues] = msgspec.json.Decoder(values).decode
    return decode


def _revision(values: BodyValues) -> str | None:
    """The revision in the `_meta` of a request."""
    if values is None or values.meta is UNSET:
        return None
    revision = values.meta.revision
    return revision if isinstance(revision, str) else None


def _decode_arguments(arguments: Any) -> Any:
    """Decode the arguments of a call.

    Raises:
        InvalidParamsError: They can't be decoded.
    """
    try:
        return None if arguments is UNSET else _decode_any(arguments)
    except UNREADABLE as error:
        raise InvalidParamsError(f"params.arguments: {error}") from None


def _check_arguments(
    request: http.HttpRequest,
    prefix: str,
    param_headers: Mapping[tuple[str, ...], str],
    arguments: Any,
) -> None:
    """Compare the parameter headers of a tool call with its arguments."""
    for path, name in param_headers.items():
        value = value_at(arguments, path)
        field = f"{prefix}{name}"
        if value is not None:
            _check_value(request, field, value, encoded=True)
        elif (header := request.field(field)) is not None:
            raise HeaderMismatchError(
                f"{field}: the header says {safe_repr(header, 80)}, the body nothing"
            )


def _check_value(
    request: http.HttpRequest, field: str | None, expected: Any, *, encoded: bool
) -> None:
    """Raise if a field is missing or differs from the value in the body."""
    if field is None:
        return
    value = request.field(field)
    if value is None:
        raise HeaderMismatchError(f"{field}: expected {safe_repr(expected, 80)}, got nothing")
    if value == expected and (not encoded or _is_plain(value)):
        return
    try:
        same = encoded and header_values.equals_body_value(value, expected)
    except ValueError as error:
        raise HeaderMismatchError(f"{field}: {error}") from None
    if not same:
        raise HeaderMismatchError(
            f"{field}: the header says {safe_repr(value, 80)}, the body {safe_repr(expected, 80)}"
        )


def _is_plain(value: str) -> bool:
    """Whether a value is certainly not encoded."""
    return value.isascii() and value.isprintable() and not value.startswith("=?")
