"""Comparing our schemas with a checkout of the specification repository."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from mcpgen.errors import SchemaError, UsageError, shown
from mcpgen.input_files import read_json
from mcpgen.json_types import is_object
from mcpgen.schema.revisions import RevisionEntry
from mcpgen.schema.structure import difference, structure


@dataclass(frozen=True)
class Verdict:
    """How one revision compares with its official file.

    Attributes:
        revision: The revision.
        source: The official file.
        same_file: Whether that file is, byte for byte, the one ours was taken from.
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
        raise SchemaError(str(path), "", "a schema that is an object", shown(document))
    return structure(document)
