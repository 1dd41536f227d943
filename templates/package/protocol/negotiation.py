"""Negotiation: the version that both sides speak, and the capabilities that each of them declares.

The steps of a client's version negotiation form a table. A client of both lifecycles sends
`server/discover` first. It stays with the per-request lifecycle after a result, or an error that
only per-request servers send; after anything else, a timeout included, it sends `initialize`. A
client of one lifecycle has one step. If the server cannot be reached, or requires credentials,
negotiation fails.

A message may only be sent to a peer that declared its capability. Some params require a part of
one: a mode of elicitation, tools for sampling. This holds for requests and for input requests
alike. Extensions are declared under identifiers that have the form of `_meta` keys, each with an
object of settings.

Source: basic/lifecycle (to 2025-11-25); client/elicitation#capabilities,
client/sampling#capabilities; 2026-07-28: basic/versioning#extension-negotiation,
basic/transports/stdio and basic/transports/streamable-http (backward compatibility).
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import msgspec

from .._wire import (
    STRUCTS,
    UNSET,
    UNWRITABLE,
    Raw,
    ValidationError,
    convert,
    encode,
    error_text,
    is_object,
    to_builtins,
)
from ..errors import (
    AuthorizationError,
    ConnectFailedError,
    HttpStatusError,
    LocalProtocolError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RevisionError,
    TransportError,
)
from ..facts import Lifecycle, Method, Revision, Revisions
from ..foreign_text import safe_repr
from .lenient import sent_capabilities
from .lifecycle import DISCOVER, INITIALIZE, Description, Session, State, declared, newest_common
from .request_meta import is_reserved_key, is_valid_key

if TYPE_CHECKING:
    from ..revision_facts import Facts

Path: TypeAlias = tuple[str, ...]
"""Names of members, from the root of the capabilities."""

CAPABILITY = "extensions"
"""The capability under which extensions are declared."""

_OFFICIAL_PREFIX = "io.modelcontextprotocol/"
_OFFICIAL = frozenset(
    {
        f"{_OFFICIAL_PREFIX}enterprise-managed-authorization",
        f"{_OFFICIAL_PREFIX}oauth-client-credentials",
        f"{_OFFICIAL_PREFIX}tasks",
        f"{_OFFICIAL_PREFIX}ui",
    }
)
"""The extensions that the specification's own organization had published when this was written."""

_logger = logging.getLogger(__name__)

_OF_SESSIONS = frozenset({"listChanged", "logging", "subscribe"})
# What a client subscribes to, and the level of log messages, is state of its session.

_ELICITATION, _SAMPLING = "elicitation", "sampling"
_FORM, _URL = "form", "url"


class Step(enum.Enum):
    """The step of the negotiation."""

    PROBING = "probing"
    INITIALIZING = "initializing"
    DONE = "done"


