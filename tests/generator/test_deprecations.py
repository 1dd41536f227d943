"""Deprecations in a schema: `mcpgen diff` shows them, and the structure stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpgen import diff, schema

pytestmark = pytest.mark.lengthy

NEWEST = schema.latest().name


def list_deprecations(old: str, new: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """The deprecations that a comparison shows, with those whom they concern."""
    changes = diff.compare(*diff.load(old, new, errata=True)).changes
    return [
        (change.rule.id, change.place, change.affected_parties)
        for change in changes
        if change.rule.category == "DEPRECATION"
    ]


@pytest.mark.parametrize(
    "mark",
    [{"deprecated": True}, {"description": "A tool.\n\n@deprecated Use nothing."}],
    ids=["keyword", "tag"],
)
def test_a_mark_in_json_is_shown_with_its_place(mark: dict[str, Any], tmp_path: Path) -> None:
    document = json.loads((schema.entry(NEWEST).folder / "schema.json").read_text("utf-8"))
    document["$defs"]["Tool"]["properties"]["title"] |= mark
    document["$defs"]["CallToolRequestParams"] |= mark
    file = tmp_path / "my.json"
    file.write_text(json.dumps(document), "utf-8")
    sends = ("client that sends", "server that receives")
    gives = ("server that sends", "client that receives")
    assert list_deprecations(NEWEST, str(file)) == [
        ("DEPRECATION_ADDED", "CallToolRequestParams", sends),
        ("DEPRECATION_ADDED", "Tool.title", gives),
    ]
    assert schema.read_file(file).digest == schema.entry(NEWEST).digest
