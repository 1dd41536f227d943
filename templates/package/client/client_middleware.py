"""Middleware of a client: functions around the requests and notifications that it sends.

The first function that was registered is the outermost. A client without middleware sends without
this module.

Each request that is sent passes the middleware: a result from the cache does not, a retry and each
further round of input do again. So do requests by wire name, notifications, and raw requests. What
a client sends by itself does not: opening, cancellation, the streams of `listen`, liveness checks
and what is repeated in a new session.
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
        is_notification: Whether it is a notification.
        sent: Gets the id of the request when it is sent.

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
        """Id of the request, once it was sent; `None` for a notification."""
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
        """The same message with other params, for `next`.

        Args:
            params: In the type of the revision, such as `replace(request.params, name="other")`,
                or a wire object.
        """
        return ClientRequest(
            self._peer, self.method, params, self.meta, self.is_notification, self._sent
        )

    def with_meta(self, meta: Mapping[str, Any]) -> ClientRequest:
        """The same message with more members in `_meta`, for `next`."""
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
        """The result of a request.

        Args:
            peer: The client's end.
            send: Sends the request, with method and params as positional arguments.
        """
        method, params = send.args
        sent: list[RequestId] = []
        request = ClientRequest(peer, method, params, send.keywords.get("meta") or {}, False, sent)

        def sent_as(last: ClientRequest) -> Awaitable[Any]:
            keywords = {**send.keywords, "meta": last.meta or None}
            sent.append(peer.connection.next_request_id)
            result: Awaitable[Any] = send.func(last.method, last.params, **keywords)
            return result

        return await self._call(0, sent_as, request)

    async def notification(self, peer: Peer, name: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification."""
        meta = (params or {}).get("_meta", {})
        request = ClientRequest(peer, name, params, meta, True, [])

        def sent_as(last: ClientRequest) -> Awaitable[Any]:
            whole: dict[str, Any] | None = last.params
            if last.meta:
                whole = {**(whole or {}), "_meta": last.meta}
            return peer.callers.notify(last.method, whole)

        await self._call(0, sent_as, request)

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

        What it returns is the result: that of `next`, perhaps changed, or its own. The first one
        registered is the outermost. Each request that is sent passes: a result from the cache does
        not, a retry and each further round of input do again.

        Raises:
            TypeError: Not a coroutine function.
        """
        if not iscoroutinefunction(middleware):
            raise TypeError(f"middleware: expected a coroutine function, got {middleware!r}")
        for requests in self._pipelines():
            chain = requests.hooks.chain
            if not isinstance(chain, ClientMiddlewareChain):
                requests.hooks.chain = chain = ClientMiddlewareChain()
            chain.functions.append(middleware)
        return middleware
