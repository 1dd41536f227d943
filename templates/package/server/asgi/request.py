"""One HTTP request: its header fields, and its body within limits of bytes and time.

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
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import anyio
from msgspec import UNSET, Struct

from ...foreign_text import safe_repr
from ...framing.http_headers import JSON, media_type
from ...framing.sse import MEDIA_TYPE as SSE
from ...protocol import jsonrpc
from ...protocol.states import DISCOVER
from ...runtime.concurrency import resume
from .http_response import HttpResponse, over_limit, refusal
from .settings import Answers, Limits

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SHORT_BODY = 64 * 1024
"""Most bytes of a body that is not counted against `Limits.bodies`."""

KEPT_HEADS = 256
"""Most heads in `AcceptedHeads`."""

KEPT_BYTES = 1024
"""Most bytes of the deciding fields of a head in `AcceptedHeads`."""

_JSON = JSON.encode()
_LENGTH_DIGITS = 18
_NETWORK = 8  # bytes of an IPv6 address that identify one customer
_DROPPED_BY_SERVERS = 16 * 1024  # bytes of an unread body that ASGI servers discard themselves
_CLOSE: Mapping[str, str] = {"Connection": "close"}
_TIMED_OUT = refusal(408, "the body did not come in time (Limits.body_seconds)")


class HttpRequest:
    """The head of one HTTP request.

    Args:
        scope: The ASGI connection scope.

    Attributes:
        method: The method, in upper case.
        path: The path below the mount point; `/` if empty.
        headers: Header fields by lower-case name; repeated fields are joined by commas, cookies by
            semicolons.
        count: Number of header fields as received.
        session: The session, or the refusal, if `SessionEndpoint.load` has loaded it; otherwise
            `None`.
    """

    __slots__ = ("_scope", "count", "headers", "method", "path", "session")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        root: str = scope.get("root_path", "")
        self.method: str = scope["method"]
        self.path: str = _unmount(scope["path"], root.rstrip("/")) if root else scope["path"] or "/"
        pairs: list[tuple[bytes, bytes]] = scope["headers"]
        if type(pairs) is not list:
            pairs = list(pairs)
        self.count = len(pairs)
        self.session: Any = None
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
    def client(self) -> tuple[str, int] | None:
        """Address of the client, if known."""
        return self._scope.get("client")

    @property
    def server(self) -> tuple[str, int | None] | None:
        """Address that received the request, if known."""
        return self._scope.get("server")

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

    def deciding_fields(self) -> tuple[str | bytes | None, ...]:
        """The fields that decide whether the head is accepted, without numbers and credentials."""
        get, server = self.headers.get, self._scope.get("server")
        return (
            self.method,
            self.path,
            None if server is None else server[0],
            get(b"host"),
            get(b"origin"),
            get(b"content-type"),
            get(b"content-encoding"),
            get(b"accept"),
        )

    @property
    def accepts_events(self) -> bool:
        """Whether the client accepts a stream of events."""
        return _parse_accept(self.headers.get(b"accept"))[1]


class OtherPath(Protocol):
    """Serves requests to a path beside the endpoint.

    Attributes:
        auth: Whether requests need an access token.
        any_origin: Whether pages of all origins may make requests.
    """

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
    ) -> None:
        """Respond to a request with its body; `state` is the value that the lifespan yielded."""
        ...


class OtherPaths(Protocol):
    """The paths beside the endpoint; see `routes`."""

    def check(self, own: Collection[str], has_auth: bool) -> None:
        """Check the paths.

        Args:
            own: The paths of the protocol.
            has_auth: Whether the application has access tokens.

        Raises:
            ValueError: A path belongs to the protocol, or needs access tokens that are disabled.
        """
        ...

    def find(self, path: str, method: str) -> OtherPath | None:
        """The handler of a path; `None` for other paths."""
        ...


class AcceptedHeads:
    """The POSTs to the endpoint whose heads were accepted last.

    Args:
        limits: The limits, which are checked for each request.
        answers: The form of responses in the settings.
    """

    def __init__(self, limits: Limits, answers: Answers) -> None:
        self._limits = limits
        self._answers: Answers = answers
        self._accepted: dict[tuple[str | bytes | None, ...], bool] = {}

    def __len__(self) -> int:
        """Number of stored heads."""
        return len(self._accepted)

    def find(self, request: HttpRequest) -> bool | None:
        """Whether the response to a POST may be JSON; `None` if its head has to be checked.

        Credentials are ignored: `Authentication` checks them for each request.
        """
        length, limits = request.headers.get(b"content-length", b"0"), self._limits
        if (
            request.count > limits.fields
            or b"transfer-encoding" in request.headers
            or not length.isdigit()
            or len(length) > _LENGTH_DIGITS
            or int(length) > limits.body
        ):
            return None
        return self._accepted.get(request.deciding_fields())

    def add(self, request: HttpRequest) -> None:
        """Store an accepted head, and drop the oldest if full; long heads are not stored."""
        key = request.deciding_fields()
        if sum(len(part) for part in key if part) > KEPT_BYTES:
            return
        if key not in self._accepted and len(self._accepted) >= KEPT_HEADS:
            del self._accepted[next(iter(self._accepted))]
        self._accepted[key] = not response_forms(request, self._answers)[1]


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


def is_discovery(message: jsonrpc.Message | None) -> bool:
    """Whether a message is the `server/discover` request of revisions without sessions."""
    return isinstance(message, jsonrpc.Request) and message.method == DISCOVER


def check_events(request: HttpRequest, *, id: Any = UNSET) -> HttpResponse | None:
    """The refusal of a request for events if the client does not accept events.

    Args:
        request: The request.
        id: Id of the JSON-RPC request in the body, if any.
    """
    if request.accepts_events:
        return None
    return refusal(406, f"Accept: expected {SSE}, got {_quote(request, 'Accept')}", id=id)


def check_length(request: HttpRequest) -> HttpResponse | None:
    """The refusal of a request that states the length of its body twice; `None` for others.

    A proxy in front that believes the other field would take the end of the body for a second
    request, so the connection is closed.

    Source: RFC 9112, section 6.1.
    """
    if b"transfer-encoding" not in request.headers or b"content-length" not in request.headers:
        return None
    text = "expected Content-Length or Transfer-Encoding, got both"
    return refusal(400, text, headers=_CLOSE if request.version.startswith("1") else {})


def check_post(request: HttpRequest, limits: Limits) -> HttpResponse | None:
    """The refusal of a POST because of its head; `None` to read the body."""
    refused = check_body(request, limits)
    if refused is None and True not in _parse_accept(request.headers.get(b"accept")):
        return refusal(406, f"Accept: expected {JSON} and {SSE}, got {_quote(request, 'Accept')}")
    return refused


def check_body(request: HttpRequest, limits: Limits) -> HttpResponse | None:
    """The refusal of a body because of the type or length in the header fields."""
    headers = request.headers
    kind = headers.get(b"content-type")
    if kind != _JSON and (kind is None or media_type(kind.decode("latin-1")) != JSON):
        got = _quote(request, "Content-Type")
        return refusal(415, f"Content-Type: expected {JSON}, got {got}")
    if headers.get(b"content-encoding") not in (None, b"identity"):
        got = _quote(request, "Content-Encoding")
        return refusal(415, f"Content-Encoding: expected none, got {got}")
    length = headers.get(b"content-length")
    if length is None:
        return None
    if not length.isdigit():
        got = _quote(request, "Content-Length")
        return refusal(400, f"Content-Length: expected a number, got {got}")
    if len(length) > _LENGTH_DIGITS or int(length) > limits.body:
        return _refuse_length(limits)
    return None


def check_initialize(message: jsonrpc.Request, body: bytes, limits: Limits) -> HttpResponse | None:
    """The refusal of an `initialize` that is too long, since a session keeps most of its data."""
    if len(body) <= limits.initialize:
        return None
    text = f"initialize: expected at most {limits.initialize} bytes (Limits.initialize)"
    return refusal(413, text, id=message.id)


def whole_body(message: MutableMapping[str, Any]) -> bytes | None:
    """The body, if one ASGI message has the whole body; otherwise `None`."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    body: bytes = message.get("body", b"")
    return body


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class RejectedBody(Struct, frozen=True):
    """A body that was not accepted.

    Attributes:
        response: The refusal.
        unread: Whether more of the body may arrive.
        full: Whether there is no room for the body.
    """

    response: HttpResponse
    unread: bool = True
    full: bool = False


