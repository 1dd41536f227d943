"""The client of the specification's quickstart: it starts a server and lets a model use its tools.

    python weather_client.py SERVER [ARGUMENT ...]

The model is a stand-in that asks for each tool once, in place of one behind an API.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio

from mcpgen_runtime import connect

QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "Are there alerts in California?": ("get_alerts", {"state": "CA"}),
    "What is the weather in Sacramento?": (
        "get_forecast",
        {"latitude": 38.58, "longitude": -121.49},
    ),
}
"""Questions of a user, and the calls by which a model answers."""


async def main() -> None:
    """Answer each question by a tool of the server."""
    async with connect([sys.executable, *sys.argv[1:]]) as client:
        names = [tool.name for tool in await client.list_tools()]
        print(client.revision, *sorted(names))
        for question, (name, arguments) in QUESTIONS.items():
            print(question, await client.call_tool(name, arguments, returns=str))


anyio.run(main)
