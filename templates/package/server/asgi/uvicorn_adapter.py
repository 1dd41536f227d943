"""Support for uvicorn: running a server, timeouts of its connections, and its shutdown.

An ASGI server passes a request on when its head is complete, and closes a connection only after all
written data was read. So only the protocol class of uvicorn can close connections that stall before
the end of the head, or whose client does not read the response.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,has-type"
# mypy: allow-subclassing-any
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Collection, Generator, Sized
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import anyio

from ...errors import ListenFailedError, MissingExtraError
from ..serving import leave_stuck_threads
from .http_response import Receive, Scope, Send
from .settings import HttpSettings, Limits

if TYPE_CHECKING:
    import uvicorn

HEAD_BYTES = 64 * 1024
"""Most bytes of the head of a request."""

PIPELINED = 1000
"""Most requests that wait on one connection for those before them, where httptools parses."""

Address: TypeAlias = tuple[str, int]
"""A host and a port."""

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8000

_REACHED_AT = {"0.0.0.0": LOOPBACK, "::": "::1"}

_HEAD = b"HTTP/1.1 "  # first bytes of the head of a response
_TRUSTED = "FORWARDED_ALLOW_IPS"  # uvicorn's variable: the proxies whose header fields it trusts
SHUTDOWN_MARGIN = 2.0  # seconds after `drain` until uvicorn cancels what is still running


class DrainableApplication(Protocol):
    """The application that uvicorn runs, such as an `AsgiApplication`."""

    @property
    def settings(self) -> HttpSettings: ...

    @property
    def endpoint_path(self) -> str: ...

    def allow_hosts(self, names: Collection[str]) -> None: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def start(self) -> None: ...

    def start_drain(self) -> None: ...

    async def end(self) -> None: ...


def run(
    application: DrainableApplication,
    address: Address,
    drain: float,
    on_start: Callable[[str], None],
) -> None:
    """Serve at an address until SIGINT or SIGTERM.

    After the signal, streams are closed, and requests may take `drain` seconds to finish; a second
    SIGINT ends them. `on_start` is called with the URL of the endpoint.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ListenFailedError: The server can't listen at the address.
        Exception: Whatever the lifespan raised.
    """
    with _configure_server(application, address, drain, on_start, takes_signals=True) as (
        server,
        listener,
    ):
        server.run(sockets=[listener])
    leave_stuck_threads()


async def run_async(
    application: DrainableApplication,
    address: Address,
    drain: float,
    on_start: Callable[[str], None],
) -> None:
    """Serve at an address in the running event loop, until cancelled.

    After the cancellation, streams are closed, and requests may finish; a second cancellation by
    asyncio ends them. The caller handles signals. Arguments and errors are those of `run`.

    Raises:
        ValueError: The event loop is not asyncio's.
    """
    try:
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    except RuntimeError:
        raise ValueError(
            "run_async: uvicorn runs on asyncio, not on this event loop; another ASGI server may "
            "run what asgi() returns"
        ) from None
    with _configure_server(application, address, drain, url.set_result, takes_signals=False) as (
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


def options_of(drain: float) -> dict[str, Any]:
    """Arguments of `uvicorn.Config`, for one process and for several."""
    return {
        "log_config": None,
        "access_log": False,
        "proxy_headers": _TRUSTED in os.environ,
        "server_header": False,
        "timeout_graceful_shutdown": drain + SHUTDOWN_MARGIN,  # may be a fraction
        "ws": "none",
    }


@contextlib.contextmanager
def _configure_server(
    application: DrainableApplication,
    address: Address,
    drain: float,
    on_start: Callable[[str], None],
    *,
    takes_signals: bool,
) -> Generator[tuple[uvicorn.Server, socket.socket]]:
    """A uvicorn server, and the socket that it listens at while the block runs."""
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise MissingExtraError("serving over HTTP", "uvicorn") from None

    host, port = address
    application.allow_hosts([host])
    config = uvicorn.Config(application, lifespan="off", **options_of(drain))
    config.load()
    config.http_protocol_class = protocol_of(config, application)
    with listener_at(host, port) as listener:
        yield _draining_server(config, application, on_start, takes_signals), listener


def _draining_server(
    config: uvicorn.Config,
    application: DrainableApplication,
    on_start: Callable[[str], None],
    takes_signals: bool,
) -> uvicorn.Server:
    """A uvicorn server that starts, drains and ends the application."""
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
                on_start(f"http://{reached_at(listener.getsockname())}{application.endpoint_path}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            aborting = asyncio.create_task(self._abort_connections())
            application.start_drain()
            await super().shutdown(sockets)
            if self.force_exit:  # requests notice that their connections are gone
                self._forced.set()
                await aborting
                if self.server_state.tasks:
                    await asyncio.wait(self.server_state.tasks, timeout=SHUTDOWN_MARGIN)
            else:
                aborting.cancel()
                await application.end()

        async def _abort_connections(self) -> None:
            """Abort all connections at a forced exit, since asyncio's servers wait for them."""
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
            # Replaces the base method, which records signals that uvicorn raises again later.
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True
            if self.force_exit and self._loop is not None:
                self._loop.call_soon_threadsafe(self._forced.set)

    return DrainingServer(config)


