"""JSON Schemas that come as data: dialects, references, and what they may cost, at both ends.

A server holds arguments against the schema that its user gave a tool, a client holds results
against the schema that the server listed.

Source: basic/index#json-schema-usage (2025-11-25, 2026-07-28).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import jsonschema
import pytest

from kit.live import TEXT
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import ALL, speaking_to
from mcpgen_runtime.errors import RemoteProtocolError
from mcpgen_runtime.facts import Role
from mcpgen_runtime.json_schema import CheckedSchema
from mcpgen_runtime.json_schema.validation import validator
from mcpgen_runtime.server.chosen import Server

pytestmark = pytest.mark.on_asyncio

DIALECTS = revisions_holding("json-schema.default-dialect")
ENDS: list[Role] = ["server", "client"]
dialects = pytest.mark.parametrize("revision", DIALECTS)
ends = pytest.mark.parametrize("end", ENDS)

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def of(**properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties}


async def complaint(end: Role, revision: str, schema: Any, value: Any) -> str | None:
    """The error of an end for a value, having shown or seen the schema unchanged."""
    judge = server_says if end == "server" else client_says
    return await judge(revision, schema, value)


async def server_says(revision: str, schema: Any, value: Any) -> str | None:
    server = Server("judge")

    @server.tool("t", input_schema=schema)
    async def judged(**arguments: Any) -> str:
        return "taken"

    async with speaking_to(server, revision) as end:
        (tool,) = (await end.ask("tools/list"))["result"]["tools"]
        assert tool["inputSchema"] == schema
        answer = await end.ask("tools/call", {"name": "t", "arguments": value})
    if "error" in answer:
        assert answer["error"]["code"] == -32602
        return str(answer["error"]["message"])
    text: str = answer["result"]["content"][0]["text"]
    return text if answer["result"].get("isError") else None


async def client_says(revision: str, schema: Any, value: Any) -> str | None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    plain = {"name": "plain", "inputSchema": {"type": "object"}}
    given = {**TEXT, "structuredContent": value}
    async with connect_scripted(revision, {"tools": [tool, plain]}, TEXT, given) as (client, _):
        listed = await client.list_tools()
        assert listed[0].output_schema == schema
        await client.call_tool("plain")  # one bad schema spoils no other tool
        try:
            await client.call_tool("t")
        except RemoteProtocolError as error:
            return str(error)
    return None


PAIR = of(a={"prefixItems": [{"type": "string"}]})
FEATURES = [
    pytest.param(PAIR, {"a": ["x"]}, {"a": [1]}, id="prefixItems"),
    pytest.param(
        {**of(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}},
        {"a": 1},
        {"a": "1"},
        id="$defs",
    ),
    pytest.param(
        {
            "$id": "https://a.example/tree",
            "$dynamicAnchor": "node",
            **of(n={"type": "integer"}, children={"items": {"$dynamicRef": "#node"}}),
        },
        {"n": 1, "children": [{"n": 2}]},
        {"n": 1, "children": [{"n": "2"}]},
        id="$dynamicRef",
    ),
    pytest.param(
        {**of(), "dependentSchemas": {"a": {"required": ["b"]}}},
        {"a": 1, "b": 2},
        {"a": 1},
        id="dependentSchemas",
    ),
    pytest.param(
        {"type": "object", "allOf": [of(a={})], "unevaluatedProperties": False},
        {"a": 1},
        {"b": 1},
        id="unevaluatedProperties",
    ),
    pytest.param(
        of(a={"prefixItems": [{"type": "string"}], "unevaluatedItems": {"type": "integer"}}),
        {"a": ["x", 1]},
        {"a": ["x", "y"]},
        id="unevaluatedItems",
    ),
    pytest.param(
        {**of(a={"type": "array", "contains": {"const": 1}, "minContains": 2})},
        {"a": [1, 1]},
        {"a": [1]},
        id="minContains",
    ),
]


@pytest.mark.requirement("json-schema.default-dialect", "json-schema.support-2020-12")
@dialects
@ends
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("schema", "good", "bad"), FEATURES)
async def test_a_schema_is_of_2020_12_unless_it_says_otherwise(
    revision: str, end: Role, schema: Any, good: Any, bad: Any, named: bool
) -> None:
    schema = {"$schema": DRAFT_2020, **schema} if named else schema
    assert await complaint(end, revision, schema, good) is None
    assert await complaint(end, revision, schema, bad) is not None


@pytest.mark.requirement("json-schema.dialect-unstated")
@pytest.mark.parametrize("revision", [name for name in ALL if name not in DIALECTS])
async def test_plain_schemas_are_read_though_no_dialect_is_stated(
    revision: str,
) -> None:
    schema = {**of(a={"type": "integer"}), "required": ["a"]}
    assert await server_says(revision, schema, {"a": 1}) is None
    assert await server_says(revision, schema, {"a": "1"}) is not None
    older = {"$schema": DRAFT_7, **of(a={"items": [{"type": "string"}]})}
    assert await server_says(revision, older, {"a": [1]}) is not None


@pytest.mark.requirement("json-schema.validate-by-dialect", "json-schema.schema-valid")
@dialects
async def test_each_schema_is_judged_by_the_dialect_it_names(revision: str) -> None:
    tuple_of_old = of(a={"items": [{"type": "string"}]})
    older = {"$schema": DRAFT_7, **tuple_of_old}
    for end in ENDS:
        assert await complaint(end, revision, older, {"a": ["x"]}) is None
        assert await complaint(end, revision, older, {"a": [1]}) is not None
        new_words = {"$schema": DRAFT_7, **PAIR}  # mean nothing in the older dialect
        assert await complaint(end, revision, new_words, {"a": [1]}) is None
    with pytest.raises(ValueError, match="not a JSON Schema"):
        await server_says(revision, tuple_of_old, {})
    assert "not a JSON Schema" in str(await client_says(revision, tuple_of_old, {}))


MALFORMED = [of(a={"type": "objekt"}), of(a={"minimum": "1"}), {"type": "object", "required": "a"}]


@pytest.mark.requirement("json-schema.schema-valid")
@dialects
@pytest.mark.parametrize("schema", MALFORMED, ids=repr)
async def test_malformed_schemas_are_refused(revision: str, schema: Any) -> None:
    with pytest.raises(ValueError, match="not a JSON Schema"):
        Server("judge").tool("t", input_schema=schema)(accept)
    with pytest.raises(ValueError, match="not a JSON Schema"):
        Server("judge").tool("t", output_schema=schema)(text)
    assert "not a JSON Schema" in str(await client_says(revision, schema, {}))


def accept(**arguments: Any) -> str:
    """Take anything."""
    return "taken"


@pytest.mark.requirement("json-schema.unsupported-dialect")
@dialects
async def test_an_unknown_dialect_is_named_and_concerns_one_tool(
    revision: str,
) -> None:
    mine = "https://example.com/my-dialect"
    server = Server("judge")
    server.tool("good")(text)
    with pytest.raises(ValueError, match=mine):
        server.tool("bad", input_schema={"$schema": mine, **of()})(accept)
    async with speaking_to(server, revision) as end:
        (tool,) = (await end.ask("tools/list"))["result"]["tools"]
        assert tool["name"] == "good"
        assert "result" in await end.ask("tools/call", {"name": "good"})
    assert mine in str(await client_says(revision, {"$schema": mine, **of()}, {}))


def text() -> str:
    """Give a text."""
    return "text"


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """A listening socket that nobody should come to."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.mark.requirement(
    "json-schema.no-network-ref",
    "json-schema.ref-fetch-default-off",
    "json-schema.unresolved-ref-rejected",
)
@dialects
@ends
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("value", [{"a": 1}, {"a": "x"}, {"a": None}])
async def test_a_reference_into_the_network_is_not_followed(
    revision: str, end: Role, keyword: str, value: Any, trap: socket.socket
) -> None:
    url = f"http://127.0.0.1:{trap.getsockname()[1]}/schema.json"
    said = await complaint(end, revision, of(a={keyword: url}), value)
    assert said is not None
    assert url in said
    with pytest.raises(BlockingIOError):
        trap.accept()


