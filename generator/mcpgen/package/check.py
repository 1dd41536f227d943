"""Compares a package on disk with what mcpgen would write now, and finds the reasons.

Fingerprints are compared first: if the inputs, the generator and every file match the manifest,
nothing is rendered, and no module for rendering is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mcpgen import __version__, findings
from mcpgen.errors import McpgenError, OutputError
from mcpgen.findings import Finding
from mcpgen.model import runtime
from mcpgen.model.schema_sources import Source
from mcpgen.package import build_request, manifest, output
from mcpgen.package import directory as directories
from mcpgen.package.build_request import BuildRequest


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes:
        directory: The package.
        schema_changed: Revisions whose inputs have changed since the package was made, with the
            changed inputs.
        generator_changed: How the generator differs; empty if it is the same.
        runtime_changed: The recorded requirement of an installed runtime, if another one is needed.
        edited: Files changed by hand.
        templates_changed: Templates whose overrides have changed.
        patch_changed: Whether the patch has changed.
        missing: Recorded files that do not exist.
        differing: Files that a new run would change, except the manifest.
        diff: Unified diff from the files on disk to the files of a new run.
    """

    directory: Path
    schema_changed: Mapping[str, str]
    generator_changed: str
    edited: tuple[str, ...]
    runtime_changed: str = ""
    templates_changed: tuple[str, ...] = ()
    patch_changed: bool = False
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    diff: str = ""

    @property
    def current(self) -> bool:
        """Whether a new run would change nothing."""
        return not self.differing

    @property
    def has_reasons(self) -> bool:
        """Whether a new run might change something."""
        return bool(self.edited or self.missing or self.has_other_reasons)

    @property
    def has_other_reasons(self) -> bool:
        """Whether a new run might change something although the package was not edited."""
        return bool(
            self.schema_changed
            or self.generator_changed
            or self.runtime_changed
            or self.templates_changed
            or self.patch_changed
        )


def report_of(report: Report, disagreements: Iterable[str]) -> findings.Report:
    """A check as findings: an error for each file that differs, a note for each reason.

    Args:
        report: The check.
        disagreements: How the features of the package differ from those that its program uses.
    """
    name = report.directory.as_posix()
    of_package = partial(
        Finding, item=name, file=findings.shown_path(report.directory / manifest.NAME)
    )
    listed = [file_finding(report.directory, path, _why(report, path)) for path in report.differing]
    listed += [of_package("FEATURES_DIFFER", "error", text=line) for line in disagreements]
    reasons = {
        **{f"schema {each}": what for each, what in report.schema_changed.items()},
        **{f"template {each}": "it is another one" for each in report.templates_changed},
    }
    if report.generator_changed:
        reasons["generator"] = report.generator_changed
    if report.runtime_changed:
        reasons["runtime"] = f"the package requires {report.runtime_changed}"
    if report.patch_changed:
        reasons["patch"] = "it is another one"
    listed += [
        of_package("INPUT_CHANGED", "note", text=f"the {what} changed: {how}")
        for what, how in reasons.items()
    ]
    return findings.Report(name, listed)


def file_finding(directory: Path, path: str, why: str) -> Finding:
    """The finding that a file is not what mcpgen would write.

    Args:
        directory: The directory that mcpgen wrote.
        path: The file in it.
        why: The reason, and what to do.
    """
    return Finding(
        "FILE_DIFFERS",
        "error",
        path,
        f"{path}: {why}",
        file=findings.shown_path(directory / path),
        reason="a file is not what mcpgen would write",
    )


def _why(report: Report, path: str) -> str:
    if path in report.missing:
        return "missing; run mcpgen update"
    if path in report.edited:
        return "edited by hand; keep the edit by mcpgen patch, or run mcpgen update --force"
    return "not what mcpgen would write; run mcpgen update"


def check(directory: Path, named: Sequence[Source] = (), *, trusted: bool = False) -> Report:
    """Compare a package with what mcpgen would write.

    Args:
        directory: The package.
        named: Schema files it was made from, if they are not where the manifest says.
        trusted: Whether templates of the user's own may do what code may do.

    Raises:
        OutputError: The directory is not a package of mcpgen's, or holds links.
        ManifestError: Its manifest is malformed.
        UsageError: The package was made from a schema file or templates that are not there.
        TemplateError: A template of the user's is out of date, or cannot be rendered.
        PatchError: The patch does not fit what mcpgen writes now.
    """
    if not named and _matching_record(directory, None) is not None:
        return Report(directory, {}, "", ())
    with directories.hold_lock(directory.resolve()):
        return _check(directory, named, trusted=trusted)


def _check(directory: Path, named: Sequence[Source], *, trusted: bool) -> Report:
    record = directories.read_manifest(directory)
    if record is None:
        raise OutputError(f"{directory}: expected a package of mcpgen's, got no {manifest.NAME}")
    sources = build_request.recorded_sources(directory, record, named)
    report = _compare_fingerprints(directory, record, sources)
    if not report.has_reasons:
        return report
    from mcpgen.package import pipeline  # only where something changed

    options = record.options
    extensions = build_request.recorded_extensions(directory, record)
    request = BuildRequest(
        record.package,
        sources,
        options.errata,
        selection=options.selection(),
        overrides=build_request.recorded_overrides(directory, record, trusted=trusted),
        extensions=extensions,
        old_names=build_request.old_names(record),
        patch=build_request.patch(directory, record),
        renamed_types=build_request.renamed_types(record),
        gitattributes=options.gitattributes,
        old_revisions=record.old_revisions,
    )
    return _compare_files(report, record, pipeline.build(request))


