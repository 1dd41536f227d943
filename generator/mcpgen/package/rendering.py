"""`mcpgen render`: a folder of the user's templates rendered to a directory, with a record of it.

`mcpgen-render.json` in the directory has the inputs and the fingerprints of all files, as
`mcpgen.json` has them of a package. So `check` and `update` know a directory that was rendered, and
files of the user in it stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgen import __version__, findings, paths
from mcpgen.console import Console
from mcpgen.errors import ManifestError, OutputError, UsageError, safe_text
from mcpgen.findings import Finding, Level
from mcpgen.input_files import read_json
from mcpgen.model import schema_sources
from mcpgen.model.schema_sources import Source
from mcpgen.package import build_request, check, manifest, output
from mcpgen.package import directory as directories
from mcpgen.package.manifest import ExtensionOrigin, Origin, PatchOrigin, Templates
from mcpgen.paths import relative_path
from mcpgen.toml_records import Place, convert

if TYPE_CHECKING:
    from mcpgen.model.extension_files import ExtensionFile
    from mcpgen.package.patches import Patch

NAME = "mcpgen-render.json"
"""The record in a directory that was rendered."""


@dataclass(frozen=True)
class Record:
    """The record of a rendering.

    Attributes:
        mcpgen: Version of mcpgen.
        spec_version: Version of the values.
        templates: The folder, from the directory, and the fingerprint of each file in it.
        revisions: Origin by revision, oldest first.
        extensions: Origin of each extension by its identifier.
        errata: Whether published schemas were corrected.
        trusted: Whether code of the folder may have run.
        files: SHA-256 of every other file, by path within the directory.
        patch: The hand edits that were applied.
    """

    mcpgen: str
    spec_version: str
    templates: Templates
    revisions: Mapping[str, Origin]
    extensions: Mapping[str, ExtensionOrigin]
    errata: bool
    trusted: bool
    files: Mapping[str, str]
    patch: PatchOrigin = field(default_factory=PatchOrigin)

    def text(self) -> str:
        """The record as the file's text."""
        return json.dumps(asdict(self), indent=2) + "\n"


@dataclass(frozen=True)
class RenderRequest:
    """A folder to render.

    Attributes:
        templates: The folder.
        directory: The directory to write to.
        sources: The revisions, oldest first.
        extensions: The extensions beside them.
        errata: Whether known defects of published schemas are corrected.
        trusted: Whether code of the folder may run.
        patch: The hand edits that are applied.
    """

    templates: Path
    directory: Path
    sources: tuple[Source, ...]
    extensions: tuple[ExtensionFile, ...]
    errata: bool
    trusted: bool
    patch: Patch | None


@dataclass(frozen=True)
class RenderOptions:
    """The options of the command line.

    Attributes:
        templates: The folder of templates.
        revisions: Names, `latest` and `all` among them.
        schemas: Schema files, one revision each.
        facts: The facts file of the one schema file.
        extensions: Words of `--extension`.
        errata: Whether known defects of published schemas are corrected.
        trusted: Whether code of the folder may run.
        patch: The named patch; that of the record by default.
        root: The base of the paths in `extensions`; the current directory by default.
    """

    templates: Path
    revisions: tuple[str, ...]
    schemas: tuple[Path, ...]
    facts: Path | None
    extensions: tuple[str, ...]
    errata: bool
    trusted: bool = False
    patch: Path | None = None
    root: Path | None = None


