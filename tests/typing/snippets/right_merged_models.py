"""The types of all revisions, and how a session of one narrows them."""

from __future__ import annotations

from typing import Any, assert_type

from mcpgen_runtime import Client, ServerSession, connect, models, replace
from mcpgen_runtime.r2024_11_05 import models as oldest
from mcpgen_runtime.r2024_11_05.client import Client as ClientOfOldest
from mcpgen_runtime.r2025_06_18 import models as middle
from mcpgen_runtime.runtime.request_context import RequestContext
from mcpgen_runtime.server.chosen import Server
from mcpgen_runtime.testing import Pair, PairOf, connected

server = Server("weather")


async def what_is_read() -> None:
    async with connect(server) as client:
        assert_type(client, Client)
        tools = await client.list_tools()
        assert_type(tools, list[models.Tool])
        assert_type(tools[0].title, str | None)
        assert_type(tools[0].annotations, models.ToolAnnotations | None)
        result = await client.call_tool("forecast")
        assert_type(result, models.CallToolResult)
        assert_type(result.content, list[models.ContentBlock])
        assert_type(result.is_error, bool | None)
        for block in result.content:
            if block.type == "resource_link":
                assert_type(block, models.ResourceLink)
            elif isinstance(block, models.EmbeddedResource):
                assert_type(
                    block.resource, models.TextResourceContents | models.BlobResourceContents
                )


def told_apart(params: models.ElicitRequestParams) -> str:
    match params:
        case models.ElicitRequestFormParams():
            return str(params.requested_schema)
        case models.ElicitRequestURLParams(url=url, elicitation_id=identifier):
            assert_type(identifier, str | None)
            return url


async def what_is_passed_in(client: Client, ctx: RequestContext) -> None:
    prompt = models.PromptReference(name="greet")
    template = models.ResourceTemplateReference(uri="city://{name}")
    argument = models.CompleteRequestParamsArgument(name="city", value="O")
    for reference in (prompt, template):
        await client.complete(argument, reference)
    await client.complete({"name": "city", "value": ""}, {"type": "ref/prompt", "name": "greet"})
    content = models.TextContent(text="Hello", annotations=models.Annotations(priority=1))
    message = models.SamplingMessage(role="user", content=content)
    session = ServerSession(ctx)
    said = await session.create_message(messages=[message, {"role": "user"}], max_tokens=5)
    assert_type(said, models.CreateMessageResult)
    tool = models.Tool(name="forecast", input_schema={"type": "object"}, title=None)
    assert_type(tool.output_schema, dict[str, Any] | None)
    assert_type(replace(tool, name="other"), models.Tool)


async def one_revision(pinned: str) -> None:
    async with connected(server) as pair:
        assert_type(pair, Pair)
        assert_type(pair.client, Client)
    async with connected(server, revision="2024-11-05") as old:
        assert_type(old, PairOf[ClientOfOldest])
        assert_type(await old.client.list_tools(), list[oldest.Tool])
    async with connect(server, revision="2025-06-18") as client:
        result = await client.call_tool("forecast")
        assert_type(result.content[0], middle.ContentBlock)
    async with connected(server, revision=pinned) as some:
        print(some.client.revision)
