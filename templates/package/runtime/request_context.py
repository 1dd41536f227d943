"""The context of a received request or notification, which its handler is given."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from msgspec import Raw

from ..channel import RequestId
from ..facts import Method, Revision
from ..protocol.events import NotificationReceived, RequestReceived
from .pending_requests import OnProgress, PendingRequests
from .principal import PRINCIPAL, Principal

_NOTHING: Mapping[str, Any] = {}


class RequestContext:
    """A request or notification with everything a handler needs.

    Attributes:
        method: Its row in the revision's table.
        params: Typed params, or `None`.
        raw_params: The params as received, unknown members included, or `None`.
        meta: `_meta`, empty if absent.
        revision: The revision that applies.
        request_id: Its id, or `None` for a notification.
        peer_info: The peer's implementation info as wire object, if stated.
        peer_capabilities: What the peer declared, as wire object.
        peer: Sends requests and notifications to the peer.
    """

    __slots__ = (
        "meta",
        "method",
        "params",
        "peer",
        "peer_capabilities",
        "peer_info",
        "raw_params",
        "request_id",
        "revision",
    )

    def __init__(
        self,
        peer: PendingRequests,
        method: Method,
        params: Any,
        raw_params: Raw | None,
        meta: Mapping[str, Any],
        revision: Revision,
        request_id: RequestId | None,
        peer_info: Mapping[str, Any] | None,
        peer_capabilities: Mapping[str, Any],
    ) -> None:
        self.peer = peer
        self.method = method
        self.params = params
        self.raw_params = raw_params
        self.meta = meta
        self.revision = revision
        self.request_id = request_id
        self.peer_info = peer_info
        self.peer_capabilities = peer_capabilities

    @property
    def principal(self) -> Principal:
        """On whose behalf it is served; `ANONYMOUS` without authentication."""
        return PRINCIPAL.get()

    def with_params(self, params: Any) -> RequestContext:
        """The same message with other typed params; `raw_params` stay as received."""
        return self._with(params, self.meta)

    def with_meta(self, meta: Mapping[str, Any]) -> RequestContext:
        """The same message with more members in `_meta`."""
        return self._with(self.params, {**self.meta, **meta})

    def _with(self, params: Any, meta: Mapping[str, Any]) -> RequestContext:
        return RequestContext(
            self.peer,
            self.method,
            params,
            self.raw_params,
            meta,
            self.revision,
            self.request_id,
            self.peer_info,
            self.peer_capabilities,
        )

    async def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the peer asked for it.

        Args:
            value: Progress so far; a value that is not more than the last is dropped.
            total: What `value` counts up to, if known.
            message: What is happening now (dropped where the revision has no such member).

        Source: basic/utilities/progress.
        """
        if self.request_id is not None:
            peer = self.peer
            await peer.send(peer.connection.progress(self.request_id, value, total, message))

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of this level.

        Args:
            level: One of debug, info, notice, warning, error, critical, alert, emergency.
            data: Any JSON value.
            logger: Name of the source.

        Source: server/utilities/logging.
        """
        await self.peer.send(self.peer.connection.log(self.request_id, level, data, logger))

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send a request to the peer on behalf of this request.

        Args:
            name: The method.
            params: Typed params or a wire object.
            timeout: Seconds without answer or progress; `None` for no limit.
            on_progress: Called with progress, total and message of each report; asks for them.

        Returns:
            The typed result.

        Raises:
            MissingCapabilityError: The peer did not declare a required capability.
            LocalProtocolError: The revision does not allow this side to send it, or has other
                params.
            RemoteError: The peer answered with an error.
        """
        return await self.peer.request(
            name,
            params,
            timeout=timeout,
            on_progress=on_progress,
            related_request_id=self.request_id,
        )

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification, if the peer wants it."""
        await self.peer.notify(name, params, related_request_id=self.request_id)

    async def close_stream(self) -> None:
        """Close the connection on which this request is answered; see `Context.close_stream`."""
        if self.request_id is not None:
            await self.peer.channel.close_sse_stream(self.request_id)


def context_of(
    peer: PendingRequests, event: RequestReceived | NotificationReceived
) -> RequestContext:
    """The context of an event."""
    if isinstance(event, RequestReceived):
        identifier, info, capabilities = event.id, event.peer_info, event.peer_capabilities
    else:
        session = peer.connection.session
        identifier = None
        info = session.peer_info if session is not None else None
        capabilities = session.peer_capabilities if session is not None else _NOTHING
    return RequestContext(
        peer,
        event.method,
        event.params,
        event.raw_params,
        event.meta,
        event.revision,
        identifier,
        info,
        capabilities,
    )


class Application(Protocol):
    """The handlers of one side of a connection."""

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any]:
        """Answer a request.

        Returns:
            The typed result, or a wire object of the newest shape, from which the revision takes
            what it has; `None` for a result without members.

        Raises:
            ProtocolError: The answer is this error. Any other exception becomes a neutral -32603.
        """
        ...

    async def notified(self, context: RequestContext) -> None:
        """Handle a notification."""
        ...
