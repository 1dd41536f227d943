"""Rules of resources, prompts, completion, logging, pages and caching."""

from __future__ import annotations

from typing import Any

from generator.check_server.rows import (
    CHANGED,
    LEVEL,
    LOG,
    NAMED,
    NEW,
    OK,
    OLD,
    Message,
    all_of,
    before,
    broken,
    capability,
    code,
    edit,
    error,
    kept,
    members,
    refuse,
    refused,
    rule,
    says,
    serve,
    skipped,
    tools,
    without,
)
from generator.check_server.tiny_server import is_known, meta_of

LISTED = says(resources=[{"uri": "a:b", "name": "c"}])
READ = says(resources=[{"uri": "a:b", "name": "c"}] * 2)
PROMPT = says(prompts=[{"name": "a", "arguments": [{"name": "b"}, {"name": "c"}]}])
TEMPLATE = says(resourceTemplates=[{"uriTemplate": "a:{d}/{e}"}])
MORE = {"nextCursor": "more"}
NEEDY = says(
    prompts=[
        {"name": "a", "arguments": 5},
        {"name": "c", "arguments": [{"name": "b"}, {"required": True}, 5]},
    ]
)


def contents(*parts: Any) -> list[Message]:
    """A list of two resources, both with these contents."""
    return [READ, *[says(contents=[*parts])] * 2]


def completed(*values: Any) -> Message:
    """A completion."""
    return says(completion={"values": [*values]})


def completion(*answers: Any) -> list[Any]:
    """Things that can be completed, and answers to their completion."""
    return [PROMPT, TEMPLATE, *answers]


def of_resource(*results: Message) -> list[Message]:
    """A listed resource, and what is answered about it."""
    return [says(resources=[{"uri": "a:b"}]), *results]


def subscription(subscribed: Message, unsubscribed: Message) -> Any:
    """The defect of subscriptions to resources, with some results."""
    return all_of(
        capability("resources", {"subscribe": True}),
        serve("resources/subscribe", subscribed),
        serve("resources/unsubscribe", unsubscribed),
    )


def names(*names: str) -> Message:
    """A list of prompts."""
    return says(prompts=[{"name": name} for name in names])


def hinted(**hints: Any) -> list[Message]:
    """Lists of tools and resources without hints, and a list of prompts with these."""
    return [OK, OK, says(**hints)]


