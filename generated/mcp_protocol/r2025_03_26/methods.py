"""The methods of 2025-03-26, and what else a connection has to know of it."""

from __future__ import annotations

from .. import revision_facts
from ..facts import Lifecycle, Method, Revision
from . import models

INITIALIZE = Method(
    name="initialize",
    kind="request",
    sender="client",
    params=models.InitializeRequestParams,
    params_required=True,
    result=models.InitializeResult,
    capability=(),
    items=None,
    python_name="initialize",
)
CLIENT_PING = Method(
    name="ping",
    kind="request",
    sender="client",
    params=models.RequestParams,
    params_required=False,
    result=models.EmptyResult,
    capability=(),
    items=None,
    python_name="ping",
)
LIST_RESOURCES = Method(
    name="resources/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=False,
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
    params_required=False,
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
    result=models.ReadResourceResult,
    capability=("resources",),
    items=None,
    python_name="read_resource",
)
SUBSCRIBE = Method(
    name="resources/subscribe",
    kind="request",
    sender="client",
    params=models.SubscribeRequestParams,
    params_required=True,
    result=models.EmptyResult,
    capability=("resources", "subscribe"),
    items=None,
    python_name="subscribe",
)
UNSUBSCRIBE = Method(
    name="resources/unsubscribe",
    kind="request",
    sender="client",
    params=models.UnsubscribeRequestParams,
    params_required=True,
    result=models.EmptyResult,
    capability=("resources", "subscribe"),
    items=None,
    python_name="unsubscribe",
)
LIST_PROMPTS = Method(
    name="prompts/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=False,
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
    result=models.GetPromptResult,
    capability=("prompts",),
    items=None,
    python_name="get_prompt",
)
LIST_TOOLS = Method(
    name="tools/list",
    kind="request",
    sender="client",
    params=models.PaginatedRequestParams,
    params_required=False,
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
    result=models.CallToolResult,
    capability=("tools",),
    items=None,
    python_name="call_tool",
)
SET_LEVEL = Method(
    name="logging/setLevel",
    kind="request",
    sender="client",
    params=models.SetLevelRequestParams,
    params_required=True,
    result=models.EmptyResult,
    capability=("logging",),
    items=None,
    python_name="set_level",
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
SERVER_PING = Method(
    name="ping",
    kind="request",
    sender="server",
    params=models.RequestParams,
    params_required=False,
    result=models.EmptyResult,
    capability=(),
    items=None,
    python_name="ping",
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
    params=models.RequestParams,
    params_required=False,
    result=models.ListRootsResult,
    capability=("roots",),
    items=None,
    python_name="list_roots",
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
INITIALIZED = Method(
    name="notifications/initialized",
    kind="notification",
    sender="client",
    params=models.NotificationParams,
    params_required=False,
    result=None,
    capability=(),
    items=None,
    python_name="initialized",
)
CLIENT_PROGRESS = Method(
    name="notifications/progress",
    kind="notification",
    sender="client",
    params=models.ProgressNotificationParams,
    params_required=True,
    result=None,
    capability=(),
    items=None,
    python_name="progress",
)
ROOTS_LIST_CHANGED = Method(
    name="notifications/roots/list_changed",
    kind="notification",
    sender="client",
    params=models.NotificationParams,
    params_required=False,
    result=None,
    capability=("roots", "listChanged"),
    items=None,
    python_name="roots_list_changed",
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
SERVER_PROGRESS = Method(
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

REVISION = Revision(
    name="2025-03-26",
    lifecycle=Lifecycle.HANDSHAKE,
    batching=True,
    client_requests={
        "initialize": INITIALIZE,
        "ping": CLIENT_PING,
        "resources/list": LIST_RESOURCES,
        "resources/templates/list": LIST_RESOURCE_TEMPLATES,
        "resources/read": READ_RESOURCE,
        "resources/subscribe": SUBSCRIBE,
        "resources/unsubscribe": UNSUBSCRIBE,
        "prompts/list": LIST_PROMPTS,
        "prompts/get": GET_PROMPT,
        "tools/list": LIST_TOOLS,
        "tools/call": CALL_TOOL,
        "logging/setLevel": SET_LEVEL,
        "completion/complete": COMPLETE,
    },
    server_requests={
        "ping": SERVER_PING,
        "sampling/createMessage": CREATE_MESSAGE,
        "roots/list": LIST_ROOTS,
    },
    client_notifications={
        "notifications/cancelled": CLIENT_CANCELLED,
        "notifications/initialized": INITIALIZED,
        "notifications/progress": CLIENT_PROGRESS,
        "notifications/roots/list_changed": ROOTS_LIST_CHANGED,
    },
    server_notifications={
        "notifications/cancelled": SERVER_CANCELLED,
        "notifications/progress": SERVER_PROGRESS,
        "notifications/resources/list_changed": RESOURCE_LIST_CHANGED,
        "notifications/resources/updated": RESOURCE_UPDATED,
        "notifications/prompts/list_changed": PROMPT_LIST_CHANGED,
        "notifications/tools/list_changed": TOOL_LIST_CHANGED,
        "notifications/message": LOGGING_MESSAGE,
    },
    input_requests={},
    implementation=models.Implementation,
    client_capabilities=models.ClientCapabilities,
    server_capabilities=models.ServerCapabilities,
    meta_type=models.RequestMetaObject,
    result_types=(),
    facts=revision_facts.Facts(
        transports=revision_facts.Transports(
            streamable_http="session",
        ),
        headers=revision_facts.Headers(
            session="Mcp-Session-Id",
            last_event_id="Last-Event-ID",
        ),
        http=revision_facts.Http(
            fallback=("4xx",),
            standalone_stream=True,
            resumable=True,
        ),
        methods={
            "completion/complete": revision_facts.MethodFacts(idempotent=True),
            "initialize": revision_facts.MethodFacts(cancellable=False),
            "logging/setLevel": revision_facts.MethodFacts(idempotent=True),
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
            "ping": revision_facts.MethodFacts(idempotent=True, before_initialized=True),
            "prompts/get": revision_facts.MethodFacts(
                idempotent=True, named_by="name", listed_by="prompts/list"
            ),
            "prompts/list": revision_facts.MethodFacts(idempotent=True),
            "resources/list": revision_facts.MethodFacts(idempotent=True),
            "resources/read": revision_facts.MethodFacts(
                idempotent=True, named_by="uri", listed_by="resources/list"
            ),
            "resources/subscribe": revision_facts.MethodFacts(idempotent=True),
            "resources/templates/list": revision_facts.MethodFacts(idempotent=True),
            "resources/unsubscribe": revision_facts.MethodFacts(idempotent=True),
            "tools/call": revision_facts.MethodFacts(
                named_by="name", param_headers=True, listed_by="tools/list"
            ),
            "tools/list": revision_facts.MethodFacts(idempotent=True),
        },
    ),
)
"""All of 2025-03-26 as one value."""
