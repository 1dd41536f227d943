"""Type errors in a server."""

from __future__ import annotations

from typing import Any

from mcpgen_runtime import Context, RequestContext, Server, ToolAnnotations, ToolError
from mcpgen_runtime.r2025_06_18 import models
from mcpgen_runtime.r2025_06_18.server import ServerHandlers

server = Server()  # expect: error
server = Server("weather", verison="1.0")  # expect: error
server = Server("weather", page_size="10")  # expect: error
server = Server.from_openapi({}, http_client="https://api.example.com")  # expect: error


@server.tool(annotations=["readOnlyHint"])  # expect: error
async def forecast(city: str, ctx: Context) -> str:
    await ctx.progress("half")  # expect: error
    await ctx.log("loud", city)  # expect: error
    raise ToolError("no forecast")


@server.resource()  # expect: error
async def now() -> str:
    return ""


@server.tool(annotations=ToolAnnotations())
async def days(count: int) -> int:
    return count


async def in_a_test() -> None:
    await days("three")  # expect: error


class Weather(ServerHandlers):
    async def call_tool(self, params: int, ctx: RequestContext) -> Any:  # expect: error
        raise NotImplementedError

    async def list_tools(
        self, params: models.PaginatedRequestParams | None, ctx: RequestContext
    ) -> models.ListToolsResult:
        return models.ListPromptsResult(prompts=[])  # expect: error


@server.tool
def seconds(count: int) -> int:
    return count


seconds("three")  # expect: error
server.tool(1)  # expect: error
server.tool(nothing=1)  # expect: error
server.add_tool(seconds, nothing=1)  # expect: error
server.run("pigeon")  # expect: error
server.mount("other", server)  # expect: error
