"""Connect to servers with a temporarily generated package.

mcpgen is installed without a package that speaks the protocol. So a package with every revision is
generated into a temporary folder and imported from there. That takes some seconds, works with
servers of any age, and follows the same schemas as the packages for users.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import secrets
import shlex
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeAlias

from mcpgen import __version__, names
from mcpgen.errors import MirrorError, UsageError, safe_text
from mcpgen.input_files import read_jsonc
from mcpgen.json_types import is_array, is_object
from mcpgen.project.mirror import Limits, Snapshot, is_parameter, variables
from mcpgen.project.server_lists import KINDS, WORDS, ServerLists, parse
from mcpgen.schema.structure import difference, resolve

SECONDS = 60.0
"""Seconds that a server may take to start, and for each page of a list."""

MAX_PAGES = 100
"""Limit of the pages of one list."""

MAX_ENTRIES = 5000
"""Limit of the entries of one list."""

_IN_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_RUN = """
import functools, importlib, sys

sys.path.insert(0, "")
module, name = sys.argv[1:]
functools.reduce(getattr, name.split("."), importlib.import_module(module)).run()
"""
"""Runs a server that an attribute of a module is, over stdio."""

_SHOWN = 5
"""Limit of the entries with the same difference in one line."""

_LONGEST = 200
"""Limit of the characters of a place that are shown."""


@dataclass(frozen=True)
class Target:
    """A server to connect to.

    Attributes:
        shown: The words of the user, for messages.
        address: The URL, or the command that starts it.
        options: Keywords of `connect`: environment, directory, header fields.
        name: Its name in a configuration; empty for others.
    """

    shown: str
    address: str | list[str]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    name: str = ""


@dataclass(frozen=True)
class MemoryTarget:
    """A server in this process.

    Attributes:
        address: The server: an object that serves a channel.
        shown: Its name, for messages.
        options: Keywords of `connect`.
    """

    address: object
    shown: str = "the server"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


AnyTarget: TypeAlias = Target | MemoryTarget


def target(words: str, directory: Path) -> Target:
    """The server that a user names.

    Args:
        words: A URL; a file with `mcpServers`, with `#` and a name if it has several; the
            `server.json` of a registry; `module:server`, a server in a module of this Python; or
            the command that starts the server.
        directory: The working directory of the command, and the folder of the file.

    Raises:
        UsageError: There are no words, or quotes are left open.
        MirrorError: The file has no entry of that name.
    """
    if words.startswith(("http://", "https://")):
        return Target(safe_text(words), words)
    if _IN_MODULE.fullmatch(words):
        module, _, name = words.partition(":")
        command = [sys.executable, "-c", _RUN, module, name]
        return Target(safe_text(words), command, {"cwd": str(directory)})
    file, _, name = words.partition("#")
    path = directory / file
    if file.endswith(".json") and path.is_file():
        return _configured_target(path, name, words, directory)
    try:
        command = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"expected a command, got {safe_text(words)!r}: {error}") from error
    if not command:
        raise UsageError("expected a URL, a command or a file with mcpServers, got nothing")
    return Target(safe_text(words), command, {"cwd": str(directory)})


def _configured_target(path: Path, name: str, words: str, directory: Path) -> Target:
    document = read_jsonc(path, MirrorError)
    source = str(path)
    members = document if is_object(document) else {}
    if "mcpServers" not in members and ("remotes" in members or "packages" in members):
        return _registered_target(members, source, words)
    servers = members.get("mcpServers", members.get("servers"))  # VS Code has the latter
    if not is_object(servers) or not servers:
        raise MirrorError(source, "/mcpServers", "an object with servers", "none")
    if not name and len(servers) > 1:
        known = ", ".join(safe_text(each) for each in servers)
        raise MirrorError(source, "/mcpServers", f"FILE#NAME with one of {known}", "no name")
    chosen = name or next(iter(servers))
    entry = servers.get(chosen)
    if not is_object(entry):
        known = ", ".join(safe_text(each) for each in servers)
        raise MirrorError(source, "/mcpServers", f"one of {known}", safe_text(chosen))
    shown, url, command = safe_text(words), entry.get("url"), entry.get("command")
    if isinstance(url, str):
        headers = _texts(entry.get("headers"), source, "headers")
        return Target(shown, url, {"headers": headers} if headers else {}, chosen)
    arguments = entry.get("args", [])
    if not isinstance(command, str) or not is_array(arguments):
        raise MirrorError(
            source, f"/mcpServers/{chosen}", "a command with args, or a url", "neither"
        )
    options: dict[str, Any] = {"cwd": str(directory / str(entry.get("cwd") or "."))}
    if environment := _texts(entry.get("env"), source, "env"):
        options["env"] = environment
    return Target(shown, [command, *map(str, arguments)], options, chosen)


_STARTERS: Mapping[str, tuple[Sequence[str], str]] = {
    "npm": (("npx", "-y"), "@"),
    "pypi": (("uvx",), "=="),
}
"""How a package of a registry is started, by its kind: words before its name and its version."""


def _registered_target(document: Mapping[str, Any], source: str, words: str) -> Target:
    """The server of a `server.json`: its first remote over HTTP, else its first package."""
    for remote in document.get("remotes") or ():
        if is_object(remote) and remote.get("type") == "streamable-http":
            return Target(safe_text(words), str(remote.get("url")))
    for package in document.get("packages") or ():
        if is_object(package) and package.get("registryType") in _STARTERS:
            start, between = _STARTERS[package["registryType"]]
            version = package.get("version")
            name = str(package.get("identifier"))
            pinned = f"{name}{between}{version}" if version else name
            more = [
                str(each["value"])
                for each in package.get("packageArguments") or ()
                if is_object(each) and each.get("type") == "positional" and "value" in each
            ]
            return Target(safe_text(words), [*start, pinned, *more])
    expected = "a remote of streamable-http, or a package of npm or pypi"
    raise MirrorError(source, "/packages", expected, "neither")


def _texts(value: object, source: str, member: str) -> dict[str, str]:
    if value is None:
        return {}
    if not is_object(value) or not all(isinstance(text, str) for text in value.values()):
        raise MirrorError(source, f"/{member}", "an object of strings", "something else")
    return {key: str(text) for key, text in value.items()}


@contextmanager
def import_package(files: Mapping[str, str]) -> Generator[Any]:
    """Import a generated package from a temporary folder.

    Args:
        files: Text by path within the package; imports within it are relative.

    Yields:
        The package. At the end of the block, its folder is deleted, and it can import nothing more.
    """
    with tempfile.TemporaryDirectory(prefix="mcpgen-") as folder:
        name = f"mcpgen_peer_{secrets.token_hex(4)}"
        for path, text in files.items():
            place = Path(folder, name, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", newline="\n")
        sys.path.insert(0, folder)
        logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            importlib.invalidate_caches()
            yield importlib.import_module(name)
        finally:
            sys.path.remove(folder)
            for module in [each for each in sys.modules if each.partition(".")[0] == name]:
                del sys.modules[module]


def lists(package: Any, server: Target) -> ServerLists:
    """The lists of a server.

    Args:
        package: A generated package with a client.
        server: The server.

    Raises:
        MirrorError: The server does not start or answer, or its answers are malformed.
    """
    import anyio  # only to talk to servers

    try:
        document = anyio.run(_fetch_lists, package, server)
    except (package.McpError, OSError) as error:
        raise _no_answer(server, error) from error
    return parse(document, server.shown)


async def _fetch_lists(package: Any, server: Target) -> dict[str, Any]:
    options = {"name": "mcpgen", "version": __version__, **server.options}
    timeouts = package.Timeouts(opening=SECONDS)
    async with package.connect(server.address, timeouts=timeouts, **options) as client:
        return await _lists_of(client, server, package)


async def _lists_of(client: Any, server: AnyTarget, package: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"tools": []}
    for kind, row in _list_requests(package).items():
        if all(name in client.server_capabilities for name in row.capability[:1]):
            document[kind] = await _pages(client.request_raw, kind, row.name, server, package)
    if client.instructions is not None:
        document["instructions"] = client.instructions
    return document


def _list_requests(package: Any) -> dict[str, Any]:
    """The method table's row of the request for each list, by the member of its result."""
    rows = package.REVISIONS.newest().client_requests.values()
    by_items = {row.items: row for row in rows if row.items is not None}
    return {kind: by_items[names.snake(kind)] for kind in KINDS}


