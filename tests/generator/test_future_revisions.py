"""Revisions that do not exist yet: changes of the known ones, as drafts make them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generator.awkward_names import NAMES as NAMES_IN_USE
from generator.futures import AWKWARD, CHANGES, NAMES, Change, change_revision, save_draft
from mcpgen.model import schema_facts, schema_sources
from mcpgen.schema import docs
from mcpgen.spec import stages
from mcpgen.spec.packages import RevisionSpec

pytestmark = pytest.mark.slow

_changes = st.lists(
    st.tuples(st.sampled_from(CHANGES), st.sampled_from((*AWKWARD, *NAMES_IN_USE))),
    min_size=1,
    max_size=6,
    unique_by=lambda pair: pair[0],
)


def spec_of(path: Path) -> RevisionSpec:
    """The revision that the package of a schema file is made from."""
    source = schema_sources.of_file(path)
    loaded = schema_sources.load(source, errata=True)
    fit = schema_facts.facts_for(loaded, source.base, None)
    later = schema_sources.newer_than(source.base, loaded)
    return stages.revision_spec(loaded, fit.facts, docs.load(), later)


def results_in(spec: RevisionSpec) -> Mapping[str, str | None]:
    return {row.name: row.result for row in spec.tables.all}


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
        spec = spec_of(save_draft(draft, folder))
    rows = results_in(spec)
    definitions = spec.models.normal.definitions
    assert draft.methods.keys() <= rows.keys()
    stated = {method: result for method, result in draft.methods.items() if result is not None}
    assert {method: rows[method] for method in stated} == stated
    assert draft.gone.isdisjoint(rows)
    for definition, members in draft.members.items():
        assert members <= definitions[definition].properties.keys()
