"""Possible faults of an installation of mcpgen, of projects and of generated packages.

Each finding is one line: the subject, its state, and advice if something is wrong.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from mcpgen import __version__, collisions, paths, schema
from mcpgen.console import Console
from mcpgen.errors import McpgenError, OutputError, safe_text
from mcpgen.package import build_request, check, manifest, overrides, settings
from mcpgen.project import advisories

_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__"})
"""Folders that are not searched for packages, besides hidden folders."""

_FOLDERS = 20_000
"""Limit of the folders that are searched for packages."""

State = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One result of the diagnosis.

    Attributes:
        subject: The examined subject.
        state: `ok`; `missing` if it is optional and absent; `wrong` if the user must act.
        text: The details.
        advice: The advice; empty if nothing is to be done.
    """

    subject: str
    state: State
    text: str
    advice: str = ""


def diagnose(console: Console, directory: Path) -> bool:
    """Print the findings about the installation and the packages below a directory.

    Returns:
        Whether nothing is wrong.

    Raises:
        OutputError: The directory is none.
    """
    if not directory.is_dir():
        came = "a file" if directory.exists() else "nothing of that name"
        raise OutputError(f"{directory}: expected a directory, got {came}")
    findings = [*_installation(), *_requirements(), *_schemas(), *_projects(directory)]
    for finding in findings:
        line = f"{finding.state}: {finding.subject}: {finding.text}"
        advice = f"; {finding.advice}" if finding.advice else ""
        (console.summary if finding.state == "ok" else console.text)(line + advice)
    sound = all(finding.state != "wrong" for finding in findings)
    console.record({"sound": sound, "findings": [asdict(finding) for finding in findings]})
    return sound


def _installation() -> Iterator[Finding]:
    yield Finding("mcpgen", "ok", f"{__version__} in {paths.PACKAGE}")
    yield Finding("python", "ok", f"{platform.python_version()} at {sys.executable}")
    others = collisions.other_distributions()
    if others:
        text = f"{', '.join(others)} has an import package mcpgen too, and replaces files"
        yield Finding("mcpgen", "wrong", text, collisions.advice(others))
    yield Finding("data", "ok", f"schemas and templates in {paths.data_root()}")


def _requirements() -> Iterator[Finding]:
    """Findings about the requirements of mcpgen: compare them with the installed distributions."""
    try:
        lines = requires("mcpgen") or []
    except PackageNotFoundError:
        advice = "install it with pip"
        yield Finding("requirements", "wrong", "mcpgen is not an installed package", advice)
        return
    extras = metadata("mcpgen").get_all("Provides-Extra") or []
    for line in lines:
        requirement = Requirement(line)
        extra = next((extra for extra in ("", *extras) if _applies(requirement, extra)), None)
        if extra is None:
            continue  # for another system
        name, wanted = requirement.name, str(requirement.specifier)
        advice = f"pip install '{name}{wanted}'"
        try:
            installed = version(name)
        except PackageNotFoundError:
            state: State = "missing" if extra else "wrong"
            why = f"not installed, needed for {extra}" if extra else "not installed"
            yield Finding(name, state, why, advice)
            continue
        fits = requirement.specifier.contains(installed, prereleases=True)
        text = installed if fits else f"{installed}, expected {wanted}"
        yield Finding(name, "ok" if fits else "wrong", text, "" if fits else advice)


