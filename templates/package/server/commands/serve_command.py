"""The command `python -m <package> serve module:server`.

Transports and features add their options; the page `__main__` lists them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeAlias

from ...runtime.command_table import CANNOT, DONE
from ..chosen import Server
from ..toolkit.server import RunWhileImportedError, importing

AddOption: TypeAlias = Callable[..., object]
"""Adds an option to a parser, with the arguments of `ArgumentParser.add_argument`."""

Serve: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Serves a target with arguments of `Server.run`."""

_DEFAULT_NAMES = ("server", "app", "mcp")
"""Names under which a server is searched in a module, in order, if no name is given."""


def add_command(
    add: Callable[..., argparse.ArgumentParser],
    *,
    serve: Serve,
    options: Sequence[Callable[[AddOption], None]],
) -> None:
    """Add the command to a parser.

    Args:
        add: The `add_parser` method of the subparsers.
        serve: Serves over the transports of the package.
        options: Add options, whose `dest` is an argument of `Server.run`, or `serve_http.SERVE_BY`.
    """
    parser = add(
        "serve",
        help="serve over standard input and output, or over HTTP, as the package can",
        description="Serve. The current directory is searched for the module first.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "target",
        metavar="MODULE[:NAME]",
        help="module and the server in it, or a function that returns one, such as weather:server; "
        f"without a name the first of {', '.join(_DEFAULT_NAMES)}, or the only server",
    )
    for add_options in options:
        add_options(parser.add_argument)
    parser.set_defaults(main=partial(_serve, serve))


def _serve(serve: Serve, chosen: argparse.Namespace) -> int:
    """Serve the target that the command line names; see `fail`."""
    others = ("command", "main", "target")
    given = {name: value for name, value in vars(chosen).items() if name not in others}
    serve(chosen.target, given)
    return DONE


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
    raise SystemExit(CANNOT)


def add_stdio_options(add: AddOption) -> None:
    """Add the option for the event loop."""
    add("--backend", choices=("asyncio", "trio"), help="event loop to run on (asyncio by default)")


def serve_stdio(target: str, options: dict[str, Any]) -> None:
    """Serve one client at standard input and output."""
    load(target).run(**options)
