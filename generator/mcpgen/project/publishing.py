"""Files to publish a server with: `server.json` for the registry, `manifest.json` for a bundle.

`mcpgen new server --publish` writes both, and `mcpgen publish check` compares them with the
official schemas and with the project. The schema of bundles (MCPB 0.4) requires `mcp_config` for
servers that uv runs, although its documentation calls that optional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from mcpgen import paths
from mcpgen.console import Console, count_of
from mcpgen.errors import InputError, SettingsError, UsageError, safe_text
from mcpgen.input_files import read_json, read_text
from mcpgen.json_types import is_array, is_object
from mcpgen.project.skeleton import Project
from mcpgen.toml_records import read_toml

SERVER, BUNDLE = "server.json", "manifest.json"

_SCHEMAS = {SERVER: "server.json", BUNDLE: "bundle.json"}
"""The official schemas of the files, without their prose, in `schema/publishing`."""

_SHOWN = 50
"""Limit of the problems that are shown; the rest is counted."""

_MAX_BYTES = 1 << 20
"""Size of the largest file that is read to be published, in bytes."""

_NAMESPACE = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+", re.IGNORECASE | re.ASCII)
_MARK = re.compile(r"mcp-name:\s*(\S+)")
_EXACT = re.compile(r"[0-9][0-9A-Za-z.+-]*", re.ASCII)


@dataclass(frozen=True)
class Published:
    """The parts of a project that published files repeat.

    Attributes:
        name: Its name as a distribution.
        version: Its version; `None` if a build computes it.
        readme: The text of its README, which an index shows.
    """

    name: str
    version: str | None
    readme: str


def check_namespace(text: str) -> str:
    """Check and return the namespace of a server in the registry.

    Raises:
        UsageError: The text is no reverse domain name.
    """
    if not _NAMESPACE.fullmatch(text):
        raise UsageError(
            "--publish: expected a namespace of yours in the registry, such as io.github.acme, got"
            f" {safe_text(text)!r}"
        )
    return text


def files(project: Project, namespace: str) -> dict[str, str]:
    """The files for publishing a new server, by path; without a bundle for HTTP only."""
    description = f"The MCP server {project.name}"
    transport: dict[str, Any] = {"type": "stdio"}
    if not project.stdio:
        transport = {"type": "streamable-http", "url": "http://127.0.0.1:8000/mcp"}
    index = {
        "registryType": "pypi",
        "identifier": project.name,
        "version": "0.1.0",
        "transport": transport,
    }
    server = {
        "$schema": _schema(SERVER)["$id"],
        "name": f"{namespace}/{project.name}",
        "description": description,
        "version": "0.1.0",
        "packages": [index],
    }
    if not project.stdio:
        return {SERVER: _text(server)}
    command = ["run", "--directory", "${__dirname}", project.name]
    bundle = {
        "manifest_version": "0.4",
        "name": project.name,
        "version": "0.1.0",
        "description": description,
        "author": {"name": namespace.rpartition(".")[2]},
        "server": {
            "type": "uv",
            "entry_point": f"src/{project.module}/__main__.py",
            "mcp_config": {"command": "uv", "args": command},
        },
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"runtimes": {"python": ">=3.11"}},
    }
    return {SERVER: _text(server), BUNDLE: _text(bundle)}


def _text(document: object) -> str:
    return json.dumps(document, indent=2) + "\n"


def check(console: Console, directory: Path) -> bool:
    """Report the problems that prevent a project from being published.

    Returns:
        Whether there are none.

    Raises:
        UsageError: The directory has no project, or no files for publishing.
    """
    present = [name for name in (SERVER, BUNDLE) if _is_within(directory / name, directory)]
    if not present:
        raise UsageError(
            f"{directory}: expected {SERVER} or {BUNDLE}, got neither; mcpgen new server --publish"
            " NAMESPACE writes both"
        )
    project = _read_project(directory)
    problems = [
        safe_text(problem, 400)
        for name in present
        for problem in _problems(directory, name, project)
    ]
    for problem in problems[:_SHOWN]:
        console.text(problem)
    if rest := len(problems[_SHOWN:]):
        console.text(f"... {count_of(rest, 'more problem')}")
    if problems:
        console.summary(f"{directory}: {count_of(len(problems), 'problem')}")
    else:
        console.summary(f"{directory}: {' and '.join(present)} can be published")
    console.record({"files": present, "problems": problems})
    return not problems


def _read_project(directory: Path) -> Published:
    path = directory / "pyproject.toml"
    try:
        project = read_toml(path, SettingsError)[0]["project"]
        name = str(project["name"])
    except (InputError, KeyError, TypeError):
        raise UsageError(f"{path}: expected a file with [project] and its name") from None
    version, readme = project.get("version"), project.get("readme", "README.md")
    if is_object(readme):
        readme = readme.get("file", "")
    place = directory / str(readme)
    try:
        text = (
            read_text(place, SettingsError, "text", _MAX_BYTES)
            if _is_within(place, directory)
            else ""
        )
    except InputError:
        text = ""
    return Published(name, None if version is None else str(version), text)


def _is_within(place: Path, directory: Path) -> bool:
    """Whether there is a file in a directory, which no link leads out of."""
    return place.is_file() and place.resolve().is_relative_to(directory.resolve())


def _problems(directory: Path, name: str, project: Published) -> Iterator[str]:
    """The problems of a file: violations of its schema, or else problems of its content."""
    document = read_json(directory / name, SettingsError, _MAX_BYTES)
    violations = [*_violations(name, document)]
    yield from violations
    if violations or not is_object(document):
        return
    yield from _version_problems(name, "version", document["version"], project)
    if name == SERVER:
        yield from _server_problems(document, project)
    elif document["name"] != project.name:
        yield f"{BUNDLE}: name: expected that of pyproject.toml, {project.name!r}"
    if name == BUNDLE:
        entry = str(document["server"]["entry_point"])
        if not _is_within(directory / entry, directory):
            yield f"{BUNDLE}: server.entry_point: there is no file {entry}"


def _schema(name: str) -> dict[str, Any]:
    """The official schema of a file; that of `server.json` has its URL as `$id`."""
    text = (paths.schema_dir() / "publishing" / _SCHEMAS[name]).read_text("utf-8")
    return dict(json.loads(text))


def _violations(name: str, document: object) -> Iterator[str]:
    from jsonschema import Draft7Validator

    validator: Any = Draft7Validator(_schema(name))
    for error in validator.iter_errors(document):
        place = ".".join(map(str, error.absolute_path))
        yield f"{name}: {place}: {error.message}" if place else f"{name}: {error.message}"


def _version_problems(name: str, place: str, version: str, project: Published) -> Iterator[str]:
    if not _EXACT.fullmatch(version):
        yield f"{name}: {place}: expected one version, such as 1.0.2, got {version!r}"
    elif project.version is not None and version != project.version:
        yield f"{name}: {place}: expected that of pyproject.toml, {project.version}, got {version}"


def _server_problems(document: dict[str, Any], project: Published) -> Iterator[str]:
    """Content that the schema allows but the registry refuses, or that contradicts the project."""
    packages = document.get("packages", [])
    if not packages and not document.get("remotes"):
        yield f"{SERVER}: expected packages or remotes, got neither"
    schema, expected = document.get("$schema"), _schema(SERVER)["$id"]
    if schema != expected:
        yield f"{SERVER}: $schema: expected {expected}, got {schema}"
    for number, package in enumerate(packages if is_array(packages) else []):
        if package["registryType"] != "pypi":
            continue
        place = f"packages.{number}"
        yield from _version_problems(
            SERVER, f"{place}.version", package.get("version", ""), project
        )
        identifier = package["identifier"]
        if canonicalize_name(identifier) != canonicalize_name(project.name):
            yield f"{SERVER}: {place}.identifier: expected {project.name}, got {identifier}"
        marks = _MARK.findall(project.readme)
        if document["name"] not in marks:
            given = f"got {', '.join(marks)}" if marks else "got none"
            yield f"README: expected the text `mcp-name: {document['name']}`, {given}"
