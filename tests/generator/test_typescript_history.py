"""The published schemas: TypeScript and JSON of the same commit say the same, or differ as listed.

Reads every seventh state of the archive, those with differences and the last; all of them if
MCP_HISTORY is `all`.
"""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from mcpgen import schema
from mcpgen.errors import TypeScriptError
from mcpgen.schema.structure import difference
from mcpgen.schema.typescript import Fidelity, document, read

pytestmark = pytest.mark.costly

NAMES = [row.name for row in schema.revisions()]

_NEVER = "the TypeScript requires structuredContent, for which it has no value"
REFUSED = {
    "2025-05-06-405fc641-draft": _NEVER,
    "2025-05-08-78251646-draft": _NEVER,
    "2025-05-19-37c6dbef-draft": _NEVER,
    "2025-05-19-cf3c0583-draft": _NEVER,
    "2025-06-10-ace88165-draft": (
        "the TypeScript names ResourceReference, which it does not declare"
    ),
}
"""States whose TypeScript is no complete schema, and why."""

APART = {
    "2025-01-06-13bd3518-root": "the JSON has number, as the TypeScript has, for Resource.size",
    "2025-06-11-9d1374ae-draft": "the JSON was written before ResourceLink got a title",
    "2025-11-14-78660338-draft": "the JSON has $defs, and references into definitions",
    "2026-03-10-363c8be6-draft": "the JSON was written before TaskInputResponseRequest changed",
}
"""States whose JSON was not written from their TypeScript, and what shows it."""

KINDS = {
    "the TypeScript allows numbers that are not whole": (
        "any scalar may be a number that is not whole; the JSON is written with integers for "
        "numbers: ElicitResult.content"
    ),
    "the TypeScript allows null": (
        "the JSON is written without strict null checks, which loses null: ttl, keepAlive of tasks"
    ),
    "the TypeScript allows null and numbers that are not whole": "both: JSONValue",
    "the TypeScript says what the values of the map are": (
        "the JSON has a definition Record<string,string> that says nothing of the values"
    ),
}
"""Disagreements of the other states, and why each is there."""

ONLY_IN_JSON = "Record<string,string> is a definition of the JSON only"


@pytest.fixture(scope="session")
def history(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the published states, unpacked."""
    archive = spec / "history.tar.xz"
    if not archive.is_file():
        pytest.skip("there is no archive of published states")
    folder = tmp_path_factory.mktemp("history")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / "history"


def states(history: Path) -> list[str]:
    """The names of the states that are read."""
    names = sorted(path.stem for path in history.glob("*.ts"))
    if os.environ.get("MCP_HISTORY") == "all":
        return names
    return sorted(
        {*names[::7], *(REFUSED.keys() & {*names}), *(APART.keys() & {*names}), names[-1]}
    )


def test_every_state_has_the_published_structure_or_known_diffs(history: Path) -> None:
    apart: list[str] = []
    for name in states(history):
        theirs = schema.structure(json.loads((history / f"{name}.json").read_text("utf-8")))
        container = "$defs" if "$defs" in theirs else "definitions"
        try:
            ours = document(read(history / f"{name}.ts"), container, Fidelity.PUBLISHED)
        except TypeScriptError:
            assert name in REFUSED
            continue
        same = not [*difference(schema.structure(ours), theirs)]
        if not same and ONLY_IN_JSON not in disagreements_in(history, name).others:
            apart.append(name)
    assert set(apart) <= APART.keys()


def disagreements_in(history: Path, name: str) -> schema.Disagreements:
    """Disagreements between the two files of a state."""
    return schema.disagreements(history / f"{name}.ts", history / f"{name}.json")


def test_every_disagreement_of_a_state_is_of_a_listed_kind(history: Path) -> None:
    for name in states(history):
        if name in REFUSED or name in APART:
            continue
        disagreements = disagreements_in(history, name)
        assert {each.reason for each in disagreements.errata} <= KINDS.keys()
        assert {*disagreements.others} <= {ONLY_IN_JSON}


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
