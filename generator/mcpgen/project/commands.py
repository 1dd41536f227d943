"""Commands on whole projects: `new`, and `generate`, `update` and `check` by their settings."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from mcpgen import names, paths
from mcpgen.console import Console, count_of
from mcpgen.errors import UsageError, safe_text
from mcpgen.findings import Finding, Report, shown_path
from mcpgen.literals import Code
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection, short_words
from mcpgen.model.schema_queries import properties
from mcpgen.package import check as checking
from mcpgen.package import commands, package_cache, rendering
from mcpgen.package import directory as directories
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.commands import PackageOptions
from mcpgen.package.manifest import Manifest
from mcpgen.package.rendering import RenderRequest
from mcpgen.package.settings import (
    FILE,
    MirrorSettings,
    PackageSettings,
    RenderSettings,
    Settings,
)
from mcpgen.project import hooks, live_server, publishing, server_lists, writing
from mcpgen.project import mirror as mirrors
from mcpgen.project import skeleton as projects
from mcpgen.project.mirror import Limits, Mirror, Snapshot
from mcpgen.project.server_lists import ServerLists
from mcpgen.project.skeleton import Project, Side, toml


@dataclass(frozen=True)
class NewProject:
    """The options of `mcpgen new`.

    Attributes:
        side: Whether it is a server or a client.
        name: Its name.
        directory: The directory to write to.
        revisions: Names, `latest` and `all` among them.
        transports: Words of `--transport`.
        features: Words of `--features`.
        from_file: A file with the lists of a server to mirror.
        from_server: A server to mirror.
        mcpgen: The requirement by which pip installs mcpgen in CI; `None` for CI without mcpgen.
        publish: The namespace in the registry; `None` for no files for publishing.
        app: Whether the tool of a server has a user interface.
    """

    side: Side
    name: str
    directory: Path
    revisions: tuple[str, ...] = ("all",)
    transports: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    from_file: Path | None = None
    from_server: str | None = None
    mcpgen: str | None = None
    publish: str | None = None
    app: bool = False


def complete_options(
    side: Side,
    *,
    name: str | None,
    output: Path | None,
    revisions: tuple[str, ...],
    transports: tuple[str, ...],
    features: tuple[str, ...],
    from_file: Path | None,
    from_server: str | None,
    mcpgen: str | None,
    publish: str | None = None,
    app: bool = False,
) -> NewProject:
    """The options of the command line; on a terminal, missing options are asked for.

    Raises:
        UsageError: There is no name, and no terminal to ask for it.
    """
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if name is None:
        if not asks:
            raise UsageError(f"expected mcpgen new {side} NAME, got no name")
        name = str(click.prompt(f"Name of the {side}"))
    if from_file is not None and from_server is not None:
        raise UsageError("expected --from or --from-server, got both")
    if app and (from_file is not None or from_server is not None):
        raise UsageError("--app: expected no --from and no --from-server, whose tools have none")
    if asks and not revisions:
        revisions = (str(click.prompt("Revisions (a date, latest, or all)", default="all")),)
    if asks and not transports:
        transports = (str(click.prompt("Transports (stdio, http, or all)", default="all")),)
    if asks and output is None:
        output = Path(click.prompt("Directory", default=name))
    return NewProject(
        side,
        name,
        output or Path(name),
        revisions or ("all",),
        transports,
        features,
        from_file,
        from_server,
        None if mcpgen is None else projects.check_requirement(mcpgen),
        None if publish is None else publishing.check_namespace(publish),
        app,
    )


def new(
    console: Console,
    options: NewProject,
    contract: Callable[[Any, Any], Awaitable[str]] | None = None,
) -> None:
    """Write a new project.

    Args:
        console: The output.
        options: The options of the command.
        contract: The text of a server's contract, from its package and the server itself; `None`
            for a project without one.

    Raises:
        McpgenError: An option is wrong, the directory is not free, or the server to mirror cannot
            be read. Nothing is written then.
    """
    module = projects.module_name(options.name)
    sources = schema_sources.by_name(options.revisions)
    features = _features(options, sources[-1])
    chosen = selection((), options.transports, features=features)
    if Path.cwd().is_relative_to(options.directory.resolve()):
        raise UsageError(f"-o {options.directory} holds the current directory; name a new one")
    writing.expect_free(options.directory)
    revisions = tuple(source.revision for source in sources)
    request = BuildRequest(f"{module}.{projects.PROTOCOL}", sources, selection=chosen)
    with console.progress(f"generating {options.name} ({', '.join(revisions)})"):
        package = package_cache.build_package(request, console.summary)
        mirror, snapshot = _build_mirror(console, options, request, package)
        project = Project(
            options.name,
            options.side,
            revisions,
            chosen.transports,
            _mirror_settings(options),
            mirror is not None and mirror.expands,
            _own_schemas(options.directory.resolve(), revisions),
            options.mcpgen,
            short_words(chosen.features, chosen.parts),
            options.publish,
            options.app,
        )
        files = projects.user_files(project, mirror)
        if options.publish is not None:
            files |= publishing.files(project, options.publish)
    own = len(files)
    inner = projects.folder(project, projects.PROTOCOL)
    files |= {f"{inner}/{path}": text for path, text in package.items()}
    if mirror is not None and snapshot is not None:
        beside = projects.folder(project, projects.MIRROR)
        written = mirrors.files(mirror, snapshot)
        files |= {f"{beside}/{path}": text for path, text in written.items()}
        differences = _differences(console, project, files, snapshot)
        _report(console, mirror, differences)
    if contract is not None:
        modules = _own_modules(project, files)
        files[projects.CONTRACT] = live_server.read_project(
            modules, project.side, projects.PROTOCOL, contract
        )
        own += 1
    writing.write_project(options.directory, files)
    console.summary(
        f"{options.directory}: {count_of(own, 'file')} of yours,"
        f" {count_of(len(package), 'file')} in {inner}"
    )
    console.summary(
        f"next: cd {shlex.quote(str(options.directory))} && pip install -e '.[dev]' && pytest"
    )


def _features(options: NewProject, newest: schema_sources.Source) -> tuple[str, ...]:
    """The features of the package of a new project.

    Raises:
        UsageError: The newest revision has no user interfaces, which `--app` needs.
    """
    is_mirrored = options.from_file is not None or options.from_server is not None
    features = (*options.features, *(("schemas",) if is_mirrored else ()))
    if options.app:
        _check_app(newest)
        features = (*features, "apps")
    if options.side == "server" or is_mirrored:
        features = (*features, "prompts", "resources")
    if options.side == "server":
        transports = selection((), options.transports).transports
        if transports != ("stdio",):
            features = (*features, "routes", "workers")  # as its own `serving` uses
        if not {"all", "stdio"}.isdisjoint(transports):
            features = (*features, "config")  # as its README says
    return features


def _check_app(newest: schema_sources.Source) -> None:
    """Check that the newest revision supports user interfaces, by `_meta` of its tools.

    Raises:
        UsageError: It does not.
    """
    tool = schema_sources.load(newest, errata=True).definitions["Tool"]
    if "_meta" not in properties(tool):
        raise UsageError(
            f"--app: expected a revision whose tools have _meta, got {newest.revision}"
        )


def _differences(
    console: Console, project: Project, files: Mapping[str, str], snapshot: Snapshot
) -> list[str]:
    """The differences of the lists of a new project from the server's; imports the project."""
    modules = (projects.MIRROR, project.side)
    own = _own_modules(project, files)
    with console.progress(f"importing {project.module}"):
        return live_server.mirror_differences(own, modules, projects.PROTOCOL, snapshot)


