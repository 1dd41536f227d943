"""JSON Schemas of others that ask for more than there is time: every keyword has a bound."""

from __future__ import annotations

import threading
from itertools import repeat
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import TEXT
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from mcpgen_runtime import McpError, RemoteProtocolError, Server, Timeouts, connect
from mcpgen_runtime.json_schema import Deadline
from mcpgen_runtime.json_schema.keywords import ID_CHARACTERS
from mcpgen_runtime.json_schema.validation import complaint_in_time, validator, validator_in_time

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
        ({"pattern": EVIL}, LONG, "does not match"),
        ({"patternProperties": {EVIL: False}}, {LONG: 1}, None),
        (
            {"patternProperties": {EVIL: {}}, "additionalProperties": False},
            {LONG: 1},
            "were unexpected|was unexpected",
        ),
        (
            {"patternProperties": {EVIL: {}}, "unevaluatedProperties": False},
            {LONG: 1},
            "unexpected",
        ),
        ({"propertyNames": {"pattern": EVIL}}, {LONG: 1}, "match"),
        ({"uniqueItems": True}, OBJECTS, None),
        ({"uniqueItems": True}, [*OBJECTS, {"i": 0}], "non-unique"),
        ({"uniqueItems": True}, [(2**61 - 1) * n for n in range(1, 20_000)], None),  # of one hash
        ({"items": {"enum": OBJECTS}}, OBJECTS, None),
        ({"items": {"const": OBJECTS}}, [OBJECTS] * 5, None),
        (
            {"contains": {"const": OBJECTS}, "minContains": 6},
            [OBJECTS] * 5,
            "minContains|Too few",
        ),
        (
            {"unevaluatedItems": False, "allOf": [{"contains": {"type": "object"}}] * 3},
            OBJECTS[:5000],
            None,
        ),
        (
            {"anyOf": [{"items": {"type": "string"}}] * 100},
            list(range(50_000)),
            "not of type|not valid under",
        ),
        ({"anyOf": [False] * 1000}, "x" * 1_000_000, "False schema|any of"),
        (chain("allOf"), 1, "more work"),
        (chain("anyOf"), "x", "more work"),
        (
            {
                "$id": "https://a.example/s",
                "$dynamicAnchor": "n",
                "properties": {"a": {"allOf": [{"$dynamicRef": "#n"}] * 8}},
            },
            {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}},
            "more work",
        ),
        (
            {"dependentRequired": {f"p{n}": [f"q{m}" for m in range(100)] for n in range(100)}},
            {f"p{n}": 1 for n in range(100)},
            "is a dependency",
        ),
        (
            {"dependentSchemas": {key: {"required": ["x"]} for key in map(str, range(200))}},
            dict.fromkeys(map(str, range(200)), 1),
            "required property",
        ),
    ],
    ids=lambda part: str(part)[:40],
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


UNREADABLE = "not a JSON Schema that can be read"
INVALID_PATTERN = "'(' is not a 'regex': not a regular expression: no regular expression from"
SLOW_PATTERN = r"the schema has a pattern '^(a+)+\\1$': can't be searched for in linear time"
DEEP: dict[str, Any] = {"not": {}}
for _ in range(5000):
    DEEP = {"not": DEEP}
REFUSED: list[tuple[Any, Any, str]] = [
    ({"$ref": "#/x"}, 1, "the schema has a reference that leads nowhere: '/x'"),
    ({"$ref": "#"}, 1, "the schema goes round in circles, or the value is too deep"),
    (chain("allOf"), 1, "the schema asks for more work than the value is worth"),
    ({"pattern": r"^(a+)+\1$"}, LONG, SLOW_PATTERN),
    ({"patternProperties": {r"^(a+)+\1$": {}}}, {LONG: 1}, SLOW_PATTERN),
    (DEEP, 1, f"{UNREADABLE}: it is nested too deep"),
    ({"$id": "http://[x"}, 1, f"{UNREADABLE}: ValueError"),
    (
        {"$schema": "x:y"},
        1,
        f"{UNREADABLE}: $schema: expected a JSON Schema dialect that is known, got 'x:y'",
    ),
    ({"minimum": "1"}, 1, "not a JSON Schema: minimum: '1' is not of type 'number'"),
    ({"$id": 5}, 1, "not a JSON Schema: ['$id']: 5 is not of type 'string'"),
    ({"$schema": 5}, 1, f"{UNREADABLE}: AttributeError"),
    ({"pattern": "("}, 1, f"not a JSON Schema: pattern: {INVALID_PATTERN} character 1 on"),
    (
        {"patternProperties": {"(": {}}},
        1,
        f"not a JSON Schema: patternProperties: {INVALID_PATTERN} character 1 on",
    ),
]


@pytest.mark.parametrize(("schema", "value", "said"), REFUSED, ids=lambda part: str(type(part)))
def test_a_schema_that_cannot_be_used_is_refused_so(schema: Any, value: Any, said: str) -> None:
    pytest.importorskip("re2")
    assert says(schema, value) == said


@pytest.mark.parametrize(
    "junk",
    [
        *({"minimum": "x"}, {"type": "objekt"}, {"multipleOf": 0}, {"pattern": "("}),
        *({word: 5} for word in ("required", "properties", "enum", "allOf", "$schema", "$ref")),
        *(5, [], "x", {"additionalProperties": False, "patternProperties": 5}),
    ],
    ids=str,
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_references_may_lead_to_values_that_are_no_schemas(dialect: str, junk: Any) -> None:
    schema = {"$schema": dialect, "properties": {"a": {"$ref": "#/default"}}, "default": junk}
    errors = [says(schema, {"a": value}) for value in (1, "x", {"b": 1}, [1])]
    assert [error for error in errors if "\n" in (error or "")] == []


def test_the_identifiers_of_a_schema_have_a_length() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100):
        nested = {"$id": "a" * 1000 + "/", "properties": {"a": nested}}
    longest = "urn:" + "a" * (ID_CHARACTERS - 4)
    validator({"$id": longest}, "testing")
    for schema in (nested, {"$id": longest + "a"}):
        with pytest.raises(ValueError, match=f"more than {ID_CHARACTERS} characters"):
            validator(schema, "testing")


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
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": ROWS_OF}
    answers = ({"tools": [tool]}, result, TEXT)
    async with connect_scripted(revision, *answers, timeouts=timeouts) as (client, _):
        await client.list_tools()
        with pytest.raises(RemoteProtocolError, match=f"within 0.*s \\({setting}\\)"):
            await client.call_tool("t", timeout=timeout)


@pytest.mark.slow
async def test_arguments_that_cannot_be_judged_in_time_are_refused() -> None:
    server = Server("slow", validation_seconds=0.2)

    @server.tool(input_schema=ROWS_OF)
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
