"""One received request or notification, as its handler sees it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from msgspec import Raw

from ..channel import RequestId
from ..facts import Method, Revision
from ..protocol.events import NotificationReceived, RequestReceived
from ..protocol.lifecycle import Session
from .pending_requests import OnProgress

_NOTHING: Mapping[str, Any] = {}


class Messenger(Protocol):
    """What a handler may have sent on behalf of what it handles; a `Peer` is one."""

    @property
    def session(self) -> Session | None:
        """What was agreed with the peer, if there is a session."""
        ...

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        serving: RequestId | None = None,
    ) -> Any:
        """Send a request and wait for its typed result."""
        ...

    async def notify(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        serving: RequestId | None = None,
    ) -> None:
        """Send a notification, to whoever wants it."""
        ...

    async def report(
        self, identifier: RequestId, progress: float, total: float | None, message: str | None
    ) -> None:
        """Send progress of a request that is being served."""
        ...

    async def log(
        self, identifier: RequestId | None, level: str, data: Any, logger: str | None
    ) -> None:
        """Send a log message."""
        ...

    async def release(self, identifier: RequestId) -> None:
        """Close the connection that a request is answered on, where the peer comes back."""
        ...


class RequestContext:
    """A request or notification with everything a handler needs.

    Attributes:
        method: Its row in the revision's table.
        params: Typed params, or `None`.
        raw_params: The same as they came, unknown members included, or `None`.
        meta: `_meta`, empty if absent.
        revision: The revision it is judged by.
        request_id: Its id, or `None` for a notification.
        peer_info: How the peer calls itself, as wire object, if it said so.
        peer_capabilities: What the peer declared, as wire object.
        peer: The way back.
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
        peer: Messenger,
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

    async def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the peer asked for it.

        Args:
            value: How far it is; a value that is no more than the last is dropped.
            total: What `value` counts up to, if known.
            message: What is happening now (dropped where the revision has no such member).

        Source: basic/utilities/progress.
        """
        if self.request_id is not None:
            await self.peer.report(self.request_id, value, total, message)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of this level.

        Args:
            level: One of debug, info, notice, warning, error, critical, alert, emergency.
            data: Any JSON value.
            logger: Name of the source.

        Source: server/utilities/logging.
        """
        await self.peer.log(self.request_id, level, data, logger)

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Ask the peer something on behalf of this request.

        Args:
            name: The method.
            params: Typed params or a wire object.
            timeout: Seconds without answer or progress; `None` for no limit.
            on_progress: Called with progress, total and message of each report; asks for them.

        Returns:
            The typed result.

        Raises:
            MissingCapabilityError: The peer did not declare what it needs; nothing was sent.
            LocalProtocolError: The revision does not let this side ask.
            RemoteError: The peer refused.
        """
        return await self.peer.request(
            name, params, timeout=timeout, on_progress=on_progress, serving=self.request_id
        )

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the peer something; what nobody wants to hear is not sent."""
        await self.peer.notify(name, params, serving=self.request_id)

    async def close_stream(self) -> None:
        """Close the connection that this request is answered on; see `Context.close_stream`."""
        if self.request_id is not None:
            await self.peer.release(self.request_id)


def exchange_of(peer: Messenger, event: RequestReceived | NotificationReceived) -> RequestContext:
    """What a connection received, as its handler sees it."""
    if isinstance(event, RequestReceived):
        identifier, info, capabilities = event.id, event.peer_info, event.peer_capabilities
    else:
        session = peer.session
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
    """What a peer serves: the user's side of a connection."""

    def handle(self, exchange: RequestContext) -> Coroutine[Any, Any, Any]:
        """Answer a request.

        Returns:
            The typed result, or a wire object of the newest shape, from which the revision takes
            what it has; `None` for a result without members.

        Raises:
            ProtocolError: The answer is this error. Any other exception becomes a neutral -32603.
        """
        ...

    async def notified(self, exchange: RequestContext) -> None:
        """Take note of a notification."""
        ...
