"""Loading schemas: pinned, held against their dialect and the protocol's shape, corrected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.command_line import Installation
from mcpgen import schema
from mcpgen.errors import SchemaError
from mcpgen.schema.structure import replace_at

NAMES = [row.name for row in schema.revisions()]

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"


def small(container: str = "$defs", **definitions: Any) -> dict[str, Any]:
    """A schema of the protocol's shape, with further definitions."""
    dialect = DRAFT_2020_12 if container == "$defs" else DRAFT_07
    request = {"properties": {"method": {"const": "ping"}}, "type": "object"}
    common = {
        "PingRequest": request,
        "ClientRequest": {"anyOf": [{"$ref": f"#/{container}/PingRequest"}]},
        "ServerResult": {"type": "object"},
    }
    return {"$schema": dialect, container: {**common, **definitions}}


def save_document(folder: Path, document: Any) -> Path:
    path = folder / "schema.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_our_files_are_the_structure_and_are_printed_to_be_read(name: str) -> None:
    path = schema.entry(name).folder / "schema.json"
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    assert document == schema.structure(document)
    assert text == json.dumps(document, indent=2) + "\n"


@pytest.mark.parametrize("container", ["$defs", "definitions"])
def test_both_dialects_come_out_alike(tmp_path: Path, container: str) -> None:
    key = "prefixItems" if container == "$defs" else "items"
    pair = {key: [{"$ref": f"#/{container}/PingRequest"}]}
    loaded = schema.load_file(save_document(tmp_path, small(container, Pair=pair)))
    assert loaded.definitions["ClientRequest"] == {"anyOf": [{"$ref": "#/$defs/PingRequest"}]}
    assert loaded.definitions["Pair"] == {key: [{"$ref": "#/$defs/PingRequest"}]}
    assert loaded.container == container


def test_prose_of_a_file_is_kept_beside_the_structure(tmp_path: Path) -> None:
    tool = {"description": "A tool.", "properties": {"a/b": {"description": "A field."}}}
    loaded = schema.load_file(save_document(tmp_path, small("definitions", Tool=tool)))
    assert loaded.prose == {"/$defs/Tool": "A tool.", "/$defs/Tool/properties/a~1b": "A field."}
    assert loaded.definitions["Tool"] == {"properties": {"a/b": {}}}


@pytest.mark.parametrize(
    ("name", "revision"),
    [
        ("2031-02-03/schema.json", "2031-02-03"),
        ("2031-02-03/work/schema.json", "draft"),
        ("work/schema-2031-02-03.json", "2031-02-03"),
        ("draft/schema.json", "draft"),
    ],
)
def test_a_file_is_of_the_revision_that_its_name_or_folder_says(
    tmp_path: Path, name: str, revision: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(small()))
    assert schema.load_file(path).revision == revision


def test_a_file_with_the_structure_of_a_revision_counts_as_it(tmp_path: Path) -> None:
    document = json.loads((schema.entry(NAMES[-1]).folder / "schema.json").read_text())
    document["$defs"]["Tool"]["description"] = "A tool."
    loaded = schema.load_file(save_document(tmp_path, document))
    assert loaded.revision == NAMES[-1]
    assert loaded.errata == schema.load(NAMES[-1]).errata


def test_an_unknown_structure_gets_the_nearest_corrections(
    tmp_path: Path,
) -> None:
    row = schema.entry(NAMES[-1])
    first, *others = schema.load(row.name).errata
    document = json.loads((row.folder / "schema.json").read_text())
    document["$defs"]["Tool"]["properties"]["colour"] = {"type": "string"}
    path = save_document(tmp_path, document)
    file = schema.read_file(path)
    assert (file.nearest.entry, file.errata) == (row, (first, *others))
    corrected = replace_at(document, first.pointer, first.new)
    path = save_document(tmp_path, corrected)
    file = schema.read_file(path)
    assert (file.nearest.entry, file.errata) == (row, tuple(others))
    assert schema.load_file(path).errata == tuple(others)
    assert schema.load_file(path, errata=False).errata == ()
    assert file.schema().errata == tuple(others)


