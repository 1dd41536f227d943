"""Values of tools, typed by what the caller names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, assert_type

from pydantic import BaseModel

from mcpgen_runtime import ToolFailedError, ToolResultError, connect, connect_sync, models
from mcpgen_runtime.r2026_07_28 import models as newest


@dataclass
class Forecast:
    celsius: float


class ForecastModel(BaseModel):
    celsius: float


class Point(NamedTuple):
    x: int


async def values() -> str:
    async with connect(["python", "weather.py"]) as client:
        assert_type(
            await client.call_tool("forecast", {"city": "Oslo"}, returns=Forecast), Forecast
        )
        assert_type(await client.call_tool("forecast", returns=ForecastModel), ForecastModel)
        assert_type(await client.call_tool("forecast", timeout=5, returns=Point), Point)
        assert_type(await client.call_tool("days", returns=list[int]), list[int])
        assert_type(await client.call_tool("count", returns=int), int)
        bounded: int = await client.call_tool("count", returns=Annotated[int, "a note"])
        result = await client.call_tool("forecast")
        assert_type(result, models.CallToolResult)
        assert_type(result.data, Any)
        try:
            return (await client.call_tool("forecast", returns=Forecast)).__doc__ or str(bounded)
        except ToolFailedError as error:
            assert_type(error.message, str)
            return error.message
        except ToolResultError as error:
            return f"{error.tool} {error.revision}"


def blocking() -> None:
    with connect_sync(["python", "weather.py"], revision="2026-07-28") as client:
        assert_type(client.call_tool("forecast", returns=Forecast), Forecast)
        assert_type(client.call_tool("forecast"), newest.CallToolResult)