class Authentication(Protocol):
    """Authenticates and authorizes the requests of one application on one event loop."""

    async def authenticate(self, request: HttpRequest) -> HttpResponse | None:
        """The refusal of a request without a valid token; `None` to accept it."""
        ...

    def authorize(
        self, request: HttpRequest, messages: Sequence[jsonrpc.Message]
    ) -> HttpResponse | None:
        """The refusal of a whole POST if its principal lacks a scope; `None` to accept it."""
        ...

    def deadline(self) -> float:
        """When the token of the principal expires, on the clock of `anyio.current_time`."""
        ...

    def metadata(self, request: HttpRequest) -> HttpResponse | None:
        """The response with the metadata document; `None` for a request to another path."""
        ...


class RequestBodies:
    """The request bodies that one application reads and holds.

    Args:
        limits: Limits of number, size and time.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._size = 0  # bytes of all bodies that are not short
        # Counted bytes of each incomplete body, the one longest without a new part first.
        self._incomplete: OrderedDict[anyio.CancelScope, int] = OrderedDict()
        self._cancelled: WeakKeyDictionary[anyio.CancelScope, HttpResponse] = WeakKeyDictionary()
        self._discarding: OrderedDict[anyio.CancelScope, None] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes of the bodies of more than 64 KiB."""
        return self._size

    async def read(
        self,
        scope: anyio.CancelScope,
        receive: Receive,
        first: Awaitable[MutableMapping[str, Any]] | None = None,
    ) -> bytes | RejectedBody:
        """Read the whole body, or return its refusal. Call `release` after the response.

        Args:
            scope: The scope of the caller; cancelled if the body does not arrive. Then
                `rejection` returns the refusal.
            receive: The ASGI receive callable.
            first: Returns the first message, if `receive` was called already.

        Raises:
            Disconnected: The client disconnected before the end of the body.
        """
        reading = self._read_parts(scope, receive, first)
        try:
            try:
                awaited = reading.send(None)
            except StopIteration as end:  # the body has arrived with its head, as most do
                body: bytes | RejectedBody = end.value
            else:
                self._wait(scope)
                body = await resume(reading, awaited)
                scope.deadline = math.inf
                if scope.cancel_called:  # cancelled although the last part arrived
                    return self.rejection(scope)
        finally:
            if scope in self._incomplete:
                self._size -= self._incomplete.pop(scope)
        if isinstance(body, bytes) and len(body) > SHORT_BODY:
            if not self._make_room(len(body)):
                return RejectedBody(over_limit("bodies"), unread=False, full=True)
            self._size += len(body)
        return body

    def release(self, body: bytes) -> None:
        """Stop counting a body."""
        if len(body) > SHORT_BODY:
            self._size -= len(body)

    def rejection(self, scope: anyio.CancelScope) -> RejectedBody:
        """The refusal of a body whose scope was cancelled before it arrived."""
        return RejectedBody(self._cancelled.get(scope, _TIMED_OUT))

    async def refuse(
        self,
        refused: HttpResponse,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        *,
        partly_read: bool = False,
    ) -> None:
        """Send a refusal of a request whose body was not read to its end.

        Args:
            refused: The refusal.
            request: The request.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            partly_read: Whether some of the body was read.
        """
        if not request.version.startswith("1") or not (partly_read or _is_long(request)):
            await refused.send(send)
            return
        closing = HttpResponse(refused.status, refused.body, {**refused.headers, **_CLOSE})
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

    def _wait(self, scope: anyio.CancelScope) -> None:
        """Count a body that has not arrived yet, and set its deadline."""
        scope.deadline = anyio.current_time() + self._limits.body_seconds
        self._count_body(scope)

    async def _read_parts(
        self,
        scope: anyio.CancelScope,
        receive: Receive,
        first: Awaitable[MutableMapping[str, Any]] | None,
    ) -> bytes | RejectedBody:
        gathered: bytearray | None = None  # one buffer, since small parts have overhead
        while True:
            message = await (first or receive())
            first = None
            if message["type"] != "http.request":
                raise Disconnected
            part: bytes = message.get("body", b"")
            more: bool = message.get("more_body", False)
            if len(gathered or b"") + len(part) > self._limits.body:
                return RejectedBody(_refuse_length(self._limits), more)
            if not more:
                return bytes(gathered + part) if gathered else part
            self._count_body(scope)
            if gathered is None:
                gathered = bytearray()
            gathered += part
            if not self._count_part(scope, len(gathered)):
                return RejectedBody(over_limit("bodies"), full=True)

    def _count_body(self, scope: anyio.CancelScope) -> None:
        """Count an incomplete body."""
        if scope not in self._incomplete:
            if len(self._incomplete) >= self._limits.reading:
                self._cancel(next(iter(self._incomplete)), "reading")
            self._incomplete[scope] = 0

    def _count_part(self, scope: anyio.CancelScope, size: int) -> bool:
        """Count a new part; `False` if there is no room for the body."""
        before = self._incomplete[scope]
        self._incomplete.move_to_end(scope)
        if size > SHORT_BODY:
            if not self._make_room(size - before, scope):
                return False
            self._size += size - before
            self._incomplete[scope] = size
        return True

    def _make_room(self, size: int, own: anyio.CancelScope | None = None) -> bool:
        """Make room for bytes by cancelling the most overdue bodies; `False` if there is none."""
        while self._size + size > self._limits.bodies:
            others = (each for each, held in self._incomplete.items() if held and each is not own)
            longest = next(others, None)
            if longest is None:
                return False
            self._cancel(longest, "bodies")
        return True

    def _cancel(self, scope: anyio.CancelScope, limit: str) -> None:
        self._size -= self._incomplete.pop(scope)
        self._cancelled[scope] = over_limit(limit)
        scope.cancel()


def _is_long(request: HttpRequest) -> bool:
    """Whether the body can be longer than ASGI servers discard by themselves."""
    length = request.headers.get(b"content-length")
    if length is None:
        return b"transfer-encoding" in request.headers
    digits = len(str(_DROPPED_BY_SERVERS))
    return not length.isdigit() or len(length) > digits or int(length) > _DROPPED_BY_SERVERS


def _refuse_length(limits: Limits) -> HttpResponse:
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
