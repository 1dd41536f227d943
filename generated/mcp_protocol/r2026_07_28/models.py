"""The messages of 2026-07-28: a Struct for every object, under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

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


class CacheableResult(Struct, kw_only=True, frozen=True):
    """A result with caching hints.

    Source: server/utilities/caching.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    result_type: str = always_sent("complete", name="resultType")
    """Tells how to read the result: `complete`, `input_required` or a value of an extension; absent
    (older servers) means `complete`.
    """
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


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

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    name: str
    """Name of the tool, as listed."""
    arguments: dict[str, Any] | None = None
    """Arguments as the tool's `inputSchema` wants them; absent means none."""
    input_responses: InputResponses | None = field(name="inputResponses", default=None)
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys."""
    request_state: str | None = field(name="requestState", default=None)
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.
    """

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        task = None


class CallToolResult(Struct, kw_only=True, frozen=True):
    """What a tool returned, or how it failed.

    Source: server/tools.
    """

    content: list[ContentBlock]
    """The output for a model, piece by piece."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    is_error: bool | None = field(name="isError", default=None)
    """The tool itself failed and `content` says how, so that a model can react; absent means false.
    """
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    structured_content: Any | UnsetType = field(name="structuredContent", default=UNSET)
    """The output as any JSON value, null included, that fits the tool's `outputSchema`."""


class CallToolResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of the answer to `tools/call`.

    Source: server/tools.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: CallToolResultResponseResult
    """The tool's result, or a demand for more input."""


class CancelledNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/cancelled"
):
    """The client gives up a request it made, or (stdio) the server ends a `subscriptions/listen`
    stream. Over HTTP, closing the stream says the same.

    Source: basic/patterns/cancellation.
    """

    method: ClassVar[Literal["notifications/cancelled"]] = "notifications/cancelled"
    params: CancelledNotificationParams
    """Which request, and why."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class CancelledNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/cancelled`.

    Source: basic/patterns/cancellation.
    """

    request_id: RequestId = field(name="requestId")
    """Id of an open request of the client; from a server, always that of a `subscriptions/listen`.
    """
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; on a subscription stream it names the subscription."""
    reason: str | None = None
    """Why, for logs or people."""


class ClientCapabilities(Struct, kw_only=True, frozen=True):
    """What a client can do for one request. An absent field means the feature is unavailable;
    unknown fields are allowed.

    Source: basic/index.
    """

    elicitation: ClientCapabilitiesElicitation | None = None
    """The client asks its user questions for the server; an empty object means form mode only."""
    experimental: dict[str, JSONObject] | None = None
    """Non-standard features, by name, each with settings of its own."""
    extensions: dict[str, JSONObject] | None = None
    """Protocol extensions the client supports, by prefixed identifier; an empty object means no
    settings.
    """
    roots: dict[str, Any] | None = None
    """The client lists its roots on request. Deprecated."""
    sampling: ClientCapabilitiesSampling | None = None
    """The client runs a model for the server; sub-fields add tools and context. Deprecated."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        tasks = None


class ClientCapabilitiesElicitation(Struct, kw_only=True, frozen=True):
    """Ways in which the client can ask its user; none given means form mode.

    Source: client/elicitation.
    """

    form: JSONObject | None = None
    """The client shows forms; an empty object."""
    url: JSONObject | None = None
    """The client can send its user to a web page; an empty object."""


