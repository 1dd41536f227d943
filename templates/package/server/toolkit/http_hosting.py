"""Serving clients over HTTP by uvicorn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .asgi_hosting import OVER_HTTP, AsgiHosting
from .server import Transport, check_run

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from ..asgi.chosen_http import ServerHttpOptions


class HttpHosting(AsgiHosting):
    """The methods that run over HTTP; a base of `Server`."""

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
        from ..asgi.uvicorn_adapter import address_of  # not needed for other servers

        call = "server.run"
        check_run(call, transport, OVER_HTTP)
        address = address_of(call, http, host, port)
        self._run_http(call, address, path, options, banner)

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
        from ..asgi.uvicorn_adapter import address_of  # not needed for other servers

        call = "server.run_async"
        check_run(call, transport, OVER_HTTP)
        address = address_of(call, http, host, port)
        await self._serve_http(call, address, path, options, banner, task_status)