def new_request(options: RenderOptions, directory: Path) -> RenderRequest:
    """The request for the options of the command line.

    Raises:
        UsageError: The options contradict each other, or name something unknown.
    """
    if options.facts is not None and len(options.schemas) != 1:
        raise UsageError("expected one --schema FILE with --facts")
    if not options.templates.is_dir():
        raise UsageError(f"{options.templates}: expected a folder of templates, got none")
    files = [schema_sources.of_file(path, options.facts) for path in options.schemas]
    sources = [*schema_sources.by_name(options.revisions), *files]
    if not sources:
        raise UsageError("expected --revision R (a date, latest or all) or --schema FILE, got none")
    names = [source.revision for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"revision {name} comes twice")
    _refuse_places(options.templates, directory)
    target = directory.resolve()
    return RenderRequest(
        options.templates,
        directory,
        tuple(
            each.with_recorded_paths(target) for each in sorted(sources, key=lambda s: s.revision)
        ),
        build_request.named_extensions(options.extensions, options.root),
        options.errata,
        options.trusted,
        _patch(directory, read(directory) if directory.is_dir() else None, options.patch),
    )


def _refuse_places(templates: Path, directory: Path) -> None:
    """Refuse a directory that cannot be replaced while mcpgen runs, or that holds the templates."""
    target = directory.resolve()
    if Path.cwd().is_relative_to(target):
        raise UsageError(f"-o {directory} holds the current directory: run mcpgen from outside it")
    one, other = templates.resolve(), target
    if one.is_relative_to(other) or other.is_relative_to(one):
        raise UsageError(f"-o {directory}: expected a directory apart from {templates}")


def _patch(directory: Path, record: Record | None, named: Path | None = None) -> Patch | None:
    """The named patch, else the one of the record."""
    as_manifest = None if record is None else _as_manifest(record)
    return build_request.patch(directory, as_manifest, named)


def read(directory: Path) -> Record | None:
    """The record in a directory; `None` if it has none.

    Raises:
        OutputError: The record, or a file that it names, is a link or lies behind one.
        ManifestError: The file cannot be read as a record.
    """
    directories.refuse_links(directory, [NAME])
    path = directory / NAME
    if not path.is_file():
        return None
    document: Any = read_json(path, ManifestError, manifest.MAX_BYTES)
    place = Place(str(path), ManifestError)
    record: Record = convert(document, Record, place)
    for file in record.files:
        if not manifest.is_file_path(file):
            raise place.at("files").at(file).error(paths.FILE_PATH, file)
    directories.refuse_links(directory, record.files)
    return record


def recorded_request(directory: Path, *, trusted: bool) -> tuple[RenderRequest, Record]:
    """The request by which a directory was rendered, and its record.

    Args:
        directory: The directory.
        trusted: Whether code of the folder may run now.

    Raises:
        OutputError: It was not rendered.
        UsageError: An input is not there, or code of the folder would run without trust.
    """
    record = read(directory)
    if record is None:
        raise OutputError(f"{directory}: expected a rendered directory, got no {NAME}")
    if record.trusted and not trusted:
        raise UsageError(
            f"{directory}: was rendered with --trusted, which runs code of"
            f" {safe_text(record.templates.directory)}: give --trusted again if you trust it"
        )
    templates = paths.recorded_place(directory, record.templates.directory)
    if not templates.is_dir():
        raise UsageError(
            f"{directory}: was rendered from {safe_text(str(templates))}, which is not there"
        )
    as_manifest = _as_manifest(record)
    request = RenderRequest(
        templates,
        directory,
        build_request.recorded_sources(directory, as_manifest),
        build_request.recorded_extensions(directory, as_manifest),
        record.errata,
        record.trusted,
        _patch(directory, record),
    )
    return request, record


def _as_manifest(record: Record) -> manifest.Manifest:
    """The inputs of a record in the form of a package's manifest, which names inputs likewise."""
    options = manifest.Options(record.errata)
    return manifest.Manifest(
        record.mcpgen,
        "",
        "rendered",
        options,
        record.revisions,
        record.extensions,
        record.files,
        patch=record.patch,
    )


