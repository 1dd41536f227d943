"""The types of all revisions, one class for each name.

An object of a session has the class of the session's own revision, and `isinstance` takes each of
these for the class of its name here. It has every member that any revision has; those that are
absent, or that its own revision lacks, are `None`. (Where null is a value in a revision, an absent
one is UNSET there.) Calling a class makes an object of the newest revision that has the
members. Importing this module loads no revision.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from . import merged_models as merged
from ._wire import UNSET, UnsetType


class Annotated(merged.Merged, kw_only=True, frozen=True):
    """The part that all annotated objects have in common.

    Only in 2024-11-05.

    Source: server/resources.
    """

    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""


class Annotations(merged.Merged, kw_only=True, frozen=True):
    """Hints on how a client should treat an object; from an untrusted server, mere claims.

    Source: server/resources.
    """

    audience: list[Role] | None = None
    """For whom the object is: `user`, `assistant` or both; absent means unspecified."""
    last_modified: str | None = None
    """Time of the last change, in ISO 8601.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    priority: int | float | None = None
    """Importance from 0 (optional) to 1 (indispensable)."""


class AudioContent(merged.Merged, kw_only=True, frozen=True):
    """Sound for or from a model.

    Only in 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.

    Source: server/tools.
    """

    data: str
    """The bytes of the sound in base64."""
    mime_type: str
    """Media type, e.g. `audio/wav`; not every model takes every type."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    type: ClassVar[Literal["audio"]] = "audio"
    """Always `audio`."""


class BaseMetadata(merged.Merged, kw_only=True, frozen=True):
    """The two names that many objects have.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: basic/index.
    """

    name: str
    """Identifier used in code and requests; shown to people only when no title exists."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown (a tool tries `annotations.title` first).
    """


class BlobResourceContents(merged.Merged, kw_only=True, frozen=True):
    """Contents of a resource as bytes.

    Source: server/resources.
    """

    blob: str
    """The bytes in base64."""
    uri: str
    """Address of the (sub-)resource that this is."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    mime_type: str | None = None
    """Media type; absent means unknown."""


class BooleanSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for yes or no.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    default: bool | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["boolean"]] = "boolean"
    """Always `boolean`."""


class CacheableResult(merged.Merged, kw_only=True, frozen=True):
    """A result with caching hints.

    Only in 2026-07-28.

    Source: server/utilities/caching.
    """

    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = "private"
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    result_type: str = "complete"
    """Tells how to read the result: `complete`, `input_required` or a value of an extension; absent
    (older servers) means `complete`.
    """
    ttl_ms: int = 0
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class CallToolRequest(merged.Merged, kw_only=True, frozen=True):
    """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
    `isError`.

    Source: server/tools.
    """

    params: CallToolRequestParams
    """Which tool, and its arguments."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["tools/call"]] = "tools/call"


class CallToolRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `tools/call`.

    Source: server/tools.
    """

    name: str
    """Name of the tool, as listed."""
    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.

    Only in 2025-11-25, 2026-07-28.
    """
    arguments: dict[str, Any] | None = None
    """Arguments as the tool's `inputSchema` wants them; absent means none."""
    input_responses: InputResponses | None = None
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys.

    Only in 2026-07-28.
    """
    request_state: str | None = None
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.

    Only in 2026-07-28.
    """
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.

    Only in 2025-11-25.
    """


class CallToolResult(merged.Merged, kw_only=True, frozen=True):
    """What a tool returned, or how it failed.

    Source: server/tools.
    """

    content: list[ContentBlock]
    """The output for a model, piece by piece."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    is_error: bool | None = None
    """The tool itself failed and `content` says how, so that a model can react; absent means false.
    """
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """
    structured_content: Any | UnsetType | None = UNSET
    """The output as any JSON value, null included, that fits the tool's `outputSchema`.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """


class CallToolResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of the answer to `tools/call`.

    Only in 2026-07-28.

    Source: server/tools.
    """

    id: RequestId
    result: CallToolResultResponseResult
    """The tool's result, or a demand for more input."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class CancelTaskRequest(merged.Merged, kw_only=True, frozen=True):
    """Stops a task; one that has already ended is error -32602.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    id: RequestId
    params: CancelTaskRequestParams
    """Which task."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["tasks/cancel"]] = "tasks/cancel"


class CancelTaskRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `tasks/cancel`.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    task_id: str
    """Identifier of the task."""


class CancelTaskResult(merged.Merged, kw_only=True, frozen=True):
    """The task, now `cancelled`.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    created_at: str
    """Time of creation, in ISO 8601."""
    last_updated_at: str
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    meta: dict[str, Any] | None = None
    """Extra data about the result."""
    poll_interval: int | None = None
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = None
    """More about the status, for people, e.g. why it failed."""


class CancelledNotification(merged.Merged, kw_only=True, frozen=True):
    """The client gives up a request it made, or (stdio) the server ends a `subscriptions/listen`
    stream. Over HTTP, closing the stream says the same.

    Source: basic/patterns/cancellation.
    """

    params: CancelledNotificationParams
    """Which request, and why."""
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/cancelled"]] = "notifications/cancelled"


class CancelledNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `notifications/cancelled`.

    Source: basic/patterns/cancellation.
    """

    meta: dict[str, Any] | None = None
    """Extra data; on a subscription stream it names the subscription.

    Only in 2025-11-25, 2026-07-28.
    """
    reason: str | None = None
    """Why, for logs or people."""
    request_id: RequestId | None = None
    """Id of an open request of the client; from a server, always that of a `subscriptions/listen`.
    """


class ClientCapabilities(merged.Merged, kw_only=True, frozen=True):
    """What a client can do for one request. An absent field means the feature is unavailable;
    unknown fields are allowed.

    Source: basic/index.
    """

    elicitation: ClientCapabilitiesElicitation | dict[str, Any] | None = None
    """The client asks its user questions for the server; an empty object means form mode only.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    experimental: dict[str, dict[str, Any]] | None = None
    """Non-standard features, by name, each with settings of its own."""
    extensions: dict[str, JSONObject] | None = None
    """Protocol extensions the client supports, by prefixed identifier; an empty object means no
    settings.

    Only in 2026-07-28.
    """
    roots: ClientCapabilitiesRoots | dict[str, Any] | None = None
    """The client lists its roots on request. Deprecated."""
    sampling: ClientCapabilitiesSampling | dict[str, Any] | None = None
    """The client runs a model for the server; sub-fields add tools and context. Deprecated."""
    tasks: ClientCapabilitiesTasks | None = None
    """The client runs some requests as tasks.

    Only in 2025-11-25.
    """


class ClientCapabilitiesElicitation(merged.Merged, kw_only=True, frozen=True):
    """Ways in which the client can ask its user; none given means form mode.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    form: dict[str, Any] | None = None
    """The client shows forms; an empty object."""
    url: dict[str, Any] | None = None
    """The client can send its user to a web page; an empty object."""


class ClientCapabilitiesRoots(merged.Merged, kw_only=True, frozen=True):
    """What the client offers about roots.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: client/roots.
    """

    list_changed: bool | None = None
    """The client announces changes of its roots; absent means false."""


