"""Schemas of arguments in the subsets that the APIs of models read, by a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from mcpgen_runtime import Server, connect
from mcpgen_runtime.client.host import ModelApi
from mcpgen_runtime.client.property_keys import PropertyKeys
from mcpgen_runtime.client.strict_schemas import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    SUBSETS,
    NotStrictError,
    Reduction,
    Subset,
    without_absent,
)
from package.client.test_model_tools import model_call, schemas

TEXT, NUMBER, NULL = ({"type": kind} for kind in ("string", "integer", "null"))


OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": TEXT}}
DEFINITIONS = {
    "Text": TEXT,
    "Loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}},
}


CONSTANTS: list[Any] = ["a", 1, True, None, 1.5, []]
DEFAULTS: list[Any] = ["a", None]
MEMBERS: list[Any] = [
    *(True, {}, 5, TEXT, {**TEXT, "description": "d"}, {**TEXT, "description": 5}),
    *({"$ref": place} for place in ("#", "#/$defs/Text", "#/$defs/Loop", "#/x", "x", 5)),
    {"$ref": "#/$defs/Loop", "description": "d", "default": None},
    *({**TEXT, "format": name} for name in ("uuid", "uri", "date-time", "own")),
    {**NUMBER, "format": "int32"},
    *(
        {**TEXT, "pattern": pattern}
        for pattern in ("^a$", "(?=a)b", "a(?!b)", "(?<a)", "\\bb", "\\1")
    ),
    *({**TEXT, "minLength": 1, "maxLength": 2, "x-own": 1, "examples": ["a"]},),
    *({**NUMBER, key: 1} for key in ("minimum", "maximum", "multipleOf", "exclusiveMinimum")),
    *({**TEXT, "default": value} for value in DEFAULTS),
    *({**TEXT, "title": "t", "deprecated": True, "readOnly": True, "$comment": "c"},),
    *({"const": value} for value in CONSTANTS),
    *({"enum": values} for values in (["a"], ["a", 1], [1, 2], [None, "a"], [None], [])),
    {"type": "string", "enum": ["a", None]},
    {"type": ["string", "null"], "enum": ["a", None]},
    {"type": ["string", "integer", "null"], "enum": ["a", None]},
    {"type": ["string", "integer"], "minimum": 1, "minLength": 2, "description": "d"},
    *({"type": kind} for kind in (["string", "null"], ["null"], [], ["string", 5], "file", None)),
    {"type": ["string", "integer"], "enum": ["a", 1]},
    {"type": "array"},
    *({"type": "array", "items": items} for items in (TEXT, {}, True, [TEXT])),
    {"type": "array", "items": TEXT, "prefixItems": [TEXT]},
    *({"type": "array", "items": TEXT, "minItems": count} for count in (0, 1, 2)),
    {"type": "array", "items": TEXT, "maxItems": 3, "uniqueItems": True},
    *(
        OBJECT,
        {**OBJECT, "required": ["a"]},
        {**OBJECT, "required": ["b"]},
        {"properties": {"a": TEXT}},
    ),
    *({**OBJECT, "additionalProperties": more} for more in (True, False, TEXT, None)),
    {**OBJECT, "patternProperties": {}},
    {**OBJECT, "minProperties": 1, "propertyNames": {}},
    *({"type": "object", **more} for more in ({}, {"additionalProperties": False})),
    *(
        {"type": "object", "properties": {}, **more}
        for more in ({}, {"additionalProperties": False})
    ),
    *({key: [TEXT, NUMBER]} for key in ("anyOf", "oneOf", "allOf")),
    *({"anyOf": branches} for branches in ([], [NULL], [TEXT], [TEXT, NULL], [TEXT, True], 5)),
    {"anyOf": [TEXT, NULL], "description": "d", "default": None, "title": "t"},
    {"anyOf": [{**TEXT, "description": "own"}, NUMBER, NULL], "description": "d"},
    {"anyOf": [TEXT, NUMBER], "minimum": 1},
    {"anyOf": [TEXT, NUMBER], "$comment": "c", "default": "a"},
    *({"allOf": parts} for parts in ([], [5], [TEXT], [{"allOf": [TEXT]}], 5)),
    {"allOf": [TEXT], "description": "d"},
    {"allOf": [{**TEXT, "description": "own"}], "description": "d"},
    {"allOf": [TEXT], "type": "string"},
    {"allOf": [{"$ref": "#/$defs/Loop"}], "description": "d"},
    {"allOf": [{"$ref": "#/$defs/Loop"}], "minProperties": 1},
]
BY_API = {"openai": OPENAI, "anthropic": ANTHROPIC, "gemini": GEMINI}


def reduce_schema(subset: Subset, schema: Any) -> str:
    """The reduced schema and its notes, or why there is none."""
    reduction = Reduction(subset)
    try:
        return " | ".join([json.dumps(reduction.reduce_arguments(schema)), *reduction.notes])
    except NotStrictError as error:
        return f"not strict: {error}"


def arguments(schema: Any, *required: str) -> dict[str, Any]:
    """A schema of arguments with a member of a schema, that is required or not."""
    own = {"type": "object", "properties": {"m": schema}, "additionalProperties": False}
    return {
        **own,
        "required": [*required],
        **({"$defs": DEFINITIONS} if "$ref" in str(schema) else {}),
    }


def test_schemas_are_reduced_or_refused_so(snapshot: SnapshotAssertion) -> None:
    rows = {
        f"{number}: {json.dumps(schema)}": {
            name: reduce_schema(subset, arguments(schema, "m")) for name, subset in BY_API.items()
        }
        for number, schema in enumerate(MEMBERS)
    }
    assert rows == snapshot


def test_optional_members_are_reduced_so(snapshot: SnapshotAssertion) -> None:
    kinds = (TEXT, {"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NULL]}, {**TEXT, "default": "a"})
    assert [reduce_schema(OPENAI, arguments(schema)) for schema in kinds] == snapshot
    assert [reduce_schema(GEMINI, arguments(schema)) for schema in kinds] == snapshot


@pytest.mark.parametrize(
    "schema", [{}, {"type": "array"}, {"properties": {}}, {"type": "object", "$ref": "#"}]
)
def test_arguments_are_an_object(schema: dict[str, Any]) -> None:
    assert reduce_schema(OPENAI, schema) == "not strict: /: not an object"


@pytest.mark.parametrize(("name", "levels"), [("default", 100), ("openai", 10), ("gemini", 100)])
def test_an_api_reads_so_many_levels(name: str, levels: int) -> None:
    subset = {"default": Subset(frozenset(), frozenset()), **SUBSETS}[name]
    node: dict[str, Any] = TEXT
    for _ in range(levels - 2):
        node = {"type": "array", "items": node}
    assert reduce_schema(subset, arguments(node, "m")).startswith("{")
    deeper = reduce_schema(subset, arguments({"type": "array", "items": node}, "m"))
    place = f"/properties/m{'/items' * (levels - 1)}"
    assert deeper == f"not strict: {place}: more than {levels} levels"


OPTIONAL = {"type": "object", "properties": {"a": TEXT, "b": {"type": ["string", "null"]}}}
ABSENT: list[tuple[Any, Any, Any]] = [
    (OPTIONAL, {"a": None, "b": None, "c": None}, {"b": None, "c": None}),
    (OPTIONAL, {"a": "x", "b": "y"}, {"a": "x", "b": "y"}),
    ({**OPTIONAL, "required": ["a"]}, {"a": None}, {"a": None}),
    ({**OPTIONAL, "required": None}, {"a": None}, {}),
    ({**OPTIONAL, "required": "a"}, {"a": None}, {}),
    *(
        ({"properties": {"a": accepting}}, {"a": None}, {"a": None})
        for accepting in (
            *({}, True, NULL, {"enum": ["a", None]}, {"const": None}, {"anyOf": [TEXT, NULL]}),
            *({"oneOf": [NULL]}, {"allOf": [{"type": ["null"]}]}),
        )
    ),
    *(
        ({"properties": {"a": refusing}}, {"a": None}, {})
        for refusing in (False, TEXT, {"enum": ["a"]}, {"const": 0}, {"anyOf": [TEXT, NUMBER]})
    ),
    ({"properties": {"a": OPTIONAL}}, {"a": {"a": None, "b": None}}, {"a": {"b": None}}),
    (
        {"properties": {"a": {"items": OPTIONAL}}},
        {"a": [{"a": None}, 5, None]},
        {"a": [{}, 5, None]},
    ),
    ({"anyOf": [OPTIONAL, {"properties": {"a": NUMBER}}]}, {"a": None}, {}),
    ({"anyOf": [OPTIONAL, {**OPTIONAL, "required": ["a"]}]}, {"a": None}, {"a": None}),
    ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": OPTIONAL}}, {"a": None}, {}),
    ({"$ref": "#/$defs/z", "$defs": {"x": OPTIONAL}}, {"a": None}, {"a": None}),
    ({"properties": {"a": {"$ref": "#"}, "b": TEXT}}, {"a": {"b": None}}, {"a": {}}),
]


@pytest.mark.parametrize(("schema", "given", "expected"), ABSENT)
def test_null_stands_for_an_absent_member_only(schema: Any, given: Any, expected: Any) -> None:
    assert without_absent(given, schema) == expected


@pytest.mark.parametrize("depth", [50, 5000])
def test_alternatives_within_alternatives_end_somewhere(depth: int) -> None:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        node = {"anyOf": [node]}
    schema = {"type": "object", "properties": {"a": node}}
    if depth > 100:
        with pytest.raises(NotStrictError, match="too deep"):
            Reduction(BY_API["anthropic"]).reduce_arguments(schema)
    else:
        reduced = Reduction(BY_API["anthropic"]).reduce_arguments(schema)
        assert reduced["properties"] == {"a": {"type": "string"}}


WORDS = st.sampled_from(
    [
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "enum", "const"),
        *("$ref", "$defs", "format", "pattern", "default", "additionalProperties", "minItems"),
        *("string", "object", "array", "null", "integer", "#", "#/$defs/type", "[", "$id"),
    ]
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(WORDS, VALUES, max_size=4), st.dictionaries(WORDS, VALUES, max_size=3))
def test_any_schema_is_reduced_or_refused(schema: dict[str, Any], arguments: Any) -> None:
    without_absent(arguments, schema)
    for subset in BY_API.values():
        with suppress(NotStrictError):
            assert (
                Reduction(subset).reduce_arguments({**schema, "type": "object"})["type"] == "object"
            )


PATTERNS = {  # of Anthropic's error and of parameters in Gemini's FunctionDeclaration
    "anthropic": re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
}
LONG = "x" * 65
KEYS = ["$filter", "filter[name]", "user name", "\u00e9", LONG, "", "2nd", "a.b", "a-b", "fine"]

REFUSED: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{key: {"type": "string"} for key in KEYS},
        "_filter": {"type": "string"},  # what `$filter` would become
        "inner": {
            "type": "object",
            "properties": {"@type": {"type": "string"}, "plain": {"type": "integer"}},
            "required": ["@type"],
            "default": {"@type": "a"},
        },
        "list": {"type": "array", "items": {"$ref": "#/$defs/item[0]"}},
        "free": {"type": "object", "additionalProperties": {"$ref": "#/$defs/item[0]"}},
        "either": {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"$or": {"type": "string"}}},
            ]
        },
    },
    "required": ["$filter", "inner"],
    "dependentRequired": {"user name": ["$filter"]},
    "$defs": {"item[0]": {"type": "object", "properties": {"the item": {"type": "string"}}}},
}


def properties(node: Any) -> Iterator[str]:
    """The names of properties in a schema, at any depth."""
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for each in node.values():
            yield from properties(each)
    elif isinstance(node, list):
        for each in node:
            yield from properties(each)


def server_of(schema: dict[str, Any]) -> Server:
    server = Server("s")

    @server.tool(input_schema=schema)
    def search(**arguments: Any) -> str:
        return json.dumps(arguments, sort_keys=True)

    return server


@pytest.mark.on_asyncio
@pytest.mark.parametrize("api", ["openai", "openai-chat"])
async def test_an_api_without_a_pattern_gets_all_names(api: ModelApi) -> None:
    async with connect(server_of(REFUSED)) as client:
        tools = await client.tools_for(api)
    function = tools[0].get("function", tools[0])
    assert [*properties(function["parameters"])] == [*properties(REFUSED)]
    assert not tools.notes


@pytest.mark.parametrize("api", [*PATTERNS, None])
def test_references_and_rules_follow_the_names(
    api: str | None, snapshot: SnapshotAssertion
) -> None:
    rows: list[str] = []
    for row in json.loads(Path(__file__).with_name("named_properties.json").read_text("utf-8")):
        keys = PropertyKeys(row["schema"], PATTERNS[api] if api else None)
        restored = json.dumps(keys.restore(row["arguments"]))
        rows += [json.dumps(keys.schema), *keys.notes, f"  {restored}"]
        assert (keys.schema is row["schema"]) == (not keys.notes)
    assert rows == snapshot


def test_a_schema_that_is_too_deep_keeps_its_names_with_a_note() -> None:
    schema: dict[str, Any] = {"properties": {"a b": {}}}
    for _ in range(3000):
        schema = {"properties": {"x": schema}}
    keys = PropertyKeys(schema, PATTERNS["anthropic"])
    assert keys.schema is schema
    assert keys.notes == ["/: the schema is too deep to check its names"]
    assert keys.restore({"x": 1}) == {"x": 1}


@given(names=st.lists(st.text(max_size=80), unique=True, max_size=8))
def test_any_names_are_accepted_distinct_and_lead_back(names: list[str]) -> None:
    schema: dict[str, Any] = {"properties": {name: {} for name in names}}
    for pattern in PATTERNS.values():
        declared = PropertyKeys(schema, pattern)
        accepted = [*declared.schema["properties"]]
        assert all(pattern.fullmatch(name) for name in accepted)
        assert len(set(accepted)) == len(names)
        arguments = dict(zip(accepted, names, strict=True))
        assert declared.restore(arguments) == {name: name for name in names}


@pytest.mark.on_asyncio
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("listed", [True, False], ids=["same client", "another client"])
@pytest.mark.parametrize("api", ["anthropic", "gemini"])
async def test_names_that_an_api_refuses_are_replaced_and_lead_back(
    api: ModelApi, listed: bool, strict: bool
) -> None:
    async with connect(server_of(REFUSED)) as client:
        tools = await client.tools_for(api, strict=strict)
    schema = schemas(api, tools)["search"]
    assert all(PATTERNS[api].fullmatch(name) for name in properties(schema))
    assert len(schema["properties"]) == len(REFUSED["properties"])
    assert set(schema["required"]) <= set(schema["properties"])
    assert schema["properties"]["inner"]["required"] == ["_type"]
    notes = "\n".join(tools.notes["search"])
    assert "/properties/inner/properties/@type: declared as _type" in notes
    names = dict(re.findall(r"/properties/([^/]*): declared as (.*)", notes))
    assert {*KEYS[:6]} <= names.keys()
    assert "fine" not in names
    nested = {"list": [{"the_item": "x"}, {}], "free": {"$filter": {"the_item": "y"}}}
    declared = {names.get(key, key): f"value of {key}" for key in KEYS}
    async with connect(server_of(REFUSED)) as client:
        if listed:
            await client.tools_for(api, strict=strict)
        called = {**declared, "inner": {"_type": "a", "plain": 1}, **nested}
        answer = await client.call_from(model_call(api, "search", called))
    text = (
        answer["functionResponse"]["response"]["output"]
        if api == "gemini"
        else answer["content"][0]["text"]
    )
    assert json.loads(text) == {
        **{key: f"value of {key}" for key in KEYS},
        "inner": {"@type": "a", "plain": 1},
        "list": [{"the item": "x"}, {}],
        "free": {"$filter": {"the item": "y"}},
    }
