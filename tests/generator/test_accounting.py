"""Each keyword and member of a schema is in the types, in a note with its pointer, or an error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.accounting import Walk, atoms, module_of
from generator.schemas import COUNT, TEXT, const, obj, ref
from mcpgen import build_request, docs, models, pipeline, schema, schema_facts
from mcpgen.schema.structure import escape

NAMES = [row.name for row in schema.revisions()]


def published(name: str) -> dict[str, Any]:
    """The file of a revision."""
    document: dict[str, Any] = json.loads((schema.entry(name).folder / "schema.json").read_text())
    return document


def account(document: dict[str, Any], folder: Path) -> Walk:
    """Generate from a document and walk through both."""
    path = folder / "draft.json"
    path.write_text(json.dumps(document))
    source = build_request.file_source(path)
    loaded = pipeline.load(source, errata=False)
    fitted = schema_facts.facts_for(loaded, source.base, None)
    later = pipeline.newer_than(source.base, loaded)
    built = pipeline.revision_spec(loaded, fitted.facts, docs.load(), later)
    normal = built.models.normal
    job = models.job(normal, built.models.tests, built.models.docs, "Models.")
    module = module_of(models.render(normal, job), "accounted")
    container = "$defs" if "$defs" in document else "definitions"
    shown = {normal.schema.pointer(f"/$defs/{name}"): name for name in loaded.definitions}
    names = {f"#{pointer}": name for pointer, name in shown.items()}
    noted = {normal.schema.pointer(note.pointer) for note in normal.notes if note.is_lossy}
    noted |= {  # what has a type, though a map holds the values
        normal.schema.pointer(each.pointer)
        for each in normal.definitions.values()
        if each.pointer.endswith("/_meta")
    }
    module.DOCUMENT = {f"#/{container}/{key}": node for key, node in document[container].items()}
    walk = Walk(module, names, frozenset(noted))
    for key, node in document[container].items():
        pointer = f"/{container}/{escape(key)}"
        walk.walk(node, pointer, list(atoms(getattr(module, shown[pointer]))))
    return walk


@pytest.fixture(autouse=True)
def without_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("mcp_protocol.r_accounted")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_revision_is_lost_without_a_note(name: str, tmp_path: Path) -> None:
    walk = account(published(name), tmp_path)
    assert walk.lost == []
    assert walk.count > 800
