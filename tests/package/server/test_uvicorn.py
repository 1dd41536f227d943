"""uvicorn as the package uses it: timeouts, joined writes, signals, and fields of proxies."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kit.raw_http import head, raw
from kit.simulation import ASYNCIO
from mcpgen_runtime import Server
from mcpgen_runtime.errors import ListenFailedError
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpSettings
from mcpgen_runtime.server.asgi.routes import RouteRequest
from mcpgen_runtime.server.asgi.settings import Limits
from mcpgen_runtime.server.asgi.uvicorn_adapter import (
    HEAD_BYTES,
    JoinedWrites,
    listener_at,
    options_of,
    protocol_of,
    reached_at,
    run,
    run_async,
)

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Starting:
    """The `task_status` of a server."""

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.port = 0

    def started(self, value: str | None = None) -> None:
        self.port = urlsplit(value or "").port or 0
        self.event.set()


class Recorded(asyncio.Transport):
    """A transport that keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        parts = [bytes(part) for part in list_of_data]
        assert all(parts)  # from Python 3.12 on, asyncio's own never writes an empty one
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def joined_writes() -> tuple[JoinedWrites, Recorded]:
    transport = Recorded()
    return JoinedWrites(transport, asyncio.get_running_loop()), transport


@on_asyncio
async def test_the_head_and_what_follows_are_one_write() -> None:
    writer, transport = joined_writes()
    for _ in range(2):
        writer.write(HEAD)
        writer.write(b"{}")
    assert transport.writes == [HEAD + b"{}"] * 2


@on_asyncio
async def test_a_head_leaves_in_its_turn_also_alone() -> None:
    writer, transport = joined_writes()
    writer.write(HEAD)
    assert transport.writes == []
    await anyio.lowlevel.checkpoint()
    assert transport.writes == [HEAD]
    writer.write(b"{}")
    assert transport.writes == [HEAD, b"{}"]


@on_asyncio
async def test_a_head_without_a_body_leaves_alone() -> None:
    writer, transport = joined_writes()
    writer.write(HEAD)
    writer.write(b"")
    assert transport.writes == [HEAD]


@on_asyncio
async def test_a_head_leaves_before_the_end_of_the_connection() -> None:
    writer, transport = joined_writes()
    writer.write(HEAD)
    writer.close()
    assert (transport.writes, writer.is_closing()) == ([HEAD], True)


@on_asyncio
@pytest.mark.parametrize("trusted", [None, "127.0.0.1", "192.0.2.1"])
async def test_a_proxy_is_believed_only_if_the_environment_names_it(
    trusted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted is None:
        monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    else:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    server = Server("behind a proxy")

    @server.custom_route("/who")
    async def who(request: RouteRequest) -> str:
        return str(request.client and request.client[0])

    starting, addresses = Starting(), list[bytes]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server.run_async, http="127.0.0.1:0", task_status=starting))
        await starting.event.wait()
        async with raw(starting.port) as connection:
            asked = head(starting.port, {"X-Forwarded-For": "203.0.113.9"}, method="GET")
            await connection.send(asked.replace(b"/mcp", b"/who", 1))
            addresses.append((await connection.answer())[2])
        tasks.cancel_scope.cancel()
    assert addresses == [b"203.0.113.9" if trusted == "127.0.0.1" else b"127.0.0.1"]


# ---- connections that stall

