"""The revisions that mcpgen has: their order, status and fingerprints (`schema/revisions.toml`).

A user's folder of revisions has such a list too. Its rows go before those of mcpgen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from mcpgen import paths
from mcpgen.errors import RevisionsError, UsageError
from mcpgen.toml_records import convert, read_toml

Status = Literal["final", "draft"]


@dataclass(frozen=True)
class RevisionEntry:
    """One row of the list of revisions.

    Attributes:
        name: The revision, such as `2025-06-18`.
        status: Whether the revision may still change.
        official: SHA-256 of the official `schema.json`.
        digest: Digest of its structure.
    """

    name: str
    status: Status
    official: str
    digest: str

    @property
    def folder(self) -> Path:
        """The directory with the data of this revision."""
        return paths.revision_dir(self.name)


@dataclass(frozen=True)
class _Table:
    revision: tuple[RevisionEntry, ...]


LIST = "revisions.toml"
"""The name of the list within a folder of revisions."""


def revisions() -> tuple[RevisionEntry, ...]:
    """All revisions, oldest first: those of mcpgen, and those of the user.

    Raises:
        UsageError: The user's folder has no list of revisions.
        RevisionsError: A list is malformed.
    """
    own = paths.own_schema_dir()
    rows = {row.name: row for row in _rows(paths.schema_dir())}
    if own is not None:
        rows |= {row.name: row for row in _rows(own)}
    return tuple(rows[name] for name in sorted(rows))


@cache
def _rows(folder: Path) -> tuple[RevisionEntry, ...]:
    if folder != paths.schema_dir() and not (folder / LIST).is_file():
        raise UsageError(
            f"{folder}: expected a folder with {LIST}, as mcpgen schema add writes it, got none"
        )
    return read_revisions(folder / LIST)


def read_revisions(path: Path) -> tuple[RevisionEntry, ...]:
    """The rows of a list of revisions, in the order of the file.

    Raises:
        RevisionsError: A row has unknown, missing or mistyped keys, or is out of order.
    """
    table, place = read_toml(path, RevisionsError)
    rows = convert(table, _Table, place).revision
    for index, (earlier, later) in enumerate(pairwise(rows), start=1):
        if earlier.name >= later.name:
            at = place.at("revision").at(index).at("name")
            raise at.error(f"a revision after {earlier.name}", later.name)
    return rows


def entry(name: str) -> RevisionEntry:
    """The row of one revision.

    Raises:
        UsageError: There is no such revision.
    """
    for row in revisions():
        if row.name == name:
            return row
    known = ", ".join(row.name for row in revisions())
    raise UsageError(f"unknown revision {name!r}: expected one of {known}, latest or all")


def latest() -> RevisionEntry:
    """The newest revision that is final."""
    return [row for row in revisions() if row.status == "final"][-1]
