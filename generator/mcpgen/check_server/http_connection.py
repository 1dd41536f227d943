"""A server over Streamable HTTP: each payload is a POST, whose response is read raw."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import anyio

from mcpgen.check_server.connections import (
    FLOOD_MESSAGES,
    MESSAGE_LIMIT,
    Fields,
    Received,
    Reply,
    Transport,
    answer_to,
    encode,
    parse_messages,
    refusal,
)
from mcpgen.errors import ServerError, safe_text
from mcpgen.json_types import Json, is_object

if TYPE_CHECKING:
    import ssl

    import httpx2

STREAM = "text/event-stream"
JSON = "application/json"

_OWN_FIELDS = {"Content-Type": JSON, "Accept": f"{JSON}, {STREAM}"}
_END_SECONDS = 1.0
"""Seconds that a stream may stay open after its response."""


def open_http(address: str, options: Mapping[str, Any], timeout: float) -> HttpConnection:
    """Open a client of a server.

    Args:
        address: The URL of the endpoint.
        options: `headers` of every request.
        timeout: Seconds for each answer.

    Raises:
        ServerError: The library for HTTP is not installed.
    """
    if find_spec("httpx2") is None:
        raise ServerError("expected httpx2 for servers over HTTP, got none: pip install httpx2")
    import httpx2  # an extra of mcpgen

    client = httpx2.AsyncClient(
        timeout=None, follow_redirects=False, verify=_trusted_certificates()
    )
    return HttpConnection(client, address, options.get("headers", {}), timeout)


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """The trusted certificates, read once for all clients."""
    import httpx2

    return httpx2.create_ssl_context()


class HttpConnection:
    """A client of one endpoint; see `Connection`.

    Args:
        client: The HTTP client; closed with the connection.
        address: The URL of the endpoint.
        headers: The user's header fields for every request.
        timeout: Seconds for each answer.
    """

    def __init__(
        self, client: httpx2.AsyncClient, address: str, headers: Mapping[str, str], timeout: float
    ) -> None:
        self.received: list[Received] = []
        self.fields: dict[str, str] = {}
        self._client = client
        self._address = address
        self._headers = dict(headers)
        self._timeout = timeout
        self._end = ""

    @property
    def transport(self) -> Transport:
        """The transport of the messages."""
        return "http"

    @property
    def end(self) -> str:
        """The reason of the end of the connection; empty while it is open."""
        return self._end

    def _merge_fields(self, fields: Fields | None) -> list[tuple[str, str]]:
        """The header fields of a request; a later field replaces one of the same name."""
        rows: dict[str, tuple[str, str | None]] = {}
        for part in (_OWN_FIELDS, self._headers, self.fields, fields or {}):
            rows |= {name.lower(): (name, value) for name, value in part.items()}
        return [(name, value) for name, value in rows.values() if value is not None]

    async def send(
        self,
        payload: bytes,
        awaited: Sequence[Json] = (),
        fields: Fields | None = None,
        *,
        to_end: bool = False,
    ) -> Reply:
        """POST a payload, and read the response; see `Connection`."""
        reply = Reply()
        await self._read("POST", payload, fields, reply, awaited, to_end=to_end)
        if reply.status in (307, 308) and self._follow_redirect(reply.fields.get("location", "")):
            reply = Reply()
            await self._read("POST", payload, fields, reply, awaited, to_end=to_end)
        if awaited or not reply.reason:
            reply.answer = answer_to(awaited[-1] if awaited else None, reply.received)
        if reply.answer is not None:
            reply.reason = ""
        elif not reply.reason:
            reply.reason = f"no response in a body of type {reply.media_type or 'none'}"
        return reply

    def _follow_redirect(self, location: str) -> bool:
        """Change the address to that of a redirect, if it is on the same host."""
        target = urljoin(self._address, location)
        same = urlsplit(target)[:2] == urlsplit(self._address)[:2]
        moves = bool(location) and same and target != self._address
        self._address = target if moves else self._address
        return moves

    async def head(self, verb: str, fields: Fields | None = None) -> Reply:
        """Send a request with another verb, and read status and header fields only."""
        reply = Reply()
        await self._read(verb, b"", fields, reply, None)
        return reply

    async def _read(
        self,
        verb: str,
        payload: bytes,
        fields: Fields | None,
        reply: Reply,
        awaited: Sequence[Json] | None,
        *,
        to_end: bool = False,
    ) -> None:
        """Send a request and fill a reply; if `awaited` is `None`, without its body."""
        import httpx2  # an extra of mcpgen

        headers = [
            (name.encode(), value.encode("latin-1", "replace"))
            for name, value in self._merge_fields(fields)
        ]
        try:
            with anyio.fail_after(self._timeout):
                request = self._client.build_request(
                    verb, self._address, content=payload or None, headers=headers
                )
                response = await self._client.send(request, stream=True)
        except TimeoutError:
            reply.reason = f"no HTTP response in {self._timeout:g} s"
            return
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            reply.reason = f"{verb} failed: {safe_text(str(error) or type(error).__name__)}"
            return
        reply.status = response.status_code
        reply.fields = {name.lower(): value for name, value in response.headers.items()}
        try:
            if awaited is not None:
                await self._read_body(response, reply, awaited, to_end=to_end)
        except TimeoutError:
            reply.reason = f"no answer in {self._timeout:g} s"
        except (httpx2.HTTPError, OSError, ValueError) as error:
            reply.reason = f"the response broke off: {safe_text(str(error) or 'no reason')}"
        finally:
            with anyio.CancelScope(shield=True), suppress(httpx2.HTTPError, OSError):
                await response.aclose()

    async def _read_body(
        self, response: httpx2.Response, reply: Reply, awaited: Sequence[Json], *, to_end: bool
    ) -> None:
        with anyio.fail_after(self._timeout) as deadline:
            if reply.media_type != STREAM:
                async for chunk in response.aiter_bytes():
                    reply.body += chunk
                    _check_size(len(reply.body))
                if reply.body.strip():
                    await self._take(parse_messages(reply.body), reply)
                reply.ended = True
                return
            async for data, event_id in _events(response.aiter_bytes()):
                messages = (
                    parse_messages(data, event_id) if data else [Received(b"", event_id=event_id)]
                )
                await self._take(messages, reply)
                if _is_answered(awaited, reply) and deadline.deadline > anyio.current_time():
                    if not to_end:
                        return
                    deadline.deadline = anyio.current_time() + _END_SECONDS
            reply.ended = True
            if not _is_answered(awaited, reply):
                reply.reason = "the stream ended without the response"

    async def _take(self, messages: Sequence[Received], reply: Reply) -> None:
        """Record messages, and answer those that are requests of the server."""
        reply.received += messages
        self.received += messages
        if len(reply.received) > FLOOD_MESSAGES:
            raise ValueError(f"more than {FLOOD_MESSAGES} messages")
        for each in messages:
            answer = refusal(each.message) if is_object(each.message) else None
            if answer is not None:
                await self._read("POST", encode(answer), None, Reply(), None)

    async def listen(self, payload: bytes, id: Json, fields: Fields | None) -> Reply:
        """POST a request whose stream stays open, and read up to its first message."""
        reply = Reply()
        await self._read("POST", payload, fields, reply, [_FIRST])
        reply.answer = answer_to(id, reply.received)
        return reply

    async def settle(self, seconds: float) -> None:
        """Do nothing: each response is read with its request."""

    async def close(self) -> None:
        """Close the client."""
        self._end = self._end or "closed"
        with anyio.CancelScope(shield=True):
            await self._client.aclose()


_FIRST = object()
"""A placeholder for the id of the first message, whatever its id."""


def _is_answered(awaited: Sequence[Json], reply: Reply) -> bool:
    messages = [each for each in reply.received if each.data]
    return bool(awaited) and all(
        bool(messages) if id is _FIRST else answer_to(id, messages) is not None for id in awaited
    )


def _check_size(size: int) -> None:
    if size > MESSAGE_LIMIT:
        raise ValueError(f"more than {MESSAGE_LIMIT} bytes")


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, str | None]]:
    """Data and id of each server-sent event."""
    tail, is_after_return = b"", False
    lines: list[bytes] = []
    async for received in chunks:
        chunk = received.removeprefix(b"\n") if is_after_return else received
        is_after_return = received.endswith(b"\r")
        text = (tail + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *complete, tail = text.split(b"\n")
        _check_size(len(tail) + sum(map(len, lines)))
        for line in complete:
            if line:
                lines.append(line)
            elif lines:
                yield _event(lines)
                lines = []


def _event(lines: Sequence[bytes]) -> tuple[bytes, str | None]:
    """Data and id of an event, from its lines."""
    data = b"\n".join(_values(lines, b"data"))
    ids = [value.decode("utf-8", "replace") for value in _values(lines, b"id")]
    return data, ids[-1] if ids else None


def _values(lines: Sequence[bytes], name: bytes) -> Iterator[bytes]:
    for line in lines:
        field, _, value = line.partition(b":")
        if field == name:
            yield value.removeprefix(b" ")
