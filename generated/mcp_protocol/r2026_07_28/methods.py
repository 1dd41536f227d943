"""The methods of 2026-07-28, and what else a connection has to know of it."""

from __future__ import annotations

from .. import revision_facts
from ..facts import Lifecycle, Method, Revision
from . import models

DISCOVER = Method(
    name="server/discover",
    kind="request",
    sender="client",
    params=models.RequestParams,
    params_required=True,
    result=models.DiscoverResult,
    capability=(),
    items=None,
    python_name="discover",
)
LIST_RESOURCES = Method(
    name="resources/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=True,
    result=models.ListResourcesResult,
    capability=("resources",),
    items="resources",
    python_name="list_resources",
)
LIST_RESOURCE_TEMPLATES = Method(
    name="resources/templates/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=True,
    result=models.ListResourceTemplatesResult,
    capability=("resources",),
    items="resource_templates",
    python_name="list_resource_templates",
)
READ_RESOURCE = Method(
    name="resources/read",
    kind="request",
    sender="client",
    params=models.ReadResourceRequestParams,
    params_required=True,
    result=models.ReadResourceResultResponseResult,
    capability=("resources",),
    items=None,
    python_name="read_resource",
)
SUBSCRIPTIONS_LISTEN = Method(
    name="subscriptions/listen",
    kind="request",
    sender="client",
    params=models.SubscriptionsListenRequestParams,
    params_required=True,
    result=models.SubscriptionsListenResult,
    capability=(),
    items=None,
    python_name="subscriptions_listen",
)
LIST_PROMPTS = Method(
    name="prompts/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=True,
    result=models.ListPromptsResult,
    capability=("prompts",),
    items="prompts",
    python_name="list_prompts",
)
GET_PROMPT = Method(
    name="prompts/get",
    kind="request",
    sender="client",
    params=models.GetPromptRequestParams,
    params_required=True,
    result=models.GetPromptResultResponseResult,
    capability=("prompts",),
    items=None,
    python_name="get_prompt",
)
LIST_TOOLS = Method(
    name="tools/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=True,
    result=models.ListToolsResult,
    capability=("tools",),
    items="tools",
    python_name="list_tools",
)
CALL_TOOL = Method(
    name="tools/call",
    kind="request",
    sender="client",
    params=models.CallToolRequestParams,
    params_required=True,
    result=models.CallToolResultResponseResult,
    capability=("tools",),
    items=None,
    python_name="call_tool",
)
COMPLETE = Method(
    name="completion/complete",
    kind="request",
    sender="client",
    params=models.CompleteRequestParams,
    params_required=True,
    result=models.CompleteResult,
    capability=("completions",),
    items=None,
    python_name="complete",
)
CLIENT_CANCELLED = Method(
    name="notifications/cancelled",
    kind="notification",
    sender="client",
    params=models.CancelledNotificationParams,
    params_required=True,
    result=None,
    capability=(),
    items=None,
    python_name="cancelled",
)
SERVER_CANCELLED = Method(
    name="notifications/cancelled",
    kind="notification",
    sender="server",
    params=models.CancelledNotificationParams,
    params_required=True,
    result=None,
    capability=(),
    items=None,
    python_name="cancelled",
)
PROGRESS = Method(
    name="notifications/progress",
    kind="notification",
    sender="server",
    params=models.ProgressNotificationParams,
    params_required=True,
    result=None,
    capability=(),
    items=None,
    python_name="progress",
)
RESOURCE_LIST_CHANGED = Method(
    name="notifications/resources/list_changed",
    kind="notification",
    sender="server",
    params=models.NotificationParams,
    params_required=False,
    result=None,
    capability=("resources", "listChanged"),
    items=None,
    python_name="resource_list_changed",
)
SUBSCRIPTIONS_ACKNOWLEDGED = Method(
    name="notifications/subscriptions/acknowledged",
    kind="notification",
    sender="server",
    params=models.SubscriptionsAcknowledgedNotificationParams,
    params_required=True,
    result=None,
    capability=(),
    items=None,
    python_name="subscriptions_acknowledged",
)
RESOURCE_UPDATED = Method(
    name="notifications/resources/updated",
    kind="notification",
    sender="server",
    params=models.ResourceUpdatedNotificationParams,
    params_required=True,
    result=None,
    capability=("resources", "subscribe"),
    items=None,
    python_name="resource_updated",
)
PROMPT_LIST_CHANGED = Method(
    name="notifications/prompts/list_changed",
    kind="notification",
    sender="server",
    params=models.NotificationParams,
    params_required=False,
    result=None,
    capability=("prompts", "listChanged"),
    items=None,
    python_name="prompt_list_changed",
)
TOOL_LIST_CHANGED = Method(
    name="notifications/tools/list_changed",
    kind="notification",
    sender="server",
    params=models.NotificationParams,
    params_required=False,
    result=None,
    capability=("tools", "listChanged"),
    items=None,
    python_name="tool_list_changed",
)
LOGGING_MESSAGE = Method(
    name="notifications/message",
    kind="notification",
    sender="server",
    params=models.LoggingMessageNotificationParams,
    params_required=True,
    result=None,
    capability=("logging",),
    items=None,
    python_name="logging_message",
)
CREATE_MESSAGE = Method(
    name="sampling/createMessage",
    kind="request",
    sender="server",
    params=models.CreateMessageRequestParams,
    params_required=True,
    result=models.CreateMessageResult,
    capability=("sampling",),
    items=None,
    python_name="create_message",
)
LIST_ROOTS = Method(
    name="roots/list",
    kind="request",
    sender="server",
    params=models.ListRootsRequestParams,
    params_required=False,
    result=models.ListRootsResult,
    capability=("roots",),
    items=None,
    python_name="list_roots",
)
ELICIT = Method(
    name="elicitation/create",
    kind="request",
    sender="server",
    params=models.ElicitRequestParams,
    params_required=True,
    result=models.ElicitResult,
    capability=("elicitation",),
    items=None,
    python_name="elicit",
)

