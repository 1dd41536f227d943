"""A server made of an OpenAPI document, most of one operation, and the API behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from kit.wire import ALL
from mcpgen_runtime import Server
from mcpgen_runtime.testing import connected
from package.tables import table

NEWEST = ALL[-1]
TEXT = {"type": "string"}


def parameter(name: str, place: str, schema: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": place == "path", **more}


def body_of(schema: Any, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, **more, "content": {kind: {"schema": schema}}}}


def answer_of(schema: Any, status: str = "200") -> dict[str, Any]:
    media = {"application/json": {"schema": schema}}
    return {"responses": {status: {"description": "the result", "content": media}}}


PETS = {1: {"id": 1, "name": "Rex", "tag": None}, 2: {"id": 2, "name": "Mia", "tag": "cat"}}

DOCUMENT: dict[str, Any] = table("pets_openapi")


def one(
    path: str, operation: Mapping[str, Any], method: str = "get", **root: Any
) -> dict[str, Any]:
    """A document of OpenAPI 3.1 with the operation `call`."""
    whole = {"operationId": "call", "responses": {}, **operation}
    info = {"title": "t", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {path: {method: whole}}, **root}


async def list_pets(request: Request) -> Response:
    return JSONResponse(list(PETS.values()))


async def create_pet(request: Request) -> Response:
    return JSONResponse({"id": 3, **await request.json()}, 201)


async def get_pet(request: Request) -> Response:
    pet = PETS.get(int(request.path_params["pet_id"]))
    return JSONResponse(pet) if pet else JSONResponse({"detail": "no such pet"}, 404)


async def delete_pet(request: Request) -> Response:
    return Response(status_code=204)


async def secret(request: Request) -> Response:
    return PlainTextResponse("hunter2")


ROUTES = [
    Route("/v1/pets", list_pets, methods=["GET"]),
    Route("/v1/pets", create_pet, methods=["POST"]),
    Route("/v1/pets/{pet_id}", get_pet, methods=["GET"]),
    Route("/v1/pets/{pet_id}", delete_pet, methods=["DELETE"]),
    Route("/v1/pets/{pet_id}/secret", secret),
]


class Api:
    """The API, and the requests that it got."""

    def __init__(self, response: Response | None = None) -> None:
        self._app: Any = response or Starlette(routes=ROUTES)
        self.requests: list[Request] = []
        self.body = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        self.requests.append(Request(scope))
        parts: list[bytes] = []
        more = True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        self.body = b"".join(parts)
        unread = [{"type": "http.request", "body": self.body}]

        async def receive_again() -> Any:
            return unread.pop() if unread else await receive()

        await self._app(scope, receive_again, send)

    @property
    def target(self) -> str:
        """Method, path and query of the last request, as they came."""
        scope = self.requests[-1].scope
        query = scope["query_string"].decode()
        return f"{scope['method']} {scope['raw_path'].decode()}{f'?{query}' if query else ''}"

    def client(self, **options: Any) -> httpx2.AsyncClient:
        """An HTTP client whose requests reach the API without a network."""
        transport = httpx2.ASGITransport(app=self)
        return httpx2.AsyncClient(transport=transport, base_url="https://pets.test/v1", **options)


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
