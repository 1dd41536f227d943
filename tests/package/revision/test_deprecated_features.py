"""Features that a revision deprecates still work in it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from kit.rules import revisions_holding
from kit.samples import PARAMS
from mcpgen_runtime import ClientHandlers, Context, Server, connect
from mcpgen_runtime.runtime.request_context import RequestContext
from mcpgen_runtime.server.toolkit.client_features.input_required import InputRequired

pytestmark = pytest.mark.anyio


class Host(ClientHandlers):
    """A client that can do what is deprecated.

    Args:
        revision: The revision whose models it answers in.

    Attributes:
        logged: The log messages it heard.
    """

    def __init__(self, revision: str) -> None:
        self.logged: list[Any] = []
        folder = f"mcpgen_runtime.r{revision.replace('-', '_')}.models"
        self._models: Any = importlib.import_module(folder)

    async def create_message(self, params: Any, ctx: RequestContext) -> Any:
        text = self._models.TextContent(text="sampled")
        return self._models.CreateMessageResult(role="assistant", content=text, model="m")

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        return self._models.ListRootsResult(roots=[self._models.Root(uri="file:///home")])

    async def logging_message(self, params: Any, ctx: RequestContext) -> None:
        self.logged.append(params.data)


@pytest.mark.requirement("versioning.deprecated-still-works")
@pytest.mark.parametrize("revision", revisions_holding("versioning.deprecated-still-works"))
async def test_sampling_roots_and_log_messages_still_work(revision: str) -> None:
    server, host = Server("s"), Host(revision)

    @server.tool()
    async def ask(ctx: Context) -> Any:
        if not ctx.input_responses:
            await ctx.info("asking")
            sampling = "sampling/createMessage"
            return InputRequired(
                {
                    "model": {"method": sampling, "params": PARAMS[sampling]},
                    "roots": {"method": "roots/list"},
                }
            )
        answers = ctx.input_responses
        return f"{answers['model']['content']['text']} in {answers['roots']['roots'][0]['uri']}"

    async with connect(server, revision=revision, handlers=host) as client:
        client.ask_for_logs("info")
        result = await client.call_tool("ask")
    assert result.content[0].text == "sampled in file:///home"
    assert host.logged == ["asking"]
