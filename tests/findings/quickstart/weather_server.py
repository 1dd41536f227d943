"""The server of the specification's quickstart: alerts and forecasts of the weather service."""

from __future__ import annotations

import sys
from typing import Any

import httpx2

from mcpgen_runtime import Server

API = sys.argv[1] if sys.argv[1:] else "https://api.weather.gov"

server = Server("weather")


async def fetch(url: str) -> Any:
    """The JSON at an address of the weather service."""
    async with httpx2.AsyncClient(headers={"User-Agent": "weather-app/1.0"}, timeout=30) as http:
        response = await http.get(url)
        response.raise_for_status()
        return response.json()


@server.tool()
async def get_alerts(state: str) -> str:
    """Weather alerts of a state of the US, by its two letters."""
    alerts = await fetch(f"{API}/alerts/active/area/{state}")
    texts = [each["properties"]["headline"] for each in alerts["features"]]
    return "\n".join(texts) or "no alerts"


@server.tool()
async def get_forecast(latitude: float, longitude: float) -> str:
    """Weather forecast for a place."""
    point = await fetch(f"{API}/points/{latitude},{longitude}")
    forecast = await fetch(point["properties"]["forecast"])
    periods = forecast["properties"]["periods"][:5]
    return "\n".join(f"{each['name']}: {each['detailedForecast']}" for each in periods)


if __name__ == "__main__":
    server.run()
