"""Whether a package on disk is what mcpgen would write now, and if not, why.

Fingerprints answer first: when the inputs, the generator and every file are those of the manifest,
nothing has to be rendered.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcpgen import __version__, manifest, output, pipeline, recorded, schema
from mcpgen import directory as directories
from mcpgen.errors import OutputError


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        directory: The package.
        schema_changed: Revisions with other inputs than the package was made from, and what
            changed in each.
        generator_changed: How the generator differs, empty if it is the same.
        edited: Files changed by hand.
        missing: Files that are not there any more.
        differing: Files that a new run would change, the manifest aside.
        diff: Unified diff from what is on disk to what would be written.
    """

    directory: Path
    schema_changed: Mapping[str, str]
    generator_changed: str
    edited: tuple[str, ...]
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    diff: str = ""

    @property
    def current(self) -> bool:
        """Whether a new run would change nothing."""
        return not self.differing


def check(directory: Path, named: Sequence[pipeline.Source] = ()) -> Report:
    """Compare a package with what mcpgen would write.

    Args:
        directory: The package.
        named: Schema files it was made from, if they are not where the manifest says.

    Raises:
        OutputError: The directory is not a package of mcpgen's, or holds links.
        ManifestError: Its manifest is malformed.
        UsageError: The package was made from a schema file that is not there.
    """
    with directories.locked(directory.resolve()):
        return _checked(directory, named)


def _checked(directory: Path, named: Sequence[pipeline.Source]) -> Report:
    record = directories.read_manifest(directory)
    if record is None:
        raise OutputError(f"{directory}: expected a package of mcpgen's, got no {manifest.NAME}")
    sources = recorded.sources(directory, record, named)
    report = Report(
        directory=directory,
        schema_changed=_changed_inputs(sources, record),
        generator_changed=_changed_generator(record),
        edited=tuple(sorted(output.edited(directory, record.files))),
        missing=tuple(path for path in record.files if not (directory / path).is_file()),
    )
    if not (report.schema_changed or report.generator_changed or report.edited or report.missing):
        return report
    options = record.options
    request = pipeline.BuildRequest(
        record.package, sources, options.errata, selection=options.selection()
    )
    return _compared(report, record, pipeline.build(request))


def _changed_inputs(
    sources: tuple[pipeline.Source, ...], record: manifest.Manifest
) -> dict[str, str]:
    changed: dict[str, str] = {}
    for source in sources:
        origin = record.revisions[source.revision]
        if pipeline.inputs(source, record.options.errata) == origin.inputs:
            continue
        same = schema.read_digest(source.schema) == origin.structure
        changed[source.revision] = (
            "its prose, corrections or facts" if same else "the structure of its messages"
        )
    return changed


def _changed_generator(record: manifest.Manifest) -> str:
    if record.generator == manifest.generator_fingerprint():
        return ""
    if record.mcpgen == __version__:
        return f"another build of mcpgen {__version__}"
    return f"made by mcpgen {record.mcpgen}, this is {__version__}"


def _compared(report: Report, record: manifest.Manifest, files: Mapping[str, str]) -> Report:
    paths = sorted({*files, *record.files} - {manifest.NAME})
    directories.refuse_links(report.directory, paths)
    diffs: dict[str, str] = {}
    for path in paths:
        place = report.directory / path
        before = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else None
        after = files.get(path)
        if before != after:
            diffs[path] = "".join(_diff(path, before, after))
    return replace(report, differing=tuple(diffs), diff="".join(diffs.values()))


def _diff(path: str, before: str | None, after: str | None) -> Iterator[str]:
    old = "/dev/null" if before is None else f"a/{path}"
    new = "/dev/null" if after is None else f"b/{path}"
    lines, new_lines = (before or "").splitlines(True), (after or "").splitlines(True)
    for line in difflib.unified_diff(lines, new_lines, fromfile=old, tofile=new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