class ClientCapabilitiesSampling(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. Optional parts of sampling that the client supports.

    Source: client/sampling.
    """

    context: JSONObject | None = None
    """The client accepts `includeContext` values other than `none`; an empty object. Deprecated."""
    tools: JSONObject | None = None
    """The client accepts `tools` and `toolChoice`; an empty object."""


ClientNotification: TypeAlias = CancelledNotification
"""The one notification left to clients: cancellation.

Source: basic/index.
"""


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

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    argument: CompleteRequestParamsArgument
    """The argument and what was typed so far."""
    ref: CompleteRequestParamsRef
    """The prompt or template to which the argument belongs."""
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
    """Extra data about the result; servers should name their software here."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""


class CompleteResultCompletion(Struct, kw_only=True, frozen=True):
    """The suggestions and how many there are.

    Source: server/utilities/completion.
    """

    values: Annotated[list[str], Meta(max_length=100)]
    """Suggestions, best first; at most 100."""
    has_more: bool | None = field(name="hasMore", default=None)
    """More matches exist than were sent; absent means unspecified."""
    total: int | None = None
    """Count of all matches, sent or not; absent means unknown."""


class CompleteResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of a `CompleteResult`.

    Source: server/utilities/completion.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: CompleteResult
    """The suggestions."""


class CreateMessageRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="sampling/createMessage"
):
    """Deprecated in this revision. Asks the client to run a model, with its user's approval;
    travels inside an `InputRequiredResult`, without an id.

    Source: client/sampling.
    """

    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    params: CreateMessageRequestParams
    """The conversation and how to continue it."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class CreateMessageRequestParams(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. Params of `sampling/createMessage`.

    Source: client/sampling.
    """

    max_tokens: int = field(name="maxTokens")
    """Most tokens to generate; the client may stop sooner."""
    messages: list[SamplingMessage]
    """The conversation so far, oldest first."""
    include_context: Literal["allServers", "none", "thisServer"] | None = field(
        name="includeContext", default=None
    )
    """Whose context to add; default `none`. The other values are deprecated and need the
    `sampling.context` capability.
    """
    metadata: JSONObject | None = None
    """Parameters for the model's provider, in its own format."""
    model_preferences: ModelPreferences | None = field(name="modelPreferences", default=None)
    """Which model would suit; advice only."""
    stop_sequences: list[str] | None = field(name="stopSequences", default=None)
    """Texts at which generation ends."""
    system_prompt: str | None = field(name="systemPrompt", default=None)
    """Instructions for the model; the client may change or drop them."""
    temperature: int | float | None = None
    """Randomness of the model, on the scale of its provider; absent leaves it to the client."""
    tool_choice: ToolChoice | None = field(name="toolChoice", default=None)
    """Whether the model may or must use tools (default `auto`); an error unless the client declared
    `sampling.tools`.
    """
    tools: list[Tool] | None = None
    """Tools the model may use; an error unless the client declared `sampling.tools`."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        task = None


class CreateMessageResult(Struct, kw_only=True, frozen=True):
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
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    stop_reason: str | None = field(name="stopReason", default=None)
    """Why generation ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or a word of the
    provider; absent means unknown.
    """


Cursor: TypeAlias = str
"""Marks a position in a paged list; opaque, not to be parsed or changed; the empty string is a
valid one.

Source: server/utilities/pagination.
"""


class DiscoverRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="server/discover"):
    """Asks which revisions and features a server has. Every server answers it; no client must send
    it.

    Source: server/discover.
    """

    method: ClassVar[Literal["server/discover"]] = "server/discover"
    id: RequestId
    params: RequestParams
    """Metadata only."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class DiscoverResult(Struct, kw_only=True, frozen=True):
    """Revisions, capabilities and advice of a server.

    Source: server/discover.
    """

    capabilities: ServerCapabilities
    """What the server can do."""
    supported_versions: list[str] = field(name="supportedVersions")
    """Revisions that the server speaks; later requests pick one of them."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    instructions: str | None = None
    """Advice on using this server, meant for a model's prompt; untrusted text."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class DiscoverResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of a `DiscoverResult`.

    Source: server/discover.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: DiscoverResult
    """The server's self-description."""


class ElicitRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="elicitation/create"
):
    """Asks the client's user for data in a form or an act on a web page; travels inside an
    `InputRequiredResult`, without an id.

    Source: client/elicitation.
    """

    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    params: ElicitRequestParams
    """What to ask, and how."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


class ElicitRequestFormParams(Struct, kw_only=True, frozen=True):
    """Params of `elicitation/create` in form mode; never for secrets, which need URL mode.

    Source: client/elicitation.
    """

    message: str
    """What is asked and why, for the user."""
    requested_schema: ElicitRequestFormParamsRequestedSchema = field(name="requestedSchema")
    """The form: a flat JSON Schema object."""
    mode: Literal["form"] | None = None
    """Always `form`, or absent."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        task = None


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
    message: str
    """Why the user should go there."""
    url: str
    """Page to open, only after the user has seen the address and agreed; holds no secrets."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None
        elicitation_id = None
        task = None


if TYPE_CHECKING:
    ElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams
    """Params of `elicitation/create`, in form mode or URL mode; without `mode` it is form mode.

    Source: client/elicitation.
    """
else:

    class ElicitRequestParams(Untagged):
        variants = (
            Variant(ElicitRequestFormParams, required=("requestedSchema",)),
            Variant(ElicitRequestURLParams, required=("url",)),
        )


class ElicitResult(Struct, kw_only=True, frozen=True):
    """What the user decided, and the data of the form; travels inside the `inputResponses` of a
    retry.

    Source: client/elicitation.
    """

    action: Literal["accept", "cancel", "decline"]
    """`accept`: agreed (in URL mode, only to open the page); `decline`: refused; `cancel`: closed
    without a choice.
    """
    content: dict[str, ElicitResultContent] | None = None
    """Values of the form, by field; only with `accept` in form mode."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


