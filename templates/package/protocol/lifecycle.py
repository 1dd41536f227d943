"""The lifecycle of a connection: its states, what moves them, and what two peers have agreed on.

Every change of a state is a row or a sentence of this module; other modules look rows up.

A server with a handshake has one state for each session: `SERVER_MOVES` has the next state for each
pair of state and message. A message without a row is refused, and leaves the state as it was.

A server without a handshake has no state: revision and capabilities are read from the `_meta` of
each request. A server of both lifecycles decides so for each request; a request without `_meta`
belongs to the session.

A client moves through the steps of version negotiation (`initialization`, `server_discovery`,
`probe`). Each step sends one request, and its result or its failure leads to the next step:

    server/discover  result, a revision in common           -> open
                     per-request revision offered           -> server/discover, in that revision
                     revision with a handshake offered      -> initialize       only in clients of
                     any other error, or no response        -> initialize       both lifecycles
    initialize       result, a revision that was offered    -> notifications/initialized, open
                     error that lists another revision      -> initialize, in that revision

Anything else ends the negotiation with an error. After `open`, only the end of the channel changes
the state of a client; a transport may replace a session by another one of the same revision.

A message may only be sent to a peer that declared its capability. Some params require a part of a
capability: a mode of elicitation, tools for sampling. This holds for requests and for input
requests. Extensions are declared by identifiers that have the form of `_meta` keys, each with an
object of settings.

Source: basic/lifecycle (to 2025-11-25), basic/versioning (2026-07-28),
client/elicitation#capabilities, client/sampling#capabilities.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import msgspec

from .._wire import (
    STRUCTS,
    UNWRITABLE,
    Raw,
    convert,
    encode,
    error_text,
    is_object,
    to_builtins,
)
from ..errors import LocalProtocolError
from ..facts import Method, Revision


class _Single(enum.Enum):
    """An enumeration whose members are looked up with each message."""

    __hash__ = object.__hash__  # members are singletons; Enum.__hash__ is slow Python code


class State(_Single):
    """The state of a handshake."""

    NEW = "new"
    """No message was received yet."""
    ANSWERED = "answered"
    """`initialize` got its response; the client has not confirmed the session yet."""
    READY = "ready"
    """Both sides may send all messages that were agreed."""


class Trigger(_Single):
    """A client's message, as an input of the state table."""

    INITIALIZE = "initialize"
    INITIALIZED = "notifications/initialized"
    PING = "ping"
    REQUEST = "any other request"
    NOTIFICATION = "any other notification"


SERVER_MOVES: Mapping[tuple[State, Trigger], State] = {
    (State.NEW, Trigger.INITIALIZE): State.ANSWERED,
    (State.NEW, Trigger.PING): State.NEW,
    (State.ANSWERED, Trigger.INITIALIZED): State.READY,
    (State.ANSWERED, Trigger.PING): State.ANSWERED,
    # Some clients never send notifications/initialized: their first request confirms the session.
    (State.ANSWERED, Trigger.REQUEST): State.READY,
    (State.ANSWERED, Trigger.NOTIFICATION): State.ANSWERED,
    # Some gateways initialize and then forward the `initialize` of their client, or share one
    # connection among several clients: each `initialize` is answered and starts a new handshake.
    (State.ANSWERED, Trigger.INITIALIZE): State.ANSWERED,
    (State.READY, Trigger.INITIALIZE): State.ANSWERED,
    (State.READY, Trigger.INITIALIZED): State.READY,
    (State.READY, Trigger.PING): State.READY,
    (State.READY, Trigger.REQUEST): State.READY,
    (State.READY, Trigger.NOTIFICATION): State.READY,
}
"""The next state of a server's session; a message without an entry is refused."""

INITIALIZE = Trigger.INITIALIZE.value
INITIALIZED = Trigger.INITIALIZED.value
PING = Trigger.PING.value
DISCOVER = "server/discover"

_TRIGGERS = {trigger.value: trigger for trigger in Trigger}


