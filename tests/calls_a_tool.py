"""A program on the installed distribution: a tool is called in each revision, in memory."""

from __future__ import annotations

import anyio

from mcpgen_runtime import REVISIONS, Server
from mcpgen_runtime.testing import connected

server = Server("ready")


@server.tool()
def double(number: int) -> int:
    """Return a number twice."""
    return 2 * number


async def main() -> None:
    """Call the tool."""
    for revision in REVISIONS:
        async with connected(server, revision=revision) as pair:
            result = await pair.client.call_tool("double", {"number": 21})
            assert result.content[0].text == "42", result


anyio.run(main)
