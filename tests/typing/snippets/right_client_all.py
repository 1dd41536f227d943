"""A client of about a hundred lines, by the types of all revisions."""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from mcpgen_runtime import (
    UNSET,
    Client,
    ClientHandlers,
    MethodNotFoundError,
    RequestContext,
    connect,
    models,
)


class Desktop(ClientHandlers):
    """Handlers for requests and notifications of the server."""

    def __init__(self) -> None:
        self.logged: list[str] = []

    async def list_roots(
        self,
        params: models.RequestParams | models.ListRootsRequestParams | None,
        ctx: RequestContext,
    ) -> models.ListRootsResult:
        return models.ListRootsResult(roots=[models.Root(uri="file:///home", name="home")])

    async def create_message(
        self, params: models.CreateMessageRequestParams, ctx: RequestContext
    ) -> models.CreateMessageResult:
        said = [text_of(message.content) for message in params.messages]
        if params.tools is not None:
            said += [tool.name for tool in params.tools]
        answer = models.TextContent(text=f"{params.max_tokens}: {' '.join(said)}")
        return models.CreateMessageResult(role="assistant", model="echo", content=answer)

    async def elicit(
        self, params: models.ElicitRequestParams, ctx: RequestContext
    ) -> models.ElicitResult | dict[str, Any]:
        if isinstance(params, models.ElicitRequestURLParams):
            return models.ElicitResult(action="decline")
        asked = dict.fromkeys(params.requested_schema.properties, "Oslo")
        if params.mode is None:
            return {"action": "accept", "content": asked}
        return models.ElicitResult(action="accept", content={**asked})

    async def logging_message(
        self, params: models.LoggingMessageNotificationParams, ctx: RequestContext
    ) -> None:
        self.logged.append(f"{params.level} {params.logger or '-'}: {params.data}")


Content = models.ContentBlock | models.ToolUseContent | models.ToolResultContent


def text_of(content: Content | Sequence[Content]) -> str:
    """Any content as a line of text."""
    if isinstance(content, models.TextContent):
        return content.text
    if isinstance(content, models.ImageContent | models.AudioContent):
        return f"{content.mime_type}, {len(base64.b64decode(content.data))} bytes"
    if isinstance(content, models.ResourceLink):
        return content.title or content.name
    if isinstance(content, models.EmbeddedResource):
        return text_in(content.resource)
    if isinstance(content, models.ToolUseContent):
        return content.name
    if isinstance(content, models.ToolResultContent):
        return text_of(content.content)
    return " ".join(text_of(each) for each in content)


def text_in(contents: models.TextResourceContents | models.BlobResourceContents) -> str:
    """The text of a resource."""
    if isinstance(contents, models.TextResourceContents):
        return contents.text
    return base64.b64decode(contents.blob).decode()


async def use(client: Client) -> list[str]:
    """Everything that the server has, in lines."""
    lines: list[str] = []
    for tool in await client.list_tools():
        hint = tool.annotations.read_only_hint if tool.annotations is not None else None
        icons = [icon.src for icon in tool.icons or ()]
        schemas = sorted(tool.input_schema), sorted(tool.output_schema or ())
        lines.append(f"{tool.title or tool.name}: {tool.description} {hint} {icons} {schemas}")

    def progressed(progress: float, total: float | None, message: str | None) -> None:
        lines.append(f"{progress:g} of {total:g}" if total is not None else f"{progress:g}")

    result = await client.call_tool("forecast", {"city": "Oslo"}, on_progress=progressed)
    lines += [text_of(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and structured is not UNSET:
        lines.append(f"degrees {structured['degrees']}")
    lines.append("failed" if result.is_error else "worked")
    for prompt in await client.list_prompts():
        given = {argument.name: "Oslo" for argument in prompt.arguments or () if argument.required}
        got = await client.get_prompt(prompt.name, given)
        lines += [f"{said.role}: {text_of(said.content)}" for said in got.messages]
    for resource in await client.list_resources():
        read = await client.read_resource(resource.uri)
        lines += [f"{each.mime_type} {text_in(each)}" for each in read.contents]
    reference = models.PromptReference(name="greet")
    argument = models.CompleteRequestParamsArgument(name="city", value="O")
    completed = await client.complete(argument, reference)
    again = await client.complete(
        {"name": "city", "value": "O"}, {"type": "ref/prompt", "name": "greet"}
    )
    assert completed.completion.values == again.completion.values
    lines += completed.completion.values
    try:
        await client.set_level("warning")
    except MethodNotFoundError:
        client.ask_for_logs("warning")
    result = await client.call_tool("ask")
    return lines + [text_of(block) for block in result.content]


async def main() -> None:
    desktop = Desktop()
    async with connect(sys.argv[1:] or [sys.executable, "server.py"], handlers=desktop) as client:
        print(*await use(client), *desktop.logged, sep="\n")
        print(client.revision, Path.cwd())


if __name__ == "__main__":
    anyio.run(main)