async def _pages(
    request: Callable[..., Awaitable[Any]],
    kind: str,
    method: str,
    server: AnyTarget,
    package: Any,
) -> list[Any]:
    """All entries of one list; none of a template list that a server does not know."""
    entries: list[Any] = []
    params: dict[str, str] = {}
    cursors: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            answer = await request(method, params, timeout=SECONDS)
        except package.RemoteError:
            if kind == "resourceTemplates":
                return entries
            raise
        page = _page(bytes(answer), kind, method, server)
        entries += page[kind]
        cursor = page.get("nextCursor")
        if len(entries) > MAX_ENTRIES:
            raise MirrorError(server.shown, f"/{kind}", f"{MAX_ENTRIES} entries at most", "more")
        if not isinstance(cursor, str) or not cursor or cursor in cursors:
            return entries
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise MirrorError(server.shown, f"/{kind}", f"{MAX_PAGES} pages at most", "more")


def _page(answer: bytes, kind: str, method: str, server: AnyTarget) -> dict[str, Any]:
    try:
        page = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise MirrorError(server.shown, "", f"JSON for {method}", safe_text(str(error))) from error
    if not is_object(page) or not is_array(page.get(kind)):
        raise MirrorError(server.shown, f"/{kind}", f"an array in the result of {method}", "none")
    return page


