"""The messages of 2024-11-05: a Struct for every object, under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from .._struct import Struct
from .._wire import Untagged, Variant


class Annotated(Struct, kw_only=True, frozen=True):
    """The part that all annotated objects have in common.

    Source: server/resources.
    """

    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""


class Annotations(Struct, kw_only=True, frozen=True):
    """Hints on how a client should treat an object; from an untrusted server, mere claims.

    Source: server/resources.
    """

    audience: list[Role] | None = None
    """For whom the object is: `user`, `assistant` or both; absent means unspecified."""
    priority: int | float | None = None
    """Importance from 0 (optional) to 1 (indispensable)."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        last_modified = None

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise ValueError("priority: expected 0 to 1, got " + str(self.priority))


class BlobResourceContents(Struct, kw_only=True, frozen=True):
    """Contents of a resource as bytes.

    Source: server/resources.
    """

    blob: str
    """The bytes in base64."""
    uri: str
    """Address of the (sub-)resource that this is."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type; absent means unknown."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class CallToolRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tools/call"):
    """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
    `isError`.

    Source: server/tools.
    """

    method: ClassVar[Literal["tools/call"]] = "tools/call"
    params: CallToolRequestParams
    """Which tool, and its arguments."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class CallToolRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `tools/call`.

    Source: server/tools.
    """

    name: str
    """Name of the tool, as listed."""
    arguments: dict[str, Any] | None = None
    """Arguments as the tool's `inputSchema` wants them; absent means none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        input_responses = None
        request_state = None
        task = None


class CallToolResult(Struct, kw_only=True, frozen=True):
    """What a tool returned, or how it failed.

    Source: server/tools.
    """

    content: list[ContentBlock]
    """The output for a model, piece by piece."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    is_error: bool | None = field(name="isError", default=None)
    """The tool itself failed and `content` says how, so that a model can react; absent means false.
    """

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        result_type = None
        structured_content = None


class CancelledNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/cancelled"
):
    """The sender gives up a request it made. The receiver stops work on it and need not answer;
    `initialize` cannot be cancelled.

    Source: basic/utilities/cancellation.
    """

    method: ClassVar[Literal["notifications/cancelled"]] = "notifications/cancelled"
    params: CancelledNotificationParams
    """Which request, and why."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class CancelledNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/cancelled`.

    Source: basic/utilities/cancellation.
    """

    request_id: RequestId = field(name="requestId")
    """Id of a request that the sender issued earlier and that is presumably still open."""
    reason: str | None = None
    """Why, for logs or people."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class ClientCapabilities(Struct, kw_only=True, frozen=True):
    """What a client can do. An absent field means the feature is unavailable; unknown fields are
    allowed.

    Source: basic/lifecycle.
    """

    experimental: dict[str, dict[str, Any]] | None = None
    """Non-standard features, by name, each with settings of its own."""
    roots: ClientCapabilitiesRoots | None = None
    """The client lists its roots on request."""
    sampling: dict[str, Any] | None = None
    """The client runs a model for the server."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        elicitation = None
        extensions = None
        tasks = None


class ClientCapabilitiesRoots(Struct, kw_only=True, frozen=True):
    """What the client offers about roots.

    Source: client/roots.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The client announces changes of its roots; absent means false."""


class CompleteRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="completion/complete"
):
    """Asks for values that could complete what a user has typed so far.

    Source: server/utilities/completion.
    """

    method: ClassVar[Literal["completion/complete"]] = "completion/complete"
    params: CompleteRequestParams
    """What is being completed."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class CompleteRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `completion/complete`.

    Source: server/utilities/completion.
    """

    argument: CompleteRequestParamsArgument
    """The argument and what was typed so far."""
    ref: CompleteRequestParamsRef
    """The prompt or template to which the argument belongs."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        context = None


