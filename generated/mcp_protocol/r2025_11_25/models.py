"""The messages of 2025-11-25: a Struct for every object, under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from .._struct import Struct
from .._wire import Untagged, Variant, always_sent


class Annotations(Struct, kw_only=True, frozen=True):
    """Hints on how a client should treat an object; from an untrusted server, mere claims.

    Source: server/resources.
    """

    audience: list[Role] | None = None
    """For whom the object is: `user`, `assistant` or both; absent means unspecified."""
    last_modified: str | None = field(name="lastModified", default=None)
    """Time of the last change, in ISO 8601."""
    priority: int | float | None = None
    """Importance from 0 (optional) to 1 (indispensable)."""

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise ValueError("priority: expected 0 to 1, got " + str(self.priority))


class AudioContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="audio"):
    """Sound for or from a model.

    Source: server/tools.
    """

    type: ClassVar[Literal["audio"]] = "audio"
    """Always `audio`."""
    data: str
    """The bytes of the sound in base64."""
    mime_type: str = field(name="mimeType")
    """Media type, e.g. `audio/wav`; not every model takes every type."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""


class BaseMetadata(Struct, kw_only=True, frozen=True):
    """The two names that many objects have.

    Source: basic/index.
    """

    name: str
    """Identifier used in code and requests; shown to people only when no title exists."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown (a tool tries `annotations.title` first).
    """


class BlobResourceContents(Struct, kw_only=True, frozen=True):
    """Contents of a resource as bytes.

    Source: server/resources.
    """

    blob: str
    """The bytes in base64."""
    uri: str
    """Address of the (sub-)resource that this is."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type; absent means unknown."""


class BooleanSchema(Struct, kw_only=True, frozen=True, tag_field="type", tag="boolean"):
    """A form field for yes or no.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["boolean"]] = "boolean"
    """Always `boolean`."""
    default: bool | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    title: str | None = None
    """Label of the form field."""


class CallToolRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tools/call"):
    """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
    `isError`.

    Source: server/tools.
    """

    method: ClassVar[Literal["tools/call"]] = "tools/call"
    id: RequestId
    params: CallToolRequestParams
    """Which tool, and its arguments."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class CallToolRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `tools/call`.

    Source: server/tools.
    """

    name: str
    """Name of the tool, as listed."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    arguments: dict[str, Any] | None = None
    """Arguments as the tool's `inputSchema` wants them; absent means none."""
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.
    """

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        input_responses = None
        request_state = None


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
    structured_content: dict[str, Any] | None = field(name="structuredContent", default=None)
    """The output as a JSON object that fits the tool's `outputSchema`."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        result_type = None


class CancelTaskRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tasks/cancel"):
    """Stops a task; one that has already ended is error -32602.

    Source: basic/utilities/tasks.
    """

    method: ClassVar[Literal["tasks/cancel"]] = "tasks/cancel"
    id: RequestId
    params: CancelTaskRequestParams
    """Which task."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class CancelTaskRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `tasks/cancel`.

    Source: basic/utilities/tasks.
    """

    task_id: str = field(name="taskId")
    """Identifier of the task."""


class CancelTaskResult(Struct, kw_only=True, frozen=True):
    """The task, now `cancelled`.

    Source: basic/utilities/tasks.
    """

    created_at: str = field(name="createdAt")
    """Time of creation, in ISO 8601."""
    last_updated_at: str = field(name="lastUpdatedAt")
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str = field(name="taskId")
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    poll_interval: int | None = field(name="pollInterval", default=None)
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = field(name="statusMessage", default=None)
    """More about the status, for people, e.g. why it failed."""


class CancelledNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/cancelled"
):
    """The sender gives up a request it made. The receiver stops work on it; `initialize` and tasks
    cannot be cancelled this way.

    Source: basic/utilities/cancellation.
    """

    method: ClassVar[Literal["notifications/cancelled"]] = "notifications/cancelled"
    params: CancelledNotificationParams
    """Which request, and why."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class CancelledNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/cancelled`.

    Source: basic/utilities/cancellation.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""
    reason: str | None = None
    """Why, for logs or people."""
    request_id: RequestId | None = field(name="requestId", default=None)
    """Id of a request that the sender issued earlier; never that of a task, for which
    `tasks/cancel` exists.
    """


class ClientCapabilities(Struct, kw_only=True, frozen=True):
    """What a client can do. An absent field means the feature is unavailable; unknown fields are
    allowed.

    Source: basic/lifecycle.
    """

    elicitation: ClientCapabilitiesElicitation | None = None
    """The client asks its user questions for the server; an empty object means form mode only."""
    experimental: dict[str, dict[str, Any]] | None = None
    """Non-standard features, by name, each with settings of its own."""
    roots: ClientCapabilitiesRoots | None = None
    """The client lists its roots on request."""
    sampling: ClientCapabilitiesSampling | None = None
    """The client runs a model for the server; sub-fields add tools and context."""
    tasks: ClientCapabilitiesTasks | None = None
    """The client runs some requests as tasks."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        extensions = None


class ClientCapabilitiesElicitation(Struct, kw_only=True, frozen=True):
    """Ways in which the client can ask its user; none given means form mode.

    Source: client/elicitation.
    """

    form: dict[str, Any] | None = None
    """The client shows forms; an empty object."""
    url: dict[str, Any] | None = None
    """The client can send its user to a web page; an empty object."""


class ClientCapabilitiesRoots(Struct, kw_only=True, frozen=True):
    """What the client offers about roots.

    Source: client/roots.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The client announces changes of its roots; absent means false."""


class ClientCapabilitiesSampling(Struct, kw_only=True, frozen=True):
    """Optional parts of sampling that the client supports.

    Source: client/sampling.
    """

    context: dict[str, Any] | None = None
    """The client accepts `includeContext` values other than `none`; an empty object."""
    tools: dict[str, Any] | None = None
    """The client accepts `tools` and `toolChoice`; an empty object."""


class ClientCapabilitiesTasks(Struct, kw_only=True, frozen=True):
    """What the client supports of tasks.

    Source: basic/utilities/tasks.
    """

    cancel: dict[str, Any] | None = None
    """The client answers `tasks/cancel`; an empty object."""
    list_: dict[str, Any] | None = field(name="list", default=None)
    """The client answers `tasks/list`; an empty object."""
    requests: ClientCapabilitiesTasksRequests | None = None
    """Requests that the client runs as tasks; those not named are never tasks."""


