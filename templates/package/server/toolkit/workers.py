"""Serving over HTTP by several processes at one port, by the supervisor of uvicorn.

The first process listens, and makes a server only to check the settings. Each worker process
makes a server of its own.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,no-any-return,has-type"
# mypy: allow-subclassing-any
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import MissingExtraError, WorkerFailedError
from ...facts import Lifecycle, Revisions
from ..asgi.child_process import end_with_parent
from ..asgi.uvicorn_adapter import (
    SHUTDOWN_MARGIN,
    Address,
    DrainableApplication,
    listener_at,
    options_of,
    protocol_of,
    reached_at,
)

if TYPE_CHECKING:
    import asyncio
    import socket

    import uvicorn
    from uvicorn.supervisors import Multiprocess
    from uvicorn.supervisors.multiprocess import Process

    from ..asgi.app import AsgiApplication
    from ..serving import ProcessLimit

_WORKER_SECONDS = 15  # seconds in which a worker has to respond, and a new one to serve
_SIGNAL_CHECK = 0.2  # seconds between looks for a second SIGINT, while workers end
_END_SECONDS = 30.0  # after `drain`, for the lifespan of a worker; then it is killed
_FAILED_STARTS = 5  # workers that end before they served, after which the others end too
_LONGEST_PAUSE = 8.0  # seconds between workers that end before they served
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})


class WorkerServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that several processes run, each with an instance of its own.

    Attributes:
        asgi: Makes the ASGI application, for a path and the options of HTTP.
        drain: Seconds that open requests may take in the end.
        revisions: The revisions that it serves.
        show: Shows on standard error what is served at a URL.
        process_limits: Limits of it, and of mounted servers, in several processes.
        keys: Its keys, and those of mounted servers.
    """

    asgi: Callable[..., AsgiApplication]
    drain: float
    revisions: Revisions
    show: Callable[[str], None]
    process_limits: Sequence[ProcessLimit]
    keys: Sequence[Any]

    def share_state_key(self, key: bytes) -> None:
        """Sign and seal with this key, except for servers with keys of their own."""
        for each in self.keys:
            each.adopt_key(key)


class WorkerSessions(msgspec.Struct, frozen=True):
    """The sessions of several processes that serve together.

    Attributes:
        options: The options of HTTP for each process.
        limited: `no` or `sealed`, if the sessions are so; empty if they are whole.
        is_shared: Whether the processes share their state.
    """

    options: Mapping[str, Any]
    limited: str
    is_shared: bool = False


def run_workers(
    make_server: Callable[[], WorkerServer],
    workers: int,
    address: Address,
    path: str,
    sessions: WorkerSessions,
) -> None:
    """See `Server.run_workers`."""
    if workers < 2:
        raise ValueError(f"workers: expected at least 2, got {workers}; run() is one process")
    key = os.urandom(32)
    application, server = _make_application(make_server, key, path, sessions.options)
    limits: list[ProcessLimit] = []
    if not sessions.is_shared:
        limits = [*server.process_limits, *application.settings.process_limits]
    if refused := [limit.text for limit in limits if limit.is_refused]:
        raise ValueError(f"workers: {'; '.join(refused)}")
    make_application = partial(_worker_application, make_server, key, path, sessions.options)
    try:
        pickled = pickle.dumps(make_application)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"workers: expected a function of a module, and options that pickle takes: {error}"
        ) from None
    _check_importable(pickled)

    def started(url: str) -> None:
        server.show(url)
        texts = [limit.text for limit in limits]
        notes = _worker_notes(workers, sessions, server.revisions, texts)
        print(notes, end="", file=sys.stderr, flush=True)

    _serve_by_processes(
        make_application, application.endpoint_path, address, workers, server.drain, started
    )


def _check_importable(pickled: bytes) -> None:
    """Check that no pickled name is one of the `__main__` of a package.

    Processes of `multiprocessing` import the main module again, except a `__main__` of a package.
    """
    import pickletools

    spec = sys.modules["__main__"].__spec__
    if spec is None or spec.name.rpartition(".")[2] != "__main__":
        return
    if any(argument == "__main__" for _, argument, _ in pickletools.genops(pickled)):
        raise TypeError(
            f"workers: expected a function of a module that can be imported, got one of "
            f"{spec.name}, which `python -m` runs: move it to another module of the package"
        )


