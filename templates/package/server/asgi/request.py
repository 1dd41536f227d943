"""HTTP requests: their heads, and their bodies within limits of bytes and time.

Clients send the same head with each POST, but for numbers and credentials. So heads that were
accepted are kept, and a head like one of them is not checked again.

A body that arrives with its head is not counted. Incomplete bodies are counted: when there are too
many, the body that has waited longest for its next part is cancelled, so clients that send half a
body do not block others.

Some clients read no response before their whole body is written. If the connection were closed
earlier, a reset would destroy the refusal. So the refusal is sent at once, and the rest of the body
is discarded before the response ends.

Source: ASGI specification 3.0 (HTTP connection scope).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, fields
from functools import lru_cache
from ipaddress import IPv6Address
from types import CoroutineType
from typing import Any, Literal, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

import anyio
from msgspec import UNSET

from ...foreign_text import safe_repr
from ...framing.http_headers import JSON, media_type
from ...framing.sse import MEDIA_TYPE as SSE
from ...protocol import jsonrpc
from ...runtime.concurrency import outcome
from ...runtime.eager_tasks import on_asyncio, resume, run_eagerly
from ...runtime.task_scope import NativeScope
from .http_response import CLOSE, HttpResponse, Receive, Refused, Scope, Send, over_limit, refusal

SHORT_BODY = 64 * 1024
"""Most bytes of a body that is not counted, of requests and responses."""

KEPT_HEADS = 256
"""Most heads in `AcceptedHeads`."""

KEPT_BYTES = 1024
"""Most bytes of the deciding fields of a head in `AcceptedHeads`."""

_Message: TypeAlias = MutableMapping[str, Any]
_Receiving: TypeAlias = Coroutine[Any, Any, _Message]
_Scope: TypeAlias = anyio.CancelScope | NativeScope

_JSON = JSON.encode()
_LENGTH_DIGITS = 18
_DROPPED_BY_SERVERS = 16 * 1024  # bytes of an unread body that ASGI servers discard themselves
_TIMED_OUT = refusal(408, "the body did not come in time (Limits.body_seconds)")
_NETWORK = 8  # bytes of an IPv6 address that identify one customer


Answers: TypeAlias = Literal["auto", "json", "sse"]
"""The form of the response to a POST: JSON, a stream of events, or chosen per response.

