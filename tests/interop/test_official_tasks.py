"""Tasks that a server on the official SDK asks of our client, in 2025-11-25."""

from __future__ import annotations

import os
from typing import Any

import pytest

from interop.processes import HERE
from mcpgen_runtime import ClientHandlers, ClientTasks, connect

pytestmark = [pytest.mark.interop, pytest.mark.anyio]

PYTHON = os.environ.get("MCP_SMOLAGENTS", "")
"""The Python of an environment with the last release of the official SDK that has tasks."""


class Person(ClientHandlers):
    """Gives a name, and greets."""

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"name": "Ada"}}

    async def create_message(self, params: Any, ctx: Any) -> Any:
        text = params.messages[0].content.text.replace("Greet", "Hello,")
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": text}}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_on_the_official_sdk_gets_answers_by_tasks(anyio_backend: str) -> None:
    assert PYTHON, "MCP_SMOLAGENTS names no Python: run nox -s interop"
    command = [PYTHON, str(HERE / "official_task_server.py")]
    tasks = ClientTasks(poll_interval=0.1)
    async with connect(command, revision="2025-11-25", handlers=Person, tasks=tasks) as client:
        assert (await client.call_tool("ask")).content[0].text == "Hello, Ada"
