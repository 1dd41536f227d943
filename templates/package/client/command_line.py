"""The commands of `python -m <package>` that use a server: list, call, read, prompt, inspect.

A target is a URL, a command line, `module:server`, which is served by a process of its own, or
`mcp.json:name`, a server of a configuration.
Results go to standard output, as text for people or as JSON. Text of a server is written without
control characters, which a terminal would interpret. On a terminal, text for people is styled if
rich is installed.

The exit code is `FAILED` if the server answered with an error, `CANNOT` if it cannot be asked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio

from .._wire import is_many, is_object, to_builtins
from ..errors import McpError, RemoteError
from ..foreign_text import safe_repr, safe_text
from ..runtime.command_table import CANNOT, DONE, FAILED
from ..runtime.config_command import (
    MODULE,
    UsageError,
    add_sending_options,
    headers_of,
    parse_target,
)
from ..runtime.pages import next_cursor, pages_of
from ..runtime.terminal_output import TableRow, json_text, output, printable
from .item_texts import (
    argument_types,
    block_text,
    first_line,
    item_row,
    members_of,
    print_block,
    print_contents,
    text_member,
)

if TYPE_CHECKING:  # a server does not load the client
    from ..facts import Revisions
    from .callbacks import LogMessage
    from .chosen import ClientFeatures

_LOGGED = 1000  # most characters that are shown of a log message or a progress report

_JSON_ONLY = ("array", "boolean", "integer", "null", "number", "object")

_Run = Callable[[Any, argparse.Namespace], Awaitable[int]]
"""Runs a command with a client, whose methods depend on the revision of the session."""


@dataclass(frozen=True)
class CommandPackage:
    """The package that the command line belongs to.

    Attributes:
        name: Its import name, for `python -m`.
        client: Returns its `connect` and its revisions, which are imported then.
    """

    name: str
    client: Callable[[], tuple[Callable[..., Any], Revisions]]


def add_commands(
    add: Callable[..., argparse.ArgumentParser],
    package: CommandPackage,
    serve_page: Callable[[argparse.Namespace], int] | None = None,
) -> None:
    """Add the commands to a parser.

    Args:
        add: The `add_parser` method of its subparsers.
        package: The package.
        serve_page: Serves the page of `inspect --web`; `None` if the package has none.
    """
    listing = _command(add, "list", "list the tools, resources and prompts of a server")
    listing.set_defaults(run=_list)
    call = _command(add, "call", "call a tool and print its result")
    call.add_argument("tool", metavar="TOOL")
    _add_arguments(call)
    call.add_argument("--args", metavar="JSON", help="all arguments as one JSON object")
    call.set_defaults(run=_call)
    read = _command(add, "read", "print a resource")
    read.add_argument("uri", metavar="URI")
    read.set_defaults(run=_read)
    prompt = _command(add, "prompt", "print a prompt")
    prompt.add_argument("prompt", metavar="NAME")
    _add_arguments(prompt)
    prompt.set_defaults(run=_prompt)
    inspect = _command(add, "inspect", "show what a server is, in each revision that it speaks")
    inspect.set_defaults(run=None)
    if serve_page is not None:
        inspect.add_argument(
            "--web",
            dest="at_once",
            action="store_const",
            const=serve_page,
            help="serve a page at a free port of 127.0.0.1 to use the server and see all messages",
        )
    for parser in (listing, call, read, prompt, inspect):
        parser.set_defaults(package=package, main=run)


def _command(
    add: Callable[..., argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    parser = add(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="URL, command line in quotes, MODULE:SERVER of the current directory, or "
        "FILE.json:NAME for a server of a configuration",
    )
    parser.add_argument("--revision", help="revision to speak; negotiated by default")
    add_sending_options(parser)
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="60 by default"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(at_once=None)
    return parser


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one argument; may be given several times",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run a command, and return its exit code.

    Args:
        chosen: The parsed command line.
    """
    work = _inspect if chosen.run is None else _run_in_session
    try:
        if chosen.at_once is not None:
            return int(chosen.at_once(chosen))
        return anyio.run(work, chosen)
    except RemoteError as error:
        return _report(error, FAILED)
    except (UsageError, McpError, OSError) as error:
        return _report(error, CANNOT)
    except KeyboardInterrupt:
        return _report(InterruptedError("interrupted"), CANNOT)


def _report(error: Exception, code: int) -> int:
    print(f"error: {printable(str(error))}", file=sys.stderr)
    return code


