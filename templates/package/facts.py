"""What a revision is, as data: its methods and the facts that only the prose of its pages states.

Rendered modules fill these classes in; the rest of the package asks them and never asks which
revision it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .errors import RevisionError
from .method import Method as Method
from .method import Role as Role


def other(role: Role) -> Role:
    """The role of the peer."""
    return "server" if role == "client" else "client"


class Lifecycle(enum.Enum):
    """How two peers come to an agreement on revision and capabilities."""

    HANDSHAKE = "handshake"
    """`initialize` opens a session; what was agreed holds until it ends."""
    PER_REQUEST = "per-request"
    """Every request carries revision and capabilities in its `_meta`; there is no session."""


HANDSHAKE = Lifecycle.HANDSHAKE.value
"""Stands for any revision with a session, where one may be chosen by its name."""


@dataclass(frozen=True)
class ErrorCodes:
    """JSON-RPC codes by condition; `None` where a revision has none of its own."""

    resource_not_found: int
    unsupported_revision: int
    missing_capability: int | None
    header_mismatch: int | None
    url_elicitation_required: int | None


@dataclass(frozen=True)
class MetaKeys:
    """Keys of `_meta` with a meaning of their own; `None` where a revision does not have one.

    Source: basic/index (_meta).
    """

    protocol_version: str | None
    client_info: str | None
    client_capabilities: str | None
    log_level: str | None
    server_info: str | None
    subscription_id: str | None
    related_task: str | None


@dataclass(frozen=True)
class Transports:
    """The transports of a revision.

    Attributes:
        stdio: Standard streams of a process.
        http_sse: HTTP with one stream of events and one address to post to.
        streamable_http: One HTTP endpoint, with sessions or stateless; `None` for no such thing.

    Source: basic/transports.
    """

    stdio: bool
    http_sse: bool
    streamable_http: Literal["session", "stateless"] | None


@dataclass(frozen=True)
class Headers:
    """Names of HTTP headers; `None` where a revision has none of that kind.

    Attributes:
        protocol_version: Names the revision of a message.
        session: Carries the id of a session.
        last_event_id: Names the last event that a client saw of a stream.
        method: Repeats the method of a message.
        name: Repeats what a message is about: a tool, a prompt, a resource.
        param_prefix: Begins those that repeat arguments of a tool; ends with its hyphen.

    Source: basic/transports.
    """

    protocol_version: str | None
    session: str | None
    last_event_id: str | None
    method: str | None
    name: str | None
    param_prefix: str | None


@dataclass(frozen=True)
class Http:
    """HTTP statuses by condition, and what depends on HTTP alone.

    Attributes:
        missing_session: A request without the session id that the server asks for.
        unknown_session: A session id that has ended or never was.
        not_allowed: A GET or DELETE that the server does not offer.
        forbidden_origin: An `Origin` that is not allowed.
        unsupported_revision: The version header names a revision that is not spoken.
        unknown_method: The method does not exist, or its capability was not declared.
        missing_capability: A request needs a client capability that was not declared.
        header_mismatch: Headers and body disagree.
        fallback: Statuses after which a client tries HTTP+SSE; `x` stands for any digit.
        cancellation: What cancels a request: a notification, or closing its response stream.
        standalone_stream: Whether a GET opens a stream for messages about no request.
        resumable: Whether a broken stream can be taken up again by event id.
        polling: Whether a stream opens with an event that has an id and no data, so that a server
            may close the connection and the client comes back.

    Source: basic/transports.
    """

    missing_session: int | None
    unknown_session: int | None
    not_allowed: int | None
    forbidden_origin: int | None
    unsupported_revision: int | None
    unknown_method: int | None
    missing_capability: int | None
    header_mismatch: int | None
    fallback: tuple[str, ...]
    cancellation: Literal["notification", "close"]
    standalone_stream: bool
    resumable: bool
    polling: bool


@dataclass(frozen=True)
class Draft:
    """What a draft that followed a revision, and never became one, adds to sessions over HTTP.

    A server takes it from clients that do so, and asks it of none. All `None` for no such draft.

    Attributes:
        method: Header that repeats the method of a message.
        name: Header that repeats what a message is about.
        param_prefix: Begins those that repeat arguments of a tool.
        header_mismatch: JSON-RPC code of a header that does not say what the body says.
    """

    method: str | None
    name: str | None
    param_prefix: str | None
    header_mismatch: int | None


@dataclass(frozen=True)
class Facts:
    """What a revision states only in prose.

    Attributes:
        transports: The transports it defines.
        headers: Names of HTTP headers.
        http: What holds over HTTP.
        draft: What a draft that followed adds to its sessions.
        errors: Codes by condition.
        defined_codes: Codes of the range -32099 to -32020 that may be sent; `None` if the revision
            does not reserve the range.
        retired_codes: Codes of earlier revisions that must not be sent any more.
        unreadable_id: How an error says that the id could not be read: `null`, or no `id` at all.
        bad_tool_arguments: Arguments that fail validation are a JSON-RPC error, or a result with
            `isError`.
        structured_content: What a tool's structured result may be.
        log_level: Set once a session by `logging/setLevel`, or asked for by each request.
        request_ids: For how long an id may not be used again.
        server_requests: Whether a server may send requests at all.
        client_responses: Whether a client may send responses at all.
        input_required: Methods whose result may ask for input instead.
        listen: The request that opens a subscription stream, or `None`.
        result_types: Values of `resultType` that this side understands; empty where results have
            no such member.
        meta: Keys of `_meta`.
        meta_key_rules: Whether the form of `_meta` keys is prescribed.
        reserved_prefix: Which `_meta` prefixes are the protocol's own.
        trace_keys: `_meta` keys kept for trace context.
    """

    transports: Transports
    headers: Headers
    http: Http
    draft: Draft
    errors: ErrorCodes
    defined_codes: frozenset[int] | None
    retired_codes: frozenset[int]
    unreadable_id: Literal["null", "omit"]
    bad_tool_arguments: Literal["error", "result"]
    structured_content: Literal["none", "object", "any"]
    log_level: Literal["session", "request"]
    request_ids: Literal["session", "in_flight"]
    server_requests: bool
    client_responses: bool
    input_required: frozenset[str]
    listen: str | None
    result_types: frozenset[str]
    meta: MetaKeys
    meta_key_rules: bool
    reserved_prefix: Literal["none", "before-last-label", "second-label"]
    trace_keys: tuple[str, ...]


@dataclass(frozen=True)
class Revision:
    """One revision of the protocol, whole.

    Attributes:
        name: Its date, such as `2025-06-18`; compared as a string.
        lifecycle: Handshake or per request.
        batching: Whether a message may be a JSON array of messages.
        client_requests: What a client may ask, by wire name.
        server_requests: What a server may ask.
        client_notifications: What a client may notify.
        server_notifications: What a server may notify.
        input_requests: What a server may ask inside a result that wants input, by wire name.
        implementation: Struct by which either side introduces itself.
        client_capabilities: Struct for what a client declares.
        server_capabilities: Struct for what a server declares.
        meta_type: Struct for the `_meta` of requests, to check and read it.
        facts: What only the prose states.
    """

    name: str
    lifecycle: Lifecycle
    batching: bool
    client_requests: Mapping[str, Method]
    server_requests: Mapping[str, Method]
    client_notifications: Mapping[str, Method]
    server_notifications: Mapping[str, Method]
    input_requests: Mapping[str, Method]
    implementation: Any
    client_capabilities: Any
    server_capabilities: Any
    meta_type: Any
    facts: Facts

    def requests_from(self, sender: Role) -> Mapping[str, Method]:
        """Requests that `sender` may send, by wire name."""
        return self.client_requests if sender == "client" else self.server_requests

    def notifications_from(self, sender: Role) -> Mapping[str, Method]:
        """Notifications that `sender` may send, by wire name."""
        return self.client_notifications if sender == "client" else self.server_notifications


class Revisions(Mapping[str, Revision]):
    """Revisions by name, oldest first; each is loaded when it is first asked for.

    Args:
        rows: Name to lifecycle and loader, oldest first.
    """

    def __init__(self, rows: Mapping[str, tuple[Lifecycle, Callable[[], Revision]]]) -> None:
        self._rows = rows
        self._loaded: dict[str, Revision] = {}
        self._of: dict[Lifecycle, Revisions] = {}
        self._newest: Revision | None = None

    def __getitem__(self, name: str) -> Revision:
        loaded = self._loaded.get(name)
        if loaded is None:
            loaded = self._loaded[name] = self._rows[name][1]()
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def of(self, lifecycle: Lifecycle) -> Revisions:
        """Those with a lifecycle; loads none."""
        found = self._of.get(lifecycle)
        if found is None:
            rows = {name: row for name, row in self._rows.items() if row[0] is lifecycle}
            found = self._of[lifecycle] = Revisions(rows)
        return found

    def only(self, name: str) -> Revisions:
        """One of them alone.

        Raises:
            RevisionError: It is not one of these.
        """
        if name not in self._rows:
            raise RevisionError("unknown revision", tuple(self._rows), (name,))
        return Revisions({name: self._rows[name]})

    def pinned(self, pin: str | None) -> Revisions:
        """Those that a user chose: one by its name, or all with a handshake by `HANDSHAKE`.

        Raises:
            RevisionError: None of these is so.
        """
        if pin is None:
            return self
        if pin != HANDSHAKE:
            return self.only(pin)
        if not (handshakes := self.of(Lifecycle.HANDSHAKE)):
            raise RevisionError("none of the revisions has a handshake", tuple(self._rows))
        return handshakes

    def among(self, names: Collection[str]) -> Revisions:
        """Those whose name is one of `names`; loads none."""
        return Revisions({name: row for name, row in self._rows.items() if name in names})

    def newest(self) -> Revision:
        """The last of them."""
        if self._newest is None:
            self._newest = self[max(self._rows)]
        return self._newest


def has_streamable_http(revisions: Revisions) -> bool:
    """Whether one of them has Streamable HTTP; loads no more of them than it takes to know."""
    newest_first = sorted(revisions, reverse=True)
    return any(revisions[name].facts.transports.streamable_http for name in newest_first)
