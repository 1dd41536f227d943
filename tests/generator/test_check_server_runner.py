"""Runs of checks: which revisions are answers, and when a server is given up, in this process."""

from __future__ import annotations

from typing import Any

import pytest

from generator.check_server.judging import (
    MemoryConnection,
    answer_in_turn,
    answer_over_http,
    find,
    find_in_tiny,
    line_of,
)
from generator.check_server.rows import (
    NEW,
    OK,
    OLD,
    Rule,
    all_of,
    edit,
    refused,
    rule,
    says,
)
from generator.tables import table
from mcpgen import schema
from mcpgen.check_server.connections import Connection, Reply
from mcpgen.check_server.runner import Findings, select_checks
from mcpgen.errors import ServerError

TABLES: dict[str, Any] = table("check_server")
REFUSED = refused(1)
HANDSHAKES = [row.name for row in schema.revisions() if row.name != NEW]
COMPARING = "versioning.server-echo"


def opening(**members: Any) -> list[Any]:
    """Replies that open a session."""
    return [says(**{"protocolVersion": OLD, "capabilities": {}, **members}), None]


def findings_of(answers: list[Any], *rules: str, name: str = OLD) -> Findings:
    """The findings about a server that answers so."""
    return find(answer_in_turn(answers), name, select_checks(rules))


def outcomes(findings: Findings) -> dict[str, str]:
    """The outcome of each check."""
    return {
        each.rule.id: f"{each.state}: {each.expected} | {each.actual}" for each in findings.outcomes
    }


def test_a_server_that_falls_silent_is_judged_by_what_it_sent() -> None:
    rules = ("jsonrpc.request-id-type", "progress.token-type", "ping.answered", "resources")
    records = ("jsonrpc.version-member", "jsonrpc.result-object")
    silent = [*opening(), *opening(), OK, *[None] * 9]
    findings = findings_of(silent, "jsonrpc.response-same-id", *rules, *records)
    assert outcomes(findings) == {
        "ping.answered": "passed:  | ",
        "jsonrpc.request-id-type": 'broken: a result for the id "abc" | nothing came',
        "jsonrpc.response-same-id": 'broken: a response with the id "7001" | no answer',
        "progress.token-type": "broken: an answer | silence: nothing came",
        "jsonrpc.version-member": "passed:  | ",
        "jsonrpc.result-object": "passed:  | ",
    }
    assert findings.lost == {OLD: "the server answers no longer: nothing came"}


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_session_is_opened_in_two_attempts(failures: int) -> None:
    findings = findings_of([*opening(), *[REFUSED] * failures, *opening(), OK], "ping.answered")
    if failures < 2:
        assert outcomes(findings) == {"ping.answered": "passed:  | "}
        assert findings.lost == {}
    else:
        assert findings.outcomes == ()
        text = f'raw: expected a session of {OLD}, error 1 ("no")'
        assert findings.lost == {OLD: f"no session can be opened any longer: {text}"}


@pytest.mark.parametrize(("first", "name", "came"), TABLES["no revision"])
def test_a_server_of_no_revision_is_one_error(first: list[Any], name: str, came: str) -> None:
    with pytest.raises(ServerError) as caught:
        findings_of(first, "ping", name=name)
    assert str(caught.value) == f"raw: expected a server that speaks one of {name}, got {came}"


def test_a_silent_server_of_three_revisions_is_one_error() -> None:
    with pytest.raises(ServerError, match=r"2025-06-18, got nothing came$"):
        findings_of([None] * 5, COMPARING, name="2025-06-18")


def test_other_revisions_are_asked_for_checks_that_compare_them() -> None:
    assert findings_of([*opening(), *opening()], "ping.answered").revisions == (OLD,)
    answers = [REFUSED] * (len(HANDSHAKES) - 1) + opening()
    findings = findings_of([*answers, REFUSED, *opening()], COMPARING)
    assert (findings.revisions, [*outcomes(findings)]) == ((OLD,), [COMPARING])


def test_the_refusal_of_a_chosen_revision_is_told() -> None:
    other = refused(2)
    with pytest.raises(ServerError, match=r'got error 1 \("no"\)$'):
        findings_of([other, other, other, REFUSED, other], COMPARING)


