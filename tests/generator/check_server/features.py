"""Rules of tools, resources, prompts, completion, logging, pages and caching."""

from __future__ import annotations

from typing import Any

from generator.check_server.rows import (
    CHANGED,
    LEVEL,
    LOG,
    NEEDS,
    NEW,
    OK,
    OLD,
    OLDEST,
    READS,
    Message,
    Rule,
    all_of,
    before,
    block,
    broken,
    called,
    capability,
    code,
    edit,
    entries,
    fail,
    kept,
    members,
    method_of,
    params_of,
    refuse,
    refused,
    rule,
    says,
    serve,
    skipped,
    structured,
    tool,
    tools,
    without,
)
from generator.check_server.tiny_server import TOOLS, is_known, meta_of

GIVES = {**READS, "outputSchema": {"type": "object", "required": ["b"]}}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
FAILED = says(isError=True, content=[])
B = {"name": "b"}
ANOTHER = {"name": "another", "inputSchema": {"type": "object"}}
HEADER = {"type": "object", "properties": {"a": {"x-mcp-header": "A"}}}
COMPLETE = says(content=[], resultType="complete")
BY_HEADER = tools({**READS, "inputSchema": HEADER}, {**READS, **B})


def content(*blocks: Any, **members: Any) -> tuple[Message, Message]:
    """A tool that only reads, and the result of its call."""
    return (tools(READS), says(content=[*blocks], **members))


def another_order(request: Any, answer: Any) -> Any:
    """The tools, in another order each time."""
    if method_of(request) == "tools/list" and "result" in answer:
        listed = [*answer["result"]["tools"], ANOTHER]
        answer["result"]["tools"] = listed[:: 1 if request["id"] % 2 else -1]
    return answer


def unknown_is_result(request: Any, answer: Any) -> Any:
    """A result with isError for an unknown tool."""
    is_call = method_of(request) == "tools/call" and params_of(request).get("name")
    if is_call and "error" in answer:
        result = {"content": [], "isError": True, "resultType": "complete"}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}
    return answer


def shape(name: str, kind: str, right: Message) -> Rule:
    """The rule of a kind of blocks, of which a right one is given."""
    return rule(
        f"content.{name}-shape",
        kept(*content({"type": kind, **right})),
        defect=block({"type": kind}),
    )


READ = says(resources=[{"uri": "a:b", "name": "c"}] * 2)
PROMPT = says(prompts=[{"name": "a", "arguments": [{"name": "b"}, {"name": "c"}]}])
TEMPLATE = says(resourceTemplates=[{"uriTemplate": "a:{d}/{e}"}])


def contents(*parts: Any) -> list[Message]:
    """A list of two resources, both with these contents."""
    return [READ, *[says(contents=[*parts])] * 2]


def subscription(subscribed: Message, unsubscribed: Message) -> Any:
    """The defect of subscriptions to resources, with some results."""
    return all_of(
        capability("resources", {"subscribe": True}),
        serve("resources/subscribe", subscribed),
        serve("resources/unsubscribe", unsubscribed),
    )


