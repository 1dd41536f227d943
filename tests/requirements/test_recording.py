"""Runs that the record names: those of tests that passed, with the revisions they ran in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit.pytest_process import run_pytest
from requirements import requirement
from requirements.entries import LedgerError
from requirements.recording import declared_revisions

pytestmark = [pytest.mark.costly, pytest.mark.lengthy]

TESTS = """
import pytest

@pytest.mark.requirement("ping.answered")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18"])
def test_parametrized(revision): assert revision == "2024-11-05"

@pytest.mark.requirement("ping.either-side", "ping.no-params",
    revisions=("2025-03-26", "interim-2026"))
def test_declared(): pass

@pytest.mark.requirement("ping.periodic", revisions="*")
def test_shared(): pass

@pytest.mark.requirement("ping.removed")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_of_one_revision(revision): pass

@pytest.mark.requirement("ping.not-excessive", revisions="*")
def test_skipped(): pytest.skip()

@pytest.mark.requirement("ping.failures-logged", revisions="*")
@pytest.mark.xfail
def test_failing(): assert False
"""

RECORD = """\
ping.answered\t2024-11-05\ttest_it.py::test_parametrized[2024-11-05]
ping.either-side\t2025-03-26\ttest_it.py::test_declared
ping.either-side\tinterim-2026\ttest_it.py::test_declared
ping.no-params\t2025-03-26\ttest_it.py::test_declared
ping.no-params\tinterim-2026\ttest_it.py::test_declared
ping.periodic\t*\ttest_it.py::test_shared
ping.removed\t2025-11-25\ttest_it.py::test_of_one_revision[2025-11-25]
ping.removed\t2026-07-28\ttest_it.py::test_of_one_revision[2026-07-28]
"""


UNCOUNTED = {
    "test_without_revision.py": '@pytest.mark.requirement("ping.answered")',
    "test_other_revision.py": """
@pytest.mark.requirement("ping.removed")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18"])""",
    "test_declared.py": '@pytest.mark.requirement("ping.removed", revisions=("2024-11-05",))',
    "test_second_id.py": '@pytest.mark.requirement("ping.removed", "ping.gone", revisions="*")',
}
"""Claims that count nowhere, by file."""


PLUGINS = ["requirements.recording"]


@pytest.mark.parametrize("workers", [(), ("--numprocesses=2",)], ids=["one process", "workers"])
def test_a_record_names_what_passed_and_where(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    record = tmp_path / "folder" / "record.tsv"
    output = run_pytest(tmp_path, "--record", f"{record}", *workers, plugins=PLUGINS).stdout
    assert "1 failed" in output
    assert sorted(record.read_text("utf-8").splitlines()) == RECORD.splitlines()


def test_a_claim_that_counts_nowhere_is_an_error_of_collection(tmp_path: Path) -> None:
    for name, marker in UNCOUNTED.items():
        text = f"import pytest\n\n{marker}\ndef test_it(revision='x'): pass\n"
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    output = run_pytest(tmp_path, "-q", "--collect-only", plugins=PLUGINS).stdout
    assert sorted(UNCOUNTED) == sorted(re.findall(r"^ERROR (\w+\.py)", output, re.MULTILINE))
    assert "'ping.removed': counts in none of the revisions that have the rule" in output
    assert "'ping.gone': no such rule in the ledger" in output


@pytest.mark.parametrize("declared", [(), ("2025-11-26",), 3])
def test_a_marker_without_any_revision_of_the_ledger_is_refused(declared: object) -> None:
    with pytest.raises(LedgerError, match="expected `revisions` to be EVERY_REVISION or a tuple"):
        declared_revisions(requirement.with_args("ping.answered", revisions=declared).mark)
