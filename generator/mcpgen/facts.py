"""What a revision states only in prose, as data (`schema/<revision>/facts.toml`).

Every revision has the same keys; `false` says that it has no such thing. What the schema gives is
not repeated here: methods, directions, params, most results, batching, the kind of lifecycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mcpgen import schema
from mcpgen.errors import FactsError, shown
from mcpgen.tables import convert, read_toml


@dataclass(frozen=True)
class Transports:
    """The transports of a revision. `streamable_http` says whether it keeps sessions."""

    stdio: bool
    http_sse: bool
    streamable_http: Literal["session", "stateless"] | None


@dataclass(frozen=True)
class Headers:
    """Names of HTTP headers, as the pages spell them. `param_prefix` ends with its hyphen."""

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
        accepted: A notification or response was taken.
        rejected: A notification or response was not.
        missing_session: A request without the session id that the server asks for.
        unknown_session: A session id that has ended or never was.
        not_allowed: A GET or DELETE that the server does not offer.
        forbidden_origin: An `Origin` that is not allowed.
        unsupported_revision: The version header names a revision that is not spoken.
        unknown_method: The method does not exist, or its capability was not declared.
        missing_meta: A request lacks what its `_meta` must have.
        missing_capability: A request needs a client capability that was not declared.
        header_mismatch: Headers and body disagree.
        assumed_revision: The revision of a request without a version header.
        fallback: Statuses after which a client tries HTTP+SSE; `x` stands for any digit.
        cancellation: What cancels a request: a notification, or closing its response stream.
        standalone_stream: Whether a GET opens a stream for messages about no request.
        resumable: Whether a broken stream can be taken up again by event id.
        polling: Whether streams open with an event that has an id and no data, so that a server
            may close the connection and the client come back.
    """

    accepted: int | None
    rejected: int | None
    missing_session: int | None
    unknown_session: int | None
    not_allowed: int | None
    forbidden_origin: int | None
    unsupported_revision: int | None
    unknown_method: int | None
    missing_meta: int | None
    missing_capability: int | None
    header_mismatch: int | None
    assumed_revision: str | None
    fallback: tuple[str, ...]
    cancellation: Literal["notification", "close"]
    standalone_stream: bool
    resumable: bool
    polling: bool


