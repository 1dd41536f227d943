"""Each defect of a raw server in this process breaks its own rule, and the report says how."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import anyio
import httpx2
import pytest
from syrupy.assertion import SnapshotAssertion

from generator import checked_http_servers as http
from generator import checked_servers, checked_stateless_servers
from generator import checked_stateless_http_servers as stateless
from generator.checked_in_memory import (
    SERVERS,
    MemoryConnection,
    MemoryServer,
    checked_in_memory,
    checked_over_http,
)
from generator.checked_servers import edit_result, in_turn, refused_if, tool, with_block, without
from mcpgen.check_server.outcomes import Outcome
from mcpgen.check_server.rules import rules
from mcpgen.check_server.runner import CHECKS, Run
from mcpgen.check_server.table import HTTP
from mcpgen.errors import ServerError
from mcpgen.explain.revision import revision as explain_revision

OF_PROCESSES = ("lifecycle.shutdown-by-transport", "stdio.shutdown-server-on-eof")
IN_MEMORY = tuple(check for check in CHECKS if check.id not in OF_PROCESSES)


DEFECTS = [
    (rule, max(spoken & {*rules()[rule].revisions}))
    for module in (checked_servers, checked_stateless_servers)
    for spoken in [{name for name, speaker in SERVERS.items() if speaker is module}]
    for rule in {**module.DEFECTS, **module.BEFORE}
    if rule in rules()
]
"""Each defect, with the newest revision that has its rule and that a raw server speaks."""


@cache
def outcomes(defect: str, revision: str, **options: bool) -> tuple[Outcome, ...]:
    findings, _ = checked_in_memory(SERVERS[revision], defect, revision, IN_MEMORY, **options)
    assert findings.lost == {}
    return findings.outcomes


def broken_outcomes(judged: tuple[Outcome, ...]) -> list[Outcome]:
    return [each for each in judged if each.state == "broken"]


@pytest.mark.parametrize(("rule", "revision"), DEFECTS)
def test_a_defect_breaks_its_rule_alone(rule: str, revision: str) -> None:
    assert [each.rule.id for each in broken_outcomes(outcomes(rule, revision))] == [rule]


def test_servers_without_a_defect_keep_each_rule(snapshot: SnapshotAssertion) -> None:
    reasons: dict[str, dict[str, str]] = {}
    for revision in SERVERS:
        judged = outcomes("none", revision)
        assert broken_outcomes(judged) == []
        reasons[revision] = {each.rule.id: each.why for each in judged if each.why}
    assert reasons == snapshot


def test_a_broken_rule_says_what_was_expected_and_what_came(snapshot: SnapshotAssertion) -> None:
    texts: dict[str, str] = {}
    for rule, revision in DEFECTS:
        [outcome] = broken_outcomes(outcomes(rule, revision))
        texts[f"{rule} {revision}"] = f"{outcome.expected} | {outcome.actual}"
    assert texts == snapshot


@pytest.mark.parametrize("revision", [checked_servers.REVISIONS[-1], *list(SERVERS)[-1:]])
def test_the_requests_of_a_check_are_these(revision: str, snapshot: SnapshotAssertion) -> None:
    _, sent = checked_in_memory(SERVERS[revision], "none", revision, IN_MEMORY)
    assert [format_request(line, revision) for line in sent] == snapshot


def format_request(line: bytes, revision: str) -> str:
    """A request without what most of its revision have; numbers that ids count up are left out."""
    try:
        message: Any = json.loads(line)
    except ValueError:
        return repr(line)
    if not isinstance(message, dict):
        return f"a batch of {len(message)}"
    id, params = message.get("id", "no id"), message.get("params", {})
    params.pop("clientInfo", None)
    for key, value in params.pop("_meta", {}).items():
        if not key.endswith(("clientInfo", "clientCapabilities")) and value != revision:
            params[key] = value
    words = [message.get("method", "a message"), "" if id in range(1, 100) else id, params or ""]
    return " ".join(json.dumps(word).strip('"') for word in words if word != "")


HTTP_SERVERS = {
    checked_servers.REVISIONS[-1]: (http.RawHttpServer, http.HTTP_DEFECTS),
    checked_stateless_servers.REVISION: (stateless.StatelessHttpServer, stateless.HTTP_DEFECTS),
}
OVER_SOCKETS = "http.final-response-ends-stream"
"""A defect of streams that stay open, which none does in memory."""
HTTP_DEFECTS = [
    (rule, revision)
    for revision, (_, rules_of_http) in HTTP_SERVERS.items()
    for rule in rules_of_http
    if rule != OVER_SOCKETS
]


@cache
def broken_over_http(defect: str, revision: str) -> list[Outcome]:
    with HTTP_SERVERS[revision][0](defect) as server:  # bound, but served in this process
        findings, _ = checked_over_http(server, revision, CHECKS)
    assert (findings.lost, findings.transport) == ({}, "http")
    return broken_outcomes(findings.outcomes)


@pytest.mark.parametrize(
    ("rule", "revision"), [*HTTP_DEFECTS, *(("", each) for each in HTTP_SERVERS)]
)
def test_a_defect_over_http_breaks_its_rule_alone(rule: str, revision: str) -> None:
    assert [each.rule.id for each in broken_over_http(rule, revision)] == ([rule] if rule else [])


def test_a_broken_rule_of_http_says_what_came(snapshot: SnapshotAssertion) -> None:
    texts: dict[str, str] = {}
    for rule, revision in HTTP_DEFECTS:
        [outcome] = broken_over_http(rule, revision)
        texts[f"{rule} {revision}"] = f"{outcome.expected} | {outcome.actual}"
    ids = re.compile("[0-9a-f]{32}|session-[0-9]+")
    assert {rule: ids.sub("ID", text) for rule, text in texts.items()} == snapshot


@pytest.mark.parametrize("revision", HTTP_SERVERS)
def test_the_requests_of_a_check_of_http_are_these(
    revision: str, snapshot: SnapshotAssertion
) -> None:
    checks = [check for check in CHECKS if check.transports == HTTP]
    with HTTP_SERVERS[revision][0]("") as server:
        _, sent = checked_over_http(server, revision, checks)
    assert [shown_request(request, revision) for request in sent] == snapshot


def shown_request(request: httpx2.Request, revision: str) -> str:
    """A request without the fields that most have."""
    fields = [f"{name.decode()}: {value.decode('latin-1')}" for name, value in request.headers.raw]
    own = [field for field in fields if field.lower() not in USUAL and not COMMON.match(field)]
    body = format_request(request.content, revision) if request.content else ""
    return " | ".join([f"{request.method} {body}".strip(), *own])


COMMON = re.compile(
    "(?i)(host|user-agent|content-length|accept-encoding|connection):|mcp-session-id: [0-9a-f]{32}$"
)
USUAL = ("content-type: application/json", "accept: application/json, text/event-stream")


def test_progress_names_each_revision_and_each_rule() -> None:
    revision = checked_servers.REVISIONS[-1]
    texts: list[str] = []
    rules_shown: list[str] = []
    server = MemoryServer(
        lambda: MemoryConnection(checked_servers.server_function("none"), []), ["raw"]
    )
    run = Run(server, IN_MEMORY[:2], texts.append, rules_shown.append)
    anyio.run(run.findings, [explain_revision(revision)])
    assert texts == ["asking which revisions the server speaks", f"checking {revision} over stdio"]
    numbers = [f"{revision}: {n}/{len(rules_shown)} " for n in range(1, len(rules_shown) + 1)]
    assert len(rules_shown) > 0
    assert all(line.startswith(n) for line, n in zip(rules_shown, numbers, strict=True))


def test_tools_are_called_that_only_read_or_by_permission() -> None:
    revision = checked_servers.REVISIONS[-1]
    why = "no tool says that it only reads; --call-tools calls them all"
    assert why in [each.why for each in outcomes("unsafe", revision)]
    assert why not in [each.why for each in outcomes("unsafe", revision, call_tools=True)]


def every(method: str, **members: Any) -> checked_servers.Defect:
    """Results of a method with these members alone."""
    return edit_result(method, lambda value: dict(members))


def change_first_result(**members: Any) -> checked_servers.Defect:
    """The first result with other members."""
    return in_turn(
        *(
            edit_result(method, lambda value: {**value, **members})
            for method in ("initialize", "server/discover")
        )
    )


def page_list(method: str, member: str) -> checked_servers.Defect:
    """A list of two pages, the second of which is empty."""

    def change(request: Any, answer: Any) -> Any:
        if not isinstance(request, dict) or request.get("method") != method:
            return answer
        cursor = request.get("params", {}).get("cursor")
        if cursor == "more":
            value = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", member: []}
            return {"jsonrpc": "2.0", "id": request["id"], "result": value}
        if cursor is None:
            answer["result"]["nextCursor"] = "more"
        return answer

    return change


BLOCKS: list[dict[str, Any]] = [
    {"type": "image", "data": "eA==", "mimeType": "image/png"},
    {"type": "audio", "data": "eA==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "raw://now", "name": "now"},
    {"type": "resource", "resource": {"uri": "raw://now", "text": "now"}},
]
NO_TOOL = {"name": "odd", "inputSchema": {"type": "object", "required": ["x"]}}
VARIANTS: dict[str, checked_servers.Defect] = {
    "each kind of block": in_turn(*map(with_block, BLOCKS)),
    "empty lists": in_turn(
        every("tools/list", tools=[]),
        every("resources/list", resources=[]),
        every("resources/templates/list", resourceTemplates=[]),
        every("prompts/list", prompts=[]),
    ),
    "malformed lists": in_turn(
        every("tools/list", tools={}),
        every("resources/list", resources=[5, {"uri": "x:y", "name": "x"}]),
        every("resources/templates/list"),
        every("prompts/list", prompts="x"),
    ),
    "pages": in_turn(page_list("tools/list", "tools"), page_list("prompts/list", "prompts")),
    "no templates": refused_if("resources/templates/list", lambda params: True, -32601),
    "input is required": in_turn(
        every("tools/call", resultType="input_required", inputRequests={}),
        every("resources/read", resultType="input_required", inputRequests={}),
        every("prompts/get", resultType="input_required", inputRequests={}),
    ),
    "nothing can be read or called": in_turn(
        refused_if("tools/call", lambda params: True, -32603),
        refused_if("resources/read", lambda params: True, -32603),
        refused_if("prompts/get", lambda params: True, -32603),
    ),
    "empty contents": every("resources/read", contents=[]),
    "malformed contents": every("resources/read", contents=[5]),
    "malformed content": edit_result("tools/call", lambda value: {**value, "content": [5]}),
    "contents of text alone": every("resources/read", contents=[{"uri": "x:y", "text": ""}]),
    "a task": edit_result("tools/call", lambda value: {"task": {}}),
    "a tool that fails": edit_result(
        "tools/call", lambda value: {**value, "content": [], "isError": True}
    ),
    "no structured content": edit_result("tools/call", without("structuredContent")),
    "a tool without types": every("tools/list", tools=[NO_TOOL]),
    "a tool without arguments": edit_result("tools/list", tool(inputSchema={"type": "object"})),
    "a header parameter": edit_result(
        "tools/list",
        tool(inputSchema={"type": "object", "properties": {"a": {"x-mcp-header": "A"}}}),
    ),
    "a prompt without arguments": every("prompts/list", prompts=[{"name": "report"}]),
    "malformed arguments": every("prompts/list", prompts=[{"name": "report", "arguments": [5]}]),
    "no name": change_first_result(serverInfo=None, _meta={}),
    "malformed capabilities": change_first_result(capabilities=5),
    "no capabilities": change_first_result(capabilities={}),
    "some capabilities": change_first_result(capabilities={"tools": False, "prompts": {}}),
    "an older version": change_first_result(
        protocolVersion="2024-11-05", supportedVersions=["2024-11-05"]
    ),
    "a result of five": change_first_result(extra=5, instructions=5),
    "results for all": lambda request, answer: (
        {"jsonrpc": "2.0", "id": request["id"], "result": {}}
        if isinstance(request, dict) and "error" in (answer or {}) and "id" in request
        else answer
    ),
    "silence on errors": lambda request, answer: None if "error" in (answer or {}) else answer,
}


def multiply(member: str, key: str) -> Callable[[Any], Any]:
    """A list of twenty entries that differ in their name or address."""
    return lambda value: {
        **value,
        member: [{**value[member][0], key: f"{value[member][0][key]}{n}"} for n in range(20)],
    }


MANY = in_turn(
    edit_result("tools/list", multiply("tools", "name")),
    edit_result("resources/list", multiply("resources", "uri")),
    edit_result("prompts/list", multiply("prompts", "name")),
)


@pytest.mark.parametrize(
    ("rule", "method", "most"),
    [
        ("tools.call-result-content-required", "tools/call", 10),
        ("resources.read-result-shape", "resources/read", 3),
        ("prompts.get-result-shape", "prompts/get", 3),
        ("completion.result-shape", "completion/complete", 3),
    ],
)
def test_few_entries_of_a_long_list_are_used(
    rule: str, method: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(checked_servers.DEFECTS, "many", MANY)
    checks = [check for check in CHECKS if check.id == rule]
    _, sent = checked_in_memory(checked_servers, "many", checked_servers.REVISIONS[-1], checks)
    assert sum(f'"{method}"'.encode() in line for line in sent) == most


def test_a_hundred_values_complete_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"completion": {"values": ["x"] * 100}}
    monkeypatch.setitem(checked_servers.DEFECTS, "full", every("completion/complete", **values))
    checks = [check for check in CHECKS if check.rule.area == "completion"]
    name = checked_servers.REVISIONS[-1]
    findings, _ = checked_in_memory(checked_servers, "full", name, checks)
    assert broken_outcomes(findings.outcomes) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_servers_that_differ_are_judged_so(
    variant: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_revision: dict[str, list[str]] = {}
    for revision in (checked_servers.REVISIONS[-1], checked_stateless_servers.REVISION):
        monkeypatch.setitem(SERVERS[revision].DEFECTS, variant, VARIANTS[variant])
        try:
            findings, _ = checked_in_memory(SERVERS[revision], variant, revision, IN_MEMORY)
        except ServerError as error:
            by_revision[revision] = [f"ServerError: {error}"]
            continue
        usual = {(each.rule.id, each.state, each.why) for each in outcomes("none", revision)}
        notes = (f"the name {findings.name}", *findings.lost.values())
        by_reason: dict[str, list[str]] = {note: [] for note in notes}
        for each in findings.outcomes:
            if (each.rule.id, each.state, each.why) not in usual:
                reason = each.why or f"{each.state}: {each.expected} | {each.actual}"
                by_reason.setdefault(reason, []).append(each.rule.id)
        by_revision[revision] = [f"{reason}: {' '.join(ids)}" for reason, ids in by_reason.items()]
    assert by_revision == snapshot
