"""The command `python -m <package> serve module:server`.

Each transport of the package adds its options; the page `__main__` lists the transports.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, Protocol, TypeAlias

from .toolkit.hosting import RunWhileImportedError, importing
from .toolkit.server import Server

AddArgument: TypeAlias = Callable[..., object]
"""Adds an option to a parser, with the arguments of `ArgumentParser.add_argument`."""

_DEFAULT_NAMES = ("server", "app", "mcp")
"""Names under which a server is searched in a module, in order, if no name is given."""


class ServedTransport(Protocol):
    """A transport that the command serves over.

    Attributes:
        name: Its name in texts.
        without: Why its options need it; follows their names.
    """

    name: str
    without: str

    def add_arguments(self, add: AddArgument, *, is_only: bool) -> None:
        """Add its options; `is_only` if the package has no other transport."""
        ...

    def is_chosen(self, chosen: argparse.Namespace) -> bool:
        """Whether the command line asks for it; otherwise, the first transport is the default."""
        ...

    def serve(self, chosen: argparse.Namespace) -> None:
        """Serve as the command line says."""
        ...


def add_command(
    add: Callable[..., argparse.ArgumentParser], *, transports: Sequence[ServedTransport]
) -> None:
    """Add the command to a parser.

    Args:
        add: The `add_parser` method of the subparsers.
        transports: The transports, the default first.
    """
    text = f"serve over {' or '.join(each.name for each in transports)}"
    parser = add(
        "serve",
        help=text,
        description=f"S{text[1:]}. The current directory is searched for the module first.",
    )
    parser.add_argument(
        "target",
        metavar="MODULE[:NAME]",
        help="module and the server in it, or a function that returns one, such as weather:server; "
        f"without a name the first of {', '.join(_DEFAULT_NAMES)}, or the only server",
    )
    rows: list[tuple[ServedTransport, dict[str, tuple[str, Any]]]] = []
    for transport in transports:
        own: dict[str, tuple[str, Any]] = {}
        rows.append((transport, own))
        transport.add_arguments(partial(_add, parser, own), is_only=len(transports) == 1)
    parser.set_defaults(main=partial(_serve, rows))


def _add(
    parser: argparse.ArgumentParser, own: dict[str, tuple[str, Any]], option: str, **settings: Any
) -> None:
    action = parser.add_argument(option, **settings)
    own[action.dest] = (option, action.default)


def _serve(
    rows: Sequence[tuple[ServedTransport, Mapping[str, tuple[str, Any]]]],
    chosen: argparse.Namespace,
) -> int:
    """Serve the server that the command line names.

    Args:
        rows: The transports, each with its options and their defaults by their attribute.
        chosen: The parsed command line.

    Raises:
        SystemExit: With code 2 if there is no server, or it can't be served; standard error shows
            the reason.
    """
    transports = [transport for transport, _ in rows]
    served = next((each for each in transports if each.is_chosen(chosen)), transports[0])
    for transport, own in rows:
        given = [name for key, (name, default) in own.items() if getattr(chosen, key) != default]
        if transport is not served and given:
            fail(f"{', '.join(given)}: {transport.without}")
    served.serve(chosen)
    return 0


def load(target: str) -> Server:
    """The server that a target such as `package.module:name` names.

    A function is called and returns the server. Output of the module goes to standard error.

    Raises:
        SystemExit: No such module, no such name, no server, or the module runs the server itself.
    """
    module_name, _, name = target.partition(":")
    is_path = module_name.endswith(".py") or os.sep in module_name
    if is_path or not all(part.isidentifier() for part in module_name.split(".")):
        suggestion = _module_name(module_name)
        hint = f"; did you mean {suggestion}:{name or _DEFAULT_NAMES[0]}?" if is_path else ""
        fail(f"{target!r}: expected MODULE:NAME, such as weather:server{hint}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    running = importing.set(True)
    try:
        with _redirect_to_stderr():
            module = importlib.import_module(module_name)
            server = _find_named(module, name) if name else _find_server(module)
    except RunWhileImportedError as error:
        fail(f"{target!r}: {module_name} runs its server while it is imported; {error}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        fail(f"{target!r}: there is no module {error.name!r} in {here} or on sys.path")
    finally:
        importing.reset(running)
    if not isinstance(server, Server):
        servers = _servers(module)
        known = f"; it has {', '.join(servers)}" if servers else ""
        what = "nothing" if server is None else f"a {type(server).__name__}"
        shown = repr(name) if name else " or ".join(map(repr, _DEFAULT_NAMES))
        fail(f"{target!r}: expected a Server named {shown} in {module_name}, got {what}{known}")
    return server


def _find_named(module: ModuleType, name: str) -> object:
    """The object with a name in a module; a function is called, and its result returned."""
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    if not isinstance(value, Server) and callable(value):
        try:
            inspect.signature(value).bind()
        except TypeError as error:
            fail(f"{module.__name__}:{name}: expected a function without arguments: {error}")
        return value()
    return value


def _find_server(module: ModuleType) -> object:
    """The only server of a module, or the one with a default name; `None` if ambiguous."""
    servers = _servers(module)
    named = [servers[name] for name in _DEFAULT_NAMES if name in servers]
    single = [*{id(server): server for server in servers.values()}.values()]
    return named[0] if named else single[0] if len(single) == 1 else None


def _servers(module: ModuleType) -> dict[str, Server]:
    """The servers of a module, by name."""
    return {name: value for name, value in vars(module).items() if isinstance(value, Server)}


@contextlib.contextmanager
def _redirect_to_stderr() -> Generator[None]:
    """Redirect standard output, which the protocol uses, to standard error; children's too."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


def _module_name(path: str) -> str:
    """The likely name of the module in a file."""
    return path.removesuffix(".py").strip(f".{os.sep}").replace(os.sep, ".")


def fail(text: str) -> NoReturn:
    """Exit with code 2, and the reason on standard error."""
    print(f"error: {text}", file=sys.stderr)
    raise SystemExit(2)