CLIENT = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Connection(Recorded):
    """The transport of a connection, and uvicorn's protocol with timeouts at its end.

    Attributes:
        application: The application that is told of the shutdown.
        unread: Bytes that the client has not read.
        aborted: The time of the abort.
        protocol: The protocol.
        requests: Requests of which the head has arrived.
    """

    def __init__(self, **limits: Any) -> None:
        super().__init__()
        self.unread = 0
        self.aborted: float | None = None
        self.requests: list[str] = []
        self._may_respond = anyio.Event()
        self.application = Application(**limits)
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            h11_max_incomplete_event_size=2**20,  # leave the size of heads to the mixin
        )
        config.load()
        config.http_protocol_class = H11Protocol
        kind: Any = protocol_of(config, self.application)
        self.protocol: Any = kind(config, ServerState(), {})
        self.protocol.connection_made(self)

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        """Called by the protocol, while a request has no response; data arrives nevertheless."""

    def resume_reading(self) -> None:
        """Called by the protocol."""

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = self.aborted or anyio.current_time()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def at(self, seconds: float, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function when so many seconds have passed since the start of the test."""
        asyncio.get_running_loop().call_at(seconds, function, *arguments)

    def receive_at(self, seconds: float, data: bytes) -> None:
        """Receive data then."""
        self.at(seconds, self.protocol.data_received, data)

    def read_at(self, seconds: float, unread: int) -> None:
        """Let the client read until so many bytes are left."""
        self.at(seconds, setattr, self, "unread", unread)

    def respond_at(self, seconds: float) -> None:
        """Let the application respond to all requests, from then on."""
        self.at(seconds, self._may_respond.set)

    async def wait_until(self, seconds: float) -> None:
        """Wait for a time on the clock of the test."""
        passed = anyio.Event()
        self.at(seconds, passed.set)
        await passed.wait()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append(scope["path"])
        await self._may_respond.wait()
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


on_virtual_clock = pytest.mark.parametrize("anyio_backend", [ASYNCIO])
END = b"\r\n"


@on_virtual_clock
@pytest.mark.parametrize(
    ("arrivals", "aborted"),
    [
        ({}, 30),
        ({0: b"P"}, 30),
        ({10: CLIENT, 20: b"x: y\r\n"}, 30),  # more of the head gives no more time
        ({29: CLIENT + END}, None),
        ({10: CLIENT, 29: END}, None),
        ({10: CLIENT + END, 20: b"GET"}, None),  # the first request has no response yet
        ({10: CLIENT + END, 52: b"GET"}, 82),
        ({10: CLIENT + END, 52: CLIENT + END}, None),
        ({10: CLIENT + END, 52: b"GET", 60: b" / "}, 82),
        ({10: b"no request" + END + END}, None),  # uvicorn has closed the connection
    ],
)
async def test_the_head_of_a_request_has_30_seconds_to_arrive(
    arrivals: dict[int, bytes], aborted: int | None
) -> None:
    connection = Connection()
    connection.respond_at(50)
    for seconds, data in arrivals.items():
        connection.receive_at(seconds, data)
    await connection.wait_until(200)
    assert connection.aborted == aborted


@on_virtual_clock
@pytest.mark.parametrize(
    ("sizes", "is_aborted"),
    [
        ([HEAD_BYTES], False),
        ([HEAD_BYTES + 1], True),
        ([HEAD_BYTES - 10, 10], False),
        ([HEAD_BYTES - 10, 11], True),
        ([HEAD_BYTES - 10, 0, HEAD_BYTES], False),
        ([HEAD_BYTES - 10, 0, HEAD_BYTES, 1], True),
    ],
)
async def test_a_head_has_64_kib_however_it_arrives(sizes: list[int], is_aborted: bool) -> None:
    """A size of zero stands for the end of the head, after which the next request may follow."""
    connection = Connection()
    connection.respond_at(0)
    at_start = True
    for size in sizes:
        start = CLIENT + b"x: " if at_start and size else b""
        at_start = not size
        connection.protocol.data_received(start.ljust(size, b"y") if size else 2 * END)
        await connection.wait_until(anyio.current_time() + 1)
    assert (connection.aborted is not None) is is_aborted


@on_virtual_clock
@pytest.mark.parametrize(
    ("unread", "aborted"),
    [
        ({}, 60),
        ({30: 1001}, 60),
        ({30: 999}, 120),  # a slow reader
        ({30: 999, 90: 998}, 180),
        ({30: 999, 90: 1000}, 120),
    ],
)
async def test_a_client_reads_something_every_60_seconds(
    unread: dict[int, int], aborted: int
) -> None:
    connection = Connection(head_seconds=1000)
    connection.unread = 1000
    connection.protocol.pause_writing()
    for seconds, left in unread.items():
        connection.read_at(seconds, left)
    await connection.wait_until(200)
    assert connection.aborted == aborted


@on_virtual_clock
@pytest.mark.parametrize("ends", [False, True], ids=["is read again", "ends"])
async def test_a_connection_that_goes_on_or_ends_has_no_timer(ends: bool) -> None:
    connection = Connection(head_seconds=2000 if not ends else 30)
    connection.protocol.pause_writing()
    assert not connection.protocol.flow._is_writable_event.is_set()
    if ends:
        connection.at(20, connection.protocol.connection_lost, None)
    else:
        connection.at(59, connection.protocol.resume_writing)
    await connection.wait_until(1000)
    assert connection.aborted is None
    assert connection.protocol.flow._is_writable_event.is_set()
    assert connection.closed is ends


# ---- running a server


class Application:
    """An application that records the steps of its server."""

    def __init__(self, **limits: Any) -> None:
        self.settings = ServerHttpSettings(limits=Limits(**limits))
        self.endpoint_path = "/here"
        self.steps: list[object] = []

    def allow_hosts(self, names: Collection[str]) -> None:
        self.steps.append([*names])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("nobody makes a request")

    async def start(self) -> None:
        self.steps.append("start")

    def start_drain(self) -> None:
        self.steps.append("drain")

    async def end(self) -> None:
        self.steps.append("end")


@on_asyncio
async def test_connections_that_are_open_at_the_end_are_drained() -> None:
    connection = Connection()
    assert connection.application.steps == []
    connection.protocol.shutdown()
    assert (connection.application.steps, connection.closed) == (["drain"], True)
    await anyio.lowlevel.checkpoint()


INTERRUPT, TERMINATE = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("signals", "ends"),
    [
        ([INTERRUPT], True),
        ([TERMINATE], True),
        ([INTERRUPT, INTERRUPT], False),
        ([TERMINATE, INTERRUPT], False),
        ([INTERRUPT, TERMINATE], True),
        ([TERMINATE, TERMINATE], True),
    ],
)
def test_only_a_second_interrupt_skips_the_lifespan(
    signals: list[signal.Signals], ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)  # it keeps a pipe until the process ends
    application, urls = Application(), list[str]()

    def on_start(url: str) -> None:
        urls.append(url)
        for each in signals:
            signal.raise_signal(each)

    run(application, ("127.0.0.1", 0), 0.1, on_start)
    assert [urlsplit(url)._replace(netloc="").geturl() for url in urls] == ["http:///here"]
    assert [urlsplit(url).hostname for url in urls] == ["127.0.0.1"]
    assert urlsplit(urls[0]).port
    assert application.steps == [["127.0.0.1"], "start", "drain", *(["end"] if ends else [])]


@pytest.mark.parametrize("trusted", [None, "", "127.0.0.1"])
def test_uvicorn_gets_the_seconds_to_drain_and_two_more(
    trusted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    if trusted is not None:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    assert options_of(0.5) == {
        "log_config": None,
        "access_log": False,
        "proxy_headers": trusted is not None,
        "server_header": False,
        "timeout_graceful_shutdown": 2.5,
        "ws": "none",
    }


@pytest.mark.parametrize(
    ("bound", "shown"),
    [
        (("127.0.0.1", 80), "127.0.0.1:80"),
        (("192.0.2.1", 8000), "192.0.2.1:8000"),
        (("0.0.0.0", 80), "127.0.0.1:80"),
        (("::", 80, 0, 0), "[::1]:80"),
        (("2001:db8::1", 80, 0, 0), "[2001:db8::1]:80"),
    ],
)
def test_the_address_of_a_server_is_shown_as_it_is_reached(
    bound: tuple[Any, ...], shown: str
) -> None:
    assert reached_at(bound) == shown


def test_a_listener_prefers_ipv4_and_delays_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [
        *socket.getaddrinfo("::1", 0, type=socket.SOCK_STREAM),
        *socket.getaddrinfo("127.0.0.1", 0, type=socket.SOCK_STREAM),
    ]
    with monkeypatch.context() as resolving:
        resolving.setattr(socket, "getaddrinfo", lambda *_args, **_options: addresses)
        listener = listener_at("localhost", 0)
    with listener:
        assert listener.family is socket.AF_INET
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        port = listener.getsockname()[1]
        taken = f"can't listen at 127.0.0.1:{port}: address already in use"
        with pytest.raises(ListenFailedError, match=f"^{taken}$"):
            listener_at("127.0.0.1", port)


@on_asyncio
async def test_a_server_in_a_loop_leaves_no_task_behind() -> None:
    application, listens = Application(), anyio.Event()
    before = asyncio.all_tasks()
    serving = asyncio.ensure_future(
        run_async(application, ("127.0.0.1", 0), 0.1, lambda _: listens.set())
    )
    await listens.wait()
    serving.cancel()
    await asyncio.wait((serving,))
    await anyio.lowlevel.checkpoint()
    assert asyncio.all_tasks() == before
    assert (serving.cancelled(), application.steps[1:]) == (True, ["start", "drain", "end"])
