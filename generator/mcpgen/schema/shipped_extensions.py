"""The extensions that mcpgen has by name (`schema/extensions/extensions.toml`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from mcpgen import paths
from mcpgen.errors import RevisionsError
from mcpgen.toml_records import convert, read_toml


@dataclass(frozen=True)
class ExtensionEntry:
    """One row of the list of extensions.

    Attributes:
        name: The word that chooses it, such as `tasks`.
        identifier: The identifier by which both sides declare it, such as
            `io.modelcontextprotocol/tasks`.
        status: Whether it may still change.
        version: The date of the published state that it was taken from, such as `2026-08-21`.
        source: The official schema: its repository or package, and its path.
        official: SHA-256 of that file; empty if the source is a page without a schema file.
    """

    name: str
    identifier: str
    status: Literal["final", "draft"]
    version: str
    source: str
    official: str = ""

    @property
    def path(self) -> Path:
        """Its schema, with descriptions in our words."""
        return folder() / f"{self.name}.json"


@dataclass(frozen=True)
class _Table:
    extension: tuple[ExtensionEntry, ...]


def folder() -> Path:
    """The directory with the schemas of these extensions."""
    return paths.schema_dir() / "extensions"


@cache
def entries() -> tuple[ExtensionEntry, ...]:
    """All rows, in the order of the list."""
    table, place = read_toml(folder() / "extensions.toml", RevisionsError)
    return convert(table, _Table, place).extension
