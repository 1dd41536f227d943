"""Plain functions as handlers of an asynchronous client."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from anyio import to_thread

from mcp_protocol import Accepted, Context, Server, SyncClientHandlers, connect
from package.wire import ALL


class Guest(SyncClientHandlers):
    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.logs: list[str] = []
        self.logged = threading.Event()

    def elicit(self, params: Any, ctx: Any) -> Any:
        self.threads.append(threading.current_thread())
        return {"action": "accept", "content": {"row": 12}}

    def logging_message(self, params: Any, ctx: Any) -> None:
        self.logs.append(params.data)
        self.logged.set()


@pytest.mark.parametrize("revision", ["2025-06-18", ALL[-1]])
async def test_plain_functions_handle_what_a_server_asks_and_logs(revision: str) -> None:
    server = Server("plane")

    @server.tool()
    async def book(ctx: Context) -> int:
        await ctx.info("asking")
        schema = {"type": "object", "properties": {"row": {"type": "integer"}}}
        answer = await ctx.elicit("Which row?", schema)
        assert isinstance(answer, Accepted)
        row: int = answer.content["row"]
        return row

    guest = Guest()
    async with connect(server, revision=revision, handlers=guest) as client:
        if revision == ALL[-1]:
            client.ask_for_logs("info")
        assert await client.call_tool("book", returns=int) == 12
        assert await to_thread.run_sync(guest.logged.wait, 10)
    assert guest.logs[0] == "asking"
    assert guest.threads
    assert threading.main_thread() not in guest.threads
