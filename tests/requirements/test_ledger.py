"""Checks of the source: each binding rule is claimed by a test, and each claimed id exists."""

from __future__ import annotations

import pytest

from requirements.coverage import Proof, gaps, idle_claims, proofs, table
from requirements.entries import (
    Claim,
    LedgerError,
    claims,
    claims_of,
    exceptions,
    ledger,
)

pytestmark = pytest.mark.lengthy


def test_every_id_that_a_test_claims_is_in_the_ledger() -> None:
    known = ledger()
    assert [
        str(claim) for id, group in claims().items() if id not in known for claim in group
    ] == []


def test_binding_entries_have_tests_or_reasons() -> None:
    binding = {entry.id for entry in ledger().values() if entry.binding}
    assert binding - claims().keys() - exceptions().keys() == set()


def test_an_exception_is_a_binding_entry_in_some_of_its_revisions() -> None:
    binding = {id: each for id, each in ledger().items() if each.binding}
    whole = {id for id, exemption in exceptions().items() if exemption.revisions is None}
    assert whole.isdisjoint(claims())
    others = {id: {*(each.revisions or ())} for id, each in exceptions().items()}
    assert [id for id, revisions in others.items() if revisions - {*binding[id].revisions}] == []


def test_a_claim_is_found_however_the_marker_is_written() -> None:
    source = "@pytest.param(1, marks=requirement('a.b', 'a.c'))\ndef test_it() -> None: ...\n"
    assert list(claims_of(source, "t.py")) == [
        Claim(id, "t.py", 1, "test_it") for id in ("a.b", "a.c")
    ]


@pytest.mark.parametrize("argument", ["ID", "*IDS"])
def test_a_claim_that_cannot_be_read_from_the_source_is_refused(argument: str) -> None:
    with pytest.raises(LedgerError, match=r"^t\.py:1: expected a string literal"):
        list(claims_of(f"requirement({argument})", "t.py"))


def test_coverage_counts_each_area_in_each_revision() -> None:
    known = {e.id: e for e in ledger().values() if e.area == "ping"}
    binding = next(e for e in known.values() if e.binding)
    tested = {(binding.id, binding.revisions[0])}
    waived = {(binding.id, binding.revisions[1])}
    heads, row = table(known, tested, waived).splitlines()
    cells = [cell for cell in row.split() if not cell.startswith("(")]
    assert (cells[0], heads.split()[1:3]) == ("ping", sorted(binding.revisions)[:2])
    assert [cell.partition("/")[0] for cell in cells[1:3]] == ["1", "0"]
    assert ["-1" in cell for cell in cells[1:3]] == [False, True]


def test_a_rule_is_settled_in_the_revisions_of_the_record_alone() -> None:
    known = {e.id: e for e in ledger().values() if e.id == "stdio.newline-delimited"}
    (entry,) = known.values()
    first, *others = entry.revisions

    def open_after(revision: str) -> list[str]:
        settled = {proof.pair for proof in proofs([f"{entry.id}\t{revision}\tt.py::t"], known)}
        return [revision for _, revision in gaps(known, settled)]

    assert open_after(first) == others
    assert open_after("*") == []
    assert open_after("2000-01-01") == [first, *others]


@pytest.mark.parametrize("line", ["stdio.newline-delimited\t*", "no.such\t*\ttest"])
def test_a_record_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(LedgerError, match="expected id, revision and test"):
        proofs([line], ledger())


@pytest.mark.parametrize(
    ("line", "idle"),
    [
        ("ping.answered\t2025-06-18\ttests/a/test_it.py::test_it[2025-06-18-x]", False),
        ("ping.answered\t*\ttests/a/test_it.py::Test::test_it", False),
        ("ping.answered\t2000-01-01\ttests/a/test_it.py::test_it", True),
        ("ping.answered\t*\ttests/a/test_it.py::test_other", True),
        ("stdio.utf8\t*\ttests/a/test_it.py::test_it", True),
    ],
)
def test_a_claim_without_a_passed_test_counts_nowhere(line: str, idle: bool) -> None:
    claim = Claim("ping.answered", "a/test_it.py", 1, "test_it")
    assert idle_claims([claim], proofs([line], ledger())) == [claim] * idle


def test_a_claim_of_a_table_counts_by_any_test_of_its_file() -> None:
    claim = Claim("ping.answered", "a/test_it.py", 1)
    passed = Proof(("ping.answered", "2025-06-18"), "a/test_it.py", "test_any")
    assert idle_claims([claim], {passed}) == []