class ClientCapabilitiesSampling(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. Optional parts of sampling that the client supports.

    Only in 2025-11-25, 2026-07-28.

    Source: client/sampling.
    """

    context: dict[str, Any] | None = None
    """The client accepts `includeContext` values other than `none`; an empty object. Deprecated."""
    tools: dict[str, Any] | None = None
    """The client accepts `tools` and `toolChoice`; an empty object."""


class ClientCapabilitiesTasks(merged.Merged, kw_only=True, frozen=True):
    """What the client supports of tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    cancel: dict[str, Any] | None = None
    """The client answers `tasks/cancel`; an empty object."""
    list_: dict[str, Any] | None = None
    """The client answers `tasks/list`; an empty object."""
    requests: ClientCapabilitiesTasksRequests | None = None
    """Requests that the client runs as tasks; those not named are never tasks."""


class ClientCapabilitiesTasksRequests(merged.Merged, kw_only=True, frozen=True):
    """Requests that the client runs as tasks, by feature.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    elicitation: ClientCapabilitiesTasksRequestsElicitation | None = None
    """Elicitation requests that may be tasks."""
    sampling: ClientCapabilitiesTasksRequestsSampling | None = None
    """Sampling requests that may be tasks."""


class ClientCapabilitiesTasksRequestsElicitation(merged.Merged, kw_only=True, frozen=True):
    """Elicitation requests that the client runs as tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    create: dict[str, Any] | None = None
    """`elicitation/create` may be a task; an empty object."""


class ClientCapabilitiesTasksRequestsSampling(merged.Merged, kw_only=True, frozen=True):
    """Sampling requests that the client runs as tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    create_message: dict[str, Any] | None = None
    """`sampling/createMessage` may be a task; an empty object."""


class CompleteRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks for values that could complete what a user has typed so far.

    Source: server/utilities/completion.
    """

    params: CompleteRequestParams
    """What is being completed."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["completion/complete"]] = "completion/complete"


class CompleteRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `completion/complete`.

    Source: server/utilities/completion.
    """

    argument: CompleteRequestParamsArgument
    """The argument and what was typed so far."""
    ref: CompleteRequestParamsRef
    """The prompt or template to which the argument belongs."""
    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.

    Only in 2025-11-25, 2026-07-28.
    """
    context: CompleteRequestParamsContext | None = None
    """What is settled already; absent means nothing.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """


class CompleteRequestParamsArgument(merged.Merged, kw_only=True, frozen=True):
    """The argument being completed.

    Source: server/utilities/completion.
    """

    name: str
    """Name of the argument or variable."""
    value: str
    """What was typed so far; may be empty."""


class CompleteRequestParamsContext(merged.Merged, kw_only=True, frozen=True):
    """What is settled before this completion.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: server/utilities/completion.
    """

    arguments: dict[str, str] | None = None
    """Values of other arguments chosen earlier, by name."""


class CompleteResult(merged.Merged, kw_only=True, frozen=True):
    """Suggestions for an argument.

    Source: server/utilities/completion.
    """

    completion: CompleteResultCompletion
    """The suggestions."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """


class CompleteResultCompletion(merged.Merged, kw_only=True, frozen=True):
    """The suggestions and how many there are.

    Source: server/utilities/completion.
    """

    values: list[str]
    """Suggestions, best first; at most 100."""
    has_more: bool | None = None
    """More matches exist than were sent; absent means unspecified."""
    total: int | None = None
    """Count of all matches, sent or not; absent means unknown."""


class CompleteResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `CompleteResult`.

    Only in 2026-07-28.

    Source: server/utilities/completion.
    """

    id: RequestId
    result: CompleteResult
    """The suggestions."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class CreateMessageRequest(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. Asks the client to run a model, with its user's approval;
    travels inside an `InputRequiredResult`, without an id.

    Source: client/sampling.
    """

    params: CreateMessageRequestParams
    """The conversation and how to continue it."""
    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None


class CreateMessageRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. Params of `sampling/createMessage`.

    Source: client/sampling.
    """

    max_tokens: int
    """Most tokens to generate; the client may stop sooner."""
    messages: list[SamplingMessage]
    """The conversation so far, oldest first."""
    include_context: Literal["allServers", "none", "thisServer"] | None = None
    """Whose context to add; default `none`. The other values are deprecated and need the
    `sampling.context` capability.
    """
    metadata: dict[str, Any] | None = None
    """Parameters for the model's provider, in its own format."""
    model_preferences: ModelPreferences | None = None
    """Which model would suit; advice only."""
    stop_sequences: list[str] | None = None
    """Texts at which generation ends."""
    system_prompt: str | None = None
    """Instructions for the model; the client may change or drop them."""
    temperature: int | float | None = None
    """Randomness of the model, on the scale of its provider; absent leaves it to the client."""
    tool_choice: ToolChoice | None = None
    """Whether the model may or must use tools (default `auto`); an error unless the client declared
    `sampling.tools`.

    Only in 2025-11-25, 2026-07-28.
    """
    tools: list[Tool] | None = None
    """Tools the model may use; an error unless the client declared `sampling.tools`.

    Only in 2025-11-25, 2026-07-28.
    """
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.

    Only in 2025-11-25.
    """


class CreateMessageResult(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. What the model said; travels inside the `inputResponses` of a
    retry.

    Source: client/sampling.
    """

    content: CreateMessageResultContent
    """What was said: one piece of content or a list of them."""
    model: str
    """Name of the model that was run."""
    role: Role
    """Who speaks, as a rule `assistant`."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    stop_reason: str | None = None
    """Why generation ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or a word of the
    provider; absent means unknown.
    """


class CreateTaskResult(merged.Merged, kw_only=True, frozen=True):
    """First answer to a request carried out as a task; the real result is fetched with
    `tasks/result`.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    task: Task
    """The new task."""
    meta: dict[str, Any] | None = None
    """Extra data; `io.modelcontextprotocol/model-immediate-response` may hold text for the model to
    go on with.
    """


class DiscoverRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks which revisions and features a server has. Every server answers it; no client must send
    it.

    Only in 2026-07-28.

    Source: server/discover.
    """

    id: RequestId
    params: RequestParams
    """Metadata only."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["server/discover"]] = "server/discover"


class DiscoverResult(merged.Merged, kw_only=True, frozen=True):
    """Revisions, capabilities and advice of a server.

    Only in 2026-07-28.

    Source: server/discover.
    """

    capabilities: ServerCapabilities
    """What the server can do."""
    supported_versions: list[str]
    """Revisions that the server speaks; later requests pick one of them."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = "private"
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    instructions: str | None = None
    """Advice on using this server, meant for a model's prompt; untrusted text."""
    result_type: str = "complete"
    """`complete`; absent (older servers) means the same."""
    ttl_ms: int = 0
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class DiscoverResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `DiscoverResult`.

    Only in 2026-07-28.

    Source: server/discover.
    """

    id: RequestId
    result: DiscoverResult
    """The server's self-description."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class ElicitRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks the client's user for data in a form or an act on a web page; travels inside an
    `InputRequiredResult`, without an id.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    params: ElicitRequestParams
    """What to ask, and how."""
    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None


class ElicitRequestFormParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `elicitation/create` in form mode; never for secrets, which need URL mode.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    _other_names: ClassVar[tuple[str, ...]] = ("ElicitRequestParams",)
    message: str
    """What is asked and why, for the user."""
    requested_schema: ElicitRequestFormParamsRequestedSchema | ElicitRequestParamsRequestedSchema
    """The form: a flat JSON Schema object."""
    mode: Literal["form"] | None = None
    """Always `form`, or absent.

    Only in 2025-11-25, 2026-07-28.
    """
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.

    Only in 2025-11-25.
    """


class ElicitRequestFormParamsRequestedSchema(merged.Merged, kw_only=True, frozen=True):
    """A form: a flat JSON Schema object.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    properties: dict[str, PrimitiveSchemaDefinition]
    """The fields of the form, by name; no nesting."""
    schema: str | None = None
    """Dialect of JSON Schema; absent means 2020-12."""
    required: list[str] | None = None
    """Names of fields that must be filled in; absent means none."""
    type: ClassVar[Literal["object"]] = "object"
    """Always `object`."""


class ElicitRequestParamsRequestedSchema(merged.Merged, kw_only=True, frozen=True):
    """A form: a flat JSON Schema object.

    Only in 2025-06-18.

    Source: client/elicitation.
    """

    properties: dict[str, PrimitiveSchemaDefinition]
    """The fields of the form, by name; no nesting."""
    required: list[str] | None = None
    """Names of fields that must be filled in; absent means none."""
    type: ClassVar[Literal["object"]] = "object"
    """Always `object`."""


class ElicitRequestURLParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `elicitation/create` in URL mode, for what must not pass through the client.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    message: str
    """Why the user should go there."""
    url: str
    """Page to open, only after the user has seen the address and agreed; holds no secrets."""
    mode: ClassVar[Literal["url"]] = "url"
    """Always `url`."""
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """
    elicitation_id: str | None = None
    """Opaque identifier of this elicitation, unique within the server.

    Only in 2025-11-25.
    """
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.

    Only in 2025-11-25.
    """


class ElicitResult(merged.Merged, kw_only=True, frozen=True):
    """What the user decided, and the data of the form; travels inside the `inputResponses` of a
    retry.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    action: Literal["accept", "cancel", "decline"]
    """`accept`: agreed (in URL mode, only to open the page); `decline`: refused; `cancel`: closed
    without a choice.
    """
    content: dict[str, str | int | float | bool | list[str]] | None = None
    """Values of the form, by field; only with `accept` in form mode."""
    meta: dict[str, Any] | None = None
    """Extra data about the result.

    Only in 2025-06-18, 2025-11-25.
    """


class ElicitationCompleteNotification(merged.Merged, kw_only=True, frozen=True):
    """What a user was sent to do on a web page is done; the client may retry what waited for it.

    Only in 2025-11-25.

    Source: client/elicitation.
    """

    params: ElicitationCompleteNotificationParams
    """Which elicitation."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["notifications/elicitation/complete"]] = (
        "notifications/elicitation/complete"
    )


class ElicitationCompleteNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `notifications/elicitation/complete`.

    Only in 2025-11-25.

    Source: client/elicitation.
    """

    elicitation_id: str
    """Identifier from the request; unknown ones are ignored."""


class EmbeddedResource(merged.Merged, kw_only=True, frozen=True):
    """A resource put into a message together with its contents.

    Source: server/tools.
    """

    resource: EmbeddedResourceResource
    """The contents, as text or as bytes."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    type: ClassVar[Literal["resource"]] = "resource"
    """Always `resource`."""


class Error(merged.Merged, kw_only=True, frozen=True):
    """Code and text of a failure.

    Source: basic/index.
    """

    code: int
    """Number that classifies the failure; -32020 to -32099 belong to MCP, which defines -32020,
    -32021 and -32022.
    """
    message: str
    """One short sentence for people."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the sender likes; untrusted."""


class GetPromptRequest(merged.Merged, kw_only=True, frozen=True):
    """Fetches a prompt, filled in. An unknown prompt or a missing argument is error -32602.

    Source: server/prompts.
    """

    params: GetPromptRequestParams
    """Which prompt, and its arguments."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["prompts/get"]] = "prompts/get"


class GetPromptRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `prompts/get`.

    Source: server/prompts.
    """

    name: str
    """Name of the prompt, as listed."""
    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.

    Only in 2025-11-25, 2026-07-28.
    """
    arguments: dict[str, str] | None = None
    """Values for the arguments, all strings; absent means none."""
    input_responses: InputResponses | None = None
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys.

    Only in 2026-07-28.
    """
    request_state: str | None = None
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.

    Only in 2026-07-28.
    """


class GetPromptResult(merged.Merged, kw_only=True, frozen=True):
    """A prompt, filled in.

    Source: server/prompts.
    """

    messages: list[PromptMessage]
    """The messages, in order; untrusted input to a model."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    description: str | None = None
    """What the prompt is for."""
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """


class GetPromptResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of the answer to `prompts/get`.

    Only in 2026-07-28.

    Source: server/prompts.
    """

    id: RequestId
    result: GetPromptResultResponseResult
    """The prompt, or a demand for more input."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class GetTaskPayloadRequest(merged.Merged, kw_only=True, frozen=True):
    """Fetches the real result of a task; the answer waits until the task has ended.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    id: RequestId
    params: GetTaskPayloadRequestParams
    """Which task."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["tasks/result"]] = "tasks/result"


class GetTaskPayloadRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `tasks/result`.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    task_id: str
    """Identifier of the task."""


class GetTaskRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks how a task stands.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    id: RequestId
    params: GetTaskRequestParams
    """Which task."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["tasks/get"]] = "tasks/get"


class GetTaskRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `tasks/get`.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    task_id: str
    """Identifier of the task."""


class GetTaskResult(merged.Merged, kw_only=True, frozen=True):
    """How a task stands.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    created_at: str
    """Time of creation, in ISO 8601."""
    last_updated_at: str
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    meta: dict[str, Any] | None = None
    """Extra data about the result."""
    poll_interval: int | None = None
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = None
    """More about the status, for people, e.g. why it failed."""


class HeaderMismatchError(merged.Merged, kw_only=True, frozen=True):
    """Error response -32020: HTTP headers are missing, malformed or contradict the body. HTTP
    status 400.

    Only in 2026-07-28.

    Source: basic/transports/streamable-http.
    """

    error: HeaderMismatchErrorError
    """The error."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class HeaderMismatchErrorError(merged.Merged, kw_only=True, frozen=True):
    """Error -32020.

    Only in 2026-07-28.

    Source: basic/transports/streamable-http.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32020] = -32020
    """Always -32020."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the server likes; untrusted."""


class Icon(merged.Merged, kw_only=True, frozen=True):
    """An image for user interfaces.

    Only in 2025-11-25, 2026-07-28.

    Source: basic/index.
    """

    src: str
    """`https:`, `http:` or `data:` URI of the image; the host should be trusted, and an SVG may
    contain scripts.
    """
    mime_type: str | None = None
    """Media type, for when the source states none or a vague one."""
    sizes: list[str] | None = None
    """Fitting sizes, each `WxH` in pixels or `any`; absent means any size."""
    theme: Literal["dark", "light"] | None = None
    """Background it suits: `light` or `dark`; absent means both."""


class Icons(merged.Merged, kw_only=True, frozen=True):
    """The icons that many objects have.

    Only in 2025-11-25, 2026-07-28.

    Source: basic/index.
    """

    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""


class ImageContent(merged.Merged, kw_only=True, frozen=True):
    """A picture for or from a model.

    Source: server/tools.
    """

    data: str
    """The bytes of the picture in base64."""
    mime_type: str
    """Media type, e.g. `image/png`; not every model takes every type."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    type: ClassVar[Literal["image"]] = "image"
    """Always `image`."""


class Implementation(merged.Merged, kw_only=True, frozen=True):
    """Name and version of a piece of software that speaks MCP.

    Source: basic/index.
    """

    name: str
    """Identifier of the software."""
    version: str
    """Version of the software, in no prescribed format."""
    description: str | None = None
    """What the software does, for people.

    Only in 2025-11-25, 2026-07-28.
    """
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care.

    Only in 2025-11-25, 2026-07-28.
    """
    title: str | None = None
    """Name shown to people; when absent, `name` is shown.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    website_url: str | None = None
    """Home page of the software.

    Only in 2025-11-25, 2026-07-28.
    """


class InitializeRequest(merged.Merged, kw_only=True, frozen=True):
    """First request of a client: it proposes a revision and says what the client can do.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: basic/lifecycle.
    """

    params: InitializeRequestParams
    """Proposed revision, capabilities and identity of the client."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["initialize"]] = "initialize"


class InitializeRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `initialize`.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: basic/lifecycle.
    """

    capabilities: ClientCapabilities
    """What the client can do, for the whole session."""
    client_info: Implementation
    """What software the client runs."""
    protocol_version: str
    """Newest revision that the client speaks; it may speak others."""
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """


class InitializeResult(merged.Merged, kw_only=True, frozen=True):
    """The server's side of the handshake: the agreed revision and what the server can do.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: basic/lifecycle.
    """

    capabilities: ServerCapabilities
    """What the server can do, for the whole session."""
    protocol_version: str
    """Revision the server chose; a client that cannot speak it disconnects."""
    server_info: Implementation
    """What software the server runs."""
    meta: dict[str, Any] | None = None
    """Extra data about the result."""
    instructions: str | None = None
    """Advice on using this server, meant for a model's prompt; untrusted text."""


class InitializedNotification(merged.Merged, kw_only=True, frozen=True):
    """The client has finished the handshake; normal requests may begin.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: basic/lifecycle.
    """

    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/initialized"]] = "notifications/initialized"
    params: NotificationParams | None = None
    """Metadata only."""


class InputRequiredResult(merged.Merged, kw_only=True, frozen=True):
    """Not an answer yet: the client gathers the input asked for and retries under a new id. It has
    questions, state or both.

    Only in 2026-07-28.

    Source: basic/patterns/mrtr.
    """

    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    input_requests: InputRequests | None = None
    """Questions to answer before the retry; only kinds that the client declared."""
    request_state: str | None = None
    """Opaque state to send back unchanged with the retry; the server must verify it on return."""
    result_type: str = "input_required"
    """Always `input_required` here."""


class InputResponseRequestParams(merged.Merged, kw_only=True, frozen=True):
    """The params of a request that may be a retry with input.

    Only in 2026-07-28.

    Source: basic/patterns/mrtr.
    """

    meta: dict[str, Any]
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    input_responses: InputResponses | None = None
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys."""
    request_state: str | None = None
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.
    """


class InternalError(merged.Merged, kw_only=True, frozen=True):
    """Error -32603: the receiver failed for a reason of its own.

    Only in 2026-07-28.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32603] = -32603
    """Always -32603."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the sender likes; untrusted."""


class InvalidParamsError(merged.Merged, kw_only=True, frozen=True):
    """Error -32602: the params are wrong, e.g. an unknown tool, prompt or resource, a missing
    argument or a bad cursor.

    Only in 2026-07-28.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32602] = -32602
    """Always -32602."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the sender likes; untrusted."""


class InvalidRequestError(merged.Merged, kw_only=True, frozen=True):
    """Error -32600: the JSON received is no valid JSON-RPC request.

    Only in 2026-07-28.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32600] = -32600
    """Always -32600."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the sender likes; untrusted."""


class JSONRPCError(merged.Merged, kw_only=True, frozen=True):
    """The answer to a request that failed.

    Only in 2024-11-05, 2025-03-26, 2025-06-18.

    Source: basic/index.
    """

    error: Error
    """What went wrong."""
    id: RequestId
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class JSONRPCErrorResponse(merged.Merged, kw_only=True, frozen=True):
    """The answer to a request that failed.

    Only in 2025-11-25, 2026-07-28.

    Source: basic/index.
    """

    error: Error
    """What went wrong."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class JSONRPCNotification(merged.Merged, kw_only=True, frozen=True):
    """A one-way JSON-RPC message, never answered.

    Source: basic/index.
    """

    method: str
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    params: dict[str, Any] | None = None
    """Arguments of the notification, by name; absent means none."""


class JSONRPCRequest(merged.Merged, kw_only=True, frozen=True):
    """A JSON-RPC message that expects exactly one response.

    Source: basic/index.
    """

    id: RequestId
    method: str
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    params: dict[str, Any] | None = None
    """Arguments of the method, always by name; absent means none."""


class JSONRPCResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The answer to a request that succeeded.

    Source: basic/index.
    """

    _other_names: ClassVar[tuple[str, ...]] = ("JSONRPCResponse",)
    id: RequestId
    result: dict[str, Any]
    """What the request produced; its shape depends on the method."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class LegacyTitledEnumSchema(merged.Merged, kw_only=True, frozen=True):
    """The old form field for a choice of one, with labels beside the values. Use
    `TitledSingleSelectEnumSchema`.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    _other_names: ClassVar[tuple[str, ...]] = ("EnumSchema",)
    enum: list[str]
    """Values to choose from."""
    default: str | None = None
    """Value to start with.

    Only in 2025-11-25, 2026-07-28.
    """
    description: str | None = None
    """Explanation of the form field."""
    enum_names: list[str] | None = None
    """Labels of the values, in the same order; not part of JSON Schema."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""


class ListPromptsRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks for a page of the server's prompts.

    Source: server/prompts.
    """

    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["prompts/list"]] = "prompts/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class ListPromptsResult(merged.Merged, kw_only=True, frozen=True):
    """A page of prompts.

    Source: server/prompts.
    """

    prompts: list[Prompt]
    """The prompts on this page."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] | None = None
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.

    Only in 2026-07-28.
    """
    next_cursor: str | None = None
    """Cursor of the next page; absent on the last page."""
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """
    ttl_ms: int | None = None
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.

    Only in 2026-07-28.
    """


class ListPromptsResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `ListPromptsResult`.

    Only in 2026-07-28.

    Source: server/prompts.
    """

    id: RequestId
    result: ListPromptsResult
    """The page of prompts."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class ListResourceTemplatesRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks for a page of the server's resource templates.

    Source: server/resources.
    """

    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["resources/templates/list"]] = "resources/templates/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class ListResourceTemplatesResult(merged.Merged, kw_only=True, frozen=True):
    """A page of resource templates.

    Source: server/resources.
    """

    resource_templates: list[ResourceTemplate]
    """The templates on this page."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] | None = None
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.

    Only in 2026-07-28.
    """
    next_cursor: str | None = None
    """Cursor of the next page; absent on the last page."""
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """
    ttl_ms: int | None = None
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.

    Only in 2026-07-28.
    """


class ListResourceTemplatesResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `ListResourceTemplatesResult`.

    Only in 2026-07-28.

    Source: server/resources.
    """

    id: RequestId
    result: ListResourceTemplatesResult
    """The page of templates."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class ListResourcesRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks for a page of the server's resources.

    Source: server/resources.
    """

    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["resources/list"]] = "resources/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class ListResourcesResult(merged.Merged, kw_only=True, frozen=True):
    """A page of resources.

    Source: server/resources.
    """

    resources: list[Resource]
    """The resources on this page."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] | None = None
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.

    Only in 2026-07-28.
    """
    next_cursor: str | None = None
    """Cursor of the next page; absent on the last page."""
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """
    ttl_ms: int | None = None
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.

    Only in 2026-07-28.
    """


class ListResourcesResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `ListResourcesResult`.

    Only in 2026-07-28.

    Source: server/resources.
    """

    id: RequestId
    result: ListResourcesResult
    """The page of resources."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class ListRootsRequest(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. Asks the client for its roots; travels inside an
    `InputRequiredResult`, without an id.

    Source: client/roots.
    """

    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: ListRootsRequestParams | RequestParams | None = None
    """Metadata only."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None


class ListRootsRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `roots/list`.

    Only in 2026-07-28.

    Source: client/roots.
    """

    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""


class ListRootsResult(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. The client's roots; travels inside the `inputResponses` of a
    retry.

    Source: client/roots.
    """

    roots: list[Root]
    """The roots; there are no pages."""
    meta: dict[str, Any] | None = None
    """Extra data about the result.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.
    """


class ListTasksRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks for a page of the peer's tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    id: RequestId
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["tasks/list"]] = "tasks/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class ListTasksResult(merged.Merged, kw_only=True, frozen=True):
    """A page of tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    tasks: list[Task]
    """The tasks on this page."""
    meta: dict[str, Any] | None = None
    """Extra data about the result."""
    next_cursor: str | None = None
    """Cursor of the next page; absent on the last page."""


class ListToolsRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks for a page of the server's tools.

    Source: server/tools.
    """

    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["tools/list"]] = "tools/list"
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class ListToolsResult(merged.Merged, kw_only=True, frozen=True):
    """A page of tools.

    Source: server/tools.
    """

    tools: list[Tool]
    """The tools on this page."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] | None = None
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.

    Only in 2026-07-28.
    """
    next_cursor: str | None = None
    """Cursor of the next page; absent on the last page."""
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """
    ttl_ms: int | None = None
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.

    Only in 2026-07-28.
    """


class ListToolsResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `ListToolsResult`.

    Only in 2026-07-28.

    Source: server/tools.
    """

    id: RequestId
    result: ListToolsResult
    """The page of tools."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class LoggingMessageNotification(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. A log message about one request, sent only if the metadata of
    that request sets a log level.

    Source: server/utilities/logging.
    """

    params: LoggingMessageNotificationParams
    """The log message."""
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/message"]] = "notifications/message"


class LoggingMessageNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. Params of `notifications/message`.

    Source: server/utilities/logging.
    """

    data: Any
    """What is logged: any JSON value; it must hold no secrets."""
    level: LoggingLevel
    """Severity of the message."""
    meta: dict[str, Any] | None = None
    """Extra data; on a subscription stream it names the subscription.

    Only in 2025-11-25, 2026-07-28.
    """
    logger: str | None = None
    """Name of the part of the server that speaks."""


class MethodNotFoundError(merged.Merged, kw_only=True, frozen=True):
    """Error -32601: the receiver has no such method, or did not advertise the capability it belongs
    to.

    Only in 2026-07-28.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32601] = -32601
    """Always -32601."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the sender likes; untrusted."""


class MissingRequiredClientCapabilityError(merged.Merged, kw_only=True, frozen=True):
    """Error response -32021: the request needs a capability that the client did not declare. HTTP
    status 400.

    Only in 2026-07-28.

    Source: basic/index.
    """

    error: MissingRequiredClientCapabilityErrorError
    """The error, with the missing capabilities."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class MissingRequiredClientCapabilityErrorError(merged.Merged, kw_only=True, frozen=True):
    """Error -32021.

    Only in 2026-07-28.

    Source: basic/index.
    """

    data: MissingRequiredClientCapabilityErrorErrorData
    """The missing capabilities."""
    message: str
    """One short sentence for people."""
    code: Literal[-32021] = -32021
    """Always -32021."""


class MissingRequiredClientCapabilityErrorErrorData(merged.Merged, kw_only=True, frozen=True):
    """What the client would have to declare.

    Only in 2026-07-28.

    Source: basic/index.
    """

    required_capabilities: ClientCapabilities
    """The capabilities that were missing from the request."""


class ModelHint(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. A wish for a particular model or family.

    Source: client/sampling.
    """

    name: str | None = None
    """Part of a model's name, such as `sonnet`; a client may substitute an equivalent of another
    provider.
    """


class ModelPreferences(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. What the server would like of the model; advice only.

    Source: client/sampling.
    """

    cost_priority: int | float | None = None
    """Weight of low cost, from 0 (irrelevant) to 1 (decisive)."""
    hints: list[ModelHint] | None = None
    """Names of suitable models, most wanted first; they outrank the numbers."""
    intelligence_priority: int | float | None = None
    """Weight of capability, from 0 (irrelevant) to 1 (decisive)."""
    speed_priority: int | float | None = None
    """Weight of low latency, from 0 (irrelevant) to 1 (decisive)."""


class Notification(merged.Merged, kw_only=True, frozen=True):
    """The part that all notifications have in common.

    Source: basic/index.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the notification, by name; absent means none."""


class NotificationMetaObject(merged.Merged, kw_only=True, frozen=True):
    """Metadata of a notification.

    Only in 2026-07-28.

    Source: basic/index.
    """

    subscription_id: RequestId | None = None
    """Subscription whose stream delivers this, by the id of its `subscriptions/listen`; absent
    outside such a stream.
    """


class NotificationParams(merged.Merged, kw_only=True, frozen=True):
    """The params that all notifications accept.

    Source: basic/index.
    """

    meta: dict[str, Any] | None = None
    """Extra data; on a subscription stream it names the subscription."""


class NumberSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for a number.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    type: Literal["integer", "number"]
    """`integer` or `number`."""
    default: int | float | None = None
    """Value to start with.

    Only in 2025-11-25, 2026-07-28.
    """
    description: str | None = None
    """Explanation of the form field."""
    maximum: int | float | None = None
    """Largest value allowed."""
    minimum: int | float | None = None
    """Smallest value allowed."""
    title: str | None = None
    """Label of the form field."""


class PaginatedRequest(merged.Merged, kw_only=True, frozen=True):
    """The part that all paged list requests have in common.

    Source: server/utilities/pagination.
    """

    method: str
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class PaginatedRequestParams(merged.Merged, kw_only=True, frozen=True):
    """The params of a paged list request.

    Source: server/utilities/pagination.
    """

    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.

    Only in 2025-11-25, 2026-07-28.
    """
    cursor: str | None = None
    """The `nextCursor` of the preceding page; absent asks for the first page. A bad one gives error
    -32602.
    """


class PaginatedResult(merged.Merged, kw_only=True, frozen=True):
    """The part that all pages have in common.

    Source: server/utilities/pagination.
    """

    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    next_cursor: str | None = None
    """Cursor of the next page; absent on the last page."""
    result_type: str | None = None
    """Tells how to read the result: `complete`, `input_required` or a value of an extension; absent
    (older servers) means `complete`.

    Only in 2026-07-28.
    """


class ParseError(merged.Merged, kw_only=True, frozen=True):
    """Error -32700: the bytes received are not JSON.

    Only in 2026-07-28.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32700] = -32700
    """Always -32700."""
    data: Any | UnsetType | None = UNSET
    """Details in any shape the sender likes; untrusted."""


class PingRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks either peer for a sign of life; it is answered at once with an empty result.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: basic/utilities/ping.
    """

    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["ping"]] = "ping"
    params: RequestParams | None = None
    """Metadata only."""


class ProgressNotification(merged.Merged, kw_only=True, frozen=True):
    """Reports how far a request has come whose sender supplied a progress token.

    Source: basic/patterns/progress.
    """

    params: ProgressNotificationParams
    """Which request, and how far."""
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/progress"]] = "notifications/progress"


class ProgressNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `notifications/progress`.

    Source: basic/patterns/progress.
    """

    progress: int | float
    """Amount done so far, in any unit; every notification has a higher value than the one before.
    """
    progress_token: ProgressToken
    """Token from the metadata of the request that this is about."""
    meta: dict[str, Any] | None = None
    """Extra data; on a subscription stream it names the subscription.

    Only in 2025-11-25, 2026-07-28.
    """
    message: str | None = None
    """What is happening right now, for people.

    Only in 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
    """
    total: int | float | None = None
    """Amount at completion, in the unit of `progress`; absent means unknown."""


class Prompt(merged.Merged, kw_only=True, frozen=True):
    """A ready-made message, or a template of one, that a user can pick.

    Source: server/prompts.
    """

    name: str
    """Identifier by which the prompt is fetched, unique within the server."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    arguments: list[PromptArgument] | None = None
    """Arguments of the template; absent means none."""
    description: str | None = None
    """What the prompt is for; untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care.

    Only in 2025-11-25, 2026-07-28.
    """
    title: str | None = None
    """Name shown to people; when absent, `name` is shown.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """


class PromptArgument(merged.Merged, kw_only=True, frozen=True):
    """An argument of a prompt.

    Source: server/prompts.
    """

    name: str
    """Identifier of the argument."""
    description: str | None = None
    """What the argument means, for people."""
    required: bool | None = None
    """The prompt cannot be fetched without it; absent means false."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """


class PromptListChangedNotification(merged.Merged, kw_only=True, frozen=True):
    """The server's prompts have changed; list them again. It comes only on a subscription with
    `promptsListChanged`.

    Source: server/prompts.
    """

    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/prompts/list_changed"]] = (
        "notifications/prompts/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""


class PromptMessage(merged.Merged, kw_only=True, frozen=True):
    """A message of a prompt.

    Source: server/prompts.
    """

    content: ContentBlock
    """What is said: one piece of content."""
    role: Role
    """Who speaks."""


class PromptReference(merged.Merged, kw_only=True, frozen=True):
    """Names a prompt whose argument is to be completed.

    Source: server/utilities/completion.
    """

    name: str
    """Name of the prompt, as listed."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"
    """Always `ref/prompt`."""


class ReadResourceRequest(merged.Merged, kw_only=True, frozen=True):
    """Reads one resource. An unknown URI is error -32602 (servers of earlier revisions answer
    -32002).

    Source: server/resources.
    """

    params: ReadResourceRequestParams
    """Which resource."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["resources/read"]] = "resources/read"


class ReadResourceRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `resources/read`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""
    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.

    Only in 2025-11-25, 2026-07-28.
    """
    input_responses: InputResponses | None = None
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys.

    Only in 2026-07-28.
    """
    request_state: str | None = None
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.

    Only in 2026-07-28.
    """


class ReadResourceResult(merged.Merged, kw_only=True, frozen=True):
    """What was read.

    Source: server/resources.
    """

    contents: list[ReadResourceResultContents]
    """The contents; several when the URI names a collection."""
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] | None = None
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.

    Only in 2026-07-28.
    """
    result_type: str | None = None
    """`complete`; absent (older servers) means the same.

    Only in 2026-07-28.
    """
    ttl_ms: int | None = None
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.

    Only in 2026-07-28.
    """


class ReadResourceResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of the answer to `resources/read`.

    Only in 2026-07-28.

    Source: server/resources.
    """

    id: RequestId
    result: ReadResourceResultResponseResult
    """What was read, or a demand for more input."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class RelatedTaskMetadata(merged.Merged, kw_only=True, frozen=True):
    """Says to which task a message belongs; the value of `io.modelcontextprotocol/related-task` in
    `_meta`.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    task_id: str
    """Identifier of the task."""


class Request(merged.Merged, kw_only=True, frozen=True):
    """The part that all requests have in common.

    Source: basic/index.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the method, by name; absent means none."""


class RequestMetaObject(merged.Merged, kw_only=True, frozen=True):
    """Metadata of a request: it carries everything that a handshake settled in earlier revisions.

    Source: basic/index.
    """

    client_capabilities: ClientCapabilities | None = None
    """Required: what the client can do for this one request; servers keep no memory of earlier
    ones.

    Only in 2026-07-28.
    """
    client_info: Implementation | None = None
    """What software the client runs; its own claim, for display and logs only.

    Only in 2026-07-28.
    """
    log_level: LoggingLevel | None = None
    """Lowest severity of log messages wanted for this request; absent forbids them. Deprecated with
    logging.

    Only in 2026-07-28.
    """
    protocol_version: str | None = None
    """Required: revision the request follows; over HTTP it must equal the `MCP-Protocol-Version`
    header.

    Only in 2026-07-28.
    """
    progress_token: ProgressToken | None = None
    """Asks for progress notifications, which will repeat this token; the receiver may send none."""


class RequestParams(merged.Merged, kw_only=True, frozen=True):
    """The params that all requests accept.

    Source: basic/index.
    """

    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """


class Resource(merged.Merged, kw_only=True, frozen=True):
    """Data that the server lets a client read.

    Source: server/resources.
    """

    name: str
    """Identifier of the resource; shown to people only when no title exists."""
    uri: str
    """Address of the resource."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the resource holds; may reach a model, so treat it as untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care.

    Only in 2025-11-25, 2026-07-28.
    """
    mime_type: str | None = None
    """Media type of the contents; absent means unknown."""
    size: int | None = None
    """Size in bytes before any encoding; absent means unknown."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """


class ResourceContents(merged.Merged, kw_only=True, frozen=True):
    """The part that all contents of resources have in common.

    Source: server/resources.
    """

    uri: str
    """Address of the (sub-)resource that this is."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    mime_type: str | None = None
    """Media type; absent means unknown."""


class ResourceLink(merged.Merged, kw_only=True, frozen=True):
    """A pointer to a resource, which the client may read. `resources/list` need not mention it.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: server/tools.
    """

    name: str
    """Identifier of the resource; shown to people only when no title exists."""
    uri: str
    """Address of the resource."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the resource holds; may reach a model, so treat it as untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care.

    Only in 2025-11-25, 2026-07-28.
    """
    mime_type: str | None = None
    """Media type of the contents; absent means unknown."""
    size: int | None = None
    """Size in bytes before any encoding; absent means unknown."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""
    type: ClassVar[Literal["resource_link"]] = "resource_link"
    """Always `resource_link`."""


class ResourceListChangedNotification(merged.Merged, kw_only=True, frozen=True):
    """The server's resources have changed; list them again. It comes only on a subscription with
    `resourcesListChanged`.

    Source: server/resources.
    """

    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/resources/list_changed"]] = (
        "notifications/resources/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""


class ResourceReference(merged.Merged, kw_only=True, frozen=True):
    """Names a resource template whose variable is to be completed.

    Only in 2024-11-05, 2025-03-26.

    Source: server/utilities/completion.
    """

    uri: str
    """URI or RFC 6570 template, as listed."""
    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    """Always `ref/resource`."""


class ResourceRequestParams(merged.Merged, kw_only=True, frozen=True):
    """The params of a request about one resource.

    Only in 2025-11-25, 2026-07-28.

    Source: server/resources.
    """

    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""
    meta: dict[str, Any] | None = None
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """


class ResourceTemplate(merged.Merged, kw_only=True, frozen=True):
    """A pattern of URIs, each of which names a readable resource.

    Source: server/resources.
    """

    name: str
    """Identifier of the template; shown to people only when no title exists."""
    uri_template: str
    """RFC 6570 template; filling in its variables gives a URI."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the matching resources hold; may reach a model, so treat it as untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care.

    Only in 2025-11-25, 2026-07-28.
    """
    mime_type: str | None = None
    """Media type, if all matching resources share one."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """


class ResourceTemplateReference(merged.Merged, kw_only=True, frozen=True):
    """Names a resource template whose variable is to be completed.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: server/utilities/completion.
    """

    uri: str
    """URI or RFC 6570 template, as listed."""
    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    """Always `ref/resource`."""


class ResourceUpdatedNotification(merged.Merged, kw_only=True, frozen=True):
    """A resource named in `resourceSubscriptions` has changed; read it again.

    Source: server/resources.
    """

    params: ResourceUpdatedNotificationParams
    """Which resource."""
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/resources/updated"]] = "notifications/resources/updated"


class ResourceUpdatedNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `notifications/resources/updated`.

    Source: server/resources.
    """

    uri: str
    """Address of what changed; possibly a part of the resource subscribed to."""
    meta: dict[str, Any] | None = None
    """Extra data; on a subscription stream it names the subscription.

    Only in 2025-11-25, 2026-07-28.
    """


class ResultMetaObject(merged.Merged, kw_only=True, frozen=True):
    """Metadata of a result.

    Only in 2026-07-28.

    Source: basic/index.
    """

    server_info: Implementation | None = None
    """What software the server runs; its own claim, for display and logs only."""


class ResultObject(merged.Merged, kw_only=True, frozen=True):
    """The part that all results have in common; methods add fields of their own.

    Only in 2026-07-28.

    Source: basic/index.
    """

    _other_names: ClassVar[tuple[str, ...]] = ("Result",)
    meta: dict[str, Any] | None = None
    """Extra data about the result; servers should name their software here."""
    result_type: str = "complete"
    """Tells how to read the result: `complete`, `input_required` or a value of an extension; absent
    (older servers) means `complete`.
    """


class Root(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. A directory or file on which the client wants the server to
    work. Guidance, not access control.

    Source: client/roots.
    """

    uri: str
    """Address of the root; always a `file://` URI so far."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    name: str | None = None
    """Name shown to people."""


class RootsListChangedNotification(merged.Merged, kw_only=True, frozen=True):
    """The client's roots have changed; ask for them again.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: client/roots.
    """

    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/roots/list_changed"]] = (
        "notifications/roots/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""


class SamplingMessage(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. A message to or from a model.

    Source: client/sampling.
    """

    content: SamplingMessageContent
    """What is said: one piece or a list; tool results stand alone in a user message."""
    role: Role
    """Who speaks."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-11-25, 2026-07-28.
    """