class CompleteRequestParamsArgument(Struct, kw_only=True, frozen=True):
    """The argument being completed.

    Source: server/utilities/completion.
    """

    name: str
    """Name of the argument or variable."""
    value: str
    """What was typed so far; may be empty."""


class CompleteResult(Struct, kw_only=True, frozen=True):
    """Suggestions for an argument.

    Source: server/utilities/completion.
    """

    completion: CompleteResultCompletion
    """The suggestions."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        result_type = None


class CompleteResultCompletion(Struct, kw_only=True, frozen=True):
    """The suggestions and how many there are.

    Source: server/utilities/completion.
    """

    values: list[str]
    """Suggestions, best first; at most 100."""
    has_more: bool | None = field(name="hasMore", default=None)
    """More matches exist than were sent; absent means unspecified."""
    total: int | None = None
    """Count of all matches, sent or not; absent means unknown."""


class CreateMessageRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="sampling/createMessage"
):
    """Asks the client to run a model. The client picks the model, and its user should see and
    approve the exchange.

    Source: client/sampling.
    """

    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    params: CreateMessageRequestParams
    """The conversation and how to continue it."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class CreateMessageRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `sampling/createMessage`.

    Source: client/sampling.
    """

    max_tokens: int = field(name="maxTokens")
    """Most tokens to generate; the client may stop sooner."""
    messages: list[SamplingMessage]
    """The conversation so far, oldest first."""
    include_context: Literal["allServers", "none", "thisServer"] | None = field(
        name="includeContext", default=None
    )
    """Whose context to add: `none`, `thisServer` or `allServers`; the client may disregard it."""
    metadata: dict[str, Any] | None = None
    """Parameters for the model's provider, in its own format."""
    model_preferences: ModelPreferences | None = field(name="modelPreferences", default=None)
    """Which model would suit; advice only."""
    stop_sequences: list[str] | None = field(name="stopSequences", default=None)
    """Texts at which generation ends."""
    system_prompt: str | None = field(name="systemPrompt", default=None)
    """Instructions for the model; the client may change or drop them."""
    temperature: int | float | None = None
    """Randomness of the model, on the scale of its provider; absent leaves it to the client."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        tool_choice = None
        tools = None
        meta = None
        task = None


class CreateMessageResult(Struct, kw_only=True, frozen=True):
    """What the model said. The user should see it before the server does.

    Source: client/sampling.
    """

    content: CreateMessageResultContent
    """What was said."""
    model: str
    """Name of the model that was run."""
    role: Role
    """Who speaks, as a rule `assistant`."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    stop_reason: str | None = field(name="stopReason", default=None)
    """Why generation ended: `endTurn`, `stopSequence`, `maxTokens` or a word of the provider;
    absent means unknown.
    """


Cursor: TypeAlias = str
"""Marks a position in a paged list; opaque, not to be parsed, changed or kept across sessions.

Source: server/utilities/pagination.
"""


class EmbeddedResource(Struct, kw_only=True, frozen=True, tag_field="type", tag="resource"):
    """A resource put into a message together with its contents.

    Source: server/tools.
    """

    type: ClassVar[Literal["resource"]] = "resource"
    """Always `resource`."""
    resource: EmbeddedResourceResource
    """The contents, as text or as bytes."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class Error(Struct, kw_only=True, frozen=True):
    """Code and text of a failure.

    Source: basic/messages.
    """

    code: int
    """Number that classifies the failure; -32700 and -32600 to -32603 have their JSON-RPC meaning.
    """
    message: str
    """One short sentence for people."""
    data: Any | UnsetType = UNSET
    """Details in any shape the sender likes; untrusted."""


class GetPromptRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="prompts/get"):
    """Fetches a prompt, filled in. An unknown prompt or a missing argument is error -32602.

    Source: server/prompts.
    """

    method: ClassVar[Literal["prompts/get"]] = "prompts/get"
    params: GetPromptRequestParams
    """Which prompt, and its arguments."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class GetPromptRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `prompts/get`.

    Source: server/prompts.
    """

    name: str
    """Name of the prompt, as listed."""
    arguments: dict[str, str] | None = None
    """Values for the arguments, all strings; absent means none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        input_responses = None
        request_state = None


