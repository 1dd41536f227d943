"""Which kind of revision a POST belongs to, and whether its header fields say what its body says.

Decisions only: a request in, a verdict out; nothing here reads or writes.

Source: basic/transports/streamable-http (2026-07-28: request metadata, backward compatibility).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from ..._wire import UNREADABLE, decoder
from ...errors import HeaderMismatchError, InvalidParamsError, UnsupportedRevisionError
from ...facts import Lifecycle, Revisions
from ...foreign_text import safe_repr, safe_text
from ...framing import http_headers as http_fields
from ...protocol import jsonrpc
from ...protocol.lifecycle import DISCOVER
from ...protocol.param_headers import value_at
from ...protocol.request_meta import MetaCache
from ...revision_facts import Facts, Headers
from .request import Incoming

MarksOf: TypeAlias = Callable[[str], Mapping[tuple[str, ...], str]]
"""Path and mark of each argument of a tool that header fields repeat, by the tool's name."""

Claim: TypeAlias = Any
"""What a message says that header fields repeat: `revision`, `arguments`, and what names a thing.

A member that the message does not have is UNSET. `None` stands for params that are not of the form
that they have to be.
"""

_ARGUMENTS = "arguments"
_META = "_meta"
_decode_any = decoder(Any)


class PerRequestRules:
    """What the revisions without sessions ask of a POST.

    Args:
        revisions: All revisions that are served.
        marks_of: Which arguments of a tool header fields repeat.

    Attributes:
        revisions: Those without sessions.
        facts: What the newest of them states; `None` if there is none.
        meta_cache: `_meta` that their connections have in common.
    """

    def __init__(self, revisions: Revisions, marks_of: MarksOf) -> None:
        self.revisions = revisions.of(Lifecycle.PER_REQUEST)
        self.facts: Facts | None = self.revisions.newest().facts if self.revisions else None
        self.meta_cache = MetaCache(self.revisions)
        self._others = frozenset(revisions) - frozenset(self.revisions)
        self._marks_of = marks_of
        facts = self.facts or Facts()
        self._attributes = {name: f"named_{i}" for i, name in enumerate(sorted(facts.name_members))}
        self._read = _claim_reader(facts.meta.protocol_version or "", self._attributes)
        self._nothing: Claim = self._read(b"{}")

    def claim_of(self, message: jsonrpc.Message | None) -> Claim:
        """What a message says that header fields repeat; of a batch, nothing."""
        if not isinstance(message, jsonrpc.Request) or message.params is None:
            return self._nothing
        try:
            return self._read(message.params)
        except UNREADABLE:
            return None

    def apply(self, incoming: Incoming, message: jsonrpc.Message | None, claim: Claim) -> bool:
        """Whether a POST is to be served without a session: its header or its body says so.

        Gateways that know older revisions only exist, and forward `server/discover` of a client
        as any other request. The header then says how the client's requests will come.
        """
        facts = self.facts
        if facts is None:
            return False
        if _revision(claim) is not None and not is_discovery(message):
            return True
        named = incoming.field(facts.headers.protocol_version)
        return named is not None and named not in self._others

    def named_by(self, incoming: Incoming) -> bool:
        """Whether the header of a request names one of the revisions without sessions."""
        named = None if self.facts is None else incoming.field(self.facts.headers.protocol_version)
        return named is not None and named in self.revisions

    def check(self, incoming: Incoming, message: jsonrpc.Request, claim: Claim) -> None:
        """Hold the header fields of a request against its body.

        Raises:
            HeaderMismatchError: They say something else, or one of them is missing.
            UnsupportedRevisionError: The revision is none of these.
            InvalidParamsError: The params say nothing that they could be held against.
        """
        facts = self.facts
        assert facts is not None
        headers = facts.headers
        self._check_revision(incoming, claim, facts)
        if claim is None:
            raise InvalidParamsError("params: expected an object, and one as its _meta")
        _check_value(incoming, headers.method, message.method)
        stated = facts.method(message.method)
        if stated.named_by is None:
            return
        name = getattr(claim, self._attributes[stated.named_by])
        if not isinstance(name, str):
            return  # the body itself is wrong, and is refused for that
        _check_value(incoming, headers.name, name, encoded=True)
        if stated.param_headers and headers.param_prefix is not None:
            self._check_arguments(incoming, headers.param_prefix, name, claim)

    def check_notification(self, incoming: Incoming, message: jsonrpc.Notification) -> None:
        """Hold the header fields of a notification against it: those that it has.

        Raises:
            HeaderMismatchError: They say something else.
            UnsupportedRevisionError: The revision is none of these.
        """
        assert self.facts is not None
        headers: Headers = self.facts.headers
        named = incoming.field(headers.protocol_version)
        if named is not None and named not in self.revisions:
            raise self._unsupported(named, self.facts)
        if incoming.field(headers.method) is not None:
            _check_value(incoming, headers.method, message.method)

    def _check_revision(self, incoming: Incoming, claim: Claim, facts: Facts) -> None:
        field = facts.headers.protocol_version
        named = incoming.field(field)
        stated = _revision(claim)
        if named is None:
            supported = ", ".join(self.meta_cache.reader.supported)
            raise HeaderMismatchError(f"{field}: expected one of {supported}, got nothing")
        if stated is not None and stated != named:
            raise HeaderMismatchError(
                f"{field}: the header says {safe_repr(named, 80)}, "
                f"the body {safe_repr(stated, 80)}"
            )
        if named not in self.revisions:
            raise self._unsupported(named, facts)

    def _unsupported(self, named: str, facts: Facts) -> UnsupportedRevisionError:
        code = facts.errors.unsupported_revision
        return UnsupportedRevisionError(safe_text(named), self.meta_cache.reader.supported, code)

    def _check_arguments(self, incoming: Incoming, prefix: str, tool: str, claim: Claim) -> None:
        marks = self._marks_of(tool)
        if not marks:
            return
        arguments = _decoded(claim.arguments)
        for path, mark in marks.items():
            value = value_at(arguments, path)
            field = f"{prefix}{mark}"
            if value is not None:
                _check_value(incoming, field, value, encoded=True)
            elif (said := incoming.field(field)) is not None:
                raise HeaderMismatchError(
                    f"{field}: the header says {safe_repr(said, 80)}, the body nothing"
                )


