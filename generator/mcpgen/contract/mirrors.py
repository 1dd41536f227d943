"""Compares a mirrored server with what a project recorded of it."""

from __future__ import annotations

from pathlib import Path

from mcpgen.contract import command
from mcpgen.contract.compare import Change, compare
from mcpgen.contract.document import Contract
from mcpgen.errors import MirrorError, ServerError
from mcpgen.package.settings import Settings
from mcpgen.project import live_server, mirror
from mcpgen.project.live_server import Surface
from mcpgen.project.server_lists import ServerLists


def changes_of(settings: Settings) -> list[Change]:
    """The changes of the server that a project mirrors; none if it was mirrored from a file.

    Raises:
        MirrorError: The record of the project is malformed.
        ServerError: The server does not start or answer.
    """
    if settings.mirror is None or not settings.mirror.server:
        return []
    recorded = mirror.read(settings.mirror_directory)
    directory: Path = settings.root / settings.mirror.directory
    server = live_server.target(settings.mirror.server, directory)
    try:
        with live_server.import_package(command.peer_files()) as package:
            lists = live_server.lists(package, server)
    except MirrorError as error:
        raise ServerError(f"{error}; --offline leaves the server out") from error
    return compare(_contract(recorded.lists), _contract(lists))


def _contract(lists: ServerLists) -> Contract:
    """A contract of lists alone, whose revision is not known."""
    return Contract("", (Surface("", "", {}, lists),))