def trigger_of(method: str, *, request: bool) -> Trigger:
    """The input of the state table for a message."""
    return _TRIGGERS.get(method) or (Trigger.REQUEST if request else Trigger.NOTIFICATION)


Path: TypeAlias = tuple[str, ...]
"""Names of members, from the root of the capabilities."""

CAPABILITY = "extensions"
"""The capability under which extensions are declared."""

_OF_SESSIONS = frozenset({"listChanged", "logging", "subscribe"})
# Subscriptions and the level of log messages are state of a session.

_ELICITATION, _SAMPLING = "elicitation", "sampling"
_FORM, _URL = "form", "url"

Admit: TypeAlias = Callable[[str, Sequence[str]], Sequence[str]]
"""Selects the subjects that a server reports, from a notification and requested subjects."""

OnSubscription: TypeAlias = Callable[[Collection[str]], object]
"""Called with the URIs of resources that a client subscribes to by a stream."""


class Session(msgspec.Struct, dict=True):
    """The agreement with the peer, until the connection ends.

    Attributes:
        revision: The negotiated revision.
        own_capabilities: The capabilities that this side declared, as wire object.
        peer_capabilities: The capabilities that the peer declared.
        peer_info: The peer's implementation info, if stated.
        instructions: The server's instructions (a client's session only).
        supported: Revisions of the server (per-request lifecycle only).
        state: The state of the handshake.
        confirmed: Whether `notifications/initialized` was received (a server's session only).
        log_level: Least level of log messages for the client; `None` until it is set.
        subscriptions: Resources to whose updates the client subscribed.
        admitted: Rows of the peer's requests that passed the checks, by wire name. State, revision
            and own capabilities, which the checks depend on, don't change in a ready session.
        permitted: Rows of requests to the peer that passed the checks and may be sent with any
            params, by wire name.
        lacks: For a session of one message: the missing part, for errors about requests to the
            client, whose responses could not reach this session. Empty for other sessions.
        own_meta: `_meta` of every request of this side, if there is any.
        encoded_meta: The same, as JSON.
    """

    revision: Revision
    own_capabilities: Mapping[str, Any]
    peer_capabilities: Mapping[str, Any]
    peer_info: Mapping[str, Any] | None = None
    instructions: str | None = None
    supported: tuple[str, ...] = ()
    state: State = State.READY
    confirmed: bool = False
    log_level: str | None = None
    subscriptions: set[str] = msgspec.field(default_factory=set[str])
    admitted: dict[str, Method] = msgspec.field(default_factory=dict[str, Method])
    permitted: dict[str, Method] = msgspec.field(default_factory=dict[str, Method])
    lacks: str = ""
    own_meta: Mapping[str, Any] | None = None
    encoded_meta: Raw | None = None

    @cached_property
    def metadata(self) -> RequestMetadata:
        """The metadata of requests of the peer that state none themselves."""
        return RequestMetadata(self.revision, self.peer_capabilities, self.peer_info, None)

    def permit(self, method: Method) -> None:
        """Remember a request to the peer that passed the checks, unless its params matter."""
        if self.state is State.READY and method.name not in _PARTS:
            self.permitted[method.name] = method

    def may_send(self, name: str) -> bool:
        """Whether the session allows a method now; it allows few before it is confirmed."""
        return self.state is State.READY or self.revision.facts.method(name).before_initialized


class RequestMetadata(msgspec.Struct, frozen=True):
    """The metadata of one request."""

    revision: Revision
    peer_capabilities: Mapping[str, Any]
    peer_info: Mapping[str, Any] | None
    log_level: str | None


class Description(msgspec.Struct, frozen=True):
    """The description of one side in one revision, as wire objects.

    Attributes:
        info: The implementation info: name, version and further members.
        capabilities: The declared capabilities.
        instructions: Instructions of a server.
        cache: Cache hints of a server for this description.
    """

    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    instructions: str | None = None
    cache: Mapping[str, Any] | None = None


