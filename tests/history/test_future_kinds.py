"""Revisions that do not exist yet: triples of changes and keywords; 20 if MCP_HISTORY is `all`."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from generator.awkward_names import NAMES as NAMES_IN_USE
from generator.futures import (
    AWKWARD,
    CHANGES,
    KINDS,
    NAMES,
    REFERRED,
    REFERRING,
    Change,
    Draft,
    change_revision,
    change_schema,
    save_draft,
)
from history.exchanges import PROGRAM, values_of
from history.test_published_states import archive, newest_draft, run
from mcpgen.errors import SchemaError
from mcpgen.model import schema_sources
from mcpgen.package import build_request, output, pipeline

pytestmark = [pytest.mark.history, pytest.mark.timeout(600)]

WHOLE = os.environ.get("MCP_HISTORY") == "all"
TRIPLES = range(20 if WHOLE else 1)
DRAFT = "draft"
BASES = (*NAMES, *([DRAFT] if archive() else []))


REFUSED = """
import pytest
from pkg import Server

with pytest.raises(TypeError, match="version"):
    Server("sums", version="1.0")
"""
"""A test of a draft whose servers have another kind of version, which a note reports."""


def kind_added(node: Any) -> Change:
    """A change that adds a member of one kind to tools."""

    def add_kind(draft: Draft, at: int, awkward: str) -> None:
        text = json.dumps(node)
        for name, whole in REFERRED.items():
            text = text.replace(f'"$ref": "{name}"', f'"$ref": "#/$defs/{name}"')
            if f'#/$defs/{name}"' in text:
                inner = json.dumps(whole).replace('"$ref": "', '"$ref": "#/$defs/')
                draft.definitions[name] = json.loads(inner)
        draft.definitions["Tool"]["properties"][f"kind{at}"] = json.loads(text)

    return add_kind


EVERY: tuple[Change, ...] = (
    *CHANGES,
    Draft.rename_core_member,
    *map(kind_added, (*KINDS.values(), *REFERRING.values())),
)


def exchange(draft: Draft, folder: Path) -> None:
    """Generate a package of a draft, and use all that is in it from both sides."""
    path = save_draft(draft, folder)
    stated = folder / "facts.toml"
    stated.write_text(draft.facts, encoding="utf-8")
    source = schema_sources.of_file(path, stated if draft.facts else None)
    request = build_request.BuildRequest("pkg", (source,))
    if draft.refused:
        with pytest.raises(SchemaError, match=draft.refused):
            pipeline.build(request)
        return
    reported: list[str] = []
    output.write(folder / "pkg", pipeline.build(request, reported.append, form=dict))
    if any("/required: version: has another" in text for text in reported):
        run(folder, "-c", REFUSED)
        return
    values = folder / "values.json"
    values.write_text(json.dumps(values_of(source, draft.definitions)), encoding="utf-8")
    run(folder, "-c", PROGRAM, f"{values}")


@pytest.mark.parametrize("at", TRIPLES)
@pytest.mark.parametrize("base", BASES)
def test_additions_of_three_changes_are_used_from_both_sides(
    base: str, at: int, tmp_path: Path
) -> None:
    chosen = random.Random(f"{base} {at}")
    names = (*AWKWARD, chosen.choice(NAMES_IN_USE))
    triple = [(change, chosen.choice(names)) for change in chosen.sample(EVERY, 3)]
    changed = (
        change_revision(base, triple) if base != DRAFT else change_schema(newest_draft(), triple)
    )
    exchange(changed, tmp_path)
