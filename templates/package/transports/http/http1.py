"""Plain HTTP/1.1 to a server nearby: no TLS, no proxy, no credentials, at a third of the cost.

h11 reads what comes; what is here writes requests, and keeps connections for the next one. A
connection serves one request at a time, and a new one is made when none is free. Nothing is sent
twice: a server that closes a connection with a request on its way may have acted on it.

Source: RFC 9112, section 9.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from ...errors import ConnectFailedError, LocalProtocolError, ResponseLostError
from ...framing.line_framing import TooLong
from .http_errors import reason_of
from .response import shown
from .sockets import Socket, connect

if TYPE_CHECKING:
    import h11
    import httpx2

KEPT = 100
"""Idle connections that are kept for one address."""

HEAD_LIMIT = 64 * 1024
"""Bytes of a response's head that are taken."""

INFORMATIONAL_LIMIT = 1000
"""Responses that only say that a request is under way, before the one that answers it."""

_SHOWN = 100  # bytes of what is no HTTP that an error shows
_AT_ONCE = 16 * 1024  # a connection on which nothing is on its way takes that without a pause
_LINES = 1000
_OWN = frozenset({"accept-encoding", "connection", "content-length", "transfer-encoding"})
_is_name = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_is_value = re.compile(r"[\t -~\x80-\xff]*").fullmatch


class Http1Client:
    """Makes requests, each over a connection that is free.

    Args:
        connect_timeout: Seconds to make a connection.
        silence: Seconds that the taking of a request may stand still.
        keep_alive: Seconds an idle connection is kept.
    """

    def __init__(self, connect_timeout: float, silence: float, keep_alive: float) -> None:
        import h11  # httpx2 brings it

        self._h11 = h11
        self._connect_timeout = connect_timeout
        self._silence = silence
        self._keep_alive = keep_alive
        self._open: set[_Connection] = set()
        self._idle: dict[tuple[str, int], deque[_Connection]] = {}
        self._last: _Place | None = None
        self._lines: dict[tuple[str, str], bytes] = {}
        self._closed = False

    def serves(self, url: httpx2.URL) -> bool:
        """Whether requests to an address can be made here."""
        last = self._last
        return (last is not None and last.url is url) or (url.scheme == "http" and not url.userinfo)

    async def send(
        self, method: str, url: httpx2.URL, fields: Mapping[str, str], body: bytes | None
    ) -> Http1Response:
        """Make a request and wait for the head of its response.

        Raises:
            ConnectFailedError: No connection; nothing was sent.
            AnswerLostError: The connection broke before the head of the response was there.
            LocalProtocolError: A field can't be sent.
        """
        place = self._place(url)
        request = self._encoded(method, place, fields, body)
        connection = await self._free(place) or await self._connect(place)
        try:
            with self.breaking(url):
                await connection.write(request, self._silence)
                head = await connection.head()
        except BaseException:
            await self._cut(connection)
            raise
        return Http1Response(self, place, connection, head)

    async def aclose(self) -> None:
        """Close all connections, whatever they are at. Idempotent."""
        self._closed = True
        self._idle.clear()
        while self._open:
            await self._open.pop().socket.close()

    async def take_back(self, place: _Place, connection: _Connection) -> None:
        """Keep a connection for the next request, or close it."""
        now = time.monotonic()
        idle = self._idle.setdefault(place.address, deque())
        if self._closed or len(idle) >= KEPT or not connection.begin_anew():
            await self._cut(connection)
        else:
            connection.until = now + self._keep_alive
            idle.append(connection)
        while idle and idle[0].until < now:
            await self._cut(idle.popleft())

    @contextmanager
    def breaking(self, url: httpx2.URL) -> Generator[None]:
        """Within, what breaks a connection becomes an error of this package."""
        try:
            yield
        except (OSError, self._h11.RemoteProtocolError) as error:
            raise ResponseLostError(
                f"{shown(url)}: the connection broke before the answer was there: "
                f"{reason_of(error)}"
            ) from error

    def _place(self, url: httpx2.URL) -> _Place:
        last = self._last
        if last is None or last.url is not url:  # most clients have one address
            address = (url.raw_host.decode("ascii"), url.port or 80)
            last = self._last = _Place(url, address, b"Host: %b\r\n" % url.netloc, url.raw_path)
        return last

    def _encoded(
        self, method: str, place: _Place, fields: Mapping[str, str], body: bytes | None
    ) -> bytes:
        """A request as it is sent."""
        if len(self._lines) > _LINES:
            self._lines.clear()
        try:
            lines = [self._lines.get(field) or self._line(field) for field in fields.items()]
        except (TypeError, ValueError):
            raise LocalProtocolError(f"{shown(place.url)}: a header field can't be sent") from None
        if not any(line[:5].lower() == b"host:" for line in lines):
            lines.append(place.host_line)
        if body is not None:
            lines.append(b"Content-Length: %d\r\n" % len(body))
        return b"%b %b HTTP/1.1\r\n%bAccept-Encoding: identity\r\n\r\n%b" % (
            method.encode("ascii"),
            place.target,
            b"".join(lines),
            body or b"",
        )

    def _line(self, field: tuple[str, str]) -> bytes:
        """A header field as it is sent, kept for the next time; nothing for what is not the user's.

        Raises:
            ValueError: It can't be sent. The text does not have the value, which may be a secret.
        """
        name, value = field
        if not _is_name(name) or not _is_value(value):
            raise ValueError(name)
        line = b"" if name.lower() in _OWN else f"{name}: {value.strip()}\r\n".encode("latin-1")
        self._lines[field] = line
        return line

    async def _free(self, place: _Place) -> _Connection | None:
        """A free connection that the server did not close meanwhile."""
        idle = self._idle.get(place.address)
        now = time.monotonic()
        while idle:
            connection = idle.pop()
            if connection.until > now and connection.socket.is_quiet:
                return connection
            await self._cut(connection)
        return None

    async def _connect(self, place: _Place) -> _Connection:
        host, port = place.address
        try:
            with anyio.fail_after(self._connect_timeout):
                socket = await connect(host, port)
        except TimeoutError as error:
            reason = f"none within {self._connect_timeout:g} s"
            raise ConnectFailedError(shown(place.url), reason) from error
        except OSError as error:
            raise ConnectFailedError(shown(place.url), reason_of(error)) from error
        connection = _Connection(self._h11, socket)
        self._open.add(connection)
        return connection

    async def _cut(self, connection: _Connection) -> None:
        self._open.discard(connection)
        await connection.socket.close()


