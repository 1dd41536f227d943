"""A server as users write it, beyond what the documents show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, assert_type

import httpx2

from mcpgen_runtime import (
    Depends,
    HTTPRoute,
    Image,
    MCPType,
    Middleware,
    MiddlewareRequest,
    Next,
    RouteMap,
    Server,
    TextContent,
    limit_rate,
)


class Place(TypedDict):
    latitude: float


server = Server("weather", version="1.0", instructions="Ask for a city.")


@server.tool(name="stations", description="Stations near a place.")
def stations(near: Place) -> list[str | Image]:
    return ["now", Image(b"...", "image/png")]


def of_reading(route: HTTPRoute, mcp_type: MCPType) -> MCPType | None:
    return mcp_type if route.method == "GET" else MCPType.EXCLUDE


class Pets(Server):
    pass


pets: Pets = Pets.from_openapi(
    "pets.yaml",
    http_client=httpx2.AsyncClient(base_url="https://api.example.com"),
    route_maps=[RouteMap(methods=["GET"], mcp_type=MCPType.RESOURCE)],
    route_map_fn=of_reading,
)


def opened() -> Place:
    return Place(latitude=59.9)


@server.tool
def nearest(city: str, place: Place = Depends(opened)) -> str:
    return f"{city} {place['latitude']}"


@server.prompt
def ask(city: str) -> str:
    return f"What of {city}?"


def what_was_decorated() -> None:
    assert_type(nearest("Oslo"), str)
    assert_type(ask("Oslo"), str)
    assert_type(stations({"latitude": 59.9}), list[str | Image])
    register: Callable[[Callable[[], str]], Callable[[], str]] = server.tool("name")
    assert_type(register("soon".upper), Callable[[], str])
    server.add_tool(ask, "asks", title="Asks")
    server.add_prompt(ask, title="Asks")
    TextContent(text="sun")


class Audit(Middleware):
    async def on_call_tool(self, request: MiddlewareRequest, next: Next) -> Any:
        return await next(request)


server.middleware(Audit())
server.add_middleware(limit_rate(10))
audited = Server("audited", middleware=[Audit(), limit_rate(10)])
server.run("stdio")
