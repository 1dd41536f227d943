"""Each rule of `mcpgen check-server`: answers that keep and break it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.check_server.areas import RULES
from generator.check_server.judging import find_in_tiny, judge
from generator.check_server.rows import FIRST, NEW, OLD, Case, Rule, members, rule
from generator.check_server.tiny_server import REVISIONS
from generator.tables import table
from mcpgen.check_server.call_checks import arguments_for
from mcpgen.check_server.rules import rules
from mcpgen.check_server.runner import CHECKS, Findings
from mcpgen.check_server.table import Check

PROCESSES = ("lifecycle.shutdown-by-transport", "stdio.shutdown-server-on-eof")
"""Rules that only processes can break or keep."""
SKIPPED = "not applicable: "
IN_MEMORY = tuple(check for check in CHECKS if check.id not in PROCESSES)
CASES = [
    pytest.param(row, case, id=f"{row.id} is {case.state} {number}")
    for row in RULES.values()
    for number, case in enumerate(row.cases)
]


def test_each_rule_is_in_one_table() -> None:
    assert sorted(RULES) == sorted(check.id for check in CHECKS) == sorted(rules())
    assert {rule.level for rule in rules().values()} <= {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT"}
    broken = {row.id for row, case in (each.values for each in CASES) if case.state == "broken"}
    unbroken = [row.id for row in RULES.values() if not (row.defect or row.over_http)]
    assert {*unbroken} <= broken


@pytest.mark.parametrize(("row", "case"), CASES)
def test_answers_are_judged(row: Rule, case: Case, snapshot: SnapshotAssertion) -> None:
    verdict = judge(row.id, case.answers, **case.options)
    assert verdict == snapshot
    state = "kept" if not verdict else "skipped" if verdict.startswith(SKIPPED) else "broken"
    assert state == case.state, verdict


def defects() -> list[Any]:
    """Each rule that a defect of the tiny server breaks, by revision and transport."""
    found: list[Any] = []
    for check in IN_MEMORY:
        row, named = RULES[check.id], {*check.rule.revisions}
        areas = {check.rule.area, "tools", "ping"}
        some = [each for each in IN_MEMORY if each.rule.area in areas]
        judges: list[Any] = [IN_MEMORY]
        for revision in sorted({max({*REVISIONS} & named, default=NEW), NEW} & named):
            for transport in check.transports:
                has_defect = row.defect or (row.over_http and transport == "http")
                if has_defect and (not row.where or {revision, transport} & {*row.where}):
                    id = f"{row.id} {revision} {transport}"
                    checks = judges.pop() if judges else some
                    found.append(pytest.param(row, revision, transport, checks, id=id))
    return found


def broken_rules(findings: Findings) -> list[str]:
    """The rules that are broken."""
    assert findings.lost == {}
    return [each.rule.id for each in findings.outcomes if each.state == "broken"]


@pytest.mark.parametrize(("row", "revision", "transport", "checks"), defects())
def test_a_defect_breaks_its_rule_alone(
    row: Rule,
    revision: str,
    transport: str,
    checks: Sequence[Check],
    snapshot: SnapshotAssertion,
) -> None:
    findings = find_in_tiny(transport, revision, row, checks, [])
    assert broken_rules(findings) == [row.id]
    [broken] = [each for each in findings.outcomes if each.state == "broken"]
    assert f"{broken.expected} | {broken.actual}" == snapshot


OF_EACH_REQUEST = re.compile(
    r"^(?:host|accept-encoding|connection|user-agent|content-length): .*\n"
    r"|^content-type: application/json\n|^accept: application/json, text/event-stream\n",
    re.MULTILINE,
)
OF_EACH_RUN = {
    r"[0-9a-f]{32}": "ID",
    r'(?<="id":)[1-9]\d{0,2}\b': "N",
    r'(?<="version":")[^"]+': "VERSION",
    r'(/protocolVersion":"[^"]+"),"[^{}]+\{[^{}]+\},"[^{}]+\{\}': r"\1,...",
}


def sent_text(sent: Any) -> str:
    """The messages that a server receives, without values of one run and common members."""
    if isinstance(sent, bytes):
        text = repr(sent)[2:-1]
    else:
        fields = "".join(f"{name}: {value}\n" for name, value in sent.headers.items())
        fields = OF_EACH_REQUEST.sub("", fields)
        text = f"{sent.method} {sent_text(sent.content)}\n{fields}".rstrip().replace("\n", "\n  ")
    for form, short in OF_EACH_RUN.items():
        text = re.sub(form, short, text)
    return text


@pytest.mark.parametrize("revision", [*REVISIONS, NEW])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_without_a_defect_keeps_each_rule(
    transport: str, revision: str, snapshot: SnapshotAssertion
) -> None:
    sent: list[Any] = []
    findings = find_in_tiny(transport, revision, None, IN_MEMORY, sent)
    assert broken_rules(findings) == []
    assert [each.state for each in findings.outcomes].count("passed") > 60
    assert "\n".join(map(sent_text, sent)) == snapshot
    assert {each.rule.id: each.why or each.state for each in findings.outcomes} == snapshot


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_rules_of_what_a_server_lacks_do_not_apply(
    revision: str, snapshot: SnapshotAssertion
) -> None:
    lacking = rule("", defect=members(FIRST, capabilities={}))
    sent: list[Any] = []
    findings = find_in_tiny("stdio", revision, lacking, IN_MEMORY, sent)
    assert broken_rules(findings) == ["jsonrpc.code-method-ungated", "completion.unsupported-error"]
    outcomes = {each.rule.id: each.why or each.state for each in findings.outcomes}
    assert (len(sent), outcomes) == snapshot


ARGUMENTS: dict[str, Any] = table("arguments")
"""Schemas of arguments, each with what is built for it; null for nothing."""


@pytest.mark.parametrize(("schema", "built"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_fit_the_schema_or_there_are_none(schema: Any, built: object) -> None:
    assert arguments_for(schema) == built
