"""A new process after each change of a file, in the command `serve`."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import MissingExtraError
from .serve_command import SERVE_BY, AddOption, ServeBy, fail
from .serve_http import serve_here

_END_SECONDS = 10.0  # for the process of --reload to end, after the one that started it


def add_options(add: AddOption) -> None:
    """Add the option `--reload`."""
    add(
        "--reload",
        dest=SERVE_BY,
        action=ServeBy,
        nargs=0,
        const=_serve,
        help="start the process anew when a Python file below the current directory changes",
    )


def _serve(target: str, options: dict[str, Any]) -> None:
    """Serve in a child process, which is replaced after each change of a file.

    Clients keep their connection to the address; those with a session open another one, as after
    every restart of a server.
    """
    from ..asgi.uvicorn_adapter import address_of

    if importlib.util.find_spec("watchfiles") is None:
        fail(str(MissingExtraError("--reload", "watchfiles")))
    try:
        _, port = address_of("serve", options.get("http"), None, None)
    except ValueError as error:
        fail(str(error))
    if port == 0:
        fail("--reload: expected a port other than 0, so that clients find the new process")
    from .reloading import serve_again  # few serve so

    try:
        serve_again(partial(_serve_child, target, options), Path.cwd())
    except OSError as error:
        fail(f"--reload: can't watch the directories below {Path.cwd()}: {error}")


def _serve_child(target: str, options: dict[str, Any]) -> None:
    from ..asgi.child_process import end_with_parent

    end_with_parent(_END_SECONDS)
    serve_here(target, options)
