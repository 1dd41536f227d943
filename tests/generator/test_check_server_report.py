"""The findings of `mcpgen check-server` as text, Markdown and JSON, and what makes an outcome."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.tables import table
from mcpgen.check_server import report
from mcpgen.check_server.connections import Reply
from mcpgen.check_server.outcomes import BrokenRuleError, Outcome, require_error, result_of
from mcpgen.check_server.rules import Rule, rules
from mcpgen.check_server.runner import Findings
from mcpgen.findings import Report

OLD, NEW = "2025-06-18", "2025-11-25"
TABLES: dict[str, Any] = table("check_server")
MUST = Rule("a.must", "MUST", (OLD, NEW), "One " * 30, "basic/a#one")
SHOULD = Rule("a.should", "SHOULD", (NEW,), "Two.", "basic/b")
OUTCOMES = (
    Outcome(SHOULD, NEW, "broken", "e|e", "c"),
    Outcome(MUST, OLD, "broken", "e", "old"),
    Outcome(MUST, NEW, "broken", "e", "new"),
    Outcome(SHOULD, OLD, "passed"),
    Outcome(SHOULD, OLD, "not applicable", why="w"),
)


def findings(*outcomes: Outcome, name: str = "n*", **lost: str) -> Findings:
    """Findings of a server over stdio."""
    return Findings("target", name, "stdio", (OLD, NEW), outcomes, lost)


def test_broken_rules_are_text_errors_first_once_for_all(snapshot: SnapshotAssertion) -> None:
    result = findings(*OUTCOMES, r="it ended")
    assert report.text(result, verbose=True) == snapshot
    shown = report.text(result, verbose=False).splitlines()
    verbose = report.text(result, verbose=True).splitlines()
    passed = ("passed: ", "not applicable: ")
    assert shown == [line for line in verbose if not line.startswith(passed)]
    numbers = "1 checks passed, 1 not applicable, 1 rules broken as errors, 1 as warnings"
    assert report.summary(result) == f"n*, stdio, {OLD}, {NEW}: 2 rules, {numbers}"
    assert report.summary(findings(name="")).startswith(f"stdio, {OLD}, {NEW}: 0 rules")


def test_findings_are_a_page_of_markdown(snapshot: SnapshotAssertion) -> None:
    assert report.markdown(findings(*OUTCOMES, r="it_ended")) == snapshot
    kept = report.markdown(findings(name=""))
    assert kept.startswith("# target\n")
    assert kept.endswith("\n\nNo rule is broken.\n")


def test_findings_are_json_with_each_outcome(snapshot: SnapshotAssertion) -> None:
    assert report.document(findings(*OUTCOMES[1:], r="w")) == snapshot
    assert report.document(findings(name=""))["name"] is None


def test_findings_have_the_shape_of_all_products(snapshot: SnapshotAssertion) -> None:
    kept, skipped, silent = (
        Rule(f"b.{name}", "SHOULD", (OLD, NEW), "Two.", "basic/b") for name in "xyz"
    )
    unbroken = (
        *(Outcome(kept, OLD, "passed"), Outcome(kept, NEW, "not applicable", why="w")),
        *(Outcome(skipped, OLD, "not applicable", why="v"), Outcome(silent, OLD, "not applicable")),
        Outcome(skipped, NEW, "not applicable", why="w"),
    )
    result = findings(*OUTCOMES[1:3], *unbroken, r="it ended")
    assert report.report_of(result, "f.py") == snapshot
    assert report.report_of(findings(name=""), "") == Report("target", [], [])


@pytest.mark.parametrize(("source", "page"), TABLES["pages"])
def test_a_rule_has_the_page_of_its_revision(source: str, page: str) -> None:
    assert Rule("a.b", "MUST", (OLD, NEW), "", source).page(NEW).endswith(page)


def test_breaking_what_a_page_states_is_a_warning() -> None:
    rule = rules()["ping.removed"]
    assert (rule.area, rule.keyword, rule.severity) == ("ping", "stated", "warning")
    assert (MUST.severity, SHOULD.severity) == ("error", "warning")


ERROR = {"error": {"code": -32602, "message": "m"}}


@pytest.mark.parametrize(("answer", "codes", "kept"), TABLES["codes"])
def test_an_error_has_one_of_some_codes(answer: Any, codes: list[int], kept: bool) -> None:
    if kept:
        require_error(Reply(answer=answer), *codes)
        return
    with pytest.raises(BrokenRuleError) as caught:
        require_error(Reply(answer=answer), *codes, what="for x")
    assert caught.value.expected == " ".join(("error", *map(str, codes), "for x"))


@pytest.mark.parametrize("answer", [None, ERROR, {"result": []}, {**ERROR, "result": {}}])
def test_a_result_is_an_object_without_an_error(answer: Any) -> None:
    with pytest.raises(BrokenRuleError, match="expected a result of ping, got"):
        result_of(Reply(answer=answer), "ping")
    assert result_of(Reply(answer={"result": {"a": 1}})) == {"a": 1}