ElicitResultContent: TypeAlias = list[str] | str | int | float | bool
"""Value of one form field: a string, number, boolean, or the chosen strings of a multiple choice.

Source: client/elicitation.
"""


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
    """Number that classifies the failure; -32020 to -32099 belong to MCP, which defines -32020,
    -32021 and -32022.
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

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    name: str
    """Name of the prompt, as listed."""
    arguments: dict[str, str] | None = None
    """Values for the arguments, all strings; absent means none."""
    input_responses: InputResponses | None = field(name="inputResponses", default=None)
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys."""
    request_state: str | None = field(name="requestState", default=None)
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.
    """


class GetPromptResult(Struct, kw_only=True, frozen=True):
    """A prompt, filled in.

    Source: server/prompts.
    """

    messages: list[PromptMessage]
    """The messages, in order; untrusted input to a model."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    description: str | None = None
    """What the prompt is for."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""


class GetPromptResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of the answer to `prompts/get`.

    Source: server/prompts.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: GetPromptResultResponseResult
    """The prompt, or a demand for more input."""


class HeaderMismatchError(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """Error response -32020: HTTP headers are missing, malformed or contradict the body. HTTP
    status 400.

    Source: basic/transports/streamable-http.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    error: HeaderMismatchErrorError
    """The error."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""


class HeaderMismatchErrorError(Struct, kw_only=True, frozen=True):
    """Error -32020.

    Source: basic/transports/streamable-http.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32020] = always_sent(-32020)
    """Always -32020."""
    data: Any | UnsetType = UNSET
    """Details in any shape the server likes; untrusted."""


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

    Source: basic/index.
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


class InputRequiredResult(Struct, kw_only=True, frozen=True):
    """Not an answer yet: the client gathers the input asked for and retries under a new id. It has
    questions, state or both.

    Source: basic/patterns/mrtr.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    input_requests: InputRequests | None = field(name="inputRequests", default=None)
    """Questions to answer before the retry; only kinds that the client declared."""
    request_state: str | None = field(name="requestState", default=None)
    """Opaque state to send back unchanged with the retry; the server must verify it on return."""
    result_type: str = always_sent("input_required", name="resultType")
    """Always `input_required` here."""


if TYPE_CHECKING:
    CallToolResultResponseResult: TypeAlias = InputRequiredResult | CallToolResult
    """Answer to `tools/call`: the tool's result, or a demand for more input.

    Source: server/tools.
    """
else:

    class CallToolResultResponseResult(Untagged):
        variants = (
            Variant(InputRequiredResult, consts={"resultType": ("input_required",)}),
            Variant(CallToolResult, required=("content",)),
        )


if TYPE_CHECKING:
    GetPromptResultResponseResult: TypeAlias = InputRequiredResult | GetPromptResult
    """Answer to `prompts/get`: the prompt, or a demand for more input.

    Source: server/prompts.
    """
else:

    class GetPromptResultResponseResult(Untagged):
        variants = (
            Variant(InputRequiredResult, consts={"resultType": ("input_required",)}),
            Variant(GetPromptResult, required=("messages",)),
        )


class InputResponseRequestParams(Struct, kw_only=True, frozen=True):
    """The params of a request that may be a retry with input.

    Source: basic/patterns/mrtr.
    """

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    input_responses: InputResponses | None = field(name="inputResponses", default=None)
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys."""
    request_state: str | None = field(name="requestState", default=None)
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.
    """


class InternalError(Struct, kw_only=True, frozen=True):
    """Error -32603: the receiver failed for a reason of its own.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32603] = always_sent(-32603)
    """Always -32603."""
    data: Any | UnsetType = UNSET
    """Details in any shape the sender likes; untrusted."""


class InvalidParamsError(Struct, kw_only=True, frozen=True):
    """Error -32602: the params are wrong, e.g. an unknown tool, prompt or resource, a missing
    argument or a bad cursor.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32602] = always_sent(-32602)
    """Always -32602."""
    data: Any | UnsetType = UNSET
    """Details in any shape the sender likes; untrusted."""


class InvalidRequestError(Struct, kw_only=True, frozen=True):
    """Error -32600: the JSON received is no valid JSON-RPC request.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32600] = always_sent(-32600)
    """Always -32600."""
    data: Any | UnsetType = UNSET
    """Details in any shape the sender likes; untrusted."""