@dataclass(frozen=True)
class Surface:
    """The lists and capabilities of a server in one revision.

    Attributes:
        revision: The revision.
        name: The server's name.
        capabilities: Its capabilities, by name.
        lists: Its lists and its instructions.
    """

    revision: str
    name: str
    capabilities: Mapping[str, Any]
    lists: ServerLists


def surfaces(package: Any, server: Target, revisions: Sequence[str] = ()) -> list[Surface]:
    """The surfaces of a server in all revisions that it speaks, newest first.

    Args:
        package: A generated package with a client of all revisions.
        server: The server. It is connected to once for each revision.
        revisions: The revisions to ask for; all of the package if there are none.

    Raises:
        MirrorError: The server does not start or answer, its answers are malformed, or it speaks
            none of the revisions.
    """
    import anyio  # only to talk to servers

    return anyio.run(fetch_surfaces, package, server, revisions)


async def fetch_surfaces(
    package: Any, server: AnyTarget, revisions: Sequence[str] = ()
) -> list[Surface]:
    """The surfaces of a server, in an event loop of the caller's; see `surfaces`.

    Raises:
        MirrorError: As for `surfaces`.
    """
    names = [each for each in package.REVISIONS if not revisions or each in revisions]
    shown: list[Surface] = []
    reason = ""
    for revision in reversed(names):
        try:
            shown.append(await _fetch_surface(package, server, revision))
        except _RefusedError as error:
            reason = safe_text(" ".join(str(error).split()), 300)
        except (package.McpError, OSError) as error:
            raise _no_answer(server, error) from error
    if not shown:
        expected = f"a server of {', '.join(revisions or names)}"
        raise MirrorError(server.shown, "", expected, f"a refusal: {reason}")
    return shown


