"""How the outcome of a run is judged: on a suite that is a few lines of Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from conformance import report
from conformance.suite import Check, Outcome, Suite

SCRIPT = '''
import json, pathlib, sys
LISTED = """
Scenarios:
  - ping [2025-06-18,2025-11-25]
  - auth/basic [2025-11-25]
  - tools-list [2025-11-25]
  - tasks-lifecycle [extension]
  - auth/dpop [extension]
"""
given = sys.argv[1:]
if given[0] == "list":
    print(LISTED)
    sys.exit("--requirements" in given and given[-1] != "2025-11-25")
for name, checks in json.loads(pathlib.Path(__file__).with_name("made.json").read_text()).items():
    folder = pathlib.Path(given[-1]) / f"{name}-2026-01-02T03-04-05-678Z"
    folder.mkdir(parents=True)
    (folder / "checks.json").write_text(json.dumps(checks))
sys.exit(name == "fails")
'''


def suite_that_makes(folder: Path, made: Mapping[str, Sequence[dict[str, object]]]) -> Suite:
    """A suite whose runs leave these checks by scenario."""
    script = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    script.with_name("made.json").write_text(json.dumps(made))
    return Suite(Path(sys.executable), folder)


def entry(status: str, **more: object) -> dict[str, object]:
    """A check as the suite writes it."""
    return {"id": "a-check", "name": "ACheck", "status": status, **more}


def outcome(*checks: Check) -> Outcome:
    return Outcome("server", "ping", "2025-11-25", checks)


GOOD = Check("good", "SUCCESS", "")


def test_scenarios_of_a_revision_include_those_of_authorization(
    tmp_path: Path,
) -> None:
    suite = suite_that_makes(tmp_path, {})
    assert suite.scenarios("server") == {
        "2025-06-18": ["ping"],
        "2025-11-25": ["ping", "auth/basic", "tools-list", "auth/dpop"],
    }
    assert suite.extensions("server") == ["tasks-lifecycle", "auth/dpop"]
    assert suite.task_scenarios() == ["tasks-lifecycle"]


def test_a_scenario_without_checks_fails_but_no_extension_does(tmp_path: Path) -> None:
    made = {
        "server-ping": [entry("SUCCESS")],
        "auth/dpop": [entry("SUCCESS"), entry("INFO", details={"headers": {}})],
        "tools-list": [entry("SKIPPED", details={"message": "not applicable"})],
        "server-tasks-lifecycle": [entry("FAILURE")],
    }
    suite = suite_that_makes(tmp_path, made)
    outcomes = list(suite.against_server("http://x", "2025-11-25", tmp_path / "out"))
    assert [(one.scenario, one.passed) for one in outcomes] == [
        ("ping", True),
        ("auth/basic", False),
        ("tools-list", False),
        ("auth/dpop", True),
    ]
    assert [*report.notes(outcomes)] == [
        "FAILURE server auth/basic 2025-11-25: nothing was checked",
        "FAILURE server tools-list 2025-11-25: nothing was checked",
        "SKIPPED server tools-list 2025-11-25: a-check (ACheck): not applicable",
    ]


def test_a_client_that_fails_after_passing_checks_has_failed(tmp_path: Path) -> None:
    suite = suite_that_makes(tmp_path, {"fails": [entry("SUCCESS")]})
    result = suite.against_client("client", "fails", "2025-11-25", tmp_path / "out")
    assert (result.passed, result.score) == (False, "1/2")


@pytest.mark.parametrize(
    ("status", "passed", "score"),
    [
        ("FAILURE", False, "1/2"),
        ("WARNING", False, "1/2"),
        ("SKIPPED", True, "1/1"),
        ("INFO", True, "1/1"),
        ("SUCCESS", True, "2/2"),
    ],
)
def test_a_warning_fails_a_scenario_and_skipped_checks_do_not(
    status: str, passed: bool, score: str
) -> None:
    judged = outcome(GOOD, Check("other", status, "why"))
    assert (judged.passed, judged.score) == (passed, score)
    shown = [] if status == "SUCCESS" else [f"{status} server ping 2025-11-25: other: why"]
    assert list(report.notes([judged])) == shown


def test_the_table_marks_what_failed_and_sums_up() -> None:
    text = report.table([outcome(GOOD, Check("bad", "FAILURE", ""))])
    assert "server  ping       1/2 !" in text
    assert text.endswith("server 2025-11-25: 0 of 1 scenarios, 1 of 2 checks")