class GetPromptResult(Struct, kw_only=True, frozen=True):
    """A prompt, filled in.

    Source: server/prompts.
    """

    messages: list[PromptMessage]
    """The messages, in order; untrusted input to a model."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    description: str | None = None
    """What the prompt is for."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        result_type = None


class ImageContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="image"):
    """A picture for or from a model.

    Source: server/tools.
    """

    type: ClassVar[Literal["image"]] = "image"
    """Always `image`."""
    data: str
    """The bytes of the picture in base64."""
    mime_type: str = field(name="mimeType")
    """Media type, e.g. `image/png`; not every model takes every type."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class Implementation(Struct, kw_only=True, frozen=True):
    """Name and version of a piece of software that speaks MCP.

    Source: basic/lifecycle.
    """

    name: str
    """Identifier of the software."""
    version: str
    """Version of the software, in no prescribed format."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        description = None
        icons = None
        title = None
        website_url = None


class InitializeRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="initialize"):
    """First request of a client: it proposes a revision and says what the client can do.

    Source: basic/lifecycle.
    """

    method: ClassVar[Literal["initialize"]] = "initialize"
    params: InitializeRequestParams
    """Proposed revision, capabilities and identity of the client."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class InitializeRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `initialize`.

    Source: basic/lifecycle.
    """

    capabilities: ClientCapabilities
    """What the client can do, for the whole session."""
    client_info: Implementation = field(name="clientInfo")
    """What software the client runs."""
    protocol_version: str = field(name="protocolVersion")
    """Newest revision that the client speaks; it may speak others."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class InitializeResult(Struct, kw_only=True, frozen=True):
    """The server's side of the handshake: the agreed revision and what the server can do.

    Source: basic/lifecycle.
    """

    capabilities: ServerCapabilities
    """What the server can do, for the whole session."""
    protocol_version: str = field(name="protocolVersion")
    """Revision the server chose; a client that cannot speak it disconnects."""
    server_info: Implementation = field(name="serverInfo")
    """What software the server runs."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    instructions: str | None = None
    """Advice on using this server, meant for a model's prompt; untrusted text."""


class InitializedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/initialized"
):
    """The client has finished the handshake; normal requests may begin.

    Source: basic/lifecycle.
    """

    method: ClassVar[Literal["notifications/initialized"]] = "notifications/initialized"
    params: NotificationParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class JSONRPCError(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The answer to a request that failed.

    Source: basic/messages.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    error: Error
    """What went wrong."""
    id: RequestId


class JSONRPCNotification(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """A one-way JSON-RPC message, never answered.

    Source: basic/messages.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    method: str
    params: dict[str, Any] | None = None
    """Arguments of the notification, by name; absent means none."""


class JSONRPCRequest(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """A JSON-RPC message that expects exactly one response.

    Source: basic/messages.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    method: str
    params: dict[str, Any] | None = None
    """Arguments of the method, always by name; absent means none."""


class JSONRPCResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The answer to a request that succeeded.

    Source: basic/messages.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: dict[str, Any]
    """What the request produced; its shape depends on the method."""


if TYPE_CHECKING:
    JSONRPCMessage: TypeAlias = (
        JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError
    )
    """Any message that may travel on the wire.

    Source: basic/messages.
    """
else:

    class JSONRPCMessage(Untagged):
        variants = (
            Variant(JSONRPCRequest, required=("method", "id")),
            Variant(JSONRPCNotification, required=("method",)),
            Variant(JSONRPCResponse, required=("result",)),
            Variant(JSONRPCError, required=("error",)),
        )


class ListPromptsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="prompts/list"):
    """Asks for a page of the server's prompts.

    Source: server/prompts.
    """

    method: ClassVar[Literal["prompts/list"]] = "prompts/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ListPromptsResult(Struct, kw_only=True, frozen=True):
    """A page of prompts.

    Source: server/prompts.
    """

    prompts: list[Prompt]
    """The prompts on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        cache_scope = None
        result_type = None
        ttl_ms = None


class ListResourceTemplatesRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/templates/list"
):
    """Asks for a page of the server's resource templates.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/templates/list"]] = "resources/templates/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ListResourceTemplatesResult(Struct, kw_only=True, frozen=True):
    """A page of resource templates.

    Source: server/resources.
    """

    resource_templates: list[ResourceTemplate] = field(name="resourceTemplates")
    """The templates on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        cache_scope = None
        result_type = None
        ttl_ms = None


class ListResourcesRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/list"
):
    """Asks for a page of the server's resources.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/list"]] = "resources/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ListResourcesResult(Struct, kw_only=True, frozen=True):
    """A page of resources.

    Source: server/resources.
    """

    resources: list[Resource]
    """The resources on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        cache_scope = None
        result_type = None
        ttl_ms = None


class ListRootsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="roots/list"):
    """Asks the client for its roots.

    Source: client/roots.
    """

    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: RequestParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ListRootsResult(Struct, kw_only=True, frozen=True):
    """The client's roots.

    Source: client/roots.
    """

    roots: list[Root]
    """The roots; there are no pages."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""


class ListToolsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tools/list"):
    """Asks for a page of the server's tools.

    Source: server/tools.
    """

    method: ClassVar[Literal["tools/list"]] = "tools/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ListToolsResult(Struct, kw_only=True, frozen=True):
    """A page of tools.

    Source: server/tools.
    """

    tools: list[Tool]
    """The tools on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        cache_scope = None
        result_type = None
        ttl_ms = None


LoggingLevel: TypeAlias = Literal[
    "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"
]
"""Severity of a log message, as in syslog (RFC 5424); from least to most: debug, info, notice,
warning, error, critical, alert, emergency.

Source: server/utilities/logging.
"""


class LoggingMessageNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/message"
):
    """A log message of the server. Before the client sets a level, the server decides what to send.

    Source: server/utilities/logging.
    """

    method: ClassVar[Literal["notifications/message"]] = "notifications/message"
    params: LoggingMessageNotificationParams
    """The log message."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class LoggingMessageNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/message`.

    Source: server/utilities/logging.
    """

    data: Any
    """What is logged: any JSON value; it must hold no secrets."""
    level: LoggingLevel
    """Severity of the message."""
    logger: str | None = None
    """Name of the part of the server that speaks."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class ModelHint(Struct, kw_only=True, frozen=True):
    """A wish for a particular model or family.

    Source: client/sampling.
    """

    name: str | None = None
    """Part of a model's name, such as `sonnet`; a client may substitute an equivalent of another
    provider.
    """


class ModelPreferences(Struct, kw_only=True, frozen=True):
    """What the server would like of the model. Advice only: the client weighs it as it sees fit.

    Source: client/sampling.
    """

    cost_priority: int | float | None = field(name="costPriority", default=None)
    """Weight of low cost, from 0 (irrelevant) to 1 (decisive)."""
    hints: list[ModelHint] | None = None
    """Names of suitable models, most wanted first; they outrank the numbers."""
    intelligence_priority: int | float | None = field(name="intelligencePriority", default=None)
    """Weight of capability, from 0 (irrelevant) to 1 (decisive)."""
    speed_priority: int | float | None = field(name="speedPriority", default=None)
    """Weight of low latency, from 0 (irrelevant) to 1 (decisive)."""

    def __post_init__(self) -> None:
        if self.cost_priority is not None and not 0 <= self.cost_priority <= 1:
            raise ValueError("costPriority: expected 0 to 1, got " + str(self.cost_priority))
        if self.intelligence_priority is not None and not 0 <= self.intelligence_priority <= 1:
            raise ValueError(
                "intelligencePriority: expected 0 to 1, got " + str(self.intelligence_priority)
            )
        if self.speed_priority is not None and not 0 <= self.speed_priority <= 1:
            raise ValueError("speedPriority: expected 0 to 1, got " + str(self.speed_priority))


class Notification(Struct, kw_only=True, frozen=True):
    """The part that all notifications have in common.

    Source: basic/messages.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the notification, by name; absent means none."""


class NotificationParams(Struct, kw_only=True, frozen=True):
    """The params that all notifications accept.

    Source: basic/messages.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""


class PaginatedRequest(Struct, kw_only=True, frozen=True):
    """The part that all paged list requests have in common.

    Source: server/utilities/pagination.
    """

    method: str
    params: PaginatedRequestParams | None = None
    """Where the page starts."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class PaginatedRequestParams(Struct, kw_only=True, frozen=True):
    """The params of a paged list request.

    Source: server/utilities/pagination.
    """

    cursor: str | None = None
    """The `nextCursor` of the preceding page; absent asks for the first page. A bad one gives error
    -32602.
    """

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class PaginatedResult(Struct, kw_only=True, frozen=True):
    """The part that all pages have in common.

    Source: server/utilities/pagination.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        result_type = None


class PingRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="ping"):
    """Asks either peer for a sign of life; it is answered at once with an empty result.

    Source: basic/utilities/ping.
    """

    method: ClassVar[Literal["ping"]] = "ping"
    params: RequestParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ProgressNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/progress"
):
    """Reports how far a request has come whose sender supplied a progress token.

    Source: basic/utilities/progress.
    """

    method: ClassVar[Literal["notifications/progress"]] = "notifications/progress"
    params: ProgressNotificationParams
    """Which request, and how far."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class ProgressNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/progress`.

    Source: basic/utilities/progress.
    """

    progress: int | float
    """Amount done so far, in any unit; every notification has a higher value than the one before.
    """
    progress_token: ProgressToken = field(name="progressToken")
    """Token from the metadata of the request that this is about."""
    total: int | float | None = None
    """Amount at completion, in the unit of `progress`; absent means unknown."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        message = None


ProgressToken: TypeAlias = str | int
"""Ties progress notifications to a request: a string or an integer, unique among the sender's
active requests.

Source: basic/utilities/progress.
"""


class Prompt(Struct, kw_only=True, frozen=True):
    """A ready-made message, or a template of one, that a user can pick.

    Source: server/prompts.
    """

    name: str
    """Identifier by which the prompt is fetched, unique within the server."""
    arguments: list[PromptArgument] | None = None
    """Arguments of the template; absent means none."""
    description: str | None = None
    """What the prompt is for; untrusted text."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        icons = None
        title = None


class PromptArgument(Struct, kw_only=True, frozen=True):
    """An argument of a prompt.

    Source: server/prompts.
    """

    name: str
    """Identifier of the argument."""
    description: str | None = None
    """What the argument means, for people."""
    required: bool | None = None
    """The prompt cannot be fetched without it; absent means false."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        title = None


class PromptListChangedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/prompts/list_changed"
):
    """The server's prompts have changed; list them again. It comes unasked if `listChanged` was
    declared.

    Source: server/prompts.
    """

    method: ClassVar[Literal["notifications/prompts/list_changed"]] = (
        "notifications/prompts/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class PromptMessage(Struct, kw_only=True, frozen=True):
    """A message of a prompt.

    Source: server/prompts.
    """

    content: ContentBlock
    """What is said: one piece of content."""
    role: Role
    """Who speaks."""


class PromptReference(Struct, kw_only=True, frozen=True, tag_field="type", tag="ref/prompt"):
    """Names a prompt whose argument is to be completed.

    Source: server/utilities/completion.
    """

    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"
    """Always `ref/prompt`."""
    name: str
    """Name of the prompt, as listed."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        title = None


class ReadResourceRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/read"
):
    """Reads one resource. An unknown URI is error -32002.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/read"]] = "resources/read"
    params: ReadResourceRequestParams
    """Which resource."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ReadResourceRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `resources/read`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        input_responses = None
        request_state = None


class ReadResourceResult(Struct, kw_only=True, frozen=True):
    """What was read.

    Source: server/resources.
    """

    contents: list[ReadResourceResultContents]
    """The contents; several when the URI names a collection."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        cache_scope = None
        result_type = None
        ttl_ms = None


class Request(Struct, kw_only=True, frozen=True):
    """The part that all requests have in common.

    Source: basic/messages.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the method, by name; absent means none."""


RequestId: TypeAlias = str | int
"""Identifies a request within its session: a string or an integer, never null, never reused by its
sender.

Source: basic/messages.
"""


class RequestMetaObject(Struct, kw_only=True, frozen=True):
    """Metadata of a request.

    Source: basic/messages.
    """

    progress_token: ProgressToken | None = field(name="progressToken", default=None)
    """Asks for progress notifications, which will repeat this token; the receiver may send none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        client_capabilities = None
        client_info = None
        log_level = None
        protocol_version = None


class RequestParams(Struct, kw_only=True, frozen=True):
    """The params that all requests accept.

    Source: basic/messages.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


class Resource(Struct, kw_only=True, frozen=True):
    """Data that the server lets a client read.

    Source: server/resources.
    """

    name: str
    """Name shown to people."""
    uri: str
    """Address of the resource."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the resource holds; may reach a model, so treat it as untrusted text."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type of the contents; absent means unknown."""
    size: int | None = None
    """Size in bytes before any encoding; absent means unknown."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        icons = None
        title = None


class ResourceContents(Struct, kw_only=True, frozen=True):
    """The part that all contents of resources have in common.

    Source: server/resources.
    """

    uri: str
    """Address of the (sub-)resource that this is."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type; absent means unknown."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class ResourceListChangedNotification(
    Struct,
    kw_only=True,
    frozen=True,
    tag_field="method",
    tag="notifications/resources/list_changed",
):
    """The server's resources have changed; list them again. It comes unasked if `listChanged` was
    declared.

    Source: server/resources.
    """

    method: ClassVar[Literal["notifications/resources/list_changed"]] = (
        "notifications/resources/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class ResourceReference(Struct, kw_only=True, frozen=True, tag_field="type", tag="ref/resource"):
    """Names a resource template whose variable is to be completed.

    Source: server/utilities/completion.
    """

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    """Always `ref/resource`."""
    uri: str
    """URI or RFC 6570 template, as listed."""


CompleteRequestParamsRef: TypeAlias = PromptReference | ResourceReference
"""What the argument belongs to: a prompt or a resource template.

Source: server/utilities/completion.
"""


class ResourceTemplate(Struct, kw_only=True, frozen=True):
    """A pattern of URIs, each of which names a readable resource.

    Source: server/resources.
    """

    name: str
    """Name shown to people."""
    uri_template: str = field(name="uriTemplate")
    """RFC 6570 template; filling in its variables gives a URI."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the matching resources hold; may reach a model, so treat it as untrusted text."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type, if all matching resources share one."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        icons = None
        title = None


class ResourceUpdatedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/resources/updated"
):
    """A resource that the client subscribed to has changed; read it again.

    Source: server/resources.
    """

    method: ClassVar[Literal["notifications/resources/updated"]] = "notifications/resources/updated"
    params: ResourceUpdatedNotificationParams
    """Which resource."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


class ResourceUpdatedNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/resources/updated`.

    Source: server/resources.
    """

    uri: str
    """Address of what changed; possibly a part of the resource subscribed to."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


Result: TypeAlias = dict[str, Any]
"""The part that all results have in common; methods add fields of their own.

Source: basic/messages.
"""


ClientResult: TypeAlias = Result | CreateMessageResult | ListRootsResult
"""Every result that a client may return.

Source: basic/messages.
"""


EmptyResult: TypeAlias = Result
"""A result that only confirms success.

Source: basic/messages.
"""


Role: TypeAlias = Literal["assistant", "user"]
"""Who speaks in a conversation: `user` or `assistant`.

Source: basic/messages.
"""


class Root(Struct, kw_only=True, frozen=True):
    """A directory or file on which the client wants the server to work. Guidance, not access
    control.

    Source: client/roots.
    """

    uri: str
    """Address of the root; always a `file://` URI so far."""
    name: str | None = None
    """Name shown to people."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class RootsListChangedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/roots/list_changed"
):
    """The client's roots have changed; ask for them again.

    Source: client/roots.
    """

    method: ClassVar[Literal["notifications/roots/list_changed"]] = (
        "notifications/roots/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


ClientNotification: TypeAlias = (
    CancelledNotification
    | InitializedNotification
    | ProgressNotification
    | RootsListChangedNotification
)
"""Every notification that a client may send.

Source: basic/messages.
"""


class SamplingMessage(Struct, kw_only=True, frozen=True):
    """A message to or from a model.

    Source: client/sampling.
    """

    content: SamplingMessageContent
    """What is said: one piece of content."""
    role: Role
    """Who speaks."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class ServerCapabilities(Struct, kw_only=True, frozen=True):
    """What a server can do. An absent field means the feature is unavailable; unknown fields are
    allowed.

    Source: basic/lifecycle.
    """

    experimental: dict[str, dict[str, Any]] | None = None
    """Non-standard features, by name, each with settings of its own."""
    logging: dict[str, Any] | None = None
    """The server emits log messages; an empty object."""
    prompts: ServerCapabilitiesPrompts | None = None
    """The server has prompts."""
    resources: ServerCapabilitiesResources | None = None
    """The server has resources."""
    tools: ServerCapabilitiesTools | None = None
    """The server has tools."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        completions = None
        extensions = None
        tasks = None


class ServerCapabilitiesPrompts(Struct, kw_only=True, frozen=True):
    """What the server offers about prompts.

    Source: server/prompts.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The server announces changes of its prompts; absent means false."""


class ServerCapabilitiesResources(Struct, kw_only=True, frozen=True):
    """What the server offers about resources.

    Source: server/resources.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The server announces changes of its resources; absent means false."""
    subscribe: bool | None = None
    """Clients may subscribe to single resources; absent means false."""


class ServerCapabilitiesTools(Struct, kw_only=True, frozen=True):
    """What the server offers about tools.

    Source: server/tools.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The server announces changes of its tools; absent means false."""


ServerRequest: TypeAlias = PingRequest | CreateMessageRequest | ListRootsRequest
"""Every request that a server may send.

Source: basic/messages.
"""


ServerResult: TypeAlias = (
    Result
    | InitializeResult
    | ListResourcesResult
    | ListResourceTemplatesResult
    | ReadResourceResult
    | ListPromptsResult
    | GetPromptResult
    | ListToolsResult
    | CallToolResult
    | CompleteResult
)
"""Every result that a server may return.

Source: basic/messages.
"""


class SetLevelRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="logging/setLevel"
):
    """Sets the lowest severity of log messages that the client wants.

    Source: server/utilities/logging.
    """

    method: ClassVar[Literal["logging/setLevel"]] = "logging/setLevel"
    params: SetLevelRequestParams
    """The severity."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class SetLevelRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `logging/setLevel`.

    Source: server/utilities/logging.
    """

    level: LoggingLevel
    """Lowest severity to send; everything graver is sent too."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class SubscribeRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/subscribe"
):
    """Asks to be told when one resource changes; needs the `subscribe` capability.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/subscribe"]] = "resources/subscribe"
    params: SubscribeRequestParams
    """Which resource."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class SubscribeRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `resources/subscribe`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource to watch, of any scheme."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


class TextContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="text"):
    """Text for or from a model.

    Source: server/tools.
    """

    type: ClassVar[Literal["text"]] = "text"
    """Always `text`."""
    text: str
    """The text itself."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


ContentBlock: TypeAlias = TextContent | ImageContent | EmbeddedResource
"""One piece of content in a prompt or tool result: text, image or embedded resource.

