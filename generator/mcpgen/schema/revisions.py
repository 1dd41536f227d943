"""The revisions that mcpgen has: their order, status and fingerprints (`schema/revisions.toml`).

A user's folder of revisions has its own list, whose rows take precedence over mcpgen's. `verify`
compares a revision with its official file in a checkout of the specification repository.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from mcpgen import paths
from mcpgen.errors import RevisionsError, SchemaError, UsageError, format_value
from mcpgen.input_files import read_json
from mcpgen.json_types import is_object
from mcpgen.schema.structure import difference, structure
from mcpgen.toml_records import convert, read_toml

Status = Literal["final", "draft"]

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,39}", re.ASCII)
"""Matches a name that is neither a path nor hidden, since it becomes the name of a folder."""


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
        rows |= {row.name: row for row in _rows(own.absolute())}
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
        RevisionsError: A row has unknown, missing or mistyped keys or a path as name, or is out of
            order.
    """
    table, place = read_toml(path, RevisionsError)
    rows = convert(table, _Table, place).revision
    for index, row in enumerate(rows):
        if _NAME.fullmatch(row.name) is None:
            at = place.at("revision").at(index).at("name")
            raise at.error("the name of a folder beside the list", row.name)
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


@dataclass(frozen=True)
class Verdict:
    """The result of comparing a revision with its official file.

    Attributes:
        revision: The revision.
        source: The official file.
        same_file: Whether the official file is byte for byte the source of ours.
        differences: Pointer and text of every difference in structure.
    """

    revision: str
    source: str
    same_file: bool
    differences: tuple[tuple[str, str], ...]


def verify(row: RevisionEntry, checkout: Path) -> Verdict:
    """Compare our schema of a revision with `checkout/schema/<revision>/schema.json`.

    Raises:
        UsageError: The checkout does not have that file.
        SchemaError: One of the files is not a JSON object.
    """
    official = checkout / "schema" / row.name / "schema.json"
    if not official.is_file():
        raise UsageError(f"{official}: expected the official schema of {row.name}, got no file")
    theirs = _structure(official)
    return Verdict(
        revision=row.name,
        source=str(official),
        same_file=hashlib.sha256(official.read_bytes()).hexdigest() == row.official,
        differences=tuple(difference(_structure(row.folder / "schema.json"), theirs)),
    )


def _structure(path: Path) -> object:
    document = read_json(path, SchemaError)
    if not is_object(document):
        raise SchemaError(str(path), "", "a schema that is an object", format_value(document))
    return structure(document)
