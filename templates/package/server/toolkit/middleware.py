"""Middleware of a server: functions around the handling of requests and notifications.

The first function that was registered is the outermost. A server without middleware is served
directly, and one with middleware through `MiddlewareChain`, which is another application.

Messages that the protocol itself handles pass no middleware: `initialize`, `server/discover`,
`ping`, `logging/setLevel`, cancellation, and the streams of subscriptions.

`limit_rate` is middleware that limits the rate of requests, by a token bucket for each sender.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from ..._wire import Raw, encode, is_object
from ...channel import RequestId
from ...errors import ProtocolError, ToolError
from ...facts import Role
from ...revisions import REVISIONS
from ...runtime.request_context import Application, Principal, RequestContext
from ..request_head import RequestHead, current_request
from .context import session_id
from .output_conversion import tool_result_builder

_PAST_MIDDLEWARE = frozenset(
    {
        "initialize",
        "logging/setLevel",
        "notifications/cancelled",
        "ping",
        "server/discover",
        "subscriptions/listen",
    }
)
"""Messages that the protocol itself handles."""

RATE_LIMITED = 429
"""Code of the error that answers a request over the limit; `data` has `retryAfterSeconds`."""

MOST_SENDERS = 10_000
"""Most senders that are remembered; beyond, the least recently active one is forgotten."""

_logger = logging.getLogger(__name__)


class MiddlewareRequest:
    """A request or notification on its way to its handler.

    Args:
        context: The message.
        state: What the lifespan of the server yielded.

    Attributes:
        context: The message with its row in the method table; it can send progress and logs.
        state: What the lifespan of the server yielded.
    """

    __slots__ = ("context", "state")

    role: Role = "server"

    def __init__(self, context: RequestContext, state: Any) -> None:
        self.context = context
        self.state = state

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ...absence import attribute_error  # for the error only

            raise attribute_error(self, name)

    @property
    def method(self) -> str:
        """The method, such as `tools/call`."""
        return self.context.method.name

    @property
    def is_notification(self) -> bool:
        """Whether no response is expected."""
        return self.context.request_id is None

    @property
    def request_id(self) -> RequestId | None:
        """Id of the request; `None` for a notification."""
        return self.context.request_id

    @property
    def params(self) -> Any:
        """The params in the type of the revision, or `None`."""
        return self.context.params

    @property
    def message(self) -> Any:
        """The params, by the name that FastMCP has for them."""
        return self.context.params

    @property
    def target(self) -> str | None:
        """Name of the tool or prompt, or URI of the resource; `None` if there is none."""
        target = getattr(self.params, "name", None) or getattr(self.params, "uri", None)
        return target if isinstance(target, str) else None

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta`, empty if absent."""
        return self.context.meta

    @property
    def revision(self) -> str:
        """Name of the revision of the message."""
        return self.context.revision.name

    @property
    def session_id(self) -> str | None:
        """Id of the session; see `Context.session_id`."""
        return session_id(self.context)

    @property
    def transport(self) -> str:
        """Name of the transport, such as `stdio`, `HTTP` and `memory`."""
        if current_request() is not None:
            return "HTTP"
        channel = self.context.peer.channel
        return channel.transport or type(channel).__name__

    @property
    def principal(self) -> Principal:
        """The principal on whose behalf the message was sent."""
        return self.context.principal

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """Name and version of the client as wire object, if it sent them."""
        return self.context.peer_info

    @property
    def http_request(self) -> RequestHead | None:
        """The HTTP request; `None` over other transports."""
        return current_request()

    def with_params(self, params: Any) -> MiddlewareRequest:
        """A copy of the message with other params, for `next`.

        Args:
            params: In the type of the revision, such as `replace(request.params, name="other")`.
        """
        return MiddlewareRequest(self.context.with_params(params), self.state)

    def with_meta(self, meta: Mapping[str, Any]) -> MiddlewareRequest:
        """A copy of the message with more members in `_meta`, for `next`."""
        return MiddlewareRequest(self.context.with_meta(meta), self.state)


Next: TypeAlias = Callable[[MiddlewareRequest], Awaitable[Any]]
"""Passes a message on. The result is in the type of the revision, `None` for a notification."""

MiddlewareFunction: TypeAlias = Callable[[MiddlewareRequest, Next], Awaitable[Any]]
"""Returns the result of a request: that of `next`, a changed one, or its own."""


