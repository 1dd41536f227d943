"""JSON Schemas of tools as types: what each becomes, and what falls back to something wider."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.tables import table
from mcpgen.project.tool_types import NoTypesError, Types

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
POINT = {"type": "object", "properties": {"x": NUMBER}, "required": ["x"]}


def annotate_member(schema: Any, **more: Any) -> tuple[str, list[str]]:
    """The annotation of a required member of a schema, and the notes on it."""
    notes: list[str] = []
    members = {"first": TEXT, "m": schema}
    root = {"type": "object", "properties": members, "required": ["m"], **more}
    struct, _ = Types(set()).struct(root, "Root", "A root.", notes.append)
    return struct.fields[1].type, notes


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "no schema that is an object"),
        ({}, 'does not say "type": "object"'),
        ({"type": "object", "properties": []}, "its properties are no object"),
        ({"type": "object", "additionalProperties": True}, "allows members of any name"),
        ({"type": "object", "anyOf": [POINT]}, "has members in anyOf"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "lead in a circle"),
        (
            {
                "type": "object",
                "properties": {f"p{number}": POINT for number in range(200)},
            },
            "needs more than 200 classes",
        ),
    ],
)
def test_a_root_without_named_members_has_no_class(schema: Any, reason: str) -> None:
    types = Types({"Taken"})
    with pytest.raises(NoTypesError, match=reason):
        types.struct(schema, "Root", "", lambda note: None)
    assert (types.classes, types.taken) == ([], {"Taken"})


def test_a_schema_may_need_many_classes() -> None:
    types = Types(set())
    schema = {"type": "object", "properties": {f"p{number}": POINT for number in range(199)}}
    types.struct(schema, "Root", "", lambda note: None)
    assert len(types.classes) == 200


def test_references_that_double_at_each_step_stay_short() -> None:
    steps = 40
    definitions: dict[str, Any] = {f"d{steps}": TEXT}
    for number in range(steps):
        inner = {"$ref": f"#/$defs/d{number + 1}"}
        twice = {"type": "object", "additionalProperties": inner}
        definitions[f"d{number}"] = {"anyOf": [twice, {"type": "array", "items": inner}]}
    annotation, notes = annotate_member({"$ref": "#/$defs/d0"}, **{"$defs": definitions})
    assert len(annotation) < 2500
    assert any("its type is too long" in note for note in notes)


@pytest.mark.parametrize(("count", "expected"), [(48, "str"), (49, "Any"), (3000, "Any")])
def test_a_chain_of_references_ends_at_a_bound(count: int, expected: str) -> None:
    links = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(count)}
    definitions = {**links, f"d{count}": TEXT}
    annotation, notes = annotate_member({"$ref": "#/$defs/d0"}, **{"$defs": definitions})
    assert annotation == expected
    assert ["nested too deep" in note for note in notes] == [True] * (expected == "Any")


LOOP = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}}
DEFS = {"Loop": LOOP, "a/b~c": TEXT, "Same": {"$ref": "#/$defs/Same"}, "Point": POINT}


FALLBACKS: list[Any] = table("tool_schemas")
NAMES = dict.fromkeys(("self", "ctx", "class", "a-b", "a_b", "1", "", "__init__", "ctx_"), TEXT)


def classes_of(root: Any) -> list[str]:
    """The classes of a schema with their fields, the notes, and a sample; or why there are none."""
    lines: list[str] = []
    types = Types({"Taken"})
    try:
        _, hint = types.struct(root, "Root", "A root.", lines.append)
    except NoTypesError as error:
        return [f"none: {error}", *(each.name for each in types.classes)]
    lines.append(f"sample {hint.sample}, {hint.wire}")
    for each in types.classes:
        lines.append(f"class {each.name}: {each.doc}")
        lines += [
            f"  {row.name}: {row.type}{row.value} | {row.default} | {row.doc}"
            for row in each.fields
        ]
    return [line if len(line) < 200 else f"{line[:80]} ... {line[-80:]}" for line in lines]


def test_schemas_become_these_classes(snapshot: SnapshotAssertion) -> None:
    classes: dict[str, list[str]] = {}
    for schema in FALLBACKS:
        members = {"a": schema, "b": schema}
        root = {"type": "object", "properties": members, "required": ["a"], "$defs": DEFS}
        classes[f"{schema!r:.100}{len(classes)}"] = classes_of(root)
    for number, root in enumerate(ROOTS):
        classes[f"root {number}: {root!r:.100}"] = classes_of(root)
    assert classes == snapshot


OBJECT = {"type": "object"}
ROOTS: list[Any] = [
    *(True, {}, TEXT, OBJECT, {**OBJECT, "properties": 5}, {**OBJECT, "properties": {}}),
    {"$ref": "#/$defs/Point", "$defs": DEFS},
    {"$ref": "#/$defs/Same", "$defs": DEFS},
    {"$ref": "x", "$defs": DEFS},
    {**POINT, "additionalProperties": True},
    {**POINT, "additionalProperties": False, "description": "Own text."},
    {**OBJECT, "properties": NAMES, "required": ["self", "1"]},
    {**OBJECT, "properties": {"taken": POINT, "Taken": POINT}},
    {**OBJECT, "properties": {"camelCase": {**TEXT, "default": "a\"'"}}},
    {**OBJECT, "properties": {"a": {"$ref": "#/properties/b"}, "b": POINT}},
]
