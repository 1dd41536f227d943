"""The package decodes what the schema allows, except for the rows of one table."""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args, get_origin

import jsonschema
import pytest

import mcpgen_runtime
from decoding.instances import Instances
from decoding.leniency import ROWS, Reading, as_read
from generator.draft_packages import save_schema
from generator.futures import KINDS, with_kinds
from history.test_published_states import write_newest_draft
from mcpgen import names, schema
from mcpgen.json_types import is_array, is_object
from mcpgen.model import choice, schema_facts, schema_sources
from mcpgen.model.normalized import NormalizedSchema
from mcpgen.package import build_request, pipeline
from mcpgen.render import models
from mcpgen.schema import docs, facts
from mcpgen.spec import stages
from mcpgen_runtime import REVISIONS, decoder, encode
from mcpgen_runtime._unions import UntaggedType
from mcpgen_runtime._wire import STRUCTS, UNREADABLE, fields

pytestmark = pytest.mark.lengthy

CASES = int(os.environ.get("MCP_DECODED_CASES", "12000"))
"""Cases of all revisions together."""

SPECIFICATION = Path(__file__).resolve().parents[2] / os.environ.get("MCP_SPEC", "none")
OFFICIAL = pytest.mark.skipif(not SPECIFICATION.is_dir(), reason="MCP_SPEC names no folder")
REVISION = pytest.mark.parametrize("revision", REVISIONS)


