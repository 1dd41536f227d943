"""Reports of all commands that check something, as JUnit, SARIF and annotations of GitHub."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from generator.command_line import run
from generator.diff_schemas import definitions
from generator.schemas import any_of, obj
from mcpgen import findings
from mcpgen.findings import Finding, KeptRule, Report

TESTS = Path(__file__).parent.parent

PLACED = Finding(
    "A_RULE",
    "error",
    "tool a,b",
    "tool a,b: 100% other\nline",
    ("more",),
    "/x",
    "a b:c.json",
    7,
    "the reason",
    "https://mcpgen.example/a",
)
OTHERS = (
    Finding("B_RULE", "warning", "b", "b: w"),
    Finding("B_RULE", "error", "b", "b: e", allowed=True),
    Finding("C_RULE", "note", "c", "c: \x1b \u2028 n", file="/c.json"),
)
REPORT = Report(
    "all", (PLACED, *OTHERS), (KeptRule("d", "D_RULE"), KeptRule("d", "E_RULE", "no reason"))
)


def test_junit_counts_what_fails_and_what_was_skipped() -> None:
    suite = ElementTree.fromstring(findings.junit(REPORT))
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "1", "errors": "0", "skipped": "1"}
    cases = [(case.get("classname"), case.get("name"), len(case)) for case in suite]
    assert cases[0] == ("tool a,b", "A_RULE /x", 1)
    assert cases[-2:] == [("d", "D_RULE", 0), ("d", "E_RULE", 1)]
    assert suite.findtext("testcase/failure") == "tool a,b: 100% other\nline\nmore"


def test_junit_without_findings_has_one_case_that_passes() -> None:
    suite = ElementTree.fromstring(findings.junit(Report("all")))
    assert [(case.get("classname"), len(case)) for case in suite] == [("all", 0)]


def test_sarif_has_levels_places_and_rules() -> None:
    (one,) = json.loads(findings.sarif(REPORT))["runs"]
    placed, *others = one["results"]
    assert placed["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b%3Ac.json"},
        "region": {"startLine": 7},
    }
    assert [each["level"] for each in (placed, *others)] == ["error", "warning", "none", "note"]
    uris = [each["locations"][0].get("physicalLocation") for each in others]
    assert [uri and uri["artifactLocation"]["uri"] for uri in uris] == [
        None,
        None,
        "file:///c.json",
    ]
    rules = one["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["A_RULE", "B_RULE", "C_RULE"]
    assert rules[0]["helpUri"] == PLACED.page
    marks = [each["partialFingerprints"]["primaryLocationLineHash"] for each in (placed, *others)]
    assert len({*marks}) == 3  # two are of one rule and item


def test_annotations_escape_what_commands_may_not_have() -> None:
    placed, *others, end = findings.github(REPORT).split("\n")
    assert end == ""
    where = "file=a b%3Ac.json,line=7,title=A_RULE"
    assert placed == f"::error {where}::tool a,b: 100%25 other%0Aline; more"
    heads = ["::warning title=B_RULE", "::notice title=B_RULE", "::notice file=/c.json"]
    assert [line.startswith(head) for line, head in zip(others, heads, strict=True)] == [True] * 3


BROKEN = f"""
import sys
sys.path.append({str(TESTS)!r})
from generator.check_server import tiny_server
sys.argv[1:] = ["plain", "tools.input-schema-root-object"]
tiny_server.main()
"""


@pytest.fixture
def changed(package: Path) -> Path:
    """A folder with an edited package, two schemas that differ, and a server that breaks a rule."""
    (package / "models.py").write_text("# other\n", encoding="utf-8")
    (package.parent / "broken.py").write_text(BROKEN, encoding="utf-8")
    for name, colors in (("a.json", ["red", "blue"]), ("b.json", ["red"])):
        paint = obj("color", color={"enum": colors})
        named = {**definitions(PaintRequestParams=paint), "ServerResult": any_of("PaintResult")}
        (package.parent / name).write_text(json.dumps({"$defs": named}), encoding="utf-8")
    return package.parent


CHECK_SERVER = (
    "check-server",
    f"{sys.executable} broken.py",
    "-r",
    "2025-06-18",
    "--rule",
    "tools",
)
COMMANDS = (
    pytest.param(("check", "pkg"), "FILE_DIFFERS", "pkg/models.py", id="check"),
    pytest.param(
        *(("diff", "a.json", "b.json", "--fail-on", "breaking"), "VALUE_REMOVED", "b.json"),
        id="diff",
    ),
    pytest.param(CHECK_SERVER, "tools.input-schema-root-object", "broken.py", id="check-server"),
)


@pytest.mark.parametrize(("words", "rule", "file"), COMMANDS)
def test_each_command_has_each_form(
    words: tuple[str, ...], rule: str, file: str, changed: Path
) -> None:
    for form in ("junit", "sarif", "github", "markdown"):
        done = run(*words, "--format", form, cwd=changed)
        assert done.code == 1, done
        match form:
            case "junit":
                suite = ElementTree.fromstring(done.out)
                (case,) = suite.findall("testcase[failure]")
                assert (str(case.get("name")).split()[0], case.get("file")) == (rule, file)
            case "sarif":
                (one,) = json.loads(done.out)["runs"]
                (result,) = [each for each in one["results"] if each["level"] == "error"]
                place = result["locations"][0]["physicalLocation"]["artifactLocation"]
                assert (result["ruleId"], place["uri"]) == (rule, file)
            case "github":
                assert f"::error file={file},title={rule}::" in done.out.splitlines()[0]
            case _:
                assert rule in done.out
                assert "| --- |" in done.out


def test_a_report_in_two_forms_is_refused() -> None:
    done = run("diff", "2025-06-18", "latest", "--json", "--format", "junit")
    assert (done.code, "expected one form of the result, got json and junit" in done.err) == (
        2,
        True,
    )
