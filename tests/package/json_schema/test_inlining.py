"""Schemas without references: what is inlined, and what stays a reference."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kit.wire import PER_REQUEST
from mcpgen_runtime import Server, connect
from mcpgen_runtime.json_schema.inlining import INLINED_PARTS, inline_references
from package.tables import table

pytestmark = pytest.mark.on_asyncio

TEXT: dict[str, Any] = {"type": "string"}


def with_definitions(properties: Any, **definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "$defs": definitions}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


UNIT = {"enum": ["c", "k"]}
INLINED: dict[str, dict[str, Any]] = table("inlined_references")
"""Schemas, and their properties with the definitions in place of references."""


@pytest.mark.parametrize("case", INLINED)
def test_definitions_take_the_place_of_references(case: str) -> None:
    schema, properties = INLINED[case]["schema"], INLINED[case]["properties"]
    before = copy.deepcopy(schema)
    assert inline_references(schema) == {"type": "object", "properties": properties}
    assert schema == before


NODE = {
    "type": "object",
    "properties": {"unit": ref("Unit"), "next": {"type": "array", "items": ref("Other")}},
}
OTHER = {"type": "object", "properties": {"node": ref("Node")}}


def test_recursion_stays_a_reference_and_the_rest_is_inlined() -> None:
    schema = with_definitions(
        {"n": ref("Node"), "u": ref("Unit")}, Node=NODE, Other=OTHER, Unit=UNIT
    )
    result = inline_references(schema)
    assert result["properties"] == {"n": ref("Node"), "u": UNIT}
    assert set(result["$defs"]) == {"Node", "Other"}
    assert result["$defs"]["Node"]["properties"]["unit"] == UNIT
    values: list[Any] = [
        {"n": {"unit": "c", "next": [{"node": {"unit": "k"}}]}, "u": "c"},
        {"n": {"next": [{"node": {"unit": "x"}}]}},
        {"u": "x"},
        {},
    ]
    for value in values:
        assert Draft202012Validator(result).is_valid(value) == Draft202012Validator(
            schema
        ).is_valid(value)


def doubling_schema(levels: int) -> dict[str, Any]:
    """A schema that has twice as many parts at each level when it is inlined."""
    names = [f"L{level}" for level in range(levels)]
    definitions = {
        name: {"type": "object", "properties": {"a": ref(after), "b": ref(after)}}
        for name, after in zip(names, [*names[1:], "End"], strict=True)
    }
    return with_definitions({"x": ref("L0")}, **definitions, End=TEXT)


@pytest.mark.parametrize(
    "schema",
    [
        doubling_schema(INLINED_PARTS.bit_length()),
        with_definitions({"a": {"$ref": "#/$defs/T/properties/x"}}, T={"properties": {"x": TEXT}}),
        with_definitions({"a": {"$ref": "https://nowhere.test/s"}}, T=TEXT),
        with_definitions({"a": ref("T")}, T={**TEXT, "$id": "https://nowhere.test/t"}),
        {"type": "object", "$defs": [], "properties": {"a": ref("T")}},
    ],
    ids=["too-large", "a-place-within", "elsewhere", "another-base", "no-definitions"],
)
def test_a_schema_that_needs_its_references_is_left_as_it_is(schema: dict[str, Any]) -> None:
    assert inline_references(schema) is schema


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": TEXT}}, with_definitions({"a": TEXT})])
def test_a_schema_without_definitions_is_left_as_it_is(schema: dict[str, Any]) -> None:
    assert inline_references(schema) is schema


def test_rules_beside_a_reference_keep_it() -> None:
    schema = with_definitions({"a": {**ref("T"), "maxLength": 3}, "b": ref("T")}, T=TEXT)
    result = inline_references(schema)
    assert result["properties"] == {"a": {**ref("T"), "maxLength": 3}, "b": TEXT}
    assert result["$defs"] == {"T": TEXT}


@dataclass
class Place:
    lat: float


@pytest.mark.parametrize("revision", PER_REQUEST[-1:])
async def test_listed_tools_have_no_references_unless_they_shall(revision: str) -> None:
    listed: dict[str, Any] = {}
    server = Server("weather")
    for form in ("refs", "inline"):
        server = Server("weather", schemas=form)

        @server.tool
        def locate(place: Place) -> list[Place]:
            return [place]

        async with connect(server, revision=revision) as client:
            (listed[form],) = await client.list_tools()
            assert await client.call_tool("locate", {"place": {"lat": 1}}, returns=list[Place]) == [
                Place(1.0)
            ]
    place = listed["inline"].input_schema["properties"]["place"]
    assert place["properties"] == {"lat": {"type": "number"}}
    assert "$defs" not in {**listed["inline"].input_schema, **listed["inline"].output_schema}
    assert listed["refs"].input_schema["properties"]["place"] == ref("Place")
    assert "$defs" in listed["refs"].output_schema
    own = {**with_definitions({"a": ref("T")}, T=TEXT), "required": ["a"]}
    server.add_tool(lambda a: a, name="own", input_schema=own)
    async with connect(server, revision=revision) as client:
        assert (await client.list_tools())[-1].input_schema == own
    with pytest.raises(ValueError, match="schemas: expected inline or refs, got 'refz'"):
        Server("weather", schemas="refz")  # type: ignore[arg-type]  # to be refused
