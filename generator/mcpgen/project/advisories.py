"""Known vulnerabilities of packages that versions of mcpgen wrote.

A package is part of its user's project, so no package index can report its vulnerabilities:
`mcpgen doctor` looks up the version in its manifest in a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from mcpgen import __version__
from mcpgen.errors import InputError, ManifestError, format_value
from mcpgen.package import manifest
from mcpgen.toml_records import convert, read_toml

FILE = Path(__file__).with_name("advisories.toml")


@dataclass(frozen=True)
class Advisory:
    """A vulnerability of packages.

    Attributes:
        id: Its name in the changelog.
        versions: Versions of mcpgen whose packages are affected, as a version specifier.
        fixed: The first version whose packages are not affected.
        summary: One line on the damage and on the packages concerned.
    """

    id: str
    versions: str
    fixed: str
    summary: str

    def advice(self, folder: Path) -> str:
        """The commands that generate the package without the vulnerability."""
        update = f"mcpgen update {folder}"
        concerned = SpecifierSet(self.versions).contains(__version__, prereleases=True)
        return f"install mcpgen {self.fixed} or newer, then {update}" if concerned else update


@dataclass(frozen=True)
class Table:
    """The content of the file.

    Attributes:
        advisory: The vulnerabilities.
    """

    advisory: tuple[Advisory, ...] = ()


def advisories_for(version: str) -> Iterator[Advisory]:
    """The vulnerabilities of packages that a version of mcpgen wrote.

    Raises:
        ManifestError: The version is malformed.
    """
    try:
        number = Version(version)
    except InvalidVersion:
        raise ManifestError(manifest.NAME, "/mcpgen", "a version", format_value(version)) from None
    table, place = read_toml(FILE, InputError)
    for advisory in convert(table, Table, place).advisory:
        if SpecifierSet(advisory.versions).contains(number, prereleases=True):
            yield advisory