@pytest.mark.parametrize(("members", "name"), TABLES["names of servers"])
def test_findings_have_the_name_of_the_server(members: dict[str, Any], name: str) -> None:
    findings = findings_of([*opening(), *opening(**members), OK], "ping")
    assert findings.name == name
    assert (findings.target, findings.transport, findings.revisions) == ("raw", "stdio", (OLD,))


def test_long_texts_of_a_server_are_cut() -> None:
    listed = says(tools=[{"name": "n" * 500, "inputSchema": {}}])
    opened = opening(capabilities={"tools": {}})
    rules = ("tools.input-schema-root-object", "logging.levels")
    broken, other = findings_of([*opening(), *opened, listed], *rules).outcomes
    assert broken.expected == f"type object in the inputSchema of {'n' * 366}..."
    assert (other.state, other.why) == ("not applicable", "the server declares no logging")
    typed = (200, OK, {"content-type": "t" * 500})
    over_http = ("http.request-reply-type", "http.stream-end-after-response")
    begin = answer_over_http([*opening(), *opening(), typed, typed])
    broken, other = find(begin, OLD, select_checks(over_http)).outcomes
    assert broken.actual == f"status 200 with {'t' * 384}..."
    assert other.why == f"responses are no streams: {'t' * 374}..."


def test_a_session_that_is_not_opened_breaks_a_rule() -> None:
    left = iter([answer_in_turn([*opening(), *opening()])] * 3)

    def connect() -> Connection:
        for begin in left:
            return begin()
        raise ServerError("no process")

    (outcome,) = find(connect, OLD, select_checks(("lifecycle.initialize-first",))).outcomes
    assert (outcome.state, outcome.expected, outcome.actual) == (
        *("broken", "a session", "no process"),
    )


@pytest.mark.parametrize(("refusals", "ended"), [(0, ""), (1, ""), (2, ""), (0, "it ended")])
def test_each_connection_is_closed(refusals: int, ended: str) -> None:
    states: list[str] = []
    answers = iter([*opening(), *[REFUSED] * refusals])

    def respond(line: bytes) -> list[bytes]:
        answer = next(answers, opening()[0] if b'"id"' in line else None)
        return [line_of(answer, line)] if answer else []

    class Counted(MemoryConnection):
        end = ended

        async def send(self, *payload: Any, **options: Any) -> Reply:
            if not self.received:
                states.append("begun")
            return await super().send(*payload, **options)

        async def close(self) -> None:
            states.append("closed")

    checks = select_checks(("lifecycle.initialize-first", "ping.answered"))
    findings = find(lambda: Counted(respond), OLD, checks)
    assert len(findings.outcomes) == (2 if refusals < 2 else 0)
    assert states.count("begun") == states.count("closed") > 0


def twenty(member: str, key: str) -> Any:
    """A list of twenty entries that differ in their name or address."""
    return lambda value: {
        **value,
        member: [{**value[member][0], key: f"{value[member][0][key]}{n}"} for n in range(20)],
    }


MANY = rule(
    "many",
    defect=all_of(
        edit("tools/list", twenty("tools", "name")),
        edit("resources/list", twenty("resources", "uri")),
        edit("prompts/list", twenty("prompts", "name")),
    ),
)


@pytest.mark.parametrize(
    ("area", "server", "method", "most"),
    [
        ("tools.call-result-content-required", MANY, "tools/call", 10),
        ("resources.read-result-shape", MANY, "resources/read", 3),
        ("prompts.get-result-shape", MANY, "prompts/get", 3),
        ("completion.result-shape", MANY, "completion/complete", 3),
        ("content", None, "tools/call", 1),
    ],
)
def test_few_entries_of_a_long_list_are_used_once_each(
    area: str, server: Rule | None, method: str, most: int
) -> None:
    sent: list[bytes] = []
    find_in_tiny("stdio", OLD, server, select_checks((area,)), sent)
    assert sum(f'"{method}"'.encode() in line for line in sent) == most


def test_all_that_is_sent_is_utf8() -> None:
    sent: list[bytes] = []
    find_in_tiny("stdio", OLD, None, select_checks(("stdio.utf8",)), sent)
    assert any("mcpgen \u00e9\u4e16".encode() in line for line in sent)