class JoinedWrites:
    """A transport that joins the head of a response with the next write of the same loop turn.

    Two writes would be two packets, and each packet wakes the client.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data, or hold back the head of a response until the next write."""
        head, self._head = self._head, b""
        if head and data:
            self._transport.writelines((head, data))
        elif data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._write_head)
        else:  # an empty part would stay in asyncio's buffer from Python 3.12 on
            self._transport.write(head or data)

    def close(self) -> None:
        """Write a head that is held back, and close the transport."""
        self._write_head()
        self._transport.close()

    def _write_head(self) -> None:
        if self._head:
            self.write(b"")


class UvicornTimeouts(asyncio.Protocol):
    """Closes connections that stall. A mixin for protocol classes of uvicorn."""

    application: ClassVar[DrainableApplication]
    limits: ClassVar[Limits]
    base: ClassVar[Any]
    # Attributes of uvicorn; `cycle` is the last request that was passed to the application.
    cycle: Any
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _unread: int
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
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()
            return
        self._head_size += len(data)
        if self._head_size > HEAD_BYTES:
            self.transport.abort()
        elif self._head_timer is None:
            self._start_head_timer()

    def shutdown(self) -> None:
        """Called by uvicorn for each open connection, before it waits for responses."""
        self.application.start_drain()
        self.base.shutdown(self)

    def pause_writing(self) -> None:
        """Called by the loop."""
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._read_timer is not None:
            self._read_timer.cancel()
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


class HttptoolsBounds(asyncio.Protocol):
    """Bounds what httptools parses without end. A mixin for the protocol class of uvicorn.

    h11 bounds heads, sizes of chunks and trailers, and parses one request at a time. Trailers are
    dropped, as h11 does: httptools reports them as header fields.

    Source: RFC 9110, section 6.5.1.
    """

    base: ClassVar[Any]
    headers: Any  # of the last head
    pipeline: Sized  # requests that wait for those before them
    transport: asyncio.Transport

    _unused = 0  # bytes that were received since the last head or part of a body

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self._unused += len(data)
        super().data_received(data)
        if self._unused > HEAD_BYTES:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._unused = 0
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests wait")  # the parser stops, and uvicorn closes
        self.base.on_headers_complete(self)
        self.headers = deque[Any](maxlen=0)  # for trailers

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._unused = 0
        self.base.on_body(self, body)


def protocol_of(config: uvicorn.Config, application: DrainableApplication) -> Any:
    """The protocol class of a configuration, with timeouts for connections that stall."""
    base: Any = config.http_protocol_class
    bounds = (HttptoolsBounds,) if hasattr(base, "on_headers_complete") else ()
    members = {"application": application, "limits": application.settings.limits, "base": base}
    return type("TimeoutProtocol", (UvicornTimeouts, *bounds, base), members)


def address_of(call: str, http: str | None, host: str | None, port: int | None) -> Address:
    """The address that the arguments of a method name: `http`, or `host` and `port`.

    Raises:
        TypeError: `http` is given together with another one.
        ValueError: They are not an address.
    """
    if http is not None:
        if host is not None or port is not None:
            raise TypeError(f"{call}: expected http={http!r}, or host and port, got both")
        return parse_address(http)
    number = DEFAULT_PORT if port is None else port
    if not 0 <= number <= 65535:
        raise ValueError(f"{call}: port: expected a number from 0 to 65535, got {port}")
    return host or LOOPBACK, number


def parse_address(text: str) -> Address:
    """Parse an address such as `127.0.0.1:8000`, `[::1]:8000` or `:8000` into host and port.

    The default host is loopback; port 0 means any free port.

    Raises:
        ValueError: The text is not an address of this form.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if ":" not in text or not is_port or (":" in bare and bare == host):
        raise ValueError(f"expected HOST:PORT, such as 127.0.0.1:8000, got {text!r}")
    return bare or LOOPBACK, int(port)


def listener_at(host: str, port: int) -> socket.socket:
    """A socket that listens at an address.

    Raises:
        ListenFailedError: The address can't be bound.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, *_, bound = min(addresses, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.create_server(bound, family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        raise ListenFailedError(f"can't listen at {host}:{port}: {why.lower()}") from error
    # Connections inherit the option. Without it, a response in two writes is delayed by 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listener


def reached_at(bound: tuple[Any, ...]) -> str:
    """Host and port at which a listener is reached."""
    host = str(_REACHED_AT.get(bound[0], bound[0]))
    return f"[{host}]:{bound[1]}" if ":" in host else f"{host}:{bound[1]}"
