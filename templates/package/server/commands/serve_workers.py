"""Several processes at one port, in the command `serve`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from ...errors import ListenFailedError, MissingExtraError, WorkerFailedError
from ..chosen import Server
from .serve_command import AddOption, fail, load
from .serve_http import SERVE_BY, ServeBy, serve_here


def add_options(add: AddOption) -> None:
    """Add the option `--workers`."""
    add(
        "--workers",
        dest=SERVE_BY,
        action=ServeBy,
        type=_workers,
        metavar="N",
        help="serve by N processes at one port, none of which keeps sessions of its own",
    )


def _workers(text: str) -> Any:
    """The function that serves, for a value of `--workers`."""
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return serve_here if int(text) == 1 else partial(_serve, int(text))


def _serve(workers: int, target: str, options: dict[str, Any]) -> None:
    """Serve by processes that load the target each."""
    try:
        Server.run_workers(partial(load, target), workers, **options)
    except (MissingExtraError, ListenFailedError, WorkerFailedError, ValueError) as error:
        fail(str(error))