def is_discovery(message: jsonrpc.Message | None) -> bool:
    """Whether a message asks for the revisions without sessions."""
    return isinstance(message, jsonrpc.Request) and message.method == DISCOVER


def _claim_reader(key: str, attributes: Mapping[str, str]) -> Callable[[bytes | Raw], Claim]:
    """A decoder of params for what header fields repeat.

    Args:
        key: The key of `_meta` that names the revision.
        attributes: Attribute of the claim by each member that names what a request is about.
    """
    stated = msgspec.defstruct(
        "_Stated", [("revision", Any, UNSET)], rename={"revision": key}, gc=False
    )
    claim = msgspec.defstruct(
        "_Claim",
        [
            *((attribute, Any, UNSET) for attribute in attributes.values()),
            (_ARGUMENTS, Raw | msgspec.UnsetType, UNSET),
            ("meta", stated | msgspec.UnsetType, UNSET),
        ],
        rename={"meta": _META, **{to: member for member, to in attributes.items()}},
        gc=False,
    )
    read: Callable[[bytes | Raw], Claim] = msgspec.json.Decoder(claim).decode
    return read


def _revision(claim: Claim) -> str | None:
    """The revision that a request's own `_meta` names."""
    if claim is None or claim.meta is UNSET:
        return None
    named = claim.meta.revision
    return named if isinstance(named, str) else None


def _decoded(arguments: Any) -> Any:
    """Arguments as JSON values.

    Raises:
        InvalidParamsError: They can't be read, so nothing can be held against them.
    """
    try:
        return None if arguments is UNSET else _decode_any(arguments)
    except UNREADABLE as error:
        raise InvalidParamsError(f"params.arguments: {error}") from None


def _check_value(
    incoming: Incoming, field: str | None, wanted: Any, *, encoded: bool = False
) -> None:
    """Refuse a field that is missing or does not say what the body has."""
    if field is None:
        return
    value = incoming.field(field)
    if value is None:
        raise HeaderMismatchError(f"{field}: expected {safe_repr(wanted, 80)}, got nothing")
    if value == wanted and (not encoded or _is_plain(value)):
        return
    try:
        same = encoded and http_fields.says(value, wanted)
    except ValueError as error:
        raise HeaderMismatchError(f"{field}: {error}") from None
    if not same:
        raise HeaderMismatchError(
            f"{field}: the header says {safe_repr(value, 80)}, the body {safe_repr(wanted, 80)}"
        )


def _is_plain(value: str) -> bool:
    """Whether a value can only mean itself; most do."""
    return value.isascii() and value.isprintable() and not value.startswith("=?")
