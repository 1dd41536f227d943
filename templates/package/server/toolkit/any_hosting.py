"""Serving clients over standard streams or over HTTP, as the arguments say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from ...runtime.request_context import Principal
from .asgi_hosting import OVER_HTTP, AsgiHosting
from .server import Transport, check_run

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from ..asgi.chosen_http import ServerHttpOptions
    from ..stdio_server import Backend

_PATH = "/mcp"


class AnyHosting(AsgiHosting):
    """The methods that serve over either transport; a base of `Server`."""

    def run(
        self,
        transport: Transport | None = None,
        *,
        http: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str = _PATH,
        backend: Backend = "asyncio",
        principal: Principal | None = None,
        banner: bool = True,
        **options: Unpack[ServerHttpOptions],
    ) -> None:
        """Serve one client at standard input and output, or many clients over HTTP.

        SIGINT and SIGTERM end the server. With standard streams, `print` writes to standard error.

        Args:
            transport: `stdio` or `http`; by default `http` if an address is given, else `stdio`.
            http: Address to listen at, such as `127.0.0.1:8000`, instead of `host` and `port`.
            host: Host to listen at over HTTP; by default loopback.
            port: Port to listen at over HTTP, by default 8000; 0 is any free port.
            path: Path of the endpoint.
            backend: The event loop for standard streams; trio has to be installed.
            principal: On whose behalf the requests of standard streams are served, such as
                `Principal.local()`. Over HTTP, `auth` authenticates each request.
            banner: Whether to show the items of the server and how to connect on standard error,
                if that is a terminal. The environment variable `MCP_BANNER=0` turns it off too.
            options: See `ServerHttpSettings`.

        Raises:
            TypeError: There is no such transport, an option is unknown or is one of HTTP over
                standard streams, or `http` is given together with `host` or `port`.
            MissingExtraError: uvicorn, which HTTP needs, is not installed.
            ValueError: `http` or `port` is not an address, or HTTP does not support the backend or
                the principal.
            ListenFailedError: Listening at the address failed.
            RunWhileImportedError: The module is being imported by `python -m <package> serve`.
        """
        call = "server.run"
        given = {"http": http, "host": host, "port": port}
        if self._is_over_http(call, transport, given, path, options):
            _check_no_principal(call, principal)
            if backend != "asyncio":
                raise ValueError(
                    f"{call}: backend: uvicorn runs on asyncio, not on {backend}; another ASGI "
                    "server may run what asgi() returns"
                )
            from ..asgi.uvicorn_adapter import address_of

            address = address_of(call, http, host, port)
            self._run_http(call, address, path, options, banner)
            return
        from ..stdio_server import run_stdio  # not needed for HTTP

        self._show(banner)
        run_stdio(self.serve, backend, principal)

    async def run_async(
        self,
        transport: Transport | None = None,
        *,
        http: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str = _PATH,
        principal: Principal | None = None,
        banner: bool = True,
        task_status: TaskStatus[str | None] | None = None,
        **options: Unpack[ServerHttpOptions],
    ) -> None:
        """Serve like `run`, in the running event loop, until cancelled.

        Over HTTP, which needs asyncio, a cancellation closes streams and lets requests finish for
        `drain` seconds. Signals are the caller's.

        Args:
            task_status: Notified of the start of the server, as `TaskGroup.start` expects: with the
                URL, or with `None` for standard streams. The other arguments are those of `run`.

        Raises:
            Exception: As `run`, or whatever the lifespan raised.
        """
        call = "server.run_async"
        given = {"http": http, "host": host, "port": port}
        if self._is_over_http(call, transport, given, path, options):
            _check_no_principal(call, principal)
            from ..asgi.uvicorn_adapter import address_of

            address = address_of(call, http, host, port)
            await self._serve_http(call, address, path, options, banner, task_status)
            return
        from ..stdio_server import serve_stdio  # not needed for HTTP

        self._show(banner)
        if task_status is not None:
            task_status.started()
        await serve_stdio(self.serve, principal)

    @classmethod
    def _is_over_http(
        cls,
        call: str,
        transport: str | None,
        address: Mapping[str, object],
        path: str,
        options: Mapping[str, Any],
    ) -> bool:
        """Whether arguments of a method mean HTTP, not standard streams.

        Raises:
            TypeError: There is no such transport, or an argument of HTTP is given for standard
                streams.
            RunWhileImportedError: A command is importing the module.
        """
        check_run(call, transport, ("stdio", *OVER_HTTP))
        given = [name for name, value in address.items() if value is not None]
        if transport in OVER_HTTP or (transport is None and given):
            return True
        others = [*given, *(["path"] if path != _PATH else []), *options]
        if others:
            cls._check_options(call, options)
            raise TypeError(
                f"{call}: {', '.join(others)}: of HTTP only; expected transport='http' or an "
                f"address, got {'neither' if transport is None else repr(transport)}"
            )
        return False


def _check_no_principal(call: str, principal: Principal | None) -> None:
    if principal is not None:
        raise ValueError(f"{call}: principal: expected auth instead, over HTTP")