def _own_modules(project: Project, files: Mapping[str, str]) -> dict[str, str]:
    """The files of a new project within its own package."""
    root = projects.folder(project, "")
    return {path.removeprefix(root): text for path, text in files.items() if path.startswith(root)}


def _build_mirror(
    console: Console, options: NewProject, request: BuildRequest, package: Mapping[str, str]
) -> tuple[Mirror, Snapshot] | tuple[None, None]:
    """The mirror of the server that a project starts from, if any."""
    if options.from_file is None and options.from_server is None:
        return None, None
    settings = MirrorSettings(
        projects.MIRROR, str(options.from_file or ""), options.from_server or "", "."
    )
    lists, limits = _server_lists(console, settings, Path.cwd(), request, package)
    title = projects.module_name(options.name).replace("_", "-").title()
    [calls_class] = names.class_names([title], mirrors.RESERVED).values()
    snapshot = Snapshot(lists, limits, calls_class)
    return mirrors.build(snapshot, projects.PROTOCOL), snapshot


def _server_lists(
    console: Console,
    settings: MirrorSettings,
    root: Path,
    request: BuildRequest,
    package: Mapping[str, str],
) -> tuple[ServerLists, Limits]:
    """The lists of the server to mirror, and the items that a package cannot register.

    Args:
        console: The output for progress.
        settings: The server.
        root: The base of paths in the settings.
        request: The request of the project's package.
        package: The files of that package, by path and text.
    """
    if settings.file:
        lists = server_lists.read_file(root / settings.file)
    else:
        server = live_server.target(settings.server, root / settings.directory)
        every = _every_revision(request, package)
        with console.progress(f"asking {server.shown}"), live_server.import_package(every) as peer:
            lists = live_server.lists(peer, server)
    with live_server.import_package(package) as peer:
        return lists, live_server.limits(peer, lists)