JSONArray: TypeAlias = list[Any]
"""A JSON array with any content.

Source: basic/index.
"""


JSONObject: TypeAlias = dict[str, Any]
"""A JSON object with any content.

Source: basic/index.
"""


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


JSONValue: TypeAlias = Any
"""Any JSON value.

Source: basic/index.
"""


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
    params: PaginatedRequestParams
    """Where the page starts."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ListPromptsResult(Struct, kw_only=True, frozen=True):
    """A page of prompts.

    Source: server/prompts.
    """

    prompts: list[Prompt]
    """The prompts on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class ListPromptsResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of a `ListPromptsResult`.

    Source: server/prompts.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: ListPromptsResult
    """The page of prompts."""


class ListResourceTemplatesRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/templates/list"
):
    """Asks for a page of the server's resource templates.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/templates/list"]] = "resources/templates/list"
    id: RequestId
    params: PaginatedRequestParams
    """Where the page starts."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ListResourceTemplatesResult(Struct, kw_only=True, frozen=True):
    """A page of resource templates.

    Source: server/resources.
    """

    resource_templates: list[ResourceTemplate] = field(name="resourceTemplates")
    """The templates on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class ListResourceTemplatesResultResponse(
    Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"
):
    """The envelope of a `ListResourceTemplatesResult`.

    Source: server/resources.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: ListResourceTemplatesResult
    """The page of templates."""


class ListResourcesRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="resources/list"
):
    """Asks for a page of the server's resources.

    Source: server/resources.
    """

    method: ClassVar[Literal["resources/list"]] = "resources/list"
    id: RequestId
    params: PaginatedRequestParams
    """Where the page starts."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ListResourcesResult(Struct, kw_only=True, frozen=True):
    """A page of resources.

    Source: server/resources.
    """

    resources: list[Resource]
    """The resources on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class ListResourcesResultResponse(
    Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"
):
    """The envelope of a `ListResourcesResult`.

    Source: server/resources.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: ListResourcesResult
    """The page of resources."""


class ListRootsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="roots/list"):
    """Deprecated in this revision. Asks the client for its roots; travels inside an
    `InputRequiredResult`, without an id.

    Source: client/roots.
    """

    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: ListRootsRequestParams | None = None
    """Metadata only."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        id = None
        jsonrpc = None


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest
"""A question that a server puts to a client in a result: elicitation, sampling or roots.

Source: basic/patterns/mrtr.
"""


InputRequests: TypeAlias = dict[str, InputRequest]
"""Questions of a server to a client, under keys that the server chose.

Source: basic/patterns/mrtr.
"""


class ListRootsRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `roots/list`.

    Source: client/roots.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""


class ListRootsResult(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. The client's roots; travels inside the `inputResponses` of a
    retry.

    Source: client/roots.
    """

    roots: list[Root]
    """The roots; there are no pages."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        meta = None


if TYPE_CHECKING:
    InputResponse: TypeAlias = CreateMessageResult | ListRootsResult | ElicitResult
    """The client's answer to one input request.

    Source: basic/patterns/mrtr.
    """
else:

    class InputResponse(Untagged):
        variants = (
            Variant(CreateMessageResult, required=("model",)),
            Variant(ListRootsResult, required=("roots",)),
            Variant(ElicitResult, required=("action",)),
        )


InputResponses: TypeAlias = dict[str, InputResponse]
"""The client's answers, each under the key of its input request.

Source: basic/patterns/mrtr.
"""


class ListToolsRequest(Struct, kw_only=True, frozen=True, tag_field="method", tag="tools/list"):
    """Asks for a page of the server's tools.

    Source: server/tools.
    """

    method: ClassVar[Literal["tools/list"]] = "tools/list"
    id: RequestId
    params: PaginatedRequestParams
    """Where the page starts."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ListToolsResult(Struct, kw_only=True, frozen=True):
    """A page of tools.

    Source: server/tools.
    """

    tools: list[Tool]
    """The tools on this page."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class ListToolsResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of a `ListToolsResult`.

    Source: server/tools.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: ListToolsResult
    """The page of tools."""


LoggingLevel: TypeAlias = Literal[
    "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"
]
"""Deprecated in this revision. Severity of a log message (RFC 5424), rising: debug, info, notice,
warning, error, critical, alert, emergency.

Source: server/utilities/logging.
"""


class LoggingMessageNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/message"
):
    """Deprecated in this revision. A log message about one request, sent only if the metadata of
    that request sets a log level.

    Source: server/utilities/logging.
    """

    method: ClassVar[Literal["notifications/message"]] = "notifications/message"
    params: LoggingMessageNotificationParams
    """The log message."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class LoggingMessageNotificationParams(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. Params of `notifications/message`.

    Source: server/utilities/logging.
    """

    data: Any
    """What is logged: any JSON value; it must hold no secrets."""
    level: LoggingLevel
    """Severity of the message."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; on a subscription stream it names the subscription."""
    logger: str | None = None
    """Name of the part of the server that speaks."""