def _worker_notes(
    workers: int, sessions: WorkerSessions, revisions: Revisions, limits: Collection[str]
) -> str:
    """The limits of several processes that serve together: a line for each."""
    notes: list[str] = []
    with_sessions = revisions.of(Lifecycle.HANDSHAKE)
    if sessions.limited and with_sessions:
        notes.append(
            f"{sessions.limited} sessions: clients of {', '.join(with_sessions)} are asked nothing "
            "(elicitation, sampling, roots) and get no changes and no log messages"
        )
    with_streams = revisions.of(Lifecycle.PER_REQUEST)
    if with_streams and not sessions.is_shared:
        notes.append(
            "a change is announced by the worker in which it happens, to clients of "
            f"{', '.join(with_streams)} that listen to that worker"
        )
    return "".join(f"{workers} workers: {note}\n" for note in (*notes, *limits))


def _make_application(
    make_server: Callable[[], WorkerServer], state_key: bytes, path: str, options: Mapping[str, Any]
) -> tuple[AsgiApplication, WorkerServer]:
    server = make_server()
    server.share_state_key(state_key)
    return server.asgi(path, **options), server


def _worker_application(
    make_server: Callable[[], WorkerServer], state_key: bytes, path: str, options: Mapping[str, Any]
) -> AsgiApplication:
    """The application of a worker process."""
    application, _ = _make_application(make_server, state_key, path, options)
    return application


def _serve_by_processes(
    make: Callable[[], DrainableApplication],
    endpoint_path: str,
    address: Address,
    workers: int,
    drain: float,
    on_start: Callable[[str], None],
) -> None:
    """Serve at an address by several processes until SIGINT or SIGTERM.

    The supervisor of uvicorn starts the workers, replaces those that end or do not respond, and
    ends all. This process listens, so that all have one port, and accepts no connection.
    """
    try:
        from uvicorn.config import STARTUP_FAILURE
    except ModuleNotFoundError:
        raise MissingExtraError("serving over HTTP", "uvicorn") from None

    host, port = address
    with listener_at(host, port) as listener:
        url = f"http://{reached_at(listener.getsockname())}{endpoint_path}"
        config = _worker_config(make, host, workers, drain)
        exit_codes, failed_starts = _supervise(config, listener, drain, lambda: on_start(url))
    if STARTUP_FAILURE in exit_codes:
        raise WorkerFailedError("a worker could not start to serve; its error is above")
    if failed_starts >= _FAILED_STARTS:
        raise WorkerFailedError(f"{failed_starts} workers ended before they served")


