"""Handlers of both sides, as classes."""

from __future__ import annotations

from mcpgen_runtime import ClientHandlers, RequestContext, connect
from mcpgen_runtime.r2025_06_18 import models
from mcpgen_runtime.r2025_06_18.client import ClientHandlers as HandlersOfOne
from mcpgen_runtime.r2025_06_18.server import ServerHandlers


class Desktop(HandlersOfOne):
    """Answers what a server of one revision may ask."""

    async def list_roots(
        self, params: models.RequestParams | None, ctx: RequestContext
    ) -> models.ListRootsResult:
        return models.ListRootsResult(roots=[models.Root(uri="file:///home", name="home")])

    async def logging_message(
        self, params: models.LoggingMessageNotificationParams, ctx: RequestContext
    ) -> None:
        print(params.level, params.data)


class Weather(ServerHandlers):
    """Answers the requests of a client of one revision."""

    async def call_tool(
        self, params: models.CallToolRequestParams, ctx: RequestContext
    ) -> models.CallToolResult:
        text = models.TextContent(text=params.name)
        return models.CallToolResult(content=[text], is_error=False)


async def main() -> None:
    async with connect(["server"], revision="2025-06-18", handlers=Desktop()) as client:
        await client.ping()
    async with connect(["server"], handlers=ClientHandlers) as other:
        await other.list_tools()