class VersionNegotiation:
    """The decisions of the negotiation; `Connection` sends and receives.

    Args:
        revisions: The revisions this client offers.
        describe: The client's implementation info and capabilities, by revision.
    """

    def __init__(self, revisions: Revisions, describe: Callable[[Revision], Description]) -> None:
        self._all = revisions
        self._describe = describe
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self._legacy = revisions.of(Lifecycle.HANDSHAKE)
        self._tried: set[str] = set()
        self._insisted = False
        self.step = Step.PROBING if self._modern else Step.INITIALIZING
        self.shook_hands = False
        """Whether the session was opened by a handshake, which the client has to confirm."""
        self.revision = (self._modern or self._legacy).newest()

    @property
    def may_fall_back(self) -> bool:
        """Whether there is a handshake to try when a probe fails."""
        return bool(self._legacy)

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer without a probe; `None` if there is no other way."""
        return self._legacy if self._modern and self._legacy else None

    def request(self) -> tuple[Revision, str, dict[str, Any]]:
        """The request of this step: revision, method, and params without `_meta`."""
        self._tried.add(self.revision.name)
        if self.step is Step.PROBING:
            return self.revision, DISCOVER, {}
        own = self._describe(self.revision)
        params = {
            "protocolVersion": self.revision.name,
            "capabilities": own.capabilities,
            "clientInfo": own.info,
        }
        return self.revision, INITIALIZE, params

    def answered(self, result: Any, raw: Raw) -> Session | None:
        """Receive the result of this step's request, with types and as it came.

        Returns:
            The session, or `None` if another `request` has to be made.

        Raises:
            RevisionError: No revision in common.
        """
        if self.step is Step.INITIALIZING:
            return self._initialized(result, sent_capabilities(raw))
        offered = tuple(result.supported_versions)
        common = newest_common(self._modern, offered)
        if common is None:
            self._negotiate(offered)
            return None
        self.step = Step.DONE
        meta: Mapping[str, Any] = optional_member(result, "meta") or {}
        info = meta.get(common.facts.meta.server_info or "")
        if info is None:  # some revisions have it as a member of the result
            info = to_builtins(optional_member(result, "server_info"))
        return Session(
            revision=common,
            own_capabilities=self._describe(common).capabilities,
            peer_capabilities=sent_capabilities(raw),
            peer_info=info if is_object(info) else None,
            instructions=optional_member(result, "instructions"),
            supported=offered,
        )

    def failed(self, error: McpError | None) -> None:
        """The step's request failed, or got no response (`None`).

        `request` is then the next request to send.

        Raises:
            RevisionError: No revision in common, or none of the server's lifecycle.
            McpError: `error`: a per-request server or the handshake refused, or the server cannot
                be reached.
        """
        if self.step is Step.INITIALIZING:
            self._refused(error)
        elif _is_final(error) or (isinstance(error, TransportError) and not self._legacy):
            raise error
        elif isinstance(error, RemoteError) and self._is_modern(error):
            offered = _named(error, "supported")
            if not offered:
                raise error
            unknown = error.code == self.revision.facts.errors.unsupported_revision
            if not (unknown and self._insist(offered)):
                self._negotiate(offered)
        elif not self._legacy:
            told = f": {error}" if error is not None else ""
            raise RevisionError(f"the server speaks no per-request revision{told}", self._names())
        else:
            self._handshake(self._legacy.newest())

    def _handshake(self, revision: Revision) -> None:
        self.step = Step.INITIALIZING
        self.revision = revision

    def _initialized(self, result: Any, capabilities: Mapping[str, Any]) -> Session:
        revision = self._legacy.get(result.protocol_version)
        if revision is None:
            raise RevisionError(
                "the server chose a revision that was not offered",
                self._names(),
                (result.protocol_version,),
            )
        self.step = Step.DONE
        self.shook_hands = True
        return Session(
            revision=revision,
            own_capabilities=self._describe(revision).capabilities,
            peer_capabilities=capabilities,
            peer_info=to_builtins(result.server_info),
            instructions=optional_member(result, "instructions"),
            state=State.READY,
        )

    def _negotiate(self, offered: tuple[str, ...]) -> None:
        """A per-request server listed its revisions: try the newest one that was not tried yet."""
        fresh = tuple(name for name in offered if name not in self._tried)
        revision = newest_common(self._all, fresh)
        if revision is None:
            raise RevisionError("no revision in common", self._names(), offered)
        if revision.lifecycle is Lifecycle.HANDSHAKE:
            self._handshake(revision)
        self.revision = revision

    def _insist(self, offered: tuple[str, ...]) -> bool:
        """Try a revision once more that the server refused and also listed as supported."""
        fresh = tuple(name for name in offered if name not in self._tried)
        if self._insisted or newest_common(self._all, fresh) is not None:
            return False
        self._insisted = True
        return newest_common(self._modern, offered) is self.revision

    def _refused(self, error: McpError | None) -> None:
        """`initialize` was refused. Some servers then list their revisions."""
        offered = _named(error, "supported") if isinstance(error, RemoteError) else ()
        if not offered:
            raise error or RemoteProtocolError("initialize: no answer")
        fresh = tuple(name for name in offered if name not in self._tried)
        revision = newest_common(self._legacy, fresh)
        if revision is None:
            raise RevisionError("no revision in common", self._names(), offered) from error
        self.revision = revision

    def _is_modern(self, error: RemoteError) -> bool:
        codes = self.revision.facts.errors.defined
        return codes is not None and error.code in codes

    def _names(self) -> tuple[str, ...]:
        return tuple(self._all)


def _is_final(error: McpError | None) -> TypeGuard[McpError]:
    """Whether another request would fail in the same way."""
    if isinstance(error, HttpStatusError):
        return error.wants_credentials
    return isinstance(error, AuthorizationError | ConnectFailedError | LocalProtocolError)


def _named(error: RemoteError, member: str) -> tuple[str, ...]:
    """The strings in a list member of `error.data`; none if there is no such list."""
    names = error.data.get(member) if is_object(error.data) else None
    try:
        return tuple(convert(names, list[str]))
    except ValidationError:
        return ()


def optional_member(value: Any, name: str) -> Any:
    """A member by its Python name; `None` if it is absent, or the type has none of that name."""
    member = getattr(value, name, None)
    return None if member is UNSET else member


def missing(method: Method, params: Any, capabilities: Mapping[str, Any]) -> Path | None:
    """The first capability that a request requires and that was not declared, or `None`.

    Args:
        method: The request.
        params: Its params: typed, as wire object, or raw JSON.
        capabilities: What the receiver declared.

    Raises:
        LocalProtocolError: The params have no JSON form.
    """
    if method.capability and not declared(capabilities, method.capability):
        return method.capability
    parts = _PARTS.get(method.name)
    return None if parts is None else parts(_wire(params), capabilities)


def _wire(params: Any) -> Mapping[str, Any]:
    plain: Any = params
    try:
        if isinstance(params, Raw):
            plain = msgspec.json.decode(params)
        elif isinstance(params, STRUCTS):
            plain = to_builtins(params)
    except UNWRITABLE as error:
        raise LocalProtocolError(f"params: {error_text(error)}") from error
    return plain if is_object(plain) else {}


def _elicitation(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    """Without `mode` it is a form; a client that names no mode declared forms."""
    mode = params.get("mode", _FORM)
    if mode not in (_FORM, _URL):
        return None  # no mode at all: what the params are read as says so
    named = capabilities.get(_ELICITATION)
    if mode == _FORM and is_object(named) and named.get(_URL) is None:
        return None
    return _lacking(capabilities, (_ELICITATION, mode))


def _sampling(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    if "tools" in params or "toolChoice" in params:
        return _lacking(capabilities, (_SAMPLING, "tools"))
    return None


def _lacking(capabilities: Mapping[str, Any], path: Path) -> Path | None:
    return None if declared(capabilities, path) else path


_PARTS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Path | None]] = {
    "elicitation/create": _elicitation,
    "sampling/createMessage": _sampling,
}


def check_extensions(capabilities: Mapping[str, Any], facts: Facts) -> None:
    """Check the extensions that a side is about to declare.

    Raises:
        ValueError: An identifier has no valid form, or a prefix that is kept for the
            protocol; or its settings are no object.
    """
    declared = capabilities.get(CAPABILITY, {})
    if not is_object(declared):
        raise ValueError(f"capabilities.extensions: expected an object, got {safe_repr(declared)}")
    for identifier, settings in declared.items():
        if "/" not in identifier or identifier.endswith("/") or not is_valid_key(identifier):
            raise ValueError(f"extension {identifier!r}: expected a dotted prefix, '/' and a name")
        if not is_object(settings):
            raise ValueError(
                f"extension {identifier!r}: expected an object of settings, "
                f"got {safe_repr(settings)}"
            )
        if is_reserved_key(identifier, facts) and identifier not in _OFFICIAL:
            if not identifier.startswith(_OFFICIAL_PREFIX):
                raise ValueError(
                    f"extension {identifier!r}: its prefix is reserved for the protocol"
                )
            _logger.warning("extension %r is no official one that is known here", identifier)


def without_session(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities of a server that keeps no sessions: those that need no session."""
    return {
        name: (
            {flag: value for flag, value in members.items() if flag not in _OF_SESSIONS}
            if is_object(members)
            else members
        )
        for name, members in capabilities.items()
        if name not in _OF_SESSIONS
    }


