"""Type errors with the types of all revisions."""

from __future__ import annotations

from mcpgen_runtime import Client, ClientHandlers, RequestContext, models
from mcpgen_runtime.server.chosen import Server
from mcpgen_runtime.testing import connected

server = Server("weather")


class Handlers(ClientHandlers):
    async def elicit(
        self, params: models.ElicitRequestParams, ctx: RequestContext
    ) -> models.ElicitResult:
        params.url  # expect: error
        return models.ListRootsResult(roots=[])  # expect: error


async def reading(client: Client) -> None:
    result = await client.call_tool("forecast")
    result.structuredContent  # expect: error
    result.is_error = True  # expect: error
    result.content[0].text  # expect: error
    (await client.list_tools())[0].title.upper()  # expect: error
    await client.complete("city", models.PromptReference(name="greet"))  # expect: error
    await client.complete({"name": "city"}, models.TextContent(text=""))  # expect: error


def making() -> None:
    models.PromptReference()  # expect: error
    models.PromptReference(nme="greet")  # expect: error
    models.PromptReference(name=None)  # expect: error
    models.Annotations(audience=["robot"])  # expect: error
    models.TextContent("text")  # expect: error


async def narrowing() -> None:
    async with connected(server, revision="2024-11-05") as old:
        result = await old.client.call_tool("forecast")
        result.structured_content  # expect: error
        models.CallToolResult.structured_content  # a default, for all revisions
        reference = models.PromptReference(name="greet")
        await old.client.complete({"name": "city"}, reference)  # expect: error
