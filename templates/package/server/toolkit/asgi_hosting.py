"""Serving clients over HTTP: an ASGI application, which uvicorn runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from .server import ServerKernel

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from ..asgi.app import AsgiApplication
    from ..asgi.chosen_http import ServerHttpOptions
    from ..asgi.request import OtherPaths
    from ..asgi.uvicorn_adapter import Address

OVER_HTTP = ("http", "streamable-http")
"""The names of the transport."""


class AsgiHosting(ServerKernel):
    """The method that returns an application; a base of `Server`."""

    _other_paths: OtherPaths | None = None

    def asgi(self, path: str = "/mcp", **options: Unpack[ServerHttpOptions]) -> AsgiApplication:
        """The server as an ASGI application, standalone or for mounting in another application.

        Args:
            path: Path of the endpoint, relative to the mount point.
            options: See `ServerHttpSettings`.

        Raises:
            TypeError: An option is unknown.
            ValueError: An option has an invalid value, or a route has the path of the endpoint.
        """
        return self._application("server.asgi", path, options)

    def _run_http(
        self, call: str, address: Address, path: str, options: Mapping[str, Any], banner: bool
    ) -> None:
        """Serve at an address until a signal; `call` is the method that was called."""
        from ..asgi.uvicorn_adapter import run  # other servers run the application too

        application = self._application(call, path, options)
        run(application, address, self._drain, partial(self._show, banner))

    async def _serve_http(
        self,
        call: str,
        address: Address,
        path: str,
        options: Mapping[str, Any],
        banner: bool,
        task_status: TaskStatus[str | None] | None,
    ) -> None:
        """Serve at an address until cancelled."""
        from ..asgi.uvicorn_adapter import run_async  # other servers run the application too

        def started(url: str) -> None:
            self._show(banner, url)
            if task_status is not None:
                task_status.started(url)

        application = self._application(call, path, options)
        await run_async(application, address, self._drain, started)

    def _application(self, call: str, path: str, options: Mapping[str, Any]) -> AsgiApplication:
        """The ASGI application; `call` is the method that the options were passed to.

        Raises:
            TypeError: An option is unknown.
            ValueError: An option has an invalid value, or a route has the path of the endpoint.
        """
        from ..asgi.app import AsgiApplication  # not needed for standard streams
        from ..asgi.chosen_http import ServerHttpSettings

        self._check_options(call, options)
        self._dispatcher.is_served = True
        settings = ServerHttpSettings(path=path, **options)
        return AsgiApplication(self._service(), settings, self._other_paths)

    @classmethod
    def _check_options(cls, call: str, options: Mapping[str, Any]) -> None:
        """Check that options of a method are options of HTTP.

        Raises:
            TypeError: An option is unknown.
        """
        from ..asgi.chosen_http import ServerHttpOptions

        if others := options.keys() - ServerHttpOptions.__optional_keys__:
            from ...absence import keyword_error  # for the error only

            absent: Mapping[str, str] = getattr(cls, "_absent", {})  # of `Decorators`
            raise keyword_error(call, sorted(others), absent)
