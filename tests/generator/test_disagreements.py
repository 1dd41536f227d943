"""Where TypeScript and the JSON published for it disagree, as text for an errata file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import run
from generator.typescript_text import save_text
from mcpgen import schema
from mcpgen.errors import SchemaError
from mcpgen.schema.errata import apply, read_errata

pytestmark = pytest.mark.processes

TEXT = """\
export type Json = string | number | boolean | null;
export interface Cat { name: string; lives: number; ids: string | number; number: number }
export interface Dog { name: string; owner?: Cat; marks: Record<string, Cat> }
"""

CAT: dict[str, Any] = {
    "properties": {
        "ids": {"type": ["string", "integer"]},
        "lives": {"type": "integer"},
        "name": {"type": "string"},
        "number": {"type": "number"},
    },
    "required": ["ids", "lives", "name", "number"],
    "type": "object",
}
DOG: dict[str, Any] = {
    "properties": {
        "marks": {"additionalProperties": {"$ref": "#/$defs/Cat"}, "type": "object"},
        "name": {"type": "string"},
        "owner": {"$ref": "#/$defs/Cat"},
    },
    "required": ["marks", "name"],
    "type": "object",
}
JSON = {"type": ["string", "number", "boolean", "null"]}


def compare_schemas(folder: Path, more: str = "", /, **changes: Any) -> schema.Disagreements:
    """Disagreements between `TEXT` with some more and a JSON file with these definitions."""
    definitions = {"Cat": CAT, "Dog": DOG, "Json": JSON, **changes}
    kept = {name: value for name, value in definitions.items() if value is not None}
    document = save_text(folder, json.dumps({"$defs": kept}), "schema.json")
    return schema.disagreements(save_text(folder, TEXT + more), document)


def properties(definition: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A definition with other properties; `None` leaves one out."""
    changed = {**definition["properties"], **changes}
    kept = {name: value for name, value in changed.items() if value is not None}
    return {**definition, "properties": kept}


def test_the_same_in_both_is_no_disagreement(tmp_path: Path) -> None:
    described = {**CAT, "description": "A cat.", "title": "Cat"}
    assert compare_schemas(tmp_path, Cat=described) == schema.Disagreements((), ())


OTHERWISE = "the TypeScript declares it otherwise"
CASES = {
    "no type": ({"Json": {}}, "/$defs/Json", OTHERWISE),
    "one name less": ({"Cat": {**CAT, "required": ["ids"]}}, "/$defs/Cat/required", OTHERWISE),
    "another type": (
        *({"Cat": properties(CAT, name={"type": "null"})}, "/$defs/Cat/properties/name/type"),
        OTHERWISE,
    ),
    "another definition": (
        {"Dog": properties(DOG, owner={"$ref": "#/$defs/Json"})},
        "/$defs/Dog/properties/owner/$ref",
        "the TypeScript names another definition",
    ),
    "numbers that are whole in JSON": (
        {"Json": {"type": ["string", "integer", "boolean", "null"]}},
        "/$defs/Json/type",
        "the TypeScript allows numbers that are not whole",
    ),
    "numbers and null": (
        {"Json": {"type": ["string", "integer", "boolean"]}},
        "/$defs/Json/type",
        "the TypeScript allows null and numbers that are not whole",
    ),
    "a member that only JSON has": (
        {"Dog": properties(DOG, more={"type": "string"}, owner={"type": "string"})},
        *("/$defs/Dog/properties", OTHERWISE),
    ),
    "the order of names": (
        {"Dog": {**DOG, "required": ["name", "marks"]}},
        "/$defs/Dog/required",
        "the TypeScript names the same in another order",
    ),
    "another container": (
        {"Dog": properties(DOG, owner={"$ref": "#/definitions/Cat"})},
        "/$defs/Dog/properties/owner/$ref",
        "the file has its definitions under another key",
    ),
    "a map whose values JSON does not describe": (
        {"Dog": properties(DOG, marks={"$ref": "#/$defs/Json"})},
        "/$defs/Dog/properties/marks",
        "the TypeScript says what the values of the map are",
    ),
}


