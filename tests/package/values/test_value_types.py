"""Types that users annotate with: pydantic, constraints, unions, paths, formats, coercion."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypedDict, TypeVar

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, SecretStr, StringConstraints

import mcpgen_runtime
from kit.live import server_with
from kit.wire import ALL, every, facts, speaking_to, text_in
from mcpgen_runtime import Server, ToolResult, testing
from mcpgen_runtime.server.toolkit.signatures import read
from mcpgen_runtime.values.value_types import custom_schema, schema_of, value_type
from requirements import EVERY_REVISION

STRUCTURED = [name for name in ALL if facts(name).behaviour.structured_content != "none"]


class City(BaseModel):
    name: str = Field(description="As on the map.", pattern="^[A-Z]")
    people: int = Field(default=1, ge=1)


@pydantic.dataclasses.dataclass
class Point:
    x: Annotated[int, Field(le=10)]


@dataclass
class Trip:
    to: City
    days: Annotated[int, annotated_types.Ge(1)] = 1


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    count: int = Field(alias="n", ge=0)


@dataclass
class Small:
    a: int


@dataclass
class Large:
    a: int
    b: int = 0
    c: int = 0


@dataclass
class Other:
    x: str


class Holder(msgspec.Struct):
    a: Aliased


Item = TypeVar("Item")


@dataclass
class Box(Generic[Item]):
    item: Item


Ranged = Annotated[int, msgspec.Meta(ge=1), msgspec.Meta(le=3)]


@attrs.define
class Label:
    text: str


class Options(TypedDict):
    deep: bool


class Pair(NamedTuple):
    first: int
    second: int


Color = enum.Enum("Color", {"RED": "red", "BLUE": "blue", "AMBER": "amber"})


@dataclass
class Meeting:
    at: datetime
    ends: datetime | None = None
    size: Literal["s", "m", "l"] = "m"
    color: Color = Color.RED


def tool_schema(function: Callable[..., Any]) -> dict[str, Any]:
    return read(function, "tool").schema()


def of_type(kind: Any) -> Callable[..., Any]:
    """A function with one parameter, `value`."""

    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": kind}
    return function


def bound(kind: Any, value: Any, *, coerce: bool = True) -> Any:
    return read(of_type(kind), "tool").bind({"value": value}, coerce=coerce)["value"]


READ: list[tuple[Any, Any, Any]] = [
    (City | None, {"name": "Oslo"}, City(name="Oslo")),
    (list[City], [{"name": "Oslo", "people": 2}], [City(name="Oslo", people=2)]),
    (Trip, {"to": {"name": "Oslo"}}, Trip(City(name="Oslo"))),
    (Point, {"x": 3}, Point(3)),
    (PositiveInt, 1, 1),
    (SecretStr, "s", SecretStr("s")),
    (pydantic.AnyUrl, "https://a.example/", pydantic.AnyUrl("https://a.example/")),
    (Options, {"deep": True}, {"deep": True}),
    (Pair, [1, 2], Pair(1, 2)),
    (Label, {"text": "a"}, Label("a")),
    (Color, "blue", Color.BLUE),
    (list[Path], ["a"], [Path("a")]),
    (Decimal, "1.5", Decimal("1.5")),
    (int | str, "5", "5"),
    (Small | str, '{"a": 1}', '{"a": 1}'),
    (Any, "[1]", "[1]"),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (dict[str, Aliased | None], {"a": None, "b": {"n": 1}}, {"a": None, "b": Aliased(n=1)}),
    (Small | Large, {"a": 1}, Small(1)),
    (Large | Small, {"a": 1}, Small(1)),
    (Large | Small, {"a": 1, "c": 2}, Large(1, 0, 2)),
    (Small | Other | None, None, None),
    (list[Small | Other | None], [{"x": "y"}, {"a": 1}, None], [Other("y"), Small(1), None]),
    (Holder, {"a": {"n": 1}}, Holder(Aliased(n=1))),
    (Box[Path], {"item": "a"}, Box(Path("a"))),
    (list[Ranged], [1, 3], [1, 3]),
    (list[int] | str, "[1]", "[1]"),
    (tuple[Path, int], ["a", 1], (Path("a"), 1)),
]


@pytest.mark.parametrize(("kind", "value", "expected"), READ)
def test_data_becomes_the_annotated_type_and_data_again(
    kind: Any, value: Any, expected: Any
) -> None:
    assert bound(kind, value) == bound(kind, value, coerce=False) == expected
    if kind is not SecretStr:  # which hides its text
        assert value_type(kind).read(value_type(kind).write(expected)) == expected


def test_members_that_a_type_lacks_choose_no_other_one() -> None:
    assert value_type(Large | Small).read({"a": 1, "c": 2, "z": 3}) == Large(1, 0, 2)
    assert value_type(Small | Other).read({"x": "y", "z": 3}) == Other("y")


COERCED: list[tuple[Any, Any, Any]] = [
    (int, "5", 5),
    (bool, "true", True),
    (float, "1.5", 1.5),
    (list[int], "[1, 2]", [1, 2]),
    (list[int] | dict[str, int] | None, "[1]", [1]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (Small, '{"a": 2}', Small(2)),
    (City, '{"name": "Oslo"}', City(name="Oslo")),
    (City, {"name": "Oslo", "people": "7"}, City(name="Oslo", people=7)),
]


@pytest.mark.parametrize(("kind", "value", "expected"), COERCED)
def test_text_is_converted_to_other_types_unless_that_is_off(
    kind: Any, value: Any, expected: Any
) -> None:
    assert bound(kind, value) == expected
    with pytest.raises(ValueError, match="argument 'value'"):
        bound(kind, value, coerce=False)


REFUSED: list[tuple[Any, Any, str]] = [
    (City, {"name": "Oslo", "people": 0}, "'value': people: input should be greater than or equal"),
    (City, {"name": "oslo"}, "'value': name: string should match pattern"),
    (City, {}, "'value': name: field required"),
    (Trip, {"to": {"name": "Oslo"}, "days": 0}, "'value': days: input should be greater"),
    (Annotated[int, Field(ge=2)], 1, "'value': input should be greater than or equal to 2, got 1"),
    (Annotated[int, annotated_types.Gt(2)], 2, "greater than 2"),
    (Annotated[str, annotated_types.Len(2, 3)], "a", "at least 2"),
    (Annotated[str, StringConstraints(max_length=2)], "abc", "at most 2"),
    (Path, 1, "'value': expected a path, got 1"),
    (list[Path], ["a\0"], "expected a path, got 'a\\x00'"),
    (list[int], "[1", "'value': expected array, got str"),
    (Small | Other, {"weight": 1}, "expected one of 2 types; Small: "),
    (Small | Other, {"a": "b"}, "expected one of 2 types; Small: "),
    (dict[int, str], {"x": "a"}, "'value': a key: expected int, got str"),
    (list[Ranged], [0], "expected int >= 1"),
    (list[Ranged], [4], "expected int <= 3"),
    (Box[int], {"item": "a"}, "'value.item': expected int, got str"),
    (Holder, {"a": {"n": -1}}, "n: input should be greater than or equal to 0, got -1"),
]


@pytest.mark.requirement("tools.server-validates-inputs", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("kind", "value", "complaint"), REFUSED)
def test_a_value_that_breaks_a_constraint_is_refused_with_place(
    kind: Any, value: Any, complaint: str
) -> None:
    with pytest.raises(ValueError, match="argument") as caught:
        bound(kind, value)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("count", "rest"), [(5, ""), (6, "; and 1 more")])
def test_five_reasons_are_shown(count: int, rest: str) -> None:
    members: Any = {f"m{number}": (int, ...) for number in range(count)}
    with pytest.raises(ValueError, match=f"m4: field required{rest}, got"):
        bound(pydantic.create_model("Model", **members), {})


Noted = Annotated[int | None, msgspec.Meta(description="d")]

SCHEMAS: list[tuple[Any, Any]] = [
    (
        Annotated[int, Field(ge=2, description="d", examples=[3])],
        {"type": "integer", "minimum": 2, "description": "d", "examples": [3]},
    ),
    (Annotated[str, StringConstraints(pattern="^a")], {"type": "string", "pattern": "^a"}),
    (Literal["z", "a"], {"enum": ["z", "a"], "type": "string"}),
    (Literal[2, 1], {"enum": [2, 1], "type": "integer"}),
    (Path, {"type": "string"}),
    (Decimal, {"type": "string"}),
    (pydantic.AnyUrl, {"type": "string", "format": "uri", "minLength": 1}),
    (datetime, {"type": "string", "format": "date-time"}),
    (datetime | None, {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (
        Optional[Noted],  # noqa: UP045 - as users write
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"},
    ),
]


@pytest.mark.parametrize(("kind", "expected"), SCHEMAS)
def test_the_schema_says_what_the_type_says(kind: Any, expected: Any) -> None:
    assert tool_schema(of_type(kind))["properties"]["value"] == expected


def test_enums_keep_their_order_and_times_within_a_class_have_a_format() -> None:
    assert tool_schema(of_type(Color))["$defs"]["Color"]["enum"] == ["red", "blue", "amber"]
    fields = tool_schema(of_type(Meeting))["$defs"]["Meeting"]["properties"]
    assert fields["at"]["format"] == "date-time"
    assert {"type": "string", "format": "date-time"} in fields["ends"]["anyOf"]
    assert fields["size"]["enum"] == ["s", "m", "l"]


OSLO = City(name="Oslo")


def test_defaults_stand_in_the_schema() -> None:
    def function(
        color: Color = Color.BLUE,
        city: City = OSLO,
        limit: int = Field(default=3, ge=1, description="How many."),
    ) -> None: ...

    properties = tool_schema(function)["properties"]
    assert properties["color"]["default"] == "blue"
    assert properties["city"]["default"] == {"name": "Oslo", "people": 1}
    assert properties["limit"] == {
        "type": "integer",
        "default": 3,
        "minimum": 1,
        "description": "How many.",
    }
    assert read(function, "tool").bind({})["limit"] == 3


def test_required_fields_and_default_factories_work() -> None:
    def function(
        needed: int = Field(ge=1),
        tags: list[str] = Field(default_factory=list),  # noqa: B008 - pydantic's own way
    ) -> None: ...

    assert tool_schema(function)["required"] == ["needed"]
    first, second = (read(function, "tool").bind({"needed": 1})["tags"] for _ in range(2))
    assert first == []
    assert first is not second


class Mixed(msgspec.Struct):
    count: Annotated[int, Field(ge=1)]


UNSERVABLE: list[tuple[Any, str]] = [
    (Annotated[int, Field(alias="n")], "expected no alias"),
    (Annotated[int, Field(validation_alias="n")], "expected no alias"),
    (Annotated[int, Field(default_factory=lambda data: 1)], "default_factory without parameters"),
    (Mixed, "can't be checked"),
]


@pytest.mark.parametrize(("kind", "complaint"), UNSERVABLE)
def test_types_that_nothing_would_check_are_refused(kind: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        read(of_type(kind), "tool")


def test_models_of_one_name_have_definitions_of_their_own() -> None:
    other = pydantic.create_model("City", zip=(int, ...))

    def function(a: Any, b: Any) -> None: ...

    function.__annotations__ = {"a": list[City], "b": types.GenericAlias(list, other)}
    schema = tool_schema(function)
    a, b = (schema["properties"][name]["items"]["$ref"].rpartition("/")[2] for name in "ab")
    assert (a, b) == ("City", "City2")
    assert "zip" in schema["$defs"][b]["properties"]
    assert "people" in schema["$defs"][a]["properties"]


WITHOUT_PYDANTIC = """
import sys
from typing import Annotated
import annotated_types
from mcpgen_runtime.server.toolkit.signatures import read

