"""A tool call whose argument and result are pydantic models, in memory, against FastMCP.

Each client calls the server of its own kind. All tools have one body and the same types, so all
read, validate and write the same JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
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
async def ours() -> AsyncIterator[Caller]:
    """Our client on our server."""
    server = Server("bench")
    server.add_tool(lend)
    async with connect(server, revision=HANDSHAKE) as client:
        check_result(await client.call_tool("lend", ARGUMENTS))
        yield partial(client.call_tool, "lend", ARGUMENTS)


@asynccontextmanager
async def fast() -> AsyncIterator[Caller]:
    """FastMCP's client on its server."""
    server: Any = fastmcp.FastMCP("bench")
    server.tool(lend)
    async with fastmcp.Client(server, mode="legacy") as client:
        check_result(await client.call_tool("lend", ARGUMENTS))
        yield partial(client.call_tool, "lend", ARGUMENTS)


@asynccontextmanager
async def official() -> AsyncIterator[Caller]:
    """The official client on the official server."""
    server = MCPServer("bench")
    server.tool()(lend)
    async with mcp.Client(server, mode="legacy") as client:
        check_result(await client.call_tool("lend", ARGUMENTS))
        yield partial(client.call_tool, "lend", ARGUMENTS)


def pydantic_calls(rounds: int) -> Iterable[Line]:
    """The row on models of pydantic."""
    contenders = {OURS: ours(), FASTMCP: fast(), SDK: official()}
    seconds = asyncio.run(compare(contenders, one_by_one, rounds))
    targets = AtMost(SDK, 1 / 5), AtMost(FASTMCP, 1 / 8)
    yield Line("a call with models of pydantic, in memory", seconds, targets)
