"""The words of the checks of `mcpgen check-server` about replies, and servers with little."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.checked_in_memory import judgement, session_with
from mcpgen.check_server import call_checks, feature_checks

OLDEST, OLD, NEW = "2024-11-05", "2025-11-25", "2026-07-28"
OK: dict[str, Any] = {"result": {}}
PREFIX = "io.modelcontextprotocol/"
ANCIENT = "1900-01-01"
INFO = {"name": "raw", "version": "1"}
OPENED = {"protocolVersion": OLD, "capabilities": {}, "serverInfo": INFO}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
LOG = {**CHANGED, "method": "notifications/message"}
PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
ALL: dict[str, Any] = {
    **{name: {} for name in ("tools", "prompts", "completions", "logging")},
    "resources": {"subscribe": True},
}


def refused(code: int = -1, **members: Any) -> dict[str, Any]:
    """An error, as the end of a response."""
    return {"error": {"code": code, "message": "no", **members}}


def says(**members: Any) -> dict[str, Any]:
    """A result, as the end of a response."""
    return {"result": members}


def tools(*each: Any) -> dict[str, Any]:
    """A list of tools with names and schemas, unless they have others."""
    plain = {"name": "a", "inputSchema": {"type": "object"}}
    return says(tools=[{**plain, **one} if isinstance(one, dict) else one for one in each])


def unsupported(**data: Any) -> dict[str, Any]:
    """An error about the version."""
    return refused(-32022, data=data)


NAMED: dict[str, Any] = {"_meta": {f"{PREFIX}serverInfo": {}}}
DISCOVERED: dict[str, Any] = {"supportedVersions": [NEW], "resultType": "complete"}
FIRST_RESULTS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("lifecycle.initialize-result", OLD): [
        OPENED,
        {},
        {**OPENED, "capabilities": 5, "serverInfo": 5},
        {"protocolVersion": OLD, "capabilities": 5},
    ],
    ("lifecycle.implementation-full", OLD): [
        OPENED,
        {},
        {"serverInfo": {"name": 5}},
        {"_meta": {f"{PREFIX}serverInfo": {"name": 5}}},
    ],
    ("lifecycle.implementation-full", NEW): [
        {"serverInfo": {"name": 5}},
        {"_meta": 5},
        {"_meta": {f"{PREFIX}serverInfo": {"name": 5}}},
    ],
    ("discover.result-shape", NEW): [
        {**DISCOVERED, "capabilities": 5, "_meta": 5, "ttlMs": "x", "cacheScope": 1},
        DISCOVERED,
        {**DISCOVERED, "capabilities": {}, "supportedVersions": [5]},
    ],
    ("discover.server-info", NEW): [
        NAMED,
        {"_meta": {f"{PREFIX}serverInfo": 5}},
        {"_meta": 5},
        {},
        {**NAMED, "serverInfo": {}},
    ],
    ("lifecycle.no-handshake", NEW): [{}, {"capabilities": {"prompts": {}, "resources": {}}}],
}
"""First results of a server that refuses all other requests, by rule and revision."""


@pytest.mark.parametrize(("rule", "name"), FIRST_RESULTS)
def test_first_results_are_judged(rule: str, name: str, snapshot: SnapshotAssertion) -> None:
    results = FIRST_RESULTS[rule, name]
    assert [
        judgement(rule, session_with(name, [refused()] * 9, **result)) for result in results
    ] == snapshot


LIFECYCLE: dict[tuple[str, str], list[list[Any]]] = {
    ("lifecycle.initialize-first", OLD): [
        [[PING, LOG, says(**OPENED)]],
        [[LOG, CHANGED, says(**OPENED)]],
        [[says(**OPENED), CHANGED]],
        [[b"hi", says(**OPENED)]],
        [refused()],
    ],
    ("ping.answered", OLD): [[says(_meta={})], [says(_meta={}, pong=1)], [refused()]],
    ("stdio.newline-delimited", OLD): [
        [OK, OK],
        [{"jsonrpc": "2.0", "id": "1", "result": {}}, OK],
        [None, OK],
        [OK, None],
    ],
    ("stdio.utf8", OLD): [
        [OK],
        [{"jsonrpc": "2.0", "id": "mcpgen", "result": {}}],
        [{"jsonrpc": "2.0", **refused()}],
        [None],
        [[b"\xff", OK]],
        [[b"hi", OK]],
    ],
    ("stdio.server-message-kinds", NEW): [
        [OK],
        [[b"hi", says(**DISCOVERED), CHANGED]],
        [[CHANGED, says(**DISCOVERED)]],
    ],
    ("discover.implemented", NEW): [[OK], [refused()]],
    ("meta.client-info-optional-for-server", NEW): [[OK], [refused()]],
    ("meta.missing-required-rejected", NEW): [
        [refused(-32602), refused(-32602)],
        [refused(-32602), refused(-32020)],
        [refused(-32600)],
    ],
    ("versioning.unsupported-error", NEW): [
        [refused(-32022)],
        [unsupported(supported=[], requested=ANCIENT)],
        [unsupported(supported=5, requested=ANCIENT)],
        [unsupported(supported=[], requested="1900")],
        [refused(-32021, data={"supported": [], "requested": ANCIENT})],
    ],
    ("versioning.per-request-decision", NEW): [[refused(), OK], [refused(), refused()], [OK]],
    ("ping.removed", NEW): [[refused(-32601)], [OK]],
    ("logging.set-level-removed", NEW): [[refused(-32601)], [refused(-32602)]],
    ("resources.subscribe-method-removed", NEW): [[refused(-32601)], [refused(-32602)]],
}
"""Replies, by rule and revision."""


@pytest.mark.parametrize(("rule", "name"), LIFECYCLE)
def test_replies_about_sessions_are_judged(
    rule: str, name: str, snapshot: SnapshotAssertion
) -> None:
    verdicts = [judgement(rule, session_with(name, answers)) for answers in LIFECYCLE[rule, name]]
    assert verdicts == snapshot


MIDDLE = "2025-06-18"
VERSIONS: dict[str, list[tuple[tuple[str, ...], Any]]] = {
    "versioning.server-counter-offer": [
        ((MIDDLE, OLD, NEW), says(protocolVersion=MIDDLE)),
        ((MIDDLE, OLD, NEW), says(protocolVersion=NEW)),
        ((MIDDLE, OLD, NEW), refused()),
    ],
    "versioning.server-latest": [
        ((MIDDLE, OLD, NEW), says(protocolVersion=version)) for version in (MIDDLE, OLD, NEW)
    ],
    "versioning.no-modern-in-initialize": [
        ((OLD,), says(protocolVersion=OLD)),
        ((OLD, NEW), says(protocolVersion=OLD)),
        ((OLD, NEW), says(protocolVersion=NEW)),
    ],
    "versioning.modern-only-rejects-initialize": [
        ((NEW,), refused()),
        ((NEW,), OK),
        ((OLD, NEW), OK),
    ],
    "versioning.modern-only-names-versions": [
        ((NEW,), OK),
        ((NEW,), {**refused(), "x": NEW}),
        ((NEW,), refused(data=NEW)),
        ((OLD, NEW), refused()),
    ],
}
"""Revisions that a server speaks, and its reply to another version, by rule."""


@pytest.mark.parametrize("rule", VERSIONS)
def test_versions_are_judged_by_those_spoken(rule: str, snapshot: SnapshotAssertion) -> None:
    name = NEW if "modern-only" in rule else OLD
    verdicts = [judgement(rule, session_with(name, [a], spoken=s)) for s, a in VERSIONS[rule]]
    assert verdicts == snapshot


@pytest.mark.parametrize(
    ("answered", "verdict"),
    [
        ({MIDDLE: MIDDLE, OLD: OLD}, ""),
        ({OLDEST: MIDDLE, MIDDLE: MIDDLE}, ""),
        ({MIDDLE: OLD, OLD: MIDDLE}, f'got "{OLD}"'),
        ({MIDDLE: 5, OLD: MIDDLE}, "got 5"),
        ({MIDDLE: 5, OLD: 5}, ""),
    ],
)
def test_a_version_that_is_offered_is_answered(answered: dict[str, Any], verdict: str) -> None:
    session = session_with(OLD)
    session.server.initialized = answered
    offered = f"expected protocolVersion {MIDDLE}, which the server offers by itself elsewhere, "
    assert judgement("versioning.server-echo", session) == (offered + verdict if verdict else "")


FEATURES: dict[tuple[str, str], list[list[Any]]] = {
    ("tools.list-result-shape", OLD): [
        [tools(5, {})],
        [says(tools=[], nextCursor=None)],
        [says(tools=[], nextCursor=5)],
        [says(tools=5)],
        [refused()],
    ],
    ("tools.list-result-shape-2026", NEW): [
        [says(tools=[], resultType="complete", ttlMs="x", cacheScope=5)],
        [says(tools=[])],
    ],
    ("resources.templates-result-shape", OLD): [
        [refused(-32601)],
        [OK, says(resourceTemplates=[{}])],
        [OK, refused(-32600)],
    ],
    ("tools.name-and-schema-required", OLD): [
        [tools({"inputSchema": {"type": 5}, "outputSchema": {}})],
        [tools({}, {"inputSchema": 5})],
        [tools({"outputSchema": 5})],
        [tools({"name": 5})],
    ],
    ("tools.input-schema-root-object", OLD): [
        [tools({}, {"inputSchema": 5})],
        [tools({}, {"inputSchema": {}})],
        [tools({"inputSchema": {"type": ["object"]}})],
    ],
    ("tools.input-schema-property-objects", OLD): [
        [tools({"inputSchema": {"properties": {"a": {}}, "required": ["a"]}}, {})],
        [tools({"inputSchema": {"properties": 5}})],
        [tools({"inputSchema": {"properties": {"a": {}, "b": 5}}})],
        [tools({"inputSchema": {"required": "a"}})],
        [tools({"inputSchema": {"required": ["a", 5]}})],
    ],
    ("tools.output-schema-root-object", OLD): [
        [tools({})],
        [tools({}, {"outputSchema": {"type": "object"}})],
        [tools({"outputSchema": {"type": "array"}})],
    ],
    ("json-schema.schema-valid", OLD): [
        [tools({"outputSchema": {"type": "number"}})],
        [tools({"inputSchema": {"type": "objekt"}})],
        [tools({"inputSchema": {"$schema": []}})],
        [tools({}, {"outputSchema": {"required": ["a"] * 60}})],
    ],
    ("tools.name-length", OLD): [
        [tools({"name": "a" * 128}, {"name": "b"})],
        [tools({"name": "a" * 129})],
        [tools({"name": ""})],
    ],
    ("tools.name-charset", OLD): [
        [tools({"name": "aZ9_-."})],
        [tools({"name": "\u00e9"})],
        [tools({"name": "a/b"})],
    ],
    ("tools.name-unique", OLD): [[tools({}, {"name": "b"})], [tools({}, {"name": "b"}, {}, {})]],
    ("tools.list-deterministic-order", NEW): [
        [tools({}), *[tools({}, {"name": "b"}, 5)] * 3, tools({})],
        [tools({}), *[tools({}, {"name": "b"})] * 2, tools({"name": "b"}, {})],
        [tools({}), tools({}, {"name": "b"}), *[tools({"name": "b"}, {})] * 2],
        [tools({}), refused()],
        [tools({}), OK, says(tools=5), tools({})],
    ],
    ("tools.unknown-tool-error", OLD): [[refused()], [OK]],
    ("resources.uri-and-name-required", OLD): [
        [says(resources=[{"uri": "a:b", "name": "c"}, {"uri": "a:b"}])],
        [says(resources=[{"name": "c"}])],
    ],
    ("resources.uri-unique", OLD): [
        [says(resources=[{"uri": "a:b"}, {"uri": "c:d"}])],
        [says(resources=[{"uri": "a:b"}, {"uri": "c:d"}, {"uri": "a:b"}])],
    ],
    ("resources.templates-rfc6570", OLD): [
        [says(resourceTemplates=[{"uriTemplate": text}])]
        for text in ("a:{b}{?c}", "a:{b", "a:b}", "a:}b{", "a:{{b}}")
    ],
    ("resources.not-found-32002", OLD): [[refused(-32002)], [refused(-32602)], [OK]],
    ("resources.not-found-32602", NEW): [[refused(-32602)], [refused(-32002)]],
    ("resources.subscribe-request", OLD): [
        [says(resources=[{"uri": "a:b"}]), says(_meta={})],
        [says(resources=[{"uri": "a:b"}]), says(_meta={}, x=1)],
        [says(resources=[{"uri": "a:b"}]), refused()],
    ],
    ("resources.unsubscribe-request", OLD): [
        [says(resources=[{"uri": "a:b"}]), says(x=1), says(_meta={})],
        [says(resources=[{"uri": "a:b"}]), OK, says(x=1)],
        [says(resources=[{"uri": "a:b"}]), refused()],
    ],
    ("prompts.name-required", OLD): [
        [says(prompts=[{"name": "a"}, {"name": "b"}])],
        [says(prompts=[{"name": "a"}, {"name": "a"}])],
        [says(prompts=[{"name": "a"}, {"name": 5}])],
    ],
    ("prompts.invalid-name-error", OLD): [[refused(-32602)], [refused(-32603)]],
    ("logging.invalid-level-error", OLD): [
        [refused(-32602)],
        [refused(-32603)],
        [refused(-32601)],
        [OK],
    ],
    ("logging.levels", OLD): [[OK] * number + [refused()] for number in (0, 7, 8)],
    ("logging.invalid-level-error-2026", NEW): [[refused(-32602)], [OK]],
}
"""Replies of a server that declares every feature, by rule and revision."""
READ = says(resources=[{"uri": "a:b", "name": "c"}] * 2)


def contents(*parts: Any) -> list[Any]:
    """A list of two resources, both with these contents."""
    return [READ, *[says(contents=[*parts])] * 2]


FEATURES |= {
    ("resources.read-result-shape", OLD): [
        contents(5, {"uri": "a:b"}),
        [READ, says(contents=5)],
        [READ, OK],
        [READ, refused(), says(contents={})],
        [READ, *[says(resultType="input_required")] * 2],
    ],
    ("resources.read-result-shape-2026", NEW): [
        [READ, says(contents=[], resultType="complete", ttlMs=-1, cacheScope=5)],
        [READ, says(contents=[])],
        [READ, says(contents=[], resultType="complete")],
    ],
    ("resources.contents-text-or-blob", OLD): [
        contents({"uri": "a:b", "text": ""}, 5),
        contents({"uri": "a:b", "blob": ""}),
        contents({"uri": "a:b", "blob": 5, "text": 5}),
        contents({"text": ""}),
        contents(5),
        contents(),
        [READ, says(contents=5)],
    ],
    ("resources.binary-encoded", OLD): [
        contents({"text": ""}),
        *(contents({"blob": "AAE="}, {"blob": blob}) for blob in ("AAE=", "AA", "%", 5, "\u00e9")),
    ],
    ("prompts.get-result-shape", OLD): [
        [says(prompts=[{"name": name} for name in "abcd"]), *[says(messages=[])] * 3, OK],
        [says(prompts=[{"name": name} for name in "abcd"]), *[says(messages=[])] * 2, OK],
        [says(prompts=[{"name": "a"}]), says(resultType="input_required")],
        [says(prompts=[{"name": "a"}]), refused()],
    ],
    ("prompts.missing-arguments-error", OLD): [
        [says(prompts=[{"arguments": [{"required": True}]}]), OK],
        [says(prompts=[{"name": "a", "arguments": [{"name": "b", "required": False}]}])],
        *(
            [
                says(
                    prompts=[
                        {"name": "a", "arguments": 5},
                        {"name": "c", "arguments": [{"name": "b"}, {"required": True}, 5]},
                    ]
                ),
                answer,
            ]
            for answer in (refused(-32602), OK)
        ),
    ],
}
PROMPT = says(prompts=[{"name": "a", "arguments": [{"name": "b"}, {"name": "c"}]}])
TEMPLATE = says(resourceTemplates=[{"uriTemplate": "a:{d}/{e}"}])
CURSOR = {"nextCursor": "more"}


def completed(number: int) -> dict[str, Any]:
    """A completion with some values."""
    return says(completion={"values": ["x"] * number})


FEATURES |= {
    ("completion.result-shape", OLD): [
        [PROMPT, TEMPLATE, completed(101), refused(), completed(0), OK],
        [PROMPT, TEMPLATE, says(completion={"values": [*["x"] * 99, 5]})],
        [PROMPT, TEMPLATE, says(completion={"values": [*["x"] * 100, 5]})],
        [PROMPT, TEMPLATE, completed(0), completed(0), OK],
        [PROMPT, TEMPLATE, says(completion={"values": 5})],
        [PROMPT, TEMPLATE, *[refused()] * 4],
        [OK, OK],
        [OK, TEMPLATE, completed(0), OK],
    ],
    ("completion.max-100-values", OLD): [
        [PROMPT, TEMPLATE, completed(100), OK, says(completion={"values": 5})],
        [PROMPT, TEMPLATE, OK, OK, completed(101)],
    ],
    ("completion.invalid-prompt-error", OLD): [[refused(-32602)], [OK]],
    ("completion.missing-arguments-error", OLD): [
        [PROMPT, TEMPLATE, refused(-32602)],
        [PROMPT, TEMPLATE, OK],
    ],
    ("pagination.next-cursor-if-more", OLD): [
        [says(nextCursor=""), refused(), OK],
        [OK, says(nextCursor=None)],
    ],
    ("pagination.results-after-cursor", OLD): [
        [OK, says(nextCursor=5), refused()],
        [says(tools=5, **CURSOR), says(tools=5), OK],
        [tools({}, 5), says(resources=[{"uri": "a"}], **CURSOR), says(resources=[{"uri": "b"}])],
        [OK, says(resources=[{"uri": "a"}], **CURSOR), says(resources=[{"uri": "a"}, 5])],
        [says(tools=[{"name": "a"}, 5], **CURSOR), says(tools=[{"name": "b"}, {"name": "a"}])],
        [says(**CURSOR), refused(), OK, says(prompts=[{"name": "c"}], **CURSOR), OK],
        [OK, OK, says(prompts=[{"name": "c"}], **CURSOR), says(prompts=[{"name": "c"}])],
    ],
    ("pagination.invalid-cursor-error", OLD): [
        [refused(-32602)] * 3,
        [refused(-32602), refused(-32602), OK],
        [refused(-32600)],
    ],
    ("caching.hints-required", NEW): [
        [refused(), says(ttlMs=0, cacheScope=5)],
        [refused(), says(ttlMs=0)],
        [refused(), OK],
    ],
    ("caching.ttl-integer-ms", NEW): [
        [OK, refused(), says(ttlMs=5)],
        *([OK, OK, says(ttlMs=value)] for value in (1.5, "1", True)),
    ],
    ("caching.ttl-non-negative", NEW): [
        [OK, says(ttlMs=0), says(ttlMs=-1.5)],
        [OK, OK, says(ttlMs=-1)],
    ],
    ("caching.scope-values", NEW): [
        [OK, says(cacheScope="public"), says(cacheScope="private")],
        [OK, OK, says(cacheScope="shared")],
    ],
    ("meta.result-server-info", NEW): [
        [refused(), refused(), says(**NAMED)],
        [says(**NAMED), says(_meta={f"{PREFIX}serverInfo": 5})],
        [says(_meta=5)],
    ],
}


@pytest.mark.parametrize(("rule", "name"), FEATURES)
def test_replies_about_features_are_judged(
    rule: str, name: str, snapshot: SnapshotAssertion
) -> None:
    opened: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private", "capabilities": ALL}
    verdicts = [judgement(rule, session_with(name, one, **opened)) for one in FEATURES[rule, name]]
    assert verdicts == snapshot


READS = {"annotations": {"readOnlyHint": True}}
NEEDS = {
    **READS,
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    },
}
GIVES = {**READS, "outputSchema": {"type": "object", "required": ["b"]}}
FAILED = says(isError=True, content=[])


def content(*blocks: Any, **members: Any) -> list[Any]:
    """A tool that only reads, and the result of its call."""
    return [tools(READS), says(content=[*blocks], **members)]


CALLS: dict[tuple[str, str], list[list[Any]]] = {
    ("tools.call-result-content-required", OLD): [
        content(5, {"type": "text"}, structuredContent=5),
        [tools(READS, READS), says(task={}), OK],
        [tools(READS, {**READS, "name": "b"}), says(task={}), OK],
        [tools(READS), OK],
        [tools(READS), says(content=5)],
        content(isError=5),
        [tools(READS), refused()],
        [tools(READS), says(resultType="input_required")],
        [tools({})],
        [tools({"annotations": {"readOnlyHint": 1}})],
        [tools({"annotations": 5})],
        [tools({**NEEDS, "inputSchema": {"required": ["a"]}})],
        [tools({**NEEDS, "inputSchema": {"required": [[]]}})],
        [tools({**READS, "inputSchema": 5}, READS), says(content=5)],
    ],
    **{
        (f"content.{rule}-shape", OLD): [
            content({"type": kind}),
            content(5, {"type": "other"}),
            [tools(READS), says(content=5)],
        ]
        for rule, kind in (
            ("text", "text"),
            ("image", "image"),
            ("audio", "audio"),
            ("resource-link", "resource_link"),
            ("embedded", "resource"),
        )
    },
    ("content.no-audio-2024", OLDEST): [
        content({"type": "image"}),
        content({"type": "audio"}, {"type": "audio"}),
    ],
    ("content.no-resource-link-before-2025-06", OLDEST): [content({"type": "resource_link"})],
    ("content.structured-object", OLD): [
        content(),
        content(structuredContent={}),
        content(structuredContent=[]),
    ],
    ("tools.output-conforms", OLD): [
        [tools(READS), says(structuredContent={})],
        [tools(GIVES), FAILED],
        [tools(GIVES), says(isError="yes")],
        [tools({**READS, "outputSchema": 5}, GIVES), OK, says(structuredContent={})],
        [tools({**READS, "name": "b"}, GIVES), OK, says(structuredContent={"b": 1})],
        [tools(GIVES), says(structuredContent={})],
        *(
            [tools({**READS, "outputSchema": schema}), says(structuredContent="a")]
            for schema in ({"pattern": "("}, {"$ref": "#/no"}, {"$ref": "#"}, {"$schema": 5})
        ),
    ],
    ("content.structured-text-fallback", OLD): [
        content(),
        content({"text": "[1"}, 5, {"text": " [1]"}, structuredContent=[1]),
        content({"text": 5}, {"text": "[" * 9999}, {"text": "x" * 90}, structuredContent=[1]),
        [tools(READS), says(content=5, structuredContent=[1])],
    ],
    ("tools.invalid-arguments-protocol-error", MIDDLE): [
        [tools(NEEDS), FAILED],
        [tools(NEEDS), refused()],
        [tools(NEEDS), says(isError=1)],
        [tools(NEEDS), None],
        [tools(READS)],
        [tools(READS, NEEDS), FAILED],
    ],
    ("tools.input-validation-is-execution-error", OLD): [
        [tools(NEEDS, {**NEEDS, "name": "b"}), FAILED, OK],
        [tools(NEEDS), refused()],
        [tools(NEEDS), says(isError=False)],
    ],
}
"""Replies about calls, by rule and revision."""


@pytest.mark.parametrize(("rule", "name"), CALLS)
def test_replies_about_calls_are_judged(rule: str, name: str, snapshot: SnapshotAssertion) -> None:
    verdicts = [
        judgement(rule, session_with(name, one, capabilities={"tools": {}}))
        for one in CALLS[rule, name]
    ]
    assert verdicts == snapshot


@pytest.mark.parametrize("capabilities", [{}, ALL], ids=["nothing", "everything"])
@pytest.mark.parametrize("name", [OLD, NEW])
def test_servers_with_empty_results_are_judged_so(
    name: str, capabilities: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    verdicts: dict[str, str] = {}
    for module in (feature_checks, call_checks):
        for check in module.TABLE.checks.values():
            if name in check.rule.revisions:
                verdicts[check.id] = judgement(
                    check.id, session_with(name, capabilities=capabilities)
                )
    assert verdicts == snapshot
