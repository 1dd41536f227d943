"""A pytest plugin that records which rules were proven in which revisions.

`pytest --record FILE` appends one line per rule, revision and test that ran and passed:
`id<TAB>revision<TAB>test`. A skipped or failed test leaves no line. With pytest-xdist, workers send
their reports to one process, which writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import EVERY_REVISION, REVISION_NAME
from .entries import LedgerError, ledger

PROPERTY = "requirement"
"""The name of the user properties that carry a claim from a worker to the writing process."""


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


def claims_by(marker: pytest.Mark, item: pytest.Item) -> Iterator[str]:
    """What a marker of a test claims: `id<TAB>revision` for each id and revision."""
    revisions = declared_revisions(marker)
    if revisions is None:
        revisions = tuple(dict.fromkeys(REVISION_NAME.findall(item.name)))
    for id in marker.args:
        for revision in revisions:
            yield f"{id}\t{revision}"


def declared_revisions(marker: pytest.Mark) -> tuple[str, ...] | None:
    """The revisions that a marker declares itself; `None` if the test's name has them.

    Raises:
        LedgerError: it declares something other than revisions of the ledger.
    """
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
