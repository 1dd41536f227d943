"""The entry for a server in the configuration of programs that use MCP servers.

The programs are Claude Desktop, Claude Code, Cursor and VS Code. Their files differ in the member
that holds the servers, in how an entry names its transport, and in the syntax of references to
environment variables, which keep secrets out of the file.

Source: the configuration references of these programs, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Host:
    """A program that uses servers.

    Attributes:
        file: The name of its configuration file.
        member: The member that holds the servers.
        stdio: Members of an entry for a command, before the command.
        http: Members of an entry for a URL, before the URL; `None` if URLs are not supported.
        variable: The reference to an environment variable, with `NAME` for its name; empty if
            references are not supported.
    """

    file: str
    member: str
    stdio: Mapping[str, str]
    http: Mapping[str, str] | None
    variable: str


_STDIO: Mapping[str, str] = {"type": "stdio"}
_HTTP: Mapping[str, str] = {"type": "http"}

HOSTS: Mapping[str, Host] = {
    "claude": Host("claude_desktop_config.json", "mcpServers", {}, None, ""),
    "claude-code": Host(".mcp.json", "mcpServers", _STDIO, _HTTP, "${NAME}"),
    "cursor": Host(".cursor/mcp.json", "mcpServers", _STDIO, {}, "${env:NAME}"),
    "vscode": Host(".vscode/mcp.json", "servers", _STDIO, _HTTP, "${env:NAME}"),
}
"""The programs, by name on the command line."""

_BRIDGE = ("npx", "-y", "mcp-remote")
"""The command of a server over standard streams that forwards to a URL."""


def entry(
    host: Host,
    name: str,
    target: str | Sequence[str],
    env: Mapping[str, str],
    headers: Mapping[str, str],
) -> dict[str, Any]:
    """The configuration with one server.

    Args:
        host: The program.
        name: Name of the server there.
        target: A URL, or the words of a command.
        env: Variables for a command.
        headers: Header fields for a URL.
    """
    if isinstance(target, str):
        if host.http is not None:
            server = {**host.http, "url": target, **({"headers": {**headers}} if headers else {})}
            return {host.member: {name: server}}
        fields = [word for each in headers.items() for word in ("--header", ": ".join(each))]
        target = [*_BRIDGE, target, *fields]
    command, *arguments = target
    started = {**host.stdio, "command": command, "args": arguments}
    return {host.member: {name: {**started, **({"env": {**env}} if env else {})}}}


def default_name(target: str | Sequence[str]) -> str:
    """A name for a server: the host of a URL, or the last word of a command without its path."""
    if isinstance(target, str):
        return urlsplit(target).hostname or "server"
    last = target[-1].rpartition("/")[2].rpartition("\\")[2]
    return last.removesuffix(".py").partition(":")[0].rpartition(".")[2] or "server"
