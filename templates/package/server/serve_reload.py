"""A new process after each change of a file, in the command `serve`."""

from __future__ import annotations

import argparse
import importlib.util
from functools import partial
from pathlib import Path

from ..errors import MissingExtraError
from .serve_command import AddArgument, fail
from .serve_http import HttpTransport

_END_SECONDS = 10.0  # for the process of --reload to end, after the one that started it


class ReloadOption:
    """The option `--reload`; see `HttpProcesses`."""

    name = "--reload"

    def add_arguments(self, add: AddArgument) -> None:
        """Add the option."""
        add(
            self.name,
            action="store_true",
            help="start the process anew when a Python file below the current directory changes",
        )

    def is_chosen(self, chosen: argparse.Namespace) -> bool:
        """Whether the option is given."""
        return bool(chosen.reload)

    def serve(self, chosen: argparse.Namespace, http: HttpTransport) -> None:
        """Serve in a child process, which is replaced after each change of a file.

        Clients keep their connection to the address; those with a session open another one, as
        after every restart of a server.
        """
        from .asgi.listening import parse_address

        if importlib.util.find_spec("watchfiles") is None:
            fail(str(MissingExtraError("--reload", "watchfiles")))
        try:
            _, port = parse_address(chosen.http)
        except ValueError as error:
            fail(str(error))
        if port == 0:
            fail("--reload: expected a port other than 0, so that clients find the new process")
        from .reloading import serve_again  # few serve so

        try:
            serve_again(partial(_serve_here, http, chosen), Path.cwd())
        except OSError as error:
            fail(f"--reload: can't watch the directories below {Path.cwd()}: {error}")


def _serve_here(http: HttpTransport, chosen: argparse.Namespace) -> None:
    from .asgi.uvicorn_adapter import end_with_parent

    end_with_parent(_END_SECONDS)
    http.serve_here(chosen)