class ClientCapabilitiesTasksRequests(Struct, kw_only=True, frozen=True):
    """Requests that the client runs as tasks, by feature.

    Source: basic/utilities/tasks.
    """

    elicitation: ClientCapabilitiesTasksRequestsElicitation | None = None
    """Elicitation requests that may be tasks."""
    sampling: ClientCapabilitiesTasksRequestsSampling | None = None
    """Sampling requests that may be tasks."""


class ClientCapabilitiesTasksRequestsElicitation(Struct, kw_only=True, frozen=True):
    """Elicitation requests that the client runs as tasks.

    Source: basic/utilities/tasks.
    """

    create: dict[str, Any] | None = None
    """`elicitation/create` may be a task; an empty object."""


class ClientCapabilitiesTasksRequestsSampling(Struct, kw_only=True, frozen=True):
    """Sampling requests that the client runs as tasks.

    Source: basic/utilities/tasks.
    """

    create_message: dict[str, Any] | None = field(name="createMessage", default=None)
    """`sampling/createMessage` may be a task; an empty object."""


class CompleteRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="completion/complete"
):
    """Asks for values that could complete what a user has typed so far.

    Source: server/utilities/completion.
    """

    method: ClassVar[Literal["completion/complete"]] = "completion/complete"
    id: RequestId
    params: CompleteRequestParams
    """What is being completed."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class CompleteRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `completion/complete`.

    Source: server/utilities/completion.
    """

    argument: CompleteRequestParamsArgument
    """The argument and what was typed so far."""
    ref: CompleteRequestParamsRef
    """The prompt or template to which the argument belongs."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    context: CompleteRequestParamsContext | None = None
    """What is settled already; absent means nothing."""


class CompleteRequestParamsArgument(Struct, kw_only=True, frozen=True):
    """The argument being completed.

    Source: server/utilities/completion.
    """

    name: str
    """Name of the argument or variable."""
    value: str
    """What was typed so far; may be empty."""


class CompleteRequestParamsContext(Struct, kw_only=True, frozen=True):
    """What is settled before this completion.

    Source: server/utilities/completion.
    """

    arguments: dict[str, str] | None = None
    """Values of other arguments chosen earlier, by name."""


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
    id: RequestId
    params: CreateMessageRequestParams
    """The conversation and how to continue it."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class CreateMessageRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `sampling/createMessage`.

    Source: client/sampling.
    """

    max_tokens: int = field(name="maxTokens")
    """Most tokens to generate; the client may stop sooner."""
    messages: list[SamplingMessage]
    """The conversation so far, oldest first."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    include_context: Literal["allServers", "none", "thisServer"] | None = field(
        name="includeContext", default=None
    )
    """Whose context to add; default `none`. The other values are being phased out and need the
    `sampling.context` capability.
    """
    metadata: dict[str, Any] | None = None
    """Parameters for the model's provider, in its own format."""
    model_preferences: ModelPreferences | None = field(name="modelPreferences", default=None)
    """Which model would suit; advice only."""
    stop_sequences: list[str] | None = field(name="stopSequences", default=None)
    """Texts at which generation ends."""
    system_prompt: str | None = field(name="systemPrompt", default=None)
    """Instructions for the model; the client may change or drop them."""
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.
    """
    temperature: int | float | None = None
    """Randomness of the model, on the scale of its provider; absent leaves it to the client."""
    tool_choice: ToolChoice | None = field(name="toolChoice", default=None)
    """Whether the model may or must use tools (default `auto`); an error unless the client declared
    `sampling.tools`.
    """
    tools: list[Tool] | None = None
    """Tools the model may use; an error unless the client declared `sampling.tools`."""


class CreateMessageResult(Struct, kw_only=True, frozen=True):
    """What the model said. The user should see it before the server does.

    Source: client/sampling.
    """

    content: CreateMessageResultContent
    """What was said: one piece of content or a list of them."""
    model: str
    """Name of the model that was run."""
    role: Role
    """Who speaks, as a rule `assistant`."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    stop_reason: str | None = field(name="stopReason", default=None)
    """Why generation ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or a word of the
    provider; absent means unknown.
    """


class CreateTaskResult(Struct, kw_only=True, frozen=True):
    """First answer to a request carried out as a task; the real result is fetched with
    `tasks/result`.

    Source: basic/utilities/tasks.
    """

    task: Task
    """The new task."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; `io.modelcontextprotocol/model-immediate-response` may hold text for the model to
    go on with.
    """


if TYPE_CHECKING:
    CallToolResultResponseResult: TypeAlias = CallToolResult | CreateTaskResult
    """Answer to `tools/call`: the tool's result, or a demand for more input.

    Source: server/tools.
    """
else:

    class CallToolResultResponseResult(Untagged):
        variants = (
            Variant(CallToolResult, required=("content",)),
            Variant(CreateTaskResult, required=("task",)),
        )


if TYPE_CHECKING:
    CreateMessageResultResponseResult: TypeAlias = CreateMessageResult | CreateTaskResult
    """What may answer a sampling request: the message, or a task that will have it.

    Source: client/sampling.
    """
else:

    class CreateMessageResultResponseResult(Untagged):
        variants = (
            Variant(CreateMessageResult, required=("content",)),
            Variant(CreateTaskResult, required=("task",)),
        )


Cursor: TypeAlias = str
"""Marks a position in a paged list; opaque, not to be parsed, changed or kept across sessions.

Source: server/utilities/pagination.
"""


class ElicitRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="elicitation/create"
):
    """Asks the client's user for something: data in a form, or an act on a web page.

    Source: client/elicitation.
    """

    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    id: RequestId
    params: ElicitRequestParams
    """What to ask, and how."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ElicitRequestFormParams(Struct, kw_only=True, frozen=True):
    """Params of `elicitation/create` in form mode; never for secrets, which need URL mode.

    Source: client/elicitation.
    """

    message: str
    """What is asked and why, for the user."""
    requested_schema: ElicitRequestFormParamsRequestedSchema = field(name="requestedSchema")
    """The form: a flat JSON Schema object."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    mode: Literal["form"] | None = None
    """Always `form`, or absent."""
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.
    """


class ElicitRequestFormParamsRequestedSchema(
    Struct, kw_only=True, frozen=True, tag_field="type", tag="object"
):
    """A form: a flat JSON Schema object.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["object"]] = "object"
    """Always `object`."""
    properties: dict[str, PrimitiveSchemaDefinition]
    """The fields of the form, by name; no nesting."""
    schema: str | None = field(name="$schema", default=None)
    """Dialect of JSON Schema; absent means 2020-12."""
    required: list[str] | None = None
    """Names of fields that must be filled in; absent means none."""


