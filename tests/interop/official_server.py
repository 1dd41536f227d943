"""A server on the official SDK with one of everything, for our client to talk to."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    JSONRPCMessage,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

sys.path.append(str(Path(__file__).parent.parent))

from interop.city import CITIES, add_city, run_application

RETRY_MILLISECONDS = 100

server = MCPServer("official", instructions="Ask for a city.")
add_city(server, Context)


class Guest(BaseModel):
    """A visitor."""

    name: str
    nights: int = 2


class Events(EventStore):
    """Keeps what was sent, in order."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events) - 1)

    async def replay_events_after(self, last_event_id: str, send: EventCallback) -> str | None:
        place = int(last_event_id)
        stream, _ = self._events[place]
        for number, (owner, message) in enumerate(self._events[place + 1 :], place + 1):
            if owner == stream and message is not None:
                await send(EventMessage(message, str(number)))
        return stream


async def ask_first() -> Elicit[Guest]:
    return Elicit("Who is coming?", Guest)


async def ask_second(first: Annotated[Guest, Resolve(ask_first)]) -> Elicit[Guest]:
    return Elicit(f"Who else, beside {first.name}?", Guest)


async def ask_model(text: str) -> Sample:
    said = SamplingMessage(role="user", content=TextContent(text=text))
    return Sample([said], max_tokens=50)


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def note(text: str, ctx: Context) -> str:
    with warnings.catch_warnings(action="ignore"):
        await ctx.log("warning", text, logger_name="notes")
    return "noted"


@server.tool()
def fail() -> str:
    raise RuntimeError("out of order")


@server.tool()
async def book(guest: Annotated[Guest, Resolve(ask_first)]) -> str:
    return f"booked for {guest.name} ({guest.nights})"


@server.tool()
async def book_twice(
    first: Annotated[Guest, Resolve(ask_first)], second: Annotated[Guest, Resolve(ask_second)]
) -> str:
    return f"booked for {first.name} ({first.nights}), then {second.name} ({second.nights})"


@server.tool()
async def translate(text: str, answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    return f"{answer.model} says: {answer.content.text}"


@server.tool()
async def folders(result: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    return " ".join(str(root.uri) for root in result.roots)


@server.tool()
async def change(ctx: Context) -> str:
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await ctx.notify_tools_changed()
        await ctx.notify_prompts_changed()
        await ctx.notify_resources_changed()
    else:
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_prompt_list_changed()
        await ctx.session.send_resource_list_changed()
    return "changed"


@server.tool()
async def update(uri: str, ctx: Context) -> str:
    await ctx.notify_resource_updated(uri)
    return "updated"


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    return Completion(values=[city for city in CITIES if city.startswith(argument.value)])


def application(kind: str) -> tuple[Any, str]:
    """An application for one of the ways over HTTP, and its path."""
    if kind == "sse":
        return server.sse_app(), "/sse"
    made = server.streamable_http_app(
        json_response=kind == "json",
        stateless_http=kind == "alone",
        event_store=Events(),
        retry_interval=RETRY_MILLISECONDS,
    )
    return made, "/mcp"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run()
    else:
        run_application(*application(sys.argv[1]))
