"""The commands on packages, and their reports.

Modules that only some commands need are imported by these: slow imports wait until a package is
known to be out of date.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgen import findings, paths
from mcpgen.console import Console, count_of
from mcpgen.errors import OutputError, UsageError, safe_text
from mcpgen.model import runtime, schema_sources
from mcpgen.model.choice import changed_features, default_features, selection, whole_features
from mcpgen.model.feature_table import FEATURES
from mcpgen.model.parts import ALL, NONE, USED
from mcpgen.model.schema_sources import Source
from mcpgen.names import folder
from mcpgen.package import build_request, manifest, output, overrides
from mcpgen.package import check as checking
from mcpgen.package import directory as directories
from mcpgen.package.build_request import BuildRequest, UsedBy
from mcpgen.package.overrides import Overrides

if TYPE_CHECKING:
    from mcpgen.package.update_report import Report
    from mcpgen.package.used_features import Use

_MODELS = "models.py"
"""The module with the types of all revisions of a package."""

DEFAULTS = default_features((ALL,))
"""The default features of a package of all parts."""


@dataclass(frozen=True)
class PackageOptions:
    """The options of the command line.

    Attributes:
        revisions: Names, `latest` and `all` among them.
        schemas: Schema files, one revision each.
        facts: The facts file of the one schema file, if there is one.
        parts: Words of `--parts`.
        transports: Words of `--transport`.
        models: The word of `--models`; empty unless it was given.
        templates: The directory of `--templates`, if one was named.
        extensions: Words of `--extension`.
        root: The base of the paths in `extensions`; the current directory by default.
        patch: The named patch; if `None`, the patch that the manifest of the package records.
        features: Words of `--features`.
        gitattributes: Whether a file tells Git that the package is generated.
        runtime: The word of `--runtime`; empty unless it was given.
        keeps_old_modules: Whether modules of removed revisions stay until the next update.
        sources: Files and folders of the program whose used features `used` stands for; by default
            the folder of the package.
        trusted: Whether templates of models of the user's own may run, which have no sandbox.
        decoding: The word of `--decoding`; empty unless it was given.
        extra: Words of `--extra`.
        mutability: The word of `--mutability`; empty unless it was given.
    """

    revisions: tuple[str, ...] = ()
    schemas: tuple[Path, ...] = ()
    facts: Path | None = None
    parts: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    models: str = ""
    templates: Path | None = None
    extensions: tuple[str, ...] = ()
    root: Path | None = None
    patch: Path | None = None
    features: tuple[str, ...] = ()
    gitattributes: bool = True
    runtime: str = ""
    keeps_old_modules: bool = False
    sources: tuple[Path, ...] = ()
    trusted: bool = False
    decoding: str = ""
    extra: tuple[str, ...] = ()
    mutability: str = ""


def new_request(
    options: PackageOptions, directory: Path, *, errata: bool, strict: bool = False
) -> BuildRequest:
    """The build request for the options of the command line.

    Raises:
        UsageError: The options contradict each other, or name something unknown.
    """
    package = build_request.package_name(directory)
    used_by = _used_by(options.features, options.sources, directory, package)
    words = options.features if used_by is None else _words_of(used_by)
    chosen = selection(
        options.parts,
        options.transports,
        options.models,
        words,
        options.runtime,
        options.decoding,
        options.extra,
        options.mutability,
    )
    before = directories.read_manifest(directory) if directory.is_dir() else None
    sources = _sources(options, directory, before)
    if not sources:
        raise UsageError("expected --revision R (a date, latest or all) or --schema FILE, got none")
    _refuse_current(directory)
    extensions = build_request.named_extensions(options.extensions, options.root)
    return BuildRequest(
        package,
        sources,
        errata,
        strict,
        chosen,
        _overrides(options, directory),
        extensions,
        build_request.extension_origins(extensions, directory),
        build_request.old_names(before),
        build_request.patch(directory, before, options.patch),
        build_request.renamed_types(before),
        options.gitattributes,
        build_request.old_revisions(before, sources) if options.keeps_old_modules else {},
        used_by,
    )


def _used_by(
    words: Sequence[str], sources: Sequence[Path], directory: Path, package: str
) -> UsedBy | None:
    """The program whose used features a package shall have; `None` without the word `used`.

    Args:
        words: Words of `--features`.
        sources: The files and folders of the program; none for the folder of the package.
        directory: The package.
        package: Its import name.

    Raises:
        UsageError: There are sources without the word, or one that cannot be read.
    """
    names = [name.strip() for word in words for name in word.split(",")]
    if USED not in names:
        if sources:
            raise UsageError("--sources: expected --features used with it, got no such word")
        return None
    from mcpgen.package import used_features  # few packages have their features so

    place = directory.resolve()
    places = [paths.from_here(path.resolve()) for path in sources or (_folder_around(place),)]
    recorded = tuple(paths.relative_path(path.resolve(), place) for path in places)
    return UsedBy(recorded, tuple(names), used_features.find_uses(places, place, package))


def _folder_around(package: Path) -> Path:
    """The folder from which a package is imported, with the packages around it."""
    return [package, *build_request.packages_around(package)][-1].parent


def _recorded_program(directory: Path, record: manifest.Manifest) -> tuple[Path, ...]:
    """The files and folders of the program that a package records.

    Raises:
        UsageError: One leads out of the project.
    """
    around = _folder_around(directory.resolve())
    return tuple(
        around
        if (directory.resolve() / path).resolve() == around
        else paths.recorded_place(directory, path)
        for path in record.options.sources
    )


def _words_of(used_by: UsedBy) -> tuple[str, ...]:
    """The words of `--features` with the used features in the place of `used`."""
    from mcpgen.package import used_features

    return used_features.chosen_words(used_by.words, used_by.uses)


def _overrides(options: PackageOptions, directory: Path) -> Overrides | None:
    """The overrides that the options name."""
    if options.templates is None:
        return None
    return overrides.read(options.templates, directory, trusted=options.trusted)


def _refuse_current(directory: Path) -> None:
    if Path.cwd().is_relative_to(directory.resolve()):
        raise UsageError(f"-o {directory} holds the current directory: run mcpgen from outside it")


def _sources(
    options: PackageOptions, directory: Path, record: manifest.Manifest | None
) -> tuple[Source, ...]:
    """The sources of the options, oldest first."""
    named = [(source, "--revision") for source in schema_sources.by_name(options.revisions)] + [
        (source, "--schema") for source in _named_sources(options, directory, record)
    ]
    first_options: dict[str, str] = {}
    for source, option in named:
        before = first_options.setdefault(source.revision, option)
        if before != option or (option == "--schema" and _times(named, source.revision) > 1):
            how = "by --revision and --schema" if before != option else "by --schema twice"
            raise UsageError(f"revision {source.revision} comes twice: {how}")
    return tuple(sorted((source for source, _ in named), key=lambda source: source.revision))


def _times(named: list[tuple[Source, str]], revision: str) -> int:
    return sum(source.revision == revision for source, _ in named)


def _named_sources(
    options: PackageOptions, directory: Path, record: manifest.Manifest | None
) -> list[Source]:
    """The sources of the schema files that the options name."""
    if options.facts is not None and len(options.schemas) != 1:
        actual = f"{len(options.schemas)} of them" if options.schemas else "--facts alone"
        raise UsageError(f"expected one --schema FILE with --facts, got {actual}")
    files = [schema_sources.of_file(path, options.facts) for path in options.schemas]
    return [
        build_request.named_by_manifest(file, directory, record).with_recorded_paths(
            directory.resolve()
        )
        for file in files
    ]


def update_request(options: PackageOptions, directory: Path) -> BuildRequest:
    """The build request to update a package: from its manifest, and the options that differ.

    Raises:
        OutputError: The directory is not a package of mcpgen's.
        UsageError: The options contradict each other, or a schema file is not there.
    """
    record = directories.read_manifest(directory)
    if record is None:
        raise OutputError(f"{directory}: expected a package of mcpgen's, got no {manifest.NAME}")
    before = record.options
    words = changed_features(before.words or before.features, options.features)
    if options.parts and words[:1] == (NONE,):
        possible = default_features(selection(options.parts).parts)
        if not options.features:  # what is recorded may need a part that goes
            words = tuple(each for each in words if each in possible or each not in DEFAULTS)
        if not {ALL, "server"}.intersection(before.parts):
            words = (*words, *possible)  # of a new server
    sources_of_program = options.sources or (
        _recorded_program(directory, record) if USED in words else ()
    )
    used_by = _used_by(words, sources_of_program, directory, record.package)
    chosen = selection(
        options.parts or before.parts,
        options.transports or before.transports,
        options.models or before.models,
        words if used_by is None else _words_of(used_by),
        options.runtime or before.runtime,
        options.decoding or before.decoding,
        options.extra or before.extra,
        options.mutability or before.mutability,
    )
    sources = _sources(options, directory, record)
    if not options.revisions:
        sources = build_request.recorded_sources(directory, record, sources)
    _refuse_current(directory)
    extensions = build_request.named_extensions(options.extensions)
    extensions = extensions or build_request.recorded_extensions(directory, record)
    return BuildRequest(
        record.package,
        sources,
        before.errata,
        selection=chosen,
        overrides=_overrides(options, directory)
        or build_request.recorded_overrides(directory, record, trusted=options.trusted),
        extensions=extensions,
        extension_origins=build_request.extension_origins(extensions, directory),
        old_names=build_request.old_names(record),
        patch=build_request.patch(directory, record, options.patch),
        renamed_types=build_request.renamed_types(record),
        gitattributes=before.gitattributes,
        old_revisions=(
            build_request.old_revisions(record, sources) if options.keeps_old_modules else {}
        ),
        used_by=used_by,
    )


def generate(console: Console, request: BuildRequest, directory: Path, *, force: bool) -> None:
    """Build a package, write it, and report the written files and the next steps.

    Raises:
        McpgenError: An input is wrong, or the directory cannot be written.
    """
    names = ", ".join(source.revision for source in request.sources)
    unchanged = checking.unchanged_result(directory, request)
    for line in _used_lines(request.used_by):
        console.summary(line)
    if unchanged is not None:
        console.summary(f"{directory}: {unchanged.summary} ({names})")
        _record_written(console, request, directory, unchanged, (), ())
        return
    from mcpgen.package import package_cache  # only where something is built

    output.expect_own(directory)
    for source in request.sources:
        if source.file is not None:
            _report_schema_file(console, source, errata=request.errata)
    before = directories.read_manifest(directory) if directory.is_dir() else None
    types = _read_type_names(directory) if before is not None else frozenset[str]()
    if before is not None and types:
        request = _add_renamed_types(request, before, types)
    notes: list[str] = []
    with console.progress(f"generating {request.package} ({names})"):
        files = package_cache.build_package(request, notes.append)
    if before is not None:
        notes += _report_gone_revisions(before, request)
        if request.options.runtime == "installed" and checking.changed_runtime(before):
            notes.append(f"the runtime changed: {_move(before.requires)}; {runtime.SOURCES}")
    if before is not None:
        notes += _report_gone_features(before.options.features, request.selection.features)
    if before is not None and before.options == request.options:
        notes += _report_gone_names(before.names, files)
        notes += _report_renamed_types(types, request.renamed_types, files)
    written = output.write(directory, files, force=force)
    for note in notes:
        console.summary(note)
    console.summary(f"{directory}: {written.summary} ({names})")
    if before is not None and written.changed:
        console.summary(f"changed: {_kinds(written)}")
    reports = _reports(before, request)
    for line in (line for report in reports for line in report.lines()):
        console.summary(line)
    changes = [report.record() for report in reports]
    _record_written(console, request, directory, written, notes, changes)
    if written.changed:
        for line in (
            *_install_commands(files, request),
            *_next_commands(files, request, directory),
        ):
            console.summary(line)


def _report_gone_features(before: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """Yield a line that names former default features that a package no longer has, if any."""
    gone = whole_features(before) - whole_features(now)
    names = [each.name for each in FEATURES if each.was_default and each.name in gone]
    if names:
        yield f"the package no longer has {', '.join(names)}; name these features to keep them"


def _used_lines(used_by: UsedBy | None) -> Iterator[str]:
    """Yield each used feature with the first place that uses it, and the number of the others."""
    uses: dict[str, list[Use]] = {}
    for use in () if used_by is None else used_by.uses:
        uses.setdefault(use.feature, []).append(use)
    for rows in uses.values():
        more = f" and {count_of(len(rows) - 1, 'other place')}" if len(rows) > 1 else ""
        yield f"feature {rows[0]}{more}"


def _read_type_names(directory: Path) -> frozenset[str]:
    """The types in the module `models` of the package in a directory."""
    from mcpgen.model import exports

    path = directory / _MODELS
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return exports.type_names(text)


def _add_renamed_types(
    request: BuildRequest, before: manifest.Manifest, types: frozenset[str]
) -> BuildRequest:
    """Add the types that newer revisions renamed to a request."""
    from mcpgen.package import update_report

    renamed = update_report.renamed_types(before, request, types)
    return replace(request, renamed_types={**request.renamed_types, **renamed})


def _report_renamed_types(
    types: frozenset[str], renames: Mapping[str, str], files: Mapping[str, str]
) -> Iterator[str]:
    """Report the types that a package has under another name."""
    from mcpgen.model import exports

    if types.isdisjoint(renames):
        return
    for row in exports.renamed_types(renames, exports.type_names(files.get(_MODELS, ""))):
        if row.old in types:
            yield (
                f"renamed: models.{row.old} is now models.{row.new}; the old name gives a"
                " DeprecationWarning"
            )


def _report_gone_revisions(before: manifest.Manifest, request: BuildRequest) -> Iterator[str]:
    """Report each removed revision, with the module to import instead."""
    for revision, nearest in build_request.gone_revisions(before, request.sources).items():
        old, new = (f"{request.package}.{folder(each)}" for each in (revision, nearest))
        stays = "; until the next update, it gives a DeprecationWarning"
        kept = stays if revision in request.old_revisions else ""
        yield f"gone: {old}; import from {new} instead{kept}"


def _report_gone_names(before: Sequence[str], files: Mapping[str, str]) -> Iterator[str]:
    """Report the public names that a package lost, or has under another name."""
    from mcpgen.model import exports

    now = json.loads(files[manifest.NAME]).get("names", ())
    for name in sorted({*before} - {*now}):
        new = exports.RENAMED.get(name)
        if new in now:
            yield f"renamed: {name} is now {new}; the old name gives a DeprecationWarning"
        else:
            yield f"gone: {safe_text(name)} is no longer a public name of the package"


def _record_written(
    console: Console,
    request: BuildRequest,
    directory: Path,
    written: output.Written,
    notes: Sequence[str],
    changes: Sequence[Mapping[str, Any]],
) -> None:
    console.record(
        {
            "directory": str(directory),
            "package": request.package,
            "revisions": [source.revision for source in request.sources],
            "created": written.created,
            "updated": written.updated,
            "removed": written.removed,
            "unchanged": written.unchanged,
            "notes": notes,
            "changes": changes,
            **({} if request.used_by is None else {"uses": _use_records(request.used_by.uses)}),
        }
    )


def _use_records(uses: Sequence[Use]) -> list[dict[str, str | int]]:
    return [
        {"feature": use.feature, "file": use.path, "line": use.line, "code": use.code}
        for use in uses
    ]


def _reports(before: manifest.Manifest | None, request: BuildRequest) -> Sequence[Report]:
    """The changes of the protocol from a package to its update."""
    from mcpgen.package import update_report  # only where something is written

    update_report.remember(request)
    return update_report.reports(before, request) if before is not None else ()


def _report_schema_file(console: Console, source: Source, *, errata: bool) -> None:
    assert source.file is not None  # its origin is a file
    console.summary(f"{source.schema}: taken as revision {source.revision}")
    near = source.file.nearest
    nearest = near.entry.name == source.base
    why = f"the nearest: {near.why}" if nearest else "on which the facts file is based"
    changed = "" if source.facts_of else f", changed by {source.facts}"
    console.summary(f"facts: those of {source.base}, {why}{changed}")
    if errata:
        count = count_of(len(source.file.errata), "correction")
        console.summary(f"{source.schema}: {count} of {near.entry.name} applied")


def _kinds(written: output.Written) -> str:
    """How many files of each kind were created, updated or removed."""
    from mcpgen.render import tree

    names = ("models", "methods", "other rendered", "copied", "manifest")
    kinds: dict[str, int] = dict.fromkeys(names, 0)
    for path in (*written.created, *written.updated, *written.removed):
        name = path.rpartition("/")[2]
        if name in ("models.py", "methods.py"):
            kinds[name.removesuffix(".py")] += 1
        elif path == manifest.NAME:
            kinds["manifest"] += 1
        else:
            kinds["copied" if tree.is_copied(path) else "other rendered"] += 1
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)


def _install_commands(files: Mapping[str, str], request: BuildRequest) -> Iterator[str]:
    """The distributions to install for a package."""
    if request.selection.runtime == "installed":
        peer = "__main__.py" in files
        yield from _runtime_commands(
            http=peer and request.selection.transports != ("stdio",), features=peer
        )
        return
    from mcpgen.render import closure

    needs = closure.dependencies(files, request.package)
    yield f"install: pip install {' '.join(needs.needed)}"
    if needs.over_http:
        yield f"for HTTP also: pip install {' '.join(needs.over_http)}"
    if needs.optional:
        yield f"optional: pip install {' '.join(needs.optional)}"


def _runtime_commands(*, http: bool, features: bool) -> Iterator[str]:
    """Where the runtime of a package can be installed from, with its extras.

    Its name is in no command: no package index has it, so pip would install whoever takes the name.
    """
    folder = runtime.source_folder()
    if folder is None:
        yield f"install: {runtime.requirement_specifier()}, {runtime.SOURCES}"
        return
    yield f"install: pip install {shlex.quote(str(folder))}"
    if http:
        yield f"for HTTP also: pip install {shlex.quote(f'{folder}[http]')}"
    if features:
        yield f"for all features: pip install {shlex.quote(f'{folder}[all]')}"


def _next_commands(
    files: Mapping[str, str], request: BuildRequest, directory: Path
) -> Iterator[str]:
    """Yield a command to begin with."""
    package = request.package
    main = files.get("__main__.py", "")
    if "add_command" in main:  # few features have commands
        command = f"python -m {package} --help"
    elif main:
        name = "Server" if "server/toolkit/server.py" in files else "connect"
        command = f'python -c "from {package} import {name}; help({name})"'
    elif "protocol/connection.py" in files:
        command = f'python -c "from {package} import Connection; help(Connection)"'
    else:
        module = folder(request.sources[0].revision)
        command = f'python -c "from {package}.{module} import models; help(models)"'
    place = directory.resolve()
    root = [place, *build_request.packages_around(place)][-1].parent
    if root == Path.cwd():
        yield f"next: {command}"
    else:
        yield f"next: cd {shlex.quote(Path(os.path.relpath(root)).as_posix())} && {command}"


def check(console: Console, directory: Path, options: PackageOptions) -> findings.Report:
    """Report whether a package is what mcpgen would write, with reasons and a diff if not.

    Returns:
        The findings, of which none fails if the package is.

    Raises:
        McpgenError: The directory is not a package of mcpgen's, or an input is wrong.
    """
    record = directories.read_manifest(directory)
    named = _named_sources(options, directory, record)
    report = checking.check(directory, named, trusted=options.trusted)
    disagreements = [*_feature_disagreements(directory, record)]
    console.record(
        {
            "directory": str(directory),
            "up_to_date": report.current and not disagreements,
            "schema_changed": dict(report.schema_changed),
            "generator_changed": report.generator_changed or None,
            "runtime_changed": report.runtime_changed or None,
            "edited": report.edited,
            "templates_changed": report.templates_changed,
            "patch_changed": report.patch_changed,
            "missing": report.missing,
            "differing": report.differing,
            "diff": report.diff,
            "features": disagreements,
        }
    )
    for line in disagreements:
        console.summary(line)
    for revision, what in report.schema_changed.items():
        console.summary(f"the schema changed: {revision}: {what}")
    if report.generator_changed:
        console.summary(f"the generator changed: {report.generator_changed}")
    if report.runtime_changed:
        console.summary(f"the runtime changed: {_move(report.runtime_changed)}")
    for name in report.templates_changed:
        console.summary(f"the template changed: {name}")
    if report.patch_changed:
        console.summary("the patch changed")
    for path in report.edited:
        console.summary(f"edited by hand: {path}")
    for path in report.missing:
        console.summary(f"missing: {path}")
    if report.current and not disagreements:
        console.summary(f"{directory}: up to date")
    elif report.current:
        console.summary(f"{directory}: other features are used; run mcpgen update")
    else:
        console.diff(report.diff)
        count = len(report.differing)
        console.summary(
            f"{directory}: {count_of(count, 'file')} {'differs' if count == 1 else 'differ'}"
        )
    return checking.report_of(report, disagreements)


def _feature_disagreements(directory: Path, record: manifest.Manifest | None) -> Iterator[str]:
    """Yield the features that a program uses and its package lacks, and those in vain.

    Args:
        directory: The package.
        record: Its manifest. Packages whose features were named have no disagreements.
    """
    if record is None or not record.options.sources:
        return
    options = record.options
    sources = _recorded_program(directory, record)
    used_by = _used_by(options.words, sources, directory, record.package)
    assert used_by is not None  # or there would be no sources
    chosen = selection(options.parts, options.transports, options.models, _words_of(used_by))
    now, before = whole_features(chosen.features), whole_features(options.features)
    first: dict[str, Use] = {}
    for use in used_by.uses:
        first.setdefault(use.feature, use)
    named = whole_features([NONE, *(word for word in options.words if word != USED)])
    for name in sorted((now - before) & (first.keys() | named)):  # others are brought by these
        place = f": {first[name].place} uses {first[name].code}" if name in first else ""
        yield f"the package lacks the feature {name}{place}"
    for name in sorted(before - now):
        yield f"the package has the feature {name}, which nothing uses"


def _move(requirement: str) -> str:
    """The move from the recorded requirement of a runtime to the one of this version."""
    return f"{safe_text(requirement)} is now {runtime.requirement_specifier()}"


def facts_text(console: Console, schema_file: Path, facts_file: Path | None) -> None:
    """Print the facts for a schema as a facts file.

    Raises:
        McpgenError: One of the files is wrong.
    """
    from mcpgen.package import pipeline

    console.text(pipeline.facts_text(schema_sources.of_file(schema_file, facts_file)))


def verify(console: Console, checkout: Path) -> bool:
    """Report whether our schemas have the structure of the official ones, with all differences.

    Revisions of the user's own folder are left out, for they have no official schema.

    Raises:
        UsageError: The checkout lacks a file.
    """
    from mcpgen import schema

    same = True
    revisions: dict[str, Any] = {}
    for entry in schema.revisions():
        if paths.is_own_revision(entry.name):
            continue
        verdict = schema.verify(entry, checkout)
        for pointer, text in verdict.differences:
            console.text(f"{verdict.source}#{pointer}: {text}")
        count = len(verdict.differences)
        same = same and not count
        result = count_of(count, "difference") if count else "same structure"
        other = "" if verdict.same_file else ", another file than the one on record"
        console.summary(f"{entry.name}: {result}{other}")
        revisions[entry.name] = {
            "file": str(verdict.source),
            "same_file": verdict.same_file,
            "differences": [
                {"pointer": pointer, "text": text} for pointer, text in verdict.differences
            ],
        }
    console.record({"same_structure": same, "revisions": revisions})
    return same


def errata(console: Console, typescript_file: Path, json_file: Path) -> None:
    """Print an errata file that corrects a schema in JSON to its TypeScript.

    Raises:
        SchemaError: One of the files cannot be read.
    """
    from mcpgen import schema

    comparison = schema.disagreements(typescript_file, json_file)
    console.text(schema.errata_text(comparison) or "# the JSON says what the TypeScript says")