def newest_surface(package: Any, server: Target) -> Surface:
    """The surface of a server in the newest revision that it and a package speak.

    Args:
        package: A generated package with a client.
        server: The server, which is connected to once.

    Raises:
        MirrorError: The server does not start or answer, or its answers are malformed.
    """
    import anyio  # only to talk to servers

    try:
        return anyio.run(_fetch_surface, package, server, None)
    except (package.McpError, OSError, _RefusedError) as error:
        raise _no_answer(server, error) from error


class _RefusedError(Exception):
    """A server refused to open a session in a revision."""


def _no_answer(server: AnyTarget, error: Exception) -> MirrorError:
    text = safe_text(" ".join(str(error).split()), 500)
    return MirrorError(server.shown, "", "a server that answers", text)


async def _fetch_surface(package: Any, server: AnyTarget, revision: str | None) -> Surface:
    options = {"name": "mcpgen", "version": __version__, "revision": revision, **server.options}
    timeouts = package.Timeouts(opening=SECONDS)
    async with AsyncExitStack() as stack:
        opening = package.connect(server.address, timeouts=timeouts, **options)
        try:
            client = await stack.enter_async_context(opening)
        except (package.RevisionError, package.RemoteError) as error:
            # A server of other revisions may answer the first request with any error.
            raise _RefusedError(str(error)) from error
        document = await _lists_of(client, server, package)
        name = client.server_info.get("name")
        return Surface(
            client.revision,
            name if isinstance(name, str) else "",
            dict(client.server_capabilities),
            parse(document, server.shown),
        )


def limits(package: Any, listed: ServerLists) -> Limits:
    """Items of a server's lists that a generated package cannot register, determined by trying.

    Args:
        package: A generated package with a server.
        listed: The lists.
    """
    server = package.Server("trial")
    unchecked: list[str] = []
    absent: dict[str, tuple[str, ...]] = {}
    refused: list[str] = []
    for entry in listed.entries["tools"]:
        name, options = entry["name"], {"description": entry.get("description")}
        schemas = {
            "input_schema": entry.get("inputSchema", {}),
            "output_schema": entry.get("outputSchema"),
        }
        if _registers(server.tool, package, name, None, **options, **schemas):
            continue
        loose = {"input_schema": {"type": "object"}, "output_schema": None}
        known = _registers(server.tool, package, name, None, **options, **loose)
        (unchecked if known else refused).append(name)
    absent["tools"] = tuple(refused)
    for kind in ("resources", "resourceTemplates"):
        rows = {entry[KINDS[kind]]: entry for entry in listed.entries[kind]}
        absent[kind] = tuple(
            uri
            for uri, entry in rows.items()
            if not _registers(
                server.resource, package, uri, variables(uri) or (), mime_type=entry.get("mimeType")
            )
        )
    absent["prompts"] = tuple(
        entry["name"]
        for entry in listed.entries["prompts"]
        if not _registers(
            server.prompt,
            package,
            entry["name"],
            [row["name"] for row in entry.get("arguments", ())],
        )
    )
    return Limits(tuple(unchecked), absent)


def mirror_differences(
    files: Mapping[str, str], modules: Sequence[str], protocol: str, snapshot: Snapshot
) -> list[str]:
    """The differences of the lists of a mirror from the mirrored server's, one line each.

    The mirror serves its lists in memory, in the newest revision of its package.

    Args:
        files: The project: text by path within its package.
        modules: The further modules to import, by name in the package: the mirror first.
        protocol: Name of the generated package in the project.
        snapshot: The lists.

    Raises:
        MirrorError: The project cannot be imported, or cannot serve its lists.
    """
    import anyio  # only to talk to servers

    try:
        with import_package(files) as project:
            package = importlib.import_module(f"{project.__name__}.{protocol}")
            testing = importlib.import_module(f"{project.__name__}.{protocol}.testing")
            mirror, *_ = [
                importlib.import_module(f"{project.__name__}.{module}") for module in modules
            ]
            listed = anyio.run(_lists_of_mirror, package, testing, mirror)
    except Exception as error:
        text = safe_text(" ".join(f"{type(error).__name__}: {error}".split()), 500)
        raise MirrorError("the project", "", "a mirror that serves its lists", text) from error
    return list(list_differences(snapshot, listed))