def _every_revision(request: BuildRequest, package: Mapping[str, str]) -> Mapping[str, str]:
    """A package with a client of every revision, to talk to servers of any age.

    This is the package of the project if it has all revisions; else a temporary package.
    """
    sources = schema_sources.by_name(("all",))
    if request.sources == sources and request.selection.transports == selection().transports:
        return package
    return package_cache.build_package(
        BuildRequest("peer", sources, selection=selection(("client",))), _ignore
    )


def _ignore(note: str) -> None:
    """Drop a note: published schemas need none."""


def _mirror_settings(options: NewProject) -> Code | None:
    """The lines of `[tool.mcpgen.mirror]` that name the server, relative to the project."""
    root = options.directory.resolve()
    if options.from_file is not None:
        path = Path(os.path.relpath(options.from_file.resolve(), root)).as_posix()
        return Code(f"file = {toml(path)}")
    if options.from_server is None:
        return None
    place = Path(os.path.relpath(Path.cwd(), root)).as_posix()
    return Code(f"server = {toml(options.from_server)}\ndirectory = {toml(place)}")


def _own_schemas(root: Path, revisions: Sequence[str]) -> Code | None:
    """The user's folder of revisions, relative to the project, if a revision comes from it."""
    own = paths.own_schema_dir()
    if own is None or not any(map(paths.is_own_revision, revisions)):
        return None
    return toml(Path(os.path.relpath(own.resolve(), root)).as_posix())


def _report(console: Console, mirror: Mirror, differences: Sequence[str]) -> None:
    """Report the mirrored items, those without types, and those that are listed differently."""
    counts = (
        count_of(len(mirror.tools), "tool"),
        count_of(len(mirror.resources), "resource"),
        count_of(len(mirror.prompts), "prompt"),
    )
    console.summary(f"mirrored: {', '.join(counts)}")
    for note in (*mirror.notes, *differences):
        console.summary(f"note: {safe_text(note, 400)}")


def generate(console: Console, settings: Settings, *, force: bool, trusted: bool) -> None:
    """Write the packages of a project by its settings, and its mirror from the recorded lists.

    Args:
        console: The output.
        settings: The settings.
        force: Whether to overwrite files that were edited by hand.
        trusted: Whether code of folders of templates may run.

    Raises:
        McpgenError: A setting or an input is wrong, or a directory cannot be written.
    """
    with settings.own_revisions():
        _write_packages(console, settings, force=force, trusted=trusted)
        if settings.mirror is not None:
            snapshot = mirrors.read(settings.mirror_directory)
            _write_mirror(console, settings, snapshot, snapshot, (), force=force)
        _write_rendered(console, settings, force=force, trusted=trusted)


def _write_rendered(console: Console, settings: Settings, *, force: bool, trusted: bool) -> None:
    for each in settings.render:
        request = _render_request(settings, each, trusted=trusted)
        rendering.write(console, request, force=force)


def _render_request(settings: Settings, each: RenderSettings, *, trusted: bool) -> RenderRequest:
    """The request for a folder of templates of a project."""
    options = replace(_render_options(settings, each), trusted=trusted)
    return rendering.new_request(options, paths.from_here(settings.root / each.output))


def _render_options(settings: Settings, each: RenderSettings) -> rendering.RenderOptions:
    root = settings.root
    return rendering.RenderOptions(
        paths.from_here(root / each.templates),
        each.revisions,
        tuple(root / path for path in each.schemas),
        root / each.facts if each.facts else None,
        each.extensions,
        each.errata,
        patch=root / each.patch if each.patch else None,
        root=root,
    )


