"""Two servers of this process, and an entry of a configuration for one in a process."""

from __future__ import annotations

from typing import Any

from mcp_protocol import Context, Server
from package.stdio_process import PATHS, SERVER


def git() -> Server:
    """A server of everything."""
    server = Server("git", subscribe=True)

    @server.tool()
    def status(path: str = ".") -> str:
        return f"clean: {path}"

    @server.tool()
    def count() -> int:
        return 3

    @server.prompt()
    def commit(what: str) -> str:
        return f"Commit {what}."

    @server.completion(prompt="commit", argument="what")
    def what(value: str) -> list[str]:
        return ["everything", "nothing"]

    @server.resource("git://head", name="head")
    def head() -> str:
        return "main"

    @server.resource("git://file/{name}", name="file")
    def file(name: str) -> str:
        return f"contents of {name}"

    return server


def notes() -> Server:
    """Another one, with some of the same names."""
    server = Server("notes", subscribe=True)

    @server.tool()
    def status() -> str:
        return "2 notes"

    @server.tool()
    def grow() -> str:
        server.add_tool(lambda: "more", name="more")
        return "grown"

    @server.tool()
    async def ask(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.list_roots())

    @server.resource("note://one", name="one")
    def one() -> str:
        return "first"

    @server.resource("shared://x", name="x")
    def shared() -> str:
        return "of notes"

    return server


def two() -> dict[str, Any]:
    """A configuration with two servers of this process."""
    return {"mcpServers": {"git": git(), "notes": notes()}}


def process(**entry: Any) -> dict[str, Any]:
    """An entry for a server in a process."""
    return {"command": SERVER[0], "args": SERVER[1:], "env": PATHS, **entry}
