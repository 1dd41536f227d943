"""Everything that is particular to uvicorn: running it, its connections, and its shutdown.

An ASGI server passes a request on when its head is complete, and closes a connection only after all
written data was read. So only the protocol class, which is uvicorn's, can close connections that
stall before the end of the head or without reading the response.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Generator
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import anyio

from ...errors import ListenFailedError, MissingExtraError, WorkerFailedError
from ..serving import leave_stuck_threads
from .request import Receive, Scope, Send
from .settings import Limits, ServerHttpSettings

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.supervisors import Multiprocess
    from uvicorn.supervisors.multiprocess import Process

HEAD_BYTES = 64 * 1024
"""Most bytes of the head of a request."""

_HEAD = b"HTTP/1.1 "  # the beginning of the head of a response
_TRUSTED = "FORWARDED_ALLOW_IPS"  # uvicorn's variable: the proxies whose header fields it trusts
_REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SHUTDOWN_MARGIN = 2.0  # seconds after `drain` until uvicorn cancels what is still running
_WORKER_SECONDS = 15  # seconds in which a worker has to respond, and a new one to serve
_SIGNAL_CHECK = 0.2  # seconds between looks for a second SIGINT, while workers end
_END_SECONDS = 30.0  # after `drain`, for the lifespan of a worker; then it is killed
_FAILED_STARTS = 5  # workers that end before they served, after which the others end too
_LONGEST_PAUSE = 8.0  # seconds between workers that end before they served
_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})
_SHUTDOWN_CHECK = 0.25  # seconds between two checks whether uvicorn shuts down
_SHUTTING_DOWN = b'{"error":{"code":-32603,"message":"the server is ending"},"jsonrpc":"2.0"}'


class DrainableApplication(Protocol):
    """What uvicorn runs: an `AsgiApplication`."""

    settings: ServerHttpSettings

    @property
    def endpoint_path(self) -> str: ...

    def allow_hosts(self, names: Collection[str]) -> None: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def start(self) -> None: ...

    async def drain(self) -> None: ...

    async def end(self) -> None: ...


async def until_shutdown() -> bool:
    """Wait until the uvicorn that runs the application shuts down, alone or under gunicorn.

    Returns:
        `False` at once under another ASGI server.

    uvicorn ends the lifespan only after all responses, however long they take, and tells the
    application nothing before that. Its SIGTERM handler, a method of the server object, is the only
    reference to that object that an application can reach.
    """
    server: Any = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if not hasattr(server, "should_exit"):
        return False
    while not server.should_exit:  # noqa: ASYNC110  # uvicorn sets no event
        await anyio.sleep(_SHUTDOWN_CHECK)
    return True


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of an address such as `127.0.0.1:8000`, `[::1]:8000` or `:8000`.

    Without a host it is loopback; port 0 means any free one.

    Raises:
        ValueError: The text is no such address.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if ":" not in text or not is_port or (":" in bare and bare == host):
        raise ValueError(f"expected HOST:PORT, such as 127.0.0.1:8000, got {text!r}")
    return bare or "127.0.0.1", int(port)


class UvicornServer(Protocol):
    """A configured server of uvicorn.

    Attributes:
        started: Whether it listens.
        should_exit: Whether it is to shut down.
    """

    started: bool
    should_exit: bool

    def run(self, sockets: list[socket.socket] | None = None) -> None: ...

    async def serve(self, sockets: list[socket.socket] | None = None) -> None: ...


def run(
    application: DrainableApplication, address: str, drain: float, on_start: Callable[[str], None]
) -> None:
    """Serve at an address until SIGINT or SIGTERM.

    After the signal streams are closed, and requests may finish; a second SIGINT ends them.

    Args:
        application: What to serve.
        address: The address; see `parse_address`.
        drain: Seconds that requests may take to finish.
        on_start: Called with the URL of the endpoint, once it is served.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ValueError: The address is invalid.
        ListenFailedError: The server can't listen at the address.
        Exception: Whatever the lifespan raised.
    """
    with _configured(application, address, drain, on_start, takes_signals=True) as (
        server,
        listener,
    ):
        server.run(sockets=[listener])
    leave_stuck_threads()


async def run_async(
    application: DrainableApplication, address: str, drain: float, on_start: Callable[[str], None]
) -> None:
    """Serve at an address in the running event loop, until cancelled.

    After the cancellation streams are closed, and requests may finish; a second cancellation by
    asyncio ends them. Signals are the caller's. Arguments and errors are those of `run`.

    Raises:
        ValueError: (also) The event loop is not asyncio's.
    """
    try:
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    except RuntimeError:
        raise ValueError(
            "run_async: uvicorn runs on asyncio, not on this event loop; another ASGI server may "
            "run what asgi() returns"
        ) from None
    with _configured(application, address, drain, url.set_result, takes_signals=False) as (
        server,
        listener,
    ):
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.wait((serving, url), return_when=asyncio.FIRST_COMPLETED)
            if url.done():
                on_start(url.result())
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            if server.started:
                server.should_exit = True
            else:
                serving.cancel()
            with anyio.CancelScope(shield=True), contextlib.suppress(asyncio.CancelledError):
                await serving
            raise


def run_workers(
    make: Callable[[], DrainableApplication],
    endpoint_path: str,
    address: str,
    workers: int,
    drain: float,
    on_start: Callable[[str], None],
) -> None:
    """Serve at an address by several processes until SIGINT or SIGTERM.

    The supervisor of uvicorn starts the workers, replaces those that end or do not respond, and
    ends all. This process listens, so that all have one port, and accepts no connection.

    Args:
        make: Makes the application in each worker; pickled.
        endpoint_path: The path for clients to connect to.
        address: The address; see `parse_address`.
        workers: Number of workers.
        drain: Seconds that requests may take to finish.
        on_start: Called with the URL of the endpoint, once all workers serve it.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ValueError: The address is invalid.
        ListenFailedError: The server can't listen at the address.
        WorkerFailedError: A worker could not start; the others were ended.
    """
    try:
        from uvicorn.config import STARTUP_FAILURE
    except ModuleNotFoundError:
        raise MissingExtraError("serving over HTTP", "uvicorn") from None

    host, port = parse_address(address)
    with _listener(host, port) as listener:
        url = f"http://{_reached_at(listener.getsockname())}{endpoint_path}"
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
            end_with_parent(drain + _SHUTDOWN_MARGIN + _END_SECONDS)
            try:
                application = make()
            except (Exception, SystemExit) as error:
                if not isinstance(error, SystemExit):  # its text is printed already
                    traceback.print_exc()
                warnings.filterwarnings("ignore", "coroutine .* was never awaited")  # uvicorn's
                raise SystemExit(STARTUP_FAILURE) from None
            application.allow_hosts([host])
            self.app = _CancellableApplication(application)
            super().load()
            protocol: Any = self.http_protocol_class
            self.http_protocol_class = _with_timeouts(protocol, application.settings.limits)

        def __reduce__(self) -> tuple[Any, ...]:
            return _worker_config, (make, host, workers, drain)

    return WorkerConfig(
        "",
        workers=workers,
        lifespan="on",
        timeout_worker_healthcheck=_WORKER_SECONDS,
        **_options(drain),
    )


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _supervise(
    config: uvicorn.Config, listener: socket.socket, drain: float, on_start: Callable[[], None]
) -> tuple[list[int | None], int]:
    """Run workers until a signal; gives exit codes, and how many in a row ended before serving."""
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
            _leave_pipes(before)
            super().keep_subprocess_alive()
            _leave_pipes(self.processes)
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
            if worker.exitcode != -signal.SIGKILL:  # by which those end that do not respond
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


def _leave_pipes(workers: list[Process]) -> None:
    """Close the copies of the workers' ends here: then a ping fails once its worker has ended."""
    for each in workers:
        each.child_conn.close()