def inputs(settings: Settings) -> tuple[Path, ...]:
    """The files and folders that a project is generated from, for `--watch`.

    Args:
        settings: The settings.

    Raises:
        McpgenError: A setting or an input is wrong.
    """
    from mcpgen.package import watching  # one run of many needs it

    watched = {(settings.root / FILE).resolve()}
    with settings.own_revisions():
        for package in settings.packages:
            directory = settings.directory(package)
            watched.update(watching.inputs(_package_options(settings, package), directory))
        for each in settings.render:
            options = _render_options(settings, each)
            watched.update(rendering.inputs(paths.from_here(settings.root / each.output), options))
    return tuple(sorted(watched))


def _write_packages(console: Console, settings: Settings, *, force: bool, trusted: bool) -> None:
    requests = [_request(settings, package, trusted=trusted) for package in settings.packages]
    for package, request in zip(settings.packages, requests, strict=True):
        directory = settings.directory(package)
        commands.generate(console, request, directory, force=force)
        hooks.run(console, package.hooks, directory, settings.root)


def update(console: Console, settings: Settings, *, force: bool, trusted: bool) -> None:
    """Update the packages of a project; query the mirrored server again, and report changes.

    Args:
        console: The output.
        settings: The settings.
        force: Whether to overwrite files that were edited by hand.
        trusted: Whether code of folders of templates may run.

    Raises:
        McpgenError: As for `generate`; or the server cannot be queried.
    """
    with settings.own_revisions():
        _write_packages(console, settings, force=force, trusted=trusted)
        if settings.mirror is not None:
            _update_mirror(console, settings, settings.mirror, force=force)
        _write_rendered(console, settings, force=force, trusted=trusted)


def _update_mirror(
    console: Console, settings: Settings, mirror: MirrorSettings, *, force: bool
) -> None:
    """Query the mirrored server again, report changes, and rewrite the mirror."""
    old = mirrors.read(settings.mirror_directory)
    request = _request(settings, settings.packages[0])
    package = directories.texts(settings.directory(settings.packages[0]))
    lists, limits = _server_lists(console, mirror, settings.root, request, package)
    new_snapshot = replace(old, lists=lists, limits=limits)
    changes = server_lists.changes(old.lists, lists)
    _write_mirror(console, settings, old, new_snapshot, changes, force=force)


def _write_mirror(
    console: Console,
    settings: Settings,
    old: Snapshot,
    snapshot: Snapshot,
    changes: Sequence[str],
    *,
    force: bool,
) -> None:
    """Write the mirror from a snapshot, then report the changes of the server."""
    directory = settings.mirror_directory
    mirror = mirrors.build(snapshot, settings.protocol)
    files = mirrors.files(mirror, snapshot)
    if not force:
        mirrors.refuse_edited(directory, old, files)
    differences: Sequence[str] = ()
    if writing.differing_files(directory.resolve(), files):
        differences = _differences_of_mirror(settings, files, snapshot)
    changed = writing.write_files(directory, files)
    for line in changes:
        console.summary(line)
    if changed:
        _report(console, mirror, differences)
    console.summary(f"{directory}: {'updated' if changed else 'unchanged'}")


def _differences_of_mirror(
    settings: Settings, files: Mapping[str, str], snapshot: Snapshot
) -> list[str]:
    """The differences of the lists of a mirror from the server's; imports the mirror."""
    package = directories.texts(settings.directory(settings.packages[0]))
    own = {f"{settings.protocol}/{path}": text for path, text in package.items()}
    own |= {f"{projects.MIRROR}/{path}": text for path, text in files.items()}
    return live_server.mirror_differences(own, (projects.MIRROR,), settings.protocol, snapshot)


def _request(
    settings: Settings, package: PackageSettings, *, trusted: bool = False
) -> BuildRequest:
    """The build request of one package."""
    options = replace(_package_options(settings, package), trusted=trusted)
    directory = settings.directory(package)
    return commands.new_request(options, directory, errata=package.errata, strict=package.strict)


def _package_options(settings: Settings, package: PackageSettings) -> PackageOptions:
    files = tuple(settings.root / path for path in package.schemas)
    for path in (*files, *([settings.root / package.facts] if package.facts else [])):
        if not path.is_file():
            raise UsageError(f"{settings.root / 'pyproject.toml'}: expected a file, got {path}")
    return PackageOptions(
        package.revisions,
        files,
        settings.root / package.facts if package.facts else None,
        package.parts,
        package.transports,
        package.models,
        settings.templates(package),
        package.extensions,
        settings.root,
        settings.patch(package),
        package.features,
        package.gitattributes,
        package.runtime,
        package.keep_old_modules,
        tuple(settings.root / path for path in package.sources),
        decoding=package.decoding,
        extra=package.extra,
        mutability=package.mutability,
    )


