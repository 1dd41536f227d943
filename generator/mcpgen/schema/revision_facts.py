"""Statements of a revision that its schema lacks, since they are prose, as data.

These classes are the one definition of each fact: its name, its type, what holds where a revision
says nothing about it, and its documentation. mcpgen reads `facts.toml` into them, a generated
package has a copy of this module, and its revisions are made of what differs from the defaults.

Types are `bool`, `int`, `str`, `Literal`, `tuple[X, ...]`, `Mapping[str, X]`, one of these classes,
or one of these `| None`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from .method_facts import UNSTATED, MethodFacts


@dataclass(frozen=True)
class Transports:
    """The transports of a revision.

    Attributes:
        stdio: Standard streams of a process.
        http_sse: HTTP with one stream of events and one address to post to.
        streamable_http: One HTTP endpoint, with sessions or stateless.

    Source: basic/transports.
    """

    stdio: bool = True
    http_sse: bool = False
    streamable_http: Literal["session", "stateless"] | None = None


@dataclass(frozen=True)
class Headers:
    """Names of HTTP headers, as the pages spell them; `None` where a revision has none.

    Attributes:
        protocol_version: Names the revision of a message.
        session: Carries the id of a session.
        last_event_id: Names the last event that a client saw of a stream.
        method: Repeats the method of a message.
        name: Repeats what a message is about: a tool, a prompt, a resource.
        param_prefix: Begins the headers that repeat arguments of a tool; ends with its hyphen.

    Source: basic/transports.
    """

    protocol_version: str | None = None
    session: str | None = None
    last_event_id: str | None = None
    method: str | None = None
    name: str | None = None
    param_prefix: str | None = None


@dataclass(frozen=True)
class Http:
    """HTTP statuses by condition, and what else holds for Streamable HTTP alone.

    Attributes:
        accepted: Answers a notification or a response that was taken.
        rejected: Answers a message that was refused, if no other status fits.
        missing_session: Answers a request without the session id that the server asks for.
        unknown_session: Answers a session id that has ended or never was.
        forbidden_origin: Answers an `Origin` that is not allowed.
        unsupported_revision: The version header names a revision that is not supported.
        unknown_method: The method does not exist, or its capability was not declared; `None` for
            no status of its own.
        missing_capability: A request needs a client capability that was not declared; likewise.
        header_mismatch: Headers and body disagree; likewise.
        fallback: Statuses after which a client tries HTTP+SSE; `x` stands for any digit.
        cancellation: What cancels a request: a notification, or closing its response stream.
        standalone_stream: Whether a GET opens a stream for messages about no request.
        resumable: Whether a broken stream can be resumed by the id of its last event.
        polling: Whether a stream opens with an event that has an id and no data, so that a server
            may close the connection and the client comes back.

    Source: basic/transports.
    """

    accepted: int = 202
    rejected: int = 400
    missing_session: int = 400
    unknown_session: int = 404
    forbidden_origin: int = 403
    unsupported_revision: int = 400
    unknown_method: int | None = None
    missing_capability: int | None = None
    header_mismatch: int | None = None
    fallback: tuple[str, ...] = ()
    cancellation: Literal["notification", "close"] = "notification"
    standalone_stream: bool = False
    resumable: bool = False
    polling: bool = False


@dataclass(frozen=True)
class Draft:
    """Additions to sessions over HTTP of a draft that followed a revision and never became one.

    A server checks it for clients that send it, and requires it of none. All `None` for no such
    draft.

    Attributes:
        method: Header that repeats the method of a message.
        name: Header that repeats what a message is about.
        param_prefix: Begins the headers that repeat arguments of a tool.
        header_mismatch: JSON-RPC code of a header that disagrees with the body.
    """

    method: str | None = None
    name: str | None = None
    param_prefix: str | None = None
    header_mismatch: int | None = None


@dataclass(frozen=True)
class AuthorizationFacts:
    """How a client comes to an access token.

    Attributes:
        discovery: Where it finds the authorization server: in the metadata of the protected
            resource, or at the origin of the MCP server.
        pkce_advertised: Whether it stops where the metadata of the authorization server does not
            list the method of PKCE that is used.
        step_up: The scopes that it asks for when a token lacks some: those of the challenge, or
            those together with all that it asked for before.
        application_type: Whether its registration says what kind of application it is.
        offline_access: Whether it asks for refresh tokens by a scope.
        version_header: Names the revision in requests for the metadata of the authorization
            server; `None` for none.

    Source: basic/authorization.
    """

    discovery: Literal["resource-metadata", "origin"] = "resource-metadata"
    pkce_advertised: bool = True
    step_up: Literal["challenge", "union"] = "challenge"
    application_type: bool = False
    offline_access: bool = False
    version_header: str | None = None


@dataclass(frozen=True)
class ErrorCodes:
    """JSON-RPC codes by condition; `None` where a revision has none of its own.

    Attributes:
        resource_not_found: No resource has the URI that is read.
        unsupported_revision: The revision that a message names is not supported.
        missing_capability: A request needs a client capability that was not declared.
        header_mismatch: Headers and body disagree.
        url_elicitation_required: The user has to open a URL before the request can succeed.
        defined: Codes of the range -32099 to -32020 that may be sent; `None` if the revision does
            not reserve that range.
        retired: Codes of earlier revisions that must not be sent any more.

    Source: basic/index, server/resources.
    """

    resource_not_found: int = -32002
    unsupported_revision: int = -32602
    missing_capability: int | None = None
    header_mismatch: int | None = None
    url_elicitation_required: int | None = None
    defined: tuple[int, ...] | None = None
    retired: tuple[int, ...] = ()


@dataclass(frozen=True)
class Behaviour:
    """Rules that differ between revisions, each as one named choice.

    Attributes:
        unreadable_id: How an error says that the id could not be read: `null`, or no `id` at all.
        bad_tool_arguments: What answers arguments that fail validation: an error, or a result
            with `isError`.
        structured_content: What a tool's structured result may be.
        log_level: Set once a session, or asked for by each request.
        listen: The request that opens a subscription stream, or `None`.

    Source: basic/index, server/tools, server/utilities/logging.
    """

    unreadable_id: Literal["null", "omit"] = "null"
    bad_tool_arguments: Literal["error", "result"] = "error"
    structured_content: Literal["none", "object", "any"] = "none"
    log_level: Literal["session", "request"] = "session"
    listen: str | None = None


@dataclass(frozen=True)
class MetaKeys:
    """Rules for the keys of `_meta`, and keys with a meaning of their own.

    Attributes:
        key_rules: Whether the form of keys is prescribed.
        reserved_prefix: Which label of a prefix makes it the protocol's own.
        trace_keys: Keys reserved for trace context.
        protocol_version: Names the revision of a request.
        client_info: Describes the client that sends a request.
        client_capabilities: Declares the client's capabilities for a request.
        log_level: Asks for log messages of a request.
        server_info: Describes the server that sends a result.
        subscription_id: Names the request whose subscription stream a notification belongs to.
        related_task: Names the task that a message belongs to.

    Source: basic/index (_meta).
    """

    key_rules: bool = False
    reserved_prefix: Literal["none", "before-last-label", "second-label"] = "none"
    trace_keys: tuple[str, ...] = ()
    protocol_version: str | None = None
    client_info: str | None = None
    client_capabilities: str | None = None
    log_level: str | None = None
    server_info: str | None = None
    subscription_id: str | None = None
    related_task: str | None = None

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys that have a meaning of their own."""
        keys = (
            self.protocol_version,
            self.client_info,
            self.client_capabilities,
            self.log_level,
            self.server_info,
            self.subscription_id,
            self.related_task,
        )
        return frozenset(key for key in keys if key is not None)


@dataclass(frozen=True)
class Facts:
    """The statements of a revision that are only prose.

    Attributes:
        transports: The transports it defines.
        headers: Names of HTTP headers.
        http: What holds over HTTP.
        draft: What a draft that followed adds to its sessions.
        authorization: How a client comes to an access token.
        errors: JSON-RPC codes by condition.
        behaviour: Rules that differ between revisions.
        meta: Keys of `_meta`.
        methods: Facts by method.
    """

    transports: Transports = Transports()
    headers: Headers = Headers()
    http: Http = Http()
    draft: Draft = Draft()
    authorization: AuthorizationFacts = AuthorizationFacts()
    errors: ErrorCodes = ErrorCodes()
    behaviour: Behaviour = Behaviour()
    meta: MetaKeys = MetaKeys()
    methods: Mapping[str, MethodFacts] = field(default_factory=dict[str, MethodFacts])

    def method(self, name: str) -> MethodFacts:
        """The statements about a method."""
        return self.methods.get(name, UNSTATED)

    @cached_property
    def name_members(self) -> frozenset[str]:
        """Every member of params that the name header repeats for some method."""
        return frozenset(row.named_by for row in self.methods.values() if row.named_by is not None)
