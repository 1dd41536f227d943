"""The check: what the specification binds us to is tested, and what tests claim exists."""

from __future__ import annotations

import pytest

from requirements.coverage import Row, rows
from requirements.entries import (
    FINISHED_AREAS,
    Claim,
    LedgerError,
    claims,
    claims_of,
    exceptions,
    ledger,
)


def test_every_id_that_a_test_claims_is_in_the_ledger() -> None:
    known = ledger()
    assert [
        str(claim) for id, found in claims().items() if id not in known for claim in found
    ] == []


@pytest.mark.parametrize("area", FINISHED_AREAS)
def test_every_binding_entry_of_a_finished_area_has_a_test_or_an_exception(area: str) -> None:
    settled = claims().keys() | exceptions().keys()
    binding = [entry.id for entry in ledger().values() if entry.area == area and entry.binding]
    assert [id for id in binding if id not in settled] == []


def test_every_finished_area_is_in_the_ledger() -> None:
    assert set(FINISHED_AREAS) <= {entry.area for entry in ledger().values()}


def test_every_exception_is_a_binding_entry_of_a_finished_area() -> None:
    known = ledger()
    excepted = {id: known.get(id) for id in exceptions()}
    assert [
        id
        for id, entry in excepted.items()
        if entry is None or not entry.binding or entry.area not in FINISHED_AREAS
    ] == []


def test_no_exception_has_a_test() -> None:
    assert sorted(claims().keys() & exceptions().keys()) == []


def test_the_exceptions_are_few() -> None:
    binding = [e for e in ledger().values() if e.binding and e.area in FINISHED_AREAS]
    assert len(exceptions()) <= len(binding) // 10


@pytest.mark.parametrize(
    "decorator",
    [
        'requirement("a.b", "a.c")',
        'pytest.mark.requirement("a.b", "a.c")',
        'pytest.param(1, marks=requirement("a.b", "a.c"))',
    ],
)
def test_a_claim_is_found_however_the_marker_is_written(decorator: str) -> None:
    source = f"@{decorator}\ndef test_it() -> None: ...\n"
    assert list(claims_of(source, "t.py")) == [Claim("a.b", "t.py", 1), Claim("a.c", "t.py", 1)]


@pytest.mark.parametrize("argument", ["ID", "f'{area}.x'", "*IDS", "1"])
def test_a_claim_that_cannot_be_read_from_the_source_is_refused(argument: str) -> None:
    with pytest.raises(LedgerError, match=r"^t\.py:1: expected a string literal"):
        list(claims_of(f"requirement({argument})", "t.py"))


def test_coverage_counts_each_area_in_each_revision() -> None:
    known = {e.id: e for e in ledger().values() if e.id.startswith("ping.")}
    table = rows(known, {"ping.respond": []}, {})
    assert {row.area for row in table} == {"ping"}
    assert all(isinstance(row, Row) and 0 <= row.tested <= row.total for row in table)
    assert any(row.tested for row in table) == ("ping.respond" in known)