MetaObject: TypeAlias = dict[str, Any]
"""Extra data attached to a message or object. A key is an optional reverse-DNS prefix with a slash,
then a name.

Source: basic/index.
"""


class MethodNotFoundError(Struct, kw_only=True, frozen=True):
    """Error -32601: the receiver has no such method, or did not advertise the capability it belongs
    to.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32601] = always_sent(-32601)
    """Always -32601."""
    data: Any | UnsetType = UNSET
    """Details in any shape the sender likes; untrusted."""


class MissingRequiredClientCapabilityError(
    Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"
):
    """Error response -32021: the request needs a capability that the client did not declare. HTTP
    status 400.

    Source: basic/index.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    error: MissingRequiredClientCapabilityErrorError
    """The error, with the missing capabilities."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""


class MissingRequiredClientCapabilityErrorError(Struct, kw_only=True, frozen=True):
    """Error -32021.

    Source: basic/index.
    """

    data: MissingRequiredClientCapabilityErrorErrorData
    """The missing capabilities."""
    message: str
    """One short sentence for people."""
    code: Literal[-32021] = always_sent(-32021)
    """Always -32021."""


class MissingRequiredClientCapabilityErrorErrorData(Struct, kw_only=True, frozen=True):
    """What the client would have to declare.

    Source: basic/index.
    """

    required_capabilities: ClientCapabilities = field(name="requiredCapabilities")
    """The capabilities that were missing from the request."""


class ModelHint(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. A wish for a particular model or family.

    Source: client/sampling.
    """

    name: str | None = None
    """Part of a model's name, such as `sonnet`; a client may substitute an equivalent of another
    provider.
    """


