"""A server as users write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import httpx2
import msgspec

from mcpgen_runtime import (
    Completion,
    Context,
    Depends,
    HTTPRoute,
    Image,
    MCPType,
    Message,
    Middleware,
    MiddlewareRequest,
    Next,
    RouteMap,
    Server,
    TextContent,
    ToolError,
    limit_rate,
)


@dataclass
class Forecast:
    city: str
    degrees: float


class Place(TypedDict):
    latitude: float
    longitude: float


class Station(msgspec.Struct):
    name: str
    place: Place


server = Server("weather", version="1.0", instructions="Ask for a city.")


@server.tool()
async def forecast(city: str, days: int = 3, *, ctx: Context) -> Forecast:
    """Forecast for a city."""
    await ctx.progress(1, total=2, message="asking")
    await ctx.info({"city": city, "days": days})
    if days > 14:
        raise ToolError("at most 14 days")
    return Forecast(city, 12.5)


@server.tool(name="stations", description="Stations near a place.")
def stations(near: Place) -> list[Station]:
    return [Station("Blindern", near)]


@server.tool()
def radar() -> list[str | Image]:
    return ["now", Image(b"...", "image/png")]


@server.resource("weather://{city}/now", mime_type="application/json")
async def now(city: str) -> str:
    return city


@server.prompt()
def compare(first: str, second: str) -> list[Message]:
    return [Message("user", f"{first} or {second}?")]


@server.completion(prompt="compare", argument="first")
def cities(value: str) -> Completion:
    return Completion([value], total=1)


async def in_a_test() -> Forecast:
    # A registered function stays what it was.
    places: list[Station] = stations({"latitude": 59.9, "longitude": 10.7})
    assert places
    raise NotImplementedError


if __name__ == "__main__":
    server.run()


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
    return Place(latitude=59.9, longitude=10.7)


@server.tool
def nearest(city: str, place: Place = Depends(opened)) -> str:
    return f"{city} {place['latitude']}"


@server.tool
async def soon(city: str) -> TextContent:
    return TextContent(type="text", text=city)


@server.prompt
def ask(city: str) -> str:
    return f"What of {city}?"


def what_was_decorated() -> None:
    assert_type(nearest("Oslo"), str)
    assert_type(ask("Oslo"), str)
    assert_type(stations(Place(latitude=59.9, longitude=10.7)), list[Station])
    register: Callable[[Callable[[], str]], Callable[[], str]] = server.tool("name")
    assert_type(register(soon.__name__.upper), Callable[[], str])
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
