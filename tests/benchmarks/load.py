"""A load generator on bare sockets: requests are encoded before, every response is checked."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from .work import (
    HANDSHAKE,
    IDS,
    INITIALIZE,
    META,
    PER_REQUEST,
    TRIVIAL,
    EncodedRequest,
    Work,
    encoded_request,
)

_length = re.compile(rb"(?i)\r\ncontent-length: *(\d+)").search
_session = re.compile(rb"(?i)\r\nmcp-session-id: *([!-~]+)").search


class Answer(NamedTuple):
    """One HTTP response, or the head of a stream."""

    status: int
    head: bytes
    body: bytes


class Lane(asyncio.Protocol):
    """One persistent connection, with one open request at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._streams = False
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is of no such class

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            return  # later parts of a stream
        self._received += data
        answer = whole(self._received, self._streams)
        if answer is not None:
            self._received = b""
            self._waiting.set_result(answer)
            self._waiting = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.set_exception(ConnectionError(f"closed early, {self._received!r}"))

    def ask(self, request: bytes, *, streams: bool = False) -> asyncio.Future[Answer]:
        """Send a request; the future is its response, or the head of a stream."""
        assert self._transport is not None
        self._streams = streams
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()


def whole(received: bytes, streams: bool) -> Answer | None:
    """A response that has arrived completely, or the head of a stream; `None` before that."""
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return None
    answer = Answer(int(head[9:12]), head, body)
    if streams:
        return answer
    length = _length(head)
    if length is None:
        return answer if body.endswith(b"0\r\n\r\n") else None
    return answer if len(body) == int(length[1]) else None


class Load:
    """Requests to one server, over as many connections as there are open calls."""

    def __init__(
        self, url: str, revision: str, token: str | None = None, work: Work = TRIVIAL
    ) -> None:
        self._token = token
        self._work = work
        self._url = urlsplit(url)
        assert self._url.hostname is not None
        assert self._url.port is not None
        self._address = self._url.hostname, self._url.port
        self._revision = revision
        self._free: deque[Lane] = deque()
        self._all: list[Lane] = []
        self._request = EncodedRequest(b"")

    async def start(self) -> None:
        """Open a session, where the revision has sessions, and encode the call."""
        session = await self.session() if self._revision == HANDSHAKE else None
        call = self._work.params(self._revision)
        self._request = EncodedRequest(self.request("tools/call", call, session))

    async def call(self) -> None:
        """Call the tool, and check the response."""
        identifier = b"%d" % next(IDS)
        lane = await self._lane()
        answer = await lane.ask(self._request.with_id(identifier))
        self._free.append(lane)
        if answer.status != 200 or not (
            identifier in answer.body and self._work.answer in answer.body
        ):
            raise AssertionError(answer)

    async def session(self) -> str:
        """Open a session and give its id."""
        lane = await self._lane()
        answer = await lane.ask(self.request("initialize", INITIALIZE))
        match = _session(answer.head)
        assert match is not None, answer
        session = match[1].decode()
        answer = await lane.ask(self.request("notifications/initialized", None, session))
        assert answer.status == 202, answer
        self._free.append(lane)
        return session

    async def stream(self, session: str | None = None) -> None:
        """Open a stream: the GET stream of a session, or a subscription."""
        lane = await self._new_lane()
        if session is not None:
            request = self.head("GET", session=session) + b"\r\n"
        else:
            wanted = {"notifications": {"toolsListChanged": True}}
            request = self.request("subscriptions/listen", wanted)
        answer = await lane.ask(request, streams=True)
        assert answer.status == 200, answer

    def close(self) -> None:
        """Close all connections."""
        for lane in self._all:
            lane.close()

    def request(
        self, method: str, params: Mapping[str, Any] | None, session: str | None = None
    ) -> bytes:
        """A POST of a message."""
        if self._revision == PER_REQUEST:
            params = {"_meta": META, **(params or {})}
        body = encoded_request(method, params)
        fields = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
        if self._revision == PER_REQUEST:
            fields += b"Mcp-Method: %b\r\n" % method.encode()
            if method == "tools/call":
                fields += b"Mcp-Name: %b\r\n" % self._work.tool.encode()
        return self.head("POST", session=session) + fields + b"\r\n" + body

    def head(self, method: str, *, session: str | None = None) -> bytes:
        """The head of a request, without the fields that only a POST has."""
        accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
        lines = [
            f"{method} {self._url.path} HTTP/1.1",
            f"Host: {self._url.netloc}",
            f"Accept: {accept}",
            f"Mcp-Protocol-Version: {self._revision}",
        ]
        if session is not None:
            lines.append(f"Mcp-Session-Id: {session}")
        if self._token is not None:
            lines.append(f"Authorization: Bearer {self._token}")
        return "".join(f"{line}\r\n" for line in lines).encode()

    async def _lane(self) -> Lane:
        return self._free.pop() if self._free else await self._new_lane()

    async def _new_lane(self) -> Lane:
        loop = asyncio.get_running_loop()
        _, lane = await loop.create_connection(Lane, *self._address)
        self._all.append(lane)
        return lane
