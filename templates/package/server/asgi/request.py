"""One HTTP request as it came in through ASGI, and what its header fields refuse.

Source: ASGI specification 3.0 (HTTP connection scope).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import UNSET

from ...foreign_text import safe_repr
from ...framing.http_headers import JSON, media_type
from ...framing.sse import MEDIA_TYPE as SSE
from ...protocol import jsonrpc
from ...protocol.lifecycle import DISCOVER
from .responses import Reply, refusal
from .settings import Answers, Limits

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_JSON = JSON.encode()
_LENGTH_DIGITS = 18


class Incoming:
    """One HTTP request.

    Args:
        scope: The connection scope.

    Attributes:
        method: Its method, in upper case.
        path: Its path below where the application is mounted; `/` for none.
        query: Its query, undecoded.
        count: How many header fields there were.
        client: Address that it came from, if known.
        server: Address that it came in at, if known.
        version: The version of HTTP, such as `1.1` or `2`.
    """

    __slots__ = (
        *("_raw", "client", "count", "method", "path"),
        *("query", "server", "version"),
    )

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path = _below(scope["path"], scope.get("root_path", "").rstrip("/"))
        self.query: bytes = scope.get("query_string", b"")
        self.client: tuple[str, int] | None = scope.get("client")
        self.server: tuple[str, int | None] | None = scope.get("server")
        self.version: str = scope.get("http_version", "1.1")
        pairs: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.count = len(pairs)
        raw = dict(pairs)
        self._raw = raw if len(raw) == len(pairs) else _joined(pairs)

    def field(self, name: str | None) -> str | None:
        """The value of a field, whatever the case of its name; `None` if absent.

        The values of one that came more than once are joined by commas.
        """
        value = None if name is None else self._raw.get(_key(name))
        return None if value is None else value.decode("latin-1").strip(" \t")

    def raw(self, key: bytes) -> bytes | None:
        """The value of a field as it came, by its name in lower case; `None` if absent."""
        return self._raw.get(key)

    @property
    def accepts_json(self) -> bool:
        """Whether the answer may be one JSON document."""
        return _accepted(self._raw.get(b"accept"))[0]

    @property
    def accepts_events(self) -> bool:
        """Whether the answer may be a stream of events."""
        return _accepted(self._raw.get(b"accept"))[1]


@lru_cache(100)
def _key(name: str) -> bytes:
    return name.lower().encode("latin-1")


def _below(path: str, root: str) -> str:
    """A path without that of the mount, which servers put before it, or leave out."""
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        path = path[len(root) :]
    return path or "/"


def _joined(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Fields by name; values of one that came more than once are joined by commas."""
    found: dict[bytes, bytes] = {}
    for name, value in pairs:
        found[name] = b"%b, %b" % (found[name], value) if name in found else value
    return found


@lru_cache(200)
def _accepted(accept: bytes | None) -> tuple[bool, bool]:
    """Whether JSON and events are taken; a client that names nothing takes anything.

    Source: RFC 9110 (Accept).
    """
    if accept is None:
        return True, True
    weights: dict[str, bool] = {}
    for part in accept.decode("latin-1").lower().split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        weights[kind] = not any(_is_zero(parameter) for parameter in parameters)
    return _takes(weights, JSON), _takes(weights, SSE)


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name == "q" and not value.strip("0.")


def _takes(weights: Mapping[str, bool], kind: str) -> bool:
    """What the most telling of a client's media ranges says of one type."""
    ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    return next((weights[name] for name in ranges if name in weights), False)


def forms(incoming: Incoming, answers: Answers) -> tuple[bool, bool]:
    """Whether an answer can only be JSON, and whether it can only be a stream; never both.

    What a client does not take is not sent, whatever the setting.
    """
    takes_json, takes_events = _accepted(incoming.raw(b"accept"))
    return (
        not takes_events or (answers == "json" and takes_json),
        not takes_json or (answers == "sse" and takes_events),
    )


def check_events(incoming: Incoming, *, id: Any = UNSET) -> Reply | None:
    """What refuses a request that is answered by events, if its client takes none.

    Args:
        incoming: The request.
        id: Id of the JSON-RPC request in it, if there is one.
    """
    if incoming.accepts_events:
        return None
    return refusal(406, f"Accept: expected {SSE}, got {_shown(incoming, 'Accept')}", id=id)


def check_post(incoming: Incoming, limits: Limits) -> Reply | None:
    """What refuses a POST before its body is read; `None` if nothing does."""
    refused = check_body(incoming, limits)
    if refused is None and not (incoming.accepts_json or incoming.accepts_events):
        return refusal(406, f"Accept: expected {JSON} and {SSE}, got {_shown(incoming, 'Accept')}")
    return refused


def check_body(incoming: Incoming, limits: Limits) -> Reply | None:
    """What refuses a body for its type or length, as far as its header fields tell."""
    kind = incoming.raw(b"content-type")
    if kind != _JSON and (kind is None or media_type(kind.decode("latin-1")) != JSON):
        return refusal(
            415, f"Content-Type: expected {JSON}, got {_shown(incoming, 'Content-Type')}"
        )
    if incoming.raw(b"content-encoding") not in (None, b"identity"):
        got = _shown(incoming, "Content-Encoding")
        return refusal(415, f"Content-Encoding: expected none, got {got}")
    length = incoming.raw(b"content-length")
    if length is None:
        return None
    if not length.isdigit():
        got = _shown(incoming, "Content-Length")
        return refusal(400, f"Content-Length: expected a number, got {got}")
    if len(length) > _LENGTH_DIGITS or int(length) > limits.body:
        return too_long(limits)
    return None


def check_initialize(message: jsonrpc.Request, body: bytes, limits: Limits) -> Reply | None:
    """What refuses a request that opens a session for its length: much of it is kept."""
    if len(body) <= limits.initialize:
        return None
    text = f"initialize: expected at most {limits.initialize} bytes (Limits.initialize)"
    return refusal(413, text, id=message.id)


def too_long(limits: Limits) -> Reply:
    """A refusal of a body of too many bytes."""
    return refusal(413, f"body: expected at most {limits.body} bytes (Limits.body)")


def _shown(incoming: Incoming, name: str) -> str:
    """The value of a field for an error."""
    value = incoming.field(name)
    return "nothing" if value is None else safe_repr(value)


def is_discovery(message: jsonrpc.Message | None) -> bool:
    """Whether a message asks for the revisions without sessions."""
    return isinstance(message, jsonrpc.Request) and message.method == DISCOVER
