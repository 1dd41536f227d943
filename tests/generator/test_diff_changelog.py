"""What the specification's own lists of changes name, as far as a schema or a fact can show it.

Source: changelog.mdx of each revision. What the lists name beside this is authorization, advice,
and the governance of the specification.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from mcpgen import diff, schema

REVISIONS = tuple(row.name for row in schema.revisions())
STEPS = tuple(pairwise(REVISIONS))
BATCHES, OUTPUT, TASKS, STATELESS = STEPS


class Named(NamedTuple):
    """A change that a list names.

    Attributes:
        step: The revisions.
        words: The change, in our words.
        rule: The rule that finds it.
        place: Where it is found.
        what: A part of the change in words.
    """

    step: tuple[str, str]
    words: str
    rule: str
    place: str
    what: str = ""


NAMED = (
    Named(BATCHES, "HTTP+SSE is replaced", "TRANSPORT_REMOVED", "transports.http_sse"),
    Named(BATCHES, "by Streamable HTTP", "TRANSPORT_ADDED", "transports.streamable_http"),
    Named(BATCHES, "messages in batches", "BATCHING_ADDED", "batching"),
    Named(BATCHES, "annotations of tools", "FIELD_ADDED_OPTIONAL", "Tool.annotations"),
    Named(
        *(BATCHES, "a text with progress", "FIELD_ADDED_OPTIONAL"),
        "notifications/progress.message",
    ),
    Named(BATCHES, "audio in prompts", "VARIANT_ADDED", "PromptMessage.content", "AudioContent"),
    Named(BATCHES, "audio of tools", "VARIANT_ADDED", "CallToolResult.content[]", "AudioContent"),
    Named(BATCHES, "audio in sampling", "VARIANT_ADDED", "SamplingMessage.content", "AudioContent"),
    Named(
        *(BATCHES, "a capability for completion", "FIELD_ADDED_OPTIONAL"),
        "ServerCapabilities.completions",
    ),
    Named(
        *(BATCHES, "which completion depends on", "CAPABILITY_CHANGED", "completion/complete"),
        "completions",
    ),
    Named(OUTPUT, "no batches any more", "BATCHING_REMOVED", "batching"),
    Named(
        *(OUTPUT, "structured output", "FIELD_ADDED_OPTIONAL", "CallToolResult.structuredContent"),
    ),
    Named(OUTPUT, "and its schema", "FIELD_ADDED_OPTIONAL", "Tool.outputSchema"),
    Named(OUTPUT, "elicitation", "METHOD_ADDED", "elicitation/create"),
    Named(
        *(OUTPUT, "and its capability", "FIELD_ADDED_OPTIONAL", "ClientCapabilities.elicitation"),
    ),
    Named(
        OUTPUT, "links to resources", "VARIANT_ADDED", "CallToolResult.content[]", "ResourceLink"
    ),
    Named(
        *(OUTPUT, "the version header", "HEADER_ADDED", "headers.protocol_version"),
        "MCP-Protocol-Version",
    ),
    *(
        Named(OUTPUT, f"_meta of {owner}", "FIELD_ADDED_OPTIONAL", f"{owner}._meta")
        for owner in ("Tool", "Prompt", "Resource", "ResourceTemplate", "Root", "TextContent")
    ),
    Named(
        *(OUTPUT, "context of a completion", "FIELD_ADDED_OPTIONAL", "completion/complete.context"),
    ),
    *(
        Named(OUTPUT, f"title of {owner}", "FIELD_ADDED_OPTIONAL", f"{owner}.title")
        for owner in ("Tool", "Prompt", "PromptArgument", "Resource", "Implementation")
    ),
    *(
        Named(TASKS, f"icons of {owner}", "FIELD_ADDED_OPTIONAL", f"{owner}.icons")
        for owner in ("Tool", "Resource", "ResourceTemplate", "Prompt")
    ),
    Named(
        *(TASKS, "several choices in a form", "VARIANT_ADDED"),
        *("ElicitRequestFormParams.requestedSchema.properties{}", "UntitledMultiSelectEnumSchema"),
    ),
    Named(
        *(TASKS, "choices with titles", "VARIANT_ADDED"),
        *("ElicitRequestFormParams.requestedSchema.properties{}", "TitledSingleSelectEnumSchema"),
    ),
    Named(
        *(TASKS, "several choices in an answer", "FIELD_TYPE_WIDENED", "ElicitResult.content{}"),
        "array",
    ),
    Named(
        *(TASKS, "elicitation by URL", "VARIANT_ADDED", "elicitation/create"),
        "ElicitRequestURLParams",
    ),
    Named(
        *(TASKS, "and its end", "NOTIFICATION_ADDED", "notifications/elicitation/complete"),
    ),
    Named(
        *(TASKS, "and its error", "ERROR_CODE_ADDED", "errors.url_elicitation_required", "-32042"),
    ),
    Named(TASKS, "tools in sampling", "FIELD_ADDED_OPTIONAL", "CreateMessageRequestParams.tools"),
    Named(
        *(TASKS, "and their choice", "FIELD_ADDED_OPTIONAL"),
        "CreateMessageRequestParams.toolChoice",
    ),
    *(
        Named(TASKS, f"tasks: {method}", "METHOD_ADDED", method)
        for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list")
    ),
    Named(TASKS, "a task for a call", "FIELD_ADDED_OPTIONAL", "CallToolRequestParams.task"),
    Named(TASKS, "as its result", "VARIANT_ADDED", "tools/call result", "CreateTaskResult"),
    Named(
        *(TASKS, "description of a peer", "FIELD_ADDED_OPTIONAL", "Implementation.description"),
    ),
    Named(
        *(TASKS, "bad arguments as a result", "FACT_CHANGED", "behaviour.bad_tool_arguments"),
        "result",
    ),
    Named(TASKS, "streams that are polled", "FACT_ADDED", "http.polling"),
    Named(TASKS, "default of a text", "FIELD_ADDED_OPTIONAL", "StringSchema.default"),
    Named(TASKS, "default of a number", "FIELD_ADDED_OPTIONAL", "NumberSchema.default"),
    Named(TASKS, "default of a choice", "FIELD_ADDED_OPTIONAL", "LegacyTitledEnumSchema.default"),
    Named(STATELESS, "no session header", "HEADER_REMOVED", "headers.session", "MCP-Session-Id"),
    Named(STATELESS, "no sessions over HTTP", "TRANSPORT_CHANGED", "transports.streamable_http"),
    Named(STATELESS, "no handshake", "METHOD_REMOVED", "initialize"),
    Named(STATELESS, "nor its end", "NOTIFICATION_REMOVED", "notifications/initialized"),
    Named(STATELESS, "stateless", "LIFECYCLE_CHANGED", "lifecycle", "per request"),
    Named(
        *(STATELESS, "the revision in each request", "FIELD_ADDED_REQUIRED"),
        "RequestMetaObject.io.modelcontextprotocol/protocolVersion",
    ),
    Named(
        *(STATELESS, "the capabilities in each request", "FIELD_ADDED_REQUIRED"),
        "RequestMetaObject.io.modelcontextprotocol/clientCapabilities",
    ),
    Named(
        *(STATELESS, "who the client is", "FIELD_ADDED_OPTIONAL"),
        "RequestMetaObject.io.modelcontextprotocol/clientInfo",
    ),
    Named(
        *(STATELESS, "who the server is", "FIELD_ADDED_OPTIONAL"),
        "ResultMetaObject.io.modelcontextprotocol/serverInfo",
    ),
    Named(
        *(STATELESS, "an error for the revision", "TYPE_ADDED", "UnsupportedProtocolVersionError"),
    ),
    Named(STATELESS, "discovery", "METHOD_ADDED", "server/discover"),
    Named(STATELESS, "no stream by GET", "FACT_REMOVED", "http.standalone_stream"),
    Named(STATELESS, "no subscribing", "METHOD_REMOVED", "resources/subscribe"),
    Named(STATELESS, "no unsubscribing", "METHOD_REMOVED", "resources/unsubscribe"),
    Named(STATELESS, "listening", "METHOD_ADDED", "subscriptions/listen"),
    Named(
        *(STATELESS, "acknowledged", "NOTIFICATION_ADDED"),
        "notifications/subscriptions/acknowledged",
    ),
    Named(
        *(STATELESS, "the stream of a notification", "FIELD_ADDED_OPTIONAL"),
        "NotificationMetaObject.io.modelcontextprotocol/subscriptionId",
    ),
    Named(STATELESS, "no ping", "METHOD_REMOVED", "ping"),
    Named(STATELESS, "no log level of a session", "METHOD_REMOVED", "logging/setLevel"),
    Named(
        *(STATELESS, "no changes of roots", "NOTIFICATION_REMOVED"),
        "notifications/roots/list_changed",
    ),
    Named(
        *(STATELESS, "a log level in each request", "FIELD_ADDED_OPTIONAL"),
        "RequestMetaObject.io.modelcontextprotocol/logLevel",
    ),
    *(
        Named(STATELESS, f"no {method}", "METHOD_REMOVED", method)
        for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list")
    ),
    *(
        Named(STATELESS, f"{method} in a result", "METHOD_MOVED_INTO_RESULT", method)
        for method in ("roots/list", "sampling/createMessage", "elicitation/create")
    ),
    *(
        Named(STATELESS, "input required", "VARIANT_ADDED", f"{method} result", "InputRequired")
        for method in ("tools/call", "prompts/get", "resources/read")
    ),
    Named(
        *(STATELESS, "input in a retry", "FIELD_ADDED_OPTIONAL"),
        "CallToolRequestParams.inputResponses",
    ),
    *(
        Named(STATELESS, "the type of a result", "FIELD_ADDED_REQUIRED", f"{owner}.resultType")
        for owner in ("CallToolResult", "CompleteResult", "ListToolsResult", "GetPromptResult")
    ),
    Named(STATELESS, "no resuming", "HEADER_REMOVED", "headers.last_event_id", "Last-Event-ID"),
    Named(STATELESS, "nor event ids", "FACT_REMOVED", "http.resumable"),
    *(
        Named(STATELESS, "extensions", "FIELD_ADDED_OPTIONAL", f"{owner}.extensions")
        for owner in ("ClientCapabilities", "ServerCapabilities")
    ),
    *(
        Named(STATELESS, "trace context", "FACT_ADDED", "meta.trace_keys", key)
        for key in ("traceparent", "tracestate", "baggage")
    ),
    Named(STATELESS, "the method in a header", "HEADER_ADDED", "headers.method", "Mcp-Method"),
    Named(STATELESS, "the name in a header", "HEADER_ADDED", "headers.name", "Mcp-Name"),
    Named(STATELESS, "arguments in headers", "HEADER_ADDED", "headers.param_prefix", "Mcp-Param-"),
    *(
        Named(STATELESS, "caching", "FIELD_ADDED_REQUIRED", f"{owner}.{wire}")
        for owner in (
            "ListToolsResult",
            "ListPromptsResult",
            "ListResourcesResult",
            "ListResourceTemplatesResult",
            "ReadResourceResult",
        )
        for wire in ("ttlMs", "cacheScope")
    ),
    Named(
        *(STATELESS, "a resource that is not found", "ERROR_CODE_CHANGED"),
        *("errors.resource_not_found", "-32002 -> -32602"),
    ),
    Named(STATELESS, "free input schemas", "OBJECT_OPENED", "Tool.inputSchema"),
    Named(STATELESS, "free output schemas", "OBJECT_OPENED", "Tool.outputSchema"),
    Named(
        *(STATELESS, "any structured output", "FIELD_TYPE_WIDENED"),
        *("CallToolResult.structuredContent", "any"),
    ),
    Named(
        *(STATELESS, "no end of elicitation by URL", "NOTIFICATION_REMOVED"),
        "notifications/elicitation/complete",
    ),
    Named(
        *(
            STATELESS,
            "nor its id",
            "FIELD_REMOVED_REQUIRED",
            "ElicitRequestURLParams.elicitationId",
        ),
    ),
    *(
        Named(STATELESS, "reserved codes", "FACT_ADDED", "errors.defined", code)
        for code in ("-32020", "-32021", "-32022")
    ),
    Named(STATELESS, "its type", "TYPE_ADDED", "HeaderMismatchError"),
    Named(STATELESS, "headers differ", "ERROR_CODE_ADDED", "errors.header_mismatch", "-32020"),
    Named(
        *(STATELESS, "a capability is missing", "ERROR_CODE_ADDED"),
        *("errors.missing_capability", "-32021"),
    ),
)


@cache
def changes(step: tuple[str, str], *, errata: bool = True) -> tuple[diff.Change, ...]:
    return diff.compare(*diff.load(*step, errata=errata)).changes


@pytest.mark.parametrize("named", NAMED, ids=lambda named: f"{named.step[1]}-{named.words}")
def test_the_diff_finds_what_the_list_of_changes_names(named: Named) -> None:
    found = [c for c in changes(named.step) if (c.rule.id, c.place) == (named.rule, named.place)]
    assert [change for change in found if named.what in change.sentence]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
def test_integers_of_a_draft_are_numbers_in_every_revision(
    step: tuple[str, str],
) -> None:
    """The newest list names it, but no published file had it."""
    owners = ("NumberSchema.minimum", "NumberSchema.maximum", "NumberSchema.default")
    widened = [c for c in changes(step, errata=False) if c.rule.id == "FIELD_TYPE_WIDENED"]
    assert [change for change in widened if change.place in owners] == []


def test_params_that_got_a_name_are_no_change() -> None:
    named = {change.place for change in changes(TASKS) if change.rule.id == "TYPE_ADDED"}
    methods = {"CallToolRequestParams", "CompleteRequestParams", "ReadResourceRequestParams"}
    assert named & methods == set()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
def test_each_change_is_the_mirror_of_one_on_the_way_back(step: tuple[str, str]) -> None:
    there = {(c.rule.mirror, c.new_place, c.old_place, c.new, c.old) for c in changes(step)}
    back = changes((step[1], step[0]))
    assert there == {(c.rule.id, c.old_place, c.new_place, c.old, c.new) for c in back}
