"""The results of a run of the conformance suite, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    return "\n".join([*lines, "", *_sums(outcomes, revisions)])


def notes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Every check that is no success, and every scenario without any."""
    for outcome in outcomes:
        where = f"{outcome.side} {outcome.scenario} {outcome.revision}"
        if not outcome.having("SUCCESS", "FAILURE", "WARNING"):
            yield f"FAILURE {where}: nothing was checked"
        for check in outcome.having(*_TOLD):
            if check.status != "INFO" or check.text:  # the rest is a log of what was sent
                yield f"{check.status} {where}: {check.name}: {check.text}"


def _sums(outcomes: Sequence[Outcome], revisions: Sequence[str]) -> Iterator[str]:
    for side in dict.fromkeys(outcome.side for outcome in outcomes):
        for revision in revisions:
            these = [o for o in outcomes if (o.side, o.revision) == (side, revision)]
            if not these:
                continue
            good = sum(len(outcome.having("SUCCESS")) for outcome in these)
            bad = sum(len(outcome.having("FAILURE", "WARNING")) for outcome in these)
            passed = sum(outcome.passed for outcome in these)
            yield (
                f"{side} {revision}: {passed} of {len(these)} scenarios, "
                f"{good} of {good + bad} checks"
            )
