"""The client under test, written as a user would: the suite starts it with a URL per scenario.

The environment says what it is to do: `MCP_CONFORMANCE_SCENARIO`, the revision to speak in
`MCP_CONFORMANCE_PROTOCOL_VERSION`, and for some scenarios values in `MCP_CONFORMANCE_CONTEXT`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from conformance.client_auth import authorization
from mcpgen_runtime import Client, ClientHandlers, RequestContext, connect

URL = sys.argv[-1]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
REVISION = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
NEGOTIATED = {"sse-retry"}
"""Scenarios whose server agrees to an older revision than the suite names."""
EXAMPLES = {"string": "text", "integer": 1, "number": 2.5, "boolean": True, "array": []}


class Person(ClientHandlers):
    """Answers whatever a server may ask."""

    async def elicit(self, params: Any, ctx: RequestContext) -> Any:
        """Accepts the form: fields with a default keep it, of the others a switch is turned on."""
        fields: dict[str, Any] = {}
        for name, field in params.requested_schema.properties.items():
            default = getattr(field, "default", None)
            if default is not None:
                fields[name] = default
            elif field.type == "boolean":
                fields[name] = True
        return {"action": "accept", "content": fields}

    async def create_message(self, params: Any, ctx: RequestContext) -> Any:
        """Answers with a line of text."""
        content = {"type": "text", "text": "Hello"}
        return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        """Shows one root."""
        return {"roots": [{"uri": "file:///work", "name": "work"}]}


async def call_every_tool(client: Client) -> None:
    """Call each tool that the client lists, with arguments that fit."""
    for tool in await client.list_tools():
        fields = tool.input_schema.get("properties", {})
        arguments = {name: EXAMPLES.get(field.get("type")) for name, field in fields.items()}
        await client.call_tool(tool.name, arguments)


async def call_as_told(client: Client) -> None:
    """Call tools with the arguments that the suite hands over."""
    await client.list_tools()
    for call in CONTEXT["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def use_everything(client: Client) -> None:
    """Use tools, resources and prompts."""
    await call_every_tool(client)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def call_between_rounds(client: Client) -> None:
    """Call tools one beside the other, so that one is called while another waits for input."""
    async with anyio.create_task_group() as tasks:
        for tool in await client.list_tools():
            tasks.start_soon(client.call_tool, tool.name)


async def echo_schema(client: Client) -> None:
    """Hand the schema of one tool to the other."""
    schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


SCENARIOS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "http-custom-headers": call_as_told,
    "http-standard-headers": use_everything,
    "initialize": lambda client: anyio.lowlevel.checkpoint(),  # it has nothing to offer
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": lambda client: client.list_tools(),
    "request-metadata": lambda client: client.discover(),
    "sep-2322-client-request-state": call_between_rounds,
}
"""Scenarios that need something other than calling every tool."""


async def main() -> None:
    """Do what the scenario wants."""
    revision = None if SCENARIO in NEGOTIATED else REVISION
    auth = authorization(SCENARIO, CONTEXT)
    async with connect(
        URL, revision=revision, handlers=Person(), name="conformance", auth=auth
    ) as client:
        await SCENARIOS.get(SCENARIO, call_every_tool)(client)


if __name__ == "__main__":
    anyio.run(main)
