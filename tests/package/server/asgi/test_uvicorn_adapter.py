"""uvicorn as the package uses it: timeouts, joined writes, signals, and fields of proxies."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import sys
from collections.abc import Callable, Collection
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kit.raw_http import head, raw, whole
from kit.simulation import on_virtual_clock
from kit.wire import PER_REQUEST
from mcpgen_runtime import Limits, RouteRequest, Server, ServerHttpSettings
from mcpgen_runtime.errors import ListenFailedError
from mcpgen_runtime.server.asgi.uvicorn_adapter import (
    HEAD_BYTES,
    JoinedWrites,
    listener_at,
    protocol_of,
    reached_at,
    run,
)

REVISION = PER_REQUEST[-1]
on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


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

    async with anyio.create_task_group() as tasks:
        url = await tasks.start(partial(server.run_async, http="127.0.0.1:0"))
        port = urlsplit(url).port or 0
        async with raw(port) as connection:
            asked = head(port, {"X-Forwarded-For": "203.0.113.9"}, method="GET")
            await connection.send(asked.replace(b"/mcp", b"/who", 1))
            address = (await connection.answer())[2]
        tasks.cancel_scope.cancel()
    assert address == (b"203.0.113.9" if trusted == "127.0.0.1" else b"127.0.0.1")


@on_asyncio
@pytest.mark.requirement("headers.names-case-insensitive", revisions=(REVISION,))
@pytest.mark.parametrize("spelled", [bytes.lower, bytes.upper, bytes.title, bytes.swapcase])
async def test_names_of_fields_are_read_without_case(spelled: Callable[[bytes], bytes]) -> None:
    async with anyio.create_task_group() as tasks:
        url = await tasks.start(partial(Server("s").run_async, http="127.0.0.1:0"))
        port = urlsplit(url).port or 0
        fields, _, body = whole(port, REVISION, "server/discover").partition(b"\r\n\r\n")
        fields = re.sub(rb"(?m)^[\w-]+(?=: )", lambda name: spelled(name[0]), fields)
        async with raw(port) as connection:
            await connection.send(fields + b"\r\n\r\n" + body)
            assert await connection.status() == 200
        tasks.cancel_scope.cancel()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


@on_asyncio
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([HEAD, b"{}"] * 2, [HEAD + b"{}"] * 2, id="a head with what follows"),
        pytest.param([HEAD, None, b"{}"], [HEAD, b"{}"], id="alone at the end of its turn"),
        pytest.param([HEAD, b""], [HEAD], id="without a body"),
        pytest.param([HEAD], [HEAD], id="before the end of the connection"),
    ],
)
async def test_a_head_is_written_together_with_what_follows_in_its_turn(
    steps: list[bytes | None], expected: list[bytes]
) -> None:
    writes, join = list[bytes](), b"".join
    transport: Any = SimpleNamespace(write=writes.append, close=bool, is_closing=bool)
    transport.writelines = lambda parts: writes.append(join(parts))
    writer = JoinedWrites(transport, asyncio.get_running_loop())
    for step in steps:
        if step is None:
            assert writes == []
            await anyio.lowlevel.checkpoint()
        else:
            writer.write(step)
    writer.close()
    assert writes == expected


CLIENT = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Connection(asyncio.Transport):
    """The transport of a connection, and uvicorn's protocol with timeouts at its end."""

    def __init__(self, **limits: Any) -> None:
        super().__init__()
        self.closed = False
        self.unread = 0
        self.aborted: float | None = None
        self.may_respond = anyio.Event()
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

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Called by the protocol with a response."""

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        """Called by the protocol, while a request has no response; data arrives nevertheless."""

    def resume_reading(self) -> None:
        """Called by the protocol."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = self.aborted or anyio.current_time()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def at(self, seconds: float, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function when so many seconds have passed since the start of the test."""
        asyncio.get_running_loop().call_at(seconds, function, *arguments)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        await self.may_respond.wait()
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


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
        ({10: b"no request" + END + END}, None),  # uvicorn has closed the connection
    ],
)
async def test_the_head_of_a_request_has_30_seconds_to_arrive(
    arrivals: dict[int, bytes], aborted: int | None
) -> None:
    connection = Connection()
    connection.at(50, connection.may_respond.set)
    for seconds, data in arrivals.items():
        connection.at(seconds, connection.protocol.data_received, data)
    await anyio.sleep_until(200)
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
    connection.may_respond.set()
    at_start = True
    for size in sizes:
        start = CLIENT + b"x: " if at_start and size else b""
        at_start = not size
        connection.protocol.data_received(start.ljust(size, b"y") if size else 2 * END)
        await anyio.sleep_until(anyio.current_time() + 1)
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
        connection.at(seconds, setattr, connection, "unread", left)
    await anyio.sleep_until(200)
    assert connection.aborted == aborted


@on_virtual_clock
@pytest.mark.parametrize("ends", [False, True], ids=["is read again", "ends"])
async def test_a_connection_that_goes_on_or_ends_has_no_timer(ends: bool) -> None:
    connection = Connection(head_seconds=2000 if not ends else 30)
    connection.protocol.pause_writing()
    if ends:
        connection.at(20, connection.protocol.connection_lost, None)
    else:
        connection.at(59, connection.protocol.resume_writing)
    await anyio.sleep_until(1000)
    assert connection.aborted is None
    assert connection.closed is ends


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


INTERRUPT, TERMINATE = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("signals", "ends"),
    [
        ([INTERRUPT], True),
        ([INTERRUPT, INTERRUPT], False),
        ([TERMINATE, INTERRUPT], False),
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


@pytest.mark.parametrize(
    ("bound", "shown"),
    [
        (("127.0.0.1", 80), "127.0.0.1:80"),
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
