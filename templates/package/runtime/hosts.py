"""Entries for a server in the configuration of hosts: programs that use MCP servers.

Hosts differ in the file, its language, the member that holds the servers, the names of members of
an entry, and in how an entry refers to environment variables, which keeps secrets out of the file.

Sources, as of November 2026: modelcontextprotocol.io/docs/develop/connect-local-servers (Claude
Desktop), code.claude.com/docs/en/mcp, cursor.com/docs/mcp and cursor.com/docs/mcp/install-links,
code.visualstudio.com/docs/copilot/reference/mcp-configuration and
code.visualstudio.com/api/extension-guides/ai/mcp, developers.openai.com/codex/mcp,
geminicli.com/docs/tools/mcp-server, block.github.io/goose/docs/guides/config-files,
zed.dev/docs/ai/mcp, docs.windsurf.com/windsurf/cascade/mcp.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from .._wire import is_object

Server = Mapping[str, Any]
"""The entry of a server."""

_NOTHING: Mapping[str, Any] = {}
_STDIO = {"type": "stdio"}
_HTTP = {"type": "http"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")

BRIDGE = ("npx", "-y", "mcp-remote")
"""The command of a server over standard streams that forwards to a URL."""


def _link_of_cursor(name: str, server: Server) -> str:
    config = base64.b64encode(_compact(server).encode()).decode()
    query = urlencode({"name": name, "config": config})
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"


def _link_of_vscode(name: str, server: Server) -> str:
    return f"vscode:mcp/install?{quote(_compact({'name': name, **server}), safe='')}"


def _command_of_claude(name: str, server: Server) -> list[str]:
    env = _repeated("--env", "=", server.get("env", _NOTHING))
    headers = _repeated("--header", ": ", server.get("headers", _NOTHING))
    words = ["claude", "mcp", "add", *env, *headers, "--transport", server["type"], name]
    return [*words, *([server["url"]] if "url" in server else _after_dashes(server))]


def _command_of_codex(name: str, server: Server) -> list[str]:
    words = ["codex", "mcp", "add", name]
    absent = [member for member in ("http_headers", "env_vars") if member in server]
    if absent:
        raise ValueError(f"codex mcp add has no option for {absent[0]}; --write writes it")
    if "url" in server:
        return [*words, "--url", server["url"]]
    return [*words, *_repeated("--env", "=", server.get("env", _NOTHING)), *_after_dashes(server)]


def _command_of_vscode(name: str, server: Server) -> list[str]:
    return ["code", "--add-mcp", _compact({"name": name, **server})]


def _repeated(option: str, between: str, values: Mapping[str, str]) -> list[str]:
    return [word for each in values.items() for word in (option, between.join(each))]


def _after_dashes(server: Server) -> list[str]:
    return ["--", server["command"], *server["args"]]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Host:
    """A program that uses servers.

    Attributes:
        file: Its configuration file: relative to the current directory, or in the user's folders.
        member: The member that holds the servers.
        form: The language of the file; `json` may have comments and trailing commas.
        files: The file on other platforms than Linux, by `sys.platform`.
        command: The member for the program that is started.
        url: The member for a URL; empty if URLs are not supported.
        headers: The member for header fields.
        env: The member for variables.
        cwd: The member for the working directory; empty if modules are found by `PYTHONPATH`,
            which few hosts refuse to set.
        stdio: Further members of an entry for a command.
        http: Further members of an entry for a URL.
        is_named: Whether an entry repeats its name as the member `name`.
        variable: The reference to an environment variable, with `NAME` for its name; empty if
            there are none.
        variables: A member that lists the variables that are handed on; empty if there is none.
        link: Returns the link that installs a server by its name and entry.
        add: Returns the words of the host's own command that adds a server.
    """

    file: str
    member: str = "mcpServers"
    form: Literal["json", "toml", "yaml"] = "json"
    files: Mapping[str, str] | None = None
    command: str = "command"
    url: str = "url"
    headers: str = "headers"
    env: str = "env"
    cwd: str = ""
    stdio: Mapping[str, Any] | None = None
    http: Mapping[str, Any] | None = None
    is_named: bool = False
    variable: str = ""
    variables: str = ""
    link: Callable[[str, Server], str] | None = None
    add: Callable[[str, Server], list[str]] | None = None

    def path(self) -> Path:
        """The configuration file on this machine."""
        file = (self.files or {}).get(sys.platform, self.file)
        return Path(os.path.expandvars(file)).expanduser()


HOSTS: Mapping[str, Host] = {
    "claude": Host(
        "~/.config/Claude/claude_desktop_config.json",
        files={
            "darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
            "win32": "%APPDATA%/Claude/claude_desktop_config.json",
        },
        url="",
    ),
    "claude-code": Host(
        ".mcp.json", stdio=_STDIO, http=_HTTP, variable="${NAME}", add=_command_of_claude
    ),
    "codex": Host(
        "~/.codex/config.toml",
        member="mcp_servers",
        form="toml",
        headers="http_headers",
        variables="env_vars",
        add=_command_of_codex,
    ),
    "cursor": Host(".cursor/mcp.json", stdio=_STDIO, variable="${env:NAME}", link=_link_of_cursor),
    "gemini": Host(".gemini/settings.json", url="httpUrl", cwd="cwd", variable="${NAME}"),
    "goose": Host(
        "~/.config/goose/config.yaml",
        files={"win32": "%APPDATA%/Block/goose/config/config.yaml"},
        member="extensions",
        form="yaml",
        command="cmd",
        url="uri",
        env="envs",
        stdio={"enabled": True, "type": "stdio", "timeout": 300},
        http={"enabled": True, "type": "streamable_http", "timeout": 300},
        is_named=True,
        variables="env_keys",
    ),
    "vscode": Host(
        ".vscode/mcp.json",
        member="servers",
        stdio=_STDIO,
        http=_HTTP,
        variable="${env:NAME}",
        link=_link_of_vscode,
        add=_command_of_vscode,
    ),
    "windsurf": Host(
        "~/.codeium/windsurf/mcp_config.json", url="serverUrl", variable="${env:NAME}"
    ),
    "zed": Host(
        "~/.config/zed/settings.json",
        files={"win32": "%APPDATA%/Zed/settings.json"},
        member="context_servers",
    ),
}
"""The hosts, by name on the command line."""


def server_entry(
    host: Host,
    name: str,
    target: str | Sequence[str],
    env: Mapping[str, str | None],
    headers: Mapping[str, str],
    folder: Path | None = None,
) -> Server:
    """The entry of a server.

    Args:
        host: The host.
        name: Name of the server there.
        target: A URL, or the words of a command.
        env: Variables for a command; `None` for the value in the user's environment.
        headers: Header fields for a URL.
        folder: The folder that modules of a command are imported from.
    """
    named = {"name": name} if host.is_named else {}
    if isinstance(target, str):
        if host.url:
            fields = {host.headers: {**headers}} if headers else {}
            return {**(host.http or {}), **named, host.url: target, **fields}
        target = [*BRIDGE, target, *_repeated("--header", ": ", headers)]
    command, *arguments = target
    server: dict[str, Any] = {**(host.stdio or {}), **named, host.command: command}
    server["args"] = arguments
    if folder is not None and host.cwd:
        server[host.cwd] = str(folder)
    elif folder is not None:
        folders = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {"PYTHONPATH": os.pathsep.join(folders), **env}
    handed_on = [variable for variable, value in env.items() if value is None and host.variables]
    values = {
        variable: _reference(host, variable) if value is None else value
        for variable, value in env.items()
        if variable not in handed_on
    }
    if values:
        server[host.env] = values
    if handed_on:
        server[host.variables] = handed_on
    return server


def _reference(host: Host, variable: str) -> str:
    """The reference to a variable; its value if the host has none."""
    return host.variable.replace("NAME", variable) or os.environ.get(variable, "")


def entry_text(host: Host, name: str, server: Server) -> str:
    """The part of the host's file with one server."""
    match host.form:
        case "json":
            return json.dumps({host.member: {name: server}}, indent=2, ensure_ascii=False)
        case "toml":
            table = f"{host.member}.{_key(name)}"
            return "\n".join([f"[{table}]", *_lines(server, " = ")])
        case "yaml":
            lines = [f"{host.member}:", f"  {_key(name)}:"]
            return "\n".join([*lines, *(f"    {line}" for line in _lines(server, ": "))])


def _lines(server: Server, between: str) -> list[str]:
    """The members of an entry, whose values TOML and YAML write alike, but for objects."""
    return [f"{name}{between}{_inline(value, between)}" for name, value in server.items()]


def _inline(value: Any, between: str) -> str:
    if is_object(value):
        inner = ", ".join(
            f"{_key(name)}{between}{_inline(each, between)}" for name, each in value.items()
        )
        return f"{{{inner}}}"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def command_text(words: Sequence[str]) -> str:
    """A command line for the user's shell."""
    if sys.platform == "win32":
        import subprocess  # the rules of Windows for quotes

        return subprocess.list2cmdline(words)
    return shlex.join(words)


def default_name(target: str | Sequence[str]) -> str:
    """A name for a server: the host of a URL, or the last word of a command without its path."""
    if isinstance(target, str):
        return urlsplit(target).hostname or "server"
    last = target[-1].rpartition("/")[2].rpartition("\\")[2]
    return last.removesuffix(".py").partition(":")[0].rpartition(".")[2] or "server"