@dataclass(frozen=True)
class Draft:
    """What a draft that followed the revision, and never became one, adds to sessions over HTTP.

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
class Errors:
    """JSON-RPC codes by condition.

    Attributes:
        defined: Codes of the range -32099 to -32020 that may be sent; `None` if the revision does
            not reserve that range.
        retired: Codes of earlier revisions that must not be sent any more.
    """

    resource_not_found: int
    unsupported_revision: int
    missing_capability: int | None
    header_mismatch: int | None
    url_elicitation_required: int | None
    defined: tuple[int, ...] | None
    retired: tuple[int, ...]


@dataclass(frozen=True)
class Behaviour:
    """Rules that differ between revisions, each as one named choice.

    Attributes:
        unreadable_id: How an error says that the id could not be read.
        bad_tool_arguments: What answers arguments that fail validation: an error, or a result
            with `isError`.
        structured_content: What a tool's structured result may be.
        log_level: Set once a session, or asked for by each request.
        request_ids: For how long an id may not be used again.
        not_cancellable: Requests that may not be cancelled.
        server_cancels: What a server may cancel: its own requests, or subscription streams only.
        input_required: Requests that may be answered with a demand for input.
        listen: The request that opens a subscription stream.
    """

    unreadable_id: Literal["null", "omit"]
    bad_tool_arguments: Literal["error", "result"]
    structured_content: Literal["none", "object", "any"]
    log_level: Literal["session", "request"]
    request_ids: Literal["session", "in_flight"]
    not_cancellable: tuple[str, ...]
    server_cancels: Literal["requests", "streams"]
    input_required: tuple[str, ...]
    listen: str | None


@dataclass(frozen=True)
class Meta:
    """Rules and keys of `_meta`.

    Attributes:
        key_rules: Whether the form of keys is prescribed.
        reserved_prefix: Which label of a prefix makes it the protocol's own.
        trace_keys: Keys kept for trace context.
    """

    key_rules: bool
    reserved_prefix: Literal["none", "before-last-label", "second-label"]
    trace_keys: tuple[str, ...]
    protocol_version: str | None
    client_info: str | None
    client_capabilities: str | None
    log_level: str | None
    server_info: str | None
    subscription_id: str | None
    related_task: str | None


@dataclass(frozen=True)
class Results:
    """Result types that no rule finds, by method and by who sends the request."""

    client: Mapping[str, tuple[str, ...]]
    server: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Facts:
    """All facts of one revision.

    Attributes:
        capabilities: Capability by method, as a dotted path: of the receiver for requests, of the
            sender itself for notifications. Methods without one are not listed.
        results: Result types that no rule finds.
        defaults: Values of fields that the schema requires and a peer may leave out, by
            definition name and wire name; the definition `*` stands for all others.
        renamed: Definitions that a later revision calls otherwise: name here to later name.
        revision: The revision they were written for.
        source: The file, for messages.
    """

    transports: Transports
    headers: Headers
    http: Http
    draft: Draft
    errors: Errors
    behaviour: Behaviour
    meta: Meta
    capabilities: Mapping[str, str]
    results: Results
    defaults: Mapping[str, Mapping[str, Any]]
    renamed: Mapping[str, str]
    revision: str
    source: str

    def capability(self, method: str) -> tuple[str, ...]:
        """The path of the capability that a method depends on, empty for none."""
        path = self.capabilities.get(method)
        return tuple(path.split(".")) if path else ()

    def default(self, definition: str, wire_name: str) -> Any:
        """The default of a required field, or `None` if it has none."""
        own = self.defaults.get(definition, {})
        return own.get(wire_name, self.defaults.get("*", {}).get(wire_name))


def load(revision: str) -> Facts:
    """The facts of a revision that mcpgen has.

    Raises:
        UsageError: There is no such revision.
        FactsError: The file is malformed.
    """
    return load_file(schema.entry(revision).folder / "facts.toml", revision)


_CODES = {
    "HEADER_MISMATCH": "header_mismatch",
    "MISSING_REQUIRED_CLIENT_CAPABILITY": "missing_capability",
    "RESOURCE_NOT_FOUND": "resource_not_found",
    "UNSUPPORTED_PROTOCOL_VERSION": "unsupported_revision",
    "URL_ELICITATION_REQUIRED": "url_elicitation_required",
}
"""Conditions by the name of the constant that states their code in TypeScript."""

_RESERVED = range(-32099, -32019)


def with_constants(facts: Facts, loaded: schema.Schema) -> Facts:
    """The facts with the error codes that a schema states as constants, which only TypeScript does.

    Raises:
        SchemaError: A constant of that name is no integer.
    """
    stated: dict[str, int] = {}
    for name in _CODES.keys() & loaded.constants.keys():
        code = loaded.constants[name]
        if type(code) is not int:
            raise loaded.error("", f"an integer as the error code {name}", shown(code))
        stated[name] = code
    return with_codes(facts, stated)


def with_codes(facts: Facts, stated: Mapping[str, int]) -> Facts:
    """The facts with error codes by the name of the error: `HEADER_MISMATCH`."""
    codes = {_CODES[name]: code for name, code in stated.items() if name in _CODES and code}
    if not codes:
        return facts
    errors = facts.errors
    defined = errors.defined
    if defined is not None:
        replaced = {getattr(errors, condition) for condition in codes}
        kept = [code for code in defined if code not in replaced]
        added = [code for code in codes.values() if code in _RESERVED]
        defined = tuple(sorted({*kept, *added}))
    retired = tuple(code for code in errors.retired if code not in codes.values())
    changed = replace(errors, **codes, defined=defined, retired=retired)
    return replace(facts, errors=changed)


def load_file(path: Path, revision: str | None = None) -> Facts:
    """The facts in a file; `revision` is the name of its folder unless given.

    Raises:
        FactsError: The file is malformed.
    """
    table, place = read_toml(path, FactsError)
    own = {"revision": revision or path.resolve().parent.name, "source": place.source}
    for name in own.keys() & table.keys():
        raise place.at(name).error("a table of facts", table[name])
    return convert({**table, **own}, Facts, place)
