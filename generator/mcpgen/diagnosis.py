"""What may be wrong with an installation of mcpgen and with the packages that it wrote.

Each finding is one line: what was looked at, what was found, and what to do if that is wrong.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from mcpgen import __version__, check, manifest, paths, schema
from mcpgen.console import Console
from mcpgen.errors import McpgenError, safe_text

_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__"})
"""Folders that are not searched for packages; nor are those whose name starts with a dot."""

_FOLDERS = 20_000
"""Folders that are searched for packages at most."""

State = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What was looked at.
        state: `ok`; `missing` if it is optional and not there; `wrong` if something must be done.
        text: What was found.
        advice: What to do; empty if nothing.
    """

    subject: str
    state: State
    text: str
    advice: str = ""


def diagnose(console: Console, directory: Path) -> bool:
    """Show what is found of the installation and of the packages below a directory.

    Returns:
        Whether nothing is wrong.
    """
    found = [*_installation(), *_requirements(), *_schemas(), *_packages(directory)]
    for finding in found:
        line = f"{finding.state}: {finding.subject}: {finding.text}"
        advice = f"; {finding.advice}" if finding.advice else ""
        (console.summary if finding.state == "ok" else console.text)(line + advice)
    sound = all(finding.state != "wrong" for finding in found)
    console.record({"sound": sound, "findings": [asdict(finding) for finding in found]})
    return sound


def _installation() -> Iterator[Finding]:
    yield Finding("mcpgen", "ok", f"{__version__} in {paths.PACKAGE}")
    yield Finding("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield Finding("data", "ok", f"schemas and templates in {paths.data_root()}")


def _requirements() -> Iterator[Finding]:
    """What the distribution requires, against what is installed."""
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
            continue  # meant for another system
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
    """Whether a requirement is needed here, with an extra; with none where that is empty."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _schemas() -> Iterator[Finding]:
    """Each revision that mcpgen has: its schema against the digest on record."""
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


def _packages(directory: Path) -> Iterator[Finding]:
    """Each package of mcpgen's below a directory."""
    for folder in _package_folders(directory):
        subject = f"package {safe_text(str(folder))}"
        try:
            report = check.check(folder)
        except McpgenError as error:
            yield Finding(subject, "wrong", str(error))
            continue
        if report.current:
            yield Finding(subject, "ok", "up to date")
            continue
        reasons = [
            *(f"{name}: {what} changed" for name, what in report.schema_changed.items()),
            *([report.generator_changed] if report.generator_changed else []),
            *(f"template changed: {name}" for name in report.templates_changed),
            *(["adopted rules changed"] if report.adopted_changed else []),
            *(f"edited by hand: {path}" for path in report.edited),
            *(f"missing: {path}" for path in report.missing),
        ]
        advice = f"mcpgen update {folder}" + (" --force" if report.edited else "")
        yield Finding(subject, "wrong", "; ".join(reasons), advice)


def _package_folders(directory: Path) -> Iterator[Path]:
    for count, (folder, folders, files) in enumerate(os.walk(directory)):
        if count == _FOLDERS:
            return
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED and not name.startswith(".")
        )
        if manifest.NAME in files and "__init__.py" in files:
            folders.clear()
            yield Path(folder)
