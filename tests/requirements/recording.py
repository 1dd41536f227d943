"""A pytest plugin that checks claims of rules, and records which were proven in which revisions."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from . import EVERY_REVISION, REVISION_NAME
from .entries import LedgerError, ledger

PROPERTY = "requirement"
"""The name of the user properties that carry a claim from a worker to the writing process."""

SOME_CASES = ("once", "quick")
"""Values of `--cases` by which a function has one case, which need not be of its claims."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--record`."""
    parser.addoption("--record", metavar="FILE", type=Path, help="append proven requirements")


def pytest_configure(config: pytest.Config) -> None:
    """Write where reports arrive, and claim where tests run."""
    file = config.getoption("--record")
    if file is not None:
        config.pluginmanager.register(_Claims())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(_Recorder(file))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """Check the claims of a function, of which all cases are known here but by `SOME_CASES`."""
    collected = yield
    has_all = collector.config.getoption("--cases", default="all") not in SOME_CASES
    if isinstance(collected, list) and has_all:
        faults = faulty_claims([each for each in collected if isinstance(each, pytest.Item)])
        if faults:
            raise collector.CollectError("\n".join(faults))
    return collected


class _Claims:
    """Attaches claims to tests, from where they reach the reports."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for marker in item.iter_markers("requirement"):
                item.user_properties += [(PROPERTY, claim) for claim in claims_by(marker, item)]


class _Recorder:
    """Writes the claims of reports."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            claims = [value for name, value in report.user_properties if name == PROPERTY]
            self._lines += [f"{claim}\t{report.nodeid}\n" for claim in claims]

    def pytest_sessionfinish(self) -> None:
        if self._lines:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.writelines(self._lines)


def faulty_claims(cases: Iterable[pytest.Item]) -> list[str]:
    """Why claims of the cases of one test count in no revision of their rule."""
    counted: dict[str, bool] = {}
    for case in cases:
        for marker in _claiming_markers(case):
            counted |= {id: counted.get(id, False) for id in marker.args}
            for claim in claims_by(marker, case):
                id, _, revision = claim.partition("\t")
                counted[id] |= id in ledger() and revision in (
                    EVERY_REVISION,
                    *ledger()[id].revisions,
                )
    return [_fault(id) for id, counts in counted.items() if not counts]


def _claiming_markers(case: pytest.Item) -> Iterator[pytest.Mark]:
    """The markers that claim for a case, most of which have none."""
    parent = case.parent
    marks = case.own_markers + (list(parent.iter_markers("requirement")) if parent else [])
    return (mark for mark in marks if mark.name == "requirement")


def _fault(id: str) -> str:
    if id not in ledger():
        return f"requirement {id!r}: no such rule in the ledger"
    held = ", ".join(ledger()[id].revisions)
    return (
        f"requirement {id!r}: counts in none of the revisions that have the rule ({held}); name "
        "them by parametrization, or declare `revisions=` (docs/contributing.md)"
    )


def claims_by(marker: pytest.Mark, item: pytest.Item) -> Iterator[str]:
    """Claims of a test's marker: `id<TAB>revision` for each id and revision."""
    revisions = declared_revisions(marker)
    if revisions is None:
        revisions = tuple(dict.fromkeys(REVISION_NAME.findall(item.name)))
    for id in marker.args:
        for revision in revisions:
            yield f"{id}\t{revision}"


def declared_revisions(marker: pytest.Mark) -> tuple[str, ...] | None:
    """The revisions that a marker declares itself; `None` if the test's name has them."""
    declared = marker.kwargs.get("revisions")
    if declared is None:
        return None
    if declared == EVERY_REVISION:
        return (EVERY_REVISION,)
    known = {revision for entry in ledger().values() for revision in entry.revisions}
    if not isinstance(declared, tuple) or not declared or not known.issuperset(declared):
        raise LedgerError(
            f"requirement{marker.args}: expected `revisions` to be EVERY_REVISION or a tuple of "
            f"{sorted(known)}, got {declared!r}"
        )
    return declared
