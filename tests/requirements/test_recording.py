"""Which runs of which tests the record names: those that passed, in the revisions they ran in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from requirements import EVERY_REVISION, requirement
from requirements.entries import LedgerError
from requirements.recording import declared_revisions

TESTS = """
import pytest

@pytest.mark.requirement("ping.a")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18"])
def test_parametrized(revision): assert revision == "2024-11-05"

@pytest.mark.requirement("ping.b", "ping.c", revisions=("2025-03-26", "interim-2026"))
def test_declared(): pass

@pytest.mark.requirement("ping.d", revisions="*")
def test_shared(): pass

@pytest.mark.requirement("ping.e")
def test_without_revision(): pass

@pytest.mark.requirement("ping.f", revisions="*")
def test_skipped(): pytest.skip()

@pytest.mark.requirement("ping.g", revisions="*")
@pytest.mark.xfail
def test_failing(): assert False
"""

RECORD = """\
ping.a\t2024-11-05\ttest_it.py::test_parametrized[2024-11-05]
ping.b\t2025-03-26\ttest_it.py::test_declared
ping.b\tinterim-2026\ttest_it.py::test_declared
ping.c\t2025-03-26\ttest_it.py::test_declared
ping.c\tinterim-2026\ttest_it.py::test_declared
ping.d\t*\ttest_it.py::test_shared
"""


@pytest.mark.parametrize("workers", [(), ("--numprocesses=2",)], ids=["one process", "workers"])
def test_a_record_names_what_passed_and_where(
    root: Path, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {root / 'tests'}\n", "utf-8")
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['requirements.recording']\n", "utf-8")
    record = tmp_path / "folder" / "record.tsv"
    run = ("-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--record", f"{record}", *workers)
    done = subprocess.run([sys.executable, *run], cwd=tmp_path, capture_output=True, check=False)
    assert b"1 failed" in done.stdout, done
    assert sorted(record.read_text("utf-8").splitlines()) == RECORD.splitlines()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [(EVERY_REVISION, ("*",)), (("2025-11-25",), ("2025-11-25",)), (None, None)],
)
def test_a_marker_declares_revisions(declared: object, expected: tuple[str, ...] | None) -> None:
    assert declared_revisions(requirement.with_args("ping.a", revisions=declared).mark) == expected


@pytest.mark.parametrize("declared", ["2025-11-25", (), ("2025-11-26",), 3])
def test_a_marker_without_any_revision_of_the_ledger_is_refused(declared: object) -> None:
    with pytest.raises(LedgerError, match="expected `revisions` to be EVERY_REVISION or a tuple"):
        declared_revisions(requirement.with_args("ping.a", revisions=declared).mark)