class ServerCapabilities(merged.Merged, kw_only=True, frozen=True):
    """What a server can do. An absent field means the feature is unavailable; unknown fields are
    allowed.

    Source: server/discover.
    """

    completions: dict[str, Any] | None = None
    """The server completes arguments; an empty object.

    Only in 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
    """
    experimental: dict[str, dict[str, Any]] | None = None
    """Non-standard features, by name, each with settings of its own."""
    extensions: dict[str, JSONObject] | None = None
    """Protocol extensions the server supports, by prefixed identifier; an empty object means no
    settings.

    Only in 2026-07-28.
    """
    logging: dict[str, Any] | None = None
    """The server emits log messages; an empty object. Deprecated."""
    prompts: ServerCapabilitiesPrompts | None = None
    """The server has prompts."""
    resources: ServerCapabilitiesResources | None = None
    """The server has resources."""
    tools: ServerCapabilitiesTools | None = None
    """The server has tools."""
    tasks: ServerCapabilitiesTasks | None = None
    """The server runs some requests as tasks.

    Only in 2025-11-25.
    """


class ServerCapabilitiesPrompts(merged.Merged, kw_only=True, frozen=True):
    """What the server offers about prompts.

    Source: server/prompts.
    """

    list_changed: bool | None = None
    """The server announces changes of its prompts; absent means false."""


class ServerCapabilitiesResources(merged.Merged, kw_only=True, frozen=True):
    """What the server offers about resources.

    Source: server/resources.
    """

    list_changed: bool | None = None
    """The server announces changes of its resources; absent means false."""
    subscribe: bool | None = None
    """Clients may name single resources in `subscriptions/listen`; absent means false."""


class ServerCapabilitiesTasks(merged.Merged, kw_only=True, frozen=True):
    """What the server supports of tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    cancel: dict[str, Any] | None = None
    """The server answers `tasks/cancel`; an empty object."""
    list_: dict[str, Any] | None = None
    """The server answers `tasks/list`; an empty object."""
    requests: ServerCapabilitiesTasksRequests | None = None
    """Requests that the server runs as tasks; those not named are never tasks."""


class ServerCapabilitiesTasksRequests(merged.Merged, kw_only=True, frozen=True):
    """Requests that the server runs as tasks, by feature.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    tools: ServerCapabilitiesTasksRequestsTools | None = None
    """Tool requests that may be tasks."""


class ServerCapabilitiesTasksRequestsTools(merged.Merged, kw_only=True, frozen=True):
    """Tool requests that the server runs as tasks.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    call: dict[str, Any] | None = None
    """`tools/call` may be a task, subject to each tool's `taskSupport`; an empty object."""


class ServerCapabilitiesTools(merged.Merged, kw_only=True, frozen=True):
    """What the server offers about tools.

    Source: server/tools.
    """

    list_changed: bool | None = None
    """The server announces changes of its tools; absent means false."""


class SetLevelRequest(merged.Merged, kw_only=True, frozen=True):
    """Sets the lowest severity of log messages that the client wants.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: server/utilities/logging.
    """

    params: SetLevelRequestParams
    """The severity."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["logging/setLevel"]] = "logging/setLevel"


class SetLevelRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `logging/setLevel`.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: server/utilities/logging.
    """

    level: LoggingLevel
    """Lowest severity to send; everything graver is sent too."""
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """


class StringSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for text.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    default: str | None = None
    """Value to start with.

    Only in 2025-11-25, 2026-07-28.
    """
    description: str | None = None
    """Explanation of the form field."""
    format: Literal["date", "date-time", "email", "uri"] | None = None
    """Kind of text: `email`, `uri`, `date` or `date-time`; absent means any."""
    max_length: int | None = None
    """Most characters."""
    min_length: int | None = None
    """Fewest characters."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""


class SubscribeRequest(merged.Merged, kw_only=True, frozen=True):
    """Asks to be told when one resource changes; needs the `subscribe` capability.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: server/resources.
    """

    params: SubscribeRequestParams
    """Which resource."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["resources/subscribe"]] = "resources/subscribe"


class SubscribeRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `resources/subscribe`.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: server/resources.
    """

    uri: str
    """Address of the resource to watch, of any scheme."""
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """


class SubscriptionFilter(merged.Merged, kw_only=True, frozen=True):
    """Which notifications a subscription delivers. What is absent or false is not delivered.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    prompts_list_changed: bool | None = None
    """Announce changes of the prompts."""
    resource_subscriptions: list[str] | None = None
    """URIs of resources whose updates are announced; replaces `resources/subscribe`."""
    resources_list_changed: bool | None = None
    """Announce changes of the resources."""
    tools_list_changed: bool | None = None
    """Announce changes of the tools."""


class SubscriptionsAcknowledgedNotification(merged.Merged, kw_only=True, frozen=True):
    """First message of a subscription: the server says what it will deliver.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    params: SubscriptionsAcknowledgedNotificationParams
    """What will be delivered."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["notifications/subscriptions/acknowledged"]] = (
        "notifications/subscriptions/acknowledged"
    )


class SubscriptionsAcknowledgedNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `notifications/subscriptions/acknowledged`.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    notifications: SubscriptionFilter
    """The kinds of notification granted; those the server lacks are left out."""
    meta: dict[str, Any] | None = None
    """Names the subscription."""


class SubscriptionsListenRequest(merged.Merged, kw_only=True, frozen=True):
    """Opens a stream of notifications that lasts until either side ends it.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    id: RequestId
    params: SubscriptionsListenRequestParams
    """What to be told about."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["subscriptions/listen"]] = "subscriptions/listen"


class SubscriptionsListenRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `subscriptions/listen`.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    meta: dict[str, Any]
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    notifications: SubscriptionFilter
    """The kinds of notification wanted; no others may be sent."""


class SubscriptionsListenResult(merged.Merged, kw_only=True, frozen=True):
    """The server ended the subscription in good order; a lost connection leaves no result.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    meta: dict[str, Any]
    """Names the subscription that ended."""
    result_type: str = "complete"
    """`complete`; absent (older servers) means the same."""


class SubscriptionsListenResultMetaObject(merged.Merged, kw_only=True, frozen=True):
    """Metadata of the result that ends a subscription.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    subscription_id: RequestId
    """Subscription that has ended, by the id of its `subscriptions/listen`; equal to the id of this
    response.
    """
    server_info: Implementation | None = None
    """What software the server runs; its own claim, for display and logs only."""


class SubscriptionsListenResultResponse(merged.Merged, kw_only=True, frozen=True):
    """The envelope of a `SubscriptionsListenResult`.

    Only in 2026-07-28.

    Source: basic/patterns/subscriptions.
    """

    id: RequestId
    result: SubscriptionsListenResult
    """The end of the subscription."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class Task(merged.Merged, kw_only=True, frozen=True):
    """A request that is carried out in the background, and how it stands.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    created_at: str
    """Time of creation, in ISO 8601."""
    last_updated_at: str
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    poll_interval: int | None = None
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = None
    """More about the status, for people, e.g. why it failed."""


class TaskAugmentedRequestParams(merged.Merged, kw_only=True, frozen=True):
    """The params of a request that may be carried out as a task.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data."""
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.
    """


class TaskMetadata(merged.Merged, kw_only=True, frozen=True):
    """Asks for a request to be carried out as a task.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    ttl: int | None = None
    """Milliseconds, counted from creation, for which the task should be kept; the receiver may
    decide otherwise.
    """


class TaskStatusNotification(merged.Merged, kw_only=True, frozen=True):
    """The status of a task has changed. It may never come, so keep polling.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    params: TaskStatusNotificationParams
    """The task as it now stands."""
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[Literal["notifications/tasks/status"]] = "notifications/tasks/status"


class TaskStatusNotificationParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `notifications/tasks/status`: the whole task.

    Only in 2025-11-25.

    Source: basic/utilities/tasks.
    """

    created_at: str
    """Time of creation, in ISO 8601."""
    last_updated_at: str
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    meta: dict[str, Any] | None = None
    """Extra data about the notification."""
    poll_interval: int | None = None
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = None
    """More about the status, for people, e.g. why it failed."""


class TextContent(merged.Merged, kw_only=True, frozen=True):
    """Text for or from a model.

    Source: server/tools.
    """

    text: str
    """The text itself."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    type: ClassVar[Literal["text"]] = "text"
    """Always `text`."""


class TextResourceContents(merged.Merged, kw_only=True, frozen=True):
    """Contents of a resource as text.

    Source: server/resources.
    """

    text: str
    """The text; never binary data in disguise."""
    uri: str
    """Address of the (sub-)resource that this is."""
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    mime_type: str | None = None
    """Media type; absent means unknown."""


class TitledMultiSelectEnumSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for a choice of several, shown by label.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    items: TitledMultiSelectEnumSchemaItems
    """The options."""
    default: list[str] | None = None
    """Values to start with."""
    description: str | None = None
    """Explanation of the form field."""
    max_items: int | None = None
    """Most options to choose; absent means no upper bound."""
    min_items: int | None = None
    """Fewest options to choose; absent means no lower bound."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["array"]] = "array"
    """Always `array`."""


class TitledMultiSelectEnumSchemaItems(merged.Merged, kw_only=True, frozen=True):
    """The options of a choice of several, with labels.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    any_of: list[TitledMultiSelectEnumSchemaItemsAnyOf]
    """The options, each with a label."""


class TitledMultiSelectEnumSchemaItemsAnyOf(merged.Merged, kw_only=True, frozen=True):
    """An option of a choice of several.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    const: str
    """Value sent back."""
    title: str
    """Label shown."""


class TitledSingleSelectEnumSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for a choice of one, shown by label.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    one_of: list[TitledSingleSelectEnumSchemaOneOf]
    """The options, each with a label."""
    default: str | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""


class TitledSingleSelectEnumSchemaOneOf(merged.Merged, kw_only=True, frozen=True):
    """An option of a choice of one.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    const: str
    """Value sent back."""
    title: str
    """Label shown."""


class Tool(merged.Merged, kw_only=True, frozen=True):
    """A function that the server lets a model call.

    Source: server/tools.
    """

    input_schema: dict[str, Any]
    """JSON Schema (2020-12 unless it says otherwise) of the arguments, with root type `object`;
    `x-mcp-header` copies an argument to an HTTP header.
    """
    name: str
    """Identifier by which the tool is called, unique within the server; should be 1 to 128
    characters of `A-Za-z0-9_-.`.
    """
    meta: dict[str, Any] | None = None
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    annotations: ToolAnnotations | None = None
    """Hints about the tool's behaviour; not to be trusted unless the server is.

    Only in 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
    """
    description: str | None = None
    """What the tool does, for people and models; untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care.

    Only in 2025-11-25, 2026-07-28.
    """
    output_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12 unless it says otherwise) of `structuredContent`, of any type; absent
    means none is promised.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    title: str | None = None
    """Name shown to people; when absent, `annotations.title` is shown, then `name`.

    Only in 2025-06-18, 2025-11-25, 2026-07-28.
    """
    execution: ToolExecution | None = None
    """Whether the tool runs as a task.

    Only in 2025-11-25.
    """


class ToolAnnotations(merged.Merged, kw_only=True, frozen=True):
    """Hints about a tool. Nothing vouches for them: never decide on them when the server is
    untrusted.

    Only in 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.

    Source: server/tools.
    """

    destructive_hint: bool | None = None
    """The tool may delete or overwrite rather than only add; default true; moot if read-only."""
    idempotent_hint: bool | None = None
    """A repeated call with equal arguments changes nothing more; default false; moot if read-only.
    """
    open_world_hint: bool | None = None
    """The tool reaches out to an unbounded world, such as the web; default true."""
    read_only_hint: bool | None = None
    """The tool changes nothing; default false."""
    title: str | None = None
    """Name shown to people."""


class ToolChoice(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. Whether the model may or must use tools.

    Only in 2025-11-25, 2026-07-28.

    Source: client/sampling.
    """

    mode: Literal["auto", "none", "required"] | None = None
    """`auto`: as the model sees fit (default); `required`: at least one; `none`: no tool."""


class ToolExecution(merged.Merged, kw_only=True, frozen=True):
    """How a tool may be run.

    Only in 2025-11-25.

    Source: server/tools.
    """

    task_support: Literal["forbidden", "optional", "required"] | None = None
    """Calls as tasks are `forbidden` (default), `optional` or `required`; only binding if the
    server declares task support.
    """


class ToolListChangedNotification(merged.Merged, kw_only=True, frozen=True):
    """The server's tools have changed; list them again. It comes only on a subscription with
    `toolsListChanged`.

    Source: server/tools.
    """

    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["notifications/tools/list_changed"]] = (
        "notifications/tools/list_changed"
    )
    params: NotificationParams | None = None
    """Metadata only."""


