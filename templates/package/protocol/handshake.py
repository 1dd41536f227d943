"""A server's connection in revisions with a handshake: sessions, subscriptions, log levels.

Source: basic/index, basic/lifecycle, server/resources#subscriptions, server/utilities/logging.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .._wire import UNREADABLE, to_builtins
from ..channel import OutgoingMessage, RequestId
from ..errors import InvalidParamsError, InvalidRequestError, ProtocolError
from ..facts import Method, Revision, Revisions
from ..foreign_text import safe_text
from . import jsonrpc
from .connection import Connection, OwnHandler
from .events import Event, Ignored, NotificationReceived, RequestReceived, SendLog
from .lifecycle import (
    INITIALIZE,
    INITIALIZED,
    PING,
    SERVER_MOVES,
    Description,
    RequestMetadata,
    Session,
    State,
    Trigger,
    sent_capabilities,
    trigger_of,
    with_extensions,
)
from .request_meta import NO_META, read_meta
from .requests import MESSAGE, RESOURCE_UPDATED, SUBSCRIBE, UNSUBSCRIBE, ConnectionState

OWN_REQUESTS = frozenset({PING, INITIALIZE, SUBSCRIBE, "logging/setLevel"})
"""Requests that a connection handles itself, or checks against its session."""

FOLLOWING = frozenset({SUBSCRIBE, UNSUBSCRIBE})
"""Requests that change the resources to which a client is subscribed."""

RESOURCES = 1000
"""Most resources to which a session, or all streams of a connection together, may subscribe."""

URI_CHARACTERS = 256 * 1024
"""Most characters of the URIs of these resources together; a server keeps the URIs."""

SERVER_INFO = "serverInfo"
"""Member of the results of `initialize` and `server/discover`."""


class HandshakeConnection(Connection):
    """The protocol of a server, for one client, in revisions with a handshake."""

    def read_request(self, message: jsonrpc.Request) -> tuple[RequestReceived, RequestMetadata]:
        """Read a request; see `Connection`."""
        session, raw = self.state.session, message.params
        if session is None or raw is None or message.id in self.state.inbound:
            return super().read_request(message)
        method = session.admitted.get(message.method)
        if method is None or method.params is None:
            return super().read_request(message)
        try:
            params = method.decode_params(raw)
            decoded: Any = getattr(params, "meta", None)
            # It may be absent, or an object of a type of its own in these params.
            meta = decoded if decoded.__class__ is dict else read_meta(raw)
        except (ProtocolError, *UNREADABLE):
            return super().read_request(message)  # tells what is wrong
        stated = session.metadata
        event = RequestReceived(
            message.id,
            method,
            params,
            raw,
            meta,
            stated.revision,
            stated.peer_info,
            stated.peer_capabilities,
        )
        return event, stated

    def _session_metadata(self, method: str) -> RequestMetadata:
        session = self.state.session
        if session is not None and method in session.admitted:
            return session.metadata
        trigger = trigger_of(method, request=True)
        move = SERVER_MOVES.get((State.NEW if session is None else session.state, trigger))
        if move is None:
            raise self._out_of_turn_error(method)
        if trigger is Trigger.INITIALIZE:
            # Read like the first `initialize`; a refused one leaves the session unchanged.
            return RequestMetadata(self._first_revision(), NO_META, None, None)
        if session is not None:
            session.state = move
        return super()._session_metadata(method)

    def _out_of_turn_error(self, method: str) -> ProtocolError:
        """The error for a request that needs a session, before there is one."""
        return InvalidRequestError(f"expected initialize first, got {safe_text(method)}")

    def _is_in_turn(self, name: str) -> bool:
        """Whether a client may send a notification now; may advance the handshake."""
        session = self.state.session
        if session is None:
            return False
        move = SERVER_MOVES.get((session.state, trigger_of(name, request=False)))
        if move is not None:
            session.state = move
        return move is not None

    def _handle_notification(self, event: NotificationReceived) -> list[Event]:
        if event.method.name == INITIALIZED:
            return self._handle_initialized(event)
        return super()._handle_notification(event)

    def _initialize(self, event: RequestReceived) -> list[Event]:
        """Answer `initialize`, which a client may repeat, or a gateway forward for another client.

        The new session holds for later requests; open requests keep their revision. Subscriptions
        and the log level are kept.
        """
        params = event.params
        revision = self._handshakes.get(params.protocol_version) or self._handshakes.newest()
        own = self.state.describe(revision)
        session = Session(
            revision=revision,
            own_capabilities=own.capabilities,
            peer_capabilities=sent_capabilities(event.raw_params),
            peer_info=to_builtins(params.client_info),
            state=SERVER_MOVES[State.NEW, Trigger.INITIALIZE],
        )
        if (previous := self.state.session) is not None:
            session.log_level = previous.log_level
            session.subscriptions = previous.subscriptions
        self.state.session = session
        self.state.inbound[event.id].revision = revision
        self.state.inbound[event.id].method = revision.client_requests[INITIALIZE]
        result: dict[str, Any] = {
            "protocolVersion": revision.name,
            "capabilities": own.capabilities,
            SERVER_INFO: own.info,
        }
        if own.instructions is not None:
            result["instructions"] = own.instructions
        method = self.state.inbound[event.id].method
        return self._answer(event, with_extensions(method.result, result))

    def _set_level(self, event: RequestReceived) -> list[Event]:
        assert self.state.session is not None
        self.state.session.log_level = event.params.level
        return self._answer(event)

    def _subscribe(self, event: RequestReceived) -> list[Event]:
        if (session := self.state.session) is not None:
            check_subscriptions(session.subscriptions | {event.params.uri})
        return [event]

    def _handle_initialized(self, event: NotificationReceived) -> list[Event]:
        session = self.state.session
        if session is None or session.confirmed:
            return [Ignored("the handshake was confirmed already")]
        session.confirmed = True
        return [event]

    _own_handlers: Mapping[str, OwnHandler] = {
        PING: Connection._answer,
        INITIALIZE: _initialize,
        SUBSCRIBE: _subscribe,
        "logging/setLevel": _set_level,
    }

    def has_subscriber(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether the client subscribed to the resource of an update."""
        session = self.state.session
        if session is None or name != RESOURCE_UPDATED:
            return False
        return params.get("uri") in session.subscriptions

    def subscribed_uris(self) -> set[str]:
        """The resources that the client subscribed to."""
        session = self.state.session
        return set() if session is None else set(session.subscriptions)

    def assume_session(self, session: Session, lacks: str) -> None:
        """Receive the next message as if its sender had initialized a session.

        For servers that keep no sessions, or share them.

        Args:
            session: The revision of the session, and the metadata of the client.
            lacks: See `Session`; if not empty, requests to the client are refused.
        """
        session.own_capabilities = self.state.describe(session.revision).capabilities
        session.lacks = lacks
        self.state.session = session

    def _notifications(
        self, name: str, wire: Mapping[str, Any], related_request_id: RequestId | None
    ) -> Sequence[OutgoingMessage]:
        if name == MESSAGE:
            level, data, logger = wire.get("level", ""), wire.get("data"), wire.get("logger")
            meta = wire.get("_meta", NO_META)
            return self._log(SendLog(related_request_id, level, data, logger, meta))
        session = self.state.session
        if name == RESOURCE_UPDATED and not (session and wire.get("uri") in session.subscriptions):
            return ()
        return super()._notifications(name, wire, related_request_id)


def handshake_connection(
    revisions: Revisions,
    describe: Callable[[Revision], Description],
    extensions: Mapping[str, Method],
    parse_batch: jsonrpc.ParseBatch | None = None,
) -> HandshakeConnection:
    """The connection of a server to one client.

    Args:
        revisions: The revisions to speak, which have a handshake.
        describe: The server's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        parse_batch: Parses batches, in revisions that have them.
    """
    state = ConnectionState("server", revisions, describe, extensions, parse_batch=parse_batch)
    return HandshakeConnection(state)


def check_subscriptions(uris: Collection[str]) -> None:
    """Check that the resources to which a client subscribes stay within the limits.

    Raises:
        InvalidParamsError: They exceed a limit.
    """
    if len(uris) > RESOURCES or sum(map(len, uris)) > URI_CHARACTERS:
        raise InvalidParamsError(
            f"expected at most {RESOURCES} resources to follow, "
            f"with {URI_CHARACTERS} characters in all"
        )
