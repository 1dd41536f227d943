"""Routes of the user beside the endpoint, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from .asgi_hosting import AsgiHosting
from .signatures import is_coroutine_function

if TYPE_CHECKING:
    from ..asgi.routes import RouteHandler, Routes


class CustomRoutes(AsgiHosting):
    """The decorator of routes; a base of `Server`."""

    _routes: Routes | None = None

    def custom_route(
        self,
        path: str,
        methods: Collection[str] = ("GET",),
        *,
        auth: bool = False,
        any_origin: bool = False,
    ) -> Callable[[RouteHandler], RouteHandler]:
        """Register the decorated coroutine function for a path next to the endpoint, over HTTP.

            @server.custom_route("/health")
            async def health(request: RouteRequest) -> str:
                return "ok"

        It returns text, bytes, JSON as dict or list, a `RouteResponse`, `None` for status 204, or
        an ASGI application that responds, such as a response of Starlette. An exception is logged,
        and answered by status 500. `Host` and `Origin` are checked as for the endpoint.

        Args:
            path: The path, below the mount point of the application; without variables.
            methods: The HTTP methods. `HEAD` is served as `GET`.
            auth: Whether a request needs an access token, as those to the endpoint do.
            any_origin: Whether pages of all origins may make requests, whatever `origins` says.

        Raises:
            TypeError: Not a coroutine function, or no list of methods.
            ValueError: Not such a path, or it has the method already.
            RuntimeError: The server is being served already: its applications were checked without
                the route.
        """
        from ..asgi.routes import Route, Routes  # few servers have some

        if self._dispatcher.is_served:
            raise RuntimeError("register routes before run() or asgi()")

        def register(function: RouteHandler) -> RouteHandler:
            if not is_coroutine_function(function):
                raise TypeError(f"custom_route: expected a coroutine function, got {function!r}")
            if self._routes is None:
                self._routes = self._other_paths = Routes()
            self._routes.add(path, methods, Route(function, auth, any_origin))
            return function

        return register
