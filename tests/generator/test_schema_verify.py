"""Comparing with a checkout of the specification repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpgen import schema
from mcpgen.errors import SchemaError, UsageError

ROW = schema.latest()


def checkout(folder: Path, text: str) -> Path:
    """A checkout that holds one schema."""
    path = folder / "schema" / ROW.name / "schema.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_a_file_that_differs_in_prose_has_the_same_structure(tmp_path: Path) -> None:
    document = json.loads((ROW.folder / "schema.json").read_text())
    document["$defs"]["Tool"]["description"] = "A tool."
    verdict = schema.verify(ROW, checkout(tmp_path, json.dumps(document)))
    assert verdict.differences == ()
    assert not verdict.same_file


def test_every_difference_is_named_by_pointer(tmp_path: Path) -> None:
    document = json.loads((ROW.folder / "schema.json").read_text())
    del document["$defs"]["Tool"]["properties"]["name"]
    document["$defs"]["Root"]["required"] = []
    verdict = schema.verify(ROW, checkout(tmp_path, json.dumps(document)))
    assert [pointer for pointer, _ in verdict.differences] == [
        "/$defs/Root/required",
        "/$defs/Tool/properties/name",
    ]


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_file_that_is_no_schema_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SchemaError, match=r"schema\.json#: expected"):
        schema.verify(ROW, checkout(tmp_path, text))


def test_a_checkout_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"expected the official schema of {ROW.name}, got no"):
        schema.verify(ROW, tmp_path)


@pytest.mark.parametrize("row", schema.revisions(), ids=lambda row: row.name)
def test_our_schemas_are_the_official_ones(spec: Path, row: schema.RevisionEntry) -> None:
    verdict = schema.verify(row, spec)
    assert verdict.differences == ()
    assert verdict.same_file