@pytest.mark.parametrize(("changes", "pointer", "reason"), CASES.values(), ids=CASES)
def test_a_disagreement_is_an_erratum_that_corrects_the_json(
    tmp_path: Path, changes: dict[str, Any], pointer: str, reason: str
) -> None:
    disagreements = compare_schemas(tmp_path, **changes)
    name = pointer.split("/")[2]
    line = next(at for at, text in enumerate(TEXT.splitlines(), 1) if f" {name} " in text)
    assert [(each.pointer, each.reason, each.source) for each in disagreements.errata] == [
        (pointer, reason, f"schema.ts, line {line}: {name}")
    ]
    assert disagreements.others == ()
    errata = read_errata(save_text(tmp_path, schema.errata_text(disagreements), "errata.toml"))
    document = json.loads((tmp_path / "schema.json").read_text())
    corrected = apply(document, errata, "schema.json")
    save_text(tmp_path, json.dumps(corrected), "schema.json")
    again = schema.disagreements(tmp_path / "schema.ts", tmp_path / "schema.json")
    assert again == schema.Disagreements((), ())


@pytest.mark.parametrize(
    ("name", "kept"),
    [("lives", {"type": "number"}), ("ids", {"type": ["string", "number"]})],
)
def test_a_number_that_json_keeps_is_no_disagreement(tmp_path: Path, name: str, kept: Any) -> None:
    assert compare_schemas(tmp_path, Cat=properties(CAT, **{name: kept})).errata == ()


def test_differences_without_a_form_in_toml_are_comments(tmp_path: Path) -> None:
    disagreements = compare_schemas(
        tmp_path, Cat=properties(CAT, name={"type": "string", "default": [None]})
    )
    assert disagreements.errata == ()
    assert disagreements.others == (
        "/$defs/Cat/properties/name differs by a null, which TOML has no form for",
    )
    assert compare_schemas(tmp_path, Dog=None, Owl={}).others == (
        "Dog is a definition of the TypeScript only",
        "Owl is a definition of the JSON only",
    )


def test_foreign_text_in_an_errata_file_is_a_string(tmp_path: Path) -> None:
    hostile = 'x"\n[[erratum]]\\u0000\x7f\u202e\U0001f600\x1b'
    owl = {
        "properties": {"name": {"const": hostile, "type": "string"}, hostile: {"enum": [hostile]}},
        "required": ["name"],
        "type": "object",
    }
    shown = schema.errata_text(compare_schemas(tmp_path, "interface Owl { name: 'a' }", Owl=owl))
    assert shown.isascii()
    assert all(line.isprintable() for line in shown.splitlines())
    (entry,) = tomllib.loads(shown)["erratum"]
    assert entry["old"] == owl["properties"]


def test_the_command_prints_the_errata(tmp_path: Path) -> None:
    compare_schemas(tmp_path, Json={"type": ["string", "integer", "boolean"]})
    words = ("schema", "errata", tmp_path / "schema.ts", tmp_path / "schema.json")
    assert run(*words).out == (
        "[[erratum]]\n"
        'pointer = "/$defs/Json/type"\n'
        'old = ["string", "integer", "boolean"]\n'
        'new = ["string", "number", "boolean", "null"]\n'
        'reason = "the TypeScript allows null and numbers that are not whole"\n'
        'source = "schema.ts, line 1: Json"\n'
    )
    compare_schemas(tmp_path)
    assert run(*words).out == "# the JSON says what the TypeScript says\n"


@pytest.mark.parametrize("text", ["[]", "{}", '{"$defs": []}', "{"])
def test_a_json_file_without_definitions_is_refused(tmp_path: Path, text: str) -> None:
    path = save_text(tmp_path, text, "schema.json")
    with pytest.raises(SchemaError, match=r"schema\.json#: expected "):
        schema.disagreements(save_text(tmp_path, TEXT), path)
