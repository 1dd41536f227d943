"""Servers made of OpenAPI documents, before a real application behind a real HTTP client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse, RedirectResponse

from mcpgen_runtime import MCPType, RemoteError, RouteMap, Server, connect
from mcpgen_runtime.server.openapi.openapi_server import CurrentClient
from mcpgen_runtime.testing import connected
from package.server.openapi.one_server import (
    DOCUMENT,
    NEWEST,
    Api,
    answer_of,
    call,
    connect_api,
    one,
    parameter,
    refusal,
)

pytestmark = pytest.mark.on_asyncio

WITH_STRUCTURE = "2025-06-18"


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("revision", [WITH_STRUCTURE, NEWEST])
async def test_the_operations_of_an_api_are_tools(revision: str) -> None:
    api = Api()
    async with api.client() as http:
        server = Server.from_openapi(DOCUMENT, http_client=http)
        assert (server.name, server.info["version"]) == ("Pets", "1.2")
        async with connect(server, revision=revision) as client:
            assert len(await client.list_tools()) == 4
            listed = await client.call_tool("listPets", {"tags": ["a", "b"], "limit": 2})
            assert api.target == "GET /v1/pets?tags=a&tags=b&limit=2"
            assert [pet["name"] for pet in listed.structured_content["result"]] == ["Rex", "Mia"]
            created = await client.call_tool("createPet", {"name": "Bo", "tag": None})
            assert json.loads(api.body) == {"name": "Bo", "tag": None}
            assert created.structured_content["id"] == 3
            missing = await client.call_tool("getPet", {"petId": "9"})
            assert missing.is_error
            assert missing.content[0].text == (
                'GET /pets/{petId}: HTTP 404 Not Found: {"detail":"no such pet"}'
            )
            gone = await client.call_tool("deletePet", {"petId": "1"})
            assert gone.content[0].text == "HTTP 204 No Content"


@pytest.mark.parametrize(
    "value",
    [
        *("..", ".", "", "a/b", "../a", "%2e%2e", "%252e%252e", "a%2Fb", "a\\b", "\0", "a\\.."),
        *("%00", "%252f", {"a": "", "..": "b"}, {"": ""}),
    ],
)
async def test_no_value_leads_to_another_path(value: Any) -> None:
    spec = one("/pets/{id}", {"parameters": [parameter("id", "path", {})]})
    assert "argument 'id': expected" in await refusal(spec, {"id": value})


async def test_slashes_are_sent_encoded_where_the_user_allows_them() -> None:
    spec = one("/files/{id}", {"parameters": [parameter("id", "path")]})
    api = await call(spec, {"id": "a/b?c#d"}, encoded_slashes=True)
    assert api.target == "GET /v1/files/a%2Fb%3Fc%23d"
    assert "'..'" in await refusal(spec, {"id": "a/../b"}, encoded_slashes=True)


async def test_a_value_can_not_add_header_fields_or_arguments() -> None:
    spec = one("/", {"parameters": [parameter("X-Id", "header")]})
    text = await refusal(spec, {"X-Id": "1\r\nAuthorization: x"})
    assert "argument 'X-Id': expected visible ASCII" in text
    assert "'b' was unexpected" in await refusal(spec, {"X-Id": "x", "b": "y"})


async def test_a_response_that_breaks_its_schema_is_an_error() -> None:
    spec = one("/", answer_of({"type": "object", "required": ["id"]}))
    async with connect_api(spec, JSONResponse({"name": "x"})) as (client, _):
        assert (await client.call_tool("call", {})).is_error
    async with connect_api(spec, JSONResponse({"name": "x"}), validate_output=False) as (client, _):
        (tool,) = await client.list_tools()
        assert tool.output_schema is None
        assert (await client.call_tool("call", {})).structured_content == {"name": "x"}


async def test_http_client_credentials_are_no_arguments_and_stay_there() -> None:
    parameters = [
        parameter("X-Key", "header"),
        parameter("key", "query"),
        parameter("session", "cookie"),
        parameter("a", "query", {"type": "object"}),
    ]
    api = Api(RedirectResponse("https://evil.test/"))
    own: dict[str, Any] = {
        "headers": {"X-Key": "hunter2", "Accept": "a/b"},
        "params": {"key": "hunter3"},
    }
    own["cookies"] = {"session": "hunter4"}
    async with api.client(**own) as http:
        operation = {"parameters": parameters, **answer_of({"type": "object"})}
        spec = one("/", operation, servers=[{"url": "https://evil.test"}])
        server = Server.from_openapi(spec, http)
        async with connected(server) as pair:
            client: Any = pair.client
            (tool,) = await client.list_tools()
            assert tool.input_schema["properties"].keys() == {"a"}
            result = await client.call_tool("call", {"a": {"b": "x y&c=1|#"}})
            assert api.target == "GET /v1/?key=hunter3&b=x+y%26c%3D1%7C%23"
            assert api.requests[-1].headers["x-key"] == "hunter2"
            assert api.requests[-1].headers["cookie"] == "session=hunter4"
            assert api.requests[-1].headers["host"] == "pets.test"
            assert api.requests[-1].headers["accept"] == "a/b"
            assert "HTTP 307" in result.content[0].text
            taken = await client.call_tool("call", {"a": {"key": "mine"}})
            assert "'key' is the server's own" in taken.content[0].text
    assert len(api.requests) == 1


async def test_an_api_that_does_not_answer_is_an_error_without_its_url(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError(f"no way to {request.url}")

    transport = httpx2.MockTransport(refuse)
    base = "https://pets.test?key=hunter2"
    spec = {**one("/", {}), "paths": {f"/{name}": {"get": {"operationId": name}} for name in "ab"}}
    route_maps = [RouteMap(pattern="a", mcp_type=MCPType.RESOURCE)]
    http = httpx2.AsyncClient(transport=transport, base_url=base)
    async with http, connected(Server.from_openapi(spec, http, route_maps=route_maps)) as pair:
        result: Any = await pair.client.call_tool("b", {})
        with pytest.raises(RemoteError, match="GET /a: ") as caught:
            await pair.client.read_resource("resource://a")
    assert result.content[0].text == "GET /b: no response (ConnectError)"
    assert caught.value.code == -32603
    assert "GET /b: no response: ConnectError" in caplog.messages
    assert "hunter2" not in caplog.text


async def test_a_client_of_the_user_stays_open_and_an_own_one_closes() -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        entered.append(server.name)
        yield "state"

    current = CurrentClient(None, "https://pets.test")
    opened = current.lifespan(lifespan)
    assert opened is not None
    server = Server.from_openapi(one("/", {}), base_url="https://pets.test", lifespan=lifespan)
    async with opened(server) as state:
        async with opened(server):
            client: Any = current()
        assert (state, str(client.base_url)) == ("state", "https://pets.test")
        assert (current(), client.is_closed) == (client, False)
    assert client.is_closed
    with pytest.raises(RuntimeError, match="only while the server runs"):
        current()
    async with connected(server) as pair:
        await pair.client.list_tools()
    assert entered == ["t", "t", "t"]
    async with Api().client() as http:
        async with connected(Server.from_openapi(DOCUMENT, http)) as pair:
            await pair.client.list_tools()
        assert not http.is_closed