class _Place(msgspec.Struct, frozen=True, eq=False):
    """Where requests to an address go.

    Attributes:
        url: The address.
        address: Host and port to connect to.
        host_line: The same as a header field.
        target: Path and query.
    """

    url: Any
    address: tuple[str, int]
    host_line: bytes
    target: bytes


class _Connection:
    """One connection.

    Attributes:
        socket: What carries it.
        until: When it was idle for too long, on the clock of `time.monotonic`.
    """

    __slots__ = ("_asked", "_h11", "_state", "socket", "until")

    def __init__(self, library: Any, socket: Socket) -> None:
        self.socket = socket
        self.until = 0.0
        self._h11 = library
        self._asked = library.Request(method="POST", target="/", headers=[("Host", "a")])
        self._state: h11.Connection = library.Connection(
            library.CLIENT, max_incomplete_event_size=HEAD_LIMIT
        )

    def begin_anew(self) -> bool:
        """Make it ready for another request; `False` if there can't be one."""
        state, done = self._state, self._h11.DONE
        if state.our_state is not done or state.their_state is not done or state.trailing_data[0]:
            return False
        state.start_next_cycle()
        return True

    async def write(self, request: bytes, silence: float) -> None:
        """Send a request.

        Raises:
            TimeoutError: The server did not take it.
        """
        self._state.send(self._asked)  # that there is a request, not what it says
        self._state.send(self._h11.EndOfMessage())
        try:
            if len(request) <= _AT_ONCE:
                await self.socket.send(request)
            else:
                with anyio.fail_after(silence):
                    await self.socket.send(request)
        except ConnectionError:
            pass  # it may have been refused, with an answer that can be read

    async def head(self) -> h11.Response:
        """The head of the response, without those that only say that it is under way.

        Raises:
            ConnectionError: The server closed instead, or says that for ever.
        """
        informational = 0
        while informational <= INFORMATIONAL_LIMIT:
            event: Any = self._state.next_event()
            if isinstance(event, self._h11.Response):
                head: h11.Response = event
                return head
            if event is self._h11.NEED_DATA:
                await self.receive()
            elif isinstance(event, self._h11.InformationalResponse):
                informational += 1
            else:
                raise ConnectionError("expected a response, came another protocol")
        raise ConnectionError(f"more than {INFORMATIONAL_LIMIT} informational responses came")

    def part(self) -> bytes | None:
        """The next part of the body: `b""` at its end, `None` if more is to come first."""
        while True:
            event: Any = self._state.next_event()
            if event is self._h11.NEED_DATA:
                return None
            if not isinstance(event, self._h11.Data):
                return b""
            if event.data:
                return bytes(event.data)

    async def receive(self) -> None:
        """Wait for more.

        Raises:
            ConnectionError: The server closed instead of answering.
        """
        data = await self.socket.receive()
        if not data and self._state.their_state is self._h11.SEND_RESPONSE:
            came = bytes(self._state.trailing_data[0][:_SHOWN])
            raise ConnectionError(f"the server closed it{f' after {came!r}' if came else ''}")
        self._state.receive_data(data)