def build(request: RenderRequest) -> dict[str, str]:
    """The text of every file of a rendering by its path, the record included.

    Raises:
        McpgenError: A schema, a template, its settings or the patch are wrong.
    """
    from mcpgen.render import folder_settings, template_folder  # take long to import
    from mcpgen.spec import loading

    names = [source.revision for source in request.sources]
    own_errata = folder_settings.read_errata(request.templates, names)
    specification = loading.load_sources(
        request.sources, request.extensions, errata=request.errata, own_errata=own_errata
    )
    files = template_folder.render_folder(request.templates, specification, trusted=request.trusted)
    if NAME in files:
        raise OutputError(f"{request.templates}: expected no file {NAME}, which is the record")
    patch = PatchOrigin()
    if request.patch is not None:
        from mcpgen.package import patches

        files = patches.apply_patch(request.patch, files, _ignore)
        patch = PatchOrigin(request.patch.recorded, request.patch.digest)
    target = request.directory.resolve()
    record = Record(
        __version__,
        specification.spec_version,
        Templates(
            relative_path(request.templates.resolve(), target),
            _fingerprints(request.templates),
        ),
        {source.revision: _origin(source, errata=request.errata) for source in request.sources},
        build_request.extension_origins(request.extensions, target),
        request.errata,
        request.trusted,
        {path: manifest.fingerprint(text) for path, text in files.items()},
        patch,
    )
    return {**files, NAME: record.text()}


def _fingerprints(templates: Path) -> Mapping[str, str]:
    """The fingerprint of each file of a folder of templates."""
    from mcpgen.render import template_folder  # takes long to import

    return {
        name: manifest.file_fingerprint(templates / name)
        for name in template_folder.files_of(templates)
    }


def _ignore(note: str) -> None:
    """Drop a note about edits that were moved."""


def _origin(source: Source, *, errata: bool) -> Origin:
    digest = schema_sources.load(source, errata).digest
    inputs = build_request.inputs(source, errata)
    return Origin(source.origin, digest, inputs, source.schema_path, source.facts_path)


def write(console: Console, request: RenderRequest, *, force: bool) -> None:
    """Render a folder, write the files, and report them.

    Raises:
        McpgenError: An input is wrong, or the directory cannot be written.
    """
    names = ", ".join(source.revision for source in request.sources)
    with console.progress(f"rendering {request.templates} ({names})"):
        files = build(request)
    written = put(request.directory, files, force=force)
    console.record(
        {
            "directory": str(request.directory),
            "created": written.created,
            "updated": written.updated,
            "removed": written.removed,
            "unchanged": written.unchanged,
        }
    )
    console.summary(f"{request.directory}: {written.summary} ({names})")


def put(directory: Path, files: Mapping[str, str], *, force: bool) -> output.Written:
    """Write the files of a rendering to a directory; other files in it stay.

    Raises:
        OutputError: The directory holds edited files, or cannot be written.
    """
    return output.write(directory, files, force=force, record=NAME, recorded=_recorded_fingerprints)


def _recorded_fingerprints(target: Path) -> Mapping[str, str]:
    """The fingerprints of the files that were rendered to a directory before; none if it is new."""
    if not target.exists():
        return {}
    if not target.is_dir():
        raise OutputError(f"{target}: expected a directory, got a file")
    if (target / manifest.NAME).exists():
        raise OutputError(f"{target}: expected no package of mcpgen's; it was not touched")
    record = read(target)
    return {} if record is None else record.files


def update(
    console: Console, directory: Path, revisions: Sequence[str], *, trusted: bool, force: bool
) -> None:
    """Render a directory again from what its record says.

    Args:
        console: The output.
        directory: The directory.
        revisions: The revisions to render; those of the record by default.
        trusted: Whether code of the folder may run.
        force: Whether to overwrite files that were edited by hand.

    Raises:
        McpgenError: It was not rendered, an input is wrong, or it cannot be written.
    """
    request, _ = recorded_request(directory, trusted=trusted)
    if revisions:
        request = replace(request, sources=schema_sources.by_name(revisions))
    write(console, request, force=force)