def unchanged_result(directory: Path, request: BuildRequest) -> output.Written | None:
    """The result of building a package anew, if fingerprints prove that nothing would change.

    A named schema file is never proven unchanged: its notes have to be reported.
    """
    record = _matching_record(directory, request)
    return output.Written((), (), (), unchanged=len(record.files) + 1) if record else None


def _matching_record(directory: Path, request: BuildRequest | None) -> manifest.Manifest | None:
    """The manifest of a package of mcpgen's revisions, if package and inputs match it.

    No lock is held. If another run writes meanwhile, a file is missing or differs, and the caller
    checks again with the lock.

    Args:
        directory: The package.
        request: The request that the package must have been built from.
    """
    try:
        record = directories.read_manifest(directory)
        if record is None or any(row.origin == "file" for row in record.revisions.values()):
            return None
        if request is not None and not _is_request_of(directory, record, request):
            return None
        sources = build_request.recorded_sources(directory, record)
        changed = _compare_fingerprints(directory, record, sources).has_reasons
    except (McpgenError, OSError):
        return None
    return None if changed else record


def _is_request_of(directory: Path, record: manifest.Manifest, request: BuildRequest) -> bool:
    """Whether building a request would give the very bytes of a manifest, with the files it has."""
    return (
        record.package == request.package
        and record.options == request.options
        and record.templates == request.templates
        and record.patch == request.patch_origin
        and [*record.extensions.items()] == [*request.extension_origins.items()]
        and record.old_names == request.old_names
        and record.renamed_types == request.renamed_types
        and record.old_revisions == request.old_revisions
        and [source.revision for source in request.sources] == [*record.revisions]
        and all(source.origin == "mcpgen" for source in request.sources)
        and (directory / manifest.NAME).read_text(encoding="utf-8") == record.text()
    )


def _compare_fingerprints(
    directory: Path, record: manifest.Manifest, sources: tuple[Source, ...]
) -> Report:
    return Report(
        directory=directory,
        schema_changed=_changed_inputs(sources, record) | _changed_extensions(directory, record),
        generator_changed=_changed_generator(record),
        runtime_changed=changed_runtime(record),
        edited=tuple(sorted(output.edited_files(directory, record.files))),
        templates_changed=build_request.changed_overrides(directory, record),
        patch_changed=build_request.changed_patch(directory, record),
        missing=tuple(path for path in record.files if not (directory / path).is_file()),
    )


def _changed_inputs(sources: tuple[Source, ...], record: manifest.Manifest) -> dict[str, str]:
    changed: dict[str, str] = {}
    for source in sources:
        origin = record.revisions[source.revision]
        if build_request.inputs(source, record.options.errata) == origin.inputs:
            continue
        same = _digest(source) == origin.structure
        changed[source.revision] = (
            "its prose, corrections or facts" if same else "the structure of its messages"
        )
    return changed


def _changed_extensions(directory: Path, record: manifest.Manifest) -> dict[str, str]:
    """The extensions whose files have changed since the package was made."""
    changed: dict[str, str] = {}
    for identifier, origin in record.extensions.items():
        path = build_request.recorded_extension(directory, identifier, origin)
        if not path.is_file():
            changed[identifier] = "its file is not there"
        elif manifest.file_fingerprint(path) != origin.inputs:
            changed[identifier] = "its schema"
    return changed


def _digest(source: Source) -> str:
    from mcpgen import schema  # only where something changed

    return (source.file or schema.read_file(source.schema)).digest


def _changed_generator(record: manifest.Manifest) -> str:
    if record.generator == manifest.generator_fingerprint():
        return ""
    if record.mcpgen == __version__:
        return f"another build of mcpgen {__version__}"
    return f"made by mcpgen {record.mcpgen}, this is {__version__}"


def changed_runtime(record: manifest.Manifest) -> str:
    """The recorded requirement of an installed runtime, if this version of mcpgen has another."""
    changed = record.requires and record.requires != runtime.requirement_specifier()
    return record.requires if changed and record.options.runtime == "installed" else ""


def _compare_files(report: Report, record: manifest.Manifest, files: Mapping[str, str]) -> Report:
    diffs = differences(report.directory, {*files, *record.files} - {manifest.NAME}, files)
    return replace(report, differing=tuple(diffs), diff="".join(diffs.values()))


def differences(
    directory: Path, paths: Collection[str], files: Mapping[str, str]
) -> dict[str, str]:
    """The unified diffs of the files that differ, by path, sorted.

    Args:
        directory: The directory with the files on disk.
        paths: The files to compare.
        files: The texts of a new run; a file that is not among them would be removed.

    Raises:
        OutputError: A file is a link, or lies behind one.
    """
    directories.refuse_links(directory, paths)
    diffs: dict[str, str] = {}
    for path in sorted(paths):
        place = directory / path
        before = _shown_text(place) if place.is_file() else None
        after = files.get(path)
        if before != after:
            diffs[path] = "".join(_diff(path, before, after))
    return diffs


def _shown_text(place: Path) -> str:
    """The text of a file for a diff; of one that is too large, a line that says so."""
    size = place.stat().st_size
    if size > manifest.MAX_FILE_BYTES:
        return f"... {size} bytes\n"
    return place.read_text(encoding="utf-8", errors="replace")


def _diff(path: str, before: str | None, after: str | None) -> Iterator[str]:
    import difflib  # only where something changed

    old = "/dev/null" if before is None else f"a/{path}"
    new = "/dev/null" if after is None else f"b/{path}"
    lines, new_lines = (before or "").splitlines(True), (after or "").splitlines(True)
    for line in difflib.unified_diff(lines, new_lines, fromfile=old, tofile=new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