def exponential(levels: int) -> dict[str, Any]:
    """A schema of a few lines that asks for more work than there is time."""
    twice = {f"n{at}": {"allOf": [{"$ref": f"#/$defs/n{at + 1}"}] * 2} for at in range(levels)}
    return {**of(a={"$ref": "#/$defs/n0"}), "$defs": {**twice, f"n{levels}": {"type": "integer"}}}


def nested_schema(levels: int) -> dict[str, Any]:
    """A schema that is nested deep."""
    inner: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        inner = {"allOf": [inner]}
    return of(a=inner)


@pytest.mark.requirement("json-schema.bounded-cost")
@dialects
@pytest.mark.parametrize(
    "schema",
    [
        exponential(64),
        {**exponential(64), **of(a={"$schema": DRAFT_7, "allOf": [{"$ref": "#/$defs/n0"}]})},
        nested_schema(5000),
        of(a={"$ref": "#/properties/a"}),
    ],
    ids=["exponential", "in a dialect of its own", "nested", "circle"],
)
async def test_a_schema_that_asks_for_too_much_is_given_up(revision: str, schema: Any) -> None:
    said = validator_says(schema, {"a": 1})
    assert any(why in said for why in ("more work", "nested too deep", "in circles"))
    if "nested" not in said:
        assert said in str(await client_says(revision, schema, {"a": 1}))


