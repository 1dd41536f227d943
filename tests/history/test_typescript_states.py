"""The published schemas: TypeScript and JSON of the same commit say the same, or differ as listed.

Reads every seventh state of the archive, those with differences and the last; all of them if
MCP_HISTORY is `all`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from history.test_published_states import REFUSED as NOT_BUILT
from mcpgen import schema
from mcpgen.errors import TypeScriptError
from mcpgen.schema.structure import difference
from mcpgen.schema.typescript import Fidelity, document, read

pytestmark = pytest.mark.costly

NAMES = [row.name for row in schema.revisions()]

REFUSED = frozenset(name.removesuffix(".ts") for name in NOT_BUILT if name.endswith(".ts"))
"""States whose TypeScript is no complete schema."""

APART = {
    "2025-01-06-13bd3518-root": "the JSON has number, as the TypeScript has, for Resource.size",
    "2025-06-11-9d1374ae-draft": "the JSON was written before ResourceLink got a title",
    "2025-11-14-78660338-draft": "the JSON has $defs, and references into definitions",
    "2026-03-10-363c8be6-draft": "the JSON was written before TaskInputResponseRequest changed",
}
"""States whose JSON was not written from their TypeScript, and what shows it."""

KINDS = {
    "the TypeScript allows numbers that are not whole",
    "the TypeScript allows null",
    "the TypeScript allows null and numbers that are not whole",
    "the TypeScript says what the values of the map are",
}
"""Disagreements of the other states: what the JSON loses as it is written."""

ONLY_IN_JSON = "Record<string,string> is a definition of the JSON only"


def test_the_files_of_a_state_say_the_same_or_differ_as_is_listed(history: Path) -> None:
    names = sorted(path.stem for path in history.glob("*.ts"))
    listed = {*REFUSED, *APART} & {*names}
    whole = os.environ.get("MCP_HISTORY") == "all"
    for name in names if whole else sorted({*names[::7], *listed, names[-1]}):
        typescript, published = history / f"{name}.ts", history / f"{name}.json"
        theirs = schema.structure(json.loads(published.read_text("utf-8")))
        container = "$defs" if "$defs" in theirs else "definitions"
        try:
            ours = document(read(typescript), container, Fidelity.PUBLISHED)
        except TypeScriptError:
            assert name in REFUSED
            continue
        if name in APART:
            continue
        disagreements = schema.disagreements(typescript, published)
        assert {each.reason for each in disagreements.errata} <= KINDS, name
        assert {*disagreements.others} <= {ONLY_IN_JSON}, name
        same = not [*difference(schema.structure(ours), theirs)]
        assert same or ONLY_IN_JSON in disagreements.others, name
    assert len(listed) == len(REFUSED) + len(APART)


def official(spec: Path, history: Path, revision: str) -> Path:
    """The TypeScript of a revision: beside its JSON, or of the state with the same structure."""
    beside = spec / "schema" / revision / "schema.ts"
    if beside.is_file():
        return beside
    row = schema.entry(revision)
    for path in sorted(history.glob("*.json")):
        if schema.read_file(path).digest == row.digest:
            return path.with_suffix(".ts")
    pytest.skip(f"there is no TypeScript of {revision}")


@pytest.mark.parametrize("name", NAMES)
def test_a_revision_in_typescript_is_the_revision(spec: Path, history: Path, name: str) -> None:
    path = official(spec, history, name)
    row = schema.entry(name)
    loaded = schema.load_file(path, revision=name)
    ours = schema.load(name)
    assert loaded.digest == ours.digest == schema.read_file(path).digest
    assert json.dumps(loaded.definitions) == json.dumps(ours.definitions)
    file = schema.read_file(path)
    assert (file.nearest.entry, file.errata) == (row, ())
    assert loaded.constants["JSONRPC_VERSION"] == "2.0"


@pytest.mark.parametrize("name", NAMES)
def test_the_errata_of_a_revision_are_those_that_are_listed(
    spec: Path, history: Path, name: str
) -> None:
    typescript = official(spec, history, name)
    listed = schema.read_errata(schema.entry(name).folder / "errata.toml")
    disagreements = schema.disagreements(typescript, spec / "schema" / name / "schema.json")
    assert [(each.pointer, each.old, each.new) for each in disagreements.errata] == [
        (each.pointer, each.old, each.new) for each in listed
    ]
    assert disagreements.others == ()
