"""From the names of revisions to the text of every file of a package. Writes nothing."""

from __future__ import annotations

import keyword
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mcpgen import docs, facts, manifest, schema
from mcpgen.errors import UsageError
from mcpgen.parts import EVERYTHING, Selection

RUNTIME = frozenset(
    {
        "msgspec",
        "anyio",
        "uritemplate",
        "jsonschema",
        "re2",
        "httpx2",
        "uvicorn",
        "starlette",
        "mcpgen",
    }
)
"""What a generated package imports, and mcpgen: a package of such a name would hide it."""


@dataclass(frozen=True)
class Source:
    """What one revision of a package is made from.

    Attributes:
        revision: Its name.
        origin: Whether the schema is one of mcpgen's, or a file that the user named.
        schema: The schema file.
        errata: The corrections; those that do not fit a file of the user's are left out.
        facts: The facts file.
        facts_of: The revision those facts were written for; `None` for a file that the user named.
        schema_path: Path of a schema file that the user named, from the package's directory.
        facts_path: Path of a facts file that the user named, likewise.
    """

    revision: str
    origin: Literal["mcpgen", "file"]
    schema: Path
    errata: Path
    facts: Path
    facts_of: str | None
    schema_path: str = ""
    facts_path: str = ""

    def recorded_in(self, directory: Path) -> Source:
        """The same, with the paths of the user's files as a package in a directory records them."""
        if self.origin == "mcpgen":
            return self
        facts_path = "" if self.facts_of else _relative(self.facts, directory)
        return replace(self, schema_path=_relative(self.schema, directory), facts_path=facts_path)


@dataclass(frozen=True)
class BuildRequest:
    """One package to build.

    Attributes:
        package: Its import name.
        sources: Its revisions, oldest first.
        errata: Whether known defects of published schemas are corrected.
        selection: The parts and the transports to write.
    """

    package: str
    sources: tuple[Source, ...]
    errata: bool = True
    selection: Selection = EVERYTHING


def known_source(name: str) -> Source:
    """The source of a revision that mcpgen has.

    Raises:
        UsageError: There is no such revision.
    """
    folder = schema.entry(name).folder
    return Source(
        revision=name,
        origin="mcpgen",
        schema=folder / "schema.json",
        errata=folder / "errata.toml",
        facts=folder / "facts.toml",
        facts_of=name,
    )


def file_source(path: Path, facts_path: Path | None = None) -> Source:
    """The source for a schema file, with a facts file or the nearest earlier revision's facts.

    Raises:
        SchemaError: The schema file cannot be read as a JSON object or as TypeScript.
    """
    name = schema.revision_of(path)
    near = schema.nearest(name)
    corrected_as, _ = schema.corrections_for(path)
    return Source(
        revision=name,
        origin="file",
        schema=path,
        errata=corrected_as.folder / "errata.toml",
        facts=facts_path or near.folder / "facts.toml",
        facts_of=None if facts_path else near.name,
    )


def named_sources(names: tuple[str, ...]) -> tuple[Source, ...]:
    """The sources for revisions by name, oldest first; `latest` and `all` are names too.

    Raises:
        UsageError: There is no such revision.
    """
    chosen: set[str] = set()
    for name in names:
        if name == "all":
            chosen.update(row.name for row in schema.revisions())
        else:
            chosen.add(schema.latest().name if name == "latest" else schema.entry(name).name)
    return tuple(known_source(row.name) for row in schema.revisions() if row.name in chosen)


def _relative(path: Path, directory: Path) -> str:
    """The path of a file from a directory; its name alone where there is no such path."""
    try:
        return Path(os.path.relpath(path, directory)).as_posix()
    except ValueError:  # on another drive
        return path.name


def package_name(directory: Path) -> str:
    """The import name of a package in a directory.

    That is the last part of its path, behind the names of the packages that it lies in.

    Raises:
        UsageError: Python cannot import a package of that name, or it would hide another module.
    """
    place = directory.resolve()
    name = place.name
    outer = [folder.name for folder in reversed(packages_around(place))]
    importable = name.isidentifier() and not keyword.iskeyword(name)
    if importable and (outer or not _taken(name)):
        return ".".join([*outer, name])
    proposal = re.sub(r"\W", "_", name) or "mcp_package"
    proposal = f"mcp_{proposal}" if proposal[0].isdigit() else proposal
    proposal = f"{proposal}_" if keyword.iskeyword(proposal) else proposal
    proposal = f"{proposal}_protocol" if _taken(proposal) else proposal
    better = directory.parent / proposal
    expected = "that no other module has" if importable else "that Python can import"
    raise UsageError(
        f"{str(directory)!r}: expected a name {expected}, got {name!r}; try -o {better}"
    )


def packages_around(directory: Path) -> list[Path]:
    """The packages that a directory lies in, from the inside out.

    A folder counts as a package if it has an `__init__.py`, or lies in a folder `src`.
    """
    found: list[Path] = []
    for folder in directory.parents:
        importable = folder.name.isidentifier() and not keyword.iskeyword(folder.name)
        is_package = (folder / "__init__.py").is_file() or folder.parent.name == "src"
        if not (importable and is_package):
            break
        found.append(folder)
    return found


def _taken(name: str) -> bool:
    return name in sys.stdlib_module_names or name in RUNTIME


def inputs(source: Source, errata: bool) -> str:
    """The fingerprint of the files that a revision is made from."""
    files = {"schema.json": source.schema, "facts.toml": source.facts}
    if errata:
        files["errata.toml"] = source.errata
    return manifest.combined(files.items())


def build(request: BuildRequest) -> dict[str, str]:
    """The text of every file of a package by its path, the manifest included.

    Raises:
        McpgenError: A schema, its corrections or its facts are wrong.
    """
    from mcpgen import render, spec

    texts = docs.load()
    specs: list[spec.RevisionSpec] = []
    origins: dict[str, manifest.Origin] = {}
    for source in request.sources:
        loaded = _load(source, request.errata)
        stated = facts.load_file(source.facts, source.facts_of or source.revision)
        known = facts.with_constants(stated, loaded)
        specs.append(spec.build(loaded, known, texts))
        origins[source.revision] = manifest.Origin(
            source.origin,
            loaded.digest,
            inputs(source, request.errata),
            source.schema_path,
            source.facts_path,
        )
    files = render.render_package(specs, request.package, request.selection)
    chosen = request.selection
    options = manifest.Options(request.errata, chosen.parts, chosen.transports)
    record = manifest.new(request.package, options, origins, files)
    return {**files, manifest.NAME: record.text()}


def _load(source: Source, errata: bool) -> schema.Schema:
    if source.origin == "file":
        return schema.load_file(source.schema, revision=source.revision, errata=errata)
    return schema.load(source.revision, errata=errata)
