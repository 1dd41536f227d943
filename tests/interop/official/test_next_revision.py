"""The next step of the protocol, rendered for the official Python SDK: what is left to write."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import mcp_types.methods
import pytest
from pydantic import TypeAdapter

from decoding.instances import Instances
from generator.futures import PLANS
from interop.official.next_revision import (
    NEXT,
    PAGE,
    PLACES,
    PUBLISHED,
    Rendered,
    rehearsals,
    render,
    section,
)
from mcpgen import schema
from mcpgen.paths import own_schemas

pytestmark = pytest.mark.interop

VALUES = 20
"""Random values of each definition of a draft."""

REHEARSALS = rehearsals()
REHEARSAL = pytest.mark.parametrize("name", [*PLANS, PUBLISHED])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rehearsals")


@cache
def rendered(name: str, folder: Path) -> Rendered:
    """The modules of a rehearsal, written once."""
    if name not in REHEARSALS:
        pytest.skip("MCP_SPEC names no folder with published states")
    own = folder / name.replace(" ", "_")
    own.mkdir()
    return render(REHEARSALS[name](own), own)


@REHEARSAL
def test_the_page_lists_what_is_left_to_write(name: str, folder: Path) -> None:
    assert section(name, rendered(name, folder)) in PAGE.read_text("utf-8")


@REHEARSAL
def test_rendered_types_accept_valid_values_of_a_draft(name: str, folder: Path) -> None:
    modules = rendered(name, folder)
    with own_schemas(folder / name.replace(" ", "_") / "own"):
        definitions = schema.load(NEXT).definitions
    wire: dict[str, Any] = {key: modules.wire.get(key) for key in definitions}
    refused: list[tuple[str, Any]] = []
    for key, kind in wire.items():
        instances, adapter = Instances(definitions, Random(key)), TypeAdapter(kind)
        for _ in range(VALUES if kind is not None else 0):
            value = instances.valid(key)
            try:
                adapter.validate_python(value, by_name=False)
            except ValueError:
                refused.append((key, value))
    assert not refused, f"{len(refused)}, the first: {refused[:3]}"


@REHEARSAL
def test_each_row_names_a_type_of_its_revision(name: str, folder: Path) -> None:
    modules = rendered(name, folder)
    rows = {**modules.rows("CLIENT_REQUESTS"), **modules.rows("SERVER_NOTIFICATIONS")}
    results = modules.rows("SERVER_RESULTS")
    for table in (rows, results):
        own = {kind for (_, revision), kind in table.items() if revision == NEXT}
        assert own
        for kind in own:
            module, _, type_name = kind.partition(".")
            assert module == f"v{NEXT[:4]}"
            assert type_name in modules.wire


@REHEARSAL
def test_rows_of_known_revisions_stay_as_they_are(name: str, folder: Path) -> None:
    for sender, kind in PLACES:
        table = f"{sender}_{kind}".upper()
        official = getattr(mcp_types.methods, table)
        known = {
            key: row for key, row in rendered(name, folder).rows(table).items() if key[1] != NEXT
        }
        assert known == {key: _as_written(row) for key, row in official.items()}


def _as_written(kind: type) -> str:
    """A type on the wire, as the rendered tables name it."""
    year = kind.__module__.rpartition("_v")[2][:4]
    return f"v{year}.{kind.__name__}"