Source: server/tools.
"""


CreateMessageResultContent: TypeAlias = TextContent | ImageContent
"""What the model said: one piece of content.

Source: client/sampling.
"""


SamplingMessageContent: TypeAlias = TextContent | ImageContent
"""What a message says: one piece of content.

Source: client/sampling.
"""


class TextResourceContents(Struct, kw_only=True, frozen=True):
    """Contents of a resource as text.

    Source: server/resources.
    """

    text: str
    """The text; never binary data in disguise."""
    uri: str
    """Address of the (sub-)resource that this is."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type; absent means unknown."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


if TYPE_CHECKING:
    EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents
    """Contents of an embedded resource, as text or as bytes.

    Source: server/tools.
    """
else:

    class EmbeddedResourceResource(Untagged):
        variants = (
            Variant(TextResourceContents, required=("text",)),
            Variant(BlobResourceContents, required=("blob",)),
        )


if TYPE_CHECKING:
    ReadResourceResultContents: TypeAlias = TextResourceContents | BlobResourceContents
    """One item that was read, as text or as bytes.

    Source: server/resources.
    """
else:

    class ReadResourceResultContents(Untagged):
        variants = (
            Variant(TextResourceContents, required=("text",)),
            Variant(BlobResourceContents, required=("blob",)),
        )