RULES = [
    rule(
        "tools.list-result-shape",
        kept(says(tools=[], nextCursor=None)),
        defect=members("tools/list", nextCursor=5),
    ),
    rule(
        "tools.list-result-shape-2026",
        kept(says(tools=[], resultType="complete", ttlMs="x", cacheScope=5)),
        defect=edit("tools/list", without("resultType")),
    ),
    rule(
        "tools.name-and-schema-required",
        broken(tools({"outputSchema": 5})),
        defect=tool(description=5),
    ),
    rule("tools.input-schema-root-object", defect=tool(inputSchema={"type": "string"})),
    rule(
        "tools.input-schema-property-objects",
        broken(tools({"inputSchema": {"required": ["a", 5]}})),
        defect=tool(inputSchema={"type": "object", "properties": {"city": True}}),
    ),
    rule(
        "tools.output-schema-root-object",
        skipped(tools({})),
        defect=tool(outputSchema={"required": ["degrees"]}),
    ),
    rule(
        "json-schema.schema-valid",
        kept(tools({"inputSchema": {"$schema": DRAFT_7, "items": [{}]}})),
        broken(tools({"inputSchema": {"$schema": [], "type": "t" * 200}})),
        defect=tool(inputSchema={"type": "object", "properties": {"city": {"type": "objekt"}}}),
    ),
    rule(
        "tools.name-length",
        kept(tools({"name": "a" * 128}, B)),
        defect=tool(name="m" * 129, annotations={}),
    ),
    rule(
        "tools.name-charset",
        broken(tools({"name": "\u00e9"})),
        defect=tool(name="measure it", annotations={}),
    ),
    rule("tools.name-unique", skipped(), defect=entries("tools", lambda listed: listed * 2)),
    rule(
        "tools.list-deterministic-order",
        kept(tools({}), *[tools({}, B, 5)] * 3, tools({})),
        broken(tools({}), tools({}, B), *[tools(B, {})] * 2),
        defect=another_order,
    ),
    rule("tools.unknown-tool-error", defect=unknown_is_result),
    rule(
        "tools.call-result-content-required",
        kept(tools(READS, READS), says(task={}), OK),
        broken(tools({**READS, "inputSchema": 5}, READS), says(content=5)),
        broken(BY_HEADER, COMPLETE, OK, http=True),
        skipped(tools(READS), says(resultType="input_required")),
        skipped(tools({"annotations": 5})),
        skipped(tools({**READS, "inputSchema": {"required": ["a"]}})),
        skipped(tools({**READS, "inputSchema": {"required": [[]]}})),
        defect=called(lambda result: {**result, "isError": "yes"}),
    ),
    rule(
        "tools.output-conforms",
        kept(tools({**READS, "outputSchema": {"pattern": "("}}), says(structuredContent="a")),
        kept(tools({**READS, "outputSchema": {"$ref": "#/no"}}), says(structuredContent="a")),
        broken(tools({**READS, "outputSchema": 5}, GIVES), OK, says(structuredContent={})),
        skipped(tools(GIVES), FAILED),
        defect=structured({"degrees": "cold"}),
    ),
    rule(
        "tools.invalid-arguments-protocol-error",
        kept(tools(NEEDS), refused()),
        broken(tools(NEEDS), None),
        skipped(tools(READS)),
    ),
    rule(
        "tools.input-validation-is-execution-error",
        kept(tools(NEEDS, {**NEEDS, **B}), FAILED, OK),
        defect=edit("tools/call", without("isError")),
    ),
    shape("text", "text", {"text": ""}),
    shape("image", "image", {"data": "", "mimeType": "image/png"}),
    shape("audio", "audio", {"data": "", "mimeType": "audio/wav"}),
    shape("resource-link", "resource_link", {"uri": "raw://now", "name": "now"}),
    shape("embedded", "resource", {"resource": {"uri": "raw://now", "text": "now"}}),
    rule(
        "content.no-audio-2024",
        kept(*content({"type": "image"})),
        broken(*content(*[{"type": "audio"}] * 2)),
    ),
    rule(
        "content.no-resource-link-before-2025-06",
        kept(*content({"type": "resource"}), revision=OLDEST),
        broken(*content({"type": "resource_link"}), revision=OLDEST),
    ),
    rule(
        "content.structured-object",
        skipped(*content()),
        defect=all_of(
            entries("tools", lambda listed: [without("outputSchema")(TOOLS[0])]),
            structured([1]),
        ),
    ),
    rule(
        "content.structured-text-fallback",
        kept(*content()),
        broken(
            *content({"text": 5}, {"text": "[" * 9999}, {"text": "x" * 90}, structuredContent=[1])
        ),
        defect=called(lambda result: {**result, "content": []}),
    ),
    rule("resources.list-result-shape", defect=members("resources/list", nextCursor=5)),
    rule("resources.list-result-shape-2026", defect=edit("resources/list", without("resultType"))),
    rule(
        "resources.templates-result-shape",
        skipped(refused(-32601)),
        defect=members("resources/templates/list", nextCursor=5),
    ),
    rule(
        "resources.templates-result-shape-2026",
        defect=edit("resources/templates/list", without("resultType")),
    ),
    rule(
        "resources.uri-and-name-required",
        defect=entries("resources", lambda listed: [*map(without("name"), listed)]),
    ),
    rule("resources.uri-unique", defect=entries("resources", lambda listed: listed * 2)),
    rule(
        "resources.templates-rfc6570",
        skipped(),
        *(
            broken(says(resourceTemplates=[{"uriTemplate": text}]))
            for text in ("a:{b", "a:b}", "a:}b{", "a:{{b}}")
        ),
        defect=members(
            "resources/templates/list",
            resourceTemplates=[{"uriTemplate": "raw://{city", "name": "x"}],
        ),
    ),
    rule(
        "resources.read-result-shape",
        broken(READ, OK),
        skipped(READ, *[says(resultType="input_required")] * 2),
        defect=members("resources/read", contents={}),
    ),
    rule(
        "resources.read-result-shape-2026",
        kept(READ, says(contents=[], resultType="complete", ttlMs=-1, cacheScope=5)),
        defect=edit("resources/read", without("resultType")),
    ),
    rule(
        "resources.contents-text-or-blob",
        skipped(READ, says(contents=5)),
        defect=members("resources/read", contents=[{"uri": "raw://now"}]),
    ),
    rule(
        "resources.binary-encoded",
        *(broken(*contents({"blob": "AAE="}, {"blob": blob})) for blob in ("AA", "%", 5, "\u00e9")),
        skipped(*contents({"text": ""})),
        defect=members("resources/read", contents=[{"uri": "raw://map", "blob": "%"}]),
    ),
    rule("resources.not-found-32002", defect=code(-32002, -32602)),
    rule(
        "resources.not-found-32602",
        defect=refuse("resources/read", -32603, lambda it: "no-such" in str(it.get("uri"))),
    ),
    rule("resources.subscribe-flag-legacy", skipped(), defect=serve("resources/subscribe", {})),
    rule(
        "resources.subscribe-request",
        kept(says(resources=[{"uri": "a:b"}]), OK),
        defect=subscription({"subscribed": True}, {}),
    ),
    rule(
        "resources.unsubscribe-request",
        kept(says(resources=[{"uri": "a:b"}]), OK, OK),
        broken(says(resources=[{"uri": "a:b"}]), refused()),
        defect=subscription({}, {"subscribed": False}),
    ),
    rule("resources.subscribe-method-removed", defect=serve("resources/subscribe", {})),
    rule("prompts.list-result-shape", defect=members("prompts/list", nextCursor=5)),
    rule("prompts.list-result-shape-2026", defect=edit("prompts/list", without("resultType"))),
    rule(
        "prompts.name-required",
        broken(says(prompts=[{"name": "a"}] * 2)),
        defect=entries("prompts", lambda listed: [*listed, {"title": "?"}]),
    ),
    rule(
        "prompts.get-result-shape",
        skipped(says(prompts=[{"name": "a"}]), refused()),
        defect=members("prompts/get", messages=[{"role": "system"}]),
    ),
    rule(
        "prompts.invalid-name-error",
        defect=refuse("prompts/get", -32603, lambda params: params["name"] != "report"),
    ),
    rule(
        "prompts.missing-arguments-error",
        skipped(says(prompts=[{"name": "a", "arguments": [{"name": "b", "required": False}]}])),
        defect=refuse(
            "prompts/get",
            -32603,
            lambda params: params.get("name") == "report" and "arguments" not in params,
        ),
    ),
    rule(
        "completion.result-shape",
        broken(OK, TEMPLATE, says(completion={"values": []}), OK),
        broken(PROMPT, TEMPLATE, says(completion={"values": 5})),
        skipped(PROMPT, TEMPLATE, *[refused()] * 4),
        defect=members("completion/complete", completion={"values": [5]}),
    ),
    rule(
        "completion.max-100-values",
        kept(PROMPT, TEMPLATE, says(completion={"values": ["x"] * 100})),
        defect=members("completion/complete", completion={"values": ["x"] * 101}),
    ),
    rule(
        "completion.invalid-prompt-error",
        defect=refuse("completion/complete", -32603, lambda params: not is_known(params["ref"])),
    ),
    rule(
        "completion.missing-arguments-error",
        skipped(),
        defect=refuse("completion/complete", -32603, lambda params: "argument" not in params),
    ),
    rule(
        "completion.unsupported-error",
        kept(refused(-32601), capabilities={}),
        defect=all_of(capability("completions", None), code(-32601, -32602, "completion/complete")),
    ),
    rule(
        "logging.levels",
        skipped(revision=NEW),
        defect=refuse("logging/setLevel", -32602, lambda params: params["level"] == "notice"),
        where=(OLD,),
    ),
    rule(
        "logging.invalid-level-error",
        skipped(refused(-32601)),
        defect=code(-32602, -32603, "logging/setLevel"),
    ),
    rule(
        "logging.invalid-level-error-2026",
        defect=fail(-32600, lambda it: meta_of(it).get(LEVEL) == "verbose"),
    ),
    rule("logging.set-level-removed", defect=serve("logging/setLevel", {})),
    rule(
        "logging.declare-capability-initialize",
        defect=all_of(before("ping", LOG), capability("logging", None)),
    ),
    rule(
        "logging.declare-capability-discover",
        kept(CHANGED, capabilities={}),
        broken([CHANGED], [CHANGED, LOG], capabilities={}),
    ),
    rule("logging.per-request-level", defect=before("tools/list", LOG)),
    rule("pagination.next-cursor-if-more", defect=members("prompts/list", nextCursor=None)),
    rule(
        "pagination.results-after-cursor",
        kept(
            tools({}, 5),
            says(resources=[{"uri": "a"}], nextCursor="more"),
            says(resources=[{"uri": "b"}]),
        ),
        broken(
            OK, OK, says(prompts=[{"name": "c"}], nextCursor="more"), says(prompts=[{"name": "c"}])
        ),
    ),
    rule(
        "pagination.invalid-cursor-error",
        defect=serve(
            "tools/list",
            {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
        ),
    ),
    rule("caching.hints-required", defect=edit("tools/list", without("ttlMs"))),
    rule("caching.ttl-integer-ms", defect=members("tools/list", ttlMs=0.5)),
    rule("caching.ttl-non-negative", defect=members("tools/list", ttlMs=-1)),
    rule("caching.scope-values", defect=members("tools/list", cacheScope="shared")),
    rule("meta.result-server-info", defect=edit("tools/list", without("_meta"))),
]
