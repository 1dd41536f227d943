"""Raw channels to servers, by the transports of a generated package.

A channel passes whole messages; what the transport needs to know of them (header fields of HTTP,
the session) it gets from the message itself and the revision.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio

from mcpgen.errors import ServerError, safe_text
from mcpgen.explain.revision import kind_of
from mcpgen.json_types import Json, Node, is_object
from mcpgen.project.live_server import Target

_KINDS: Mapping[str, str] = {
    "request": "request",
    "notification": "notification",
    "success response": "response",
    "error response": "error",
}
"""The word of a package for each kind of message."""


@asynccontextmanager
async def open_channel(
    package: Any, target: Target, tools: Iterable[Node] = (), revision: str = ""
) -> AsyncGenerator[Any]:
    """Open a channel to a server; it is closed, and the server ended, with the block.

    Args:
        package: A generated package with a client of all revisions and transports.
        target: The server.
        tools: The tools of the server, whose schemas name arguments that header fields repeat.
        revision: The revision of the messages.

    Raises:
        ServerError: The server does not start, or the URL is none.
    """
    from importlib import import_module

    try:
        if isinstance(target.address, str):
            http = import_module(f"{package.__name__}.transports.http.http_channel")
            channel = http.HttpChannel(
                target.address,
                package.REVISIONS,
                _requests(package, target),
                param_headers=_param_headers(package, tools, revision),
            )
        else:
            process = import_module(f"{package.__name__}.transports.process")
            channel = await process.open_process(target.address, on_stderr=None, **target.options)
    except (package.McpError, OSError, ValueError) as error:
        text = safe_text(" ".join(str(error).split()), 500)
        raise ServerError(f"{target.shown}: expected a server that starts, got {text}") from error
    async with anyio.create_task_group() as tasks:
        if isinstance(target.address, str):
            tasks.start_soon(channel.run)
        try:
            yield channel
        finally:
            with anyio.CancelScope(shield=True):
                await channel.close()


def _requests(package: Any, target: Target) -> Any:
    from importlib import import_module

    http = import_module(f"{package.__name__}.transports.http.http_client")
    fields: Mapping[str, str] = target.options.get("headers") or {}

    async def own_fields() -> Mapping[str, str]:
        return fields

    return http.HttpRequests(own_fields)


def _param_headers(package: Any, tools: Iterable[Node], revision: str) -> Any:
    """The function that returns the header fields of a tool call; `None` in most revisions."""
    facts = package.REVISIONS[revision].facts if revision in package.REVISIONS else None
    if facts is None or facts.headers.param_prefix is None:
        return None
    from importlib import import_module

    module = import_module(f"{package.__name__}.client.tool_param_headers")
    headers = module.ToolParamHeaders(10_000)
    headers.mirrored = True
    headers.prefix = facts.headers.param_prefix
    headers.store(
        SimpleNamespace(name=tool["name"], input_schema=tool["inputSchema"])
        for tool in tools
        if isinstance(tool.get("name"), str) and is_object(tool.get("inputSchema"))
    )
    return headers.headers_for


def outgoing(package: Any, message: Node, revision: str) -> Any:
    """A message as a channel sends it.

    Args:
        package: The package of the channel.
        message: The message.
        revision: The revision in which it was written.
    """
    from importlib import import_module

    channel = import_module(f"{package.__name__}.channel")
    error: Json = message.get("error")
    return channel.OutgoingMessage(
        json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(),
        _KINDS.get(kind_of(message), "notification"),
        message.get("id"),
        str(message.get("method", "")),
        package.REVISIONS[revision] if revision in package.REVISIONS else None,
        None,
        message.get("params"),
        error.get("code") if is_object(error) else None,
    )