class ModelPreferences(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. What the server would like of the model; advice only.

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


class NotificationMetaObject(Struct, kw_only=True, frozen=True):
    """Metadata of a notification.

    Source: basic/index.
    """

    subscription_id: RequestId | None = field(
        name="io.modelcontextprotocol/subscriptionId", default=None
    )
    """Subscription whose stream delivers this, by the id of its `subscriptions/listen`; absent
    outside such a stream.
    """


class NotificationParams(Struct, kw_only=True, frozen=True):
    """The params that all notifications accept.

    Source: basic/index.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; on a subscription stream it names the subscription."""


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
    params: PaginatedRequestParams
    """Where the page starts."""


class PaginatedRequestParams(Struct, kw_only=True, frozen=True):
    """The params of a paged list request.

    Source: server/utilities/pagination.
    """

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    cursor: str | None = None
    """The `nextCursor` of the preceding page; absent asks for the first page. A bad one gives error
    -32602.
    """


class PaginatedResult(Struct, kw_only=True, frozen=True):
    """The part that all pages have in common.

    Source: server/utilities/pagination.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    next_cursor: str | None = field(name="nextCursor", default=None)
    """Cursor of the next page; absent on the last page."""
    result_type: str = always_sent("complete", name="resultType")
    """Tells how to read the result: `complete`, `input_required` or a value of an extension; absent
    (older servers) means `complete`.
    """


class ParseError(Struct, kw_only=True, frozen=True):
    """Error -32700: the bytes received are not JSON.

    Source: basic/index.
    """

    message: str
    """One short sentence for people."""
    code: Literal[-32700] = always_sent(-32700)
    """Always -32700."""
    data: Any | UnsetType = UNSET
    """Details in any shape the sender likes; untrusted."""


class ProgressNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/progress"
):
    """Reports how far a request has come whose sender supplied a progress token.

    Source: basic/patterns/progress.
    """

    method: ClassVar[Literal["notifications/progress"]] = "notifications/progress"
    params: ProgressNotificationParams
    """Which request, and how far."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class ProgressNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/progress`.

    Source: basic/patterns/progress.
    """

    progress: int | float
    """Amount done so far, in any unit; every notification has a higher value than the one before.
    """
    progress_token: ProgressToken = field(name="progressToken")
    """Token from the metadata of the request that this is about."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data; on a subscription stream it names the subscription."""
    message: str | None = None
    """What is happening right now, for people."""
    total: int | float | None = None
    """Amount at completion, in the unit of `progress`; absent means unknown."""


ProgressToken: TypeAlias = str | int
"""Ties progress notifications to a request: a string or an integer, unique among the sender's
active requests.

Source: basic/patterns/progress.
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
    """The server's prompts have changed; list them again. It comes only on a subscription with
    `promptsListChanged`.

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
    """Reads one resource. An unknown URI is error -32602 (servers of earlier revisions answer
    -32002).

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

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""
    input_responses: InputResponses | None = field(name="inputResponses", default=None)
    """Answers to the input requests of the preceding `InputRequiredResult`, under the same keys."""
    request_state: str | None = field(name="requestState", default=None)
    """Opaque state from the preceding `InputRequiredResult`, echoed unchanged; absent if that had
    none. The server must not trust it.
    """


class ReadResourceResult(Struct, kw_only=True, frozen=True):
    """What was read.

    Source: server/resources.
    """

    contents: list[ReadResourceResultContents]
    """The contents; several when the URI names a collection."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    cache_scope: Literal["private", "public"] = always_sent("private", name="cacheScope")
    """`public`: shared caches may serve it to everyone; `private`: reuse stays within one
    authorization context.
    """
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""
    ttl_ms: Annotated[int, Meta(ge=0)] = always_sent(0, name="ttlMs")
    """Milliseconds for which the result counts as fresh after its receipt; 0 means stale at once.
    """


class ReadResourceResultResponse(Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The envelope of the answer to `resources/read`.

    Source: server/resources.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: ReadResourceResultResponseResult
    """What was read, or a demand for more input."""


if TYPE_CHECKING:
    ReadResourceResultResponseResult: TypeAlias = InputRequiredResult | ReadResourceResult
    """Answer to `resources/read`: what was read, or a demand for more input.

    Source: server/resources.
    """
else:

    class ReadResourceResultResponseResult(Untagged):
        variants = (
            Variant(InputRequiredResult, consts={"resultType": ("input_required",)}),
            Variant(ReadResourceResult, required=("contents",)),
        )


class Request(Struct, kw_only=True, frozen=True):
    """The part that all requests have in common.

    Source: basic/index.
    """

    method: str
    params: dict[str, Any] | None = None
    """Arguments of the method, by name; absent means none."""


RequestId: TypeAlias = str | int
"""Identifies a request: a string or an integer, never null, unique among the sender's open
requests.

Source: basic/index.
"""


class RequestMetaObject(Struct, kw_only=True, frozen=True):
    """Metadata of a request: it carries everything that a handshake settled in earlier revisions.

    Source: basic/index.
    """

    client_capabilities: ClientCapabilities = field(
        name="io.modelcontextprotocol/clientCapabilities"
    )
    """Required: what the client can do for this one request; servers keep no memory of earlier
    ones.
    """
    protocol_version: str = field(name="io.modelcontextprotocol/protocolVersion")
    """Required: revision the request follows; over HTTP it must equal the `MCP-Protocol-Version`
    header.
    """
    client_info: Implementation | None = field(
        name="io.modelcontextprotocol/clientInfo", default=None
    )
    """What software the client runs; its own claim, for display and logs only."""
    log_level: LoggingLevel | None = field(name="io.modelcontextprotocol/logLevel", default=None)
    """Lowest severity of log messages wanted for this request; absent forbids them. Deprecated with
    logging.
    """
    progress_token: ProgressToken | None = field(name="progressToken", default=None)
    """Asks for progress notifications, which will repeat this token; the receiver may send none."""


class RequestParams(Struct, kw_only=True, frozen=True):
    """The params that all requests accept.

    Source: basic/index.
    """

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """


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
    """The server's resources have changed; list them again. It comes only on a subscription with
    `resourcesListChanged`.

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

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    uri: str
    """Address of the resource, of any scheme; the server decides what it means."""


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
    """A resource named in `resourceSubscriptions` has changed; read it again.

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
    """Extra data; on a subscription stream it names the subscription."""


class Result(Struct, kw_only=True, frozen=True):
    """The part that all results have in common; methods add fields of their own.

    Source: basic/index.
    """

    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data about the result; servers should name their software here."""
    result_type: str = always_sent("complete", name="resultType")
    """Tells how to read the result: `complete`, `input_required` or a value of an extension; absent
    (older servers) means `complete`.
    """


ClientResult: TypeAlias = Result
"""Unused: clients receive no requests any more, so they return no results.

Source: basic/index.
"""


EmptyResult: TypeAlias = Result
"""A result that only confirms success.

Source: basic/index.
"""


class ResultMetaObject(Struct, kw_only=True, frozen=True):
    """Metadata of a result.

    Source: basic/index.
    """

    server_info: Implementation | None = field(
        name="io.modelcontextprotocol/serverInfo", default=None
    )
    """What software the server runs; its own claim, for display and logs only."""


ResultType: TypeAlias = str
"""How a result is to be read: `complete` is final, `input_required` asks for more input first;
extensions may add values.

Source: basic/index.
"""


Role: TypeAlias = Literal["assistant", "user"]
"""Who speaks in a conversation: `user` or `assistant`.

Source: basic/index.
"""


class Root(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. A directory or file on which the client wants the server to
    work. Guidance, not access control.

    Source: client/roots.
    """

    uri: str
    """Address of the root; always a `file://` URI so far."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Extra data outside the protocol; keys whose prefix belongs to MCP are reserved."""
    name: str | None = None
    """Name shown to people."""


class SamplingMessage(Struct, kw_only=True, frozen=True):
    """Deprecated in this revision. A message to or from a model.

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

    Source: server/discover.
    """

    completions: JSONObject | None = None
    """The server completes arguments; an empty object."""
    experimental: dict[str, JSONObject] | None = None
    """Non-standard features, by name, each with settings of its own."""
    extensions: dict[str, JSONObject] | None = None
    """Protocol extensions the server supports, by prefixed identifier; an empty object means no
    settings.
    """
    logging: JSONObject | None = None
    """The server emits log messages; an empty object. Deprecated."""
    prompts: ServerCapabilitiesPrompts | None = None
    """The server has prompts."""
    resources: ServerCapabilitiesResources | None = None
    """The server has resources."""
    tools: ServerCapabilitiesTools | None = None
    """The server has tools."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
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
    """Clients may name single resources in `subscriptions/listen`; absent means false."""


class ServerCapabilitiesTools(Struct, kw_only=True, frozen=True):
    """What the server offers about tools.

    Source: server/tools.
    """

    list_changed: bool | None = field(name="listChanged", default=None)
    """The server announces changes of its tools; absent means false."""


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


class SubscriptionFilter(Struct, kw_only=True, frozen=True):
    """Which notifications a subscription delivers. What is absent or false is not delivered.

    Source: basic/patterns/subscriptions.
    """

    prompts_list_changed: bool | None = field(name="promptsListChanged", default=None)
    """Announce changes of the prompts."""
    resource_subscriptions: list[str] | None = field(name="resourceSubscriptions", default=None)
    """URIs of resources whose updates are announced; replaces `resources/subscribe`."""
    resources_list_changed: bool | None = field(name="resourcesListChanged", default=None)
    """Announce changes of the resources."""
    tools_list_changed: bool | None = field(name="toolsListChanged", default=None)
    """Announce changes of the tools."""


class SubscriptionsAcknowledgedNotification(
    Struct,
    kw_only=True,
    frozen=True,
    tag_field="method",
    tag="notifications/subscriptions/acknowledged",
):
    """First message of a subscription: the server says what it will deliver.

    Source: basic/patterns/subscriptions.
    """

    method: ClassVar[Literal["notifications/subscriptions/acknowledged"]] = (
        "notifications/subscriptions/acknowledged"
    )
    params: SubscriptionsAcknowledgedNotificationParams
    """What will be delivered."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


class SubscriptionsAcknowledgedNotificationParams(Struct, kw_only=True, frozen=True):
    """Params of `notifications/subscriptions/acknowledged`.

    Source: basic/patterns/subscriptions.
    """

    notifications: SubscriptionFilter
    """The kinds of notification granted; those the server lacks are left out."""
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    """Names the subscription."""


class SubscriptionsListenRequest(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="subscriptions/listen"
):
    """Opens a stream of notifications that lasts until either side ends it.

    Source: basic/patterns/subscriptions.
    """

    method: ClassVar[Literal["subscriptions/listen"]] = "subscriptions/listen"
    id: RequestId
    params: SubscriptionsListenRequestParams
    """What to be told about."""
    jsonrpc: Literal["2.0"] = always_sent("2.0")


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
)
"""Every request that a client may send.

Source: basic/index.
"""


class SubscriptionsListenRequestParams(Struct, kw_only=True, frozen=True):
    """Params of `subscriptions/listen`.

    Source: basic/patterns/subscriptions.
    """

    meta: dict[str, Any] = field(name="_meta")
    """Required metadata of every request: revision and client capabilities, and what else the
    client tells about itself.
    """
    notifications: SubscriptionFilter
    """The kinds of notification wanted; no others may be sent."""


class SubscriptionsListenResult(Struct, kw_only=True, frozen=True):
    """The server ended the subscription in good order; a lost connection leaves no result.

    Source: basic/patterns/subscriptions.
    """

    meta: dict[str, Any] = field(name="_meta")
    """Names the subscription that ended."""
    result_type: str = always_sent("complete", name="resultType")
    """`complete`; absent (older servers) means the same."""


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
)
"""Every result that a server may return.

Source: basic/index.
"""


class SubscriptionsListenResultMetaObject(Struct, kw_only=True, frozen=True):
    """Metadata of the result that ends a subscription.

    Source: basic/patterns/subscriptions.
    """

    subscription_id: RequestId = field(name="io.modelcontextprotocol/subscriptionId")
    """Subscription that has ended, by the id of its `subscriptions/listen`; equal to the id of this
    response.
    """
    server_info: Implementation | None = field(
        name="io.modelcontextprotocol/serverInfo", default=None
    )
    """What software the server runs; its own claim, for display and logs only."""


class SubscriptionsListenResultResponse(
    Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"
):
    """The envelope of a `SubscriptionsListenResult`.

    Source: basic/patterns/subscriptions.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    id: RequestId
    result: SubscriptionsListenResult
    """The end of the subscription."""


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
    """JSON Schema (2020-12 unless it says otherwise) of the arguments, with root type `object`;
    `x-mcp-header` copies an argument to an HTTP header.
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
    icons: list[Icon] | None = None
    """Icons to choose from, in several sizes or formats; fetch and render them with care."""
    output_schema: dict[str, Any] | None = field(name="outputSchema", default=None)
    """JSON Schema (2020-12 unless it says otherwise) of `structuredContent`, of any type; absent
    means none is promised.
    """
    title: str | None = None
    """Name shown to people; when absent, `annotations.title` is shown, then `name`."""

    if not TYPE_CHECKING:  # members of other revisions, for code that reads objects of all
        execution = None

    def __post_init__(self) -> None:
        if self.input_schema.get("type") != "object":
            raise ValueError('inputSchema: expected a JSON Schema with "type": "object"')


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
    """Deprecated in this revision. Whether the model may or must use tools.

    Source: client/sampling.
    """

    mode: Literal["auto", "none", "required"] | None = None
    """`auto`: as the model sees fit (default); `required`: at least one; `none`: no tool."""


class ToolListChangedNotification(
    Struct, kw_only=True, frozen=True, tag_field="method", tag="notifications/tools/list_changed"
):
    """The server's tools have changed; list them again. It comes only on a subscription with
    `toolsListChanged`.

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
    | SubscriptionsAcknowledgedNotification
    | ResourceUpdatedNotification
    | PromptListChangedNotification
    | ToolListChangedNotification
    | LoggingMessageNotification
)
"""Every notification that a server may send.

Source: basic/index.
"""


class ToolResultContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="tool_result"):
    """Deprecated in this revision. What a tool returned to the model that demanded it.

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
    structured_content: Any | UnsetType = field(name="structuredContent", default=UNSET)
    """The output as any JSON value, null included, that fits the tool's `outputSchema`."""


class ToolUseContent(Struct, kw_only=True, frozen=True, tag_field="type", tag="tool_use"):
    """Deprecated in this revision. A model's demand to run a tool.

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


class UnsupportedProtocolVersionError(
    Struct, kw_only=True, frozen=True, tag_field="jsonrpc", tag="2.0"
):
    """Error response -32022: the server does not speak the revision of the request. HTTP status
    400.

    Source: basic/versioning.
    """

    jsonrpc: ClassVar[Literal["2.0"]] = "2.0"
    error: UnsupportedProtocolVersionErrorError
    """The error, with the revisions on offer."""
    id: RequestId | None = None
    """Id of the failed request; absent only if it could not be read."""


class UnsupportedProtocolVersionErrorError(Struct, kw_only=True, frozen=True):
    """Error -32022.

    Source: basic/versioning.
    """

    data: UnsupportedProtocolVersionErrorErrorData
    """The revision asked for and those on offer."""
    message: str
    """One short sentence for people."""
    code: Literal[-32022] = always_sent(-32022)
    """Always -32022."""


class UnsupportedProtocolVersionErrorErrorData(Struct, kw_only=True, frozen=True):
    """What a client needs to pick another revision.

    Source: basic/versioning.
    """

    requested: str
    """Revision named by the request."""
    supported: list[str]
    """Revisions the server speaks; retry with one of them."""


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