class Http1Response:
    """A response whose body is not read yet.

    Attributes:
        status_code: Its status.
        reason_phrase: What the status is called.
        headers: Its header fields.
        url: Where the request went.
    """

    def __init__(
        self, client: Http1Client, place: _Place, connection: _Connection, head: h11.Response
    ) -> None:
        self._client = client
        self._place = place
        self._connection: _Connection | None = connection
        self.status_code = head.status_code
        self.reason_phrase = head.reason.decode("latin-1")
        self.headers: Mapping[str, str] = Headers(head.headers)
        self.url: httpx2.URL = place.url

    async def read(self, limit: int, silence: float) -> bytes:
        """The whole body; the response is closed in the end.

        Args:
            limit: Most bytes that are taken.
            silence: Seconds that the body may stand still.

        Raises:
            FrameError: It is over the limit.
            AnswerLostError: The connection broke, or stood still.
        """
        body = bytearray()
        try:
            with self._client.breaking(self.url):
                if self._take_in(body, limit):
                    return bytes(body)
                with anyio.CancelScope(deadline=anyio.current_time() + silence) as scope:
                    while self._connection is not None:
                        await self._connection.receive()
                        if self._take_in(body, limit):
                            return bytes(body)
                        scope.deadline = anyio.current_time() + silence
        finally:
            await self.aclose()
        raise ResponseLostError(f"{shown(self.url)}: the answer stood still for {silence:g} s")

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        """The parts of the body, as they come.

        Raises:
            AnswerLostError: The connection broke.
        """
        with self._client.breaking(self.url):
            while self._connection is not None:
                part = self._connection.part()
                if part is None:
                    await self._connection.receive()
                elif part:
                    yield part
                else:
                    return

    async def aclose(self) -> None:
        """Give the connection back, or close it if there is more to come. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._client.take_back(self._place, connection)

    def _take_in(self, body: bytearray, limit: int) -> bool:
        """Take what is there of the body; whether that is the end of it."""
        while self._connection is not None:
            part = self._connection.part()
            if not part:
                return part is not None
            body += part
            if len(body) > limit:
                raise TooLong(limit).error()
        return True


class Headers(Mapping[str, str]):
    """Header fields of a response; names in any case, values of one name joined by commas."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[bytes, bytes]]) -> None:
        self._fields: dict[str, str] = {}
        for name, value in fields:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            self._fields[key] = f"{self._fields[key]}, {text}" if key in self._fields else text

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)
