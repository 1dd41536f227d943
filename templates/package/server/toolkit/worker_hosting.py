"""Serving over HTTP by several processes at one port, without sessions or with sealed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from .asgi_hosting import AsgiHosting
from .server import check_run

if TYPE_CHECKING:
    from ..asgi.chosen_http import ServerHttpOptions
    from .workers import WorkerServer, WorkerSessions


class WorkerHosting(AsgiHosting):
    """The method that runs several processes; a base of `Server`."""

    @classmethod
    def run_workers(
        cls,
        make: Callable[[], AsgiHosting],
        workers: int,
        *,
        http: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str = "/mcp",
        banner: bool = True,
        **options: Unpack[ServerHttpOptions],
    ) -> None:
        """Serve clients over HTTP by several processes at one port.

        No process keeps sessions of its own, unless the package has a feature to share them: with
        `scaling`, their ids carry them (`sessions="sealed"`); with `shared`, all serve all.

            if __name__ == "__main__":
                Server.run_workers(create_server, 4, http="127.0.0.1:8000")

        Each process makes its own server, since a server can't be sent to another process. All
        sign and seal with the same key, a random one unless the server has one. SIGINT and
        SIGTERM end all processes; one that ends otherwise is replaced. SIGHUP replaces them one by
        one. Lines on standard error name the features that several processes lack.

        Args:
            make: Returns the server; a function of a module, by whose name the processes find it.
                This process calls it too, to check the server.
            workers: Number of processes, at least 2.
            http: As for `run`, as are the other arguments.
            options: See `ServerHttpSettings`; sent to the processes by pickle.

        Raises:
            TypeError: An option is unknown, `http` is given together with `host` or `port`, or
                `make` or an option can't be pickled or imported.
            ValueError: `workers` is less than 2, `http` or `port` is not an address, an option is
                invalid or needs sessions, or the server has tasks in a `MemoryTaskStore`.
            MissingExtraError: uvicorn, which HTTP needs, is not installed.
            ListenFailedError: Listening at the address failed.
            WorkerFailedError: A process could not start to serve; the others were ended.
            RunWhileImportedError: The module is being imported by `python -m <package> serve`.
        """
        from ..asgi.uvicorn_adapter import address_of
        from .workers import run_workers  # few servers need several processes

        call = "server.run_workers"
        check_run(call, None, ())
        cls._check_options(call, options)
        address = address_of(call, http, host, port)
        sessions = cls._worker_sessions(options)
        run_workers(
            partial(WorkerHosting._worker_server, make, banner), workers, address, path, sessions
        )

    @classmethod
    def _worker_sessions(cls, options: Mapping[str, Any]) -> WorkerSessions:
        """The options for each of several processes; features that keep sessions override it."""
        from .workers import WorkerSessions  # loaded already

        if not options.get("stateless", True):
            raise ValueError("workers: a session lives in one process; expected stateless=True")
        return WorkerSessions({**options, "stateless": True}, "no")

    @staticmethod
    def _worker_server(make: Callable[[], AsgiHosting], banner: bool) -> WorkerServer:
        """A new server, in the process that runs it."""
        from .workers import WorkerServer  # loaded already

        server = make()
        servers = server._dispatcher.all_servers()
        return WorkerServer(
            asgi=server.asgi,
            drain=server._drain,
            revisions=server.revisions,
            show=partial(server._show, banner),
            process_limits=[limit for each in servers for limit in each.process_limits],
            keys=[each.hooks.keys for each in servers if each.hooks.keys is not None],
        )


class SealedHosting(WorkerHosting):
    """Several processes have sealed sessions; a base of `Server`."""

    @classmethod
    def _worker_sessions(cls, options: Mapping[str, Any]) -> WorkerSessions:
        from .workers import WorkerSessions  # loaded already

        if options.get("sessions") == "process":
            raise ValueError("workers: a session lives in one process; expected sessions='sealed'")
        if options.get("stateless"):
            return WorkerSessions(options, "no")
        return WorkerSessions({**options, "sessions": "sealed"}, "sealed")
