"""OpenAPI documents and upstreams that take more than they should get: size, depth, time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from kit.limits import SetLimit
from mcpgen_runtime import OpenApiWarning, Server
from mcpgen_runtime.testing import connected
from package.server.openapi.one_server import make_server
from package.server.openapi.pet_store import one

pytestmark = pytest.mark.on_asyncio

HEAD = "openapi: 3.1.0\ninfo: {title: x, version: '1'}\n"
LAUGHS = "x-0: &a0 [lol, lol]\n" + "".join(
    f"x-{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
MERGED = "x-0: &m0 {a: 1, b: 2}\n" + "".join(
    f"x-{level}: &m{level} {{!!merge '<<': [{', '.join([f'*m{level - 1}'] * 8)}]}}\n"
    for level in range(1, 10)
)
SCHEMA = """paths:
  /x:
    get:
      operationId: op
      parameters: [{name: a, in: query, schema: SCHEMA}]
      responses: {}
"""


def with_schema(schema: str) -> str:
    """A document whose operation has a parameter of a schema."""
    return SCHEMA.replace("SCHEMA", schema)


@pytest.mark.parametrize(
    "text",
    [
        MERGED + "paths: {}\n",
        LAUGHS + "paths: *a9\n",
        LAUGHS + "paths: {}\nservers: *a9\n",
        *(
            LAUGHS + with_schema(f"{{{keyword}: *a9}}")
            for keyword in ("default", "enum", "required")
        ),
        *(LAUGHS + with_schema(schema) for schema in ("*a9", "{x-other: *a9}")),
    ],
)
def test_aliases_count_as_copies_wherever_they_stand(text: str) -> None:
    with pytest.raises(ValueError, match="expected at most 67108864 characters with a copy"):
        make_server(HEAD + text)


def test_a_decoded_document_counts_as_its_text_would() -> None:
    around: dict[str, Any] = {}
    around["not"] = around
    with pytest.raises(ValueError, match="nested too deep"):
        make_server(one("/", {"x-around": around}))
    many: list[Any] = ["lol"]
    for _ in range(40):
        many = [many, many]
    with pytest.raises(ValueError, match="expected at most 67108864 characters"):
        make_server(
            one("/", {"parameters": [{"name": "a", "in": "query", "schema": {"const": many}}]})
        )


def test_values_that_many_operations_refer_to_are_counted(
    monkeypatch: pytest.MonkeyPatch, set_limit: SetLimit
) -> None:
    schemas = {"Big": {"enum": ["x" * 1000]}}
    operation = {
        "parameters": [
            {"name": "a", "in": "query", "schema": {"$ref": "#/components/schemas/Big"}}
        ],
        "responses": {},
    }
    paths = {f"/{number}": {"get": operation} for number in range(20)}
    spec = {**one("/", {}), "paths": paths, "components": {"schemas": schemas}}
    make_server(spec)
    set_limit("pkg.server.openapi.document.DOCUMENT_TEXT", 10_000)
    with pytest.raises(ValueError, match="expected operations with at most 10000 characters"):
        make_server(spec)
    monkeypatch.undo()
    set_limit("pkg.server.openapi.schema_conversion.SCHEMA_TEXT", 500)
    with pytest.warns(OpenApiWarning, match="expected schemas with at most 500 characters"):
        make_server(spec)


async def drip() -> AsyncIterator[bytes]:
    """A body that never ends and never pauses for long."""
    while True:
        yield b"x"
        await anyio.lowlevel.checkpoint()


async def never() -> AsyncIterator[bytes]:
    await anyio.sleep_forever()
    yield b""


@pytest.mark.parametrize("body", [drip, never])
async def test_a_request_has_a_time_for_its_whole_response(body: Any) -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body())

    transport = httpx2.MockTransport(answer)
    http = httpx2.AsyncClient(transport=transport, base_url="https://a.test", timeout=None)
    server = Server.from_openapi(one("/", {}), http, timeout=0.1)
    with anyio.fail_after(10):
        async with http, connected(server) as pair:
            result: Any = await pair.client.call_tool("call", {})
    assert result.content[0].text == "GET /: no whole response within 0.1 s"


def test_the_time_of_a_request_is_positive() -> None:
    with pytest.raises(ValueError, match="timeout: expected more than 0, got 0"):
        make_server(one("/", {}), timeout=0)
