"""Public names of packages: where they are, and old names that are still offered."""

from __future__ import annotations

import pytest

from mcpgen.model import exports


@pytest.mark.parametrize(
    ("module", "folders", "home"),
    [
        (".server.server_session", ("r1",), ".r1.server"),
        (".server.server_session", ("r1", "r2"), ".server.server_session"),
        (".errors", ("r1",), ".errors"),
    ],
)
def test_the_session_of_one_revision_is_in_its_folder(
    module: str, folders: tuple[str, ...], home: str
) -> None:
    assert exports.home_of(module, folders) == home


@pytest.mark.parametrize(
    ("renames", "current", "expected"),
    [
        ({"A": "B"}, {"B"}, {"A": "B"}),
        ({"A": "B"}, {"A", "B"}, {}),
        ({"A": "B"}, {"C"}, {}),
        ({"A": "B", "B": "C"}, {"C"}, {"A": "C", "B": "C"}),
        ({"A": "B", "B": "C"}, {"B", "C"}, {"A": "B"}),
        ({"A": "B", "B": "A"}, {"C"}, {}),
        ({"Z": "C", "A": "C"}, {"C"}, {"A": "C", "Z": "C"}),
    ],
)
def test_old_names_of_types_lead_to_the_present_ones(
    renames: dict[str, str], current: set[str], expected: dict[str, str]
) -> None:
    rows = exports.renamed_types(renames, current)
    assert [(row.old, row.new) for row in rows] == [*expected.items()]