def _options(chosen: argparse.Namespace, revision: str | None) -> dict[str, Any]:
    """The keyword arguments of `connect`."""
    from .client_settings import Timeouts

    options: dict[str, Any] = {"timeouts": Timeouts(opening=chosen.timeout)}
    if revision is not None:
        options["revision"] = revision
    if headers := headers_of(chosen):
        options["headers"] = headers
    if _config_of(chosen.target) is None and MODULE.fullmatch(chosen.target):  # the user's code
        options["env"] = dict(os.environ)
    elif chosen.env:
        options["env"] = {
            name: value if equals else os.environ.get(name, "")
            for name, equals, value in (word.partition("=") for word in chosen.env)
        }
    return options


def _config_of(target: str) -> tuple[Path, str] | None:
    """The path of a configuration and the name of its server, maybe empty; `None` for others."""
    if Path(target).suffix == ".json" and Path(target).is_file():
        return Path(target), ""
    file, colon, name = target.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".json") else None


async def _resolve(chosen: argparse.Namespace, revision: str | None) -> tuple[Any, dict[str, Any]]:
    """Resolve the target; returns the target and the keyword arguments of `connect`.

    Raises:
        OSError: The file of a configuration can't be read.
        UsageError: The target is invalid.
        ValueError: A configuration is malformed.
    """
    served = _config_of(chosen.target)
    if served is None:
        return parse_target(chosen.target, chosen.package.name), _options(chosen, revision)
    server: Any = getattr(chosen, "server_entry", None)
    if server is None:
        from .chosen import READ_SERVER
        from .terminal_handlers import ask_input

        if READ_SERVER is None:
            from ..absence import missing_text  # for the error only

            raise ValueError(missing_text("a configuration of servers", "groups"))
        ask = ask_input if sys.stdin.isatty() else None
        server = chosen.server_entry = await READ_SERVER(*served, ask)  # asks for inputs once
    options = _options(chosen, revision)
    for member in ("env", "headers"):
        own: Mapping[str, str] = getattr(server, member) or {}
        if own:
            options[member] = {**own, **options.get(member, {})}
    for member in ("cwd", "transport"):
        if getattr(server, member) is not None:
            options[member] = getattr(server, member)
    return server.target, options


async def _run_in_session(chosen: argparse.Namespace) -> int:
    command: _Run = chosen.run
    more: dict[str, Any] = {}
    if sys.stdin.isatty():
        from .terminal_handlers import CAPABILITIES, TerminalHandlers

        more = {"handlers": TerminalHandlers(), "capabilities": CAPABILITIES}
    async with open_target(chosen, chosen.revision, **more) as client:
        with client.on_progress(_show_progress), client.on_log(_show_log):
            return await command(client, chosen)


def _show_progress(done: float, total: float | None, message: str | None) -> None:
    """Show the progress of a request on standard error."""
    of_total = "" if total is None else f"/{total:g}"
    _print_to_stderr(f"progress {done:g}{of_total}{f': {message}' if message else ''}")


def _show_log(message: LogMessage) -> None:
    """Show a log message of the server on standard error."""
    data: object = message.data
    text = data if isinstance(data, str) else safe_repr(data, _LOGGED)
    _print_to_stderr(f"{message.level}{f' {message.logger}' if message.logger else ''}: {text}")


def _print_to_stderr(text: str) -> None:
    print(safe_text(text, _LOGGED), file=sys.stderr, flush=True)


@asynccontextmanager
async def open_target(
    chosen: argparse.Namespace, revision: str | None, **more: Any
) -> AsyncGenerator[ClientFeatures]:
    """Open a session with the target.

    Args:
        chosen: The parsed command line.
        revision: The revision to speak; negotiated if `None`.
        more: Further options of `connect`.

    Raises:
        UsageError: `connect` does not accept the target or an option.
    """
    package: CommandPackage = chosen.package
    connect, _ = package.client()
    async with AsyncExitStack() as stack:
        try:
            target, options = await _resolve(chosen, revision)
            opening: AbstractAsyncContextManager[ClientFeatures] = connect(
                target, **options, **more
            )
            client = await stack.enter_async_context(opening)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        yield client


# list


_LISTS = {
    "tools": ("tools", "tools/list", "tools"),
    "resources": ("resources", "resources/list", "resources"),
    "resource templates": ("resources", "resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts", "prompts/list", "prompts"),
}
"""The capability, the method and the member of the result, by heading of a list."""

