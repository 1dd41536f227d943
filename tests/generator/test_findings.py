"""Reports of all commands that check something, as JUnit, SARIF and annotations of GitHub."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.command_line import run
from generator.diff_schemas import definitions
from generator.schemas import any_of, obj
from mcpgen import __version__, findings
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


@pytest.mark.parametrize("form", findings.FORMS)
def test_a_report_has_each_form(form: str, snapshot: SnapshotAssertion) -> None:
    for report in (REPORT, Report("a|b")):  # the second passes
        text = findings.FORMS[form](report).replace(__version__, "VERSION")
        assert re.sub(r"[^\n -~]", lambda char: ascii(char[0])[1:-1], text) == snapshot


def test_reports_are_joined_if_they_are_several() -> None:
    assert findings.join_reports([REPORT], "both") is REPORT
    both = findings.join_reports([REPORT, Report("b", [PLACED])], "both")
    assert both == Report("both", [*REPORT.findings, PLACED], [*REPORT.kept_rules])


def test_a_file_is_shown_from_the_current_directory(here: Path) -> None:
    shown = [findings.shown_path(Path(path)) for path in ("a/b", here / "a", here.parent / "a")]
    assert shown == ["a/b", "a", (here.parent / "a").as_posix()]


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
