"""An agent: it opens three servers, gives their tools to a model, and runs what the model asks for.

python agent.py "What shall I pack?"
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from model import Block, FakeModel, Message
from pkg import Client, ClientGroup, connect, hints_of

TURNS = 10
"""The model may speak so often for one question."""

SERVERS = Path(__file__).with_name("servers.py")
CONFIG: dict[str, Any] = {
    "mcpServers": {
        name: {"command": sys.executable, "args": [str(SERVERS), name]}
        for name in ("calendar", "weather", "notes")
    }
}


async def answer(question: str, model: FakeModel) -> str:
    """The model's answer to a question."""
    messages: list[Message] = [
        {"role": "user", "content": [{"type": "text", "text": question}]},
    ]
    async with connect(CONFIG) as servers:
        for name, error in servers.failures.items():
            print(f"without {name}: {error}", file=sys.stderr)
        tools = await servers.tools_for("anthropic")
        writing = {tool.name for tool in await servers.list_tools() if not hints_of(tool).read_only}
        for _ in range(TURNS):
            blocks = await model.create(messages, tools)
            messages.append({"role": "assistant", "content": blocks})
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return " ".join(block["text"] for block in blocks)
            results = [await run_tool(servers, block, writing) for block in calls]
            messages.append({"role": "user", "content": results})
    raise RuntimeError(f"no answer after {TURNS} turns")


async def run_tool(servers: ClientGroup[Client], block: Block, writing: set[str]) -> Block:
    """Run a tool for the model; the user is asked before one that may change something."""
    print(f"{block['name']} {block['input']}")
    if block["name"] in writing and await anyio.to_thread.run_sync(input, "Run it? [y/n] ") != "y":
        return {"type": "tool_result", "tool_use_id": block["id"], "content": "refused by the user"}
    result: Block = await servers.call_from(block)
    return result


if __name__ == "__main__":
    print(anyio.run(answer, sys.argv[1], FakeModel()))
