"""Schemas, URIs and lists of hostile peers that would keep others waiting: they are served."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from kit.live import TEXT
from kit.scripted import connect_scripted
from mcpgen_runtime import McpError, RemoteProtocolError, Server, connect

pytestmark = pytest.mark.attack

REVISION = "2025-06-18"
SECONDS = 20.0


both = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def ends_in_time(work: Callable[[], object]) -> None:
    """Run work in a process of its own; what keeps the interpreter's lock can be ended only so."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(SECONDS)
    running = process.is_alive()
    process.kill()
    process.join()
    assert not running, f"not done within {SECONDS} s"
    assert process.exitcode == 0


OBJECTS = [{"i": n} for n in range(20_000)]
TREE: dict[str, Any] = {
    "$defs": {f"n{n}": {"allOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 2} for n in range(64)}
}
TREE["$defs"]["n64"] = {}

HOSTILE = [
    pytest.param({"a": {"pattern": "^(a+)+$"}}, {"a": "a" * 40 + "!"}, id="pattern"),
    pytest.param({"a": {"pattern": "(.*,){20}x"}}, {"a": "1," * 500}, id="polynomial pattern"),
    pytest.param({"a": {"uniqueItems": True}}, {"a": OBJECTS}, id="uniqueItems"),
    pytest.param({"a": {"items": {"enum": OBJECTS}}}, {"a": OBJECTS}, id="enum"),
    pytest.param({"a": {"items": {"const": OBJECTS}}}, {"a": [OBJECTS] * 20}, id="const"),
    pytest.param(
        {"a": {"anyOf": [{"items": {"type": "string"}}] * 50}},
        {"a": list(range(100_000))},
        id="anyOf",
    ),
    pytest.param({"a": {"$ref": "#/$defs/n0"}}, {"a": 1}, id="$ref"),
    pytest.param(
        {"a": {"unevaluatedItems": False, "allOf": [{"contains": {}}] * 50}},
        {"a": OBJECTS},
        id="unevaluatedItems",
    ),
]


@both
@pytest.mark.parametrize(("properties", "value"), HOSTILE)
def test_no_output_schema_keeps_a_client_from_its_timeout(
    properties: Any, value: Any, anyio_backend: str
) -> None:
    schema = {"type": "object", "properties": properties, **TREE}
    tools = {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]}

    async def main() -> None:
        result = {**TEXT, "structuredContent": value}
        told = ""
        async with connect_scripted(REVISION, tools, result) as (client, _):
            await client.list_tools()
            with anyio.fail_after(SECONDS / 2):
                try:
                    await client.call_tool("t", timeout=2)
                except RemoteProtocolError as error:
                    told = str(error)
        assert len(told) < 2000

    ends_in_time(lambda: anyio.run(main, backend=anyio_backend))


@both
async def test_a_call_with_millions_of_numbers_lets_others_be_served() -> None:
    server = Server("numbers", validation_seconds=2)
    numbers = {"type": "array", "items": {"type": "integer", "multipleOf": 1}}

    @server.tool(input_schema={"type": "object", "properties": {"a": numbers}})
    async def total(**arguments: Any) -> str:
        return "ok"

    @server.tool()
    async def echo(text: str) -> str:
        return text

    calls = 0
    told = "can't be held against the schema within"
    async with (
        connect(server) as heavy,
        connect(server) as other,
        anyio.create_task_group() as tasks,
    ):

        async def call() -> None:
            nonlocal told
            try:
                await heavy.call_tool("total", {"a": list(range(1_000_000))})
            except McpError as error:
                told = str(error)
            tasks.cancel_scope.cancel()

        tasks.start_soon(call)
        while True:
            await other.call_tool("echo", {"text": "x"})
            calls += 1
    assert calls > 100
    assert "can't be held against the schema within" in told


@both
def test_no_uri_keeps_a_server_busy(anyio_backend: str) -> None:
    server = Server("templates")
    server.resource("x://{+path*}/end")(lambda path: "x")
    server.resource("x://{a}{b}{c}{d}/end")(lambda a, b, c, d: "x")
    server.resource("x://{+a}/{+b}/{+c}!")(lambda a, b, c: "x")

    async def main() -> None:
        async with connect(server) as client:
            for uri in ("x://" + "a," * 4000, "x://" + "a" * 8000, "x://" + "/" * 8000):
                with pytest.raises(McpError):
                    await client.read_resource(uri)

    ends_in_time(lambda: anyio.run(main, backend=anyio_backend))
