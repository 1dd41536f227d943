"""Serving one client over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.request_context import Principal
from .server import ServerKernel, Transport, check_run

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from ..stdio_server import Backend


class StdioHosting(ServerKernel):
    """The methods that serve over standard streams; a base of `Server`."""

    def run(
        self,
        transport: Transport | None = None,
        *,
        backend: Backend = "asyncio",
        principal: Principal | None = None,
        banner: bool = True,
    ) -> None:
        """Serve one client at standard input and output until it disconnects.

        SIGINT and SIGTERM end the server. `print` writes to standard error.

        Args:
            transport: `stdio`, which is the default: this package has no other transport.
            backend: The event loop; trio has to be installed.
            principal: On whose behalf the requests are served, such as `Principal.local()`.
            banner: Whether to show what is served and how to connect on standard error, if that is
                a terminal. The environment variable `MCP_BANNER=0` turns it off too.

        Raises:
            TypeError: The transport is another one.
            RunWhileImportedError: The module is being imported by `python -m <package> serve`.
        """
        from ..stdio_server import run_stdio  # not needed for other channels

        check_run("server.run", transport, ("stdio",))
        self._show(banner)
        run_stdio(self.serve, backend, principal)

    async def run_async(
        self,
        transport: Transport | None = None,
        *,
        principal: Principal | None = None,
        banner: bool = True,
        task_status: TaskStatus[str | None] | None = None,
    ) -> None:
        """Serve like `run`, in the running event loop, until cancelled or the client disconnects.

        Signals are the caller's.

        Args:
            task_status: Notified of the start of the server by `None`, as `TaskGroup.start`
                expects. The other arguments are those of `run`.

        Raises:
            Exception: As `run`, or whatever the lifespan raised.
        """
        from ..stdio_server import serve_stdio  # not needed for other channels

        check_run("server.run_async", transport, ("stdio",))
        self._show(banner)
        if task_status is not None:
            task_status.started()
        await serve_stdio(self.serve, principal)