def is_declared(capabilities: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a capability is declared: by an object, or by a flag that is true."""
    here: Any = capabilities
    for name in path:
        if not is_object(here) or name not in here:
            return False
        here = here[name]
    return here is not False and here is not None


def missing_capability(method: Method, params: Any, capabilities: Mapping[str, Any]) -> Path | None:
    """The first capability that a request requires and that was not declared, or `None`.

    Args:
        method: The request.
        params: Typed params, a wire object, or raw JSON.
        capabilities: The capabilities that the receiver declared.

    Raises:
        LocalProtocolError: The params have no JSON form.
    """
    if method.capability and not is_declared(capabilities, method.capability):
        return method.capability
    part = _PARTS.get(method.name)
    path = None if part is None else part(_wire(params), capabilities)
    return None if path is None or is_declared(capabilities, path) else path


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


def _elicitation_path(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    """The mode; a request or a client without any mode means forms."""
    mode = params.get("mode", _FORM)
    if mode not in (_FORM, _URL):
        return None  # not a mode: decoding the params reports it
    named = capabilities.get(_ELICITATION)
    if mode == _FORM and is_object(named) and named.get(_URL) is None:
        return None
    return _ELICITATION, mode


def _sampling_path(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    return (_SAMPLING, "tools") if "tools" in params or "toolChoice" in params else None


_PARTS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Path | None]] = {
    "elicitation/create": _elicitation_path,
    "sampling/createMessage": _sampling_path,
}
"""The part of a capability that the params of a request require, if any."""


def capabilities_without_session(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities that need no session."""
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
    """Whether a server needs sessions for a capability."""
    return not _OF_SESSIONS.isdisjoint(capability)


def reduce_to(kind: Any, wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """Remove the members of a wire object that a type of a revision does not have."""
    reduced: Mapping[str, Any] = to_builtins(convert(wire, kind))
    return reduced


def fit_capabilities(kind: Any, capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """Reduce capabilities to the type of a revision; extensions are kept in every revision."""
    reduced = reduce_to(kind, capabilities)
    if CAPABILITY not in capabilities or CAPABILITY in reduced:
        return reduced
    return {**reduced, CAPABILITY: capabilities[CAPABILITY]}


def with_extensions(kind: Any, members: Mapping[str, Any]) -> Any:
    """Params or result of `initialize`, with extensions even if its type has no such member."""
    capabilities = members.get("capabilities", {})
    if CAPABILITY not in capabilities:
        return members
    try:
        return Raw(encode({**reduce_to(kind, members), "capabilities": capabilities}))
    except UNWRITABLE:  # encoding the message reports the reason
        return members


def sent_capabilities(raw: Raw | None) -> Mapping[str, Any]:
    """The capabilities in received params or a received result, unknown members included."""
    members: Mapping[str, Any] = msgspec.json.decode(raw or b"{}")
    return without_malformed_extensions(members["capabilities"])


def without_malformed_extensions(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """A peer's capabilities; extensions whose settings are no object count as not declared.

    Source: basic/versioning#extension-negotiation (2026-07-28).
    """
    extensions = capabilities.get(CAPABILITY)
    if not is_object(extensions) or all(map(is_object, extensions.values())):
        return capabilities
    usable = {name: value for name, value in extensions.items() if is_object(value)}
    return {**capabilities, CAPABILITY: usable}


def settings_of(capabilities: Mapping[str, Any], identifier: str) -> Mapping[str, Any] | None:
    """The settings by which a side declares an extension; `None` if it does not."""
    declared = capabilities.get(CAPABILITY)
    settings = declared.get(identifier) if is_object(declared) else None
    return settings if is_object(settings) else None


def merge_objects(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one, merged recursively."""
    merged = dict(base)
    for name, value in more.items():
        old = merged.get(name)
        merged[name] = merge_objects(old, value) if is_object(old) and is_object(value) else value
    return merged