With `sse` the stream opens before the handler has finished. With `auto` it opens when a message
precedes the response, or after `keep_alive` seconds of silence.
With `json` nothing can precede the response: progress and log messages of a call are dropped, and
in a session its requests to the client are sent on the stream that the client opened by GET.
"""


@dataclass(frozen=True)
class Limits:
    """Limits of one application, so that no client can exhaust its memory.

    Attributes:
        body: Bytes of a request body; more get 413. Also bytes of messages that one client of
            HTTP+SSE has posted and its session has not received; more get 503.
        bodies: Bytes of all bodies of more than 64 KiB together, from the first part to the
            response; more get 503, first the body whose next part is the longest overdue.
        reading: Incomplete bodies at a time; one more ends the most overdue one, with 503.
        body_seconds: Seconds for a request body to arrive; then the request gets 408.
        discard: Bytes of a refused body that are read and dropped, for `body_seconds` at most, so
            that clients that write the whole body first get the refusal.
        unread: Bytes of all responses and events of more than 64 KiB that clients have not read
            yet. Then requests get 503; those of a principal, or of a network without
            authentication, once half of these bytes are unread by it.
        fields: Header fields of a request; more get 431. With `Server.run` the head of a request
            may have 64 KiB; other servers have limits of their own.
        head_seconds: Seconds for the head of a request to arrive, also of the first request of a
            connection, which is closed then. Applies to `Server.run`.
        send_seconds: Seconds that a client may leave a response unread before the connection is
            aborted. Slow readers are not affected: `Server.run` checks whether the client reads;
            under other servers, each 64 KiB of an event add a second.
        in_flight: Messages being served at a time for connected clients; more get 503. Responses to
            the server's requests and cancellations are always accepted.
        per_session: Requests of one session being served at a time; also notifications, and
            messages of one client of HTTP+SSE that its session has not received. More get 503.
        abandoned: Requests and notifications in sessions being served at a time whose client closed
            the connection. One more cancels the first of them.
        abandoned_seconds: Seconds after which an abandoned request is cancelled, unless the client
            has resumed the stream.
        streams: Open streams of events over all clients; more get 503.
        sessions: Sessions open at a time. One more ends an idle session: of those whose client did
            nothing after `initialize`, if they exceed a hundredth of this limit; then of the
            address that has most. If no session is idle, `initialize` gets 503.
        idle: Seconds after which an unused session ends; `None` for never.
        initialize: Bytes of an `initialize` request; more get 413.
        session_bytes: Estimated bytes kept for all sessions: `initialize`, subscribed URIs, pending
            messages, messages posted over HTTP+SSE and not yet received; also filters of
            subscription streams. Beyond the limit, idle sessions end, or else requests get 503.
        pending: Messages of a session that wait for its client to open a stream; more are refused.
        pending_bytes: Bytes of these messages; more are refused.
        sealed_seconds: Seconds from the start of a sealed session to its end.

    Raises:
        ValueError: A limit is not above zero.
    """

    body: int = 4 * 2**20
    bodies: int = 128 * 2**20
    reading: int = 1000
    body_seconds: float = 30.0
    discard: int = 64 * 2**20
    unread: int = 128 * 2**20
    fields: int = 100
    head_seconds: float = 30.0
    send_seconds: float = 60.0
    in_flight: int = 1000
    per_session: int = 100
    abandoned: int = 1000
    abandoned_seconds: float = 600.0
    streams: int = 10_000
    sessions: int = 10_000
    idle: float | None = 1800.0
    initialize: int = 64 * 2**10
    session_bytes: int = 64 * 2**20
    pending: int = 100
    pending_bytes: int = 2**20
    sealed_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value <= 0:
                raise ValueError(f"Limits.{each.name}: expected more than 0, got {value}")


class HttpRequest:
    """The head of one HTTP request.

    Attributes:
        method: The method, in upper case.
        path: The path below the mount point; `/` if empty.
        headers: Header fields by lower-case name; repeated ones are joined.
        client: Address of the client, if known.
        count: Number of header fields as received.
        key: The fields that decide whether the head is accepted, without numbers and credentials;
            set by `AcceptedHeads`.
        forms: The forms of the response to a POST; see `response_forms`. Set by `AcceptedHeads`.
        responded: Whether a response was started.
        send: The ASGI send callable for short responses, whose bytes are not counted.
        server: Address that received the request, if known.
    """

    __slots__ = (
        *("_scope", "client", "count", "forms", "headers", "key", "method", "path"),
        *("responded", "send", "server"),
    )

    def __init__(self, scope: Scope, send: Send | None = None) -> None:
        self._scope = scope
        self.send = send
        root: str = scope.get("root_path", "")
        self.method: str = scope["method"]
        self.path: str = _unmount(scope["path"], root.rstrip("/")) if root else scope["path"] or "/"
        pairs: list[tuple[bytes, bytes]] = scope["headers"]
        if type(pairs) is not list:
            pairs = list(pairs)
        self.count = len(pairs)
        self.key: tuple[str | bytes | None, ...] = ()
        self.forms: tuple[bool, bool] = (False, False)
        self.responded = False
        self.client: tuple[str, int] | None = scope.get("client")
        self.server: tuple[str, int | None] | None = scope.get("server")
        headers: Mapping[bytes, bytes] = dict(pairs)
        self.headers: Mapping[bytes, bytes] = (
            headers if len(headers) == self.count else _join_fields(pairs)
        )

    @property
    def query(self) -> bytes:
        """The query string, undecoded."""
        query: bytes = self._scope.get("query_string", b"")
        return query

    @property
    def root(self) -> str:
        """The path of the mount point; empty if there is none."""
        root: str = self._scope.get("root_path", "")
        return root

    @property
    def version(self) -> str:
        """The HTTP version, such as `1.1` or `2`."""
        version: str = self._scope.get("http_version", "1.1")
        return version

    def field(self, name: str | None) -> str | None:
        """The value of a header field by its case-insensitive name; `None` if absent."""
        value = None if name is None else self.headers.get(field_key(name))
        return None if value is None else value.decode("latin-1").strip(" \t")

    @property
    def accepts_events(self) -> bool:
        """Whether the client accepts a stream of events."""
        return _parse_accept(self.headers.get(b"accept"))[1]


class OtherPath(Protocol):
    """Serves requests to a path beside the endpoint; see `routes.Route`."""

    @property
    def auth(self) -> bool: ...

    @property
    def any_origin(self) -> bool: ...

    async def serve(
        self,
        head: HttpRequest,
        scope: Scope,
        receive: Receive,
        send: Send,
        body: bytes,
        state: Any,
    ) -> None: ...


class OtherPaths(Protocol):
    """The paths beside the endpoint; see `routes.Routes`."""

    def check(self, own: Collection[str], has_auth: bool) -> None: ...

    def find(self, path: str, method: str) -> OtherPath | None: ...


class PathEndpoint(Protocol):
    """Serves requests to paths of its own; see `sse_endpoint`."""

    def serves(self, path: str) -> bool: ...

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> None: ...


class AcceptedHeads:
    """The POSTs to the endpoint whose heads were accepted last."""

    def __init__(self, limits: Limits, answers: Answers) -> None:
        self._limits = limits
        self._answers: Answers = answers
        self._accepted: dict[tuple[str | bytes | None, ...], tuple[bool, bool]] = {}

    def __len__(self) -> int:
        """Number of stored heads."""
        return len(self._accepted)

    def accepts(self, request: HttpRequest) -> bool:
        """Whether a head like this was accepted before; `False` if it has to be checked.

        Credentials are ignored: `Authentication` checks them for each request.
        """
        get, server, limits = request.headers.get, request.server, self._limits
        request.key = (
            request.method,
            request.path,
            None if server is None else server[0],
            get(b"host"),
            get(b"origin"),
            get(b"content-type"),
            get(b"content-encoding"),
            get(b"accept"),
        )
        length = get(b"content-length", b"0")
        if (
            request.count > limits.fields
            or b"transfer-encoding" in request.headers
            or not length.isdigit()
            or len(length) > _LENGTH_DIGITS
            or int(length) > limits.body
        ):
            return False
        forms = self._accepted.get(request.key)
        if forms is None:
            return False
        request.forms = forms
        return True

    def check(self, request: HttpRequest) -> None:
        """Check the fields of a POST, and store its head.

        Raises:
            Refused: See `check_post`.
        """
        check_post(request, self._limits)
        self.add(request)

    def add(self, request: HttpRequest) -> None:
        """Store an accepted head, and drop the oldest if full; long heads are not stored."""
        key = request.key
        request.forms = response_forms(request, self._answers)
        if sum(len(part) for part in key if part) > KEPT_BYTES:
            return
        if key not in self._accepted and len(self._accepted) >= KEPT_HEADS:
            del self._accepted[next(iter(self._accepted))]
        self._accepted[key] = request.forms


def network_of(client: tuple[str, int] | None) -> str:
    """The network of a client: the address for IPv4, the /64 prefix for IPv6."""
    if client is None:
        return ""
    try:
        address = IPv6Address(client[0]) if ":" in client[0] else None
    except ValueError:
        address = None
    if address is None:
        return client[0]
    return str(address.ipv4_mapped or address.packed[:_NETWORK].hex())


def response_forms(request: HttpRequest, answers: Answers) -> tuple[bool, bool]:
    """Whether a response must be JSON, and whether it must be a stream; at most one is true.

    The client's `Accept` field takes precedence over the setting.
    """
    json, events = _parse_accept(request.headers.get(b"accept"))
    return (
        not events or (answers == "json" and json),
        not json or (answers == "sse" and events),
    )


def check_events(request: HttpRequest, *, id: Any = UNSET) -> None:
    """Raise `Refused` if the client of a request for events accepts no events."""
    if not request.accepts_events:
        got = _quote(request, "Accept")
        raise Refused(refusal(406, f"Accept: expected {SSE}, got {got}", id=id))


def check_length(request: HttpRequest) -> None:
    """Check that a request does not state the length of its body twice.

    A proxy in front that believes the other field would take the end of the body for a second
    request, so the connection is closed.

    Raises:
        Refused: It states both.

    Source: RFC 9112, section 6.1.
    """
    if b"transfer-encoding" in request.headers and b"content-length" in request.headers:
        text = "expected Content-Length or Transfer-Encoding, got both"
        headers: Mapping[str, str] = CLOSE if request.version.startswith("1") else {}
        raise Refused(refusal(400, text, headers=headers), "unread")


def check_post(request: HttpRequest, limits: Limits) -> None:
    """Check the header fields of a POST.

    Raises:
        Refused: The body has another form, or the client accepts no response.
    """
    check_body(request, limits)
    if True not in _parse_accept(request.headers.get(b"accept")):
        got = _quote(request, "Accept")
        raise Refused(refusal(406, f"Accept: expected {JSON} and {SSE}, got {got}"), "unread")


def check_body(request: HttpRequest, limits: Limits) -> None:
    """Check the header fields that state the type and length of the body.

    Raises:
        Refused: The body is too long, or has another form.
    """
    headers = request.headers
    kind = headers.get(b"content-type")
    if kind != _JSON and (kind is None or media_type(kind.decode("latin-1")) != JSON):
        got = _quote(request, "Content-Type")
        raise Refused(refusal(415, f"Content-Type: expected {JSON}, got {got}"), "unread")
    if headers.get(b"content-encoding") not in (None, b"identity"):
        got = _quote(request, "Content-Encoding")
        raise Refused(refusal(415, f"Content-Encoding: expected none, got {got}"), "unread")
    length = headers.get(b"content-length")
    if length is None:
        return
    if not length.isdigit():
        got = _quote(request, "Content-Length")
        raise Refused(refusal(400, f"Content-Length: expected a number, got {got}"), "unread")
    if len(length) > _LENGTH_DIGITS or int(length) > limits.body:
        raise Refused(body_too_long(limits), "unread")


def check_initialize(message: jsonrpc.Request, body: bytes, limits: Limits) -> None:
    """Check the length of an `initialize`, since a session keeps most of its data.

    Raises:
        Refused: It is too long.
    """
    if len(body) > limits.initialize:
        text = f"initialize: expected at most {limits.initialize} bytes (Limits.initialize)"
        raise Refused(refusal(413, text, id=message.id))


class Authentication(Protocol):
    """Authenticates and authorizes the requests of one application on one event loop."""

    async def authenticate(self, request: HttpRequest) -> None:
        """Set the principal; raises `Refused` without a valid token."""
        ...

    def authorize(self, request: HttpRequest, messages: Sequence[jsonrpc.Message]) -> None:
        """Raises `Refused` for a whole POST if its principal lacks a scope."""
        ...

    def deadline(self) -> float:
        """When the token of the principal expires, on the clock of `anyio.current_time`."""
        ...

    def metadata(self, request: HttpRequest) -> HttpResponse | None:
        """The response with the metadata document; `None` for a request to another path."""
        ...


def body_too_long(limits: Limits) -> HttpResponse:
    """The response to a request whose body is too long."""
    return refusal(413, f"body: expected at most {limits.body} bytes (Limits.body)")


@lru_cache(100)
def field_key(name: str) -> bytes:
    """The key of a header field in `HttpRequest.headers`."""
    return name.lower().encode("latin-1")


def _unmount(path: str, root: str) -> str:
    """Remove the path of the mount point from a path, if the ASGI server included it."""
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        path = path[len(root) :]
    return path or "/"


def _join_fields(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Join repeated header fields by commas, cookies by semicolons.

    Source: RFC 9113 8.2.3 (cookies).
    """
    fields: dict[bytes, bytes] = {}
    for name, value in pairs:
        separator = b"; " if name == b"cookie" else b", "
        fields[name] = fields[name] + separator + value if name in fields else value
    return fields


