"""The tools of the application, called in this process."""

from __future__ import annotations

import pytest

from app import list_orders, server

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_an_operation_is_a_tool() -> None:
    result = await server.call_tool("place_order", {"item": "cup", "count": 2})
    assert result.structured_content == {"item": "cup", "count": 2}
    assert (await list_orders())[-1].item == "cup"


@pytest.mark.parametrize("count", [0, 100])
async def test_an_order_that_cannot_be_placed_is_an_error(count: int) -> None:
    result = await server.call_tool("place_order", {"item": "pen", "count": count})
    assert result.is_error


async def test_operations_for_administrators_are_no_tools() -> None:
    names = {tool.name for tool in await server.list_tools()}
    assert names == {"list_stock", "place_order", "most_ordered"}