_CALLED_COLUMNS = ("name", "arguments", "description")
_READ_COLUMNS = ("URI", "name", "type", "description")
_COLUMNS = {
    "tools": _CALLED_COLUMNS,
    "resources": _READ_COLUMNS,
    "resource templates": _READ_COLUMNS,
    "prompts": _CALLED_COLUMNS,
}


async def _list(client: ClientFeatures, chosen: argparse.Namespace) -> int:
    listed = await _request_lists(client, chosen.timeout)
    if chosen.json:
        _print_json({heading.replace(" ", "_"): items for heading, items in listed.items()})
        return DONE
    out = output()
    out.heading(_describe_server(client))
    for heading, items in listed.items():
        if items:
            out.table(heading, _COLUMNS[heading], map(item_row, items))
    return DONE


async def _request_lists(
    client: ClientFeatures, timeout: float
) -> dict[str, list[Mapping[str, Any]]]:
    """Request all lists that the server has; returns their items by heading."""
    methods = client.session.revision.client_requests
    return {
        heading: await _items(client, heading, timeout)
        for heading, (capability, method, _) in _LISTS.items()
        if client.supports(capability) and method in methods
    }


async def _items(client: ClientFeatures, heading: str, timeout: float) -> list[Mapping[str, Any]]:
    """The items of all pages of a list, as wire objects.

    Raises:
        RemoteProtocolError: There are more than `PAGES` pages.
    """
    _, method, member = _LISTS[heading]
    items: list[Mapping[str, Any]] = []

    async def request(cursor: str | None) -> tuple[list[Any], str | None]:
        params = {} if cursor is None else {"cursor": cursor}
        page = await _result(client, method, params, timeout)
        return page.get(member, []), next_cursor(page)

    async for page in pages_of(request, method):
        items += filter(is_object, page)
    return items


async def _result(
    client: ClientFeatures, method: str, params: Mapping[str, Any], timeout: float
) -> Mapping[str, Any]:
    """The result of a request as wire object, since its type depends on the revision."""
    return members_of(to_builtins(await client.request(method, params, timeout=timeout)))


def _describe_server(client: ClientFeatures) -> str:
    info = client.server_info
    named = [str(info.get(key, "")) for key in ("name", "version")]
    return f"{' '.join(text for text in named if text) or 'unnamed server'}, {client.revision}"


# call, read, prompt


async def _call(client: Any, chosen: argparse.Namespace) -> int:
    tools = {
        text_member(tool, "name"): tool for tool in await _items(client, "tools", chosen.timeout)
    }
    if chosen.tool not in tools:
        names = ", ".join(map(safe_text, tools)) or "no tools"
        raise UsageError(f"expected one of the server's tools ({names}), got {chosen.tool!r}")
    arguments = _json_object(chosen.args) if chosen.args is not None else {}
    arguments |= _convert_arguments(_pairs(chosen.arg), tools[chosen.tool].get("inputSchema"))
    result = await _wire_result(client.call_tool(chosen.tool, arguments, timeout=_timeout(chosen)))
    content = result.get("content") or ()
    if chosen.json:
        _print_json(result)
    else:
        out = output()
        for block in content:
            print_block(out, members_of(block))
        if not content:
            out.value(result.get("structuredContent", result))
    return FAILED if result.get("isError") else DONE


async def _read(client: Any, chosen: argparse.Namespace) -> int:
    result = await _wire_result(client.read_resource(chosen.uri, timeout=_timeout(chosen)))
    if chosen.json:
        _print_json(result)
        return DONE
    out = output()
    for contents in result.get("contents") or ():
        print_contents(out, members_of(contents))
    return DONE


async def _prompt(client: Any, chosen: argparse.Namespace) -> int:
    request = client.get_prompt(chosen.prompt, _pairs(chosen.arg), timeout=_timeout(chosen))
    result = await _wire_result(request)
    if chosen.json:
        _print_json(result)
        return DONE
    out = output()
    for message in map(members_of, result.get("messages") or ()):
        text = block_text(members_of(message.get("content")))
        out.line([(f"{text_member(message, 'role')}: ", "bold"), (text, "")])
    return DONE


async def _wire_result(request: Awaitable[Any]) -> Mapping[str, Any]:
    """The result of a typed request as wire object."""
    return members_of(to_builtins(await request))


def _timeout(chosen: argparse.Namespace) -> float | None:
    """Seconds that a request may take; `None` at a terminal, since the user may be asked."""
    return None if sys.stdin.isatty() else chosen.timeout


