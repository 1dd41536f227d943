"""HTTP/1.1 over a socket, byte by byte: for what no client library would send."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import SocketStream

from kit.asgi_client import BOTH, SESSION, fields_of
from kit.wire import HANDSHAKE, INITIALIZED, encode_message, initialize, request

SECONDS = 20
"""How long anything may take before a test counts it as hanging."""


class Raw:
    """A connection."""

    def __init__(self, stream: SocketStream, port: int) -> None:
        self.stream = stream
        self.port = port
        self._unread = b""

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        await self.stream.send(data)

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Read one answer of known length: status, fields, and the JSON of its body."""
        with anyio.fail_after(SECONDS):
            head = (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            fields = {name.lower(): value for name, value in pairs}
            length = int(fields["content-length"])
            while len(self._unread) < length:
                self._unread += await self.stream.receive()
        body, self._unread = self._unread[:length], self._unread[length:]
        is_json = fields.get("content-type") == "application/json"
        return int(head[0].split()[1]), fields, json.loads(body) if is_json else body

    async def status(self) -> int:
        """Read the status of an answer."""
        with anyio.fail_after(SECONDS):
            return int((await self.until(b"\r\n")).split()[1])

    async def closed(self) -> bytes:
        """Wait until the server has closed the connection; what came before that."""
        data = self._unread
        with anyio.fail_after(SECONDS):
            try:
                while True:
                    data += await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return data

    async def until(self, end: bytes) -> bytes:
        """Read on until these bytes came; what was before them."""
        while end not in self._unread:
            self._unread += await self.stream.receive()
        data, _, self._unread = self._unread.partition(end)
        return data


@asynccontextmanager
async def raw(port: int) -> AsyncIterator[Raw]:
    """A connection to a server on this machine."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        yield Raw(stream, port)


def head(port: int, fields: Mapping[str, str | None], *, method: str = "POST") -> bytes:
    """The head of a request, names of fields as they are given."""
    given = {"Host": f"127.0.0.1:{port}", "Accept": BOTH, **fields}
    if method == "POST":
        given.setdefault("Content-Type", "application/json")
    lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
    return "\r\n".join([f"{method} /mcp HTTP/1.1", *lines, "", ""]).encode("latin-1")


def message_bytes(
    port: int, message: Any, fields: Mapping[str, str | None] = {}, *, path: str = "/mcp"
) -> bytes:
    """A POST of a message."""
    body = encode_message(message)
    sized = {**fields, "Content-Length": str(len(body))}
    return head(port, sized).replace(b"/mcp", path.encode(), 1) + body


def whole(port: int, revision: str, method: str, params: Any = None, **how: Any) -> bytes:
    """A request of a revision without sessions."""
    message = request(revision, method, params, **how)
    return message_bytes(port, message, fields_of(revision, message))


async def session_fields(port: int, revision: str) -> dict[str, str | None]:
    """Open a session; the header fields that name it. None in revisions without sessions."""
    if revision not in HANDSHAKE:
        return {}
    async with raw(port) as connection:
        await connection.send(message_bytes(port, initialize(revision)))
        status, fields, _ = await connection.answer()
        assert status == 200
        session: dict[str, str | None] = {
            SESSION: fields[SESSION],
            "MCP-Protocol-Version": revision,
        }
        await connection.send(message_bytes(port, INITIALIZED, session))
        assert (await connection.answer())[0] == 202
    return session