RULES = [
    rule("resources.list-result-shape", defect=members("resources/list", nextCursor=5)),
    rule(
        "resources.list-result-shape-2026",
        kept(says(resources=[], resultType="complete")),
        broken(LISTED),
        defect=edit("resources/list", without("resultType")),
    ),
    rule(
        "resources.templates-result-shape",
        kept(OK, says(resourceTemplates=[{}])),
        broken(OK, refused(-32600)),
        skipped(refused(-32601)),
        defect=members("resources/templates/list", nextCursor=5),
    ),
    rule(
        "resources.templates-result-shape-2026",
        kept(OK, says(resourceTemplates=[], resultType="complete")),
        broken(OK, says(resourceTemplates=[])),
        defect=edit("resources/templates/list", without("resultType")),
    ),
    rule(
        "resources.uri-and-name-required",
        kept(LISTED),
        broken(says(resources=[{"uri": "a:b", "name": "c"}, {"uri": "a:b"}])),
        broken(says(resources=[{"name": "c"}])),
        defect=edit(
            "resources/list",
            lambda listed: {**listed, "resources": [*map(without("name"), listed["resources"])]},
        ),
    ),
    rule(
        "resources.uri-unique",
        kept(says(resources=[{"uri": "a:b"}, {"uri": "c:d"}])),
        broken(says(resources=[{"uri": "a:b"}, {"uri": "c:d"}, {"uri": "a:b"}])),
        defect=edit("resources/list", lambda it: {**it, "resources": it["resources"] * 2}),
    ),
    rule(
        "resources.templates-rfc6570",
        kept(says(resourceTemplates=[{"uriTemplate": "a:{b}{?c}"}])),
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
        kept(*contents({"uri": "a:b"})),
        broken(READ, says(contents=5)),
        broken(READ, OK),
        broken(*contents(5, {"uri": "a:b"})),
        skipped(READ, refused(), says(contents={})),
        skipped(READ, *[says(resultType="input_required")] * 2),
        defect=members("resources/read", contents={}),
    ),
    rule(
        "resources.read-result-shape-2026",
        kept(READ, says(contents=[], resultType="complete")),
        kept(READ, says(contents=[], resultType="complete", ttlMs=-1, cacheScope=5)),
        broken(READ, says(contents=[])),
        defect=edit("resources/read", without("resultType")),
    ),
    rule(
        "resources.contents-text-or-blob",
        kept(*contents({"uri": "a:b", "text": ""}, 5)),
        kept(*contents({"uri": "a:b", "blob": ""})),
        broken(*contents({"uri": "a:b", "blob": 5, "text": 5})),
        broken(*contents({"text": ""})),
        skipped(*contents(5)),
        skipped(*contents()),
        skipped(READ, says(contents=5)),
        defect=members("resources/read", contents=[{"uri": "raw://now"}]),
    ),
    rule(
        "resources.binary-encoded",
        kept(*contents({"blob": "AAE="}, {"blob": "AAE="})),
        *(broken(*contents({"blob": "AAE="}, {"blob": blob})) for blob in ("AA", "%", 5, "\u00e9")),
        skipped(*contents({"text": ""})),
        defect=members("resources/read", contents=[{"uri": "raw://map", "blob": "%"}]),
    ),
    rule(
        "resources.not-found-32002",
        kept(refused(-32002)),
        broken(refused(-32602)),
        broken(OK),
        defect=code(-32002, -32602),
    ),
    rule(
        "resources.not-found-32602",
        defect=refuse("resources/read", -32603, lambda it: "no-such" in str(it.get("uri"))),
    ),
    rule(
        "resources.subscribe-flag-legacy",
        kept(refused(), capabilities={}),
        broken(OK, capabilities={}),
        skipped(),
        defect=serve("resources/subscribe", {}),
    ),
    rule(
        "resources.subscribe-request",
        kept(*of_resource(says(_meta={}))),
        broken(*of_resource(says(_meta={}, x=1))),
        broken(*of_resource(refused())),
        defect=subscription({"subscribed": True}, {}),
    ),
    rule(
        "resources.unsubscribe-request",
        kept(*of_resource(says(x=1), says(_meta={}))),
        broken(*of_resource(OK, says(x=1))),
        broken(*of_resource(refused())),
        defect=subscription({}, {"subscribed": False}),
    ),
    rule("resources.subscribe-method-removed", defect=serve("resources/subscribe", {})),
    rule("prompts.list-result-shape", defect=members("prompts/list", nextCursor=5)),
    rule("prompts.list-result-shape-2026", defect=edit("prompts/list", without("resultType"))),
    rule(
        "prompts.name-required",
        kept(names("a", "b")),
        broken(names("a", "a")),
        broken(says(prompts=[{"name": "a"}, {"name": 5}])),
        defect=edit("prompts/list", lambda it: {**it, "prompts": [*it["prompts"], {"title": "?"}]}),
    ),
    rule(
        "prompts.get-result-shape",
        kept(names(*"abcd"), *[says(messages=[])] * 3, OK),
        broken(names(*"abcd"), *[says(messages=[])] * 2, OK),
        broken(names("a"), says(messages=[]), revision=NEW),
        skipped(names("a"), says(resultType="input_required")),
        skipped(names("a"), refused()),
        defect=members("prompts/get", messages=[{"role": "system"}]),
    ),
    rule(
        "prompts.invalid-name-error",
        defect=refuse("prompts/get", -32603, lambda params: params["name"] != "report"),
    ),
    rule(
        "prompts.missing-arguments-error",
        kept(NEEDY, refused(-32602)),
        broken(NEEDY, OK),
        broken(says(prompts=[{"arguments": [{"required": True}]}]), OK),
        skipped(says(prompts=[{"name": "a", "arguments": [{"name": "b", "required": False}]}])),
        defect=refuse(
            "prompts/get",
            -32603,
            lambda params: params.get("name") == "report" and "arguments" not in params,
        ),
    ),
    rule(
        "completion.result-shape",
        kept(*completion(completed(*["x"] * 101), refused(), completed(), OK)),
        broken(*completion(completed(*["x"] * 100, 5))),
        broken(*completion(completed(), completed(), OK)),
        broken(OK, TEMPLATE, completed(), OK),
        broken(*completion(completed(*["x"] * 99, 5))),
        broken(*completion(says(completion={"values": 5}))),
        broken(*completion(completed()), revision=NEW),
        skipped(*completion(*[refused()] * 4)),
        skipped(OK, OK),
        defect=members("completion/complete", completion={"values": [5]}),
    ),
    rule(
        "completion.max-100-values",
        kept(*completion(completed(*["x"] * 100), OK, says(completion={"values": 5}))),
        broken(*completion(OK, OK, completed(*["x"] * 101))),
        defect=members("completion/complete", completion={"values": ["x"] * 101}),
    ),
    rule(
        "completion.invalid-prompt-error",
        defect=refuse("completion/complete", -32603, lambda params: not is_known(params["ref"])),
    ),
    rule(
        "completion.missing-arguments-error",
        kept(*completion(refused(-32602))),
        broken(*completion(OK)),
        defect=refuse("completion/complete", -32603, lambda params: "argument" not in params),
    ),
    rule(
        "completion.unsupported-error",
        kept(refused(-32601), capabilities={}),
        broken(refused(-32602), capabilities={}),
        skipped(),
        defect=all_of(capability("completions", None), code(-32601, -32602, "completion/complete")),
    ),
    rule(
        "logging.levels",
        kept(*[OK] * 8, refused()),
        broken(refused()),
        broken(*[OK] * 7, refused()),
        skipped(revision=NEW),
        defect=refuse("logging/setLevel", -32602, lambda params: params["level"] == "notice"),
        where=(OLD,),
    ),
    rule(
        "logging.invalid-level-error",
        kept(refused(-32602)),
        broken(refused(-32603)),
        broken(OK),
        skipped(refused(-32601)),
        defect=code(-32602, -32603, "logging/setLevel"),
    ),
    rule(
        "logging.invalid-level-error-2026",
        defect=lambda request, answer: (
            error(request, -32600) if meta_of(request).get(LEVEL) == "verbose" else answer
        ),
    ),
    rule("logging.set-level-removed", defect=serve("logging/setLevel", {})),
    rule(
        "logging.declare-capability-initialize",
        kept([CHANGED], [CHANGED, LOG]),
        kept(CHANGED, capabilities={}),
        broken([CHANGED], [CHANGED, LOG], capabilities={}),
        defect=all_of(before("ping", LOG), capability("logging", None)),
    ),
    rule(
        "logging.declare-capability-discover",
        kept([CHANGED], [CHANGED, LOG]),
        kept(CHANGED, capabilities={}),
        broken([CHANGED], [CHANGED, LOG], capabilities={}),
    ),
    rule(
        "logging.per-request-level",
        kept(CHANGED),
        broken(LOG),
        broken(*[{"method": LOG["method"]}] * 2),
        defect=before("tools/list", LOG),
    ),
    rule(
        "pagination.next-cursor-if-more",
        kept(says(nextCursor=""), refused(), OK),
        broken(OK, says(nextCursor=None)),
        defect=members("prompts/list", nextCursor=None),
    ),
    rule(
        "pagination.results-after-cursor",
        kept(says(tools=5, **MORE), says(tools=5), OK),
        kept(says(**MORE), refused(), OK, says(prompts=[{"name": "c"}], **MORE), OK),
        kept(tools({}, 5), says(resources=[{"uri": "a"}], **MORE), says(resources=[{"uri": "b"}])),
        broken(OK, says(resources=[{"uri": "a"}], **MORE), says(resources=[{"uri": "a"}, 5])),
        broken(says(tools=[{"name": "a"}, 5], **MORE), says(tools=[{"name": "b"}, {"name": "a"}])),
        broken(OK, OK, says(prompts=[{"name": "c"}], **MORE), says(prompts=[{"name": "c"}])),
        skipped(OK, says(nextCursor=5), refused()),
    ),
    rule(
        "pagination.invalid-cursor-error",
        kept(*[refused(-32602)] * 3),
        broken(refused(-32602), refused(-32602), OK),
        broken(refused(-32600)),
        defect=serve(
            "tools/list",
            {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
        ),
    ),
    rule(
        "caching.hints-required",
        kept(*[says(ttlMs=0, cacheScope=5)] * 3),
        broken(refused(), says(ttlMs=0)),
        broken(refused(), OK),
        broken(refused(), says(ttlMs=0, cacheScope=5)),
        defect=edit("tools/list", without("ttlMs")),
    ),
    rule(
        "caching.ttl-integer-ms",
        kept(OK, refused(), says(ttlMs=5)),
        broken(*hinted(ttlMs=1.5)),
        broken(*hinted(ttlMs="1")),
        broken(*hinted(ttlMs=True)),
        defect=members("tools/list", ttlMs=0.5),
    ),
    rule(
        "caching.ttl-non-negative",
        kept(OK, says(ttlMs=0), says(ttlMs=-1.5)),
        broken(*hinted(ttlMs=-1)),
        defect=members("tools/list", ttlMs=-1),
    ),
    rule(
        "caching.scope-values",
        kept(OK, says(cacheScope="public"), says(cacheScope="private")),
        broken(*hinted(cacheScope="shared")),
        defect=members("tools/list", cacheScope="shared"),
    ),
    rule(
        "meta.result-server-info",
        kept(refused(), refused(), says(_meta={NAMED: {}})),
        broken(says(_meta={NAMED: {}}), says(_meta={NAMED: 5})),
        broken(says(_meta=5)),
        defect=edit("tools/list", without("_meta")),
    ),
]