@pytest.mark.parametrize(
    ("container", "other"), [("$defs", "definitions"), ("definitions", "$defs")]
)
def test_a_reference_into_the_other_container_is_resolved(
    tmp_path: Path, container: str, other: str
) -> None:
    tool = {"properties": {container: {"not": {"$ref": f"#/{other}/PingRequest"}}}}
    loaded = schema.load_file(save_document(tmp_path, small(container, Tool=tool)))
    member = loaded.definitions["Tool"]["properties"][container]
    assert member == {"not": {"$ref": "#/$defs/PingRequest"}}
    (note,) = loaded.notes
    assert not note.is_lossy
    assert loaded.pointer(note.pointer) == f"/{container}/Tool/properties/{container}/not"
    assert note.text == f"1 reference such as #/{other}/PingRequest, taken as into {container}"


def test_an_empty_container_or_no_dialect_is_passed_over(tmp_path: Path) -> None:
    document = {**small("definitions"), "$defs": {}}
    del document["$schema"]
    loaded = schema.load_file(save_document(tmp_path, document))
    assert (loaded.container, loaded.dialect) == ("definitions", DRAFT_07)


def test_definitions_whose_names_collide_get_distinct_ones(tmp_path: Path) -> None:
    named = {"foo-bar": {}, "FooBar": {}, "foo.bar": {"$ref": "#/$defs/foo-bar"}}
    loaded = schema.load_file(save_document(tmp_path, small("$defs", **named)))
    assert loaded.definitions["FooBar3"] == {"$ref": "#/$defs/FooBar2"}
    assert [note.text for note in loaded.notes] == [
        "foo-bar is called FooBar2",
        "foo.bar is called FooBar3",
    ]
    assert not any(note.is_lossy for note in loaded.notes)
    assert loaded.error("/$defs/FooBar3/x", "", "").pointer == "/$defs/foo.bar/x"


WRONG = {
    "another dialect": (
        {**small(), "$schema": "https://json-schema.org/draft/2019-09/schema"},
        f"#/$schema: expected {DRAFT_07} or {DRAFT_2020_12}, got ",
    ),
    "no schema": (
        small(Tool={"properties": {"a/b": {"type": "strin"}}}),
        "#/$defs/Tool/properties/a~1b/type: expected a schema of",
    ),
    "a reference to what is no schema": (
        small(Tool={"items": {"type": "string"}, "not": {"$ref": "#/$defs/Tool/items/type"}}),
        "#/$defs/Tool/not/$ref: expected a reference to a definition, #/$defs/<name>, got",
    ),
    "a reference to another file": (
        {**small(Tool={"$ref": "https://a.b/c#/$defs/Tool"}), "$id": "https://a.b/d"},
        "#/$defs/Tool/$ref: expected a reference to a definition",
    ),
    "a definition under the other key": (
        {**small(), "definitions": {"a/b": 3}},
        "#/definitions/a~1b: expected a schema of",
    ),
    "a definition under the other key, by the older dialect": (
        {**small(), "$schema": DRAFT_07, "definitions": {"Tool": {"minimum": "1"}}},
        "#/definitions/Tool/minimum: expected a schema of",
    ),
}


@pytest.mark.parametrize(("document", "expected"), WRONG.values(), ids=WRONG)
def test_other_json_than_a_schema_is_refused_with_a_pointer(
    tmp_path: Path, document: Any, expected: str
) -> None:
    path = save_document(tmp_path, document)
    with pytest.raises(SchemaError) as raised:
        schema.load_file(path)
    assert str(raised.value).startswith(f"{path}{expected}")
    assert "\n" not in str(raised.value)


def test_chains_and_texts_have_limits_that_they_may_reach(tmp_path: Path) -> None:
    def row(count: int) -> dict[str, Any]:
        links: dict[str, Any] = {f"C{at}": {"$ref": f"#/$defs/C{at + 1}"} for at in range(1, count)}
        last: dict[str, Any] = {f"C{count}": {"pattern": "x" * 2000, "const": "x" * 2000}}
        return small(**links, **last)

    assert "C64" in schema.load_file(save_document(tmp_path, row(64))).definitions
    with pytest.raises(SchemaError, match="a chain of at most 64 definitions"):
        schema.load_file(save_document(tmp_path, row(65)))


