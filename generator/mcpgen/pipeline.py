"""From the names of revisions to the text of every file of a package. Writes nothing."""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mcpgen import docs, facts, facts_files, manifest, schema, schema_facts
from mcpgen.errors import UsageError, safe_text
from mcpgen.parts import EVERYTHING, Selection

if TYPE_CHECKING:
    from mcpgen.spec import RevisionSpec

RUNTIME = frozenset(
    {
        "msgspec",
        "anyio",
        "uritemplate",
        "jsonschema",
        "re2",
        "aiohttp",
        "httpx2",
        "uvicorn",
        "starlette",
        "mcpgen",
    }
)
"""What a generated package imports, and mcpgen: a package of such a name would hide it."""


_GUESS = 400
"""Characters of a guess that are shown."""


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
        base: The revision whose facts a schema file starts from.
        schema_path: Path of a schema file that the user named, from the package's directory.
        facts_path: Path of a facts file that the user named, likewise.
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
        strict: Whether a fact that can only be guessed is an error.
        selection: The parts and the transports to write.
    """

    package: str
    sources: tuple[Source, ...]
    errata: bool = True
    strict: bool = False
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
        base=name,
    )


def file_source(path: Path, facts_path: Path | None = None) -> Source:
    """The source for a schema file: it starts from the facts of the nearest revision.

    Args:
        path: The schema file.
        facts_path: A file with the facts that differ; it may name another revision to start from.

    Raises:
        SchemaError: The schema file cannot be read as a JSON object or as TypeScript.
        FactsError: The facts file is malformed.
    """
    near = schema.nearest_to(path).entry
    base = facts_files.read(facts_path).based_on if facts_path else None
    from_row = schema.entry(base or near.name)
    return Source(
        revision=schema.revision_of(path),
        origin="file",
        schema=path,
        errata=near.folder / "errata.toml",
        facts=facts_path or from_row.folder / "facts.toml",
        facts_of=None if facts_path else from_row.name,
        base=from_row.name,
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
    if source.facts_of is None:
        files["base.toml"] = schema.entry(source.base).folder / "facts.toml"
    if errata:
        files["errata.toml"] = source.errata
    return manifest.combined(files.items())


def build(
    request: BuildRequest, report: Callable[[str], None] = lambda text: None
) -> dict[str, str]:
    """The text of every file of a package by its path, the manifest included.

    Args:
        request: The package.
        report: Is called with what a user should know of a schema file: what was read as something
            else than it says, and which facts are guesses.

    Raises:
        McpgenError: A schema, its corrections or its facts are wrong.
    """
    from mcpgen import render, spec

    texts = docs.load()
    specs: list[spec.RevisionSpec] = []
    origins: dict[str, manifest.Origin] = {}
    for source in request.sources:
        loaded = load(source, request.errata)
        specs.append(_spec_of(source, loaded, texts, request.strict, report))
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


def _spec_of(
    source: Source,
    loaded: schema.Schema,
    texts: docs.Docs,
    strict: bool,
    report: Callable[[str], None],
) -> RevisionSpec:
    """Everything about one revision of a package; reports on one from a file of the user's."""
    from mcpgen import spec

    if source.origin == "mcpgen":
        return spec.build(loaded, facts.load(source.revision), texts)
    stated = source.facts if source.facts_of is None else None
    found = schema_facts.facts_for(loaded, source.base, stated)
    if strict:
        schema_facts.expect_no_guess(found, loaded.source)
    built = spec.build(loaded, found.facts, texts, spec.later_than(source.base, loaded))
    if stated is not None:
        schema_facts.expect_methods(loaded, source.base, stated)
    for note in built.models.normal.notes:
        report(f"note: {loaded.source}#{safe_text(loaded.pointer(note.pointer))}: {note.text}")
    for guess in found.guesses:
        report(f"guess: {safe_text(str(guess), _GUESS)}")
    return built


def load(source: Source, errata: bool) -> schema.Schema:
    """The schema of a source.

    Raises:
        SchemaError: The file is not a schema of the protocol.
    """
    if source.origin == "file":
        return schema.load_file(source.schema, revision=source.revision, errata=errata)
    return schema.load(source.revision, errata=errata)
