"""One connection without its I/O: received bytes become events, calls become messages to send.

`Connection` matches responses with requests and checks messages. It opens nothing, waits for
nothing and reads no clock: the caller passes the time. A message is read by the agreed revision of
the session, or by the revision that the request states in its `_meta`. Revisions are tables; a
message that is in none of them is refused or ignored.

    received bytes --> Receiver           --> events
    calls          --> Connection         --> OutgoingMessage   a Connection is a Receiver

`client_connection` adds version negotiation, `server_connection` handshake and subscriptions.

Source: basic/index, basic/lifecycle, basic/versioning; basic/utilities or basic/patterns
(cancellation, progress), server/utilities/logging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from .._wire import UNWRITABLE, ValidationError, error_text
from ..channel import OutgoingMessage, RequestId
from ..errors import LocalProtocolError, McpError, MethodNotFoundError, ProtocolError
from ..facts import Revision
from ..foreign_text import safe_repr
from . import jsonrpc
from .lifecycle import Session, is_declared
from .receiver import Event, Ignored, Receiver, RequestFailed
from .request_meta import NO_META, with_meta
from .requests import (
    CANCELLED,
    LOG_LEVELS,
    MESSAGE,
    OBJECTS,
    PROGRESS,
    PROGRESS_TOKEN,
    ConnectionState,
    OutboundRequest,
    cancellation,
    check_params,
    error_response,
    is_log_level,
    notification,
    success_response,
)


class Connection(Receiver):
    """The protocol of one side of a connection; each side has a class derived from it.

    Args:
        state: The session, and the open requests of both sides.
    """

    @property
    def state(self) -> ConnectionState:
        """The session, and the open requests of both sides."""
        return self._state

    @property
    def session(self) -> Session | None:
        """The agreed session; `None` before the handshake, and where there is none."""
        return self._state.session

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self._state.revision

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        related_request_id: RequestId | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        now: float = 0.0,
        reads_result: bool = True,
    ) -> tuple[RequestId, OutgoingMessage]:
        """Begin a request.

        Args:
            name: The method.
            params: Typed params, a wire object, raw JSON, which is sent unchecked, or `None`.
            meta: Members that the user adds to `_meta`.
            progress: Whether to ask for progress.
            related_request_id: The received request on whose behalf this request is made, if any.
            timeout: Seconds until the request is lost; progress restarts them.
            limit: Seconds until the request is lost despite progress.
            now: The current time, on the caller's clock.
            reads_result: Whether the result is decoded and checked, or only kept as JSON.

        Returns:
            The id of the request, and the message.

        Raises:
            MethodNotFoundError: The agreed revision has no such request for this side.
            MissingCapabilityError: The peer did not declare a required capability.
            LocalProtocolError: The request must not be sent now, `meta` breaks a rule, or the
                params do not fit the revision or have no JSON form.
        """
        state = self._state
        revision, method = state.request_target(name, params, related_request_id)
        is_typed = type(params) in method.params_structs
        if not (is_typed or params is None or isinstance(params, OBJECTS)):
            got = safe_repr(params)
            raise LocalProtocolError(f"{name}: expected an object as params, got {got}")
        request = OutboundRequest(method, revision, progress, timeout, reads_result=reads_result)
        if limit is not None:
            request.deadline = request.limit = now + limit
        if timeout is not None:
            request.extend(now)
        added = state.request_meta(revision, meta)
        identifier = state.outbound.add(request)
        try:
            if progress:
                added = {**added, PROGRESS_TOKEN: identifier}
            encoded = state.meta.encode(revision, added) if added else None
            shaped = with_meta(params, added, encoded)
            if not (is_typed or isinstance(params, Raw)):
                check_params(method, shaped)
            data = jsonrpc.encode_request(identifier, name, shaped)
        except ValidationError as error:
            state.outbound.pop(identifier)
            raise LocalProtocolError(f"{name}: params: {error_text(error)}") from None
        except UNWRITABLE as error:
            state.outbound.pop(identifier)
            text = f"{name}: params: no JSON form: {error_text(error)}"
            raise LocalProtocolError(text) from error
        return identifier, OutgoingMessage(
            data, "request", identifier, name, revision, related_request_id, params
        )

    def respond(self, identifier: RequestId, result: Any = None) -> OutgoingMessage | None:
        """Answer a request.

        Args:
            identifier: The id of the request.
            result: The typed result, or a wire object, which is converted: members that the
                revision does not have are dropped. `None` for a result without members.

        Returns:
            The response, or `None` if the request is no longer open.

        Raises:
            InternalError: The result does not fit the method or has no JSON form; call `fail` then.
            MissingCapabilityError: The client did not declare a capability that an input request
                requires.
        """
        return success_response(self._state, identifier, result)

    def fail(self, identifier: RequestId, error: ProtocolError) -> OutgoingMessage | None:
        """Answer a request with an error; `None` if the request is no longer open."""
        request = self._state.inbound.get(identifier)
        if request is None:
            return None
        message = error_response(identifier, error, request.revision)
        del self._state.inbound[identifier]
        return message

    def cancel(self, identifier: RequestId, reason: str | None = None) -> OutgoingMessage | None:
        """Cancel a request of this side.

        Returns:
            The notification to send; `None` if the request is no longer open, or its method or
            revision allows no cancellation.
        """
        request = self._state.outbound.pop(identifier)
        if request is None or not request.method.facts.cancellable:
            return None
        if CANCELLED not in request.revision.notifications_from(self._state.role):
            return None
        params: dict[str, Any] = {"requestId": identifier}
        if reason is not None:
            params["reason"] = reason
        return cancellation(request.revision, params)

    def cancel_by_stream(self, identifier: RequestId) -> OutgoingMessage | None:
        """Cancel a request of this side whose stream was closed.

        Returns:
            The notification to send; `None` also if closing the stream cancels the request.

        Source: basic/patterns/cancellation (2026-07-28: transport-specific cancellation).
        """
        request = self._state.outbound.get(identifier)
        if request is not None and request.revision.facts.http.cancellation == "close":
            self._state.outbound.pop(identifier)
            return None
        return self.cancel(identifier)

    def progress(
        self,
        identifier: RequestId,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> OutgoingMessage | None:
        """Report progress of an inbound request.

        Returns:
            The notification; `None` if the peer wants no progress, the request is no longer open,
            or the value is not more than the last one.

        Raises:
            LocalProtocolError: The value is no finite number, or another argument has the wrong
                type.
        """
        request = self._state.inbound.get(identifier)
        if request is None or request.progress_token is None:
            return None
        if not _is_finite(progress):
            raise LocalProtocolError(
                f"progress: expected a finite number, got {safe_repr(progress)}"
            )
        if not request.advance(progress):
            return None
        params: dict[str, Any] = {PROGRESS_TOKEN: request.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        return notification(self._state.role, request.revision, PROGRESS, params, identifier)

    def log(
        self,
        identifier: RequestId | None,
        level: str,
        data: Any,
        logger: str | None = None,
        meta: Mapping[str, Any] = NO_META,
    ) -> OutgoingMessage | None:
        """Send a log message to the client.

        Args:
            identifier: The request that the message belongs to; `None` for the whole session.
            level: One of `LOG_LEVELS`, or another level that the revision has.
            data: Any JSON value.
            logger: Name of the logger.
            meta: `_meta` of the notification.

        Returns:
            The notification; `None` if the client does not want the message.

        Raises:
            LocalProtocolError: There is no such level.
        """
        request = None if identifier is None else self._state.inbound.get(identifier)
        revision = request.revision if request is not None else self._state.revision
        if not is_log_level(level, revision):
            raise LocalProtocolError(
                f"log level: expected one of {', '.join(LOG_LEVELS)}, got {safe_repr(level)}"
            )
        if request is None and (identifier is not None or self._state.session is None):
            return None
        if not is_declared(self._state.own_capabilities(revision), ("logging",)):
            return None
        if not self._state.wants_log(level, revision, request):
            return None
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        if meta:
            params["_meta"] = meta
        return notification(self._state.role, revision, MESSAGE, params, identifier)

    def notify(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        related_request_id: RequestId | None = None,
    ) -> list[OutgoingMessage]:
        """Make the messages of a notification, one for each session or stream that receives it.

        There are none for a change without declared capability or without subscription, nor for
        progress and log messages that the peer does not want.

        Args:
            name: The notification.
            params: The params as wire object.
            related_request_id: The received request on whose behalf the notification is sent.

        Raises:
            MethodNotFoundError: No revision in use has such a notification for this side.
            LocalProtocolError: The params do not fit; or the notification is a cancellation, which
                only `cancel` sends; or a revision without sessions needs a request for it.
        """
        wire = dict(params or {})
        state = self._state
        revisions = state.candidate_revisions()
        defined = any(name in revision.notifications_from(state.role) for revision in revisions)
        if not defined and name not in state.extensions:
            raise MethodNotFoundError(name)
        if name == CANCELLED:
            raise LocalProtocolError(f"{name}: is sent by giving up the request itself")
        if name == PROGRESS:
            return self._notify_progress(wire)
        return self._notifications(name, wire, related_request_id)

    def _notifications(
        self, name: str, wire: Mapping[str, Any], related_request_id: RequestId | None
    ) -> list[OutgoingMessage]:
        """Make the messages of a notification; see `notify`."""
        state = self._state
        session = state.session
        if session is None or not state.session_wants(session, name):
            return []
        return [notification(state.role, session.revision, name, wire)]

    # A server's connection overrides these for subscriptions.

    def is_subscribed(self, uri: str) -> bool:
        """Whether the peer subscribed to a resource."""
        return False

    def subscribed_uris(self) -> set[str]:
        """The resources that the peer subscribed to."""
        return set()

    def has_subscriber(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a subscription stream admits a notification."""
        return False

    def close_streams(self) -> list[OutgoingMessage]:
        """End all subscription streams; returns the messages to send."""
        return []

    def is_open(self, identifier: RequestId) -> bool:
        """Whether a request of the peer with this id has no response yet."""
        return identifier in self._state.inbound

    def request_lost(self, identifier: RequestId, error: McpError) -> list[Event]:
        """The transport reports that a request of this side gets no response, and the error."""
        if self._state.outbound.pop(identifier) is None:
            return [Ignored(f"{safe_repr(identifier)}, which is no open request: {error}")]
        return [RequestFailed(identifier, error)]

    def closed(self) -> list[RequestId]:
        """The transport ended: drop the open requests of both sides.

        Returns:
            The requests of this side, which get no response.
        """
        self._state.inbound.clear()
        return self._state.outbound.drain()

    def _notify_progress(self, params: Mapping[str, Any]) -> list[OutgoingMessage]:
        """Report progress of the request with the token in some params."""
        token = params.get(PROGRESS_TOKEN)
        for identifier, request in self._state.inbound.items():
            own = request.progress_token
            if own == token and type(own) is type(token):
                report = self.progress(
                    identifier, params["progress"], params.get("total"), params.get("message")
                )
                return [] if report is None else [report]
        return []


def _is_finite(value: object) -> bool:
    """Whether a value is a number that JSON can express."""
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
