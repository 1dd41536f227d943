"""The findings of `mcpgen check-server` as text, Markdown and JSON, and what makes an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.check_server import report
from mcpgen.check_server.connections import Reply
from mcpgen.check_server.outcomes import BrokenRuleError, Outcome, require_error, result_of
from mcpgen.check_server.rules import Rule, rules
from mcpgen.check_server.runner import Findings
from mcpgen.findings import Finding, KeptRule, Report

OLD, NEW = "2025-06-18", "2025-11-25"
SITE = "https://modelcontextprotocol.io/specification"
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


def test_broken_rules_are_text_errors_first_once_for_all() -> None:
    result = findings(*OUTCOMES, r="it ended")
    lines = report.text(result, verbose=False).splitlines()
    assert lines == [
        f"error: a.must: MUST in {OLD}, {NEW}",
        f"  {' '.join(['One'] * 24)}",
        f"  {' '.join(['One'] * 6)}",
        "  expected: e",
        "  got:      new",
        f"  {SITE}/{NEW}/basic/a#one",
        "",
        f"warning: a.should: SHOULD in {NEW}",
        "  Two.",
        "  expected: e|e",
        "  got:      c",
        f"  {SITE}/{NEW}/basic/b",
        "",
        "given up: r: it ended",
    ]
    assert report.text(result, verbose=True).splitlines() == [
        *lines[:-1],
        f"passed: {OLD}: a.should",
        f"not applicable: {OLD}: a.should: w",
        lines[-1],
    ]
    numbers = "1 checks passed, 1 not applicable, 1 rules broken as errors, 1 as warnings"
    assert report.summary(result) == f"n*, stdio, {OLD}, {NEW}: 2 rules, {numbers}"
    assert report.summary(findings(name="")).startswith(f"stdio, {OLD}, {NEW}: 0 rules")


def test_findings_are_a_page_of_markdown() -> None:
    result = findings(*OUTCOMES, r="it_ended")
    assert report.markdown(result).splitlines() == [
        "# n\\*",
        "",
        report.summary(result).replace("*", "\\*"),
        "",
        "| Severity | Rule | Revisions | Expected | Got |",
        "| --- | --- | --- | --- | --- |",
        f"| error | [a.must]({SITE}/{NEW}/basic/a#one) | {OLD}, {NEW} | e | new |",
        f"| warning | [a.should]({SITE}/{NEW}/basic/b) | {NEW} | e\\|e | c |",
        "",
        "Given up in r: it_ended",
    ]
    kept = report.markdown(findings(name=""))
    assert kept.startswith("# target\n")
    assert kept.endswith("\n\nNo rule is broken.\n")


def test_findings_are_json_with_each_outcome() -> None:
    shown = report.document(findings(*OUTCOMES[1:], r="w"))
    assert shown["broken"] == [
        {
            "rule": "a.must",
            "level": "MUST",
            "severity": "error",
            "revisions": [OLD, NEW],
            "sentence": MUST.sentence,
            "in": [OLD, NEW],
            "expected": "e",
            "came": "new",
            "page": f"{SITE}/{NEW}/basic/a#one",
        }
    ]
    nothing = {"rule": "a.should", "revision": OLD, "expected": None, "came": None}
    assert shown["outcomes"][2:] == [
        {**nothing, "state": "passed", "why": None},
        {**nothing, "state": "not applicable", "why": "w"},
    ]
    assert shown["given_up"] == {"r": "w"}
    assert (shown["target"], shown["name"], shown["transport"]) == ("target", "n*", "stdio")
    assert report.document(findings(name=""))["name"] is None


def test_findings_have_the_shape_of_all_products() -> None:
    kept, skipped, silent = (
        Rule(f"b.{name}", "SHOULD", (OLD, NEW), "Two.", "basic/b") for name in "xyz"
    )
    unbroken = (
        *(Outcome(kept, OLD, "passed"), Outcome(kept, NEW, "not applicable", why="w")),
        *(Outcome(skipped, OLD, "not applicable", why="v"), Outcome(silent, OLD, "not applicable")),
        Outcome(skipped, NEW, "not applicable", why="w"),
    )
    page, sentence = f"{SITE}/{NEW}/basic/a#one", MUST.sentence
    broken = Finding(
        *("a.must", "error", "a", f"MUST in {OLD}, {NEW}: expected e, got new"),
        details=(sentence, page),
        file="f.py",
        reason=sentence,
        page=page,
    )
    lost = Finding("run.complete", "error", "checks", "given up in r: it ended", file="f.py")
    assert report.report_of(findings(*OUTCOMES[1:3], *unbroken, r="it ended"), "f.py") == Report(
        "n*",
        [broken, lost],
        [KeptRule("b", "b.x"), KeptRule("b", "b.y", "w"), KeptRule("b", "b.z", "not applicable")],
    )
    assert report.report_of(findings(name=""), "") == Report("target", [], [])


@pytest.mark.parametrize(
    ("source", "page"),
    [
        ("basic/a#one, two", f"{SITE}/{NEW}/basic/a#one,"),
        ("basic/a/index", f"{SITE}/{NEW}/basic/a"),
        (f"{OLD} basic/old; {NEW}: basic/new", f"{SITE}/{NEW}/basic/new"),
        (f"{OLD} basic/old; basic/all", f"{SITE}/{NEW}/basic/all"),
        (f"{OLD} basic/old", f"{SITE}/{OLD}/basic/old"),
        (f"basic/all ({NEW}: basic/new)", f"{SITE}/{NEW}/basic/new"),
        ("docs/a", f"{SITE.rpartition('/')[0]}/docs/a"),
        ("schema.ts#Tool", f"/schema/{NEW}/schema.ts"),
    ],
)
def test_a_rule_has_the_page_of_its_revision(source: str, page: str) -> None:
    assert Rule("a.b", "MUST", (OLD, NEW), "", source).page(NEW).endswith(page)


def test_breaking_what_a_page_states_is_a_warning() -> None:
    rule = rules()["ping.removed"]
    assert (rule.area, rule.keyword, rule.severity) == ("ping", "stated", "warning")
    assert (MUST.severity, SHOULD.severity) == ("error", "warning")


ERROR = {"error": {"code": -32602, "message": "m"}}


@pytest.mark.parametrize(
    ("answer", "codes", "kept"),
    [
        (ERROR, (), True),
        (ERROR, (-32602,), True),
        (ERROR, (-32601, -32602), True),
        (ERROR, (-32601,), False),
        ({**ERROR, "result": {}}, (), False),
        ({"result": {}}, (), False),
        ({"error": "m"}, (), False),
        (None, (), False),
    ],
)
def test_an_error_has_one_of_some_codes(answer: Any, codes: tuple[int, ...], kept: bool) -> None:
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