def compare_recorded(console: Console, directory: Path, *, trusted: bool) -> findings.Report:
    """Report whether a directory is what rendering by its record would write; see `compare`.

    Raises:
        McpgenError: It was not rendered, or an input is wrong.
    """
    request, _ = recorded_request(directory, trusted=trusted)
    return compare(console, request)


def compare(console: Console, request: RenderRequest) -> findings.Report:
    """Report whether a directory is what a request would write, with the reasons and a diff.

    Returns:
        The findings, of which none fails if the directory is.

    Raises:
        McpgenError: It was not rendered, or an input is wrong.
    """
    directory, record = request.directory, read(request.directory)
    if record is None:
        raise OutputError(f"{directory}: expected a rendered directory, got no {NAME}")
    files = build(request)
    diffs = check.differences(directory, {*files, *record.files} - {NAME}, files)
    settings = _changed_settings(request, record)
    reasons = [f"the settings changed: {', '.join(settings)}; run mcpgen"] if settings else []
    reasons += _reasons(request, record)
    current = not diffs and not settings
    console.record(
        {
            "directory": str(directory),
            "current": current,
            "reasons": reasons,
            "differing": [*diffs],
            "diff": "".join(diffs.values()),
        }
    )
    if current:
        console.summary(f"{directory}: up to date")
    else:
        for reason in reasons:
            console.text(reason)
        console.diff("".join(diffs.values()))
    return _report(directory, [*diffs], reasons, settings)


def _report(
    directory: Path, differing: Sequence[str], reasons: Sequence[str], settings: Sequence[str]
) -> findings.Report:
    """The findings of a check: an error for each file that differs, a note for each reason."""
    why = "not what mcpgen would write; run mcpgen update"
    listed = [check.file_finding(directory, path, why) for path in differing]
    name, record = directory.as_posix(), findings.shown_path(directory / NAME)
    for number, reason in enumerate(reasons):
        level: Level = "error" if settings and number == 0 else "note"
        listed.append(Finding("INPUT_CHANGED", level, name, reason, file=record))
    return findings.Report(name, listed)


def _changed_settings(request: RenderRequest, record: Record) -> Sequence[str]:
    """The settings of a project that differ from those of a record."""
    names = sorted(source.revision for source in request.sources)
    extensions = [each.identifier for each in request.extensions]
    pairs = {
        "revisions": (names, sorted(record.revisions)),
        "extensions": (extensions, [*record.extensions]),
        "errata": (request.errata, record.errata),
    }
    return [name for name, (now, before) in pairs.items() if now != before]


def _reasons(request: RenderRequest, record: Record) -> Sequence[str]:
    """The changes since a directory was rendered, in words."""
    now = _fingerprints(request.templates)
    changed = sorted(dict(now.items() ^ record.templates.files.items()))
    patch = "" if request.patch is None else request.patch.digest
    revisions = [
        source.revision
        for source in request.sources
        if source.revision in record.revisions
        and build_request.inputs(source, request.errata) != record.revisions[source.revision].inputs
    ]
    edited = output.edited_files(request.directory, record.files)
    return [
        *(f"the template changed: {path}" for path in changed),
        *(f"the schema changed: {name}" for name in revisions),
        *(["the patch changed"] if patch != record.patch.digest else []),
        *(f"edited: {path}" for path in edited),
        *([f"made by mcpgen {record.mcpgen}"] if record.mcpgen != __version__ else []),
    ]


def inputs(directory: Path, options: RenderOptions | None = None) -> tuple[Path, ...]:
    """The files and folders that a rendering is made from, for `--watch`.

    Args:
        directory: The directory.
        options: The options of the command line; the record of the directory without them.

    Raises:
        McpgenError: It was not rendered.
    """
    if options is None:
        request, _ = recorded_request(directory, trusted=True)
    else:
        request = new_request(options, directory)
    named = [request.templates, *(each.path for each in request.extensions)]
    for source in request.sources:
        named += [source.schema, source.facts, source.errata]
    if request.patch is not None:
        named.append(request.patch.path)
    return tuple(path.resolve() for path in named)