def function(count: Annotated[int, annotated_types.Interval(ge=1, le=3)]) -> None: ...
def unchecked(count: Annotated[int, annotated_types.Predicate(bool)]) -> None: ...

signature = read(function, "tool")
assert signature.schema()["properties"]["count"] == {"type": "integer", "minimum": 1, "maximum": 3}
try:
    signature.bind({"count": 4})
except ValueError as error:
    print(error)
try:
    read(unchecked, "tool")
except TypeError as error:
    print("without pydantic" in str(error))
print("pydantic" in sys.modules)
"""


@pytest.mark.structs("models of pydantic import pydantic")
def test_constraints_work_without_pydantic_being_imported() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYDANTIC],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(mcpgen_runtime.__file__).parents[1],
    )
    assert run.stdout.splitlines() == [
        "argument 'count': expected int <= 3, got 4",
        "True",
        "False",
    ]


@pytest.fixture
def server() -> Server:
    """A server whose tools and prompt take and give models."""
    server = Server("values")

    @server.tool()
    async def settle(city: City, limit: int = Field(default=3, le=5)) -> City:
        return City(name=city.name, people=limit)

    @server.tool()
    async def loose(name: str):  # type: ignore[no-untyped-def]  # the value decides
        return {"city": City(name=name), "at": Path("a")}

    @server.tool()
    async def explicit() -> Annotated[ToolResult, City]:
        return ToolResult(structured=City(name="Oslo"))

    @server.prompt()
    async def about(cities: list[str], city: City, count: int) -> str:
        return f"{cities} {city.name} {count}"

    return server


@every
async def test_models_come_in_and_go_out(server: Server, revision: str) -> None:
    arguments = {"city": {"name": "Oslo"}, "limit": 4}
    async with speaking_to(server, revision) as end:
        answer = await end.ask("tools/call", {"name": "settle", "arguments": arguments})
        assert json.loads(text_in(answer)) == {"name": "Oslo", "people": 4}
        if revision in STRUCTURED:
            assert answer["result"]["structuredContent"] == {"name": "Oslo", "people": 4}
        answer = await end.ask("tools/call", {"name": "loose", "arguments": {"name": "Oslo"}})
        value = {"city": {"name": "Oslo", "people": 1}, "at": "a"}
        assert json.loads(text_in(answer)) == value


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_a_tool_result_can_name_its_output_type(server: Server, revision: str) -> None:
    async with speaking_to(server, revision) as end:
        tools = (await end.ask("tools/list"))["result"]["tools"]
        answer = await end.ask("tools/call", {"name": "explicit"})
    (tool,) = [each for each in tools if each["name"] == "explicit"]
    assert tool["outputSchema"]["properties"]["people"]["minimum"] == 1
    assert answer["result"]["structuredContent"] == {"name": "Oslo", "people": 1}


async def test_a_server_may_insist_on_types() -> None:
    strict = Server("strict", coerce=False)
    strict.tool("exact")(of_type(int))
    async with testing.connected(strict) as pair:
        refused = await pair.client.call_tool("exact", {"value": "3"})
        assert "expected int, got str" in refused.content[0].text
        assert (await pair.client.call_tool("exact", {"value": 3.0})).content[0].text == "3"


@every
async def test_prompt_arguments_may_be_json(server: Server, revision: str) -> None:
    arguments = {"cities": '["a", "b"]', "city": '{"name": "Oslo"}', "count": "2"}
    async with speaking_to(server, revision) as end:
        answer = await end.ask("prompts/get", {"name": "about", "arguments": arguments})
    assert answer["result"]["messages"][0]["content"]["text"] == "['a', 'b'] Oslo 2"


class Route(BaseModel):
    stops: list[City]
    start: City | None = None


@pytest.mark.parametrize("kind", [Route, list[Route], Route | None, dict[str, Route]])
async def test_the_output_schema_has_the_models_within_a_model(kind: Any) -> None:
    routes = Server("routes", schemas="refs")
    route = Route(stops=[City(name="Oslo")])
    values: dict[Any, Any] = {list[Route]: [route], dict[str, Route]: {"a": route}}

    def plan() -> Any:
        return values.get(kind, route)

    plan.__annotations__["return"] = kind
    routes.add_tool(plan)
    async with testing.connected(routes) as pair:
        result = await pair.client.call_tool("plan")  # refused, if it does not fit the schema
        (tool,) = await pair.client.list_tools()
    assert not result.is_error
    assert "Oslo" in json.dumps(result.structured_content)
    assert {"City"} <= dict(tool.output_schema or {})["$defs"].keys()


@dataclass
class Part:
    """A part.

    It may have parts of its own.
    """

    name: str
    parts: list[Part]


async def test_a_recursive_class_is_a_structured_object() -> None:
    def take(part: Part) -> Part:
        return part

    wire = {"name": "desk", "parts": [{"name": "leg", "parts": []}]}
    async with testing.connected(server_with(take)) as pair:
        result = await pair.client.call_tool("take", {"part": wire})
        (tool,) = await pair.client.list_tools()
    assert result.structured_content == wire
    schema = dict(tool.output_schema or {})
    assert schema["type"] == "object"
    assert schema["description"] == "A part.\n\nIt may have parts of its own."


@pytest.mark.parametrize("kind", [object, types.ModuleType])
def test_a_type_without_a_json_form_is_refused_with_alternatives(kind: Any) -> None:
    async def take(value: Any) -> None: ...

    take.__annotations__["value"] = kind
    with pytest.raises(TypeError, match=r"tool 'take': <class .*> has no JSON form; Any, a datacl"):
        Server("strict").add_tool(take)


def test_a_model_is_written_by_its_own_rules() -> None:
    assert value_type(Aliased).write(Aliased(n=1)) == {"n": 1}
    assert value_type(Holder).write(Holder(Aliased(n=1))) == {"a": {"n": 1}}
    assert value_type(Annotated[int, pydantic.PlainSerializer(str)]).write(5) == "5"
    with pytest.raises(ValueError, match="greater than 0"):
        value_type(pydantic.PositiveInt).write(-1)
    with pytest.raises(ValueError, match="`int` >= 1"):
        value_type(Ranged).write(0)


def test_a_type_that_pydantic_refuses_is_an_error_of_one_line() -> None:
    class Calling(BaseModel):
        call: Callable[[], int]

    with pytest.raises(TypeError) as caught:
        value_type(Annotated[types.ModuleType, Field(description="d")])
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError) as caught:
        schema_of(value_type(Calling).kind)
    assert "\n" not in str(caught.value)


class Computed(BaseModel):
    """A model with a member that only the written form has."""

    a: int = 1

    @pydantic.computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def b(self) -> int:
        """Twice the first."""
        return 2 * self.a


def test_the_schema_of_what_is_written_has_computed_members() -> None:
    kind = value_type(Computed).kind
    assert list(schema_of(kind)["properties"]) == ["a"]
    assert list(schema_of(kind, "serialization")["properties"]) == ["a", "b"]
    assert "title" not in schema_of(kind)["properties"]["a"]
    with pytest.raises(TypeError, match="has no JSON form; Any, a dataclass"):
        custom_schema(object, use="validation")
