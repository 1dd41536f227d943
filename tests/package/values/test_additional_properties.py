"""`additionalProperties` in schemas of our own: left out, since some clients fail to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import pytest

from kit.wire import ALL, every
from mcpgen_runtime import Server, connect, to_builtins

NEWEST = ALL[-1]

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "counts", "version": "1"},
    "paths": {
        "/count": {
            "get": {
                "operationId": "count",
                "parameters": [{"name": "to", "in": "query", "schema": {"type": "integer"}}],
                "responses": {
                    "200": {
                        "description": "The count.",
                        "content": {"application/json": {"schema": {"type": "integer"}}},
                    }
                },
            }
        }
    },
}


@dataclass
class Place:
    city: str


async def count(to: int, places: list[Place] | None = None) -> dict[str, Place]:
    return {}


def stated_values(schema: Any) -> list[Any]:
    """The values of `additionalProperties` at any depth."""
    members = schema.items() if isinstance(schema, dict) else enumerate(schema)
    inner = [value for _, value in members if isinstance(value, dict | list)]
    own = [value for name, value in members if name == "additionalProperties"]
    return own + [each for value in inner for each in stated_values(value)]


async def list_schemas(server: Server, revision: str = NEWEST) -> Any:
    async with connect(server, revision=revision) as client:
        (tool,) = await client.list_tools()
        return to_builtins(tool)


def of_signature(setting: Literal[False] | None) -> Server:
    server = Server("s", additional_properties=setting)
    server.add_tool(count)
    return server


def of_document(setting: Literal[False] | None) -> Server:
    answer = httpx2.MockTransport(lambda request: httpx2.Response(200, json=5))
    client = httpx2.AsyncClient(transport=answer, base_url="https://counts.example")
    return Server.from_openapi(DOCUMENT, client, additional_properties=setting)


@every
@pytest.mark.parametrize("make", [of_signature, of_document])
async def test_input_schemas_do_not_forbid_other_members(revision: str, make: Any) -> None:
    assert stated_values((await list_schemas(make(None), revision))["inputSchema"]) == []


@pytest.mark.parametrize("make", [of_signature, of_document])
async def test_a_setting_forbids_other_members(make: Any) -> None:
    schema = (await list_schemas(make(False)))["inputSchema"]
    assert schema["additionalProperties"] is False


async def test_output_schemas_forbid_nothing() -> None:
    assert stated_values((await list_schemas(of_document(False)))["outputSchema"]) == []
    values = (await list_schemas(of_signature(False)))["outputSchema"]["additionalProperties"]
    assert values["title"] == "Place"
    assert stated_values(values) == []
