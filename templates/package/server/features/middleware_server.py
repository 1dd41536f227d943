"""Middleware: coroutine functions around the handling of messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from ..toolkit.server import ServerKernel
from ..toolkit.signatures import is_coroutine_function

if TYPE_CHECKING:
    from ..toolkit.middleware import MiddlewareFunction, MiddlewareRequest, Next

_T = TypeVar("_T")


class MiddlewareOptions(TypedDict, total=False):
    """Middleware of a server.

    Attributes:
        middleware: Registered in order, as by `Server.middleware`.
    """

    middleware: Sequence[MiddlewareFunction]


class MiddlewareServer(ServerKernel):
    """A server with middleware."""

    _middleware: list[MiddlewareFunction]

    def _use_options(self, options: dict[str, Any]) -> None:
        self._middleware = []
        for function in options.pop("middleware", ()):
            self.middleware(function)
        super()._use_options(options)

    def middleware(
        self, function: Callable[[MiddlewareRequest, Next], Awaitable[_T]]
    ) -> Callable[[MiddlewareRequest, Next], Awaitable[_T]]:
        """Register a coroutine function around the handling of requests and notifications.

            @server.middleware
            async def audit(request: MiddlewareRequest, next: Next) -> Any:
                result = await next(request)
                return result

        It returns the result of `next`, a changed copy of it, or a result of its own. A
        `ProtocolError` that it raises is the response, and a `ToolError` the result of a tool. The
        middleware registered first is the outermost. Middleware does not see messages that the
        protocol itself handles, such as `initialize`, `server/discover` and `ping`.

        Raises:
            TypeError: Neither a coroutine function nor a `Middleware`.
            RuntimeError: The server is being served already, without middleware.
        """
        if not is_coroutine_function(function):
            from ..toolkit.middleware import function_complaint  # for the error only

            raise TypeError(f"middleware: {function_complaint(function)}")
        dispatcher, functions = self._dispatcher, self._middleware
        if not functions:
            from ..toolkit.middleware import MiddlewareChain  # few servers have some

            if dispatcher.is_served:
                raise RuntimeError("register middleware before run(), serve() or asgi()")
            application = dispatcher.application
            dispatcher.application = MiddlewareChain(application, functions, dispatcher.state.get)
        functions.append(function)
        return function

    add_middleware = middleware
