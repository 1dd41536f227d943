"""`python -m <package> serve module:server` serves over standard streams, or over HTTP."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .errors import ListenFailedError, MissingExtraError
from .toolkit.server import RunWhileImportedError, Server, importing

if TYPE_CHECKING:
    from .asgi.settings import HttpOptions

_PACKAGE = __package__ or ""
_DEFAULT_NAME = "server"
_SSE_PATH = "/sse"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line.

    Args:
        argv: Its words; those of the process by default.

    Raises:
        SystemExit: With code 2 if there is nothing to serve, or no way to; the text on standard
            error says why.
    """
    parser = _parser()
    chosen = parser.parse_args(argv)
    if chosen.http is None and (chosen.path is not None or chosen.sse):
        parser.error("--path and --sse are said of HTTP: expected --http too")
    server = load(chosen.target)
    if chosen.http is None:
        server.run(backend=chosen.backend)
    else:
        _serve_http(server, chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {_PACKAGE}", description="Serve MCP servers.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve",
        help="serve over standard input and output, or over HTTP",
        description="Serve over standard input and output, or over HTTP. The current directory is "
        "searched for the module first.",
    )
    serve.add_argument(
        "target",
        metavar="MODULE[:NAME]",
        help=f"module and the server in it ({_DEFAULT_NAME} by default), such as weather:server",
    )
    serve.add_argument(
        "--backend", choices=("asyncio", "trio"), default="asyncio", help="event loop to run on"
    )
    serve.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve over HTTP at this address, such as 127.0.0.1:8000; port 0 is any free one",
    )
    serve.add_argument("--path", metavar="PATH", help="path of the HTTP endpoint (/mcp by default)")
    serve.add_argument(
        "--sse",
        action="store_true",
        help=f"serve the older transport HTTP+SSE too, at {_SSE_PATH} and /messages",
    )
    return parser


def _serve_http(server: Server, chosen: argparse.Namespace) -> None:
    from .asgi.running import address  # standard streams need none of it

    path: str = chosen.path or "/mcp"
    options: HttpOptions = {"sse_path": _SSE_PATH} if chosen.sse else {}
    try:
        address(chosen.http)
        server.asgi(path, **options)
        if chosen.backend != "asyncio":
            raise ValueError(f"--backend: uvicorn runs on asyncio, not on {chosen.backend}")
    except ValueError as error:
        _fail(str(error))
    try:
        server.run(http=chosen.http, path=path, **options)
    except (MissingExtraError, ListenFailedError) as error:
        _fail(str(error))


def load(target: str) -> Server:
    """The server that a target such as `package.module:name` names.

    What the module prints while it is imported goes to standard error.

    Raises:
        SystemExit: No such module, no such name, no server, or one that the module runs itself.
    """
    module_name, _, name = target.partition(":")
    name = name or _DEFAULT_NAME
    is_path = module_name.endswith(".py") or os.sep in module_name
    if is_path or not all(part.isidentifier() for part in module_name.split(".")):
        hint = f"; did you mean {_dotted(module_name)}:{name}?" if is_path else ""
        _fail(f"{target!r}: expected MODULE:NAME, such as weather:server{hint}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    running = importing.set(True)
    try:
        with _prints_to_stderr():
            module = importlib.import_module(module_name)
    except RunWhileImportedError as error:
        _fail(f"{target!r}: {module_name} runs its server while it is imported; {error}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        _fail(f"{target!r}: there is no module {error.name!r} in {here} or on sys.path")
    finally:
        importing.reset(running)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Server):
        servers = [key for key, value in vars(module).items() if isinstance(value, Server)]
        known = f"; it has {', '.join(servers)}" if servers else ""
        what = "nothing" if found is None else f"a {type(found).__name__}"
        _fail(f"{target!r}: expected a Server named {name!r} in {module_name}, got {what}{known}")
    return found


@contextlib.contextmanager
def _prints_to_stderr() -> Generator[None]:
    """Keep standard output clean, of child processes too: it belongs to the protocol."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


def _dotted(path: str) -> str:
    """The module that a path to a file most likely means."""
    return path.removesuffix(".py").strip(f".{os.sep}").replace(os.sep, ".")


def _fail(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
