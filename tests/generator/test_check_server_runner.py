"""Runs of checks: which revisions are answers, and when a server is given up, in this process."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx2
import pytest

from generator.checked_in_memory import MemoryConnection, ignore, line_of, session_with
from mcpgen import schema
from mcpgen.check_server.connections import Connection, Reply
from mcpgen.check_server.outcomes import NotApplicableError
from mcpgen.check_server.runner import Findings, Run, RunOptions, run, select_checks
from mcpgen.check_server.session import Server, Session
from mcpgen.check_server.table import Check
from mcpgen.errors import ServerError
from mcpgen.explain.revision import revision
from mcpgen.project.live_server import Target

OLD, NEW = "2025-11-25", "2026-07-28"
OK: dict[str, Any] = {"result": {}}
REFUSED = {"error": {"code": 1, "message": "no"}}


def opening(**members: Any) -> list[Any]:
    """Replies that open a session."""
    return [{"result": {"protocolVersion": OLD, "capabilities": {}, **members}}, None]


def findings_of(answers: list[Any], *rules: str, name: str = OLD) -> tuple[Findings, Server]:
    """The findings about a server that answers so, and the server."""
    server = session_with(name, answers).server
    checks = Run(server, select_checks(rules), ignore, ignore)
    return anyio.run(checks.findings, [revision(name)]), server


def outcomes(findings: Findings) -> dict[str, str]:
    """The outcome of each check."""
    return {
        each.rule.id: f"{each.state}: {each.expected} | {each.actual}" for each in findings.outcomes
    }


def test_a_server_that_falls_silent_is_judged_by_what_it_sent() -> None:
    rules = ("jsonrpc.request-id-type", "progress.token-type", "ping.answered")
    records = ("jsonrpc.version-member", "jsonrpc.result-object")
    silent = [*opening(), *opening(), OK, *[None] * 9]
    findings, _ = findings_of(silent, "jsonrpc.response-same-id", *rules, *records)
    assert outcomes(findings) == {
        "ping.answered": "passed:  | ",
        "jsonrpc.request-id-type": 'broken: a result for the id "abc" | no answer',
        "jsonrpc.response-same-id": 'broken: a response with the id "7001" | no answer',
        "progress.token-type": "broken: an answer | silence: no answer",
        "jsonrpc.version-member": "passed:  | ",
        "jsonrpc.result-object": "passed:  | ",
    }
    assert findings.lost == {OLD: "the server answers no longer: no answer"}


def test_nothing_is_checked_after_silence() -> None:
    silent = [*opening(), *opening(), *[None] * 9]
    rules = ("lifecycle.initialize-result", "ping", "jsonrpc.code-method-not-found")
    findings, _ = findings_of(silent, *rules, "cancellation", "progress.token-type", "resources")
    assert "resources.list-result-shape" not in outcomes(findings)
    assert findings.lost == {OLD: "the server answers no longer: no answer"}


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_session_is_opened_in_two_attempts(failures: int) -> None:
    answers = [*opening(), *[REFUSED] * failures, *opening(), OK]
    findings, _ = findings_of(answers, "ping.answered")
    if failures < 2:
        assert outcomes(findings) == {"ping.answered": "passed:  | "}
        assert findings.lost == {}
    else:
        assert findings.outcomes == ()
        text = f'raw: expected a session of {OLD}, error 1 ("no")'
        assert findings.lost == {OLD: f"no session can be opened any longer: {text}"}


@pytest.mark.parametrize(
    ("first", "came"),
    [
        ([REFUSED], 'error 1 ("no")'),
        ([{"result": 5}], "result 5"),
        (opening(protocolVersion="2025-06-18"), f"the version 2025-06-18 in place of {OLD}"),
        ([None], "no answer"),
    ],
)
def test_a_server_of_no_revision_is_one_error(first: list[Any], came: str) -> None:
    with pytest.raises(ServerError) as caught:
        findings_of(first, "ping")
    assert str(caught.value) == f"raw: expected a server that speaks one of {OLD}, got {came}"


def test_other_revisions_are_asked_for_checks_that_compare_them() -> None:
    _, server = findings_of([*opening(), *opening()], "ping.answered")
    assert list(server.initialized) == [OLD]
    handshakes = [row.name for row in schema.revisions() if row.name != NEW]
    answers = [REFUSED] + [REFUSED] * (len(handshakes) - 2) + opening()
    _, server = findings_of([*answers, REFUSED, *opening()], "versioning.server-echo")
    assert [each.version for each in server.spoken] == [OLD]


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ({"serverInfo": {"name": "a", "version": "1"}}, "a 1"),
        ({"serverInfo": {"name": "a", "version": 1}}, "a"),
        ({"serverInfo": {"version": "1"}}, "1"),
        ({"serverInfo": 5}, ""),
        ({"_meta": 5}, ""),
        ({"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "b"}}}, ""),
        ({"serverInfo": {"name": "a" * 80}}, "a" * 80),
        ({"serverInfo": {"name": "a" * 81}}, "a" * 80 + "..."),
    ],
)
def test_findings_have_the_name_of_the_server(members: dict[str, Any], name: str) -> None:
    findings, _ = findings_of([*opening(), *opening(**members), OK], "ping")
    assert findings.name == name
    assert list(outcomes(findings)) == ["ping.answered"]
    assert (findings.target, findings.transport, findings.revisions) == ("raw", "stdio", (OLD,))


def test_long_texts_of_outcomes_are_lines_of_400_characters() -> None:
    result = {"result": {"a\n" + "b" * 500: 1}}
    findings, _ = findings_of([*opening(), *opening(), result], "ping.answered")
    assert len(findings.outcomes[0].actual) < 100
    long = [{"jsonrpc": "2.0", "method": "x" * 700}, *opening()[:1]]
    findings, _ = findings_of([*opening(), *opening(), long], "lifecycle.initialize-first")
    assert len(findings.outcomes[0].actual) == 163


def test_the_refusal_of_a_chosen_revision_is_told() -> None:
    other = {"error": {"code": 2, "message": "other"}}
    with pytest.raises(ServerError, match=r'got error 1 \("no"\)$'):
        findings_of([other, other, other, REFUSED, other], "versioning.server-echo")
    with pytest.raises(ServerError, match=f"got a result of server/discover without {NEW}: result"):
        findings_of([OK], "ping", name=NEW)


def test_outcomes_say_why_a_rule_does_not_apply() -> None:
    tool = {"name": "n" * 500, "inputSchema": {}}
    listed = {"result": {"tools": [tool]}}
    opened = opening(capabilities={"tools": {}})
    rules = ("tools.input-schema-root-object", "logging.levels")
    findings, _ = findings_of([*opening(), *opened, listed], *rules)
    broken, other = findings.outcomes
    assert broken.expected == f"type object in the inputSchema of {'n' * 366}..."
    assert (other.state, other.why) == ("not applicable", "the server declares no logging")


@pytest.mark.parametrize("length", [400, 401])
def test_long_reasons_of_outcomes_are_cut(length: int) -> None:
    async def fail(session: Session) -> None:
        raise errors.pop()

    errors = [NotApplicableError("x" * length), ServerError("x" * length)]
    checks = (Check("ping.answered", ("stdio",), fail, False),) * 2
    server = session_with(OLD, [*opening(), *opening()]).server
    findings = anyio.run(Run(server, checks, ignore, ignore).findings, [revision(OLD)])
    shown = "x" * 400 + "..." * (length - 400)
    assert [(each.state, each.expected, each.actual, each.why) for each in findings.outcomes] == [
        ("broken", "a session", shown, ""),
        ("not applicable", "", "", shown),
    ]


@pytest.mark.parametrize(("refusals", "ended"), [(0, ""), (1, ""), (2, ""), (0, "it ended")])
def test_each_connection_is_closed(refusals: int, ended: str) -> None:
    begun: list[MemoryConnection] = []
    closed: list[MemoryConnection] = []
    answers = iter([*opening(), *[REFUSED] * refusals])

    def respond(line: bytes) -> list[bytes]:
        answer = next(answers, opening()[0] if b'"id"' in line else None)
        return [line_of(answer, line)] if answer else []

    class Counted(MemoryConnection):
        end = ended

        async def close(self) -> None:
            closed.append(self)

    def begin() -> Connection:
        begun.append(Counted(respond, []))
        return begun[-1]

    server = session_with(OLD, begin=begin).server
    checks = select_checks(("lifecycle.initialize-first", "ping.answered"))
    findings = anyio.run(Run(server, checks, ignore, ignore).findings, [revision(OLD)])
    assert len(findings.outcomes) == (2 if refusals < 2 else 0)
    assert closed
    assert {id(each) for each in begun[1:]} == {id(each) for each in closed}


def test_a_server_that_falls_silent_at_once_is_told_as_it_ended() -> None:
    class Ended(MemoryConnection):
        async def send(self, *_: Any, **options: Any) -> Reply:
            return Reply(reason="it ended")

    server = session_with(OLD, begin=lambda: Ended(lambda line: [], [])).server
    checks = Run(server, select_checks(("ping",)), ignore, ignore)
    names = ("2025-03-26", "2025-06-18", OLD)
    with pytest.raises(ServerError, match=f"one of {', '.join(names)}, got it ended$"):
        anyio.run(checks.findings, [revision(name) for name in names])


def test_a_run_tries_all_revisions_or_the_chosen_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def answer(_: Any, request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content)
        if "id" not in message:
            return httpx2.Response(202)
        version = message.get("params", {}).get("protocolVersion")
        tried.append(version or message["method"])
        result = {"protocolVersion": version, "capabilities": {}} if version == OLD else None
        own = {"error": REFUSED["error"]} if result is None else {"result": result}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], **own})

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", answer)
    target = Target("raw", "http://h.example/mcp")
    assert RunOptions(target) == RunOptions(target, (), (), 10.0, False)
    began: list[str] = []
    findings = run(RunOptions(target, rules=("lifecycle.initialize-result",)), began.append, ignore)
    assert (findings.revisions, [each.state for each in findings.outcomes]) == ((OLD,), ["broken"])
    assert began == ["asking which revisions the server speaks", f"checking {OLD} over http"]
    handshakes = [row.name for row in schema.revisions() if row.name != NEW]
    assert tried == [*handshakes, "server/discover", OLD]
    tried.clear()
    with pytest.raises(
        ServerError, match=r"^raw: expected a server that speaks one of 2025-06-18,"
    ):
        run(RunOptions(target, ("2025-06-18",), ("ping",)), ignore, ignore)
    assert tried == ["2025-06-18"]