REVISION = Revision(
    name="2026-07-28",
    lifecycle=Lifecycle.PER_REQUEST,
    batching=False,
    client_requests={
        "server/discover": DISCOVER,
        "resources/list": LIST_RESOURCES,
        "resources/templates/list": LIST_RESOURCE_TEMPLATES,
        "resources/read": READ_RESOURCE,
        "subscriptions/listen": SUBSCRIPTIONS_LISTEN,
        "prompts/list": LIST_PROMPTS,
        "prompts/get": GET_PROMPT,
        "tools/list": LIST_TOOLS,
        "tools/call": CALL_TOOL,
        "completion/complete": COMPLETE,
    },
    server_requests={},
    client_notifications={
        "notifications/cancelled": CLIENT_CANCELLED,
    },
    server_notifications={
        "notifications/cancelled": SERVER_CANCELLED,
        "notifications/progress": PROGRESS,
        "notifications/resources/list_changed": RESOURCE_LIST_CHANGED,
        "notifications/subscriptions/acknowledged": SUBSCRIPTIONS_ACKNOWLEDGED,
        "notifications/resources/updated": RESOURCE_UPDATED,
        "notifications/prompts/list_changed": PROMPT_LIST_CHANGED,
        "notifications/tools/list_changed": TOOL_LIST_CHANGED,
        "notifications/message": LOGGING_MESSAGE,
    },
    input_requests={
        "sampling/createMessage": CREATE_MESSAGE,
        "roots/list": LIST_ROOTS,
        "elicitation/create": ELICIT,
    },
    implementation=models.Implementation,
    client_capabilities=models.ClientCapabilities,
    server_capabilities=models.ServerCapabilities,
    meta_type=models.RequestMetaObject,
    result_types=("complete", "input_required"),
    facts=revision_facts.Facts(
        transports=revision_facts.Transports(
            streamable_http="stateless",
        ),
        headers=revision_facts.Headers(
            protocol_version="MCP-Protocol-Version",
            method="Mcp-Method",
            name="Mcp-Name",
            param_prefix="Mcp-Param-",
        ),
        http=revision_facts.Http(
            unknown_method=404,
            missing_capability=400,
            header_mismatch=400,
            fallback=("400", "404", "405"),
            cancellation="close",
        ),
        errors=revision_facts.ErrorCodes(
            resource_not_found=-32602,
            unsupported_revision=-32022,
            missing_capability=-32021,
            header_mismatch=-32020,
            defined=(-32022, -32021, -32020),
            retired=(-32042, -32002),
        ),
        behaviour=revision_facts.Behaviour(
            unreadable_id="omit",
            bad_tool_arguments="result",
            structured_content="any",
            log_level="request",
            listen="subscriptions/listen",
        ),
        meta=revision_facts.MetaKeys(
            key_rules=True,
            reserved_prefix="second-label",
            trace_keys=("traceparent", "tracestate", "baggage"),
            protocol_version="io.modelcontextprotocol/protocolVersion",
            client_info="io.modelcontextprotocol/clientInfo",
            client_capabilities="io.modelcontextprotocol/clientCapabilities",
            log_level="io.modelcontextprotocol/logLevel",
            server_info="io.modelcontextprotocol/serverInfo",
            subscription_id="io.modelcontextprotocol/subscriptionId",
        ),
        methods={
            "completion/complete": revision_facts.MethodFacts(idempotent=True),
            "notifications/message": revision_facts.MethodFacts(before_initialized=True),
            "notifications/prompts/list_changed": revision_facts.MethodFacts(
                invalidates=("prompts/list",), subscription="promptsListChanged"
            ),
            "notifications/resources/list_changed": revision_facts.MethodFacts(
                invalidates=("resources/list", "resources/templates/list"),
                subscription="resourcesListChanged",
            ),
            "notifications/resources/updated": revision_facts.MethodFacts(
                subscription="resourceSubscriptions"
            ),
            "notifications/tools/list_changed": revision_facts.MethodFacts(
                invalidates=("tools/list",), subscription="toolsListChanged"
            ),
            "prompts/get": revision_facts.MethodFacts(
                idempotent=True, named_by="name", input_required=True, listed_by="prompts/list"
            ),
            "prompts/list": revision_facts.MethodFacts(idempotent=True),
            "resources/list": revision_facts.MethodFacts(idempotent=True),
            "resources/read": revision_facts.MethodFacts(
                idempotent=True, named_by="uri", input_required=True, listed_by="resources/list"
            ),
            "resources/templates/list": revision_facts.MethodFacts(idempotent=True),
            "server/discover": revision_facts.MethodFacts(idempotent=True),
            "tasks/cancel": revision_facts.MethodFacts(extension=True, named_by="taskId"),
            "tasks/get": revision_facts.MethodFacts(
                extension=True, idempotent=True, named_by="taskId"
            ),
            "tasks/update": revision_facts.MethodFacts(extension=True, named_by="taskId"),
            "tools/call": revision_facts.MethodFacts(
                named_by="name", param_headers=True, input_required=True, listed_by="tools/list"
            ),
            "tools/list": revision_facts.MethodFacts(idempotent=True),
        },
    ),
)
"""All of 2026-07-28 as one value."""
