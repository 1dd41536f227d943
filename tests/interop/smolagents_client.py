"""The agents of smolagents as client of a server; runs in an environment of their own."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any


def main(target: str, *arguments: str) -> None:
    """Use the server at a URL, or the one that a command starts."""
    where: Any = {"url": target, "transport": "streamable-http"}
    if arguments:
        environment = dict(os.environ)
        where = import_module("mcp").StdioServerParameters(
            command=target, args=list(arguments), env=environment
        )
    with import_module("smolagents").MCPClient(where, structured_output=False) as tools:
        by_name = {tool.name: tool for tool in tools}
        print(json.dumps({name: sorted(tool.inputs) for name, tool in by_name.items()}))
        called = {"add": by_name["add"](a=1, b=2), "change": by_name["change"]()}
        print(json.dumps(called), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
