"""The sources of the schemas of revisions, and of the names of their inline objects.

Naming a source reads a file only where a schema file is named. The schemas are imported late: a
check of an unchanged package needs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mcpgen import paths
from mcpgen.json_types import Node
from mcpgen.paths import relative_path

if TYPE_CHECKING:
    from mcpgen.schema import RevisionEntry, Schema, SchemaFile


@dataclass(frozen=True)
class Source:
    """The files and settings that one revision of a package is made from.

    Attributes:
        revision: Its name.
        origin: Whether the schema is from a folder of revisions (mcpgen's or the user's), or a file
            that the user named.
        schema: The schema file.
        errata: The corrections; those that do not fit a user's file are left out.
        facts: The facts file.
        facts_of: The revision those facts were written for; `None` for a file that the user named.
        base: The revision whose facts a schema file starts from.
        schema_path: Path of a schema file that the user named, from the package's directory.
        facts_path: Path of a facts file that the user named, likewise.
        file: The content of a schema file that the user named.
    """

    revision: str
    origin: Literal["mcpgen", "file"]
    schema: Path
    errata: Path
    facts: Path
    facts_of: str | None
    base: str
    schema_path: str = ""
    facts_path: str = ""
    file: SchemaFile | None = field(default=None, repr=False, compare=False)

    def with_recorded_paths(self, directory: Path) -> Source:
        """Set the paths of the user's files to those that a package in a directory records."""
        if self.origin == "mcpgen":
            return self
        facts_path = "" if self.facts_of else relative_path(self.facts, directory)
        schema_path = relative_path(self.schema, directory)
        return replace(self, schema_path=schema_path, facts_path=facts_path)


def of_revision(name: str) -> Source:
    """The source of a revision that mcpgen has.

    Raises:
        UsageError: There is no such revision.
    """
    from mcpgen import schema  # a check of an unchanged package needs no schema

    return of_folder(schema.entry(name).name)


def of_folder(name: str) -> Source:
    """The source for the folder of a revision, which need not exist."""
    folder = paths.revision_dir(name)
    return Source(
        revision=name,
        origin="mcpgen",
        schema=folder / "schema.json",
        errata=folder / "errata.toml",
        facts=folder / "facts.toml",
        facts_of=name,
        base=name,
    )


UNNAMED = "draft"
"""The revision of a schema file that neither its name nor its structure shows."""


def of_file(path: Path, facts_path: Path | None = None) -> Source:
    """The source for a schema file: it starts from the facts of the nearest revision.

    Args:
        path: The schema file.
        facts_path: A file with the facts that differ; it may name another revision to start from.

    Raises:
        SchemaError: The schema file cannot be read as a JSON object or as TypeScript.
        FactsError: The facts file is malformed.
    """
    from mcpgen import schema
    from mcpgen.model import schema_facts  # as above

    file = schema.read_file(path)
    near = file.nearest.entry
    base = schema_facts.read(facts_path).based_on if facts_path else None
    from_row = schema.entry(base or near.name)
    return Source(
        revision=file.revision,
        origin="file",
        schema=path,
        errata=near.folder / "errata.toml",
        facts=facts_path or from_row.folder / "facts.toml",
        facts_of=None if facts_path else from_row.name,
        base=from_row.name,
        file=file,
    )


def by_name(names: Sequence[str]) -> tuple[Source, ...]:
    """The sources for revisions by name, oldest first; `latest` and `all` are names too.

    Raises:
        UsageError: There is no such revision.
    """
    if not names:
        return ()
    from mcpgen import schema  # as above

    chosen: set[str] = set()
    for name in names:
        if name == "all":
            chosen.update(row.name for row in schema.revisions())
        else:
            chosen.add(schema.latest().name if name == "latest" else schema.entry(name).name)
    return tuple(of_folder(row.name) for row in schema.revisions() if row.name in chosen)


def load(source: Source, errata: bool) -> Schema:
    """The schema of a source.

    Raises:
        SchemaError: The file is not a schema of the protocol.
    """
    from mcpgen import schema  # as above

    if source.file is not None:
        return source.file.schema(revision=source.revision, errata=errata)
    return schema.load(source.revision, errata=errata)


def published_definitions(loaded: Schema) -> Mapping[str, Node]:
    """The uncorrected definitions of a revision, which other schemas may repeat."""
    from mcpgen import schema  # as above

    known = (row for row in schema.revisions() if row.digest == loaded.digest)
    row = next(known, None)
    return loaded.definitions if row is None else schema.load(row.name, errata=False).definitions


def newer_than(base: str, loaded: Schema) -> list[Mapping[str, Node]]:
    """The definitions of the revisions after a schema in a file, for their names.

    Args:
        base: The base revision, which counts as newer than a schema that differs from it.
        loaded: The schema.
    """
    from mcpgen import schema  # as above

    same = loaded.digest == schema.entry(base).digest
    rows = (row for row in schema.revisions() if row.name > base or (row.name == base and not same))
    return [definitions(row) for row in rows]


def definitions(row: RevisionEntry) -> Mapping[str, Node]:
    """The definitions of a revision that mcpgen has, as published."""
    from mcpgen import schema  # as above

    document = schema.known_document(row)
    definitions: Mapping[str, Node] = document.get("$defs") or document["definitions"]
    return definitions