class ElicitRequestURLParams(Struct, kw_only=True, frozen=True, tag_field="mode", tag="url"):
    """Params of `elicitation/create` in URL mode, for what must not pass through the client.

    Source: client/elicitation.
    """

    mode: ClassVar[Literal["url"]] = "url"
    """Always `url`."""
    elicitation_id: str = field(name="elicitationId")
    """Opaque identifier of this elicitation, unique within the server."""
    message: str
    """Why the user should go there."""
    url: str
    """Page to open, only after the user has seen the address and agreed; holds no secrets."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.
    """


if TYPE_CHECKING:
    ElicitRequestParams: TypeAlias = ElicitRequestURLParams | ElicitRequestFormParams
    """Params of `elicitation/create`, in form mode or URL mode; without `mode` it is form mode.

    Source: client/elicitation.
    """
else:

    class ElicitRequestParams(Untagged):
        variants = (
            Variant(ElicitRequestURLParams, required=("elicitationId",)),
            Variant(ElicitRequestFormParams, required=("requestedSchema",)),
        )


class ElicitResult(Struct, kw_only=True, frozen=True):
    """What the user decided, and the data of the form.

    Source: client/elicitation.
    """

    action: Literal["accept", "cancel", "decline"]
    """`accept`: agreed (in URL mode, only to open the page); `decline`: refused; `cancel`: closed
    without a choice.
    """
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    content: dict[str, ElicitResultContent] | None = None
    """Values of the form, by field; only with `accept` in form mode."""


ElicitResultContent: TypeAlias = list[str] | str | int | float | bool
"""Value of one form field: a string, number, boolean, or the chosen strings of a multiple choice.

Source: client/elicitation.
"""


if TYPE_CHECKING:
    ElicitResultResponseResult: TypeAlias = ElicitResult | CreateTaskResult
    """What may answer an elicitation: the user's reaction, or a task that will have it.

    Source: client/elicitation.
    """
else:

    class ElicitResultResponseResult(Untagged):
        variants = (
            Variant(ElicitResult, required=("action",)),
            Variant(CreateTaskResult, required=("task",)),
        )


class ElicitationCompleteNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/elicitation/complete"
):
    """What a user was sent to do on a web page is done; the client may retry what waited for it.

    Source: client/elicitation.
    """

    method: ClassVar[Literal["notifications/elicitation/complete"]] = (
        "notifications/elicitation/complete"
    )
    params: ElicitationCompleteNotificationParams
    """Which elicitation."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ElicitationCompleteNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/elicitation/complete`.

    Source: client/elicitation.
    """

    elicitation_id: str = field(name="elicitationId")
    """Identifier from the request; unknown ones are ignored."""


class EmbeddedResource(Struct, kw_only=True, frozen=True, tag_field="type", tag="resource"):
    """A resource put into a message together with its contents.

    Source: server/tools.
    """

    type: ClassVar[Literal["resource"]] = "resource"
    """Always `resource`."""
    resource: EmbeddedResourceResource
    """The contents, as text or as bytes."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""


class Error(Struct, kw_only=True, frozen=True):
    """Code and text of a failure.

    Source: basic/index.
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
    id: RequestId
    params: GetPromptRequestParams
    """Which prompt, and its arguments."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class GetPromptRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `prompts/get`.

    Source: server/prompts.
    """

    name: str
    """Name of the prompt, as listed."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    arguments: dict[str, str] | None = None
    """Values for the arguments, all strings; absent means none."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
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


class GetTaskPayloadRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="tasks/result"
):
    """Fetches the real result of a task; the answer waits until the task has ended.

    Source: basic/utilities/tasks.
    """

    method: ClassVar[Literal["tasks/result"]] = "tasks/result"
    id: RequestId
    params: GetTaskPayloadRequestParams
    """Which task."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class GetTaskPayloadRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `tasks/result`.

    Source: basic/utilities/tasks.
    """

    task_id: str = field(name="taskId")
    """Identifier of the task."""


GetTaskPayloadResult: TypeAlias = dict[str, Any]
"""The real result of a task: what its request would have returned, e.g. a `CallToolResult`.

Source: basic/utilities/tasks.
"""


if TYPE_CHECKING:
    GetTaskPayloadResultResponseResult: TypeAlias = CreateMessageResult | ElicitResult
    """What a finished task had to give: the result of the request that it was made for.

    Source: basic/utilities/tasks.
    """
else:

    class GetTaskPayloadResultResponseResult(Untagged):
        variants = (
            Variant(CreateMessageResult, required=("model",)),
            Variant(ElicitResult, required=("action",)),
        )


class GetTaskRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tasks/get"):
    """Asks how a task stands.

    Source: basic/utilities/tasks.
    """

    method: ClassVar[Literal["tasks/get"]] = "tasks/get"
    id: RequestId
    params: GetTaskRequestParams
    """Which task."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class GetTaskRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `tasks/get`.

    Source: basic/utilities/tasks.
    """

    task_id: str = field(name="taskId")
    """Identifier of the task."""


class GetTaskResult(Struct, kw_only=True, frozen=True):
    """How a task stands.

    Source: basic/utilities/tasks.
    """

    created_at: str = field(name="createdAt")
    """Time of creation, in ISO 8601."""
    last_updated_at: str = field(name="lastUpdatedAt")
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str = field(name="taskId")
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    poll_interval: int | None = field(name="pollInterval", default=None)
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = field(name="statusMessage", default=None)
    """More about the status, for people, e.g. why it failed."""


