"""A server as users write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import httpx2
import msgspec

from mcp_protocol import (
    Completion,
    Context,
    HTTPRoute,
    Image,
    MCPType,
    Message,
    RouteMap,
    Server,
    ToolError,
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
