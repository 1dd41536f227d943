"""The official SDK and FastMCP as clients, whose users answer whatever a server asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import fastmcp
import httpx2
import mcp
import mcp.types
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from interop.hearing import Heard
from interop.revisions import is_modern, mode_of, opened


@dataclass
class Visit:
    """A client at work, what it heard, and the HTTP that went by."""

    client: Any
    transport: str
    revision: str
    progress: str
    heard: Heard = field(default_factory=Heard)
    logs: Heard = field(default_factory=Heard)
    answers: list[httpx2.Response] = field(default_factory=list)

    @property
    def name(self) -> str:
        """A name that no other client has."""
        return f"{self.progress}-{self.transport}-{self.revision}"

    @property
    def modern(self) -> bool:
        return is_modern(self.revision)

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers with."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result
        text: str = result.content[0].text
        return text

    async def items(self, what: str) -> list[Any]:
        """All items of a list: the SDK gives a page of it, FastMCP the items."""
        listed = await getattr(self.client, f"list_{what}")()
        items: list[Any] = getattr(listed, what, listed)
        return items

    async def read(self, uri: str) -> Any:
        """The one part of a resource."""
        answer = await self.client.read_resource(uri)
        [content] = getattr(answer, "contents", answer)
        return content

    async def notified(self, kind: type[Any]) -> Any:
        return await self.heard.until(lambda message: isinstance(message, kind))

    def headers(self, method: str) -> list[httpx2.Headers]:
        """The header fields of the requests with an HTTP method."""
        return [each.request.headers for each in self.answers if each.request.method == method]


async def fill_in(context: Any, params: Any) -> mcp.types.ElicitResult:
    if params.mode == "url":
        return mcp.types.ElicitResult(action="accept")
    return mcp.types.ElicitResult(action="accept", content={"name": "Ada", "nights": 3})


async def fill_in_of_fastmcp(message: str, kind: Any, params: Any, context: Any) -> Any:
    return ElicitResult(action="accept") if kind is None else kind(name="Ada", nights=3)


async def answer(context: Any, params: Any) -> mcp.types.CreateMessageResult:
    content = mcp.types.TextContent(text=f"<{params.messages[-1].content.text}>")
    return mcp.types.CreateMessageResult(role="assistant", content=content, model="parrot")


async def roots(context: Any) -> mcp.types.ListRootsResult:
    return mcp.types.ListRootsResult.model_validate({"roots": [{"uri": "file:///maps"}]})


@asynccontextmanager
async def visit(target: Any, peer: str, transport: str, revision: str) -> AsyncIterator[Visit]:
    """A client of a peer in one revision, at a URL or a command."""
    progress = "progress_callback" if peer == "official" else "progress_handler"
    visiting = Visit(None, transport, revision, progress)

    async def keep(message: Any) -> None:
        visiting.heard.keep(message)

    async def keep_log(params: Any) -> None:
        visiting.logs.keep((params.level, params.logger, params.data))

    async def keep_answer(response: httpx2.Response) -> None:
        visiting.answers.append(response)

    sse = str(target).replace("/mcp", "/sse")
    options: dict[str, Any] = {"mode": mode_of(revision), "message_handler": keep}
    async with AsyncExitStack() as stack:
        if peer == "fastmcp":
            way = SSETransport(sse) if transport == "sse" else StreamableHttpTransport(target)
            client: Any = fastmcp.Client(
                way,
                log_handler=keep_log,
                elicitation_handler=fill_in_of_fastmcp,
                sampling_handler=lambda messages, params, context: f"<{messages[-1].content.text}>",
                roots=["file:///maps"],
                **options,
            )
        else:
            hooks = {"response": [keep_answer]}
            http = await stack.enter_async_context(
                httpx2.AsyncClient(timeout=30, event_hooks=hooks)
            )
            ways: dict[str, Any] = {
                "pipes": lambda: target,
                "sse": lambda: sse_client(sse),
                "http": lambda: streamable_http_client(target, http_client=http),
            }
            client = mcp.Client(
                ways[transport](),
                logging_callback=keep_log,
                log_level="debug" if is_modern(revision) else None,
                elicitation_callback=fill_in,
                sampling_callback=answer,
                list_roots_callback=roots,
                cache=None,
                **options,
            )
        visiting.client = await stack.enter_async_context(opened(client, revision))
        yield visiting
