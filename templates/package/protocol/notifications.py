"""The telling half of a connection's sending side: progress, log messages, changes.

A notification is always optional, so one that the peer does not want, or that comes too late, is
no error: there is just no message.

Source: basic/utilities or basic/patterns (progress, subscriptions), server/utilities/logging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from .._wire import convert, error_text
from ..channel import RequestId
from ..errors import LocalProtocolError, MethodNotFoundError
from ..facts import Lifecycle, Revision
from ..foreign_text import safe_repr
from . import jsonrpc
from .events import Send
from .lifecycle import declared
from .requests import LOG_LEVELS, InboundRequest, loud_enough
from .state import ConnectionState
from .subscriptions import RESOURCE_UPDATED

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"


class Notifier:
    """Builds the notifications of one side, and leaves out what nobody wants."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state

    def progress(
        self,
        identifier: RequestId,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> bytes | None:
        """Report on a request that is being served.

        Returns:
            The notification, or `None`: not wanted, over, or no more than what was reported.

        Raises:
            LocalProtocolError: Not a finite number, or a text where one is due.
        """
        serving = self._state.serving.get(identifier)
        if serving is None or serving.token is None:
            return None
        if not _is_finite(progress):
            raise LocalProtocolError(
                f"progress: expected a finite number, got {safe_repr(progress)}"
            )
        if not serving.advance(progress):
            return None
        params: dict[str, Any] = {"progressToken": serving.token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        return self.notification(serving.revision, PROGRESS, params)

    def log(
        self, identifier: RequestId | None, level: str, data: Any, logger: str | None = None
    ) -> bytes | None:
        """A log message for the client.

        Args:
            identifier: The request it belongs to; `None` for the session as a whole.
            level: One of `LOG_LEVELS`.
            data: Any JSON value.
            logger: Name of its source.

        Returns:
            The notification, or `None` if the client does not want it.

        Raises:
            LocalProtocolError: There is no such level.
        """
        if level not in LOG_LEVELS:
            raise LocalProtocolError(
                f"log level: expected one of {', '.join(LOG_LEVELS)}, got {safe_repr(level)}"
            )
        serving = None if identifier is None else self._state.serving.get(identifier)
        if serving is None and (identifier is not None or self._state.session is None):
            return None
        revision = serving.revision if serving is not None else self._state.revision
        if not declared(self._state.own_capabilities(revision), ("logging",)):
            return None
        if not self._loud_enough(level, revision, serving):
            return None
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        return self.notification(revision, MESSAGE, params)

    def notify(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        serving: RequestId | None = None,
    ) -> list[Send]:
        """Tell the peer something.

        A change that nobody asked to hear of (no capability declared, no subscription) gives no
        message at all; nor do progress and log messages that are not wanted.

        Args:
            name: The notification.
            params: Its params as wire object.
            serving: The received request on whose behalf it is sent, if any.

        Raises:
            MethodNotFoundError: No spoken revision has such a notification for this side.
            LocalProtocolError: The params do not fit; or a cancellation, which only the caller of
                a request can ask for.
        """
        wire = dict(params or {})
        role = self._state.role
        spoken = self._state.spoken()
        known = any(name in revision.notifications_from(role) for revision in spoken)
        if not known and name not in self._state.extensions:
            raise MethodNotFoundError(name)
        if name == CANCELLED:
            raise LocalProtocolError(f"{name}: is sent by giving up the request itself")
        if name in (PROGRESS, MESSAGE):
            return self._about_request(name, wire, serving)
        sends = [
            Send(self._tagged(identifier, name, wire), identifier)
            for identifier in self._state.streams.wanting(name, wire.get("uri"))
        ]
        session = self._state.session
        if session is not None and self._session_wants(name, wire):
            sends.append(Send(self.notification(session.revision, name, wire)))
        return sends

    def notification(self, revision: Revision, name: str, params: Mapping[str, Any]) -> bytes:
        """A notification in the shape of a revision, without further checks.

        Raises:
            LocalProtocolError: The params do not fit.
        """
        method = revision.notifications_from(self._state.role).get(name)
        shaped: Any = params or UNSET
        if method is not None and method.params is not None and params:
            try:
                shaped = convert(params, method.params)
            except msgspec.ValidationError as error:
                raise LocalProtocolError(f"{name}: params: {error_text(error)}") from None
        return jsonrpc.encode_notification(name, shaped)

    def _about_request(
        self, name: str, params: Mapping[str, Any], serving: RequestId | None
    ) -> list[Send]:
        """Progress or a log message in its general form, by the rules of its own."""
        message: bytes | None
        if name == PROGRESS:
            serving = self._serving_with(params.get("progressToken"))
            if serving is None:
                return []
            message = self.progress(
                serving, params["progress"], params.get("total"), params.get("message")
            )
        else:
            message = self.log(
                serving, params.get("level", ""), params.get("data"), params.get("logger")
            )
        return [] if message is None else [Send(message, serving)]

    def _serving_with(self, token: Any) -> RequestId | None:
        for identifier, serving in self._state.serving.items():
            if serving.token == token and type(serving.token) is type(token):
                return identifier
        return None

    def _loud_enough(self, level: str, revision: Revision, serving: InboundRequest | None) -> bool:
        if revision.facts.behaviour.log_level == "request":
            wanted = None if serving is None else serving.log_level
            return wanted is not None and loud_enough(level, wanted)
        session = self._state.session
        return session is not None and loud_enough(level, session.log_level)

    def _session_wants(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a change is to be told in the session: declared, and subscribed to."""
        session = self._state.session
        assert session is not None
        revision = session.revision
        if revision.lifecycle is Lifecycle.PER_REQUEST:
            return self._state.role == "client"
        method = revision.notifications_from(self._state.role).get(name)
        if method is None:
            return name in self._state.extensions
        if not session.may_send(name):
            return False
        if method.capability and not declared(session.own_capabilities, method.capability):
            return False
        return name != RESOURCE_UPDATED or params.get("uri") in session.subscriptions

    def _tagged(self, identifier: RequestId, name: str, params: Mapping[str, Any]) -> bytes:
        """A change as one subscription hears of it."""
        revision = self._state.serving[identifier].revision
        key = revision.facts.meta.subscription_id
        meta = {**params.get("_meta", {}), key: identifier}
        return self.notification(revision, name, {**params, "_meta": meta})


def _is_finite(value: object) -> bool:
    """Whether a number can be said in JSON; anything else can't be progress."""
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
