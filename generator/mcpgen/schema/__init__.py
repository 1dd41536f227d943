"""Schemas of the protocol: loading, checking, correcting, comparing.

`load` reads a revision that mcpgen has; `read_file` and `load_file` read any schema file of the
protocol's shape, in JSON or in TypeScript. `disagreements` compares the two. `digest` is the
fingerprint that tells whether two schemas have the same structure.
"""

from __future__ import annotations

from mcpgen.schema.disagreements import Disagreements, disagreements, errata_text
from mcpgen.schema.errata import Erratum, read_errata
from mcpgen.schema.load import (
    Note,
    Schema,
    SchemaFile,
    add_definitions,
    correct,
    load,
    load_file,
    read_extension,
    read_file,
)
from mcpgen.schema.nearest import Nearest, known_document
from mcpgen.schema.revisions import RevisionEntry, Verdict, entry, latest, revisions, verify
from mcpgen.schema.structure import canonical, difference, digest, structure

__all__ = [
    "Disagreements",
    "Erratum",
    "Nearest",
    "Note",
    "RevisionEntry",
    "Schema",
    "SchemaFile",
    "Verdict",
    "add_definitions",
    "canonical",
    "correct",
    "difference",
    "digest",
    "disagreements",
    "entry",
    "errata_text",
    "known_document",
    "latest",
    "load",
    "load_file",
    "read_errata",
    "read_extension",
    "read_file",
    "revisions",
    "structure",
    "verify",
]