def check(console: Console, settings: Settings, *, trusted: bool) -> list[Report]:
    """Report whether all generated files of a project are what mcpgen would write.

    Args:
        console: The output.
        settings: The settings.
        trusted: Whether code of folders of templates may run.

    Returns:
        The findings of each directory, of which none fails if the files are.

    Raises:
        McpgenError: A directory is not a package of mcpgen's, or an input is wrong.
    """
    reports: list[Report] = []
    with settings.own_revisions():
        for package in settings.packages:
            directory = settings.directory(package)
            reports.append(commands.check(console, directory, PackageOptions(trusted=trusted)))
            record = directories.read_manifest(directory)
            assert record is not None  # or the check has failed
            changed = _other_settings(_request(settings, package, trusted=trusted), record)
            if changed:
                text = f"the settings changed: {', '.join(changed)}; run mcpgen"
                console.summary(text)
                reports.append(_settings_report(settings, directory, text))
        if settings.mirror is not None:
            reports.append(_check_mirror(console, settings))
        for each in settings.render:
            request = _render_request(settings, each, trusted=trusted)
            reports.append(rendering.compare(console, request))
    return reports


def _settings_report(settings: Settings, directory: Path, text: str) -> Report:
    file = shown_path(settings.root / FILE)
    name = directory.as_posix()
    return Report(name, [Finding("SETTINGS_CHANGED", "error", name, text, file=file)])


def _check_mirror(console: Console, settings: Settings) -> Report:
    """Report whether the mirror is what mcpgen would write from the recorded lists."""
    directory = settings.mirror_directory
    differing = _mirror_differences(settings)
    for path in differing:
        console.summary(f"differs: {(directory / path).as_posix()}; run mcpgen")
    if not differing:
        console.summary(f"{directory}: up to date")
    why = "not what mcpgen would write; run mcpgen"
    listed = [checking.file_finding(directory, path, why) for path in differing]
    return Report(directory.as_posix(), listed)


def _mirror_differences(settings: Settings) -> Sequence[str]:
    """The files of the mirror that differ from what mcpgen would write."""
    snapshot = mirrors.read(settings.mirror_directory)
    files = mirrors.files(mirrors.build(snapshot, settings.protocol), snapshot)
    return writing.differing_files(settings.mirror_directory, files)


def differences(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the packages and the mirror of a project that do not match its settings.

    Yields:
        The difference, and the command that resolves it.

    Raises:
        McpgenError: A setting names a missing file, or the mirror cannot be read.
    """
    with settings.own_revisions():
        for package in settings.packages:
            directory = settings.directory(package)
            record = directories.read_manifest(directory)
            if record is None:
                yield f"{directory} is not generated", "mcpgen generate"
            elif changed := _other_settings(_request(settings, package), record):
                yield f"{directory} has other {', '.join(changed)}", "mcpgen generate"
        if settings.mirror is not None:
            for path in _mirror_differences(settings):
                yield f"{settings.mirror_directory / path} differs", "mcpgen generate"


def _other_settings(request: BuildRequest, record: Manifest) -> list[str]:
    """The names of the settings that have changed since a package was made."""
    pairs = {
        "revisions": ([source.revision for source in request.sources], [*record.revisions]),
        "parts": (request.options.parts, record.options.parts),
        "features": (
            request.options.words or request.options.features,
            record.options.words or record.options.features,
        ),
        "sources": (request.options.sources, record.options.sources),
        "models": (request.options.models, record.options.models),
        "runtime": (request.options.runtime, record.options.runtime),
        "decoding": (request.options.decoding, record.options.decoding),
        "extra": (request.options.extra, record.options.extra),
        "mutability": (request.options.mutability, record.options.mutability),
        "transports": (request.options.transports, record.options.transports),
        "gitattributes": (request.options.gitattributes, record.options.gitattributes),
        "errata": (request.options.errata, record.options.errata),
        "templates": (request.templates.directory, record.templates.directory),
        "patch": (request.patch_origin.file, record.patch.file),
        "extensions": ([*request.extension_origins], [*record.extensions]),
    }
    return [name for name, (stated, recorded) in pairs.items() if stated != recorded]