def _applies(requirement: Requirement, extra: str) -> bool:
    """Whether a requirement applies to this system with an extra; without one if empty."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _schemas() -> Iterator[Finding]:
    """Findings about each revision of mcpgen: compare its schema with the recorded digest."""
    advice = "install mcpgen again"
    for entry in schema.revisions():
        try:
            loaded = schema.load(entry.name)
        except McpgenError as error:
            yield Finding(f"revision {entry.name}", "wrong", str(error), advice)
        else:
            count = len(loaded.errata)
            text = f"{entry.status}, corrections: {count}"
            yield Finding(f"revision {entry.name}", "ok", text)


def _projects(directory: Path) -> Iterator[Finding]:
    """Findings about each project with settings and each package below a directory."""
    for folder, kind in _folders(directory):
        if kind == "project":
            yield from _project(folder)
            continue
        subject = f"package {safe_text(str(folder))}"
        try:
            project = settings.find(folder.resolve())
        except McpgenError:
            project = None  # malformed settings are a finding of their own
        with project.own_revisions() if project is not None else nullcontext():
            try:
                yield from _package(subject, folder)
            except McpgenError as error:
                yield Finding(subject, "wrong", str(error))


def _folders(directory: Path) -> Iterator[tuple[Path, Literal["project", "package"]]]:
    for count, (folder, folders, files) in enumerate(os.walk(directory)):
        if count == _FOLDERS:
            return
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED and not name.startswith(".")
        )
        if settings.FILE in files:
            yield Path(folder), "project"
        if manifest.NAME in files and "__init__.py" in files:
            folders.clear()
            yield Path(folder), "package"


def _project(folder: Path) -> Iterator[Finding]:
    """Findings about the settings in a folder, if any, and the files and programs they name."""
    subject = f"settings {safe_text(str(folder / settings.FILE))}"
    try:
        project = settings.read(folder)
    except McpgenError as error:
        yield Finding(subject, "wrong", str(error))
        return
    if project is None:
        return
    yield Finding(subject, "ok", f"packages: {len(project.packages)}")
    if project.schemas_dir and not (folder / project.schemas_dir).is_dir():
        text = f"schemas_dir {safe_text(project.schemas_dir)} is not there"
        yield Finding(subject, "wrong", text, "name the folder of your revisions, or drop the key")
    for package in project.packages:
        for hook in package.hooks:
            if _program(hook[0], folder) is None:
                text = f"hook {safe_text(hook[0])}: no such program"
                yield Finding(subject, "wrong", text, "install it, or name its path")
    from mcpgen.project import commands as project_commands  # few folders have settings

    try:
        for line, advice in project_commands.differences(project):
            yield Finding(subject, "wrong", line, advice)
    except McpgenError as error:
        yield Finding(subject, "wrong", str(error))


def _program(name: str, folder: Path) -> str | None:
    """The program of a hook: a path relative to the folder of the settings, or a name on PATH."""
    return shutil.which(folder / name if "/" in name or os.sep in name else name)


def _package(subject: str, folder: Path) -> Iterator[Finding]:
    """Findings about a package: the user's files that it was made from, then its own files."""
    record = manifest.read(folder)
    if record is not None:
        yield from _vulnerabilities(subject, folder, record.mcpgen)
    outdated = list(_outdated_templates(folder, record)) if record is not None else []
    yield from outdated
    if outdated:
        return  # the package can be compared once they are up to date
    report = check.check(folder)
    if report.current:
        yield Finding(subject, "ok", "up to date")
        return
    reasons = [
        *(f"changed: {name}: {what}" for name, what in report.schema_changed.items()),
        *([f"made for {safe_text(report.runtime_changed)}"] if report.runtime_changed else []),
        *([report.generator_changed] if report.generator_changed else []),
        *(f"template changed: {name}" for name in report.templates_changed),
        *(["patch changed"] if report.patch_changed else []),
        *(f"edited by hand: {path}" for path in report.edited),
        *(f"missing: {path}" for path in report.missing),
    ]
    yield Finding(subject, "wrong", "; ".join(reasons), _advice(folder, report))


def _vulnerabilities(subject: str, folder: Path, version: str) -> Iterator[Finding]:
    """Findings about known vulnerabilities of a package by its version of mcpgen."""
    for advisory in advisories.advisories_for(version):
        text = f"written by mcpgen {safe_text(version)}, {advisory.id}: {advisory.summary}"
        yield Finding(subject, "wrong", text, advisory.advice(folder))


def _outdated_templates(folder: Path, record: manifest.Manifest) -> Iterator[Finding]:
    """Findings about the overrides of a package whose templates have changed."""
    directory = build_request.templates_directory(folder, record)
    if directory is None:
        return
    for name, state in overrides.states(directory).items():
        if state == "outdated":
            yield Finding(
                f"template {safe_text(str(directory / name))}",
                "wrong",
                f"overrides the template of another version than {__version__}",
                f"mcpgen templates diff {directory}, then mcpgen templates accept {name}"
                f" {directory}",
            )


def _advice(folder: Path, report: check.Report) -> str:
    """The advice for a package that is not up to date."""
    if not report.edited:
        return f"mcpgen update {folder}"
    replaced = f"mcpgen update {folder} --force"
    if report.has_other_reasons:
        return (
            f"mcpgen patch {folder} keeps the edits, once all else is as it was when the"
            f" package was made; {replaced} undoes them"
        )
    return f"mcpgen patch {folder} keeps the edits; {replaced} undoes them"
