"""A FastAPI application whose operations are tools of an MCP server at /mcp.

uvicorn app:app
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import httpx2
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from pkg import MCPType, RouteMap, Server


class Order(BaseModel):
    """How many of an item somebody orders."""

    item: str
    count: Annotated[int, Field(gt=0)] = 1


app = FastAPI(title="Shop", version="1.0")
stock = {"pen": 12, "cup": 3}
orders: list[Order] = []


@app.get("/stock", operation_id="list_stock")
async def list_stock(at_least: int = 0) -> dict[str, int]:
    """List the items in stock with their numbers."""
    return {item: count for item, count in stock.items() if count >= at_least}


@app.post("/orders", operation_id="place_order", status_code=201)
async def place_order(order: Order) -> Order:
    """Order an item that is in stock."""
    available = stock.get(order.item, 0)
    if available < order.count:
        raise HTTPException(409, f"{order.item}: {available} in stock")
    stock[order.item] = available - order.count
    orders.append(order)
    return order


@app.get("/admin/orders")
async def list_orders() -> list[Order]:
    """List all orders. The route map below keeps this operation from models."""
    return orders


# Below the last route: `openapi()` describes the routes that exist when it is first called.
# The transport calls the application in this process, with its validation, and without a socket.
server = Server.from_openapi(
    app.openapi(),
    httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://shop"),
    route_maps=[RouteMap(pattern="^/admin/", mcp_type=MCPType.EXCLUDE)],
)


@server.tool()
async def most_ordered() -> str:
    """Name the item that was ordered most: a tool by hand next to those of the document."""
    counts = Counter[str]()
    for order in orders:
        counts[order.item] += order.count
    return ", ".join(item for item, _ in counts.most_common(1)) or "nothing yet"


app.mount("/", server.asgi())
