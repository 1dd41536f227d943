"""JSON Schemas of others that ask for more than there is time: every keyword has a bound.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import repeat
from typing import Any

import anyio
import anyio.lowlevel
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.live import TEXT
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from mcpgen_runtime import McpError, RemoteProtocolError, Server, Timeouts, connect
from mcpgen_runtime.json_schema import Deadline
from mcpgen_runtime.json_schema.keywords import ID_CHARACTERS, MULTIPLE_BITS
from mcpgen_runtime.json_schema.validation import (
    SCHEMA_PARTS,
    complaint_in_time,
    validator,
    validator_in_time,
)

pytestmark = pytest.mark.on_asyncio

VALIDATING = revisions_holding("tools.output-client-validates")
DIALECTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]

OBJECTS = [{"i": n} for n in range(20_000)]
EVIL = "^(a+)+$"
LONG = "a" * 40 + "!"


def says(schema: Any, value: Any) -> str | None:
    """The error of a value, or of the schema; `None` if the value is valid."""
    try:
        return validator(schema, "testing")(value)
    except ValueError as error:
        return str(error)


def chain(keyword: str) -> dict[str, Any]:
    """Schemas that refer to each other twice, so that each doubles the work."""
    links = {f"n{at}": {keyword: [{"$ref": f"#/$defs/n{at + 1}"}] * 2} for at in range(40)}
    return {"$ref": "#/$defs/n0", "$defs": {**links, "n40": {"type": "integer"}}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        pytest.param({"pattern": EVIL}, LONG, "does not match", id="pattern"),
        pytest.param({"patternProperties": {EVIL: False}}, {LONG: 1}, None, id="patternProperties"),
        pytest.param(
            {"patternProperties": {EVIL: {}}, "additionalProperties": False},
            {LONG: 1},
            "were unexpected|was unexpected",
            id="additionalProperties",
        ),
        pytest.param(
            {"patternProperties": {EVIL: {}}, "unevaluatedProperties": False},
            {LONG: 1},
            "unexpected",
            id="unevaluatedProperties",
        ),
        pytest.param({"propertyNames": {"pattern": EVIL}}, {LONG: 1}, "match", id="propertyNames"),
        pytest.param({"uniqueItems": True}, OBJECTS, None, id="uniqueItems"),
        pytest.param({"uniqueItems": True}, [*OBJECTS, {"i": 0}], "non-unique", id="not unique"),
        pytest.param(
            {"uniqueItems": True},
            [(2**61 - 1) * n for n in range(1, 20_000)],
            None,
            id="numbers of one hash",
        ),
        pytest.param({"items": {"enum": OBJECTS}}, OBJECTS, None, id="enum"),
        pytest.param({"items": {"const": OBJECTS}}, [OBJECTS] * 5, None, id="const"),
        pytest.param(
            {"contains": {"const": OBJECTS}, "minContains": 6},
            [OBJECTS] * 5,
            "minContains|Too few",
            id="contains",
        ),
        pytest.param(
            {"unevaluatedItems": False, "allOf": [{"contains": {"type": "object"}}] * 3},
            OBJECTS[:5000],
            None,
            id="unevaluatedItems",
        ),
        pytest.param(
            {"anyOf": [{"items": {"type": "string"}}] * 100},
            list(range(50_000)),
            "not of type|not valid under",
            id="anyOf",
        ),
        pytest.param({"anyOf": [False] * 1000}, "x" * 1_000_000, "False schema|any of", id="false"),
        pytest.param(chain("allOf"), 1, "more work", id="allOf and $ref"),
        pytest.param(chain("anyOf"), "x", "more work", id="anyOf and $ref"),
        pytest.param(
            {
                "$id": "https://a.example/s",
                "$dynamicAnchor": "n",
                "properties": {"a": {"allOf": [{"$dynamicRef": "#n"}] * 8}},
            },
            {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}},
            "more work",
            id="$dynamicRef",
        ),
        pytest.param(
            {"dependentRequired": {f"p{n}": [f"q{m}" for m in range(100)] for n in range(100)}},
            {f"p{n}": 1 for n in range(100)},
            "is a dependency",
            id="dependentRequired",
        ),
        pytest.param(
            {"dependentSchemas": {key: {"required": ["x"]} for key in map(str, range(200))}},
            dict.fromkeys(map(str, range(200)), 1),
            "required property",
            id="dependentSchemas",
        ),
    ],
)
def test_every_keyword_is_judged_in_bounded_time(schema: Any, value: Any, said: str | None) -> None:
    error = says(schema, value)
    if said is None:
        assert error is None
    else:
        assert any(part in str(error) for part in said.split("|")), error


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"multipleOf": 0.5}, 10**400, False),
        ({"multipleOf": 0.3}, 10**400, True),
        ({"multipleOf": 0.1}, 0.3, False),
        ({"multipleOf": 1e-300}, 1e300, False),
        ({"multipleOf": 1e308}, 5e-324, True),
        ({"multipleOf": 7}, 7 * 10**300, False),
        ({"multipleOf": 7}, 7 * 10**300 + 1, True),
        ({"multipleOf": 2.0}, 3, True),
        ({"multipleOf": 5}, -10, False),
        ({"maximum": 1.5}, 10**400, True),
        ({"minimum": -(10**400)}, 1.5, False),
    ],
    ids=str,
)
def test_numbers_are_exact_however_large(schema: Any, value: Any, wrong: bool) -> None:
    assert (says(schema, value) is not None) is wrong


def test_multiples_of_numbers_beyond_a_bound_are_not_judged() -> None:
    assert f"at most {MULTIPLE_BITS} bits" in str(says({"multipleOf": 3}, 2 ** (MULTIPLE_BITS + 1)))


@pytest.mark.parametrize(
    "junk",
    [
        {"minimum": "x"},
        {"type": "objekt"},
        {"multipleOf": 0},
        {"pattern": "("},
        {"pattern": 5},
        {"required": 5},
        {"properties": 5},
        {"enum": 5},
        {"allOf": 5},
        {"$schema": 5},
        {"$ref": 5},
        {"additionalProperties": False, "patternProperties": 5},
        5,
        [],
        "x",
    ],
    ids=str,
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_references_may_lead_to_values_that_are_no_schemas(dialect: str, junk: Any) -> None:
    schema = {"$schema": dialect, "properties": {"a": {"$ref": "#/default"}}, "default": junk}
    for value in ({"a": 1}, {"a": "x"}, {"a": {"b": 1}}, {"a": [1]}):
        error = says(schema, value)
        assert error is None or "\n" not in error


@pytest.mark.parametrize("schema", [{"$id": 5}, {"$id": "http://[x"}, {"$schema": 5}], ids=str)
def test_unreadable_identifiers_and_dialects_are_no_schema(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"not a JSON Schema|\$schema"):
        validator(schema, "testing")


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{2,1}"])
@pytest.mark.parametrize(
    "where", [lambda p: {"pattern": p}, lambda p: {"patternProperties": {p: {}}}]
)
def test_a_pattern_that_is_none_makes_no_schema(
    where: Callable[[str], dict[str, Any]], pattern: str
) -> None:
    with pytest.raises(ValueError, match=r"not a JSON Schema.*regular expression"):
        validator(where(pattern), "testing")


def test_a_schema_has_a_size() -> None:
    with pytest.raises(ValueError, match=f"more than {SCHEMA_PARTS} parts"):
        validator({"enum": list(range(SCHEMA_PARTS - 1))}, "testing")
    validator({"enum": list(range(SCHEMA_PARTS - 2))}, "testing")
    nested: dict[str, Any] = {}
    for _ in range(100):
        nested = {"$id": "a" * 1000 + "/", "properties": {"a": nested}}
    with pytest.raises(ValueError, match=f"more than {ID_CHARACTERS} characters"):
        validator(nested, "testing")
    longest = "urn:" + "a" * (ID_CHARACTERS - 4)
    validator({"$id": longest}, "testing")
    with pytest.raises(ValueError, match=f"more than {ID_CHARACTERS} characters"):
        validator({"$id": longest + "a"}, "testing")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "x" * 1_000_000),
        ({"type": "string"}, list(range(100_000))),
        ({"const": "y" * 1_000_000}, 1),
        ({"enum": ["y" * 1_000_000, *range(10_000)]}, 1.5),
        ({"properties": {"a" * 100_000: False}}, {"a" * 100_000: 1}),
        ({"additionalProperties": False}, dict.fromkeys(map(str, range(10_000)), 1)),
        ({"type": "string"}, 10**4000),
        ({"required": ["r" * 1_000_000]}, {}),
        ({"not": {"const": "n" * 10_000}}, "n" * 10_000),
        ({"type": "integer"}, "\x1b[31m\n\u202e"),
    ],
    ids=["text", "list", "const", "enum", "name", "names", "number", "required", "not", "escapes"],
)
def test_validation_errors_are_short_and_on_one_line(schema: Any, value: Any) -> None:
    error = says(schema, value)
    assert error is not None
    assert len(error) < 1000
    assert error.isprintable()


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.0, 1e300, 10**30, 1e30]),
    st.sampled_from(["", "a", "ab", "b-"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=3),
    ),
    max_leaves=6,
)
KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["integer", "number", "string", "object", "array", "null", "boolean"]),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minimum": st.integers(-2, 2),
    "maximum": st.integers(-2, 2),
    "uniqueItems": st.booleans(),
    "pattern": st.sampled_from(["a", "^a", "b$", "^[ab]+$", "-"]),
    "required": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=1),
    "minItems": st.integers(0, 2),
}


def schemas_with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    named = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "contains": inner,
            "prefixItems": several,
            "properties": named,
            "patternProperties": named,
            "additionalProperties": inner,
            "propertyNames": inner,
            "dependentSchemas": named,
            "unevaluatedItems": inner,
            "unevaluatedProperties": inner,
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    )


SCHEMAS = st.recursive(
    st.one_of(st.booleans(), st.fixed_dictionaries({}, optional=KEYWORDS)),
    schemas_with,
    max_leaves=5,
)


def narrow_schema(schema: Any) -> Any:
    """A schema without what the library does otherwise than the specification says.

    It forbids each item that is not evaluated, whatever `unevaluatedItems` says of it.
    """
    if isinstance(schema, list):
        return [narrow_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: narrow_schema(part) for name, part in schema.items()}
    return {**parts, **({"unevaluatedItems": False} if "unevaluatedItems" in parts else {})}


@pytest.mark.slow
@given(schema=SCHEMAS.filter(lambda schema: isinstance(schema, dict)), value=VALUES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_values_are_judged_as_the_library_does(dialect: str, schema: Any, value: Any) -> None:
    whole = {"$schema": dialect, **narrow_schema(schema)}
    library = jsonschema.validators.validator_for(whole)
    try:
        library.check_schema(whole)
    except jsonschema.SchemaError:
        return
    assert (says(whole, value) is None) is library(whole).is_valid(value)


LARGE = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
ROWS = list(repeat({"a": "x"}, 300_000))


@pytest.mark.slow
async def test_a_large_value_is_judged_while_the_event_loop_goes_on() -> None:
    judge = validator(LARGE, "testing")
    turns = 0
    said: list[str | None] = []

    async def judged(scope: anyio.CancelScope) -> None:
        said.append(await complaint_in_time(judge, ROWS, Deadline.after(0.5, "the test")))
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(judged, tasks.cancel_scope)
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1
    assert "within 0.5 s (the test)" in str(said)
    assert turns > 20


@pytest.mark.slow
async def test_a_schema_that_takes_too_long_to_read_is_given_up() -> None:
    slow = {"properties": {f"p{n}": {"type": "string", "minLength": 1} for n in range(20_000)}}
    with pytest.raises(ValueError, match=r"can be read: not within 0.2 s \(x\)"):
        await validator_in_time(slow, "testing", Deadline.after(0.2, "x"))


async def test_a_small_value_needs_no_thread() -> None:
    judge = validator({"type": "object", "required": ["a"]}, "testing")
    threads = threading.active_count()
    deadline = Deadline.after(10, "x")
    assert await complaint_in_time(judge, {"a": 1}, deadline) is None
    assert "'a' is a required" in str(await complaint_in_time(judge, {}, deadline))
    assert threading.active_count() == threads


@pytest.mark.slow
async def test_values_are_judged_side_by_side() -> None:
    judge = validator(LARGE, "testing")
    said: dict[int, str | None] = {}

    async def judged(number: int) -> None:
        value = ROWS[:3000] if number % 2 else [*ROWS[:3000], {"a": number}]
        said[number] = await complaint_in_time(judge, value, Deadline.after(60, "x"))

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(judged, number)
    assert [said[number] is None for number in range(6)] == [False, True] * 3


def tool_list(schema: Any) -> dict[str, Any]:
    return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]}


ROWS_OF = {"type": "object", "properties": {"rows": LARGE}}


@pytest.mark.slow
@pytest.mark.parametrize("revision", VALIDATING)
@pytest.mark.parametrize(
    ("timeout", "setting"), [(0.3, "the call's own timeout"), (None, "Timeouts.validation")]
)
async def test_a_result_that_cannot_be_judged_in_time_fails_its_call(
    revision: str, timeout: float | None, setting: str
) -> None:
    result = {**TEXT, "structuredContent": {"rows": ROWS[:40_000]}}
    timeouts = Timeouts(validation=0.3)
    answers = (tool_list(ROWS_OF), result, TEXT)
    async with connect_scripted(revision, *answers, timeouts=timeouts) as (client, _):
        await client.list_tools()
        with pytest.raises(RemoteProtocolError, match=f"within 0.*s \\({setting}\\)"):
            await client.call_tool("t", timeout=timeout)


@pytest.mark.slow
async def test_arguments_that_cannot_be_judged_in_time_are_refused() -> None:
    server = Server("slow", validation_seconds=0.2)
    schema = {"type": "object", "properties": {"rows": LARGE}}

    @server.tool(input_schema=schema)
    async def take(**arguments: Any) -> str:
        return "taken"

    async with connect(server) as client:
        try:
            result = await client.call_tool("take", {"rows": ROWS[:40_000]})
            said = result.content[0].text
        except McpError as error:
            said = str(error)
        assert "within 0.2 s (validation_seconds of the server)" in said
        assert (await client.call_tool("take", {"rows": []})).content[0].text == "taken"


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_server_gives_validation_some_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="validation_seconds: expected more than 0"):
        Server("x", validation_seconds=seconds)