class Icon(Struct, kw_only=True, frozen=True):
    """An image for user interfaces.

    Source: basic/index.
    """

    src: str
    """`https:`, `http:` or `data:` URI of the image; the host should be trusted, and an SVG may
    contain scripts.
    """
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type, for when the source states none or a vague one."""
    sizes: list[str] | None = None
    """Fitting sizes, each `WxH` in pixels or `any`; absent means any size."""
    theme: Literal["dark", "light"] | None = None
    """Background it suits: `light` or `dark`; absent means both."""


class Icons(Struct, kw_only=True, frozen=True):
    """The icons that many objects have.

    Source: basic/index.
    """

    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""


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
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""


class Implementation(Struct, kw_only=True, frozen=True):
    """Name and version of a piece of software that speaks MCP.

    Source: basic/lifecycle.
    """

    name: str
    """Identifier of the software."""
    version: str
    """Version of the software, in no prescribed format."""
    description: str | None = None
    """What the software does, for people."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""
    website_url: str | None = field(name="websiteUrl", default=None)
    """Home page of the software."""


class InitializeRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="initialize"):
    """First request of a client: it proposes a revision and says what the client can do.

    Source: basic/lifecycle.
    """

    method: ClassVar[Literal["initialize"]] = "initialize"
    id: RequestId
    params: InitializeRequestParams
    """Proposed revision, capabilities and identity of the client."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


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
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


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
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: NotificationParams | None = None
    """Metadata only."""


class JSONRPCErrorResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The answer to a request that failed.

    Source: basic/index.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    error: Error
    """What went wrong."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""


class JSONRPCNotification(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """A one-way JSON-RPC message, never answered.

    Source: basic/index.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    method: str
    params: dict[str, Any] | None = None
    """Arguments of the notification, by name; absent means none."""


class JSONRPCRequest(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """A JSON-RPC message that expects exactly one response.

    Source: basic/index.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    method: str
    params: dict[str, Any] | None = None
    """Arguments of the method, always by name; absent means none."""


class JSONRPCResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The answer to a request that succeeded.

    Source: basic/index.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: dict[str, Any]
    """What the request produced; its shape depends on the method."""


if TYPE_CHECKING:
    JSONRPCMessage: TypeAlias = (
        JSONRPCRequest | JSONRPCNotification | JSONRPCResultResponse | JSONRPCErrorResponse
    )
    """Any message that may travel on the wire.

    Source: basic/index.
    """
else:

    class JSONRPCMessage(Untagged):
        variants = (
            Variant(JSONRPCRequest, required=("method", "id")),
            Variant(JSONRPCNotification, required=("method",)),
            Variant(JSONRPCResultResponse, required=("result",)),
            Variant(JSONRPCErrorResponse, required=("error",)),
        )


if TYPE_CHECKING:
    JSONRPCResponse: TypeAlias = JSONRPCResultResponse | JSONRPCErrorResponse
    """The answer to a request: a result or an error.

    Source: basic/index.
    """
else:

    class JSONRPCResponse(Untagged):
        variants = (
            Variant(JSONRPCResultResponse, required=("result",)),
            Variant(JSONRPCErrorResponse, required=("error",)),
        )


class LegacyTitledEnumSchema(Struct, kw_only=True, frozen=True, tag_field="type", tag="string"):
    """The old form field for a choice of one, with labels beside the values. Use
    `TitledSingleSelectEnumSchema`.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""
    enum: list[str]
    """Values to choose from."""
    default: str | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    enum_names: list[str] | None = field(name="enumNames", default=None)
    """Labels of the values, in the same order; not part of JSON Schema."""
    title: str | None = None
    """Label of the form field."""


class ListPromptsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="prompts/list"):
    """Asks for a page of the server's prompts.

    Source: server/prompts.
    """

    method: ClassVar[Literal["prompts/list"]] = "prompts/list"
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


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
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


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
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


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
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: RequestParams | None = None
    """Metadata only."""


class ListRootsResult(Struct, kw_only=True, frozen=True):
    """The client's roots.

    Source: client/roots.
    """

    roots: list[Root]
    """The roots; there are no pages."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""


class ListTasksRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tasks/list"):
    """Asks for a page of the peer's tasks.

    Source: basic/utilities/tasks.
    """

    method: ClassVar[Literal["tasks/list"]] = "tasks/list"
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class ListTasksResult(Struct, kw_only=True, frozen=True):
    """A page of tasks.

    Source: basic/utilities/tasks.
    """

    tasks: list[Task]
    """The tasks on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""


class ListToolsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tools/list"):
    """Asks for a page of the server's tools.

    Source: server/tools.
    """

    method: ClassVar[Literal["tools/list"]] = "tools/list"
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


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
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class LoggingMessageNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/message`.

    Source: server/utilities/logging.
    """

    data: Any
    """What is logged: any JSON value; it must hold no secrets."""
    level: LoggingLevel
    """Severity of the message."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""
    logger: str | None = None
    """Name of the part of the server that speaks."""


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

    Source: basic/index.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the notification, by name; absent means none."""


class NotificationParams(Struct, kw_only=True, frozen=True):
    """The params that all notifications accept.

    Source: basic/index.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""


class NumberSchema(Struct, kw_only=True, frozen=True):
    """A form field for a number.

    Source: client/elicitation.
    """

    type: Literal["integer", "number"]
    """`integer` or `number`."""
    default: int | float | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    maximum: int | float | None = None
    """Largest value allowed."""
    minimum: int | float | None = None
    """Smallest value allowed."""
    title: str | None = None
    """Label of the form field."""


class PaginatedRequest(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The part that all paged list requests have in common.

    Source: server/utilities/pagination.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    method: str
    params: PaginatedRequestParams | None = None
    """Where the page starts."""


class PaginatedRequestParams(Struct, kw_only=True, frozen=True):
    """The params of a paged list request.

    Source: server/utilities/pagination.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    cursor: str | None = None
    """The `nextCursor` of the preceding page; absent asks for the first page. A bad one gives error
    -32602.
    """


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
    id: RequestId
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: RequestParams | None = None
    """Metadata only."""


class ProgressNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/progress"
):
    """Reports how far a request has come whose sender supplied a progress token.

    Source: basic/utilities/progress.
    """

    method: ClassVar[Literal["notifications/progress"]] = "notifications/progress"
    params: ProgressNotificationParams
    """Which request, and how far."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ProgressNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/progress`.

    Source: basic/utilities/progress.
    """

    progress: int | float
    """Amount done so far, in any unit; every notification has a higher value than the one before.
    """
    progress_token: ProgressToken = field(name="progressToken")
    """Token from the metadata of the request that this is about."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""
    message: str | None = None
    """What is happening right now, for people."""
    total: int | float | None = None
    """Amount at completion, in the unit of `progress`; absent means unknown."""


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
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    arguments: list[PromptArgument] | None = None
    """Arguments of the template; absent means none."""
    description: str | None = None
    """What the prompt is for; untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""


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
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""


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
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: NotificationParams | None = None
    """Metadata only."""


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
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""


class ReadResourceRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/read"
):
    """Reads one resource. An unknown URI is error -32002.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/read"]] = "resources/read"
    id: RequestId
    params: ReadResourceRequestParams
    """Which resource."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ReadResourceRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `resources/read`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
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


class RelatedTaskMetadata(Struct, kw_only=True, frozen=True):
    """Says to which task a message belongs; the value of `io.modelcontextprotocol/related-task` in
    `_meta`.

    Source: basic/utilities/tasks.
    """

    task_id: str = field(name="taskId")
    """Identifier of the task."""


class Request(Struct, kw_only=True, frozen=True):
    """The part that all requests have in common.

    Source: basic/index.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the method, by name; absent means none."""


RequestId: TypeAlias = str | int
"""Identifies a request within its session: a string or an integer, never null, never reused by its
sender.

Source: basic/index.
"""


class RequestMetaObject(Struct, kw_only=True, frozen=True):
    """Metadata of a request.

    Source: basic/index.
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

    Source: basic/index.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


class Resource(Struct, kw_only=True, frozen=True):
    """Data that the server lets a client read.

    Source: server/resources.
    """

    name: str
    """Identifier of the resource; shown to people only when no title exists."""
    uri: str
    """Address of the resource."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the resource holds; may reach a model, so treat it as untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type of the contents; absent means unknown."""
    size: int | None = None
    """Size in bytes before any encoding; absent means unknown."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""


class ResourceContents(Struct, kw_only=True, frozen=True):
    """The part that all contents of resources have in common.

    Source: server/resources.
    """

    uri: str
    """Address of the (sub-)resource that this is."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type; absent means unknown."""


class ResourceLink(Struct, kw_only=True, frozen=True, tag_field="type", tag="resource_link"):
    """A pointer to a resource, which the client may read. `resources/list` need not mention it.

    Source: server/tools.
    """

    type: ClassVar[Literal["resource_link"]] = "resource_link"
    """Always `resource_link`."""
    name: str
    """Identifier of the resource; shown to people only when no title exists."""
    uri: str
    """Address of the resource."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the resource holds; may reach a model, so treat it as untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type of the contents; absent means unknown."""
    size: int | None = None
    """Size in bytes before any encoding; absent means unknown."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""


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
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: NotificationParams | None = None
    """Metadata only."""


class ResourceRequestParams(Struct, kw_only=True, frozen=True):
    """The params of a request about one resource.

    Source: server/resources.
    """

    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


class ResourceTemplate(Struct, kw_only=True, frozen=True):
    """A pattern of URIs, each of which names a readable resource.

    Source: server/resources.
    """

    name: str
    """Identifier of the template; shown to people only when no title exists."""
    uri_template: str = field(name="uriTemplate")
    """RFC 6570 template; filling in its variables gives a URI."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""
    description: str | None = None
    """What the matching resources hold; may reach a model, so treat it as untrusted text."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type, if all matching resources share one."""
    title: str | None = None
    """Name shown to people; when absent, `name` is shown."""


class ResourceTemplateReference(
    Struct, kw_only=True, frozen=True, tag_field="type", tag="ref/resource"
):
    """Names a resource template whose variable is to be completed.

    Source: server/utilities/completion.
    """

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    """Always `ref/resource`."""
    uri: str
    """URI or RFC 6570 template, as listed."""


CompleteRequestParamsRef: TypeAlias = PromptReference | ResourceTemplateReference
"""What the argument belongs to: a prompt or a resource template.

Source: server/utilities/completion.
"""


class ResourceUpdatedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/resources/updated"
):
    """A resource that the client subscribed to has changed; read it again.

    Source: server/resources.
    """

    method: ClassVar[Literal["notifications/resources/updated"]] = "notifications/resources/updated"
    params: ResourceUpdatedNotificationParams
    """Which resource."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ResourceUpdatedNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/resources/updated`.

    Source: server/resources.
    """

    uri: str
    """Address of what changed; possibly a part of the resource subscribed to."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""


Result: TypeAlias = dict[str, Any]
"""The part that all results have in common; methods add fields of their own.

Source: basic/index.
"""


ClientResult: TypeAlias = (
    Result
    | GetTaskResult
    | GetTaskPayloadResult
    | CancelTaskResult
    | ListTasksResult
    | CreateMessageResult
    | ListRootsResult
    | ElicitResult
)
"""Every result that a client may return.

Source: basic/index.
"""


EmptyResult: TypeAlias = Result
"""A result that only confirms success.

Source: basic/index.
"""


Role: TypeAlias = Literal["assistant", "user"]
"""Who speaks in a conversation: `user` or `assistant`.

Source: basic/index.
"""


class Root(Struct, kw_only=True, frozen=True):
    """A directory or file on which the client wants the server to work. Guidance, not access
    control.

    Source: client/roots.
    """

    uri: str
    """Address of the root; always a `file://` URI so far."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    name: str | None = None
    """Name shown to people."""


class RootsListChangedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/roots/list_changed"
):
    """The client's roots have changed; ask for them again.

    Source: client/roots.
    """

    method: ClassVar[Literal["notifications/roots/list_changed"]] = (
        "notifications/roots/list_changed"
    )
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: NotificationParams | None = None
    """Metadata only."""


class SamplingMessage(Struct, kw_only=True, frozen=True):
    """A message to or from a model.

    Source: client/sampling.
    """

    content: SamplingMessageContent
    """What is said: one piece or a list; tool results stand alone in a user message."""
    role: Role
    """Who speaks."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""


class ServerCapabilities(Struct, kw_only=True, frozen=True):
    """What a server can do. An absent field means the feature is unavailable; unknown fields are
    allowed.

    Source: basic/lifecycle.
    """

    completions: dict[str, Any] | None = None
    """The server completes arguments; an empty object."""
    experimental: dict[str, dict[str, Any]] | None = None
    """Non-standard features, by name, each with settings of its own."""
    logging: dict[str, Any] | None = None
    """The server emits log messages; an empty object."""
    prompts: ServerCapabilitiesPrompts | None = None
    """The server has prompts."""
    resources: ServerCapabilitiesResources | None = None
    """The server has resources."""
    tasks: ServerCapabilitiesTasks | None = None
    """The server runs some requests as tasks."""
    tools: ServerCapabilitiesTools | None = None
    """The server has tools."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        extensions = None


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


