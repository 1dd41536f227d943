"""HTTP in the command `serve`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..errors import ListenFailedError, MissingExtraError
from .serve_command import AddArgument, fail, load

PATH = "/mcp"
"""The default path of the endpoint."""


class HttpOption(Protocol):
    """An option of the command that sets one of HTTP."""

    def add_arguments(self, add: AddArgument) -> None:
        """Add the option."""
        ...

    def options(self, chosen: argparse.Namespace) -> Mapping[str, Any]:
        """The options of `Server.run` for a command line."""
        ...


class HttpProcesses(Protocol):
    """An option of the command that has other processes serve.

    Attributes:
        name: The option.
    """

    name: str

    def add_arguments(self, add: AddArgument) -> None:
        """Add the option."""
        ...

    def is_chosen(self, chosen: argparse.Namespace) -> bool:
        """Whether the command line asks for it."""
        ...

    def serve(self, chosen: argparse.Namespace, http: HttpTransport) -> None:
        """Serve by other processes."""
        ...


class HttpTransport:
    """Serves clients over HTTP; see `ServedTransport`.

    Args:
        options: Options of features.
        processes: Options that have other processes serve; one of them at a time.
    """

    name = "HTTP"
    without = (
        "needs --http: over standard streams a client starts the server for itself; serve with "
        "--http 127.0.0.1:8000, and connect to http://127.0.0.1:8000/mcp"
    )

    def __init__(
        self, options: Sequence[HttpOption] = (), processes: Sequence[HttpProcesses] = ()
    ) -> None:
        self._options = options
        self._processes = processes

    def add_arguments(self, add: AddArgument, *, is_only: bool) -> None:
        """Add the options."""
        add(
            "--http",
            metavar="HOST:PORT",
            required=is_only,
            help="serve over HTTP at this address, such as 127.0.0.1:8000; port 0 is any free one",
        )
        add("--path", metavar="PATH", help=f"path of the HTTP endpoint ({PATH} by default)")
        add(
            "--hosts",
            metavar="NAME[,NAME...]",
            type=_host_names,
            help="names and addresses that clients reach the server by, such as mcp.example.com; "
            "by default the addresses of this machine",
        )
        add(
            "--stateless",
            action="store_true",
            help="serve each request by itself, without sessions, so that any process can serve it",
        )
        for option in self._options:
            option.add_arguments(add)
        for processes in self._processes:
            processes.add_arguments(add)

    def is_chosen(self, chosen: argparse.Namespace) -> bool:
        """Whether there is an address."""
        return chosen.http is not None

    def serve(self, chosen: argparse.Namespace) -> None:
        """Serve until a signal."""
        processes = [each for each in self._processes if each.is_chosen(chosen)]
        if len(processes) > 1:
            fail(f"{' and '.join(each.name for each in processes)} exclude each other")
        if processes:
            processes[0].serve(chosen, self)
        else:
            self.serve_here(chosen)

    def serve_here(self, chosen: argparse.Namespace) -> None:
        """Serve by this process."""
        from .asgi.listening import parse_address  # standard streams need none of it

        server, options = load(chosen.target), self.options(chosen)
        path = chosen.path or PATH
        try:
            parse_address(chosen.http)
            server.asgi(path, **options)
        except ValueError as error:
            fail(str(error))
        try:
            server.run(http=chosen.http, path=path, **options)
        except (MissingExtraError, ListenFailedError) as error:
            fail(str(error))

    def options(self, chosen: argparse.Namespace) -> dict[str, Any]:
        """The options of `Server.run` for a command line, besides address and path."""
        options: dict[str, Any] = {"hosts": chosen.hosts}
        if chosen.stateless:
            options["stateless"] = True
        for each in self._options:
            options |= each.options(chosen)
        return options


def _host_names(text: str) -> list[str]:
    """The value of `--hosts`."""
    return [name.strip() for name in text.split(",")]
