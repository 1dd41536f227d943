"""Running an application with uvicorn, until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from ...errors import ListenFailedError, MissingExtraError
from ..serving import leave_stuck_threads
from . import request as http
from .uvicorn_timeouts import impatient

if TYPE_CHECKING:
    from .app import Application

_REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_MORE = 2.0  # seconds after which uvicorn cancels what the application could not end
_ENDING = b'{"error":{"code":-32603,"message":"the server is ending"},"jsonrpc":"2.0"}'


def address(text: str) -> tuple[str, int]:
    """Host and port of an address such as `127.0.0.1:8000`, `[::1]:8000` or `:8000`.

    No host means loopback; port 0 means any free one.

    Raises:
        ValueError: It is no such address.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if ":" not in text or not is_port or (":" in bare and bare == host):
        raise ValueError(f"expected HOST:PORT, such as 127.0.0.1:8000, got {text!r}")
    return bare or "127.0.0.1", int(port)


def run(application: Application, text: str, grace: float) -> None:
    """Serve at an address until SIGINT or SIGTERM. Says on standard error where.

    Then streams are ended, and requests being served may finish; a second SIGINT waits for none.

    Args:
        application: What to serve.
        text: The address; see `address`.
        grace: Seconds that requests being served may take once it is to end.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ValueError: The address is none.
        ListenFailedError: It can't be listened at.
        Exception: Whatever the lifespan raised.
    """
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise MissingExtraError("serving over HTTP", "uvicorn") from None

    class EndingServer(uvicorn.Server):
        """Serves the application, and ends when told to."""

        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            self._forced = asyncio.Event()
            self._loop: asyncio.AbstractEventLoop | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            self._loop = asyncio.get_running_loop()
            await application.start()
            await super().startup(sockets)
            shown = _shown(listener.getsockname())
            place = f"http://{shown}{application.place}"
            print(f"serving at {place}", file=sys.stderr, flush=True)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            aborting = asyncio.create_task(self._abort_connections())
            draining = asyncio.create_task(application.drain())
            await super().shutdown(sockets)
            draining.cancel()
            aborting.cancel()
            if not self.force_exit:
                await application.end()

        async def _abort_connections(self) -> None:
            """End the connections once the end is forced: asyncio's servers wait for them."""
            await self._forced.wait()
            for connection in list(self.server_state.connections):
                connection.transport.abort()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # The signals are dealt with: uvicorn would raise those that it takes note of again.
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True
            if self.force_exit and self._loop is not None:
                self._loop.call_soon_threadsafe(self._forced.set)

    host, port = address(text)
    application.know_hosts([host])
    config = uvicorn.Config(
        _Abandonable(application),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace + _MORE,  # type: ignore[arg-type]  # fractions do
        ws="none",
        lifespan="off",
    )
    config.load()
    protocol: Any = config.http_protocol_class
    config.http_protocol_class = impatient(protocol, application.settings.limits)
    with _listener(host, port) as listener:
        EndingServer(config).run(sockets=[listener])
    leave_stuck_threads()


class _Abandonable:
    """An application whose requests may be cancelled when their time is over."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        try:
            await self._application(scope, receive, send)
        except asyncio.CancelledError:
            # What was sent already, uvicorn knows: it refuses what does not come next.
            fields = [(b"content-type", b"application/json"), (b"connection", b"close")]
            head = {"type": "http.response.start", "status": 503, "headers": fields}
            with contextlib.suppress(RuntimeError, asyncio.CancelledError):
                await send(head)
                await send({"type": "http.response.body", "body": _ENDING, "more_body": True})
            with contextlib.suppress(RuntimeError, asyncio.CancelledError):
                await send({"type": "http.response.body", "body": b""})


def _listener(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, *_, place = min(found, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.create_server(place[:2], family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        raise ListenFailedError(f"can't listen at {host}:{port}: {why.lower()}") from error
    # Connections take it over. Without it, an answer in two writes waits 40 ms for the client.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _shown(bound: tuple[Any, ...]) -> str:
    """Where a listener is reached."""
    host = str(_REACHED_AT.get(bound[0], bound[0]))
    return f"[{host}]:{bound[1]}" if ":" in host else f"{host}:{bound[1]}"
