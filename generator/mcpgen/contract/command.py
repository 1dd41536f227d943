"""Writes contracts of running servers, and compares them."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mcpgen.contract import document
from mcpgen.contract.compare import Change, compare
from mcpgen.contract.document import Contract
from mcpgen.contract.rules import CATEGORIES, Category, Exemption, read_exemptions
from mcpgen.errors import MirrorError, ServerError, UsageError, safe_text
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import package_cache
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.settings import Settings
from mcpgen.project import live_server, mirror
from mcpgen.project.live_server import Surface
from mcpgen.project.server_lists import KINDS, WORDS, ServerLists


@dataclass(frozen=True)
class Selection:
    """The items of a contract that count.

    Attributes:
        include: Patterns of names; everything if there are none.
        exclude: Patterns of names.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def has(self, kind: str, name: str) -> bool:
        """Whether an item counts; `tool add` and `add` stand for the tool `add`."""
        words = (name, f"{WORDS[kind]} {name}")

        def matched(patterns: Sequence[str]) -> bool:
            return any(fnmatchcase(word, pattern) for word in words for pattern in patterns)

        return (not self.include or matched(self.include)) and not matched(self.exclude)

    def apply(self, contract: Contract) -> Contract:
        """A contract with the items that count."""
        return replace(contract, surfaces=tuple(map(self._surface, contract.surfaces)))

    def _surface(self, surface: Surface) -> Surface:
        entries = {
            kind: tuple(
                entry for entry in surface.lists.entries[kind] if self.has(kind, entry[key])
            )
            for kind, key in KINDS.items()
        }
        lists = ServerLists(entries, surface.lists.notes, surface.lists.instructions)
        return replace(surface, lists=lists)


def of_server(words: str, directory: Path, revisions: Sequence[str] = ()) -> Contract:
    """The contract of a running server, in each revision that it speaks.

    Args:
        words: The server, as a user names it.
        directory: The working directory of a command.
        revisions: The revisions to ask for; all if there are none.

    Raises:
        UsageError: The words name no server, or a revision is unknown.
        MirrorError: The server does not answer as it should.
    """
    server = live_server.target(words, directory)
    with live_server.import_package(peer_files()) as package:
        known_revisions(package, revisions)
        return document.contract_of(live_server.surfaces(package, server, revisions), server)


def of_newest(words: str, directory: Path) -> Contract:
    """The contract of a running server in the newest revision that it speaks, asked once.

    Args:
        words: The server, as a user names it.
        directory: The working directory of a command.

    Raises:
        UsageError: The words name no server.
        MirrorError: The server does not answer as it should.
    """
    server = live_server.target(words, directory)
    with live_server.import_package(peer_files()) as package:
        return document.contract_of([live_server.newest_surface(package, server)], server)


async def of_memory(package: Any, server: object) -> Contract:
    """The contract of a server in memory, in each revision that it and its package speak.

    Args:
        package: The generated package, whose client asks.
        server: The server.

    Raises:
        MirrorError: The server does not answer as it should.
    """
    address = live_server.MemoryTarget(server)
    return document.contract_of(await live_server.fetch_surfaces(package, address), address)


async def text_of_memory(package: Any, server: object) -> str:
    """The file of the contract of a server in memory; see `of_memory`.

    Raises:
        MirrorError: As for `of_memory`.
    """
    return document.text_of(await of_memory(package, server))


def changes_of_mirror(settings: Settings) -> list[Change]:
    """The changes of the server that a project mirrors, since the project recorded its lists.

    Args:
        settings: The settings of a project that mirrors a running server.

    Raises:
        MirrorError: The record of the project is malformed.
        ServerError: The server does not start or answer.
    """
    assert settings.mirror is not None  # or there is no server
    recorded = mirror.read(settings.mirror_directory)
    directory = settings.root / settings.mirror.directory
    server = live_server.target(settings.mirror.server, directory)
    try:
        with live_server.import_package(peer_files()) as package:
            lists = live_server.lists(package, server)
    except MirrorError as error:
        raise ServerError(f"{error}; --offline leaves the server out") from error
    old, new = (Contract("", (Surface("", "", {}, each),)) for each in (recorded.lists, lists))
    return compare(old, new)


