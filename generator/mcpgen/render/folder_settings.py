"""`render.toml`: the settings of a folder of the user's templates, and front matter in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mcpgen.errors import SettingsError
from mcpgen.literals import WIDTH
from mcpgen.render.own_templates import FRONT_MATTER
from mcpgen.render.template_filters import Quotes
from mcpgen.schema.errata import Erratum
from mcpgen.schema.revisions import revisions
from mcpgen.spec.naming import Naming
from mcpgen.toml_records import Place, convert, parse_toml, read_toml

SETTINGS = "render.toml"
"""The file with the settings of a folder."""


@dataclass(frozen=True)
class FolderSettings:
    """`render.toml`.

    Attributes:
        naming: The names of types and members.
        values: Values for the templates, by name.
        errata: Corrections of schemas by revision, after those that mcpgen has; their pointers
            begin with `/$defs/`.
        filters: A module in the folder whose public functions are filters; empty for none.
        format: What formats Python files: Black, or nothing.
        quotes: The quotes of literals: double, or those of `repr`, in which Black leaves them.
        line_length: The length of lines for Black.
        formatter: A command that formats Python files in place of Black: it reads a file on
            standard input and prints it formatted; `{path}` stands for its path.
    """

    naming: Naming = field(default_factory=Naming)
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    errata: Mapping[str, tuple[Erratum, ...]] = field(
        default_factory=dict[str, tuple[Erratum, ...]]
    )
    filters: str = ""
    format: Literal["black", "none"] = "black"
    quotes: Quotes = "double"
    line_length: int = WIDTH
    formatter: tuple[str, ...] = ()

    @property
    def runs_code(self) -> bool:
        """Whether rendering runs code of the folder, beside sandboxed templates."""
        return bool(self.filters or self.formatter)


@dataclass(frozen=True)
class FrontMatter:
    """The comment that a template may begin with.

    Attributes:
        loop: The value that there is a file for; empty for the loops that the path names.
        where: An expression that chooses the values; empty for all.
        path: The path of the file, with names in braces; empty for that of the template.
        format: Whether a Python file is formatted.
    """

    loop: Literal["", "revision", "extension", "type", "method", "difference"] = ""
    where: str = ""
    path: str = ""
    format: bool = True


def read_settings(folder: Path) -> FolderSettings:
    """The settings of a folder; the defaults without a file.

    Raises:
        SettingsError: The file is malformed.
    """
    path = folder / SETTINGS
    if not path.is_file():
        return FolderSettings()
    table, place = read_toml(path, SettingsError)
    settings: FolderSettings = convert(table, FolderSettings, place)
    return settings


def read_errata(folder: Path, rendered: Collection[str]) -> Mapping[str, tuple[Erratum, ...]]:
    """The corrections of a folder, by revision.

    Args:
        folder: The folder.
        rendered: The revisions to render.

    Raises:
        SettingsError: The settings are malformed, or name a revision that is neither rendered nor
            one of mcpgen's.
    """
    settings = read_settings(folder)
    known = {*rendered, *(row.name for row in revisions())}
    tables = {"errata": settings.errata, "naming/revisions": settings.naming.revisions}
    for key, table in tables.items():
        for name in table:
            if name not in known:
                place = Place(str(folder / SETTINGS), SettingsError, f"/{key}")
                raise place.at(name).error(f"one of the revisions {', '.join(sorted(known))}", name)
    return settings.errata


def read_front_matter(text: str, path: Path) -> FrontMatter:
    """The front matter of a template.

    Args:
        text: The template.
        path: Its file, for errors.

    Raises:
        SettingsError: It is malformed.
    """
    match = FRONT_MATTER.match(text)
    if match is None:
        return FrontMatter()
    table = parse_toml(f"\n{match[1]}", str(path), SettingsError)  # with the lines of the file
    front: FrontMatter = convert(table, FrontMatter, Place(str(path), SettingsError))
    return front
