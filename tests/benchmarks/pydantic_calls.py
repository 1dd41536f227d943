"""A tool call whose argument and result are pydantic models, in memory, against FastMCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import fastmcp
import mcp
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

from mcpgen_runtime import Server, connect

from .calls import Caller, compare, one_by_one
from .measure import FASTMCP, OURS, SDK, AtMost, Line
from .work import HANDSHAKE

ORDER = {
    "reader": "Ann",
    "books": [{"title": f"Tides {number}", "count": number + 1} for number in range(5)],
}
ARGUMENTS = {"order": ORDER}


class Book(BaseModel):
    title: str = Field(min_length=1, max_length=100)
    count: int = Field(default=1, ge=1, le=10)


class Order(BaseModel):
    reader: str
    books: list[Book]
    express: bool = False


class Receipt(BaseModel):
    reader: str
    books: list[Book]
    total: int


async def lend(order: Order) -> Receipt:
    """Lend books."""
    total = sum(book.count for book in order.books)
    return Receipt(reader=order.reader, books=order.books, total=total)


def check_result(result: Any) -> None:
    """Check that a result is the receipt."""
    assert result.structured_content == {
        "reader": "Ann",
        "books": ORDER["books"],
        "total": 15,
    }, result


@asynccontextmanager
async def calls(server: Any, client_of: Callable[[Any], Any]) -> AsyncIterator[Caller]:
    """Calls of a contender's server by its own client."""
    server.tool()(lend)
    async with client_of(server) as client:
        check_result(await client.call_tool("lend", ARGUMENTS))
        yield partial(client.call_tool, "lend", ARGUMENTS)


def pydantic_calls(rounds: int) -> Iterable[Line]:
    """The row on models of pydantic."""
    contenders = {
        OURS: calls(Server("bench"), partial(connect, revision=HANDSHAKE)),
        FASTMCP: calls(fastmcp.FastMCP("bench"), partial(fastmcp.Client, mode="legacy")),
        SDK: calls(MCPServer("bench"), partial(mcp.Client, mode="legacy")),
    }
    seconds = asyncio.run(compare(contenders, one_by_one, rounds))
    targets = AtMost(SDK, 1 / 5), AtMost(FASTMCP, 1 / 8)
    yield Line("a call with models of pydantic, in memory", seconds, targets)