def _pairs(words: Sequence[str]) -> dict[str, str]:
    """The arguments of `--arg` by name, as text."""
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--arg: expected NAME=VALUE, got {word!r}")
        values[name] = value
    return values


def _convert_arguments(arguments: Mapping[str, str], schema: Any) -> dict[str, Any]:
    """Convert arguments to the types in the tool's input schema.

    A value is decoded as JSON, unless the parameter is a string. If the schema states no type, text
    that is not JSON stays text.
    """
    fields = members_of(schema)
    properties = members_of(fields.get("properties"))
    typed: dict[str, Any] = {}
    for name, value in arguments.items():
        rules = members_of(properties.get(name))
        types, values = " | ".join(argument_types(rules, fields)), rules.get("enum")
        if types == "string" or (is_many(values) and value in values):
            typed[name] = value
            continue
        try:
            typed[name] = _decode_json(value)
        except ValueError:
            if types in _JSON_ONLY:
                raise UsageError(
                    f"--arg {name}: expected JSON, since the tool expects {types}, got {value!r}"
                ) from None
            typed[name] = value
    return typed


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = _decode_json(text)
    except ValueError as error:
        raise UsageError(f"--args: expected a JSON object, got {text!r}: {error}") from None
    if not is_object(value):
        raise UsageError(f"--args: expected a JSON object, got {text!r}")
    return {**value}


def _decode_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


# inspect


async def _inspect(chosen: argparse.Namespace) -> int:
    """Connect with a negotiated revision, then with each other revision of the package."""
    package: CommandPackage = chosen.package
    _, revisions = package.client()
    description: dict[str, Any] = {"revisions": {}}
    for revision in (chosen.revision,) if chosen.revision else (None, *reversed([*revisions])):
        if revision is not None and revision in description["revisions"]:
            continue
        await _try_revision(chosen, revision, description)
    if chosen.json:
        _print_json(description)
        return DONE
    out, info = output(), description["server_info"]
    out.heading("  ".join(str(text) for text in info.values() if isinstance(text, str)))
    if description["instructions"]:
        out.text(first_line(description["instructions"]), markdown=False)
    columns = ("revision", "lists", "capabilities", "opened", "listed")
    rows = sorted(description["revisions"].items(), reverse=True)
    out.table("revisions", columns, (_revision_row(*each) for each in rows))
    return DONE


def _revision_row(revision: str, row: Mapping[str, Any]) -> TableRow:
    if "error" in row:
        text = f"no: {first_line(row['error'])}"
        return TableRow((revision, text, "", "", ""), f"{revision}  {text}")
    counts = ", ".join(f"{name}: {count}" for name, count in row["counts"].items()) or "no lists"
    opened, listed = (f"{row[name]:.0f} ms" for name in ("opened_ms", "listed_ms"))
    capabilities = ", ".join(row["capabilities"]) or "none"
    return TableRow(
        (revision, counts, capabilities, opened, listed),
        f"{revision}  {counts}; opened in {opened}, listed in {listed}",
        f"capabilities: {capabilities}",
    )


async def _try_revision(
    chosen: argparse.Namespace, revision: str | None, description: dict[str, Any]
) -> None:
    """Connect with a revision, and add the server's lists and capabilities, or its error.

    Raises:
        McpError: The first session could not be opened.
    """
    start = perf_counter()
    try:
        async with open_target(chosen, revision) as client:
            open_at = perf_counter()
            lists = await _request_lists(client, chosen.timeout)
            listed = perf_counter()
            description.setdefault("server_info", dict(client.server_info))
            description.setdefault("instructions", client.instructions)
            description["revisions"][client.revision] = {
                "capabilities": [*_capabilities(client.server_capabilities)],
                "counts": {heading: len(items) for heading, items in lists.items()},
                "opened_ms": round(1000 * (open_at - start), 1),
                "listed_ms": round(1000 * (listed - open_at), 1),
            }
    except McpError as error:
        if "server_info" not in description:
            raise
        description["revisions"][revision] = {"error": str(error)}


def _capabilities(declared: Mapping[str, Any]) -> Iterator[str]:
    """The capabilities that a server declares, such as `resources (subscribe, listChanged)`."""
    for name, members in declared.items():
        if members is None or members is False:
            continue
        inner = [key for key, value in members_of(members).items() if value]
        yield f"{name} ({', '.join(inner)})" if inner else name


# output


def _print_json(value: Any) -> None:
    """Print a result as JSON."""
    print(json_text(value))
