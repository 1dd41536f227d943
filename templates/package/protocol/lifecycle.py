"""The two lifecycles as tables, and the capabilities that each side declares in them.

A session of the handshake kind walks through `State`; the tables say what each message does in
each state, and a pair that is not there is refused. In the per-request kind there is no state to
walk through: `RequestMetadata` are read from each request's `_meta` and hold for it alone.

A message may only be sent to a peer that declared its capability. Some params require a part of
one: a mode of elicitation, tools for sampling. This holds for requests and for input requests
alike. Extensions are declared under identifiers that have the form of `_meta` keys, each with an
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
    UNSET,
    UNWRITABLE,
    Raw,
    convert,
    encode,
    error_text,
    is_object,
    to_builtins,
)
from ..errors import LocalProtocolError
from ..facts import Method, Revision, Revisions


class _Single(enum.Enum):
    """An enumeration whose members are looked up with each message."""

    __hash__ = object.__hash__  # there is one of each; Enum hashes names, in Python


class State(_Single):
    """The state of a handshake."""

    NEW = "new"
    """No message was received yet."""
    ANSWERED = "answered"
    """`initialize` was answered; the client has not confirmed the session."""
    READY = "ready"
    """Both sides may send what was agreed."""


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


class Session(msgspec.Struct, dict=True):
    """The agreement with the peer, until the connection ends.

    Attributes:
        revision: The negotiated revision.
        own_capabilities: What this side declared, as wire object.
        peer_capabilities: What the peer declared.
        peer_info: The peer's implementation info, if stated.
        instructions: The server's instructions (a client's session only).
        supported: Revisions of the server (per-request lifecycle only).
        state: The state of the handshake.
        confirmed: Whether `notifications/initialized` was received (a server's session only).
        log_level: Least level of log messages for the client; `None` until it is set.
        subscriptions: Resources to whose updates the client subscribed.
        admitted: Requests of the peer that were checked before: their rows by wire name. What they
            depend on (state, revision, own capabilities) no longer changes once the session is
            ready.
        permitted: Requests to the peer that were checked before, in the same way, and that may be
            sent with any params.
        lacks: The need of all that outlasts one message, for errors: the session lasts for one
            message only, so no response of the client to a request would find its way back. Empty
            for a session that lasts.
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

    @cached_property
    def metadata(self) -> RequestMetadata:
        """The metadata of each request of the peer that states none itself."""
        return RequestMetadata(self.revision, self.peer_capabilities, self.peer_info, None)

    def permit(self, method: Method) -> None:
        """Remember a request to the peer that was checked, unless its params decide each time."""
        if self.state is State.READY and method.name not in _PARTS:
            self.permitted[method.name] = method

    def may_send(self, name: str) -> bool:
        """Whether a method may be sent now; few may before the client has confirmed the session."""
        return self.state is State.READY or self.revision.facts.method(name).before_initialized


class RequestMetadata(msgspec.Struct, frozen=True):
    """The metadata of one request, which holds for that request only."""

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


def declared(capabilities: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a capability is declared: by an object, or by a flag that is true."""
    here: Any = capabilities
    for name in path:
        if not is_object(here) or name not in here:
            return False
        here = here[name]
    return here is not False and here is not None


def newest_common(own: Revisions, offered: tuple[str, ...]) -> Revision | None:
    """The newest of our revisions that the peer supports."""
    common = [name for name in own if name in offered]
    return own[max(common)] if common else None


Path: TypeAlias = tuple[str, ...]
"""Names of members, from the root of the capabilities."""

CAPABILITY = "extensions"
"""The capability under which extensions are declared."""

_OF_SESSIONS = frozenset({"listChanged", "logging", "subscribe"})
# What a client subscribes to, and the level of log messages, is state of its session.

_ELICITATION, _SAMPLING = "elicitation", "sampling"
_FORM, _URL = "form", "url"


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


Admit: TypeAlias = Callable[[str, Sequence[str]], Sequence[str]]
"""Those of some subjects whose changes a server reports to a peer, by the notification."""

OnSubscription: TypeAlias = Callable[[Collection[str]], object]
"""Told the URIs of resources to whose updates a client subscribes by a stream."""


def accepted_filter(
    requested: Mapping[str, Any], capabilities: Mapping[str, Any], revision: Revision
) -> dict[str, Any]:
    """The part of a requested filter that a server with these capabilities accepts."""
    accepted: dict[str, Any] = {}
    for method in revision.server_notifications.values():
        member = method.facts.subscription
        if (
            member is not None
            and requested.get(member)
            and declared(capabilities, method.capability)
        ):
            accepted[member] = requested[member]
    return accepted


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
