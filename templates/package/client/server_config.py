"""Several servers in one configuration, as programs with MCP clients write it.

The members are those of Claude Code, Cursor and VS Code: `mcpServers` (or `servers`) has an entry
for each server, a process (`command`, `args`, `env`, `cwd`) or a URL (`url`, `type`, `headers`).
In texts, `${NAME}` stands for a variable of the environment, as do `${NAME:-default}` and
`${env:NAME}`. A member that has no meaning here is named in a warning.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from .._wire import UNREADABLE, is_many, is_object
from ..foreign_text import safe_list, safe_repr

Config: TypeAlias = Mapping[str, Any] | PathLike[str]
"""A configuration of servers: `{"mcpServers": {...}}`, or the path of a JSON file with it."""

_KEYS = ("mcpServers", "servers")

_TRANSPORTS: Mapping[str, Literal["streamable-http", "sse"] | None] = {
    "http": None,  # whichever of the two the server has
    "streamable-http": "streamable-http",
    "streamableHttp": "streamable-http",
    "sse": "sse",
}
_OF_PROCESS = frozenset({"command", "args", "env", "cwd"})
_OF_URL = frozenset({"url", "headers", "auth"})
_OF_BOTH = frozenset({"type", "transport", "disabled"})
_FOR_DISPLAY = frozenset({"name", "title", "description", "icon", "version", "gallery"})

_variable = re.compile(r"\$\{([^{}]*)\}")
_name = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerEntry:
    """One server of a configuration.

    Attributes:
        target: The target, as for `connect`.
        env: Environment of a process.
        cwd: Working directory of a process.
        transport: The HTTP transport, if the entry names one.
        headers: Header fields of each HTTP request.
        auth: The source of access tokens, or an httpx2 authentication.
    """

    target: Any
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    transport: Literal["streamable-http", "sse"] | None = None
    headers: Mapping[str, str] | None = None
    auth: Any = None


def read_config(config: Config) -> dict[str, ServerEntry | ValueError | None]:
    """The servers of a configuration by name; an error for an entry that is wrong.

    A server that is disabled is `None`.

    Raises:
        OSError: The file can't be read.
        ValueError: The configuration has no servers.
    """
    place, folder, content = "config", Path.cwd(), config
    if isinstance(config, PathLike):
        path = Path(config).absolute()
        place = path.name
        folder = path.parent.parent if path.parent.name.startswith(".") else path.parent
        try:
            content = msgspec.json.decode(path.read_bytes())
        except UNREADABLE as error:
            raise ValueError(f"{place}: expected JSON: {error}") from None
    members: Mapping[str, Any] = content if is_object(content) else {}
    key = next((key for key in _KEYS if key in members), None)
    if key is None:
        raise ValueError(f"{place}: expected a member mcpServers, got {safe_list(list(members))}")
    entries = members[key]
    if not is_object(entries) or not entries:
        raise ValueError(f"{place}: {key}: expected an object with servers, got {entries!r}")
    texts = _Texts({"userHome": str(Path.home()), "workspaceFolder": str(folder)})
    servers: dict[str, ServerEntry | ValueError | None] = {}
    for name, entry in entries.items():
        if is_object(entry) and entry.get("disabled") is True:
            servers[name] = None
            continue
        try:
            servers[name] = _entry(entry, texts, f"{place}: {key}.{name}")
        except ValueError as error:
            servers[name] = error
    if not any(servers.values()):
        raise ValueError(f"{place}: {key}: every server is disabled")
    return servers


def _entry(entry: Any, texts: _Texts, place: str) -> ServerEntry:
    """One entry; in Python it may be anything that `connect` takes, too.

    Raises:
        ValueError: It is wrong.
    """
    if not is_object(entry):
        return ServerEntry(entry)
    kind = entry.get("type", entry.get("transport"))
    if ("command" in entry) == ("url" in entry):
        raise ValueError(f"{place}: expected either command or url, got {safe_list(list(entry))}")
    own, what = (_OF_PROCESS, "command") if "command" in entry else (_OF_URL, "url")
    allowed = ("stdio",) if what == "command" else tuple(_TRANSPORTS)
    if kind is not None and kind not in allowed:
        raise ValueError(f"{place}: type: expected {' or '.join(allowed)}, got {kind!r}")
    unused = entry.keys() - own - _OF_BOTH - _FOR_DISPLAY
    if unused:
        _logger.warning("%s: not used: %s", place, safe_list(sorted(unused)))
    if what == "url":
        auth = entry.get("auth")
        if isinstance(auth, str):
            raise ValueError(
                f"{place}: auth: expected an object such as OAuth(...), got a text; "
                "a token belongs in headers, as Authorization"
            )
        return ServerEntry(
            texts.text(entry["url"], f"{place}: url"),
            transport=None if kind is None else _TRANSPORTS[kind],
            headers=texts.mapping(entry.get("headers"), f"{place}: headers"),
            auth=auth,
        )
    args = entry.get("args", ())
    if not is_many(args):
        raise ValueError(f"{place}: args: expected a list of texts, got {args!r}")
    cwd = entry.get("cwd")
    return ServerEntry(
        [
            texts.text(entry["command"], f"{place}: command"),
            *(texts.text(word, f"{place}: args") for word in args),
        ],
        env=texts.mapping(entry.get("env"), f"{place}: env"),
        cwd=None if cwd is None else texts.text(cwd, f"{place}: cwd"),
    )


@dataclass(frozen=True)
class _Texts:
    """Replaces variables in texts.

    Attributes:
        predefined: Variables that are not of the environment.
    """

    predefined: Mapping[str, str]

    def text(self, value: object, place: str) -> str:
        """A text with the values of its variables.

        Raises:
            ValueError: It is no text, or has a variable without value.
        """
        if isinstance(value, str):
            return _variable.sub(lambda found: self._value(found[1], place), value)
        raise ValueError(f"{place}: expected a text, got {safe_repr(value)}")

    def mapping(self, value: object, place: str) -> dict[str, str] | None:
        """An object of texts; numbers are taken as texts, and null as absent.

        Raises:
            ValueError: It is no such object.
        """
        if value is None:
            return None
        if not is_object(value):
            raise ValueError(f"{place}: expected an object, got {safe_repr(value)}")
        return {
            name: self.text(str(text) if type(text) in (int, float) else text, f"{place}.{name}")
            for name, text in value.items()
            if text is not None
        }

    def _value(self, variable: str, place: str) -> str:
        if variable in self.predefined:
            return self.predefined[variable]
        form = _name.fullmatch(variable)
        if form is None:
            raise ValueError(
                f"{place}: expected ${{NAME}}, ${{NAME:-default}}, ${{env:NAME}}, ${{userHome}} or "
                f"${{workspaceFolder}}, got ${{{variable}}}"
            )
        default: str | None = form[2]
        value = os.environ.get(form[1], default)
        if value is None:
            raise ValueError(
                f"{place}: the variable {form[1]} is not set, and ${{{variable}}} has no default"
            )
        return value