class ServerCapabilitiesTasks(Struct, kw_only=True, frozen=True):
    """What the server supports of tasks.

    Source: basic/utilities/tasks.
    """

    cancel: dict[str, Any] | None = None
    """The server answers `tasks/cancel`; an empty object."""
    list_: dict[str, Any] | None = field(name="list", default=None)
    """The server answers `tasks/list`; an empty object."""
    requests: ServerCapabilitiesTasksRequests | None = None
    """Requests that the server runs as tasks; those not named are never tasks."""


class ServerCapabilitiesTasksRequests(Struct, kw_only=True, frozen=True):
    """Requests that the server runs as tasks, by feature.

    Source: basic/utilities/tasks.
    """

    tools: ServerCapabilitiesTasksRequestsTools | None = None
    """Tool requests that may be tasks."""


class ServerCapabilitiesTasksRequestsTools(Struct, kw_only=True, frozen=True):
    """Tool requests that the server runs as tasks.

    Source: basic/utilities/tasks.
    """

    call: dict[str, Any] | None = None
    """`tools/call` may be a task, subject to each tool's `taskSupport`; an empty object."""


class ServerCapabilitiesTools(Struct, kw_only=True, frozen=True):
    """What the server offers about tools.

    Source: server/tools.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The server announces changes of its tools; absent means false."""


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
    | GetTaskResult
    | GetTaskPayloadResult
    | CancelTaskResult
    | ListTasksResult
    | CompleteResult
)
"""Every result that a server may return.

Source: basic/index.
"""


class SetLevelRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="logging/setLevel"
):
    """Sets the lowest severity of log messages that the client wants.

    Source: server/utilities/logging.
    """

    method: ClassVar[Literal["logging/setLevel"]] = "logging/setLevel"
    id: RequestId
    params: SetLevelRequestParams
    """The severity."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class SetLevelRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `logging/setLevel`.

    Source: server/utilities/logging.
    """

    level: LoggingLevel
    """Lowest severity to send; everything graver is sent too."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


class StringSchema(Struct, kw_only=True, frozen=True, tag_field="type", tag="string"):
    """A form field for text.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""
    default: str | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    format: Literal["date", "date-time", "email", "uri"] | None = None
    """Kind of text: `email`, `uri`, `date` or `date-time`; absent means any."""
    max_length: int | None = field(name="maxLength", default=None)
    """Most characters."""
    min_length: int | None = field(name="minLength", default=None)
    """Fewest characters."""
    title: str | None = None
    """Label of the form field."""


class SubscribeRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/subscribe"
):
    """Asks to be told when one resource changes; needs the `subscribe` capability.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/subscribe"]] = "resources/subscribe"
    id: RequestId
    params: SubscribeRequestParams
    """Which resource."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class SubscribeRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `resources/subscribe`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource to watch, of any scheme."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


class Task(Struct, kw_only=True, frozen=True):
    """A request that is carried out in the background, and how it stands.

    Source: basic/utilities/tasks.
    """

    created_at: str = field(name="createdAt")
    """Time of creation, in ISO 8601."""
    last_updated_at: str = field(name="lastUpdatedAt")
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str = field(name="taskId")
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    poll_interval: int | None = field(name="pollInterval", default=None)
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = field(name="statusMessage", default=None)
    """More about the status, for people, e.g. why it failed."""


class TaskAugmentedRequestParams(Struct, kw_only=True, frozen=True):
    """The params of a request that may be carried out as a task.

    Source: basic/utilities/tasks.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""
    task: TaskMetadata | None = None
    """Asks for execution as a task: the answer is then a `CreateTaskResult`; needs the receiver's
    tasks capability.
    """


class TaskMetadata(Struct, kw_only=True, frozen=True):
    """Asks for a request to be carried out as a task.

    Source: basic/utilities/tasks.
    """

    ttl: int | None = None
    """Milliseconds, counted from creation, for which the task should be kept; the receiver may
    decide otherwise.
    """


TaskStatus: TypeAlias = Literal["cancelled", "completed", "failed", "input_required", "working"]
"""How a task stands: `working` or `input_required`, then for good `completed`, `failed` or
`cancelled`.

Source: basic/utilities/tasks.
"""


class TaskStatusNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/tasks/status"
):
    """The status of a task has changed. It may never come, so keep polling.

    Source: basic/utilities/tasks.
    """

    method: ClassVar[Literal["notifications/tasks/status"]] = "notifications/tasks/status"
    params: TaskStatusNotificationParams
    """The task as it now stands."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


ClientNotification: TypeAlias = (
    CancelledNotification
    | InitializedNotification
    | ProgressNotification
    | TaskStatusNotification
    | RootsListChangedNotification
)
"""Every notification that a client may send.

Source: basic/index.
"""


class TaskStatusNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/tasks/status`: the whole task.

    Source: basic/utilities/tasks.
    """

    created_at: str = field(name="createdAt")
    """Time of creation, in ISO 8601."""
    last_updated_at: str = field(name="lastUpdatedAt")
    """Time of the last change, in ISO 8601."""
    status: TaskStatus
    """How the task stands."""
    task_id: str = field(name="taskId")
    """Identifier of the task, chosen by the receiver."""
    ttl: int | None
    """Milliseconds, counted from creation, for which the task is kept; null means without limit."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the notification."""
    poll_interval: int | None = field(name="pollInterval", default=None)
    """Milliseconds to wait between polls; absent leaves it to the requestor."""
    status_message: str | None = field(name="statusMessage", default=None)
    """More about the status, for people, e.g. why it failed."""


class TextContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="text"):
    """Text for or from a model.

    Source: server/tools.
    """

    type: ClassVar[Literal["text"]] = "text"
    """Always `text`."""
    text: str
    """The text itself."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: Annotations | None = None
    """Hints on audience, importance and age; absent means none."""


ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
)
"""One piece of content in a prompt or tool result: text, image, audio, resource link or embedded
resource.

Source: server/tools.
"""


class TextResourceContents(Struct, kw_only=True, frozen=True):
    """Contents of a resource as text.

    Source: server/resources.
    """

    text: str
    """The text; never binary data in disguise."""
    uri: str
    """Address of the (sub-)resource that this is."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    mime_type: str | None = field(name="mimeType", default=None)
    """Media type; absent means unknown."""


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


class TitledMultiSelectEnumSchema(Struct, kw_only=True, frozen=True, tag_field="type", tag="array"):
    """A form field for a choice of several, shown by label.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["array"]] = "array"
    """Always `array`."""
    items: TitledMultiSelectEnumSchemaItems
    """The options."""
    default: list[str] | None = None
    """Values to start with."""
    description: str | None = None
    """Explanation of the form field."""
    max_items: int | None = field(name="maxItems", default=None)
    """Most options to choose; absent means no upper bound."""
    min_items: int | None = field(name="minItems", default=None)
    """Fewest options to choose; absent means no lower bound."""
    title: str | None = None
    """Label of the form field."""


class TitledMultiSelectEnumSchemaItems(Struct, kw_only=True, frozen=True):
    """The options of a choice of several, with labels.

    Source: client/elicitation.
    """

    any_of: list[TitledMultiSelectEnumSchemaItemsAnyOf] = field(name="anyOf")
    """The options, each with a label."""


class TitledMultiSelectEnumSchemaItemsAnyOf(Struct, kw_only=True, frozen=True):
    """An option of a choice of several.

    Source: client/elicitation.
    """

    const: str
    """Value sent back."""
    title: str
    """Label shown."""


class TitledSingleSelectEnumSchema(
    Struct, kw_only=True, frozen=True, tag_field="type", tag="string"
):
    """A form field for a choice of one, shown by label.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""
    one_of: list[TitledSingleSelectEnumSchemaOneOf] = field(name="oneOf")
    """The options, each with a label."""
    default: str | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    title: str | None = None
    """Label of the form field."""


class TitledSingleSelectEnumSchemaOneOf(Struct, kw_only=True, frozen=True):
    """An option of a choice of one.

    Source: client/elicitation.
    """

    const: str
    """Value sent back."""
    title: str
    """Label shown."""


class Tool(Struct, kw_only=True, frozen=True):
    """A function that the server lets a model call.

    Source: server/tools.
    """

    input_schema: dict[str, Any] = field(name="inputSchema")
    """JSON Schema (2020-12 unless it says otherwise) of the arguments; its root has type `object`.
    """
    name: str
    """Identifier by which the tool is called, unique within the server; should be 1 to 128
    characters of `A-Za-z0-9_-.`.
    """
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    annotations: ToolAnnotations | None = None
    """Hints about the tool's behaviour; not to be trusted unless the server is."""
    description: str | None = None
    """What the tool does, for people and models; untrusted text."""
    execution: ToolExecution | None = None
    """Whether the tool runs as a task."""
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    output_schema: dict[str, Any] | None = field(name="outputSchema", default=None)
    """JSON Schema of `structuredContent`, with root type `object`; absent means none is promised.
    """
    title: str | None = None
    """Name shown to people; when absent, `annotations.title` is shown, then `name`."""

    def __post_init__(self) -> None:
        if self.input_schema.get("type") != "object":
            raise ValueError('inputSchema: expected a JSON Schema with "type": "object"')
        if self.output_schema is not None and self.output_schema.get("type") != "object":
            raise ValueError('outputSchema: expected a JSON Schema with "type": "object"')


class ToolAnnotations(Struct, kw_only=True, frozen=True):
    """Hints about a tool. Nothing vouches for them: never decide on them when the server is
    untrusted.

    Source: server/tools.
    """

    destructive_hint: bool | None = field(name="destructiveHint", default=None)
    """The tool may delete or overwrite rather than only add; default true; moot if read-only."""
    idempotent_hint: bool | None = field(name="idempotentHint", default=None)
    """A repeated call with equal arguments changes nothing more; default false; moot if read-only.
    """
    open_world_hint: bool | None = field(name="openWorldHint", default=None)
    """The tool reaches out to an unbounded world, such as the web; default true."""
    read_only_hint: bool | None = field(name="readOnlyHint", default=None)
    """The tool changes nothing; default false."""
    title: str | None = None
    """Name shown to people."""


class ToolChoice(Struct, kw_only=True, frozen=True):
    """Whether the model may or must use tools.

    Source: client/sampling.
    """

    mode: Literal["auto", "none", "required"] | None = None
    """`auto`: as the model sees fit (default); `required`: at least one; `none`: no tool."""


class ToolExecution(Struct, kw_only=True, frozen=True):
    """How a tool may be run.

    Source: server/tools.
    """

    task_support: Literal["forbidden", "optional", "required"] | None = field(
        name="taskSupport", default=None
    )
    """Calls as tasks are `forbidden` (default), `optional` or `required`; only binding if the
    server declares task support.
    """


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
    jsonrpc: Literal["2.0"] = always_sent("2.0")
    params: NotificationParams | None = None
    """Metadata only."""


ServerNotification: TypeAlias = (
    CancelledNotification
    | ProgressNotification
    | ResourceListChangedNotification
    | ResourceUpdatedNotification
    | PromptListChangedNotification
    | ToolListChangedNotification
    | TaskStatusNotification
    | LoggingMessageNotification
    | ElicitationCompleteNotification
)
"""Every notification that a server may send.

Source: basic/index.
"""


class ToolResultContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="tool_result"):
    """What a tool returned to the model that demanded it.

    Source: client/sampling.
    """

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    """Always `tool_result`."""
    content: list[ContentBlock]
    """The output, piece by piece."""
    tool_use_id: str = field(name="toolUseId")
    """The `id` of the `ToolUseContent` that this answers."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; clients should keep it in later requests, so that caches work."""
    is_error: bool | None = field(name="isError", default=None)
    """The tool failed; absent means false."""
    structured_content: dict[str, Any] | None = field(name="structuredContent", default=None)
    """The output as a JSON object that fits the tool's `outputSchema`."""


class ToolUseContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="tool_use"):
    """A model's demand to run a tool.

    Source: client/sampling.
    """

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    """Always `tool_use`."""
    id: str
    """Identifies this use, for the matching result."""
    input: dict[str, Any]
    """Arguments that fit the tool's `inputSchema`."""
    name: str
    """Name of the tool."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; clients should keep it in later requests, so that caches work."""


SamplingMessageContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
)
"""One piece of content in a conversation with a model: text, image, audio, tool use or tool result.

Source: client/sampling.
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


class URLElicitationRequiredError(
    Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"
):
    """Error response -32042: the request cannot go on before the user has visited some web pages.

    Source: client/elicitation.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    error: URLElicitationRequiredErrorError
    """The error, with the elicitations."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""


class URLElicitationRequiredErrorError(Struct, kw_only=True, frozen=True):
    """Error -32042.

    Source: client/elicitation.
    """

    data: URLElicitationRequiredErrorErrorData
    """The elicitations to complete first."""
    message: str
    """One short sentence for people."""
    code: Literal[-32042] = always_sent(-32042)
    """Always -32042."""


class URLElicitationRequiredErrorErrorData(Struct, kw_only=True, frozen=True):
    """What has to happen before a retry.

    Source: client/elicitation.
    """

    elicitations: list[ElicitRequestURLParams]
    """Elicitations to complete, all in URL mode."""


class UnsubscribeRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/unsubscribe"
):
    """Ends a subscription to one resource.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/unsubscribe"]] = "resources/unsubscribe"
    id: RequestId
    params: UnsubscribeRequestParams
    """Which resource."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


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
    | GetTaskRequest
    | GetTaskPayloadRequest
    | CancelTaskRequest
    | ListTasksRequest
    | SetLevelRequest
    | CompleteRequest
)
"""Every request that a client may send.

Source: basic/index.
"""


class UnsubscribeRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `resources/unsubscribe`.

    Source: server/resources.
    """

    uri: str
    """Address of the resource that is watched."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Request metadata: the progress token and any extra data."""


class UntitledMultiSelectEnumSchema(
    Struct, kw_only=True, frozen=True, tag_field="type", tag="array"
):
    """A form field for a choice of several, shown by value.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["array"]] = "array"
    """Always `array`."""
    items: UntitledMultiSelectEnumSchemaItems
    """The options."""
    default: list[str] | None = None
    """Values to start with."""
    description: str | None = None
    """Explanation of the form field."""
    max_items: int | None = field(name="maxItems", default=None)
    """Most options to choose; absent means no upper bound."""
    min_items: int | None = field(name="minItems", default=None)
    """Fewest options to choose; absent means no lower bound."""
    title: str | None = None
    """Label of the form field."""


if TYPE_CHECKING:
    MultiSelectEnumSchema: TypeAlias = UntitledMultiSelectEnumSchema | TitledMultiSelectEnumSchema
    """A form field for a choice of several, with or without labels.

    Source: client/elicitation.
    """
else:

    class MultiSelectEnumSchema(Untagged):
        variants = (
            Variant(UntitledMultiSelectEnumSchema, inner={"items": ("enum",)}),
            Variant(TitledMultiSelectEnumSchema, inner={"items": ("anyOf",)}),
        )


class UntitledMultiSelectEnumSchemaItems(
    Struct, kw_only=True, frozen=True, tag_field="type", tag="string"
):
    """The options of a choice of several, without labels.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""
    enum: list[str]
    """Values to choose from."""


class UntitledSingleSelectEnumSchema(
    Struct, kw_only=True, frozen=True, tag_field="type", tag="string"
):
    """A form field for a choice of one, shown by value.

    Source: client/elicitation.
    """

    type: ClassVar[Literal["string"]] = "string"
    """Always `string`."""
    enum: list[str]
    """Values to choose from."""
    default: str | None = None
    """Value to start with."""
    description: str | None = None
    """Explanation of the form field."""
    title: str | None = None
    """Label of the form field."""


if TYPE_CHECKING:
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
else:

    class EnumSchema(Untagged):
        variants = (
            Variant(TitledSingleSelectEnumSchema, required=("oneOf",)),
            Variant(
                UntitledMultiSelectEnumSchema,
                consts={"type": ("array",)},
                inner={"items": ("enum",)},
            ),
            Variant(
                TitledMultiSelectEnumSchema,
                consts={"type": ("array",)},
                inner={"items": ("anyOf",)},
            ),
            Variant(LegacyTitledEnumSchema, required=("enum", "enumNames")),
            Variant(UntitledSingleSelectEnumSchema, required=("enum",)),
        )


if TYPE_CHECKING:
    PrimitiveSchemaDefinition: TypeAlias = (
        StringSchema
        | NumberSchema
        | BooleanSchema
        | UntitledSingleSelectEnumSchema
        | TitledSingleSelectEnumSchema
        | UntitledMultiSelectEnumSchema
        | TitledMultiSelectEnumSchema
        | LegacyTitledEnumSchema
    )
    """Schema of one form field: text, number, yes or no, or a choice.

    Source: client/elicitation.
    """
else:

    class PrimitiveSchemaDefinition(Untagged):
        variants = (
            Variant(NumberSchema, consts={"type": ("integer", "number")}),
            Variant(BooleanSchema, consts={"type": ("boolean",)}),
            Variant(TitledSingleSelectEnumSchema, required=("oneOf",)),
            Variant(
                UntitledMultiSelectEnumSchema,
                consts={"type": ("array",)},
                inner={"items": ("enum",)},
            ),
            Variant(
                TitledMultiSelectEnumSchema,
                consts={"type": ("array",)},
                inner={"items": ("anyOf",)},
            ),
            Variant(LegacyTitledEnumSchema, required=("enum", "enumNames")),
            Variant(UntitledSingleSelectEnumSchema, required=("enum",)),
            Variant(StringSchema, consts={"type": ("string",)}),
        )


if TYPE_CHECKING:
    SingleSelectEnumSchema: TypeAlias = (
        UntitledSingleSelectEnumSchema | TitledSingleSelectEnumSchema
    )
    """A form field for a choice of one, with or without labels.

    Source: client/elicitation.
    """
else:

    class SingleSelectEnumSchema(Untagged):
        variants = (
            Variant(UntitledSingleSelectEnumSchema, required=("enum",)),
            Variant(TitledSingleSelectEnumSchema, required=("oneOf",)),
        )