@pytest.mark.processes
def test_a_changed_file_does_not_have_the_digest_on_record(installation: Installation) -> None:
    row = schema.entry(NAMES[0])
    document = json.loads((row.folder / "schema.json").read_text())
    document["definitions"]["Tool"]["properties"]["more"] = {}
    save_document(installation.data / "schema" / row.name, document)
    expected = f"mcpgen: error: schema/{row.name}/schema.json#: expected the digest {row.digest}"
    done = installation.run("-q", "--no-cache", "--revision", row.name, "-o", "pkg")
    assert (done.code, done.err.startswith(expected)) == (2, True)


def test_one_name_under_both_keys_is_two_definitions_unless_they_are_equal(tmp_path: Path) -> None:
    text, count = {"type": "string"}, {"type": "integer"}
    refs = {"a": {"$ref": "#/$defs/Id"}, "b": {"$ref": "#/definitions/Id"}}
    document = {**small(Id=text, Tool={"properties": refs}), "definitions": {"Id": count}}
    loaded = schema.load_file(save_document(tmp_path, document))
    assert loaded.definitions["Id"] == text
    assert loaded.definitions["DefinitionsId"] == count
    members = loaded.definitions["Tool"]["properties"]
    assert members == {"a": {"$ref": "#/$defs/Id"}, "b": {"$ref": "#/$defs/DefinitionsId"}}
    assert loaded.pointer("/$defs/DefinitionsId/x") == "/definitions/Id/x"
    assert [note.text for note in loaded.notes] == ["definitions Id is called DefinitionsId"]
    loaded = schema.load_file(
        save_document(tmp_path, {**small(Id=text), "definitions": {"Id": text}})
    )
    assert ([name for name in loaded.definitions if "Id" in name], loaded.notes) == (["Id"], ())


def test_a_part_of_a_definition_gets_a_name_of_its_own(tmp_path: Path) -> None:
    tool = {"properties": {"name": {"minLength": 1}, "b": {"$ref": "#/$defs/Tool/properties/name"}}}
    taken: dict[str, Any] = {"Tool name": {}, "Tool name part": {}}
    loaded = schema.load_file(save_document(tmp_path, small(Tool=tool, **taken)))
    assert loaded.definitions["ToolNamePartPart"] == {"minLength": 1}


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("#id", "Id"),
        ("https://example.com/schema#id", "Id"),
        ("https://example.com/schema#/$defs/Id", "Id"),
        ("#/$defs/Tool/properties/name", "ToolName"),
        ("#/$defs/Tool/not", "ToolNot"),
        ("#/$defs/I%64", "Id"),
    ],
)
def test_a_reference_within_the_file_may_have_any_form(
    tmp_path: Path, target: str, name: str
) -> None:
    text = {"type": "string", "minLength": 1}
    other = {"anyOf": [{"$ref": target}, {"const": target}]}
    members = {"name": text, "other": other, "$ref": {"type": "null"}}
    tool = {"type": "object", "properties": members, "not": text}
    document = {**small(Id={**text, "$anchor": "id"}, Tool=tool)}
    document |= {"$id": "https://example.com/schema"} if "://" in target else {}
    loaded = schema.load_file(save_document(tmp_path, document))
    assert loaded.definitions["Tool"]["properties"] == {
        **members,
        "other": {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"const": target}]},
    }
    assert loaded.definitions[name]["minLength"] == 1


def test_boolean_schemas_are_schemas(tmp_path: Path) -> None:
    members = {"a": True, "b": False}
    either = {"anyOf": [True, False], "default": {"$ref": 1}, "const": {"$ref": "#/none"}}
    values = {"items": {"const": True}, "enum": [True, False]}
    document = small(Any=True, Tool={"properties": members}, Either=either, Values=values)
    loaded = schema.load_file(save_document(tmp_path, document))
    assert loaded.definitions["AnyModel"] == {}
    assert loaded.definitions["Either"] == {**either, "anyOf": [{}, {"not": {}}]}
    assert loaded.definitions["Tool"]["properties"] == {"a": {}, "b": {"not": {}}}
    assert loaded.definitions["Values"] == values
