"""Configurations of several servers, in the format of programs with MCP clients.

The members are those of Claude Code, Cursor and VS Code: `mcpServers` (or `servers`) has an entry
for each server, a process (`command`, `args`, `env`, `envFile`, `cwd`) or a URL (`url`, `type`,
`headers`). In texts, `${NAME}`, `${NAME:-default}` and `${env:NAME}` refer to environment
variables, and `${input:id}` to a value that the caller of `connect` provides or asks the user for.
A registry document (`server.json`) in a file is a configuration of one server. An unknown member is
named in a warning.

A configuration is trusted: it starts commands, and reads files and the environment. A document of
others is a `ServerDocument`, of which nothing but the format of the registry is read.

Any text of a configuration may be a secret, anywhere in a malformed configuration. So errors
contain the names of members, with likely secrets masked, and the types of values.

Source: the configuration references of these programs, as of November 2026.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from .._wire import UNREADABLE, is_many, is_object
from ..errors import MissingExtraError
from ..foreign_text import safe_list
from .application import in_thread
from .server_document import ConfigInput, ServerDocument

if TYPE_CHECKING:
    from .registry_document import RegistryDocument

Config: TypeAlias = Mapping[str, Any] | PathLike[str]
"""A configuration of servers: `{"mcpServers": {...}}`, the path of a JSON file with one or with a
registry document, or a `ServerDocument`."""


Inputs: TypeAlias = Mapping[str, str] | Callable[[ConfigInput], str | Awaitable[str | None] | None]
"""Values for `${input:id}`: by id, or a function that asks the user; `None` for no value. A plain
function runs in a thread."""

_KEYS = ("mcpServers", "servers")

_TRANSPORTS: Mapping[str, Literal["streamable-http", "sse"] | None] = {
    "http": None,  # negotiated with the server
    "streamable-http": "streamable-http",
    "streamableHttp": "streamable-http",
    "sse": "sse",
}
_OF_PROCESS = frozenset({"command", "args", "env", "envFile", "cwd"})
_OF_URL = frozenset({"url", "headers", "auth"})
_OF_BOTH = frozenset({"type", "transport", "disabled"})
_FOR_DISPLAY = frozenset({"name", "title", "description", "icon", "version", "gallery"})

_variable = re.compile(r"\$\{([^{}]*)\}")
_INPUT = "input:"
_COMMENT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_COMMA = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]\s*,|,(?=\s*[\]}])', re.DOTALL)
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


@dataclass(frozen=True)
class _Document:
    """A configuration before variables are replaced.

    Attributes:
        place: The name of the configuration in errors.
        folder: The folder of the workspace.
        key: The member with the servers.
        entries: The servers by name.
        inputs: The declared inputs by id.
        registered: The registry document, if the configuration is one.
    """

    place: str
    folder: Path
    key: str
    entries: Mapping[str, Any]
    inputs: Mapping[str, ConfigInput]
    registered: RegistryDocument | None = None

    def entry_of(self, name: str, values: Mapping[str, object]) -> Any:
        """An entry; of a registry document, the entry for the values of inputs.

        Raises:
            ValueError: A required input of the registry document has no value.
        """
        return self.entries[name] if self.registered is None else self.registered.entry_for(values)

    def place_of(self, name: str) -> str:
        """The name of an entry in errors."""
        return f"{self.place}: {self.key}.{_mask_name(name)}"

    async def ask_inputs(self, names: Iterable[str], inputs: Inputs | None) -> Mapping[str, object]:
        """The values for the inputs of some servers; a function is called once per input."""
        if not callable(inputs):
            return inputs or {}
        ask = in_thread(inputs)
        return {each.id: await ask(each) for each in self._used_inputs(names)}

    def _used_inputs(self, names: Iterable[str]) -> list[ConfigInput]:
        """The inputs of some servers, without duplicates."""
        used = dict.fromkeys(each for name in names for each in _inputs_in(self.entries[name]))
        return [self.inputs.get(each) or ConfigInput(each) for each in used]

    def texts(self, names: Iterable[str], values: Mapping[str, object]) -> _Texts:
        """The values of variables, including those of the inputs of some servers.

        Raises:
            TypeError: A value is not a string.
            ValueError: An input is unknown, or a value is not among the options.
        """
        used = self._used_inputs(names)
        ids = [each.id for each in used]
        unknown = values.keys() - {*ids, *self.inputs}
        if unknown:
            raise ValueError(
                f"inputs: expected ids that {self.place} has ({_names(ids) or 'none'}), got "
                f"{_names(sorted(unknown))}"
            )
        variables = {"$": "$"}
        if self.registered is None:
            variables |= {
                "userHome": str(Path.home()),
                "workspaceFolder": str(self.folder),
                "workspaceFolderBasename": self.folder.name,
                "pathSeparator": os.sep,
                "/": os.sep,
            }
        for each in used:
            value = values.get(each.id, each.default)
            if value is not None:
                variables[_INPUT + each.id] = _check_input(each, value)
        return _Texts(self.folder, variables, {} if self.registered else os.environ)


async def read_config(
    config: Config, inputs: Inputs | None = None
) -> dict[str, ServerEntry | Exception | None]:
    """The servers of a configuration by name; an error for a malformed entry.

    A disabled server is `None`.

    Args:
        config: The configuration.
        inputs: Values for `${input:id}`.

    Raises:
        OSError: The file can't be read.
        TypeError: A value of an input is not a string.
        ValueError: The configuration has no servers, or does not declare an input.
    """
    document = _read_document(config)
    return _servers(document, await document.ask_inputs(_enabled_names(document), inputs))


def config_servers(
    config: Config, inputs: Mapping[str, str]
) -> dict[str, ServerEntry | Exception | None]:
    """Like `read_config`, without an event loop, for values of inputs by id."""
    return _servers(_read_document(config), inputs)


def _enabled_names(document: _Document) -> list[str]:
    """The names of the servers that are not disabled.

    Raises:
        ValueError: All servers are disabled.
    """
    enabled = [name for name, entry in document.entries.items() if not _is_disabled(entry)]
    if not enabled:
        raise ValueError(f"{document.place}: {document.key}: every server is disabled")
    return enabled


def _servers(
    document: _Document, values: Mapping[str, object]
) -> dict[str, ServerEntry | Exception | None]:
    enabled = _enabled_names(document)
    texts = document.texts(enabled, values)
    servers: dict[str, ServerEntry | Exception | None] = dict.fromkeys(document.entries)
    for name in enabled:
        try:
            entry = document.entry_of(name, values)
            servers[name] = _entry(entry, texts, document.place_of(name))
        except (ValueError, MissingExtraError) as error:
            servers[name] = error
    return servers


async def read_server(config: Config, name: str, inputs: Inputs | None = None) -> ServerEntry:
    """One server of a configuration.

    Args:
        config: The configuration.
        name: Its name; may be empty if there is only one server.
        inputs: Values for `${input:id}`.

    Raises:
        MissingExtraError: The entry has an `envFile`, and no library for it is installed.
        OSError: The file can't be read.
        ValueError: The server is unknown, or its entry is malformed.
    """
    document = _read_document(config)
    names = [*document.entries]
    if not name and len(names) == 1:
        name = names[0]
    if name not in document.entries:
        raise ValueError(
            f"{document.place}: {document.key}: expected the name of a server "
            f"({_names(names)}), got {_mask_name(name)!r}"
        )
    values = await document.ask_inputs([name], inputs)
    texts = document.texts([name], values)
    return _entry(document.entry_of(name, values), texts, document.place_of(name))


def _read_document(config: Config) -> _Document:
    """Read a configuration, without replacing variables.

    Raises:
        OSError: The file can't be read.
        ValueError: The configuration has no servers.
    """
    place, folder, content = "config", Path.cwd(), config
    if isinstance(config, ServerDocument):
        return _registry_document(config, place, folder, packages=config.packages)
    if isinstance(config, PathLike):
        path = Path(config).absolute()
        place = path.name
        folder = path.parent.parent if path.parent.name.startswith(".") else path.parent
        try:
            content = _decode_jsonc(path.read_bytes())
        except UNREADABLE as error:
            raise ValueError(f"{place}: expected JSON: {error}") from None
    members: Mapping[str, Any] = content if is_object(content) else {}
    key = next((key for key in _KEYS if key in members), None)
    if is_many(members.get("packages")) or is_many(members.get("remotes")):
        if key is not None:
            raise ValueError(
                f"{place}: expected a configuration or a document of the registry, got members of "
                f"both: {key} starts commands, which such a document does not have"
            )
        if not isinstance(config, PathLike):
            raise ValueError(
                f"{place}: expected a member mcpServers, got a document of the registry; "
                "ServerDocument(document) is the form for documents of others"
            )
        return _registry_document(members, place, folder, packages=True)
    if key is None:
        raise ValueError(
            f"{place}: expected a member mcpServers, got {_names(members) or _kind(content)}"
        )
    entries = members[key]
    if not is_object(entries) or not entries:
        raise ValueError(f"{place}: {key}: expected an object with servers, got {_kind(entries)}")
    declared = members.get("inputs", ())
    if not is_many(declared):
        raise ValueError(f"{place}: inputs: expected a list, got {_kind(declared)}")
    inputs = [_input(each, f"{place}: inputs") for each in declared]
    return _Document(place, folder, key, entries, {each.id: each for each in inputs})


def _decode_jsonc(data: bytes) -> Any:
    """Decode JSON as hosts write it: with comments, a comma after the last item, and a byte order
    mark, in UTF-8 or UTF-16.

    Raises:
        ValueError: Not JSON besides these.
    """

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        is_comment = text.startswith("//") or (text.startswith("/*") and text[2:].endswith("*/"))
        return re.sub(r"[^\r\n]", " ", text) if is_comment or text == "," else text

    text = data.decode(json.detect_encoding(data)).removeprefix("\ufeff")
    return msgspec.json.decode(_COMMA.sub(blank, _COMMENT.sub(blank, text)))


def _registry_document(
    members: Mapping[str, Any], place: str, folder: Path, *, packages: bool
) -> _Document:
    """A registry document as a configuration of one server.

    Raises:
        ValueError: The document has no supported remote or package.
    """
    from .registry_document import RegistryDocument  # rarely used

    registered = RegistryDocument(members, place, packages=packages)
    entries = {registered.name: registered.entry}
    return _Document(place, folder, "server", entries, registered.inputs, registered)


def _input(declared: Any, place: str) -> ConfigInput:
    """Read the declaration of an input.

    Raises:
        ValueError: The declaration has no id.
    """
    members: Mapping[str, Any] = declared if is_object(declared) else {}
    identifier = members.get("id")
    if not identifier or not isinstance(identifier, str):
        raise ValueError(f"{place}: expected an object with id, got {_kind(declared)}")
    default = members.get("default")
    options = members.get("options")
    return ConfigInput(
        identifier,
        str(members.get("type", "promptString")),
        str(members.get("description", "")),
        default if isinstance(default, str) else None,
        tuple(
            str(each.get("value", each.get("label")) if is_object(each) else each)
            for each in (options if is_many(options) else ())
        ),
        members.get("password") is True,
    )


def _check_input(declared: ConfigInput, value: object) -> str:
    """Check the value of an input. Errors do not contain the value, which may be secret.

    Raises:
        TypeError: The value is not a string.
        ValueError: The value is not among the options.
    """
    if not isinstance(value, str):
        raise TypeError(
            f"inputs: {_mask_name(declared.id)!r}: expected a text, got a {type(value).__name__}"
        )
    if declared.options and value not in declared.options:
        options = "its options" if declared.password else f"one of {_names(declared.options)}"
        raise ValueError(f"inputs: {_mask_name(declared.id)!r}: expected {options}")
    return value


def _inputs_in(value: Any) -> Iterator[str]:
    """The ids of the inputs that an entry uses."""
    if isinstance(value, str):
        for variable in _variable.findall(value):
            if variable.startswith(_INPUT):
                yield variable.removeprefix(_INPUT)
    elif is_object(value) or is_many(value):
        for each in value.values() if is_object(value) else value:
            yield from _inputs_in(each)


def _mask_name(name: str) -> str:
    """A name for an error text, masked if it may contain a secret."""
    from ..command_masking import masked_command  # its patterns take long to compile

    return masked_command([name])


def _names(names: Iterable[str]) -> str:
    return safe_list([_mask_name(name) for name in names])


def _kind(value: object) -> str:
    """The JSON type of a value, for an error text."""
    if is_object(value):
        return "an object"
    kinds: dict[type[object], str] = {
        str: "a text",
        bool: "a boolean",
        type(None): "null",
        int: "a number",
        float: "a number",
    }
    return "a list" if is_many(value) else kinds.get(type(value), f"a {type(value).__name__}")


def _is_url(entry: object) -> bool:
    return isinstance(entry, str) and entry.lower().startswith(("http://", "https://"))


def _is_disabled(entry: Any) -> bool:
    return is_object(entry) and entry.get("disabled") is True


def _entry(entry: Any, texts: _Texts, place: str) -> ServerEntry:
    """Read an entry: an object, or in Python any other target of `connect`.

    Raises:
        ValueError: The entry is malformed.
    """
    if isinstance(entry, str | int | float | None) and not _is_url(entry):
        raise ValueError(f"{place}: expected an object, got {_kind(entry)}")
    if not is_object(entry):
        return ServerEntry(entry)
    kind = entry.get("type", entry.get("transport"))
    if ("command" in entry) == ("url" in entry):
        raise ValueError(f"{place}: expected either command or url, got {_names(entry) or 'none'}")
    own, key = (_OF_PROCESS, "command") if "command" in entry else (_OF_URL, "url")
    allowed = ("stdio",) if key == "command" else tuple(_TRANSPORTS)
    if kind is not None and kind not in allowed:
        came = repr(_mask_name(kind)) if isinstance(kind, str) else _kind(kind)
        raise ValueError(f"{place}: type: expected {' or '.join(allowed)}, got {came}")
    unused = entry.keys() - own - _OF_BOTH - _FOR_DISPLAY
    if unused:
        _logger.warning("%s: not used: %s", place, _names(sorted(unused)))
    if key == "url":
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
        raise ValueError(f"{place}: args: expected a list of texts, got {_kind(args)}")
    cwd = entry.get("cwd")
    return ServerEntry(
        [
            texts.text(entry["command"], f"{place}: command"),
            *(texts.text(word, f"{place}: args") for word in args),
        ],
        env=_environment(entry, texts, place),
        cwd=None if cwd is None else texts.text(cwd, f"{place}: cwd"),
    )


def _environment(entry: Mapping[str, Any], texts: _Texts, place: str) -> Mapping[str, str] | None:
    """The environment of a process: the variables of `envFile`, overridden by those of `env`.

    Raises:
        MissingExtraError: There is an `envFile`, and no library for it is installed.
        ValueError: The file can't be read, or `env` is malformed.
    """
    own = texts.mapping(entry.get("env"), f"{place}: env")
    if entry.get("envFile") is None:
        return own
    path = texts.folder / texts.text(entry["envFile"], f"{place}: envFile")
    try:
        from dotenv import dotenv_values
    except ImportError:
        raise MissingExtraError(f"{place}: envFile", "python-dotenv") from None
    try:
        with path.open(encoding="utf-8-sig") as file:
            read = dotenv_values(stream=file, interpolate=False)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "expected a text in UTF-8"
        written = _mask_name(entry["envFile"])
        raise ValueError(f"{place}: envFile: {written!r}: {reason}") from None
    variables = {name: value for name, value in read.items() if value is not None}
    members: Mapping[str, Any] = entry.get("env") or {}
    removed = {name for name, value in members.items() if value is None}
    return {
        **{name: value for name, value in variables.items() if name not in removed},
        **(own or {}),
    }


@dataclass(frozen=True)
class _Texts:
    """Replaces variables in texts.

    Attributes:
        folder: The folder of the workspace.
        predefined: Variables besides those of the environment.
        environment: The variables of the environment.
    """

    folder: Path
    predefined: Mapping[str, str]
    environment: Mapping[str, str]

    def text(self, value: object, place: str) -> str:
        """Replace the variables of a text.

        Raises:
            ValueError: The value is not a string, or a variable has no value.
        """
        if isinstance(value, str):
            return _variable.sub(lambda name: self._value(name[1], place), value)
        raise ValueError(f"{place}: expected a text, got {_kind(value)}")

    def mapping(self, value: object, place: str) -> dict[str, str] | None:
        """Replace the variables of an object's texts; numbers become texts, null is dropped.

        Raises:
            ValueError: The value is not an object of strings.
        """
        if value is None:
            return None
        if not is_object(value):
            raise ValueError(f"{place}: expected an object, got {_kind(value)}")
        return {
            name: self.text(
                str(text) if type(text) in (int, float) else text, f"{place}.{_mask_name(name)}"
            )
            for name, text in value.items()
            if text is not None
        }

    def _value(self, variable: str, place: str) -> str:
        if variable in self.predefined:
            return self.predefined[variable]
        if variable.startswith(_INPUT):
            identifier = _mask_name(variable.removeprefix(_INPUT))
            raise ValueError(
                f"{place}: ${{input:{identifier}}} has no value: inputs={{{identifier!r}: ...}} of "
                "connect() gives one, or a function that asks the user"
            )
        form = _name.fullmatch(variable)
        if form is None:
            raise ValueError(
                f"{place}: expected ${{NAME}}, ${{NAME:-default}}, ${{env:NAME}}, ${{input:id}}, "
                f"${{userHome}} or ${{workspaceFolder}}, got ${{{_mask_name(variable)}}}"
            )
        default: str | None = form[2]
        value = self.environment.get(form[1], default)
        if value is None:
            raise ValueError(
                f"{place}: the variable {_mask_name(form[1])} is not set, and "
                f"${{{_mask_name(variable)}}} has no default"
            )
        return value
