"""Each keyword and member of a schema is in the types, in a note with its pointer, or an error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.accounting import Walk, atoms, module_of
from generator.schemas import COUNT, OPEN, TEXT, obj
from mcpgen import schema
from mcpgen.model import schema_facts, schema_sources
from mcpgen.render import models
from mcpgen.schema import docs
from mcpgen.schema.structure import escape
from mcpgen.spec import core_check, stages
from mcpgen.spec.packages import RevisionSpec

pytestmark = pytest.mark.lengthy

NAMES = [row.name for row in schema.revisions()]


def published_schema(name: str) -> dict[str, Any]:
    """The file of a revision."""
    document: dict[str, Any] = json.loads((schema.entry(name).folder / "schema.json").read_text())
    return document


def spec_of(document: dict[str, Any], folder: Path) -> tuple[RevisionSpec, str]:
    """The revision that a document becomes, and the name of the one that it is nearest to."""
    path = folder / "draft.json"
    path.write_text(json.dumps(document))
    source = schema_sources.of_file(path)
    loaded = schema_sources.load(source, errata=False)
    fitted = schema_facts.facts_for(loaded, source.base, None)
    later = schema_sources.newer_than(source.base, loaded)
    return stages.revision_spec(loaded, fitted.facts, docs.load(), later), source.base


def account(document: dict[str, Any], folder: Path) -> Walk:
    """Generate from a document and walk through both."""
    built, _ = spec_of(document, folder)
    normal = built.models.normal
    job = models.job(normal, built.models.unions, built.models.docs, "Models.")
    module = module_of(models.render(normal, job), "accounted")
    container = "$defs" if "$defs" in document else "definitions"
    shown = {normal.schema.pointer(f"/$defs/{name}"): name for name in normal.schema.definitions}
    names = {f"#{pointer}": name for pointer, name in shown.items()}
    noted = {normal.schema.pointer(note.pointer) for note in normal.notes if note.is_lossy}
    module.DOCUMENT = {f"#/{container}/{key}": node for key, node in document[container].items()}
    walk = Walk(module, names, frozenset(noted))
    for key, node in document[container].items():
        pointer = f"/{container}/{escape(key)}"
        walk.walk(node, pointer, list(atoms(getattr(module, shown[pointer]))))
    return walk


@pytest.fixture(autouse=True)
def without_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("mcpgen_runtime.r_accounted")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_revision_is_lost_without_a_note(name: str, tmp_path: Path) -> None:
    walk = account(published_schema(name), tmp_path)
    assert not walk.lost, walk.lost
    assert walk.count > 600


KINDS: dict[str, Any] = {
    "bounds of an integer": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5},
    "both lower bounds": {"type": "integer", "minimum": 1, "exclusiveMinimum": 0},
    "bounds of a number": {"type": "number", "exclusiveMinimum": 0.5, "maximum": 3},
    "multiples of a number": {"type": "number", "multipleOf": 0.5},
    "a text": {"type": "string", "pattern": "^a", "minLength": 2, "maxLength": 9},
    "a list": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
    "bounds in a list": {"type": "array", "items": {"type": "integer", "minimum": 3}},
    "a bounded number in a list": {"type": "array", "items": {"type": "number", "minimum": 3}},
    "a map": {"type": "object", "additionalProperties": COUNT, "minProperties": 1},
    "patterns of members": {"type": "object", "patternProperties": {"^x-": COUNT}},
    "names of members": {"type": "object", "propertyNames": {"pattern": "^a"}},
    "a closed object": {**obj("a", a=TEXT), "additionalProperties": False},
    "an open object": {**obj("a", a=TEXT), **OPEN},
    "typed extra members": {**obj("a", a=TEXT), "additionalProperties": COUNT},
    "few members": {**obj("a", a=TEXT), "maxProperties": 3},
    "a member that is only required": {**obj("a", a=TEXT), "required": ["a", "b"]},
    "a required member of a map": {"type": "object", "required": ["a"]},
    "true": {"const": True},
    "a float": {"const": 1.5},
    "a constant object": {"const": {"a": 1}},
    "a constant list": {"const": ["a"]},
    "true alone in an enum": {"enum": [True]},
    "both booleans": {"enum": [True, False]},
    "values of all kinds": {"enum": ["a", 1, 1.5, None, {"a": 1}, [2]]},
    "no type with members": {"properties": {"a": TEXT}, "required": ["a"]},
    "no type with items": {"items": TEXT},
    "no type with a bound": {"minLength": 3},
    "nothing": {"not": {}},
    "a tuple": {"type": "array", "prefixItems": [TEXT, COUNT], "items": False},
    "no items": {"type": "array", "items": False},
    "a condition": {"type": "string", "if": {"minLength": 2}, "then": {"pattern": "a"}},
    "one of": {"oneOf": [TEXT, COUNT]},
    "a union beside a bound": {"anyOf": [TEXT, COUNT], "minLength": 2},
    "an object beside a union": {**obj(a=TEXT), "anyOf": [obj(b=TEXT), obj(c=TEXT)]},
    "true and false in a union": {"anyOf": [TEXT, {"not": {}}]},
    "all of two objects": {"allOf": [obj("a", a=TEXT), {**obj(b=COUNT), "maxProperties": 2}]},
    "all of two with one member": {"allOf": [obj(a=TEXT), obj(a=COUNT)]},
    "all of a text": {"allOf": [TEXT, {"minLength": 3}]},
    "a default": {"type": "string", "default": "x"},
    "an unknown keyword": {"type": "string", "x-order": 3},
}
"""Schemas of members, by what they hold; some keywords are carried and others noted."""
REFERRING: dict[str, Any] = {
    "a reference": {"$ref": "Whole"},
    "members beside a reference": {"$ref": "Whole", "properties": {"more": TEXT}},
    "a demand beside a reference": {"$ref": "Whole", "required": ["name", "late"]},
    "a bound beside a reference": {"$ref": "Name", "maxLength": 3},
    "a type beside a reference": {"$ref": "Whole", "type": "object"},
    "all of one reference with a bound": {"allOf": [{"$ref": "Name"}], "minLength": 3},
    "an open object by reference": {"$ref": "Open"},
    "a list of open objects": {"type": "array", "items": {"$ref": "Open"}},
    "a union of itself": {"$ref": "Tree"},
}
REFERRED: dict[str, Any] = {
    "Whole": obj("name", name={"type": "string", "minLength": 1}, size=COUNT),
    "Name": {"type": "string", "minLength": 1},
    "Open": {**obj("a", a=COUNT), **OPEN},
    "Tree": {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "Tree"}}]},
}
"""The definitions that they refer to."""


def with_kinds(name: str) -> dict[str, Any]:
    """A revision with each kind as a member, as a definition and as the items of a list."""
    document = published_schema(name)
    container = "$defs" if "$defs" in document else "definitions"
    added = {**REFERRED}
    for at, node in enumerate([*KINDS.values(), *REFERRING.values()]):
        added[f"Kind{at}"] = obj("value", value=node, other=node)
        added[f"Plain{at}"] = node
        added[f"List{at}"] = obj("values", values={"type": "array", "items": node})
    text = json.dumps(added)
    for target in REFERRED:
        text = text.replace(f'"$ref": "{target}"', f'"$ref": "#/{container}/{target}"')
    document[container] |= json.loads(text)
    return document


@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_no_kind_of_keyword_is_lost_without_a_note(name: str, tmp_path: Path) -> None:
    walk = account(with_kinds(name), tmp_path)
    assert not walk.lost, walk.lost


@pytest.mark.parametrize("name", NAMES)
def test_members_that_a_package_does_not_set_are_noted(name: str, tmp_path: Path) -> None:
    document = published_schema(name)
    definitions = document["$defs" if "$defs" in document else "definitions"]
    definitions["Tool"]["properties"]["owner"] = TEXT
    definitions["Prompt"]["properties"]["description"] = COUNT
    for owner, wire in (("Tool", "owner"), ("Tool", "description"), ("Implementation", "seal")):
        definitions[owner]["required"].append(wire)
    unset = core_check.unset_members(*spec_of(document, tmp_path))
    assert [(each.definition, core_check.note(each)) for each in unset] == [
        (
            "Implementation",
            (
                "seal: a client or server of the package does not set it;"
                ' [defaults.Implementation] "seal" = ... in --facts gives its value'
            ),
        ),
        ("Tool", "description: a server sets it only where it is given"),
        (
            "Tool",
            (
                "owner: a server of the package does not set it;"
                ' [defaults.Tool] "owner" = ... in --facts gives its value'
            ),
        ),
        (
            "Prompt",
            "description: has another type; a server sets what fits in the known revisions",
        ),
    ]
