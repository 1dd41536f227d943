"""A server with a tool for everything that HTTP makes a difference to, and parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import anyio

from kit.wire import encode_message, request
from mcpgen_runtime import REVISIONS, Context, MissingCapabilityError, Server, ServerHttpSettings
from mcpgen_runtime.server.asgi.app import AsgiApplication
from mcpgen_runtime.server.asgi.chosen_http import ServerHttpOptions
from mcpgen_runtime.server.asgi.settings import HttpSettings
from mcpgen_runtime.server.chosen import new_connection
from mcpgen_runtime.server.serving import Service

UNICODE = "memo://\u00fcn\u00efcode"
"""A resource whose name is beyond ASCII."""

MARKED: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "deep": {
            "type": "object",
            "properties": {"inner": {"type": "string", "x-mcp-header": "Inner"}},
        },
        "plain": {"type": "string"},
    },
}
"""Arguments of the tool `marked`: some are repeated in header fields."""


def echo_call(revision: str, size: int) -> dict[str, Any]:
    """A call of `echo` whose body has so many bytes."""
    params = {"name": "echo", "arguments": {"text": ""}}
    short = len(encode_message(request(revision, "tools/call", params)))
    params["arguments"] = {"text": "x" * (size - short)}
    return request(revision, "tools/call", params)


class Web:
    """A server, and what happened to it.

    Attributes:
        server: It.
        called: The arguments of each call of `marked` and `echo`.
        begun: Set once `wait` runs.
        released: What `wait` waits for.
        cancelled: Set once `wait` was cancelled.
    """

    def __init__(self, **options: Any) -> None:
        self.server = Server("web", "1", **options)
        self.called: list[Any] = []
        self.begun = anyio.Event()
        self.released = anyio.Event()
        self.cancelled = anyio.Event()
        for tool in (self.echo, self.wait, self.counts, self.logs, self.needs):
            self.server.tool()(tool)
        self.server.tool(input_schema=MARKED)(self.marked)
        self.server.resource("memo://one")(self.memo)
        self.server.resource(UNICODE)(self.memo)
        self.server.prompt()(self.greeting)

    async def echo(self, text: str) -> str:
        self.called.append(text)
        return text

    async def wait(self, ctx: Context) -> str:
        self.begun.set()
        try:
            await self.released.wait()
        except BaseException:
            self.cancelled.set()
            raise
        await ctx.progress(99)
        return "waited"

    async def counts(self, ctx: Context, to: int, wait: bool = False) -> str:
        for value in range(1, to + 1):
            await ctx.progress(value, to)
        if wait:
            self.begun.set()
            await self.released.wait()
        return f"counted to {to}"

    async def logs(self, ctx: Context) -> str:
        await ctx.debug("quiet")
        await ctx.error("loud")
        return "logged"

    async def needs(self) -> str:
        raise MissingCapabilityError(("sampling",), "the tool")

    async def marked(self, **arguments: Any) -> str:
        self.called.append(arguments)
        return "done"

    async def memo(self) -> str:
        return "a memo"

    async def greeting(self, who: str) -> str:
        return f"Hello, {who}!"

    def only(self, *revisions: str, **options: Unpack[ServerHttpOptions]) -> AsgiApplication:
        """The application of a package that has these revisions alone."""
        return self.with_settings(ServerHttpSettings(**options), *revisions)

    def with_settings(self, settings: HttpSettings, *revisions: str) -> AsgiApplication:
        """The application of a package with the features of the class of its settings."""
        service = Service(
            self.server, REVISIONS.among(revisions), self.server.describe, new_connection
        )
        return AsgiApplication(service, settings)