def validator_says(schema: Any, value: Any) -> str:
    """The error of a schema, or of the value; `"None"` if the value is valid."""
    try:
        return str(validator(schema, "testing")(value))
    except ValueError as error:
        return str(error)


def test_a_large_value_may_take_as_much_work_as_it_is_large() -> None:
    row = {**of(a={"type": "integer"}, b={"type": "string"}), "required": ["a"]}
    judge = validator({"type": "array", "items": row}, "testing")
    rows: list[dict[str, Any]] = [{"a": 1, "b": "x"} for _ in range(10_000)]
    assert judge(rows) is None
    rows[-1] = {"b": "x"}
    assert "'a' is a required property" in str(judge(rows))
    assert judge([{"a": 1}]) is None


SCALAR_ITEMS = [
    *({"type": name} for name in ("boolean", "integer", "null", "number", "string")),
    {"type": "integer", "title": "Size", "minimum": 0},
    {"type": "integer", "minimum": 0, "maximum": 3},
    {"type": "number", "maximum": 1.5},
    {"type": "string", "maxLength": 1},
    {"type": ["null", "string"]},
    {"type": "array"},
    {"enum": [0, "a"]},
]
SCALARS: tuple[Any, ...] = (-1, 0, 1.0, 1.5, 3, 4, True, None, "", "ab", [], {})


@pytest.mark.parametrize("first", [None, {"type": "string"}], ids=["items", "after prefixItems"])
@pytest.mark.parametrize("dialect", [DRAFT_7, DRAFT_2020])
@pytest.mark.parametrize("items", SCALAR_ITEMS, ids=str)
def test_each_item_of_scalars_is_judged_as_by_the_library(
    items: Any, dialect: str, first: Any
) -> None:
    schema = {"$schema": dialect, "items": items}
    schema |= {} if first is None else {"prefixItems": [first]}
    ours = validator(schema, "testing")
    library = jsonschema.validators.validator_for(schema)(schema)
    for value in ([], 1, *([one] for one in SCALARS), *permutations(SCALARS, 2)):
        array: Any = list(value) if isinstance(value, tuple) else value
        complaint = str(ours(array))
        errors = list(library.iter_errors(array))
        assert (complaint == "None") is (not errors), array
        assert all(f"{error.json_path[1:]}: " in complaint for error in errors), array


def test_a_checked_schema_is_compiled_for_its_first_value() -> None:
    wrong = {"type": "thing"}
    with pytest.raises(ValueError, match="not a JSON Schema"):
        validator(wrong, "a test")
    complain = validator(CheckedSchema(wrong), "a test")
    assert str(complain(1)).startswith("not a JSON Schema")
    text = validator(CheckedSchema({"type": "string"}), "a test")
    assert (text("a"), bool(text(1))) == (None, True)


@pytest.mark.parametrize(
    "items", [{"enum": [str(n) for n in range(300)]}, {"const": [str(n) for n in range(300)]}]
)
def test_a_constant_is_read_once_for_all_items(items: dict[str, Any]) -> None:
    assert validator({"items": {"anyOf": [items, True]}}, "testing")(["x"] * 1000) is None
