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

from .._wire import is_object
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
        stateless: Whether it lasts for one message only, as on a server that keeps no sessions:
            no response of the client to a request would find its way back.
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
    stateless: bool = False

    @cached_property
    def metadata(self) -> RequestMetadata:
        """The metadata of each request of the peer that states none itself."""
        return RequestMetadata(self.revision, self.peer_capabilities, self.peer_info, None)

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