def known_revisions(package: Any, revisions: Sequence[str]) -> tuple[str, ...]:
    """Some revisions of a package, oldest first; all if none are named.

    Raises:
        UsageError: The package lacks one.
    """
    known = tuple(package.REVISIONS)
    unknown = [each for each in revisions if each not in known]
    if unknown:
        expected = ", ".join(known)
        raise UsageError(f"expected --revision of {expected}, got {safe_text(unknown[0])}")
    return tuple(each for each in known if not revisions or each in revisions)


def peer_files(*features: str) -> Mapping[str, str]:
    """The files of a package with a client of every revision, by which servers are asked.

    Args:
        features: Its features.
    """
    return package_files(("client",), ("none", *features))


def package_files(parts: Sequence[str], features: Sequence[str]) -> Mapping[str, str]:
    """The files of a package of every revision, with some parts and features."""
    every = schema_sources.by_name(("all",))
    request = BuildRequest("peer", every, selection=selection(parts, features=features))
    return package_cache.build_package(request, lambda note: None)


def of_reference(path: Path, reference: str) -> Contract | None:
    """The contract in a file of another commit; `None` if the commit lacks the file.

    Args:
        path: The file.
        reference: The commit, as git names it.

    Raises:
        UsageError: There is no such commit.
        ContractError: The file is no contract.
    """
    commit = f"{reference}^{{commit}}"
    _git(path.parent, reference, "rev-parse", "--verify", "--quiet", "--end-of-options", commit)
    place = f"{reference}:./{path.name}"
    listed = _git(path.parent, reference, "ls-tree", "--name-only", reference, f"./{path.name}")
    if not listed.strip():
        return None
    shown = _git(path.parent, reference, "show", "--end-of-options", place)
    return document.read_text(shown, f"{reference}:{path.name}")


def _git(folder: Path, reference: str, *words: str) -> str:
    """The output of git for `--against`.

    Raises:
        UsageError: It fails.
    """
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
    except OSError as error:
        raise UsageError(f"--against needs git: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        reason = safe_text(" ".join(error.stderr.split()), 300) or "git knows no such commit"
        raise UsageError(f"--against {safe_text(reference)}: {reason}") from error
    return done.stdout


@dataclass(frozen=True)
class Comparison:
    """The choices of a comparison.

    Attributes:
        selection: The items that count.
        categories: The categories of rules that count; all if there are none.
        allow: A file with changes that do not count; `None` for none.
    """

    selection: Selection = Selection()
    categories: tuple[Category, ...] = ()
    allow: Path | None = None

    def changes(self, old: Contract, new: Contract) -> list[Change]:
        """The changes from one contract to another; those that a user allows have the reason.

        Raises:
            SettingsError: The file of allowed changes is malformed.
            UsageError: It can't be read.
        """
        exemptions = read_exemptions(self.allow) if self.allow is not None else ()
        before, after = self.selection.apply(old), self.selection.apply(new)
        chosen = self.categories or tuple(CATEGORIES)
        return [
            change
            for change in changes(before, after, exemptions)
            if change.rule.category in chosen
        ]


def changes(old: Contract, new: Contract, exemptions: Sequence[Exemption] = ()) -> list[Change]:
    """The changes from one contract to another; those that a user allows have the reason."""
    today = datetime.datetime.now(datetime.UTC).date()
    return [
        replace(change, allowed=_reason(change, exemptions, today)) for change in compare(old, new)
    ]


def _reason(change: Change, exemptions: Sequence[Exemption], today: datetime.date) -> str:
    return next(
        (each.reason for each in exemptions if each.applies(change.rule.id, change.item, today)),
        "",
    )