def needs_session(capability: Path) -> bool:
    """Whether a server can have a capability only with sessions."""
    return not _OF_SESSIONS.isdisjoint(capability)


def reduced_to(kind: Any, wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """A wire object, without the members that a type of a revision does not have."""
    reduced: Mapping[str, Any] = to_builtins(convert(wire, kind))
    return reduced


def declared_in(kind: Any, capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """Capabilities as a revision has them; extensions are declared in each."""
    reduced = reduced_to(kind, capabilities)
    if CAPABILITY not in capabilities or CAPABILITY in reduced:
        return reduced
    return {**reduced, CAPABILITY: capabilities[CAPABILITY]}


def with_extensions(kind: Any, members: Mapping[str, Any]) -> Any:
    """Params or the result of `initialize`, with the extensions that its type does not have."""
    capabilities = members["capabilities"]
    if CAPABILITY not in capabilities:
        return members
    try:
        return Raw(encode({**reduced_to(kind, members), "capabilities": capabilities}))
    except UNWRITABLE:  # whoever sends it says why
        return members


def settings_of(capabilities: Mapping[str, Any], identifier: str) -> Mapping[str, Any] | None:
    """The settings by which a side declares an extension; `None` if it does not."""
    declared = capabilities.get(CAPABILITY)
    settings = declared.get(identifier) if is_object(declared) else None
    return settings if is_object(settings) else None


def merged_objects(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one, merged recursively."""
    merged = dict(base)
    for name, value in more.items():
        old = merged.get(name)
        merged[name] = merged_objects(old, value) if is_object(old) and is_object(value) else value
    return merged
