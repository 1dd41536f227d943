"""An agent that uses the library: `python -m library.agent TITLE`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.request import Request, urlopen

import anyio

from .protocol import Client, ClientHandlers, connect

Model = Callable[[list[Any], list[Any]], Awaitable[dict[str, Any]]]


async def run(question: str, client: Client, model: Model) -> str:
    """Send a question to a model, and run the tools that it calls, until it answers."""
    tools = await client.tools_for("openai-chat")
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(10):
        message = await model(messages, tools)
        messages.append(message)
        calls: list[Any] = message.get("tool_calls") or []
        if not calls:
            return str(message["content"])
        for call in calls:
            messages.append(await client.call_from(call))
    raise RuntimeError("expected an answer within 10 steps")


async def chat(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """A model behind the API Chat Completions, at MODEL_URL."""
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": tools}
    key = os.environ.get("MODEL_KEY", "")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    url = f"{os.environ['MODEL_URL']}/chat/completions"

    def post() -> dict[str, Any]:
        with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
            answer: dict[str, Any] = json.load(response)["choices"][0]["message"]
            return answer

    return await anyio.to_thread.run_sync(post)


async def script(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """Fixed steps in place of a model: find the title, lend the book, repeat the result."""
    last = messages[-1]["content"]
    if len(messages) == 1:
        return call("find_books", words=last)
    if len(messages) == 3 and (books := json.loads(last)):
        return call("lend_book", isbn=books[0]["isbn"])
    return {"role": "assistant", "content": last}


def call(name: str, **arguments: str) -> dict[str, Any]:
    """A message in which a model calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": "1", "type": "function", "function": function}]
    return {"role": "assistant", "tool_calls": calls}


class Terminal(ClientHandlers):
    """The user, at the terminal."""

    async def elicit(self, params: Any, ctx: Any) -> Any:
        name = await anyio.to_thread.run_sync(input, f"{params.message} ")
        return {"action": "accept", "content": {"name": name}}


async def main() -> None:
    model = chat if "MODEL_URL" in os.environ else script
    async with connect([sys.executable, "-m", "library"], handlers=Terminal()) as client:
        print(await run(sys.argv[1], client, model))


if __name__ == "__main__":
    anyio.run(main)
