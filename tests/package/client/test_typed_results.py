"""Results of tools as values: `result.data`, and `returns=` with types of the user."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field

from kit.live import server_with
from kit.scripted import connect_scripted
from kit.wire import ALL, every
from mcpgen_runtime import Image, Server, ToolError, ToolFailedError, ToolResultError, connect

NEWEST, OLDEST = ALL[-1], ALL[0]


two = pytest.mark.parametrize("revision", [OLDEST, NEWEST])


@dataclasses.dataclass
class Forecast:
    city: str
    day: date
    celsius: float = 0.0


class ForecastModel(BaseModel):
    city: str
    day: date
    celsius: Annotated[float, Field(ge=-273.15)]


class Point(NamedTuple):
    x: int
    y: int


def weather() -> Server:
    def forecast(city: str) -> Forecast:
        return Forecast(city, date(2026, 7, 1), 21)

    def count() -> int:
        return 5

    def greet() -> str:
        return "[1]"

    def days() -> list[date]:
        return [date(2026, 7, 1)]

    def origin() -> Point:
        return Point(1, 2)

    def nested() -> dict[str, int]:
        return {"result": 5}

    def nothing() -> None:
        return None

    def picture() -> list[str | Image]:
        return ["a picture", Image(b"png", "image/png")]

    def fail() -> int:
        raise ToolError("out of numbers")

    return server_with(forecast, count, greet, days, origin, nested, nothing, picture, fail)


@every
async def test_a_result_is_read_as_the_type_that_the_caller_names(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        for kind in (Forecast, ForecastModel):
            value = await client.call_tool("forecast", {"city": "Oslo"}, returns=kind)
            assert value == kind(city="Oslo", day=date(2026, 7, 1), celsius=21)
        assert await client.call_tool("count", returns=int) == 5
        assert await client.call_tool("count", returns=int | None) == 5
        assert await client.call_tool("greet", returns=str) == "[1]"
        assert await client.call_tool("days", returns=list[date]) == [date(2026, 7, 1)]
        assert await client.call_tool("origin", returns=Point) == Point(1, 2)
        assert await client.call_tool("nested", returns=dict[str, int]) == {"result": 5}


async def test_a_text_is_taken_as_it_is_by_types_that_texts_have() -> None:
    async with connect_scripted(ALL[0], rest=[text("[1]")] * 8) as (client, _):
        for returns in (str, Any, Annotated[Any, "x"], Annotated[str, {"unit": "m"}]):
            assert await client.call_tool("greet", returns=returns) == "[1]"
        assert await client.call_tool("greet", returns=Annotated[list[int], {"a": 1}]) == [1]


@every
async def test_data_is_the_structured_value_or_the_only_text(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        structured = hasattr(await client.call_tool("count"), "structured_content")
        structured = structured and revision not in ("2024-11-05", "2025-03-26")
        data = {
            name: (await client.call_tool(name)).data
            for name in ("count", "greet", "days", "nested", "nothing", "picture", "fail")
        }
    assert data == {
        "count": 5 if structured else "5",
        "greet": "[1]",
        "days": ["2026-07-01"] if structured else '["2026-07-01"]',
        "nested": {"result": 5} if structured else '{"result":5}',
        "nothing": None,
        "picture": None,
        "fail": None,
    }


def text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts], **more}


async def test_a_value_is_unwrapped_where_only_its_type_shows_that() -> None:
    answers = [text("It is 5.", structuredContent={"result": 5})] * 2
    async with connect_scripted("2025-11-25", *answers) as (client, _):
        assert await client.call_tool("count", returns=int) == 5
        assert await client.call_tool("count", returns=dict[str, int]) == {"result": 5}


@two
async def test_a_failed_tool_raises_with_its_text(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        with pytest.raises(ToolFailedError, match="out of numbers") as info:
            await client.call_tool("fail", returns=int)
    assert str(info.value).startswith(f"tool 'fail' ({revision}): the tool reported an error: ")
    assert (info.value.tool, info.value.revision) == ("fail", revision)
    assert info.value.result.is_error


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (text('{"city": 7}'), "the text '{\"city\": 7}': Expected `str`, got `int` - at `$.city`"),
        (text("sunny"), "the text 'sunny': Expected `object`, got `str`"),
        (text("a", "b"), "2 content blocks"),
    ],
)
@two
async def test_a_result_without_such_a_value_is_refused(
    revision: str, result: Mapping[str, Any], said: str
) -> None:
    said = f"no structured value, and {said}"
    if revision == NEWEST and "city" in said:
        result = text(structuredContent={"city": 7})
        said = "the structured value {'city': 7}: Expected `str`, got `int` - at `$.city`"
    async with connect_scripted(revision, result) as (client, _):
        with pytest.raises(ToolResultError) as info:
            await client.call_tool("forecast", returns=Forecast)
    expected = f"tool 'forecast' ({revision}): expected a value of Forecast, got {said}"
    assert str(info.value) == expected
    assert not isinstance(info.value, ToolFailedError)


class Unreadable:
    def __init__(self, a: Any) -> None: ...


@pytest.mark.parametrize("returns", [Unreadable, "Forecast", 5, list["Missing"]])  # type: ignore[name-defined]  # noqa: F821 - the error is what is tested
async def test_a_type_without_json_form_is_refused_before_the_call(returns: Any) -> None:
    async with connect_scripted(NEWEST) as (client, server):
        with pytest.raises(TypeError, match=r"^returns="):
            await client.call_tool("count", returns=returns)
    assert server.heard == []
