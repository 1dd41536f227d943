"""A server made of an OpenAPI document, most of one operation, and the API behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.responses import JSONResponse, Response

from kit.wire import ALL
from mcpgen_runtime import Server
from mcpgen_runtime.testing import connected
from package.server.openapi.pet_store import Api

NEWEST = ALL[-1]
TEXT = {"type": "string"}


def parameter(name: str, place: str, schema: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": place == "path", **more}


def body_of(schema: Any, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, **more, "content": {kind: {"schema": schema}}}}


def answer_of(schema: Any, **more: Any) -> dict[str, Any]:
    return {"responses": {"200": {"content": {"application/json": {"schema": schema}}}, **more}}


def make_server(spec: Any, **options: Any) -> Server:
    """A server made of a document, whose API nobody calls."""
    return Server.from_openapi(spec, base_url="https://a.test", **options)


@asynccontextmanager
async def connect_api(
    spec: Any, response: Response | None = None, revision: str = NEWEST, **options: Any
) -> AsyncIterator[tuple[Any, Api]]:
    """A client of a server made of a document, and the API behind it."""
    api = Api(response or JSONResponse({}))
    async with api.client() as http:
        server = Server.from_openapi(spec, http_client=http, **options)
        async with connected(server, revision=revision) as pair:
            yield pair.client, api


async def schema_of(spec: Any, **options: Any) -> dict[str, Any]:
    """The input schema of the only tool."""
    async with connect_api(spec, **options) as (client, _):
        (tool,) = await client.list_tools()
        schema: dict[str, Any] = tool.input_schema
        return schema


async def call(spec: Any, arguments: Mapping[str, Any], **options: Any) -> Api:
    """The API after a call of the only tool, which succeeded."""
    async with connect_api(spec, **options) as (client, api):
        (tool,) = await client.list_tools()
        result = await client.call_tool(tool.name, arguments)
        assert not result.is_error, result.content
        return api


async def refusal(spec: Any, arguments: Mapping[str, Any], **options: Any) -> str:
    """The error of a call of the only tool, that made no request."""
    async with connect_api(spec, **options) as (client, api):
        (tool,) = await client.list_tools()
        result = await client.call_tool(tool.name, arguments)
        assert result.is_error
        assert api.requests == []
        text: str = result.content[0].text
        return text
