"""What a revision is, as data: its methods and the facts that only the prose of its pages states.

Rendered modules fill these classes in; the rest of the package asks them and never asks which
revision it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from ._wire import Raw, decoder, nullable_decoder
from .errors import RevisionError

Role: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""


def other(role: Role) -> Role:
    """The role of the peer."""
    return "server" if role == "client" else "client"


class Lifecycle(enum.Enum):
    """How two peers come to an agreement on revision and capabilities."""

    HANDSHAKE = "handshake"
    """`initialize` opens a session; what was agreed holds until it ends."""
    PER_REQUEST = "per-request"
    """Every request carries revision and capabilities in its `_meta`; there is no session."""


@dataclass(frozen=True)
class Method:
    """One request or notification of a revision, in one direction.

    Attributes:
        name: The wire's name, such as `tools/call`.
        kind: Whether it is answered.
        sender: Who sends it. A method that both may send has a row for each.
        params: Type of its params, or `None` where the schema has none.
        params_required: Whether a message without params is malformed.
        result: Type of its result, to decode with; `None` for notifications.
        capability: Path of the capability it depends on, empty for none. For a request it is one
            of the receiver's, for a notification one of the sender's own.
        cancellable: Whether `notifications/cancelled` may name it.
        items: Python name of the list that a paginated result holds, or `None`.
        python_name: Name of its handler and of its coroutine.
    """

    name: str
    kind: Literal["request", "notification"]
    sender: Role
    params: Any
    params_required: bool
    result: Any
    capability: tuple[str, ...]
    cancellable: bool
    items: str | None
    python_name: str

    @cached_property
    def wire_names(self) -> Mapping[str, str]:
        """Python name to wire name of each of its params."""
        if self.params is None:
            return {}
        return {field.name: field.encode_name for field in msgspec.structs.fields(self.params)}

    @cached_property
    def filled_in(self) -> Mapping[str, Any]:
        """Required params, by wire name, that the connection fills in: `_meta`, or none."""
        if self.params is None:
            return {}
        fields = msgspec.structs.fields(self.params)
        return {"_meta": {}} if any(f.required and f.name == "meta" for f in fields) else {}

    @cached_property
    def decode_params(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the params."""
        return decoder(self.params)

    @cached_property
    def decode_result(self) -> Callable[[bytes | Raw], Any]:
        """Decoder for the result; a page whose next cursor is null is the last.

        Source: server/utilities/pagination (2026-07-28: whether a non-null value was provided).
        """
        if self.items is not None:
            return nullable_decoder(self.result, "nextCursor")
        return decoder(self.result)


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
class Facts:
    """What a revision states only in prose.

    Attributes:
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
        server_cancels: What a server may cancel: its own requests, or subscription streams only.
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

    errors: ErrorCodes
    defined_codes: frozenset[int] | None
    retired_codes: frozenset[int]
    unreadable_id: Literal["null", "omit"]
    bad_tool_arguments: Literal["error", "result"]
    structured_content: Literal["none", "object", "any"]
    log_level: Literal["session", "request"]
    request_ids: Literal["session", "in_flight"]
    server_cancels: Literal["requests", "streams"]
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
        return Revisions({name: row for name, row in self._rows.items() if row[0] is lifecycle})

    def only(self, name: str) -> Revisions:
        """One of them alone.

        Raises:
            RevisionError: It is not one of these.
        """
        if name not in self._rows:
            raise RevisionError("unknown revision", tuple(self._rows), (name,))
        return Revisions({name: self._rows[name]})

    def newest(self) -> Revision:
        """The last of them."""
        return self[max(self._rows)]
