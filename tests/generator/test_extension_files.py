"""Schema files of extensions: identifiers, equivalent forms, nested definitions and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.schemas import COUNT, TEXT, any_of, const, obj, ref
from mcpgen import schema
from mcpgen.errors import SchemaError, UsageError
from mcpgen.model import extension_files
from mcpgen.model.extension_files import ExtensionFile

PAINT = "com.example/paint"
ASK = obj("method", method=const("paint/ask"))
EXACT = 2**53 - 1


def read_document(folder: Path, document: Any, identifier: str = PAINT) -> ExtensionFile:
    """The extension of a JSON document."""
    path = folder / "paint.json"
    path.write_text(json.dumps(document))
    return extension_files.read(path, identifier)


def definitions_of(folder: Path, *core: Any, **definitions: Any) -> Any:
    """The definitions that an extension has of its own."""
    return extension_files.own_definitions(read_document(folder, {"$defs": definitions}), core)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"$ref": "#/definitions/B"}, ref("B")),
        ({"$schema": "x", "type": "string"}, TEXT),
        (obj(x=TEXT, y={"not": {}}, z=False), obj(x=TEXT)),
        ({"type": "object", "propertyNames": TEXT}, {"type": "object"}),
        ({"propertyNames": {"pattern": "x"}}, {"propertyNames": {"pattern": "x"}}),
        ({"minimum": -EXACT, "maximum": EXACT, "type": "integer"}, COUNT),
        ({"minimum": -EXACT, "maximum": EXACT - 1}, {"minimum": -EXACT, "maximum": EXACT - 1}),
        (
            {"description": "D", "anyOf": [TEXT, {"type": "null"}]},
            {"description": "D", "type": ["string", "null"]},
        ),
        ({"anyOf": [TEXT, {"type": "array"}]}, {"anyOf": [TEXT, {"type": "array"}]}),
        ({"anyOf": [TEXT, COUNT], "x": 1}, {"anyOf": [TEXT, COUNT], "x": 1}),
        ({**TEXT, "$defs": 1}, {**TEXT, "$defs": 1}),
        ({"items": [{"not": {}}, {"$ref": "#/definitions/B"}]}, {"items": [False, ref("B")]}),
    ],
)
def test_forms_of_other_tools_become_those_of_revisions(
    tmp_path: Path, node: Any, expected: Any
) -> None:
    assert definitions_of(tmp_path, A=node) == {"A": expected}


def test_typescript_inherits_members_of_the_types_that_it_imports(tmp_path: Path) -> None:
    path = tmp_path / "paint.ts"
    path.write_text(
        'import type { ListToolsResult, Annotations as Notes } from "./spec.js";\n'
        "export interface Mine extends ListToolsResult { notes?: Notes; share?: number }"
    )
    file = schema.read_extension(path, schema.load("2026-07-28").definitions)
    [(name, node)] = file.document["$defs"].items()
    assert (name, node["required"]) == ("Mine", ["cacheScope", "resultType", "tools", "ttlMs"])
    members = {wire: node["properties"][wire] for wire in ("ttlMs", "nextCursor", "notes", "share")}
    assert members == {
        "ttlMs": {"type": "integer"},
        "nextCursor": TEXT,
        "notes": ref("Annotations"),
        "share": {"type": "number"},
    }


def test_definitions_of_a_revision_are_left_out_or_refused(tmp_path: Path) -> None:
    published, corrected = {"A": TEXT, "B": TEXT}, {"A": COUNT, "B": TEXT}
    core = (published, corrected)
    described = {**TEXT, "description": "D"}
    assert definitions_of(tmp_path, *core, A=COUNT, B=described, C=TEXT) == {"C": TEXT}
    with pytest.raises(SchemaError) as caught:
        definitions_of(tmp_path, *core, B=COUNT)
    assert (caught.value.pointer, caught.value.came) == ("/$defs/B", "another B")
    union = {"ClientRequest": any_of("AskRequest")}
    assert definitions_of(tmp_path, {"ClientRequest": any_of("X")}, **union) == union


@pytest.mark.parametrize(
    ("document", "pointer", "came"),
    [
        ({"title": "x"}, "", '["title"]'),
        ({"$defs": 1, "definitions": {"A": 1}}, "/definitions/A", "1"),
        ({"$defs": {"A": TEXT, "a/b": []}}, "/$defs/a~1b", "[]"),
    ],
)
def test_a_file_without_definitions_is_refused(
    tmp_path: Path, document: Any, pointer: str, came: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        extension_files.own_definitions(read_document(tmp_path, document), ())
    assert (caught.value.pointer, caught.value.came) == (pointer, came)
    assert read_document(tmp_path, {"title": "x"}).container == "$defs"


def test_nested_definitions_are_moved_to_the_top(tmp_path: Path) -> None:
    nested = obj(x=ref("one"), y={"anyOf": [ref("Own"), ref("two")]})
    node = {**nested, "$defs": {"one": ref("two"), "Own": COUNT}, "definitions": {"two": TEXT}}
    assert definitions_of(tmp_path, A=node, Own=TEXT, ATwo=COUNT) == {
        "A": obj(x=ref("AOne"), y={"anyOf": [ref("Own"), ref("ATwo2")]}),
        "AOne": ref("ATwo2"),
        "ATwo2": TEXT,
        "Own": TEXT,
        "ATwo": COUNT,
    }


def test_messages_are_placed_by_unions_and_else_by_their_kind(tmp_path: Path) -> None:
    own = {
        "AskRequest": ASK,
        "TellNotification": {"allOf": [obj(x=TEXT), obj(method=const("told"))]},
        "SentRequest": obj(method=const("sent")),
        "Other": obj(method=TEXT),
        "ServerRequest": ref("SentRequest"),
        "ClientNotification": any_of("TellNotification"),
    }
    messages = extension_files.messages(read_document(tmp_path, {"$defs": own}), own)
    assert messages.of("ClientRequest") == ("AskRequest",)
    assert messages.of("ServerRequest") == ("SentRequest",)
    assert messages.of("ClientNotification") == ("TellNotification",)
    assert messages.of("ServerNotification") == messages.of("Nothing") == ()


@pytest.mark.parametrize(
    ("own", "pointer", "came"),
    [
        ({"ClientRequest": any_of("Gone")}, "/$defs/ClientRequest", '{"$ref": "#/$defs/Gone"}'),
        ({"Ask": ASK}, "/$defs/Ask", '"Ask"'),
        ({"A": TEXT, "B": TEXT}, "/$defs", "A, B"),
        ({}, "/$defs", "none"),
    ],
)
def test_messages_that_have_no_place_are_refused(
    tmp_path: Path, own: Any, pointer: str, came: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        extension_files.messages(read_document(tmp_path, {"$defs": own}), own)
    assert (caught.value.pointer, caught.value.came) == (pointer, came)


def test_copies_of_definitions_become_references() -> None:
    point, params = obj("x", x=COUNT), obj("a", a=TEXT)
    own = {
        "Point": {**point, "description": "D"},
        "AskParams": params,
        "AskResult": obj("r", r=TEXT),
        "Line": obj(start=point, params=point, of={"type": "array", "items": point}),
        "Either": {"anyOf": [point, TEXT]},
        "AskRequest": obj(params=params, result=obj("r", r=TEXT)),
    }
    simple = extension_files.simplify(own, {})
    assert simple["Point"] == own["Point"]
    assert simple["Line"] == obj(
        start=ref("Point"), params=point, of={"type": "array", "items": ref("Point")}
    )
    assert simple["Either"] == {"anyOf": [ref("Point"), TEXT]}
    assert simple["AskRequest"] == obj(params=ref("AskParams"), result=obj("r", r=TEXT))


@pytest.mark.parametrize(
    ("alternatives", "names"),
    [
        ([obj(k=const("on")), obj(k=const("off"))], ["AOn", "AOff"]),
        ([obj(k=const("on")), obj(k=const("on"))], ["A1", "A2"]),
        ([obj(k=const("on")), obj(x=TEXT)], ["A1", "A2"]),
        ([ref("B"), ref("C")], ["AB", "AC"]),
        ([ref("On"), ref("Off")], ["AYes", "ANo"]),
    ],
)
def test_a_union_within_all_of_is_a_union_of_merged_objects(
    alternatives: list[Any], names: list[str]
) -> None:
    base = obj(base=TEXT)
    only_open = {"type": "object", "additionalProperties": {}, "propertyNames": TEXT}
    union = {"anyOf": alternatives}
    node = {"description": "D", "allOf": [base, union, only_open]}
    core = {
        "B": obj(b=TEXT),
        "C": obj(c=TEXT),
        "On": obj(k=const("yes")),
        "Off": obj(k=const("no")),
    }
    simple = extension_files.simplify({"A": node}, core)
    assert [*simple] == [*names, "A"]
    assert simple["A"] == {"description": "D", **any_of(*names)}
    for name, alternative in zip(names, alternatives, strict=True):
        assert simple[name] == {"description": "D", "allOf": [base, alternative]}


def test_all_of_two_unions_or_of_none_stays() -> None:
    two = {"allOf": [{"anyOf": [obj(a=TEXT), obj(b=TEXT)]}] * 2}
    none = {"allOf": [obj(a=TEXT), ref("Loop")]}
    core = {"Loop": ref("Loop")}
    assert extension_files.simplify({"Two": two, "None": none}, core) == {"Two": two, "None": none}


@pytest.mark.parametrize(
    ("document", "identifier"),
    [
        ({"title": "Extension Identifier: com.example/a"}, "com.example/a"),
        ({"title": "A", "description": "Extension Identifier: com.example/b"}, "com.example/b"),
        ({"title": 1, "$comment": "Extension Identifier:\ncom.example/c x"}, "com.example/c"),
    ],
)
def test_a_file_states_its_identifier(tmp_path: Path, document: Any, identifier: str) -> None:
    assert read_document(tmp_path, document, "").identifier == identifier


@pytest.mark.parametrize("identifier", ["paint", "a/b/c", "-a/b", "a./b", "a/-", "a/b-", "\xe4/b"])
def test_a_malformed_identifier_is_refused(tmp_path: Path, identifier: str) -> None:
    with pytest.raises(UsageError, match="expected as identifier a dotted prefix"):
        read_document(tmp_path, {}, identifier)
    with pytest.raises(UsageError, match="expected the identifier of the extension"):
        read_document(tmp_path, {}, "")


def test_each_extension_has_its_own_identifier_and_module(tmp_path: Path) -> None:
    names = ("com.example/paint", "com.example/client", "org.example/paint")
    one, third, other = (read_document(tmp_path, {}, name) for name in names)
    assert (one.module, third.module) == ("paint", "client_")
    extension_files.check_distinct([one, third])
    with pytest.raises(UsageError, match=r"com\.example/paint .* and org\.example/paint "):
        extension_files.check_distinct([one, third, other])