class Judged:
    """The definitions of a schema, each with its decoder and the judges of its values."""

    def __init__(
        self, models: Any, definitions: Mapping[str, Any], default: Any, core: Any = types
    ) -> None:
        self.models = models
        self.definitions = definitions
        self.reading = Reading(
            {name: dict(node) for name, node in self.definitions.items()},
            default,
            {
                frozenset(union.member_names()): [
                    (each.type.__name__, _test_schema(each)) for each in union.variants
                ]
                for module in (core, models)
                for union in vars(module).values()
                if isinstance(union, UntaggedType) and all(e.decides for e in union.variants)
            },
            {path for name in self.definitions for path in _maps(name, self.kind(name))},
        )

    def kind(self, name: str) -> Any:
        """The type of a definition; `None` for one that is another module's."""
        return getattr(self.models, name, None)

    def judge(self, definitions: Any, name: str) -> Any:
        """A validator of one definition."""
        whole = {"$defs": definitions, "$ref": f"#/$defs/{name}"}
        return jsonschema.Draft202012Validator(whole).is_valid

    def cases(self, count: int) -> Iterator[tuple[str, Any]]:
        """Values with their definition: a third valid, the others with one or two changes."""
        instances = Instances(self.definitions, Random(count))
        known = [name for name in self.definitions if hasattr(self.models, name)]
        for number in range(count):
            value = instances.valid(known[number % len(known)])
            for _ in range(number // len(known) % 3):
                value = instances.changed(value)
            yield known[number % len(known)], value


def _maps(path: str, kind: Any) -> Iterator[str]:
    """The places within a type that are maps, at any depth of objects."""
    kinds = [kind, *get_args(kind)]
    if any(get_origin(each) is dict for each in kinds):
        yield path
    for struct in kinds:
        if isinstance(struct, type) and issubclass(struct, STRUCTS) and path.count(".") < 4:
            for field in fields(struct):
                yield from _maps(f"{path}.{field.encode_name}", field.type)


def _test_schema(variant: Any) -> dict[str, Any]:
    values = {wire: {"enum": list(allowed)} for wire, allowed in variant.consts.items()}
    inner = {wire: {"type": "object", "required": list(n)} for wire, n in variant.inner.items()}
    required = [*variant.required, *values, *inner]
    present = {w: {"not": {"type": "null"}} for w in variant.required if w not in variant.nullable}
    members = {**present, **values, **inner}
    return {"type": "object", "properties": members, "required": required}


@cache
def judge_values(revision: str) -> Judged:
    module = importlib.import_module(f"mcpgen_runtime.{names.folder(revision)}.models")
    definitions = schema.load(revision).definitions
    return Judged(module, definitions, facts.load(revision).default)


def module_of(source: str, name: str) -> Any:
    """A module of models, run as one of the committed package."""
    module = types.ModuleType(f"mcpgen_runtime.{name}.models")
    module.__package__ = f"mcpgen_runtime.{name}"
    sys.modules[module.__name__] = module
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    return module


def judged_file(path: Path) -> tuple[Judged, NormalizedSchema]:
    """The definitions of a schema file, and what its types are made from."""
    source = schema_sources.of_file(path)
    loaded = schema_sources.load(source, errata=True)
    stated = schema_facts.facts_for(loaded, source.base, None).facts
    later = schema_sources.newer_than(source.base, loaded)
    spec = stages.revision_spec(loaded, stated, docs.load(), later).models
    job = models.job(spec.normal, spec.unions, spec.docs, "Models.")
    module = module_of(models.render(spec.normal, job), "judged")
    return Judged(module, loaded.definitions, stated.default), spec.normal


def judged_draft(folder: Path) -> Judged:
    """The newest draft of the archive of published states."""
    return judged_file(write_newest_draft(folder))[0]


def judged_tasks(_: Path) -> Judged:
    """The tasks extension as it is read: with references in place of copies of definitions."""
    path = SPECIFICATION / "extensions" / "tasks" / "schema.json"
    revision = REVISIONS.newest().name
    (file,) = build_request.named_extensions([str(path)])
    stated = facts.load(revision)
    loaded = schema.load(revision)
    (extension,) = stages.revision_spec(loaded, stated, docs.Docs(), (), (file,)).extensions
    normal = extension.models.normal
    request = build_request.BuildRequest(
        "pkg",
        schema_sources.by_name((revision,)),
        extensions=(file,),
        selection=choice.selection(("types",)),
    )
    name = f"{names.folder(revision)}/{file.module}"
    text = pipeline.build(request, form=dict)[f"{name}/models.py"]
    noted = {note.pointer for note in normal.notes if note.text == "not checked"}
    definitions = {
        key: _without_unchecked(node, f"/$defs/{key}", noted)
        for key, node in normal.schema.definitions.items()
    } | {name: node for name, node in loaded.definitions.items() if name in extension.core}
    for node in (node for key, node in definitions.items() if key.endswith("TaskRequest")):
        members = node["allOf"][-1]["properties"]
        params = members["params"]
        for wire in stated.method(members["method"]["const"]).unchecked:
            params["properties"][wire] = {"type": "object"}
        params["required"] = [*params["required"], "_meta"]  # as in each request of the revision
        params["properties"]["_meta"] = {"type": "object"}
    return Judged(
        module_of(text, name.replace("/", ".")),
        definitions,
        lambda name, wire: None,
        judge_values(revision).models,
    )


def _without_unchecked(node: Any, pointer: str, noted: Collection[str]) -> Any:
    """A schema without the keywords that a note says are not checked."""
    if is_array(node):
        return [_without_unchecked(part, f"{pointer}/{at}", noted) for at, part in enumerate(node)]
    if not is_object(node):
        return node
    places = {key: f"{pointer}/{key}" for key in node}
    return {
        key: _without_unchecked(part, places[key], noted)
        for key, part in node.items()
        if places[key] not in noted
    }


def decodes(kind: Any, value: Any, package: Any = mcpgen_runtime) -> bool:
    """Whether a package decodes a value of one of its types."""
    try:
        package.decoder(kind)(json.dumps(value).encode())
    except (*UNREADABLE, package.DecodeError):
        return False
    return True


def differing_values(own: Judged, count: int) -> list[tuple[str, Any]]:
    """Values that decode, or do not, otherwise than schema and table say."""
    definitions = as_read(own.reading)
    judges = {name: own.judge(definitions, name) for name in definitions}
    return [
        (name, value)
        for name, value in own.cases(count)
        if decodes(own.kind(name), value) != judges[name](value)
    ]


@pytest.fixture(autouse=True)
def _without_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("mcpgen_runtime.judged")]:
        del sys.modules[name]


