"""Revisions that do not exist yet: changes of the known ones, as drafts make them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generator.awkward_names import NAMES as NAMES_IN_USE
from generator.futures import AWKWARD, CHANGES, NAMES, Change, change_revision
from generator.test_core_names import spec_of

pytestmark = pytest.mark.slow

_changes = st.lists(
    st.tuples(st.sampled_from(CHANGES), st.sampled_from((*AWKWARD, *NAMES_IN_USE))),
    min_size=1,
    max_size=6,
    unique_by=lambda pair: pair[0],
)


@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=5,
    derandomize=True,
    phases=[Phase.generate],  # shrinking would build some hundred more
    suppress_health_check=list(HealthCheck),
)
@given(changes=_changes)
def test_changes_of_a_draft_are_in_its_package(
    name: str, changes: list[tuple[Change, str]]
) -> None:
    draft = change_revision(name, changes)
    with tempfile.TemporaryDirectory() as folder:
        spec, _ = spec_of(Path(folder), draft.definitions)
    rows = {row.name: row.result for row in spec.tables.all}
    definitions = spec.models.normal.definitions
    assert draft.methods.keys() <= rows.keys()
    stated = {method: result for method, result in draft.methods.items() if result is not None}
    assert {method: rows[method] for method in stated} == stated
    assert draft.gone.isdisjoint(rows)
    for definition, members in draft.members.items():
        assert members <= definitions[definition].properties.keys()
