"""Middleware of a client: functions around the requests and notifications that it sends.

The function that was registered first is the outermost. A client without middleware does not import
this module.

Middleware is called for each request that is sent, by wire name and raw too, and for each
notification: again for a retry and for each round of input, but not for a result from the cache. It
is not called for messages that a client sends by itself: initialization, cancellation, the streams
of `listen`, liveness checks, and requests that are repeated in a new session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from .._wire import is_object
from ..channel import RequestId
from ..facts import Role
from ..runtime.peer import Peer

if TYPE_CHECKING:
    from .pipeline import RequestPipeline

Result = TypeVar("Result")


class ClientRequest:
    """A request or notification on its way to the server.

    Args:
        peer: The client's end, with an open session.
        method: The method.
        params: The params: typed, a wire object or raw JSON; `None` for none.
        meta: Members to add to `_meta`.
        is_notification: Whether the message is a notification.
        sent: A list to which the id of the request is added when the request is sent.

    Attributes:
        method: The method, such as `tools/call`.
        params: The params: typed, a wire object or raw JSON; `None` for none.
        meta: Members that are added to `_meta`.
        is_notification: Whether no response is expected.
    """

    __slots__ = ("_peer", "_sent", "is_notification", "meta", "method", "params")

    role: Role = "client"

    def __init__(
        self,
        peer: Peer,
        method: str,
        params: Any,
        meta: Mapping[str, Any],
        is_notification: bool,
        sent: list[RequestId],
    ) -> None:
        self.method = method
        self.params = params
        self.meta = meta
        self.is_notification = is_notification
        self._peer = peer
        self._sent = sent

    @property
    def request_id(self) -> RequestId | None:
        """Id of the request after sending; `None` before, and for a notification."""
        return self._sent[-1] if self._sent else None

    @property
    def target(self) -> str | None:
        """Name of the tool or prompt, or URI of the resource; `None` if there is none."""
        params = self.params
        members = params.get if is_object(params) else partial(getattr, params)
        target = members("name", None) or members("uri", None)
        return target if isinstance(target, str) else None

    @property
    def revision(self) -> str:
        """Name of the negotiated revision."""
        return self._peer.connection.revision.name

    @property
    def session_id(self) -> str | None:
        """Id of the session, if the channel has one."""
        return self._peer.callers.channel.session_id

    @property
    def transport(self) -> str:
        """Name of the transport, such as `stdio`, `HTTP` and `memory`."""
        return self._peer.transport

    def with_params(self, params: Any) -> ClientRequest:
        """A copy of the message with other params, for `next`.

        Args:
            params: In the type of the revision, such as `replace(request.params, name="other")`,
                or a wire object.
        """
        return ClientRequest(
            self._peer, self.method, params, self.meta, self.is_notification, self._sent
        )

    def with_meta(self, meta: Mapping[str, Any]) -> ClientRequest:
        """A copy of the message with more members in `_meta`, for `next`."""
        merged = {**self.meta, **meta}
        return ClientRequest(
            self._peer, self.method, self.params, merged, self.is_notification, self._sent
        )


ClientNext: TypeAlias = Callable[[ClientRequest], Awaitable[Any]]
"""Sends a message. The result is in the type of the revision, `None` for a notification."""

ClientMiddleware: TypeAlias = Callable[[ClientRequest, ClientNext], Awaitable[Any]]
"""Returns the result of a request: that of `next`, a changed one, or its own."""


class ClientMiddlewareChain:
    """The middleware of a session.

    Attributes:
        functions: The middleware, the outermost first.
    """

    def __init__(self) -> None:
        self.functions: list[ClientMiddleware] = []

    async def request(self, peer: Peer, send: partial[Any]) -> Any:
        """Send a request through the middleware, and return its result.

        Args:
            peer: The client's end.
            send: Sends the request, with method and params as positional arguments.
        """
        method, params = send.args
        sent: list[RequestId] = []
        request = ClientRequest(peer, method, params, send.keywords.get("meta") or {}, False, sent)

        def send_request(message: ClientRequest) -> Awaitable[Any]:
            keywords = {**send.keywords, "meta": message.meta or None}
            sent.append(peer.connection.state.outbound.next_id)
            result: Awaitable[Any] = send.func(message.method, message.params, **keywords)
            return result

        return await self._call(0, send_request, request)

    async def notification(self, peer: Peer, name: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification through the middleware."""
        meta = (params or {}).get("_meta", {})
        request = ClientRequest(peer, name, params, meta, True, [])

        def send_notification(message: ClientRequest) -> Awaitable[Any]:
            wire: dict[str, Any] | None = message.params
            if message.meta:
                wire = {**(wire or {}), "_meta": message.meta}
            return peer.callers.notify(message.method, wire)

        await self._call(0, send_notification, request)

    def _call(self, index: int, send: ClientNext, request: ClientRequest) -> Awaitable[Any]:
        if index < len(self.functions):
            return self.functions[index](request, partial(self._call, index + 1, send))
        return send(request)


class MiddlewareCalls:
    """The method of clients that registers middleware."""

    def _pipelines(self) -> Iterable[RequestPipeline]:
        """The request pipeline of each session that is open."""
        raise NotImplementedError

    def middleware(
        self, middleware: Callable[[ClientRequest, ClientNext], Awaitable[Result]]
    ) -> Callable[[ClientRequest, ClientNext], Awaitable[Result]]:
        """Register a coroutine function around the requests and notifications of this client.

            @client.middleware
            async def audit(request: ClientRequest, next: ClientNext) -> Any:
                result = await next(request)
                return result

        The function returns the result: that of `next`, perhaps changed, or its own. The function
        that was registered first is the outermost. Each request that is sent passes, again for a
        retry and for each round of input; a result from the cache does not.

        Raises:
            TypeError: Not a coroutine function.
        """
        if not iscoroutinefunction(middleware):
            raise TypeError(f"middleware: expected a coroutine function, got {middleware!r}")
        for requests in self._pipelines():
            application = requests.application
            chain = application.chain
            if not isinstance(chain, ClientMiddlewareChain):
                application.chain = chain = ClientMiddlewareChain()
            chain.functions.append(middleware)
        return middleware