@REVISION
def test_values_decode_as_the_schema_and_the_table_say(revision: str) -> None:
    wrong = differing_values(judge_values(revision), CASES // len(REVISIONS))
    assert not wrong, f"{len(wrong)} differ, the first: {json.dumps(wrong[:3])}"


@OFFICIAL
@pytest.mark.parametrize("judge", [judged_draft, judged_tasks])
def test_drafts_and_extensions_decode_as_schema_and_table_say(
    judge: Callable[[Path], Judged], tmp_path: Path
) -> None:
    wrong = differing_values(judge(tmp_path), CASES // len(REVISIONS))
    assert not wrong, f"{len(wrong)} differ, the first: {json.dumps(wrong[:3])}"


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, 5, -1, 0.25, 0.5, 2.5, 3.5, 4.0, 1e30),
    *("", "a", "ab", "b", "abcd", "abcdefghijk", "x"),
    *([], ["a"], ["a", "a"], ["b", "a"], [1], [2], [3, 3], [0.5], ["a", 1], ["a", "b", 1], [None]),
    *({}, {"a": "x"}, {"a": 1}, {"b": 1}, {"a": "x", "b": 1}, {"a": "x", "b": "y"}, {"x-a": "x"}),
    *({"a": "x", "c": 1, "d": 2, "e": 3}, {"a": 1, "c": 2}, {"c": "x"}, {"name": "n", "more": 1}),
    *({"name": "n"}, {"name": ""}, {"name": "n", "late": 1, "size": 5}, {"name": "n", "size": "x"}),
)
"""Some value is valid and some is not for each kind of keyword."""


def test_each_kind_of_keyword_is_checked_or_noted(tmp_path: Path) -> None:
    own, normal = judged_file(save_schema(tmp_path, with_kinds(REVISIONS.newest().name)))
    definitions = as_read(own.reading)
    noted = {note.pointer.split("/")[2]: note.text for note in normal.notes}
    implied = {name for name, text in noted.items() if text.startswith("no type")}
    wrong: list[Any] = []
    for name, node in own.definitions.items():
        start = name.rstrip("0123456789")
        if start not in ("Kind", "Plain", "List") or name in implied:
            continue
        is_noted = name in noted or "/Tree" in str(node)
        judge = own.judge(definitions, name)
        for each in VALUES:
            value = {"Kind": {"value": each}, "List": {"values": [each]}}.get(start, each)
            allowed, taken = judge(value), decodes(own.kind(name), value)
            if taken is not allowed and not (taken and is_noted):
                wrong.append((name, value))
    assert wrong == []
    assert len(definitions) - len(noted) > 3 * len(KINDS)


INEXACT = {"list-roots-request.json", "read-resource-result-response.json"}
"""Examples with an id that their schema does not know, and without members that it requires."""


@OFFICIAL
def test_official_examples_are_valid_and_stay_what_they_are() -> None:
    count = 0
    for path in sorted(SPECIFICATION.glob("schema/*/examples/*/*.json")):
        own, name = judge_values(path.parts[-4]), path.parts[-2]
        value = json.loads(path.read_text())
        assert own.judge(own.definitions, name)(value), path
        same = json.loads(encode(decoder(own.kind(name))(path.read_bytes()))) == value
        assert same is (path.name not in INEXACT), path
        count += 1
    assert count


EXAMPLES: list[tuple[str, str, str, Any]] = [
    (
        "members of a JSON Schema",
        "2025-06-18",
        "Tool",
        {"name": "t", "inputSchema": {"type": "object", "required": [1]}},
    ),
    (
        "members of open objects",
        "2025-11-25",
        "JSONRPCResultResponse",
        {"jsonrpc": "2.0", "id": 1, "result": {"_meta": 1}},
    ),
    (
        "members of `_meta`",
        "2026-07-28",
        "PaginatedRequestParams",
        {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": 1,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            }
        },
    ),
    (
        "several members of a union",
        "2025-11-25",
        "PrimitiveSchemaDefinition",
        {"type": "string", "enum": 1},
    ),
    (
        "null for an optional member",
        "2025-03-26",
        "TextContent",
        {"type": "text", "text": "", "annotations": None},
    ),
    ("absent constants", "2024-11-05", "PingRequest", {}),
    ("absent members with a default", "2026-07-28", "EmptyResult", {}),
]
"""For each row a value about which the schema and the package disagree."""
EXAMPLE = pytest.mark.parametrize(
    ("row", "revision", "name", "value"), EXAMPLES, ids=[row for row, *_ in EXAMPLES]
)


@EXAMPLE
def test_each_row_of_the_table_is_a_difference(
    row: str, revision: str, name: str, value: Any
) -> None:
    own = judge_values(revision)
    allowed = own.judge(own.definitions, name)(value)
    assert decodes(own.kind(name), value) is not allowed
    assert own.judge(as_read(own.reading), name)(value) is not allowed
    assert own.judge(as_read(own.reading, without=row), name)(value) is allowed


def test_each_row_of_the_table_has_an_example() -> None:
    assert [row for row, *_ in EXAMPLES] == [*ROWS]