def _replace_workers(supervisor: Multiprocess, join: Callable[[list[Process]], None]) -> None:
    """Replace each worker as the supervisor does itself, but wait for none without end."""
    from uvicorn.supervisors.multiprocess import Process

    config = supervisor.config
    for index, old in enumerate(supervisor.processes):
        new = Process(config, supervisor.sockets)
        new.start()
        _leave_pipes([new])
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

    late = time.monotonic() + drain + _SHUTDOWN_MARGIN + _END_SECONDS
    while running := [each for each in workers if each.process.is_alive()]:
        if supervisor.should_exit.is_set() or _ENDING.intersection(supervisor.signal_queue):
            supervisor.handle_signals()  # not SIGHUP while workers are replaced
        if is_forced() or time.monotonic() >= late:
            for each in running:  # from Python 3.12 on, a worker would wait for connections
                each.kill()
        wait([each.process.sentinel for each in running], _SIGNAL_CHECK)
    for each in workers:
        each.join()


def end_with_parent(seconds: float) -> None:
    """Have this process of `multiprocessing` end when its parent does, also where that is killed.

    Args:
        seconds: For it to end by SIGTERM; then it exits without more.
    """
    import multiprocessing  # loads slowly, and is loaded in such a process

    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(seconds)  # an event loop that is blocked handles no signal
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _options(drain: float) -> dict[str, Any]:
    """Arguments of `uvicorn.Config` for one process and for several."""
    return {
        "log_config": None,
        "access_log": False,
        "proxy_headers": _TRUSTED in os.environ,
        "server_header": False,
        "timeout_graceful_shutdown": drain + _SHUTDOWN_MARGIN,  # fractions do
        "ws": "none",
    }


@contextlib.contextmanager
def _configured(
    application: DrainableApplication,
    address: str,
    drain: float,
    on_start: Callable[[str], None],
    *,
    takes_signals: bool,
) -> Generator[tuple[UvicornServer, socket.socket]]:
    """A server of uvicorn, and the socket that it listens at while the block runs."""
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise MissingExtraError("serving over HTTP", "uvicorn") from None

    host, port = parse_address(address)
    application.allow_hosts([host])
    config = uvicorn.Config(_CancellableApplication(application), lifespan="off", **_options(drain))
    config.load()
    protocol: Any = config.http_protocol_class
    config.http_protocol_class = _with_timeouts(protocol, application.settings.limits)
    with _listener(host, port) as listener:
        yield _draining_server(config, application, on_start, takes_signals), listener


