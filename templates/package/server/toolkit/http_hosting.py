"""Serving clients over HTTP: an ASGI application, which uvicorn runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from .server import ServerKernel, Transport, check_run

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from ..asgi.app import AsgiApplication
    from ..asgi.chosen_http import ServerHttpOptions
    from ..asgi.request import OtherPaths

OVER_HTTP = ("http", "streamable-http")
"""The names of the transport."""


class HttpHosting(ServerKernel):
    """The methods that serve over HTTP; a base of `Server`."""

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

    def run(
        self,
        transport: Transport | None = None,
        *,
        http: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str = "/mcp",
        banner: bool = True,
        **options: Unpack[ServerHttpOptions],
    ) -> None:
        """Serve clients over HTTP.

        SIGINT and SIGTERM end the server.

        Args:
            transport: `http`, which is the default: this package has no other transport.
            http: Address to listen at, such as `127.0.0.1:8000`, in place of `host` and `port`.
            host: Host to listen at; by default loopback.
            port: Port to listen at, by default 8000; 0 is any free port.
            path: Path of the endpoint.
            banner: Whether to show what is served and how to connect on standard error, if that is
                a terminal. The environment variable `MCP_BANNER=0` turns it off too.
            options: See `ServerHttpSettings`.

        Raises:
            TypeError: An option is unknown, the transport is another one, or `http` is given
                together with `host` or `port`.
            MissingExtraError: uvicorn is not installed.
            ValueError: `http` or `port` is not an address.
            ListenFailedError: Listening at the address failed.
            RunWhileImportedError: The module is being imported by `python -m <package> serve`.
        """
        from ..asgi.uvicorn_adapter import address_of, run  # not needed for other servers

        call = "server.run"
        check_run(call, transport, OVER_HTTP)
        address = address_of(call, http, host, port)
        application = self._application(call, path, options)
        run(application, address, self._drain, partial(self._show, banner))

    async def run_async(
        self,
        transport: Transport | None = None,
        *,
        http: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str = "/mcp",
        banner: bool = True,
        task_status: TaskStatus[str | None] | None = None,
        **options: Unpack[ServerHttpOptions],
    ) -> None:
        """Serve like `run`, in the running event loop of asyncio, until cancelled.

        A cancellation closes streams and lets requests finish for `drain` seconds. Signals are the
        caller's.

        Args:
            task_status: Notified of the start of the server by its URL, as `TaskGroup.start`
                expects. The other arguments are those of `run`.

        Raises:
            Exception: As `run`, or whatever the lifespan raised.
        """
        from ..asgi.uvicorn_adapter import address_of, run_async  # not needed for other servers

        def started(url: str) -> None:
            self._show(banner, url)
            if task_status is not None:
                task_status.started(url)

        call = "server.run_async"
        check_run(call, transport, OVER_HTTP)
        address = address_of(call, http, host, port)
        application = self._application(call, path, options)
        await run_async(application, address, self._drain, started)

    def _application(self, call: str, path: str, options: Mapping[str, Any]) -> AsgiApplication:
        """The ASGI application; `call` is the method that the options were passed to."""
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

            absent: Mapping[str, str] = getattr(cls, "_absent", {})  # of `ServerKernel`
            raise keyword_error(call, sorted(others), absent)
