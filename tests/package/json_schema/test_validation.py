"""JSON Schemas that come as data: dialects, references, and what they may cost, at both ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kit.live import TEXT
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import ALL, speaking_to
from mcpgen_runtime import RemoteProtocolError, Server
from mcpgen_runtime.facts import Role
from mcpgen_runtime.json_schema.validation import validator

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
TREE = {
    "$id": "https://a.example/tree",
    "$dynamicAnchor": "node",
    **of(n={"type": "integer"}, children={"items": {"$dynamicRef": "#node"}}),
}
CLOSED = {"type": "object", "allOf": [of(a={})], "unevaluatedProperties": False}
FEATURES = [
    pytest.param(PAIR, {"a": ["x"]}, {"a": [1]}, id="prefixItems"),
    pytest.param(
        TREE, {"n": 1, "children": [{"n": 2}]}, {"children": [{"n": "2"}]}, id="$dynamicRef"
    ),
    pytest.param(CLOSED, {"a": 1}, {"b": 1}, id="unevaluatedProperties"),
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
async def test_plain_schemas_are_read_though_no_dialect_is_stated(revision: str) -> None:
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
async def test_an_unknown_dialect_is_named_and_concerns_one_tool(revision: str) -> None:
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
    def validator_says(schema: Any, value: Any) -> str:
        """The error of a schema, or of the value; `"None"` if the value is valid."""
        try:
            return str(validator(schema, "testing")(value))
        except ValueError as error:
            return str(error)

    said = validator_says(schema, {"a": 1})
    assert any(why in said for why in ("more work", "nested too deep", "in circles"))
    if "nested" not in said:
        assert said in str(await client_says(revision, schema, {"a": 1}))


def test_errors_are_counted_up_to_a_bound() -> None:
    complain = validator({"items": {"type": "string"}}, "a test")
    for count, rest in (
        (10, ""),
        (11, "; and 1 more"),
        (32, "; and 22 more"),
        (40, "; and 22 more"),
    ):
        shown = "; ".join(f"[{at}]: 0 is not of type 'string'" for at in range(min(count, 10)))
        assert complain([0] * count) == shown + rest