def read_project(
    files: Mapping[str, str],
    module: str,
    protocol: str,
    read: Callable[[Any, Any], Awaitable[str]],
) -> str:
    """The text that a function makes of the server of a new project, which is imported.

    Args:
        files: The project: text by path within its package.
        module: The module that has the server as `server`, by name in the package.
        protocol: Name of the generated package in the project.
        read: Called with the generated package and the server, in an event loop.

    Raises:
        MirrorError: The project cannot be imported, or its server cannot be asked.
    """
    import anyio  # only to talk to servers

    try:
        with import_package(files) as project:
            package = importlib.import_module(f"{project.__name__}.{protocol}")
            server = importlib.import_module(f"{project.__name__}.{module}").server
            return anyio.run(read, package, server)
    except Exception as error:
        text = safe_text(" ".join(f"{type(error).__name__}: {error}".split()), 500)
        raise MirrorError("the project", "", "a server that answers", text) from error


async def _lists_of_mirror(package: Any, testing: Any, mirror: Any) -> dict[str, Any]:
    """The lists of a server with handlers that do nothing."""

    async def do_nothing(self: Any, *arguments: Any) -> None: ...

    handlers = type(
        "Trial", (mirror.Handlers,), dict.fromkeys(mirror.Handlers.__abstractmethods__, do_nothing)
    )
    server = package.Server("trial", instructions=mirror.INSTRUCTIONS)
    mirror.register(server, handlers())
    async with testing.connected(server) as pair:
        return await _lists_of(pair.client, Target("the mirror", ""), package)


def list_differences(snapshot: Snapshot, listed: Mapping[str, Any]) -> Iterator[str]:
    """The differences of lists as a mirror serves them from those of the server, in words."""
    served, lists = listed, snapshot.lists.document()
    if served.get("instructions", "") != lists.get("instructions", ""):
        yield "the mirror has other instructions"
    alike: dict[str, list[str]] = {}
    for kind, key in KINDS.items():
        theirs = {entry[key]: entry for entry in served.get(kind, ())}
        ours = {entry[key]: entry for entry in lists[kind]}
        for name, entry in ours.items():
            if name in theirs:
                for text in _entry_differences(entry, theirs[name]):
                    alike.setdefault(f"listed {text}", []).append(
                        f"{WORDS[kind]} {safe_text(name)}"
                    )
        if [name for name in ours if name in theirs] != [*theirs]:
            yield f"{kind} are listed in another order"
    for text, labels in alike.items():
        more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
        yield f"{', '.join(labels[:_SHOWN])}{more}: {text}"


def _entry_differences(ours: Any, theirs: Any) -> Iterator[str]:
    for pointer, _ in difference(ours, theirs):
        place = safe_text(pointer, _LONGEST)
        if not _has(theirs, pointer):
            yield f"without {place}"
        elif not _has(ours, pointer):
            yield f"with {place}, which the server leaves out"
        else:
            yield f"with another {place}"


def _has(document: Any, pointer: str) -> bool:
    try:
        resolve(document, pointer)
    except LookupError:
        return False
    return True


def _registers(
    decorator: Callable[..., Any],
    package: Any,
    name: str,
    parameters: Any,
    **options: Any,
) -> bool:
    """Whether a function with some parameters can be registered; with any if `None`."""

    async def handler(**members: Any) -> None: ...

    kind = Parameter.KEYWORD_ONLY
    if parameters is None:
        signature = Signature([Parameter("members", Parameter.VAR_KEYWORD)])
    elif all(map(is_parameter, parameters)):
        signature = Signature([Parameter(each, kind) for each in parameters])
    else:
        return False
    handler.__dict__["__signature__"] = signature
    try:
        decorator(name, **options)(handler)
    except (TypeError, ValueError, package.McpError):
        return False
    return True