def _worker_config(
    make: Callable[[], DrainableApplication], host: str, workers: int, drain: float
) -> uvicorn.Config:
    """The configuration of a worker, which is pickled for it."""
    import uvicorn
    from uvicorn.config import STARTUP_FAILURE

    class WorkerConfig(uvicorn.Config):
        def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
            self.load()  # not in the event loop: modules may run one while they are imported
            return super().get_loop_factory()

        def load(self) -> None:
            end_with_parent(drain + SHUTDOWN_MARGIN + _END_SECONDS)
            try:
                application = make()
            except (Exception, SystemExit) as error:
                if not isinstance(error, SystemExit):  # its text is printed already
                    traceback.print_exc()
                warnings.filterwarnings("ignore", "coroutine .* was never awaited")  # uvicorn's
                raise SystemExit(STARTUP_FAILURE) from None
            application.allow_hosts([host])
            self.app = application
            super().load()
            self.http_protocol_class = protocol_of(self, application)

        def __reduce__(self) -> tuple[Any, ...]:
            return _worker_config, (make, host, workers, drain)

    return WorkerConfig(
        "",
        workers=workers,
        lifespan="on",
        timeout_worker_healthcheck=_WORKER_SECONDS,
        **options_of(drain),
    )


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _supervise(
    config: uvicorn.Config, listener: socket.socket, drain: float, on_start: Callable[[], None]
) -> tuple[list[int | None], int]:
    """Run workers until a signal; return exit codes and the last consecutive failed starts."""
    from uvicorn.supervisors import Multiprocess

    class Supervisor(Multiprocess):
        _all_started = _is_forced = False
        _ready: frozenset[int | None] = frozenset()
        _next_look, _pause = 0.0, _SIGNAL_CHECK
        failed_starts = 0

        def keep_subprocess_alive(self) -> None:
            if time.monotonic() < self._next_look:
                return
            before = self.processes.copy()
            _close_worker_ends(before)
            super().keep_subprocess_alive()
            _close_worker_ends(self.processes)
            for old, new in zip(before, self.processes, strict=True):
                if new is not old:
                    if old.pid not in self._ready:
                        self._count_failure(old)
                    ended = f"worker {old.pid} ended with exit code {old.exitcode}"
                    _report(f"{ended}; started {new.pid}")
            if not self._ready >= {each.pid for each in self.processes}:
                self._ready = frozenset(each.pid for each in self.processes if each.is_ready())
            if self._ready >= {each.pid for each in self.processes}:
                self.failed_starts, self._pause = 0, _SIGNAL_CHECK
                if not self._all_started:
                    self._all_started = True
                    on_start()

        def _count_failure(self, worker: Process) -> None:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._next_look = time.monotonic() + self._pause
            if worker.exitcode != -signal.SIGKILL:  # the signal for workers that do not respond
                self.failed_starts += 1
            if not self._all_started and self.failed_starts >= _FAILED_STARTS:
                self.should_exit.set()

        def terminate_all(self) -> None:
            super().terminate_all()
            listener.close()  # so that new connections are refused while the workers drain

        def handle_int(self) -> None:
            self._is_forced = self.should_exit.is_set()
            super().handle_int()

        def restart_all(self) -> None:
            _replace_workers(self, self.join)

        def join_all(self) -> None:
            self.join(self.processes)

        def join(self, workers: list[Process]) -> None:
            _join_workers(self, workers, drain, lambda: self._is_forced)

    supervisor = Supervisor(config, [listener])
    supervisor.run()
    return [each.exitcode for each in supervisor.processes], supervisor.failed_starts


def _close_worker_ends(workers: list[Process]) -> None:
    """Close this process's copies of worker ends, so that a ping fails once a worker has ended."""
    for each in workers:
        each.child_conn.close()


def _replace_workers(supervisor: Multiprocess, join: Callable[[list[Process]], None]) -> None:
    """Replace each worker as the supervisor does, but with time limits."""
    from uvicorn.supervisors.multiprocess import Process

    config = supervisor.config
    for index, old in enumerate(supervisor.processes):
        new = Process(config, supervisor.sockets)
        new.start()
        _close_worker_ends([new])
        if not new.wait_until_ready(config.timeout_worker_healthcheck, supervisor.should_exit):
            new.kill()
            new.join()
            _report(f"a new worker does not serve; worker {old.pid} and later ones stay")
            return
        supervisor.processes[index] = new
        old.terminate()
        join([old])
        if supervisor.should_exit.is_set():
            return


def _join_workers(
    supervisor: Multiprocess,
    workers: list[Process],
    drain: float,
    is_forced: Callable[[], bool],
) -> None:
    """Wait until workers have ended; kill them at a second SIGINT, or when the time is over."""
    from multiprocessing.connection import wait  # uvicorn loads it

    late = time.monotonic() + drain + SHUTDOWN_MARGIN + _END_SECONDS
    while running := [each for each in workers if each.process.is_alive()]:
        if supervisor.should_exit.is_set() or _ENDING.intersection(supervisor.signal_queue):
            supervisor.handle_signals()  # not SIGHUP while workers are replaced
        if is_forced() or time.monotonic() >= late:
            for each in running:  # from Python 3.12 on, a worker would wait for connections
                each.kill()
        wait([each.process.sentinel for each in running], _SIGNAL_CHECK)
    for each in workers:
        each.join()
