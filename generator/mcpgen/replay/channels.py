"""Raw channels to servers, by the transports of a generated package.

A channel passes whole messages. What its transport has to know of them (header fields of HTTP, the
session, the end of a stream for a cancellation) follows from each message and its revision.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeAlias

import anyio

from mcpgen.errors import ServerError, safe_text
from mcpgen.explain.revision import kind_of
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.project.live_server import Target
from mcpgen.replay.recording import CANCELLED

OnStderr: TypeAlias = Callable[[str], object]
"""Called with each line that a server writes to standard error."""

_KINDS: Mapping[str, str] = {
    "request": "request",
    "notification": "notification",
    "success response": "response",
    "error response": "error",
}
"""The word of a package for each kind of message."""


@dataclass(frozen=True)
class Wire:
    """A channel to a server, which takes JSON values.

    Attributes:
        package: The package of the channel.
        channel: The channel.
    """

    package: Any
    channel: Any

    @property
    def is_ordered(self) -> bool:
        """Whether a message arrives before the messages that are sent later."""
        return bool(self.channel.transport != "HTTP")

    @property
    def errors(self) -> Any:
        """The errors of the package."""
        return import_module(f"{self.package.__name__}.errors")

    async def receive(self) -> bytes:
        """Wait for the next message.

        Raises:
            EndOfChannel: The server is gone.
            FrameError: A message was unusable; receive again.
            RequestLost: A request will not be answered; receive again.
        """
        return bytes(await self.channel.receive())

    async def send(self, message: Node, revision: str, data: bytes = b"") -> None:
        """Send a message; over HTTP, until its response has begun.

        Args:
            message: The message.
            revision: The revision in which it is written; empty if unknown.
            data: Its bytes, where these must not change.

        Raises:
            McpError: The message was refused, or the server is gone.
        """
        agreed = self.package.REVISIONS.get(revision)
        params: Json = message.get("params")
        if message.get("method") == CANCELLED and is_object(params) and agreed is not None:
            closes = agreed.facts.http.cancellation == "close"
            if closes and self.channel.close_request_stream(params.get("requestId")):
                return
        error: Json = message.get("error")
        channel = import_module(f"{self.package.__name__}.channel")
        outgoing = channel.OutgoingMessage(
            data or json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(),
            _KINDS.get(kind_of(message), "notification"),
            message.get("id"),
            str(message.get("method", "")),
            agreed,
            None,
            params,
            error.get("code") if is_object(error) else None,
        )
        await self.channel.send(outgoing)


@asynccontextmanager
async def open_wire(
    package: Any, target: Target, tools: Sequence[Node] = (), on_stderr: OnStderr | None = None
) -> AsyncGenerator[Wire]:
    """Open a channel to a server; it is closed, and the server ended, with the block.

    Args:
        package: A generated package with a client of all revisions and transports.
        target: The server.
        tools: The tools of the server, whose schemas name arguments that header fields repeat; more
            may be added meanwhile.
        on_stderr: Called with each line that the server writes to standard error.

    Raises:
        ServerError: The server does not start, or the URL is none.
    """
    try:
        if isinstance(target.address, str):
            channel = _http_channel(package, target, tools)
        else:
            process = import_module(f"{package.__name__}.transports.process")
            channel = await process.open_process(
                target.address, on_stderr=on_stderr, **target.options
            )
    except (package.McpError, OSError, ValueError) as error:
        text = safe_text(" ".join(str(error).split()), 500)
        raise ServerError(f"{target.shown}: expected a server that starts, got {text}") from error
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        if isinstance(target.address, str):
            tasks.start_soon(channel.run)
        try:
            yield Wire(package, channel)
        except Exception as error:  # raised below: a task group would wrap it
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await channel.close()
    if failure is not None:
        raise failure


def _http_channel(package: Any, target: Target, tools: Sequence[Node]) -> Any:
    channels = import_module(f"{package.__name__}.transports.http.http_channel")
    requests = import_module(f"{package.__name__}.transports.http.http_client")
    fields: Mapping[str, str] = target.options.get("headers") or {}

    async def own_fields() -> Mapping[str, str]:
        return fields

    return channels.HttpChannel(
        target.address,
        package.REVISIONS,
        requests.HttpRequests(own_fields),
        param_headers=_param_headers(package, tools),
    )


def _param_headers(package: Any, tools: Sequence[Node]) -> Callable[..., Mapping[str, str]]:
    """The function that returns the header fields which repeat arguments of a tool call."""
    facts = package.REVISIONS.newest().facts
    module = import_module(f"{package.__name__}.client.tool_param_headers")
    headers = module.ToolParamHeaders(10_000)
    headers.mirrored = True
    headers.prefix = facts.headers.param_prefix

    def headers_for(tool: str, arguments: Mapping[str, Json]) -> Mapping[str, str]:
        headers.store(
            SimpleNamespace(name=each["name"], input_schema=each["inputSchema"])
            for each in tools
            if each.get("name") == tool and is_object(each.get("inputSchema"))
        )
        fields: Mapping[str, str] = headers.headers_for(tool, arguments)
        return fields

    return headers_for


@asynccontextmanager
async def in_memory(package: Any, server: Any) -> AsyncGenerator[Wire]:
    """Serve a server of this process over a channel in memory, as long as the block runs.

    Args:
        package: The package of the server.
        server: The server.
    """
    memory = import_module(f"{package.__name__}.transports.memory")
    near, far = memory.memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        yield Wire(package, near)
        await near.close()


def listed_tools(message: Json) -> list[Node]:
    """The tools in a result of `tools/list`; none for other messages."""
    result: Json = message.get("result") if is_object(message) else None
    tools: Json = result.get("tools") if is_object(result) else None
    return [each for each in tools if is_object(each)] if is_array(tools) else []
