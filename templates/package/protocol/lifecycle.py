"""The two lifecycles as tables: which message moves a session where, and which must not come.

A session of the handshake kind walks through `State`; the tables say what each message does in
each state, and a pair that is not there is refused. In the per-request kind there is no state to
walk through: `RequestMetadata` are read from each request's `_meta` and hold for it alone.

Source: basic/lifecycle (to 2025-11-25), basic/versioning (2026-07-28).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from ..facts import Method, Revision, Revisions


class _Single(enum.Enum):
    """An enumeration whose members are looked up with each message."""

    __hash__ = object.__hash__  # there is one of each; Enum hashes names, in Python


class State(_Single):
    """How far the handshake is."""

    NEW = "new"
    """Nothing was said yet."""
    ANSWERED = "answered"
    """`initialize` has its answer; the client has not confirmed it."""
    READY = "ready"
    """Both sides may send whatever was agreed."""


class Trigger(_Single):
    """What a client's message means to the handshake."""

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
    # Clients exist that never send notifications/initialized: their first request stands for it.
    (State.ANSWERED, Trigger.REQUEST): State.READY,
    (State.ANSWERED, Trigger.NOTIFICATION): State.ANSWERED,
    # Gateways exist that initialize by themselves and then forward the initialize of their client,
    # or that have several clients share one connection: each is answered, and begins anew.
    (State.ANSWERED, Trigger.INITIALIZE): State.ANSWERED,
    (State.READY, Trigger.INITIALIZE): State.ANSWERED,
    (State.READY, Trigger.INITIALIZED): State.READY,
    (State.READY, Trigger.PING): State.READY,
    (State.READY, Trigger.REQUEST): State.READY,
    (State.READY, Trigger.NOTIFICATION): State.READY,
}
"""What a server's session does on a client's message; a pair that is absent is refused."""

INITIALIZE = Trigger.INITIALIZE.value
INITIALIZED = Trigger.INITIALIZED.value
PING = Trigger.PING.value
DISCOVER = "server/discover"

_TRIGGERS = {trigger.value: trigger for trigger in Trigger}


def trigger_of(method: str, *, request: bool) -> Trigger:
    """What a message means to the handshake."""
    return _TRIGGERS.get(method) or (Trigger.REQUEST if request else Trigger.NOTIFICATION)


class Session(msgspec.Struct, dict=True):
    """What was agreed with the peer, until the connection ends.

    Attributes:
        revision: The revision both speak.
        own_capabilities: What this side declared, as wire object.
        peer_capabilities: What the peer declared.
        peer_info: How the peer calls itself, if it said so.
        instructions: How the server wants to be used (a client's session only).
        supported: Revisions the server named (per-request lifecycle only).
        state: How far the handshake is.
        confirmed: Whether the client's `notifications/initialized` came (a server's session only).
        log_level: Least level of log messages the client wants; `None` until it said.
        subscriptions: Resources whose updates the client asked for.
        admitted: Requests of the peer that were checked before: their rows by wire name. What they
            depend on (state, revision, own capabilities) no longer changes once the session is
            ready.
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
    subscriptions: set[str] = msgspec.field(default_factory=set)
    admitted: dict[str, Method] = msgspec.field(default_factory=dict)

    @cached_property
    def metadata(self) -> RequestMetadata:
        """The metadata of each request of the peer that states none itself."""
        return RequestMetadata(self.revision, self.peer_capabilities, self.peer_info, None)

    def may_send(self, name: str) -> bool:
        """Whether a method may be sent before the client has confirmed the handshake, or it has."""
        return self.state is State.READY or self.revision.facts.method(name).before_initialized


class RequestMetadata(msgspec.Struct, frozen=True):
    """What one request declares about its sender, for itself alone."""

    revision: Revision
    peer_capabilities: Mapping[str, Any]
    peer_info: Mapping[str, Any] | None
    log_level: str | None


class Description(msgspec.Struct, frozen=True):
    """One side's account of itself in one revision, as wire objects.

    Attributes:
        info: Name, version and what else the revision's `Implementation` has.
        capabilities: What it declares.
        instructions: For servers: how to use it.
        cache: For servers: members that say how long clients may keep this account.
    """

    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    instructions: str | None = None
    cache: Mapping[str, Any] | None = None


def declared(capabilities: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a capability is there: an object counts by its presence, a flag if it is true."""
    here: Any = capabilities
    for name in path:
        if not isinstance(here, (dict, Mapping)) or name not in here:  # quicker than `is_object`
            return False
        here = here[name]
    return here is not False and here is not None


def newest_common(own: Revisions, offered: tuple[str, ...]) -> Revision | None:
    """The newest of our revisions that the peer named."""
    common = [name for name in own if name in offered]
    return own[max(common)] if common else None