class Middleware:
    """Base of middleware that is a class, with a method for each kind of message.

        class Audit(Middleware):
            async def on_call_tool(self, request: MiddlewareRequest, next: Next) -> Any:
                return await next(request)

        server.middleware(Audit())

    A message passes `on_message`, then `on_request` or `on_notification`, then the method of its
    own: `on_` with the name that the message has as a method of `Client`, such as `on_call_tool`,
    `on_list_tools`, `on_read_resource`, `on_get_prompt` and `on_complete`. Each coroutine gets the
    message and the function that passes the message on, and returns the result, as any middleware.

    Raises:
        TypeError: (from a subclass) A method that begins with `on_` fits no message.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        unknown = {name for name in vars(cls) if name.startswith("on_")} - _hooks()
        if unknown:
            raise TypeError(
                f"{cls.__name__}: no message has {', '.join(sorted(unknown))}; expected "
                f"{', '.join(sorted(_hooks()))}"
            )

    async def __call__(self, request: MiddlewareRequest, next: Next) -> Any:
        """Pass a message through the methods."""
        own = getattr(self, f"on_{request.context.method.python_name}", None)
        every = self.on_notification if request.is_notification else self.on_request
        for hook in (own, every, self.on_message):
            if hook is not None:
                next = partial(_call_hook, hook, next)
        return await next(request)

    async def on_message(self, request: MiddlewareRequest, next: Next) -> Any:
        """Handle a request or a notification."""
        return await next(request)

    async def on_request(self, request: MiddlewareRequest, next: Next) -> Any:
        """Handle a request."""
        return await next(request)

    async def on_notification(self, request: MiddlewareRequest, next: Next) -> Any:
        """Handle a notification."""
        return await next(request)


def function_complaint(function: object) -> str:
    """Why an object is no middleware, for an error."""
    is_class = isinstance(function, type)
    kind: Any = function if is_class else type(function)
    hooks = ", ".join(sorted(name for name in dir(kind) if name.startswith("on_")))
    if not hooks:
        return f"expected a coroutine function or an object of a Middleware, got {function!r}"
    if is_class and issubclass(kind, Middleware):
        return f"expected an object, got the class {kind.__name__}: pass {kind.__name__}()"
    return (
        f"expected a coroutine function or an object of a Middleware, got {kind.__name__}, which "
        f"has {hooks} but is no Middleware: write class {kind.__name__}(Middleware)"
    )


def _call_hook(hook: MiddlewareFunction, next: Next, request: MiddlewareRequest) -> Awaitable[Any]:
    return hook(request, next)


@cache
def _hooks() -> frozenset[str]:
    """The methods of `Middleware`: those of every message, and of each that reaches middleware."""
    names = {
        row.python_name
        for revision in REVISIONS.values()
        for row in (*revision.client_requests.values(), *revision.client_notifications.values())
        if row.name not in _PAST_MIDDLEWARE
    }
    return frozenset(f"on_{name}" for name in (*names, "message", "request", "notification"))


class MiddlewareChain:
    """An application behind middleware.

    Args:
        application: Handles what the middleware passes on.
        functions: The middleware, the outermost first; it may grow later.
        state: Returns what the lifespan yielded for the current task.
    """

    def __init__(
        self,
        application: Application,
        functions: list[MiddlewareFunction],
        state: Callable[[], Any],
    ) -> None:
        self._application = application
        self._functions = functions
        self._state = state

    async def handle(self, context: RequestContext) -> Any:
        """The result of a request.

        A `ToolError` of a middleware around a tool is the result, as if the tool had raised it.
        """
        try:
            return await self._call(0, MiddlewareRequest(context, self._state()))
        except ToolError as error:
            if context.method.name != "tools/call":
                raise
            structured_content = context.revision.facts.behaviour.structured_content
            return tool_result_builder(context.method.result, structured_content).failure(
                f"{error}"
            )

    async def notified(self, context: RequestContext) -> None:
        """Handle a notification."""
        await self._call(0, MiddlewareRequest(context, self._state()))

    def _call(self, index: int, request: MiddlewareRequest) -> Awaitable[Any]:
        if index < len(self._functions):
            return self._functions[index](request, partial(self._call, index + 1))
        if request.is_notification:
            return self._application.notified(request.context)
        return self._typed_result(request.context)

    async def _typed_result(self, context: RequestContext) -> Any:
        """The handler's result in the type of the revision, with nothing encoded in advance."""
        result = await self._application.handle(context)
        items = context.method.items
        encoded = items is not None and isinstance(getattr(result, items, None), Raw)
        if not encoded and not is_object(result) and not isinstance(result, Raw):
            return result
        try:
            return context.method.decode_result(encode(result))
        except (msgspec.MsgspecError, ValueError, TypeError):
            return result  # the connection reports the error


Sender: TypeAlias = Literal["session", "principal"] | Callable[[MiddlewareRequest], Hashable]


def limit_rate(
    requests: int,
    *,
    seconds: float = 1.0,
    per: Sender = "session",
    clock: Callable[[], float] = time.monotonic,
) -> MiddlewareFunction:
    """Middleware that refuses requests, and drops notifications, over a rate.

        server.middleware(limit_rate(100, seconds=60))

    A sender may send `requests` at once; the allowance is then refilled evenly over `seconds`.

    Args:
        requests: Most requests in the time.
        seconds: The time.
        per: The scope of a limit: `session`, `principal`, or a function's value for a request.
            Without sessions a `session` is the principal, and the address of the HTTP client for
            anonymous requests.
        clock: The time in seconds.

    Raises:
        ValueError: A number is not positive, or `per` is unknown.
    """
    if requests < 1 or not seconds > 0:
        raise ValueError(f"expected positive numbers, got {requests} requests in {seconds} seconds")
    if per not in ("session", "principal") and not callable(per):
        raise ValueError(f"per: expected session, principal or a function, got {per!r}")
    buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    async def middleware(request: MiddlewareRequest, next: Next) -> Any:
        sender, now = _sender(request, per), clock()
        tokens, then = buckets.pop(sender, (float(requests), now))
        tokens = min(float(requests), tokens + (now - then) * requests / seconds)
        granted = tokens >= 1
        buckets[sender] = (tokens - 1 if granted else tokens, now)
        if len(buckets) > MOST_SENDERS:
            buckets.popitem(last=False)
        if granted:
            return await next(request)
        if request.is_notification:
            _logger.warning("%s was dropped: over the rate limit", request.method)
            return None
        wait = math.ceil((1 - tokens) * seconds / requests * 1000) / 1000
        raise ProtocolError(
            f"expected at most {requests} requests in {seconds:g} seconds; retry in {wait:g} "
            "seconds",
            code=RATE_LIMITED,
            data={"retryAfterSeconds": wait},
        )

    return middleware


def _sender(request: MiddlewareRequest, per: Sender) -> Hashable:
    if callable(per):
        return per(request)
    if per == "session" and request.session_id is not None:
        return request.session_id
    principal = request.principal
    if not principal.is_anonymous:
        return principal.identity
    http = request.http_request
    return None if http is None or http.client is None else http.client[0]
