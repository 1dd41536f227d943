"""The states of both lifecycles, the messages that move them, and the names of these messages.

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

Source: basic/lifecycle (to 2025-11-25), basic/versioning (2026-07-28).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping


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
