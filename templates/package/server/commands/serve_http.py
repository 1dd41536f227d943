"""HTTP in the command `serve`."""

from __future__ import annotations

import argparse
from typing import Any

from ...errors import ListenFailedError, MissingExtraError
from ...framing.sse import STREAM_PATH
from .serve_command import AddOption, Serve, fail, load

_OF_STDIO = frozenset({"backend"})

SERVE_BY = "serve_by"
"""Name in a parsed command line of a function that serves in the place of the usual one."""


class ServeBy(argparse.Action):
    """Stores a function that serves, of which there is one at most."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if hasattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "excludes the other option that starts processes")
        setattr(namespace, self.dest, self.const or values)


def add_options(add: AddOption) -> None:
    """Add the options that every package with HTTP has."""
    add(
        "--http",
        metavar="HOST:PORT",
        help="serve over HTTP at this address, such as 127.0.0.1:8000; port 0 is any free one",
    )
    add("--path", metavar="PATH", help="path of the HTTP endpoint (/mcp by default)")
    add(
        "--hosts",
        metavar="NAME[,NAME...]",
        type=_host_names,
        help="names and addresses that clients reach the server by, such as mcp.example.com; by "
        "default the addresses of this machine",
    )
    add(
        "--stateless",
        action="store_true",
        help="serve each request by itself, without sessions, so that any process can serve it",
    )


def add_sse_option(add: AddOption) -> None:
    """Add the option `--sse`."""
    add(
        "--sse",
        dest="sse_path",
        action="store_const",
        const=STREAM_PATH,
        help=f"serve the older transport HTTP+SSE too, at {STREAM_PATH} and /messages",
    )


def serve_either(over_stdio: Serve, target: str, options: dict[str, Any]) -> None:
    """Serve over HTTP if there is an address, else over standard streams."""
    if "http" not in options:
        if options.keys() - _OF_STDIO:
            fail(
                "options of HTTP need --http: over standard streams a client starts the server for "
                "itself; serve with --http 127.0.0.1:8000, and connect to http://127.0.0.1:8000/mcp"
            )
        over_stdio(target, options)
        return
    backend = options.pop("backend", "asyncio")
    if backend != "asyncio":
        fail(f"--backend: uvicorn runs on asyncio, not on {backend}")
    serve(target, options)


def serve(target: str, options: dict[str, Any]) -> None:
    """Serve over HTTP, by this process or as an option says."""
    options.pop(SERVE_BY, serve_here)(target, options)


def serve_here(target: str, options: dict[str, Any]) -> None:
    """Serve over HTTP by this process."""
    from ..asgi.uvicorn_adapter import address_of  # standard streams need none of it

    server = load(target)
    try:
        address_of("serve", options.get("http"), None, None)
        server.asgi(**{name: value for name, value in options.items() if name != "http"})
    except ValueError as error:
        fail(str(error))
    try:
        server.run("http", **options)
    except (MissingExtraError, ListenFailedError) as error:
        fail(str(error))


def _host_names(text: str) -> list[str]:
    """The value of `--hosts`."""
    return [name.strip() for name in text.split(",")]
