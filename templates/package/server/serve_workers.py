"""Several processes at one port, in the command `serve`."""

from __future__ import annotations

import argparse
import sys
import traceback
from functools import partial

from ..errors import ListenFailedError, MissingExtraError, WorkerFailedError
from .serve_command import AddArgument, fail, load
from .serve_http import PATH, HttpTransport
from .toolkit.server import Server


class WorkersOption:
    """The option `--workers`; see `HttpProcesses`."""

    name = "--workers"

    def add_arguments(self, add: AddArgument) -> None:
        """Add the option."""
        add(
            self.name,
            type=_worker_count,
            metavar="N",
            help="serve by N processes at one port, none of which keeps sessions of its own",
        )

    def is_chosen(self, chosen: argparse.Namespace) -> bool:
        """Whether there is more than one."""
        return chosen.workers is not None and chosen.workers > 1

    def serve(self, chosen: argparse.Namespace, http: HttpTransport) -> None:
        """Serve by processes that load the target each."""
        make, options = partial(_load_or_exit, chosen.target), http.options(chosen)
        try:
            Server.run_workers(
                make, chosen.workers, http=chosen.http, path=chosen.path or PATH, **options
            )
        except (MissingExtraError, ListenFailedError, ValueError) as error:
            fail(str(error))
        except WorkerFailedError as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(1) from None


def _worker_count(text: str) -> int:
    """The value of `--workers`."""
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def _load_or_exit(target: str) -> Server:
    """The server of a target; exit with code 1, not 2, if its module raises an error."""
    try:
        return load(target)
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None
