"""Rules of tools: their entries and schemas, their results, and the blocks of content."""

from __future__ import annotations

from typing import Any

from generator.check_server.rows import (
    NEEDS,
    NEW,
    OK,
    OLDEST,
    READS,
    Case,
    Message,
    Rule,
    all_of,
    block,
    broken,
    edit,
    kept,
    members,
    method_of,
    params_of,
    refused,
    rule,
    says,
    skipped,
    tool,
    tools,
    without,
)
from generator.check_server.tiny_server import TOOLS

GIVES = {**READS, "outputSchema": {"type": "object", "required": ["b"]}}
FAILED = says(isError=True, content=[])
B = {"name": "b"}
ANOTHER = {"name": "another", "inputSchema": {"type": "object"}}
HEADER = {"type": "object", "properties": {"a": {"x-mcp-header": "A"}}}
COMPLETE = says(content=[], resultType="complete")
BY_HEADER = tools({**READS, "inputSchema": HEADER}, {**READS, **B})


def content(*blocks: Any, **members: Any) -> tuple[Message, Message]:
    """A tool that only reads, and the result of its call."""
    return (tools(READS), says(content=[*blocks], **members))


def called(change: Any) -> Any:
    """Change the results of calls that do not fail."""
    return edit("tools/call", lambda result: result if result.get("isError") else change(result))


def another_order(request: Any, answer: Any) -> Any:
    """The tools, in another order each time."""
    if method_of(request) == "tools/list" and "result" in answer:
        listed = [*answer["result"]["tools"], ANOTHER]
        answer["result"]["tools"] = listed[:: 1 if request["id"] % 2 else -1]
    return answer


def unknown_is_result(request: Any, answer: Any) -> Any:
    """A result with isError for an unknown tool."""
    if (
        method_of(request) == "tools/call"
        and params_of(request).get("name")
        and ("error" in answer)
    ):
        result = {"content": [], "isError": True, "resultType": "complete"}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}
    return answer


def shape(name: str, kind: str, right: Message) -> Rule:
    """The rule of a kind of blocks, of which a right one is given."""
    return rule(
        f"content.{name}-shape",
        kept(*content({"type": kind, **right})),
        broken(*content({"type": kind})),
        skipped(*content(5, {"type": "other"})),
        skipped(tools(READS), says(content=5)),
        defect=block({"type": kind}),
    )


def unjudged(schema: Any) -> Case:
    """An outputSchema by which nothing can be judged."""
    return kept(tools({**READS, "outputSchema": schema}), says(structuredContent="a"))


