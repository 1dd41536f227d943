"""State that processes share, on the command line: `serve --shared`, and the command `announce`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from ...errors import MissingExtraError
from ...runtime.command_table import DONE
from ..chosen import Server
from .serve_command import AddOption, fail, load


def add_options(add: AddOption) -> None:
    """Add the option `--shared` of `serve`."""
    _add_shared(add, "share sessions and changes with other processes, by the engine at this URL")


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command `announce` to a parser.

    Args:
        add: The `add_parser` method of the subparsers.
    """
    announce = add(
        "announce",
        help="announce changes to the clients of all processes that serve a server",
        description="Announce changes to the clients of all processes that share their state.",
    )
    announce.add_argument("target", metavar="MODULE[:NAME]", help="the server, as for serve")
    announce.add_argument(
        "changes",
        metavar="CHANGE",
        nargs="+",
        help="a list that has changed (tools, prompts, resources), or the URI of a resource",
    )
    _add_shared(announce.add_argument, "the engine that the processes share", required=True)
    announce.set_defaults(main=_announce)


def _add_shared(add: AddOption, text: str, *, required: bool = False) -> None:
    add(
        "--shared",
        metavar="URL",
        required=required,
        help=f"{text}, such as redis://127.0.0.1:6379/0",
    )


def _announce(chosen: argparse.Namespace) -> int:
    """Announce the changes that the command line names; see `fail`."""
    import anyio  # `serve` loads it later

    from ..shared.bus import SharedStateError
    from ..shared.worker import LISTS

    server = load(chosen.target)
    for change in chosen.changes:
        if change not in LISTS and ":" not in change:
            fail(f"expected {', '.join(LISTS)} or the URI of a resource, got {change!r}")
    try:
        anyio.run(_announce_changes, server, chosen.shared, chosen.changes)
    except (MissingExtraError, SharedStateError, ValueError) as error:
        fail(str(error))
    return DONE


async def _announce_changes(server: Server, shared: str, changes: Sequence[str]) -> None:
    from ..shared.worker import LISTS

    async with server.announcer(shared) as announcer:
        for change in changes:
            if change in LISTS:
                await announcer.list_changed(change)
            else:
                await announcer.resource_updated(change)