def _draining_server(
    config: uvicorn.Config,
    application: DrainableApplication,
    on_start: Callable[[str], None],
    takes_signals: bool,
) -> UvicornServer:
    """A server of uvicorn that starts, drains and ends the application."""
    import uvicorn  # loaded already

    class DrainingServer(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            self._forced = asyncio.Event()
            self._loop: asyncio.AbstractEventLoop | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            self._loop = asyncio.get_running_loop()
            await application.start()
            await super().startup(sockets)
            for listener in sockets or ():
                on_start(f"http://{_reached_at(listener.getsockname())}{application.endpoint_path}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            aborting = asyncio.create_task(self._abort_connections())
            draining = asyncio.create_task(application.drain())
            await super().shutdown(sockets)
            draining.cancel()
            aborting.cancel()
            if not self.force_exit:
                await application.end()

        async def _abort_connections(self) -> None:
            """Abort all connections at a forced exit: asyncio's servers wait for them."""
            await self._forced.wait()
            for connection in list(self.server_state.connections):
                connection.transport.abort()

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            if takes_signals:
                with super().capture_signals():
                    yield
            else:
                yield

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # Not the base method: uvicorn raises the signals again that it records there.
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True
            if self.force_exit and self._loop is not None:
                self._loop.call_soon_threadsafe(self._forced.set)

    return DrainingServer(config)


class _CancellableApplication:
    """An application that responds to requests which uvicorn cancels."""

    def __init__(self, application: DrainableApplication) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._application(scope, receive, send)
        except asyncio.CancelledError:
            # uvicorn knows what was sent already, and refuses what may not follow.
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            head = {"type": "http.response.start", "status": 503, "headers": headers}
            body = {"type": "http.response.body", "body": _SHUTTING_DOWN, "more_body": True}
            with contextlib.suppress(RuntimeError, asyncio.CancelledError):
                await send(head)
                await send(body)
            with contextlib.suppress(RuntimeError, asyncio.CancelledError):
                await send({"type": "http.response.body", "body": b""})


class _Cycle(Protocol):
    """A request that was passed to the application."""

    response_complete: bool


class JoinedWrites:
    """A transport that writes the head of a response together with what follows in the same turn.

    Two writes are two packets, each of which the system delivers, and wakes the client for.

    Args:
        transport: The transport.
        loop: The event loop, which writes what is held back when the turn ends.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, or hold back the head of a response until the next write."""
        head, self._head = self._head, b""
        if head and data:
            self._transport.writelines((head, data))
        elif data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._write_head)
        else:  # an empty part would stay in asyncio's buffer from Python 3.12 on
            self._transport.write(head or data)

    def close(self) -> None:
        """Close, after what is held back."""
        self._write_head()
        self._transport.close()

    def _write_head(self) -> None:
        if self._head:
            self.write(b"")


class UvicornTimeouts(asyncio.Protocol):
    """Closes connections that stall. A mixin that precedes a protocol class of uvicorn's.

    Attributes:
        limits: The limits.
        cycle: The request that was passed to the application last; uvicorn's attribute.
        loop: The event loop; uvicorn's attribute.
        transport: The connection; uvicorn's attribute.
    """

    limits: ClassVar[Limits]
    cycle: _Cycle | None
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _unread = 0
    _head_size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        joined: Any = JoinedWrites(transport, self.loop)
        super().connection_made(joined)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._stop_head_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        before = self.cycle
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_head_timer()
            return
        self._head_size = len(data) if cycle is not before else self._head_size + len(data)
        if self._head_size > HEAD_BYTES:
            self.transport.abort()
        elif self._head_timer is None and not self.transport.is_closing():
            self._start_head_timer()

    def pause_writing(self) -> None:
        """Called by the loop."""
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        super().resume_writing()

    def _start_read_timer(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(self.limits.send_seconds, self._check_reading)

    def _check_reading(self) -> None:
        if self.transport.get_write_buffer_size() < self._unread:
            self._start_read_timer()  # the client reads slowly
        else:
            self.transport.abort()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self.transport.abort)

    def _stop_head_timer(self) -> None:
        self._head_size = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _with_timeouts(base: type[asyncio.Protocol], limits: Limits) -> type[asyncio.Protocol]:
    """A protocol class of uvicorn's with timeouts for connections that stall."""
    return type("TimeoutProtocol", (UvicornTimeouts, base), {"limits": limits})


def _listener(host: str, port: int) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, *_, bound = min(addresses, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.create_server(bound[:2], family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        raise ListenFailedError(f"can't listen at {host}:{port}: {why.lower()}") from error
    # Connections inherit the option. Without it, a response in two writes is delayed by 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _reached_at(bound: tuple[Any, ...]) -> str:
    """Host and port at which a listener is reached."""
    host = str(_REACHED_AT.get(bound[0], bound[0]))
    return f"[{host}]:{bound[1]}" if ":" in host else f"{host}:{bound[1]}"
