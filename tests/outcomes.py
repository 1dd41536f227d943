"""A pytest plugin that writes the outcomes of a run, and the closing lines over sessions."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # the closing lines need Python alone
    import pytest


@dataclass
class Outcomes:
    """Counts of one run of pytest, or of several together."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    repeated: list[str] = field(default_factory=list)
    """Names of the tests that failed at first, in the order of their failures."""
    failures: list[str] = field(default_factory=list)
    """Each test that failed, and the first line of its error."""
    cpu: float = 0
    """CPU seconds of a session and its child processes, which noxfile.py adds."""

    def add(self, other: Outcomes) -> None:
        """Count another run too."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.repeated += other.repeated
        self.failures += other.failures
        self.cpu += other.cpu


class Session(NamedTuple):
    """A session of nox that ended, as its report shows it."""

    name: str
    succeeded: bool
    seconds: float


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--outcomes`."""
    parser.addoption("--outcomes", metavar="FILE", type=Path, help="append the counts of this run")


def pytest_configure(config: pytest.Config) -> None:
    """Count where reports arrive: with pytest-xdist, in the process that distributes tests."""
    file = config.getoption("--outcomes")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Counter(file))


class _Counter:
    """Counts the reports of a run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._by_test: dict[str, str] = {}
        self._repeated: dict[str, None] = {}
        self._errors: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome: str = report.outcome
        if outcome == "failed":
            self._errors.setdefault(report.nodeid, first_line(report))
        if outcome == "rerun":  # of pytest-rerunfailures
            self._repeated[report.nodeid] = None
            self._by_test.pop(report.nodeid, None)
        elif report.nodeid in self._by_test and outcome != "failed":
            return
        elif outcome != "passed" or report.when == "call":
            self._by_test[report.nodeid] = outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._by_test[report.nodeid] = "failed"
            self._errors[report.nodeid] = first_line(report)

    def pytest_sessionfinish(self) -> None:
        outcomes = list(self._by_test.values())
        failed = [test for test, outcome in self._by_test.items() if outcome == "failed"]
        counts = Outcomes(
            passed=outcomes.count("passed"),
            failed=len(failed),
            skipped=outcomes.count("skipped"),
            repeated=[test for test in self._repeated if self._by_test.get(test) == "passed"],
            failures=[f"{test}: {self._errors[test]}" for test in failed],
        )
        write_outcomes(self._file, counts)


def first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first line of the error of a failure, or of its text, at most 200 characters."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext.strip()
    return text.partition("\n")[0][:200]


def write_outcomes(file: Path, outcomes: Outcomes) -> None:
    """Append the outcomes of a run to those of its session."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(outcomes)) + "\n")


def read_sessions(folder: Path, report: str) -> list[Session]:
    """The sessions in a report of nox; a missing report reads as a failed session of its name."""
    file = folder / f"{report}.json"
    if not file.is_file():
        return [Session(report, succeeded=False, seconds=0)]
    return [
        Session(row["name"], row["result"] == "success", row["duration"])
        for row in json.loads(file.read_text("utf-8"))["sessions"]
    ]


def read_outcomes(folder: Path, session: str) -> Outcomes:
    """The outcomes of all runs of a session; no outcomes if it runs no tests."""
    total = Outcomes()
    file = folder / f"{session}.jsonl"
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        total.add(Outcomes(**json.loads(line)))
    return total


def summarize(folder: Path, reports: Sequence[str]) -> tuple[str, bool]:
    """The closing lines, and whether all sessions succeeded and tests were counted."""
    total = Outcomes()
    titles = ("seconds", "CPU", "passed", "failed", "skipped")
    lines = [f"{'session':<18}" + "".join(f" {title:>7}" for title in titles)]
    sessions = [row for report in reports for row in read_sessions(folder, report)]
    for session in sorted(sessions, key=lambda row: -row.seconds):
        outcomes = read_outcomes(folder, session.name)
        if not session.succeeded and not outcomes.failed:
            outcomes.failed = 1
        total.add(outcomes)
        counts = (outcomes.passed, outcomes.failed, outcomes.skipped)
        numbers = (session.seconds, outcomes.cpu, *counts)
        lines.append(f"{session.name:<18}" + "".join(f" {number:>7.0f}" for number in numbers))
    seconds = sum(session.seconds for session in sessions)
    lines.append(f"{'together':<18} {seconds:>7.0f} {total.cpu:>7.0f}")
    lines += [f"failed: {failure}" for failure in total.failures]
    lines += [f"repeated, then passed: {test}" for test in total.repeated]
    lines.append(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return "\n".join(lines), total.passed > 0 and not total.failed


if __name__ == "__main__":
    place = Path(sys.argv[1])
    text, succeeded = summarize(place, sys.argv[2:] or [file.stem for file in place.glob("*.json")])
    print(text)
    sys.exit(not succeeded)