class Tool(Struct, kw_only=True, frozen=True):
    """A function that the server lets a model call.

    Source: server/tools.
    """

    input_schema: dict[str, Any] = field(name="inputSchema")
    """JSON Schema of the arguments; its root has type `object`."""
    name: str
    """Identifier by which the tool is called, unique within the server."""
    description: str | None = None
    """What the tool does, for people and models; untrusted text."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        annotations = None
        icons = None
        output_schema = None
        title = None
        execution = None

    def __post_init__(self) -> None:
        if self.input_schema.get("type") != "object":
            raise ValueError('inputSchema: expected a JSON Schema with "type": "object"')


class ToolListChangedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/tools/list_changed"
):
    """The server's tools have changed; list them again. It comes unasked if `listChanged` was
    declared.

    Source: server/tools.
    """

    method: ClassVar[Literal["notifications/tools/list_changed"]] = (
        "notifications/tools/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        jsonrpc = None


ServerNotification: TypeAlias = (
    CancelledNotification
    | ProgressNotification
    | ResourceListChangedNotification
    | ResourceUpdatedNotification
    | PromptListChangedNotification
    | ToolListChangedNotification
    | LoggingMessageNotification
)
"""Every notification that a server may send.

Source: basic/messages.
"""


class UnsubscribeRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/unsubscribe"
):
    """Ends a subscription to one resource.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/unsubscribe"]] = "resources/unsubscribe"
    params: UnsubscribeRequestParams
    """Which resource."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


ClientRequest: TypeAlias = (
    InitializeRequest
    | PingRequest
    | ListResourcesRequest
    | ListResourceTemplatesRequest
    | ReadResourceRequest
    | SubscribeRequest
    | UnsubscribeRequest
    | ListPromptsRequest
    | GetPromptRequest
    | ListToolsRequest
    | CallToolRequest
    | SetLevelRequest
    | CompleteRequest
)
"""Every request that a client may send.

Source: basic/messages.
"""


class UnsubscribeRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `resources/unsubscribe`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource that is watched."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
