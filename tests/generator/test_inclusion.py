"""Whether every value of one schema is a value of another: examples, and made-up pairs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for
from syrupy.assertion import SnapshotAssertion

from generator.schema_pairs import Schema, pairs, values
from generator.schemas import COUNT, TEXT, obj
from generator.tables import table
from kit.limits import SetLimit
from mcpgen.contract.candidates import Candidates
from mcpgen.contract.inclusion import Inclusion, terms_included
from mcpgen.contract.schema_document import Document

HARD = {**TEXT, "pattern": "^[ab]{40}$"}
"""Texts of which no example is found."""
FORMATS = jsonschema.FormatChecker()


def judge(schema: Schema) -> Any:
    """The judge of the values of a schema."""
    draft = jsonschema.Draft202012Validator
    return validator_for(schema, draft)(schema, format_checker=FORMATS)


def inclusion_of(old: Schema, new: Schema) -> Inclusion:
    """Whether every value of a schema is a value of another."""
    return terms_included(Document(old).root, Document(new).root)


def within(levels: int, inner: Schema) -> Schema:
    """The schema of an object that needs an object, and so on, down to some schema."""
    return obj("a", a=within(levels - 1, inner)) if levels else inner


TABLE = table("inclusion")
INCLUDED: dict[str, tuple[Schema, Schema]] = TABLE["included"]
EXCLUDED: dict[str, tuple[Schema, Schema]] = TABLE["excluded"]
UNDECIDED: dict[str, tuple[Schema, Schema, str]] = {
    **TABLE["undecided"],
    "too deep": (within(300, TEXT), within(300, COUNT), "a schema that can't be checked"),
}
"""Pairs of schemas by the case that they are of; the last with the reason."""
REASONS: dict[str, list[tuple[Schema, Schema]]] = TABLE["without a value"]
"""Pairs by why the second can't be shown to allow what the first does."""


@pytest.mark.parametrize(("old", "new"), INCLUDED.values(), ids=INCLUDED)
def test_every_value_is_a_value_of_the_other(old: Schema, new: Schema) -> None:
    assert inclusion_of(old, new).verdict == "included"


@pytest.mark.parametrize(("old", "new"), EXCLUDED.values(), ids=EXCLUDED)
def test_a_value_shows_that_the_other_is_narrower(
    old: Schema, new: Schema, snapshot: SnapshotAssertion
) -> None:
    inclusion = inclusion_of(old, new)
    assert inclusion.verdict == "excluded"
    (witness,) = inclusion.witness
    assert judge(old).is_valid(witness)
    assert not judge(new).is_valid(witness)
    text = json.dumps(witness)
    assert (text[:200], len(text), inclusion.old, inclusion.new) == snapshot


@pytest.mark.parametrize(("old", "new", "reason"), UNDECIDED.values(), ids=UNDECIDED)
def test_neither_proof_nor_value_is_undecided(old: Schema, new: Schema, reason: str) -> None:
    inclusion = inclusion_of(old, new)
    assert (inclusion.verdict, inclusion.reason) == ("undecided", reason)


@pytest.mark.parametrize(
    ("reason", "old", "new"), [(reason, *pair) for reason in REASONS for pair in REASONS[reason]]
)
def test_without_a_value_the_reason_and_the_place_are_told(
    reason: str, old: Schema, new: Schema
) -> None:
    place = "/properties/v"
    inclusion = inclusion_of(obj("hard v", hard=HARD, v=old), obj("v", v=new))
    assert inclusion == Inclusion("undecided", (), place, place, reason)


@pytest.mark.parametrize(("old", "new", "old_place", "new_place"), TABLE["places"])
def test_the_places_that_decide_are_named(
    old: Schema, new: Schema, old_place: str, new_place: str
) -> None:
    inclusion = inclusion_of(old, new)
    assert (inclusion.old, inclusion.new) == (old_place, new_place)


@pytest.mark.parametrize(("most", "reason"), [(3, ""), (2, "too many steps")])
def test_a_question_that_takes_too_many_steps_is_undecided(
    most: int, reason: str, set_limit: SetLimit
) -> None:
    set_limit("mcpgen.contract.inclusion.MOST_STEPS", most)
    assert inclusion_of(obj("", a=COUNT, b=TEXT), obj("", a=COUNT, b=TEXT)).reason == reason


CANDIDATES: dict[str, tuple[Schema, Schema]] = table("candidates")
"""Pairs of schemas by the bounds and the members that they have."""


@pytest.mark.parametrize("named_only", [False, True])
@pytest.mark.parametrize(("old", "new"), CANDIDATES.values(), ids=CANDIDATES)
def test_the_values_that_are_tried_are_near_the_bounds(
    old: Schema, new: Schema, named_only: bool, snapshot: SnapshotAssertion
) -> None:
    candidates = Candidates(named_only=named_only)
    ours, theirs = Document(old).root, Document(new).root
    for kind, shape in candidates.shapes(ours):
        others = [other for other_kind, other in candidates.shapes(theirs) if other_kind == kind]
        texts = map(json.dumps, candidates.near(shape, others, ours, theirs))
        assert [text if len(text) < 100 else len(text) for text in texts] == snapshot


def test_no_verdict_is_wrong() -> None:
    verdicts: Counter[str] = Counter()

    @settings(max_examples=80, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(pairs(), st.data())
    def check(pair: tuple[Schema, Schema], data: st.DataObject) -> None:
        old, new = pair
        inclusion = inclusion_of(old, new)
        verdicts[inclusion.verdict] += 1
        old_judge, new_judge = judge(old), judge(new)
        if inclusion.verdict == "excluded":
            (witness,) = inclusion.witness
            assert old_judge.is_valid(witness)
            assert not new_judge.is_valid(witness)
        if inclusion.verdict == "included":
            for value in data.draw(st.lists(values(old) | values(new), min_size=10, max_size=10)):
                assert not old_judge.is_valid(value) or new_judge.is_valid(value)

    check()
    assert min(verdicts["included"], verdicts["excluded"]) > verdicts.total() / 10
    assert verdicts["undecided"] < verdicts.total() / 10
