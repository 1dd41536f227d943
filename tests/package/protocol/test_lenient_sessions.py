"""Tolerance in a whole session: stubs, toolkit and peers together."""

from __future__ import annotations

from typing import Any

import pytest

from kit.rules import revisions_holding
from kit.samples import EVERY_SERVER_CAPABILITY
from kit.wire import describe_as, speaking_to
from mcpgen_runtime import Server, connect
from mcpgen_runtime.channel import Channel
from mcpgen_runtime.errors import InvalidParamsError, RemoteError
from mcpgen_runtime.protocol.server_connection import ServerConnection
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.peer import Peer
from mcpgen_runtime.runtime.request_context import RequestContext

pytestmark = pytest.mark.anyio


class Forgetful:
    """A server that knows no cursor it gave out.

    Attributes:
        asked: The cursors it was asked for.
    """

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def handle(self, ctx: RequestContext) -> Any:
        cursor = ctx.params.cursor
        self.asked.append(cursor)
        if len(self.asked) > 1:
            raise InvalidParamsError("unknown cursor")
        return {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "2"}

    async def notified(self, ctx: RequestContext) -> None:
        """Hear, and do nothing."""

    async def serve(self, channel: Channel) -> None:
        """Serve one client."""
        describe = describe_as(EVERY_SERVER_CAPABILITY, "server")
        await Peer(ServerConnection(REVISIONS, describe), channel, self).run()


@pytest.mark.requirement("seed-compat.stateless-cursor-error")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.stateless-cursor-error"))
async def test_a_cursor_forgotten_by_the_server_ends_the_list_in_error(revision: str) -> None:
    server = Forgetful()
    async with connect(server, revision=revision) as client:
        with pytest.raises(RemoteError, match="unknown cursor") as refused:
            await client.list_tools()
    assert refused.value.code == -32602
    assert server.asked[1:] == ["2"]


@pytest.mark.requirement("seed-compat.code-unknown-tool", "seed-compat.code-32001")
@pytest.mark.parametrize("revision", revisions_holding("seed-compat.code-unknown-tool"))
async def test_an_unknown_tool_or_prompt_is_a_bad_param(revision: str) -> None:
    server = Server("one")

    @server.tool()
    def echo() -> str:
        return ""

    @server.prompt()
    def greeting() -> str:
        return ""

    async with speaking_to(server, revision) as end:
        for method in ("tools/call", "prompts/get"):
            answer = await end.ask(method, {"name": "none"})
            assert answer["error"]["code"] == -32602
