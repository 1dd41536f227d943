"""The input of a package: its name, its revisions with their files, the options.

Making a request reads a file only if a schema file is named; the inputs of a package on disk are in
its manifest. Few modules are imported here, so that checking an unchanged package stays fast.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mcpgen import paths
from mcpgen.errors import UsageError, safe_text
from mcpgen.model import schema_sources
from mcpgen.model.parts import EVERYTHING, Selection
from mcpgen.model.schema_sources import Source
from mcpgen.package import manifest, overrides
from mcpgen.package.manifest import (
    ExtensionOrigin,
    Manifest,
    Options,
    Origin,
    PatchOrigin,
    Templates,
)
from mcpgen.package.overrides import Overrides
from mcpgen.paths import relative_path

if TYPE_CHECKING:
    from mcpgen.model.extension_files import ExtensionFile
    from mcpgen.package.patches import Patch
    from mcpgen.package.used_features import Use

RUNTIME = frozenset(
    {
        "msgspec",
        "pydantic",
        "pydantic_core",
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
"""Modules that a generated package imports, and mcpgen: a package of the same name hides one."""


@dataclass(frozen=True)
class UsedBy:
    """A program whose used features a package has.

    Attributes:
        sources: Its files and folders, from the package's directory.
        words: The words of `--features`, with `used`.
        uses: The uses.
    """

    sources: tuple[str, ...]
    words: tuple[str, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class BuildRequest:
    """One package to build.

    Attributes:
        package: Its import name.
        sources: Its revisions, oldest first.
        errata: Whether known defects of published schemas are corrected.
        strict: Whether a fact that can only be guessed is an error.
        selection: The parts, the transports and the features to write.
        overrides: Templates that replace mcpgen's, if any.
        extensions: The extensions of its revisions, in order.
        extension_origins: The manifest's records of the extensions.
        old_names: Public names of the previous package, which this one still offers if they have
            new names.
        renamed_types: The manifest's record of renamed types; see `Manifest`.
        patch: The hand edits that are applied to the rendered files, if any.
        gitattributes: Whether a file tells Git that the package is generated.
        old_revisions: The manifest's record of removed revisions; see `Manifest`.
        used_by: The program whose used features the package has, if they were not named.
    """

    package: str
    sources: tuple[Source, ...]
    errata: bool = True
    strict: bool = False
    selection: Selection = EVERYTHING
    overrides: Overrides | None = None
    extensions: tuple[ExtensionFile, ...] = ()
    extension_origins: Mapping[str, ExtensionOrigin] = field(
        default_factory=dict[str, ExtensionOrigin]
    )
    old_names: tuple[str, ...] = ()
    patch: Patch | None = None
    renamed_types: Mapping[str, str] = field(default_factory=dict[str, str])
    gitattributes: bool = True
    old_revisions: Mapping[str, str] = field(default_factory=dict[str, str])
    used_by: UsedBy | None = None

    @property
    def options(self) -> Options:
        """The options that the manifest records."""
        chosen = self.selection
        return Options(
            self.errata,
            chosen.parts,
            chosen.transports,
            chosen.models,
            chosen.features,
            self.gitattributes,
            chosen.runtime,
            *(((), ()) if self.used_by is None else (self.used_by.sources, self.used_by.words)),
            chosen.decoding,
            chosen.extra,
            chosen.mutability,
        )

    @property
    def templates(self) -> Templates:
        """The overrides that the manifest records."""
        if self.overrides is None:
            return Templates()
        return Templates(self.overrides.path, self.overrides.digests)

    @property
    def patch_origin(self) -> PatchOrigin:
        """The patch that the manifest records."""
        if self.patch is None:
            return PatchOrigin()
        return PatchOrigin(self.patch.recorded, self.patch.digest)


def named_by_manifest(source: Source, directory: Path, record: Manifest | None) -> Source:
    """Give a schema file of unknown revision the name that a package records for its path.

    An edited copy of a revision can no longer be recognized by its structure.
    """
    if source.revision != schema_sources.UNNAMED or record is None:
        return source
    for name, origin in record.revisions.items():
        if origin.schema and (directory / origin.schema).resolve() == source.schema.resolve():
            return replace(source, revision=name)
    return source


def recorded_sources(
    directory: Path, record: Manifest, named: Sequence[Source] = ()
) -> tuple[Source, ...]:
    """The sources of a package on disk, oldest first.

    Args:
        directory: The package.
        record: Its manifest.
        named: Schema files that the user named; they replace those in the manifest.

    Raises:
        UsageError: A schema file is not at its recorded path, or is of another revision; or the
            package or mcpgen has no revision of that name.
        SchemaError: A schema file cannot be read.
    """
    by_name = {_place_in(record, source, named): source for source in named}
    for name in by_name:
        if name not in record.revisions:
            has = ", ".join(record.revisions)
            raise UsageError(f"expected a schema file of {has}, got one of {name}")
    return tuple(
        (
            replace(by_name[name], revision=name)
            if name in by_name
            else _recorded_source(directory, name, origin)
        )
        for name, origin in record.revisions.items()
    )


def _place_in(record: Manifest, source: Source, named: Sequence[Source]) -> str:
    """The revision that a named file replaces.

    A file of unknown revision replaces the only other file of a package.
    """
    taken = {each.revision for each in named}
    free = [
        name
        for name, origin in record.revisions.items()
        if origin.origin == "file" and name not in taken
    ]
    is_known = source.revision != schema_sources.UNNAMED or source.revision in record.revisions
    return source.revision if is_known or len(free) != 1 else free[0]


def _recorded_source(directory: Path, name: str, origin: Origin) -> Source:
    if origin.origin == "mcpgen":
        known = schema_sources.of_folder(name)
        if not known.schema.is_file():
            raise UsageError(
                f"{directory}: revision {name} is not one that mcpgen has; --schemas DIR names a"
                " folder of revisions of your own"
            )
        return known
    path = directory / origin.schema
    facts = directory / origin.facts if origin.facts else None
    for file in (path, facts):
        if file is not None:
            paths.expect_of_project(file, directory)
        if file is not None and not file.is_file():
            shown = safe_text(str(file)) if origin.schema else "a schema file"
            raise UsageError(
                f"revision {name} was made from {shown}, which is not there: name it with"
                " --schema FILE"
            )
    source = schema_sources.of_file(path, facts)
    if source.revision != name and schema_sources.UNNAMED not in (source.revision, name):
        raise UsageError(
            f"{safe_text(str(path))}: expected the schema of revision {name}, got"
            f" {source.revision}; generate anew to change the revision"
        )
    return replace(source, revision=name).with_recorded_paths(directory)


def recorded_overrides(directory: Path, record: Manifest, *, trusted: bool) -> Overrides | None:
    """The current state of the templates that a package on disk was made with.

    Args:
        directory: The package.
        record: Its manifest.
        trusted: Whether templates may do what code may do.

    Raises:
        UsageError: They are not where the manifest says, or need trust.
        TemplateError: See `overrides.read`.
    """
    templates = templates_directory(directory, record)
    return None if templates is None else overrides.read(templates, directory, trusted=trusted)


def patch(directory: Path, record: Manifest | None, named: Path | None = None) -> Patch | None:
    """The patch of a package: the named one, else the one that the manifest records.

    Raises:
        UsageError: The file is not there.
        PatchError: The file cannot be read as text.
    """
    if named is None and (record is None or not record.patch.file):
        return None
    from mcpgen.package import patches  # few packages have one

    if named is None:
        assert record is not None  # else there was none
        named = patches.recorded_path(directory, record.patch.file)
    return patches.read(named, directory)


def changed_patch(directory: Path, record: Manifest) -> bool:
    """Whether the patch has changed since the package was made.

    Raises:
        UsageError: The patch is not there.
    """
    if not record.patch.file:
        return False
    from mcpgen.package import patches  # as above

    path = patches.recorded_path(directory, record.patch.file)
    return manifest.file_fingerprint(path) != record.patch.digest


def old_names(record: Manifest | None) -> tuple[str, ...]:
    """The public names of a package on disk that mcpgen has renamed since, sorted."""
    from mcpgen.model import (
        exports,  # a check of an unchanged package needs no more than the manifest
    )

    if record is None:
        return ()
    return tuple(sorted({*record.names, *record.old_names} & exports.RENAMED.keys()))


def renamed_types(record: Manifest | None) -> Mapping[str, str]:
    """The renamed types that the manifest of a package on disk records."""
    return {} if record is None else record.renamed_types


def gone_revisions(record: Manifest, sources: Sequence[Source]) -> dict[str, str]:
    """The revisions of a package on disk that new sources lack, each with the nearest new one."""
    now = [source.revision for source in sources]
    gone = sorted(record.revisions.keys() - {*now})
    return {old: next((each for each in now if each > old), now[-1]) for old in gone}


def old_revisions(record: Manifest | None, sources: Sequence[Source]) -> Mapping[str, str]:
    """The removed revisions whose modules an updated package keeps, if it shall keep any.

    These are the revisions that this update removes; if there are none, those of the last update
    that removed some.
    """
    if record is None:
        return {}
    now = {source.revision for source in sources}
    kept = {old: new for old, new in record.old_revisions.items() if old not in now}
    return gone_revisions(record, sources) or kept


def changed_overrides(directory: Path, record: Manifest) -> tuple[str, ...]:
    """The names of templates whose overrides have changed since a package was made.

    Raises:
        UsageError: They are not where the manifest says.
    """
    templates = templates_directory(directory, record)
    if templates is None:
        return ()
    now = overrides.digests(templates)
    before = record.templates.files
    return tuple(sorted(dict(before.items() ^ now.items())))


def templates_directory(directory: Path, record: Manifest) -> Path | None:
    """The directory of the own templates of a package on disk, relative to here if below.

    Raises:
        UsageError: They are not where the manifest says.
    """
    if not record.templates.directory:
        return None
    place = paths.recorded_place(directory, record.templates.directory)
    if not place.is_dir():
        raise UsageError(
            f"{directory}: was made with the templates in {safe_text(str(place))}, which are not"
            " there: name them with --templates DIR"
        )
    return place


_OFFICIAL = "io.modelcontextprotocol/"
_WITHOUT_SCHEMA = {"oauth-client-credentials": "auth", "enterprise-managed-authorization": "auth"}
"""Official extensions without messages and types, by name, with the feature that has them."""


def named_extensions(words: Sequence[str], root: Path | None = None) -> tuple[ExtensionFile, ...]:
    """The extensions for words of `--extension`: `NAME`, `FILE`, or `ID=FILE`.

    Args:
        words: The words, in order.
        root: The base of relative paths; the current directory by default.

    Raises:
        UsageError: There is no extension of that name, or no such file; a file has no identifier,
            or that of another file.
        SchemaError: A file cannot be read.
    """
    if not words:
        return ()
    from mcpgen.model import extension_files
    from mcpgen.schema import shipped_extensions

    shipped = {each.name: each.path for each in shipped_extensions.entries()}
    files: list[ExtensionFile] = []
    for word in words:
        identifier, equals, name = word.partition("=")
        whole = shipped.get(word) or _below(root, word)
        path = whole if not equals or whole.is_file() else _below(root, name)
        if not path.is_file():
            feature = _WITHOUT_SCHEMA.get(word.removeprefix(_OFFICIAL))
            if feature is not None:
                raise UsageError(f"{word} has no schema: write --features {feature}")
            expected = f"the file of an extension, or one of {', '.join(shipped)}"
            raise UsageError(f"expected {expected}, got {safe_text(word)}")
        files.append(extension_files.read(path, "" if path == whole else identifier))
    extension_files.check_distinct(files)
    return tuple(files)


def recorded_extensions(directory: Path, record: Manifest) -> tuple[ExtensionFile, ...]:
    """The extensions of a package on disk, in order.

    Raises:
        UsageError: A file is not at its recorded path.
        SchemaError: A file cannot be read.
    """
    if not record.extensions:
        return ()
    from mcpgen.model import extension_files

    files: list[ExtensionFile] = []
    for identifier, origin in record.extensions.items():
        path = recorded_extension(directory, identifier, origin)
        if not path.is_file():
            raise UsageError(
                f"extension {safe_text(identifier)} was made from {safe_text(str(path))}, which is"
                " not there: name it with --extension FILE"
            )
        files.append(extension_files.read(path, identifier))
    extension_files.check_distinct(files)
    return tuple(files)


def recorded_extension(directory: Path, identifier: str, origin: ExtensionOrigin) -> Path:
    """The schema file of an extension of a package in a directory; it need not exist.

    Raises:
        UsageError: It leads out of the project.
    """
    if origin.schema:
        place = directory / origin.schema
        paths.expect_of_project(place, directory)
        return place
    from mcpgen.schema import shipped_extensions

    shipped = (each.path for each in shipped_extensions.entries() if each.identifier == identifier)
    return next(shipped, shipped_extensions.folder() / identifier.rpartition("/")[2])


def extension_origins(
    extensions: Sequence[ExtensionFile], directory: Path
) -> dict[str, ExtensionOrigin]:
    """The extensions as the manifest of a package in a directory records them."""
    if not extensions:
        return {}
    from mcpgen.schema import shipped_extensions

    shipped = {each.path for each in shipped_extensions.entries()}
    return {
        each.identifier: ExtensionOrigin(
            "" if each.path in shipped else relative_path(each.path.resolve(), directory.resolve()),
            manifest.file_fingerprint(each.path),
        )
        for each in extensions
    }


def _below(root: Path | None, name: str) -> Path:
    return Path(name) if root is None else root / name


def package_name(directory: Path) -> str:
    """The import name of a package in a directory.

    The name is the last part of the path, after the names of the packages around the directory.

    Raises:
        UsageError: Python cannot import a package of that name, or it would hide another module.
    """
    place = directory.resolve()
    name = place.name
    outer = [folder.name for folder in reversed(packages_around(place))]
    importable = name.isidentifier() and not keyword.iskeyword(name)
    if importable and (outer or not _is_taken(name)):
        return ".".join([*outer, name])
    proposal = re.sub(r"\W", "_", name) or "mcp_package"
    proposal = f"mcp_{proposal}" if proposal[0].isdigit() else proposal
    proposal = f"{proposal}_" if keyword.iskeyword(proposal) else proposal
    proposal = f"{proposal}_protocol" if _is_taken(proposal) else proposal
    better = directory.parent / proposal
    expected = "that no other module has" if importable else "that Python can import"
    raise UsageError(
        f"{str(directory)!r}: expected a name {expected}, got {name!r}; try -o {better}"
    )


def packages_around(directory: Path) -> list[Path]:
    """The packages around a directory, innermost first.

    A folder counts as a package if it has an `__init__.py`, or lies in a folder `src`.
    """
    packages: list[Path] = []
    for folder in directory.parents:
        importable = folder.name.isidentifier() and not keyword.iskeyword(folder.name)
        is_package = (folder / "__init__.py").is_file() or folder.parent.name == "src"
        if not (importable and is_package):
            break
        packages.append(folder)
    return packages


def _is_taken(name: str) -> bool:
    return name in sys.stdlib_module_names or name in RUNTIME


def inputs(source: Source, errata: bool) -> str:
    """The fingerprint of the files that a revision is made from."""
    files = {"schema.json": source.schema, "facts.toml": source.facts}
    if source.facts_of is None:
        files["base.toml"] = schema_sources.of_folder(source.base).facts
    if errata:
        files["errata.toml"] = source.errata
    if source.origin == "mcpgen" and paths.is_own_revision(source.revision):
        docs = source.schema.parent.parent / "docs.toml"
        files |= {"docs.toml": docs} if docs.is_file() else {}
    return manifest.combine_fingerprints(files.items())
