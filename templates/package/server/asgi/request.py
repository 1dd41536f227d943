"""The head of an HTTP request: its header fields, and whether it may be served.

Clients send the same head with each POST, but for numbers and credentials. So heads that were
accepted are kept, and a head like one of them is not checked again.

Source: ASGI specification 3.0 (HTTP connection scope).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, Protocol

from msgspec import UNSET

from ...foreign_text import safe_repr
from ...framing.http_headers import JSON, media_type
from ...framing.sse import MEDIA_TYPE as SSE
from ...protocol import jsonrpc
from .http_response import CLOSE, HttpResponse, Receive, Refused, Scope, Send, refusal
from .settings import Answers, Limits

KEPT_HEADS = 256
"""Most heads in `AcceptedHeads`."""

KEPT_BYTES = 1024
"""Most bytes of the deciding fields of a head in `AcceptedHeads`."""

_JSON = JSON.encode()
_LENGTH_DIGITS = 18
_NETWORK = 8  # bytes of an IPv6 address that identify one customer


class HttpRequest:
    """The head of one HTTP request.

    Args:
        scope: The ASGI connection scope.
        send: The ASGI send callable.

    Attributes:
        method: The method, in upper case.
        path: The path below the mount point; `/` if empty.
        headers: Header fields by lower-case name; repeated fields are joined by commas, cookies by
            semicolons.
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
    """The POSTs to the endpoint whose heads were accepted last.

    Args:
        limits: The limits, which are checked for each request.
    """

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
    """Check that the client of a request for events accepts events.

    Args:
        request: The request.
        id: Id of the JSON-RPC request in the body, if any.

    Raises:
        Refused: It does not.
    """
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