class ToolResultContent(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. What a tool returned to the model that demanded it.

    Only in 2025-11-25, 2026-07-28.

    Source: client/sampling.
    """

    content: list[ContentBlock]
    """The output, piece by piece."""
    tool_use_id: str
    """The `id` of the `ToolUseContent` that this answers."""
    meta: dict[str, Any] | None = None
    """Extra data; clients should keep it in later requests, so that caches work."""
    is_error: bool | None = None
    """The tool failed; absent means false."""
    structured_content: Any | UnsetType | None = UNSET
    """The output as any JSON value, null included, that fits the tool's `outputSchema`."""
    type: ClassVar[Literal["tool_result"]] = "tool_result"
    """Always `tool_result`."""


class ToolUseContent(merged.Merged, kw_only=True, frozen=True):
    """Deprecated in this revision. A model's demand to run a tool.

    Only in 2025-11-25, 2026-07-28.

    Source: client/sampling.
    """

    id: str
    """Identifies this use, for the matching result."""
    input: dict[str, Any]
    """Arguments that fit the tool's `inputSchema`."""
    name: str
    """Name of the tool."""
    meta: dict[str, Any] | None = None
    """Extra data; clients should keep it in later requests, so that caches work."""
    type: ClassVar[Literal["tool_use"]] = "tool_use"
    """Always `tool_use`."""


class URLElicitationRequiredError(merged.Merged, kw_only=True, frozen=True):
    """Error response -32042: the request cannot go on before the user has visited some web pages.

    Only in 2025-11-25.

    Source: client/elicitation.
    """

    error: URLElicitationRequiredErrorError
    """The error, with the elicitations."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class URLElicitationRequiredErrorError(merged.Merged, kw_only=True, frozen=True):
    """Error -32042.

    Only in 2025-11-25.

    Source: client/elicitation.
    """

    data: URLElicitationRequiredErrorErrorData
    """The elicitations to complete first."""
    message: str
    """One short sentence for people."""
    code: Literal[-32042] = -32042
    """Always -32042."""


class URLElicitationRequiredErrorErrorData(merged.Merged, kw_only=True, frozen=True):
    """What has to happen before a retry.

    Only in 2025-11-25.

    Source: client/elicitation.
    """

    elicitations: list[ElicitRequestURLParams]
    """Elicitations to complete, all in URL mode."""


class UnsubscribeRequest(merged.Merged, kw_only=True, frozen=True):
    """Ends a subscription to one resource.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: server/resources.
    """

    params: UnsubscribeRequestParams
    """Which resource."""
    id: RequestId | None = None
    jsonrpc: Literal["2.0"] | None = None
    method: ClassVar[Literal["resources/unsubscribe"]] = "resources/unsubscribe"


class UnsubscribeRequestParams(merged.Merged, kw_only=True, frozen=True):
    """Params of `resources/unsubscribe`.

    Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

    Source: server/resources.
    """

    uri: str
    """Address of the resource that is watched."""
    meta: dict[str, Any] | None = None
    """Request metadata: the progress token and any extra data.

    Only in 2025-11-25.
    """


class UnsupportedProtocolVersionError(merged.Merged, kw_only=True, frozen=True):
    """Error response -32022: the server does not speak the revision of the request. HTTP status
    400.

    Only in 2026-07-28.

    Source: basic/versioning.
    """

    error: UnsupportedProtocolVersionErrorError
    """The error, with the revisions on offer."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""
    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"


class UnsupportedProtocolVersionErrorError(merged.Merged, kw_only=True, frozen=True):
    """Error -32022.

    Only in 2026-07-28.

    Source: basic/versioning.
    """

    data: UnsupportedProtocolVersionErrorErrorData
    """The revision asked for and those on offer."""
    message: str
    """One short sentence for people."""
    code: Literal[-32022] = -32022
    """Always -32022."""


class UnsupportedProtocolVersionErrorErrorData(merged.Merged, kw_only=True, frozen=True):
    """What a client needs to pick another revision.

    Only in 2026-07-28.

    Source: basic/versioning.
    """

    requested: str
    """Revision named by the request."""
    supported: list[str]
    """Revisions the server speaks; retry with one of them."""


class UntitledMultiSelectEnumSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for a choice of several, shown by value.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    items: UntitledMultiSelectEnumSchemaItems
    """The options."""
    default: list[str] | None = None
    """Values to start with."""
    description: str | None = None
    """Explanation of the form field."""
    max_items: int | None = None
    """Most options to choose; absent means no upper bound."""
    min_items: int | None = None
    """Fewest options to choose; absent means no lower bound."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["array"]] = "array"
    """Always `array`."""


class UntitledMultiSelectEnumSchemaItems(merged.Merged, kw_only=True, frozen=True):
    """The options of a choice of several, without labels.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    enum: list[str]
    """Values to choose from."""
    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""


class UntitledSingleSelectEnumSchema(merged.Merged, kw_only=True, frozen=True):
    """A form field for a choice of one, shown by value.

    Only in 2025-11-25, 2026-07-28.

    Source: client/elicitation.
    """

    enum: list[str]
    """Values to choose from."""
    default: str | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    title: str | None = None
    """Label of the form field."""
    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""


CallToolResultResponseResult: TypeAlias = InputRequiredResult | CallToolResult | CreateTaskResult
"""Answer to `tools/call`: the tool's result, or a demand for more input.

Source: server/tools.
"""
ClientNotification: TypeAlias = (
    CancelledNotification
    | InitializedNotification
    | ProgressNotification
    | TaskStatusNotification
    | RootsListChangedNotification
)
"""The one notification left to clients: cancellation.

Source: basic/index.
"""
ClientRequest: TypeAlias = (
    DiscoverRequest
    | ListResourcesRequest
    | ListResourceTemplatesRequest
    | ReadResourceRequest
    | SubscriptionsListenRequest
    | ListPromptsRequest
    | GetPromptRequest
    | ListToolsRequest
    | CallToolRequest
    | CompleteRequest
    | InitializeRequest
    | PingRequest
    | SubscribeRequest
    | UnsubscribeRequest
    | GetTaskRequest
    | GetTaskPayloadRequest
    | CancelTaskRequest
    | ListTasksRequest
    | SetLevelRequest
)
"""Every request that a client may send.

Source: basic/index.
"""
Result: TypeAlias = ResultObject | dict[str, Any]
"""The part that all results have in common; methods add fields of their own.

Source: basic/index.
"""
CompleteRequestParamsRef: TypeAlias = (
    PromptReference | ResourceTemplateReference | ResourceReference
)
"""What the argument belongs to: a prompt or a resource template.

Source: server/utilities/completion.
"""
ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
)
"""One piece of content in a prompt or tool result: text, image, audio, resource link or embedded
resource.

Source: server/tools.
"""
SamplingMessageContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
)
"""One piece of content in a conversation with a model: text, image, audio, tool use or tool result.

Source: client/sampling.
"""
CreateMessageResultResponseResult: TypeAlias = CreateMessageResult | CreateTaskResult
"""What may answer a sampling request: the message, or a task that will have it.

Source: client/sampling.
"""
Cursor: TypeAlias = str
"""Marks a position in a paged list; opaque, not to be parsed or changed; the empty string is a
valid one.

Source: server/utilities/pagination.
"""
ElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams
"""Params of `elicitation/create`, in form mode or URL mode; without `mode` it is form mode.

Source: client/elicitation.
"""
ElicitResultContent: TypeAlias = list[str] | str | int | float | bool
"""Value of one form field: a string, number, boolean, or the chosen strings of a multiple choice.

Source: client/elicitation.
"""
ElicitResultResponseResult: TypeAlias = ElicitResult | CreateTaskResult
"""What may answer an elicitation: the user's reaction, or a task that will have it.

Source: client/elicitation.
"""
EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents
"""Contents of an embedded resource, as text or as bytes.

Source: server/tools.
"""
EnumSchema: TypeAlias = (
    UntitledSingleSelectEnumSchema
    | TitledSingleSelectEnumSchema
    | UntitledMultiSelectEnumSchema
    | TitledMultiSelectEnumSchema
    | LegacyTitledEnumSchema
)
"""A form field for a choice: one or several, with or without labels.

Source: client/elicitation.
"""
GetPromptResultResponseResult: TypeAlias = InputRequiredResult | GetPromptResult
"""Answer to `prompts/get`: the prompt, or a demand for more input.

Source: server/prompts.
"""
GetTaskPayloadResult: TypeAlias = dict[str, Any]
"""The real result of a task: what its request would have returned, e.g. a `CallToolResult`.

Source: basic/utilities/tasks.
"""
GetTaskPayloadResultResponseResult: TypeAlias = CreateMessageResult | ElicitResult
"""What a finished task had to give: the result of the request that it was made for.

Source: basic/utilities/tasks.
"""
InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest
"""A question that a server puts to a client in a result: elicitation, sampling or roots.

Source: basic/patterns/mrtr.
"""
InputResponse: TypeAlias = CreateMessageResult | ListRootsResult | ElicitResult
"""The client's answer to one input request.

Source: basic/patterns/mrtr.
"""
JSONArray: TypeAlias = list[Any]
"""A JSON array with any content.

Source: basic/index.
"""
JSONObject: TypeAlias = dict[str, Any]
"""A JSON object with any content.

Source: basic/index.
"""
JSONRPCBatchRequestItem: TypeAlias = JSONRPCRequest | JSONRPCNotification
"""A request or a notification inside a batch.

Source: basic/index.
"""
JSONRPCResponse: TypeAlias = JSONRPCResultResponse | JSONRPCErrorResponse
"""The answer to a request: a result or an error.

Source: basic/index.
"""
JSONValue: TypeAlias = Any
"""Any JSON value.

Source: basic/index.
"""
LoggingLevel: TypeAlias = Literal[
    "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"
]
"""Deprecated in this revision. Severity of a log message (RFC 5424), rising: debug, info, notice,
warning, error, critical, alert, emergency.

Source: server/utilities/logging.
"""
MetaObject: TypeAlias = dict[str, Any]
"""Extra data attached to a message or object. A key is an optional reverse-DNS prefix with a slash,
then a name.

Source: basic/index.
"""
MultiSelectEnumSchema: TypeAlias = UntitledMultiSelectEnumSchema | TitledMultiSelectEnumSchema
"""A form field for a choice of several, with or without labels.

Source: client/elicitation.
"""
ProgressToken: TypeAlias = str | int
"""Ties progress notifications to a request: a string or an integer, unique among the sender's
active requests.

Source: basic/patterns/progress.
"""
ReadResourceResultContents: TypeAlias = TextResourceContents | BlobResourceContents
"""One item that was read, as text or as bytes.

Source: server/resources.
"""
ReadResourceResultResponseResult: TypeAlias = InputRequiredResult | ReadResourceResult
"""Answer to `resources/read`: what was read, or a demand for more input.

Source: server/resources.
"""
RequestId: TypeAlias = str | int
"""Identifies a request: a string or an integer, never null, unique among the sender's open
requests.

Source: basic/index.
"""
ResultType: TypeAlias = str
"""How a result is to be read: `complete` is final, `input_required` asks for more input first;
extensions may add values.

Source: basic/index.
"""
Role: TypeAlias = Literal["assistant", "user"]
"""Who speaks in a conversation: `user` or `assistant`.

Source: basic/index.
"""
ServerNotification: TypeAlias = (
    CancelledNotification
    | ProgressNotification
    | ResourceListChangedNotification
    | SubscriptionsAcknowledgedNotification
    | ResourceUpdatedNotification
    | PromptListChangedNotification
    | ToolListChangedNotification
    | LoggingMessageNotification
    | TaskStatusNotification
    | ElicitationCompleteNotification
)
"""Every notification that a server may send.

Source: basic/index.
"""
ServerRequest: TypeAlias = (
    PingRequest
    | GetTaskRequest
    | GetTaskPayloadRequest
    | CancelTaskRequest
    | ListTasksRequest
    | CreateMessageRequest
    | ListRootsRequest
    | ElicitRequest
)
"""Every request that a server may send.

Source: basic/index.
"""
SingleSelectEnumSchema: TypeAlias = UntitledSingleSelectEnumSchema | TitledSingleSelectEnumSchema
"""A form field for a choice of one, with or without labels.

Source: client/elicitation.
"""
TaskStatus: TypeAlias = Literal["cancelled", "completed", "failed", "input_required", "working"]
"""How a task stands: `working` or `input_required`, then for good `completed`, `failed` or
`cancelled`.

Source: basic/utilities/tasks.
"""
ClientResult: TypeAlias = (
    Result
    | GetTaskResult
    | CancelTaskResult
    | ListTasksResult
    | CreateMessageResult
    | ListRootsResult
    | ElicitResult
    | dict[str, Any]
)
"""Unused: clients receive no requests any more, so they return no results.

Source: basic/index.
"""
EmptyResult: TypeAlias = Result
"""A result that only confirms success.

Source: basic/index.
"""
ServerResult: TypeAlias = (
    Result
    | InputRequiredResult
    | DiscoverResult
    | ListResourcesResult
    | ListResourceTemplatesResult
    | ReadResourceResult
    | SubscriptionsListenResult
    | ListPromptsResult
    | GetPromptResult
    | ListToolsResult
    | CallToolResult
    | CompleteResult
    | InitializeResult
    | GetTaskResult
    | CancelTaskResult
    | ListTasksResult
    | dict[str, Any]
)
"""Every result that a server may return.

Source: basic/index.
"""
CreateMessageResultContent: TypeAlias = (
    TextContent
    | ImageContent
    | AudioContent
    | ToolUseContent
    | ToolResultContent
    | list[SamplingMessageContentBlock]
)
"""What the model said: one piece of content or a list of them.

Source: client/sampling.
"""
SamplingMessageContent: TypeAlias = (
    TextContent
    | ImageContent
    | AudioContent
    | ToolUseContent
    | ToolResultContent
    | list[SamplingMessageContentBlock]
)
"""What a message says: one piece of content or a list of them.

Source: client/sampling.
"""
PrimitiveSchemaDefinition: TypeAlias = (
    StringSchema
    | NumberSchema
    | BooleanSchema
    | UntitledSingleSelectEnumSchema
    | TitledSingleSelectEnumSchema
    | UntitledMultiSelectEnumSchema
    | TitledMultiSelectEnumSchema
    | LegacyTitledEnumSchema
    | EnumSchema
)
"""Schema of one form field: text, number, yes or no, or a choice.

Source: client/elicitation.
"""
InputRequests: TypeAlias = dict[str, InputRequest]
"""Questions of a server to a client, under keys that the server chose.

Source: basic/patterns/mrtr.
"""
InputResponses: TypeAlias = dict[str, InputResponse]
"""The client's answers, each under the key of its input request.

Source: basic/patterns/mrtr.
"""
JSONRPCBatchRequest: TypeAlias = list[JSONRPCBatchRequestItem]
"""Several requests and notifications sent as one JSON array; every receiver must accept it.

Source: basic/index.
"""
JSONRPCBatchResponseItem: TypeAlias = JSONRPCResponse | JSONRPCError
"""An answer inside a batch: a result or an error.

Source: basic/index.
"""
JSONRPCBatchResponse: TypeAlias = list[JSONRPCBatchResponseItem]
"""The responses to a batch, as one JSON array in any order.

Source: basic/index.
"""
JSONRPCMessage: TypeAlias = (
    JSONRPCRequest
    | JSONRPCNotification
    | JSONRPCResultResponse
    | JSONRPCErrorResponse
    | JSONRPCResponse
    | JSONRPCError
    | JSONRPCBatchRequest
    | JSONRPCBatchResponse
)
"""Any message that may travel on the wire.

Source: basic/index.
"""