@lru_cache(200)
def _parse_accept(accept: bytes | None) -> tuple[bool, bool]:
    """Parse `Accept`: whether JSON and events are accepted; both without the field.

    Source: RFC 9110 (Accept).
    """
    if accept is None:
        return True, True
    accepted: dict[str, bool] = {}
    for part in accept.decode("latin-1").lower().split(","):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        accepted[media_range] = not any(_is_zero(parameter) for parameter in parameters)
    return _accepts(accepted, JSON), _accepts(accepted, SSE)


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name == "q" and not value.strip("0.")


def _accepts(accepted: Mapping[str, bool], kind: str) -> bool:
    """Whether the most specific media range that matches a type accepts the type."""
    ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    return next((accepted[name] for name in ranges if name in accepted), False)


def _quote(request: HttpRequest, name: str) -> str:
    """Quote the value of a header field for an error message."""
    value = request.field(name)
    return "nothing" if value is None else safe_repr(value)


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class RequestBodies:
    """The request bodies that one application reads and holds.

    Attributes:
        size: Bytes of the bodies of more than 64 KiB.
        on_full: Called when a body is refused because there is no room for it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._longest = min(SHORT_BODY, limits.body)
        self.size = 0
        # Counted bytes of each incomplete body, the one longest without a new part first.
        self._incomplete: OrderedDict[_Scope, int] = OrderedDict()
        self._cancelled: WeakKeyDictionary[_Scope, HttpResponse] = WeakKeyDictionary()
        self._discarding: OrderedDict[anyio.CancelScope, None] = OrderedDict()
        self.on_full: Callable[[], object] | None = None

    def begin(self, receive: Receive) -> tuple[bytes | None, Awaitable[_Message] | None]:
        """The body, if it is short and has arrived with its head; else what `read` continues.

        On asyncio only: trio must not run a coroutine in a scope that it was begun before.
        """
        receiving = receive()
        if not isinstance(receiving, CoroutineType):
            return None, receiving
        coroutine = cast("_Receiving", receiving)  # what it yields is for the event loop
        try:
            return None, resume(coroutine, coroutine.send(None))
        except StopIteration as end:
            message: _Message = end.value
        if message["type"] == "http.request" and not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            if len(body) <= self._longest:
                return body, None
        return None, outcome(message)

    async def read(self, receive: Receive, first: Awaitable[_Message] | None = None) -> bytes:
        """Read the whole body. Call `release` after the response.

        Args:
            receive: The ASGI receive callable.
            first: Returns the first message, if `begin` has begun.

        Raises:
            Refused: The body is too long, came too late, or has no room.
            Disconnected: The client disconnected before the end of the body.
        """
        body = b""
        with NativeScope() if on_asyncio() else anyio.CancelScope() as scope:

            def count() -> None:
                scope.deadline = anyio.current_time() + self._limits.body_seconds
                self._count_body(scope)

            try:
                body = await run_eagerly(self._read(scope, receive, first), count)
                scope.deadline = math.inf
            finally:
                if scope in self._incomplete:
                    self.size -= self._incomplete.pop(scope)
        if scope.cancel_called:  # perhaps although the last part arrived
            raise Refused(self._cancelled.get(scope, _TIMED_OUT), "partly read")
        if len(body) > SHORT_BODY:
            if not self._make_room(len(body)):
                raise self._refuse_full("read")
            self.size += len(body)
        return body

    def release(self, body: bytes) -> None:
        """Stop counting a body."""
        if len(body) > SHORT_BODY:
            self.size -= len(body)

    async def respond(
        self, refused: Refused, request: HttpRequest, receive: Receive, send: Send
    ) -> None:
        """Send the response of a refusal, and discard what was not read of the body."""
        response, partly_read = refused.response, refused.body == "partly read"
        if (
            refused.body == "read"
            or not request.version.startswith("1")
            or not (partly_read or _is_long(request))
        ):
            await response.send(send)
            return
        closing = HttpResponse(response.status, response.body, {**response.headers, **CLOSE})
        if b"expect" in request.headers and not partly_read:
            await closing.send(send)  # the client sends no body before `100 Continue`
            return
        try:
            await closing.send(send, more=True)
            await self._discard(receive)
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            return

    async def _discard(self, receive: Receive) -> None:
        """Read the rest of a body and drop it; at most `Limits.reading` bodies at a time."""
        limits = self._limits
        left = limits.discard
        if len(self._discarding) >= limits.reading:
            longest, _ = self._discarding.popitem(last=False)
            longest.cancel()
        with anyio.CancelScope(deadline=anyio.current_time() + limits.body_seconds) as scope:
            self._discarding[scope] = None
            try:
                while left > 0:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
                    left -= len(message.get("body", b""))
                    if scope in self._discarding:
                        self._discarding.move_to_end(scope)
            finally:
                self._discarding.pop(scope, None)

    async def _read(
        self, scope: _Scope, receive: Receive, first: Awaitable[_Message] | None
    ) -> bytes:
        """Read a body in a scope, which is counted once the body waits."""
        gathered: bytearray | None = None  # one buffer, since small parts have overhead
        while True:
            message = await (first or receive())
            first = None
            if message["type"] != "http.request":
                raise Disconnected
            part: bytes = message.get("body", b"")
            more: bool = message.get("more_body", False)
            if len(gathered or b"") + len(part) > self._limits.body:
                raise Refused(body_too_long(self._limits), "partly read" if more else "read")
            if not more:
                return bytes(gathered + part) if gathered else part
            self._count_body(scope)
            if gathered is None:
                gathered = bytearray()
            gathered += part
            if not self._count_part(scope, len(gathered)):
                raise self._refuse_full("partly read")

    def _refuse_full(self, body: Literal["read", "partly read"]) -> Refused:
        if self.on_full is not None:
            self.on_full()
        return Refused(over_limit("bodies"), body)

    def _count_body(self, scope: _Scope) -> None:
        """Count an incomplete body."""
        if scope not in self._incomplete:
            if len(self._incomplete) >= self._limits.reading:
                self._cancel(next(iter(self._incomplete)), "reading")
            self._incomplete[scope] = 0

    def _count_part(self, scope: _Scope, size: int) -> bool:
        """Count a new part; `False` if there is no room for the body."""
        before = self._incomplete[scope]
        self._incomplete.move_to_end(scope)
        if size > SHORT_BODY:
            if not self._make_room(size - before, scope):
                return False
            self.size += size - before
            self._incomplete[scope] = size
        return True

    def _make_room(self, size: int, own: _Scope | None = None) -> bool:
        """Make room for bytes by cancelling the most overdue bodies; `False` if there is none."""
        while self.size + size > self._limits.bodies:
            others = (each for each, held in self._incomplete.items() if held and each is not own)
            longest = next(others, None)
            if longest is None:
                return False
            self._cancel(longest, "bodies")
        return True

    def _cancel(self, scope: _Scope, limit: str) -> None:
        self.size -= self._incomplete.pop(scope)
        self._cancelled[scope] = over_limit(limit)
        scope.cancel()


def _is_long(request: HttpRequest) -> bool:
    """Whether the body may exceed the size that ASGI servers discard by themselves."""
    length = request.headers.get(b"content-length")
    if length is None:
        return b"transfer-encoding" in request.headers
    digits = len(str(_DROPPED_BY_SERVERS))
    return not length.isdigit() or len(length) > digits or int(length) > _DROPPED_BY_SERVERS