RULES = [
    rule(
        "tools.list-result-shape",
        kept(says(tools=[], nextCursor=None)),
        broken(tools(5, {})),
        broken(says(tools=[], nextCursor=5)),
        broken(says(tools=5)),
        broken(refused()),
        defect=members("tools/list", nextCursor=5),
    ),
    rule(
        "tools.list-result-shape-2026",
        kept(says(tools=[], resultType="complete", ttlMs="x", cacheScope=5)),
        broken(says(tools=[])),
        defect=edit("tools/list", without("resultType")),
    ),
    rule(
        "tools.name-and-schema-required",
        kept(tools({"inputSchema": {"type": 5}, "outputSchema": {}})),
        broken(tools({}, {"inputSchema": 5})),
        broken(tools({"outputSchema": 5})),
        broken(tools({"name": 5})),
        defect=tool(description=5),
    ),
    rule(
        "tools.input-schema-root-object",
        kept(tools({}, {"inputSchema": 5})),
        broken(tools({}, {"inputSchema": {}})),
        broken(tools({"inputSchema": {"type": ["object"]}})),
        defect=tool(inputSchema={"type": "string"}),
    ),
    rule(
        "tools.input-schema-property-objects",
        kept(tools({"inputSchema": {"properties": {"a": {}}, "required": ["a"]}}, {})),
        broken(tools({"inputSchema": {"properties": 5}})),
        broken(tools({"inputSchema": {"properties": {"a": {}, "b": 5}}})),
        broken(tools({"inputSchema": {"required": "a"}})),
        broken(tools({"inputSchema": {"required": ["a", 5]}})),
        defect=tool(inputSchema={"type": "object", "properties": {"city": True}}),
    ),
    rule(
        "tools.output-schema-root-object",
        kept(tools({}, {"outputSchema": {"type": "object"}})),
        broken(tools({"outputSchema": {"type": "array"}})),
        skipped(tools({})),
        defect=tool(outputSchema={"required": ["degrees"]}),
    ),
    rule(
        "json-schema.schema-valid",
        kept(tools({"outputSchema": {"type": "number"}})),
        broken(tools({"inputSchema": {"type": "objekt"}})),
        broken(tools({"inputSchema": {"$schema": []}})),
        broken(tools({}, {"outputSchema": {"required": ["a"] * 60}})),
        defect=tool(inputSchema={"type": "object", "properties": {"city": {"type": "objekt"}}}),
    ),
    rule(
        "tools.name-length",
        kept(tools({"name": "a" * 128}, B)),
        broken(tools({"name": "a" * 129})),
        broken(tools({"name": ""})),
        defect=tool(name="m" * 129, annotations={}),
    ),
    rule(
        "tools.name-charset",
        kept(tools({"name": "aZ9_-."})),
        broken(tools({"name": "\u00e9"})),
        broken(tools({"name": "a/b"})),
        defect=tool(name="measure it", annotations={}),
    ),
    rule(
        "tools.name-unique",
        defect=edit("tools/list", lambda listed: {**listed, "tools": listed["tools"] * 2}),
    ),
    rule(
        "tools.list-deterministic-order",
        kept(tools({}), *[tools({}, B, 5)] * 3, tools({})),
        broken(tools({}), *[tools({}, B)] * 2, tools(B, {})),
        broken(tools({}), tools({}, B), *[tools(B, {})] * 2),
        broken(tools({}), refused()),
        broken(tools({}), OK, says(tools=5), tools({})),
        defect=another_order,
    ),
    rule("tools.unknown-tool-error", defect=unknown_is_result),
    rule(
        "tools.call-result-content-required",
        kept(tools(READS, READS), says(task={}), OK),
        broken(tools(READS), OK),
        broken(tools(READS), says(content=5)),
        broken(tools({**READS, "inputSchema": 5}, READS), says(content=5)),
        broken(tools(READS, {**READS, **B}), says(task={}), OK),
        broken(*content(5, {"type": "text"}, structuredContent=5)),
        broken(*content(isError=5)),
        kept(BY_HEADER, COMPLETE, OK, revision=NEW, http=True),
        broken(BY_HEADER, COMPLETE, OK, revision=NEW),
        broken(BY_HEADER, COMPLETE, OK, http=True),
        skipped(tools(READS), refused()),
        skipped(tools(READS), says(resultType="input_required")),
        skipped(tools({})),
        skipped(tools({"annotations": {"readOnlyHint": 1}})),
        skipped(tools({"annotations": 5})),
        skipped(tools({**READS, "inputSchema": {"required": ["a"]}})),
        skipped(tools({**READS, "inputSchema": {"required": [[]]}})),
        defect=called(lambda result: {**result, "isError": "yes"}),
    ),
    rule(
        "tools.output-conforms",
        kept(tools({**READS, **B}, GIVES), OK, says(structuredContent={"b": 1})),
        *map(unjudged, ({"pattern": "("}, {"$ref": "#/no"}, {"$ref": "#"}, {"$schema": 5})),
        broken(tools(GIVES), says(isError="yes")),
        broken(tools({**READS, "outputSchema": 5}, GIVES), OK, says(structuredContent={})),
        broken(tools(GIVES), says(structuredContent={})),
        skipped(tools(READS), says(structuredContent={})),
        skipped(tools(GIVES), FAILED),
        defect=called(
            lambda result: {
                **result,
                "content": [{"type": "text", "text": '{"degrees": "cold"}'}],
                "structuredContent": {"degrees": "cold"},
            }
        ),
    ),
    rule(
        "tools.invalid-arguments-protocol-error",
        kept(tools(NEEDS), FAILED),
        kept(tools(NEEDS), refused()),
        kept(tools(READS, NEEDS), FAILED),
        broken(tools(NEEDS), says(isError=1)),
        broken(tools(NEEDS), None),
        skipped(tools(READS)),
    ),
    rule(
        "tools.input-validation-is-execution-error",
        kept(tools(NEEDS, {**NEEDS, **B}), FAILED, OK),
        broken(tools(NEEDS), refused()),
        broken(tools(NEEDS), says(isError=False)),
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
        kept(*content(structuredContent={})),
        broken(*content(structuredContent=[])),
        skipped(*content()),
        defect=all_of(
            edit(
                "tools/list",
                lambda listed: {**listed, "tools": [without("outputSchema")(TOOLS[0])]},
            ),
            called(
                lambda result: {
                    **result,
                    "content": [{"type": "text", "text": "[1]"}],
                    "structuredContent": [1],
                }
            ),
        ),
    ),
    rule(
        "content.structured-text-fallback",
        kept(*content()),
        kept(*content({"text": "[1"}, 5, {"text": " [1]"}, structuredContent=[1])),
        broken(
            *content({"text": 5}, {"text": "[" * 9999}, {"text": "x" * 90}, structuredContent=[1])
        ),
        broken(tools(READS), says(content=5, structuredContent=[1])),
        defect=called(lambda result: {**result, "content": []}),
    ),
]
