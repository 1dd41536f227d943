"""Tools of 2025-11-25 that are tasks, behind a proxy, whose clients see no tasks."""

from __future__ import annotations

from typing import Any

import pytest

from kit.requestor import REVISION, Work
from kit.wire import ALL
from mcpgen_runtime import ClientHandlers, RemoteError, Server, connect

every = pytest.mark.parametrize("near", ALL)


class Person(ClientHandlers):
    """Answers each question."""

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"name": "Ada"}}


@every
async def test_a_tool_that_must_be_a_task_is_called_plainly(near: str) -> None:
    work = Work()
    work.go.set()
    proxy = Server.proxy(work.server, revision=REVISION)
    async with connect(proxy, revision=near) as client:
        assert "tasks" not in client.server_capabilities
        assert (await client.call_tool("needs_a_task")).content[0].text == "done"
        assert (await client.call_tool("waits")).content[0].text == "done"
        with pytest.raises(RemoteError, match="unknown tool"):
            await client.call_tool("unknown")


@pytest.mark.parametrize("near", [name for name in ALL if name >= "2025-06-18"])
async def test_a_task_behind_a_proxy_asks_its_client(near: str) -> None:
    proxy = Server.proxy(Work().server, revision=REVISION)
    async with connect(proxy, revision=near, handlers=Person()) as client:
        assert "Ada" in (await client.call_tool("asks")).content[0].text
