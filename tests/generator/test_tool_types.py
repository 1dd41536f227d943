"""JSON Schemas of tools as types: what each becomes, and what falls back to something wider."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcpgen.project.tool_types import MAX_CLASSES, MAX_LEVELS, NoTypesError, Types

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
POINT = {"type": "object", "properties": {"x": NUMBER}, "required": ["x"]}
SEVERAL_OBJECTS = {"anyOf": [POINT, {"type": "object", "properties": {"y": TEXT}}]}


def annotate_member(schema: Any, **more: Any) -> tuple[str, list[str]]:
    """The annotation of a required member of a schema, and the notes on it."""
    notes: list[str] = []
    root = {"type": "object", "properties": {"m": schema}, "required": ["m"], **more}
    struct, _ = Types(set()).struct(root, "Root", "A root.", notes.append)
    return struct.fields[0].type, notes


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
                "properties": {f"p{number}": POINT for number in range(MAX_CLASSES)},
            },
            f"needs more than {MAX_CLASSES} classes",
        ),
    ],
)
def test_a_root_without_named_members_has_no_class(schema: Any, reason: str) -> None:
    types = Types({"Taken"})
    with pytest.raises(NoTypesError, match=reason):
        types.struct(schema, "Root", "", lambda note: None)
    assert (types.classes, types.taken) == ([], {"Taken"})


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


def test_a_chain_of_references_ends_at_a_bound() -> None:
    definitions = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)}
    annotation, notes = annotate_member({"$ref": "#/$defs/d0"}, **{"$defs": definitions})
    assert (annotation, len(notes)) == ("Any", 1)
    assert "nested too deep" in notes[0]
    assert MAX_LEVELS < 3000


LOOP = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}}
DEFS = {"Loop": LOOP, "a/b~c": TEXT, "Same": {"$ref": "#/$defs/Same"}, "Point": POINT}


CONSTANTS: list[Any] = ["a", 1, 1.5, True, None, [], {}, 2**63, -(2**63), 2**63 - 1]
FALLBACKS: list[Any] = [
    *(
        True,
        False,
        {},
        5,
        {"type": "file"},
        {"type": 5},
        {"type": []},
        {"type": ["integer", "file"]},
    ),
    *({"$ref": f"#/$defs/{name}"} for name in ("Loop", "a~1b~0c", "Same", "Point", "none")),
    *({"$ref": place} for place in ("other.json", "#", "#/type/x", 5)),
    *({"const": value} for value in CONSTANTS),
    *(
        {"enum": values}
        for values in ([], [1, 1.5], [True, False], ["a", 1, None, True], [[1]], "a")
    ),
    *({"enum": ["x" * size]} for size in (980, 990, 991, 1000)),
    *({"enum": list(range(size))} for size in (50, 51)),
    *({"type": kinds} for kinds in (["string", "null"], ["null", "integer", "string"])),
    *({"anyOf": [{"const": "a"}, {"const": "b"}]}, {"allOf": [TEXT]}, {"type": "array"}),
    {"type": "array", "prefixItems": [TEXT], "items": NUMBER},
    {"type": "array", "items": POINT},
    {"type": ["integer", "number"]},
    {"anyOf": []},
    {"anyOf": [TEXT, {}]},
    {"anyOf": [TEXT, {"anyOf": [TEXT, NUMBER]}]},
    {"anyOf": [{"enum": [1]}, {"type": "integer"}]},
    {"anyOf": [{"enum": [1]}, {"enum": [2, 1]}]},
    {"anyOf": [{"type": "array", "items": TEXT}, {"type": "array", "items": NUMBER}]},
    SEVERAL_OBJECTS,
    {"anyOf": [POINT, TEXT, {"type": "null"}]},
    {"oneOf": [{"type": "null"}, {"type": "array", "items": POINT}]},
    {"allOf": [POINT, {"type": "object"}], "type": "object"},
    {"allOf": [POINT]},
    {"type": "object", "properties": {}, "additionalProperties": {"type": "array", "items": POINT}},
    *({**POINT, "additionalProperties": more} for more in (True, False, TEXT, {})),
    {"type": "object", "additionalProperties": True},
    {**POINT, "patternProperties": {"^x": TEXT}},
    *({**POINT, key: [POINT]} for key in ("anyOf", "allOf")),
    *({**POINT, key: [{"required": []}]} for key in ("anyOf", "allOf")),
    {**POINT, "oneOf": [{"$ref": "#/$defs/Point"}]},
    {"type": "object", "properties": {'a"b': TEXT}},
    *({"type": kind, "default": value} for kind, value in (("string", "a"), ("string", "x" * 200))),
    *({"type": "string", "default": value} for value in ("x" * 100, "x" * 1000, 1, None)),
    *({"type": "integer", "default": value} for value in (1, True, 1.5)),
    *({"type": "number", "default": value} for value in (1, True, 1.5, "1")),
    *({"type": "boolean", "default": value} for value in (True, 1)),
    *({"enum": ["a", 1], "default": value} for value in ("a", "b", True, 1)),
    *({**TEXT, "description": text} for text in (" d ", "", 5, "x" * 2000, "x" * 2001)),
]
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
