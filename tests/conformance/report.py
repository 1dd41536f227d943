"""The results of a run of the conformance suite, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .suite import Outcome

_TOLD = ("WARNING", "FAILURE", "SKIPPED", "INFO")


def table(outcomes: Sequence[Outcome]) -> str:
    """One line per side and scenario, one column per revision, then the sums."""
    revisions = sorted({outcome.revision for outcome in outcomes})
    scores: dict[tuple[str, str], dict[str, str]] = {}
    for outcome in outcomes:
        row = scores.setdefault((outcome.side, outcome.scenario), {})
        row[outcome.revision] = outcome.score + ("" if outcome.passed else " !")
    width = max(len(scenario) for _, scenario in scores)
    lines = [f"{'side':6}  {'scenario':{width}}  " + "  ".join(f"{r:>10}" for r in revisions)]
    for (side, scenario), row in scores.items():
        cells = "  ".join(f"{row.get(revision, ''):>10}" for revision in revisions)
        lines.append(f"{side:6}  {scenario:{width}}  {cells}")
    lines.append("")
    for sums in figures(outcomes):
        text = "{side} {revision}: {passed} of {scenarios} scenarios, {good} of {checks} checks"
        lines.append(text.format(**sums))
    return "\n".join(lines)


def notes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Every check that is no success, and every scenario without any."""
    for outcome in outcomes:
        where = f"{outcome.side} {outcome.scenario} {outcome.revision}"
        if not outcome.having("SUCCESS", "FAILURE", "WARNING"):
            yield f"FAILURE {where}: nothing was checked"
        for check in outcome.having(*_TOLD):
            if check.status != "INFO" or check.text:  # the rest is a log of what was sent
                yield f"{check.status} {where}: {check.name}: {check.text}"


def figures(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The sums of each side and revision: scenarios and checks, and how many of them passed."""
    pairs = {(outcome.side, outcome.revision) for outcome in outcomes}
    rows: list[dict[str, Any]] = []
    for side, revision in pairs:
        these = [one for one in outcomes if (one.side, one.revision) == (side, revision)]
        good = sum(len(outcome.having("SUCCESS")) for outcome in these)
        bad = sum(len(outcome.having("FAILURE", "WARNING")) for outcome in these)
        passed = sum(outcome.passed for outcome in these)
        rows.append(
            {
                "side": side,
                "revision": revision,
                "passed": passed,
                "scenarios": len(these),
                "good": good,
                "checks": good + bad,
            }
        )
    return sorted(rows, key=lambda row: (row["side"] != "server", row["revision"]))
