"""The cache of built packages: the same inputs, tools and options give the same files.

A key covers everything that a build reads: mcpgen's code, templates and documentation, the versions
of the libraries that write output, Python's version, every known schema and its facts (later
revisions give names to earlier ones), the files of the user, the options, and the directory of the
package, to which paths in its manifest are relative.

The models of revisions have cache entries of their own (`render.datamodel`): packages of other
parts share them.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from functools import cache as computed_once
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mcpgen import cache, paths
from mcpgen.model.schema_sources import Source
from mcpgen.package import build_request, manifest
from mcpgen.package.build_request import BuildRequest
from mcpgen.schema.structure import canonical

_KIND = "package"
_INPUTS = "inputs"
_LIBRARIES = ("black", "datamodel-code-generator", "jinja2", "jsonschema", "tree-sitter-typescript")
"""Distributions whose versions affect the written files or errors."""


def build_package(request: BuildRequest, report: Callable[[str], None]) -> dict[str, str]:
    """Build the files of a package, or read them from the cache.

    The models are made in a process that starts first, unless this process has the library.

    Args:
        request: The package.
        report: Called with each note about a schema file; see `pipeline.build`.

    Raises:
        McpgenError: A schema, its corrections or its facts are wrong.
    """
    inputs = _inputs(request)
    key = _digest(repr(request), inputs)
    kept = cache.read(_KIND, key)
    if kept is not None:
        entry: dict[str, Any] = json.loads(kept)
        for note in entry["notes"]:
            report(note)
        files: dict[str, str] = entry["files"]
        return files
    notes: list[str] = []
    files = _build(request, notes.append, inputs)
    if _inputs(request) == inputs:  # none changed meanwhile
        cache.write(_KIND, key, json.dumps({"files": files, "notes": notes}).encode())
    for note in notes:
        report(note)
    return files


def _build(request: BuildRequest, report: Callable[[str], None], inputs: str) -> dict[str, str]:
    from mcpgen.render.datamodel import Worker, has_library

    with Worker(here=has_library()) as worker:
        before = _digest(request.selection.models, inputs)
        if cache.read(_INPUTS, before) is None:  # models of these are most likely not kept
            worker.begin()
        from mcpgen.package import pipeline

        files = pipeline.build(request, report, worker)
    cache.write(_INPUTS, before, b"")
    return files


def _inputs(request: BuildRequest) -> str:
    """Digest of all inputs of the package except the request.

    The request is in the key by its `repr`, which has digests of the files that it names, except
    those that `build_request.inputs` covers.
    """
    files = [
        (build_request.inputs(source, request.errata), _content(source))
        for source in request.sources
    ]
    schemas = [manifest.combine_fingerprints(_files(paths.schema_dir()))]
    own = paths.own_schema_dir()
    schemas += [manifest.combine_fingerprints(_files(own))] if own is not None else []
    return _digest(files, _tools(), schemas)


def _tools() -> list[str]:
    """Versions of the tools that affect the output."""
    return [manifest.generator_fingerprint(), platform.python_version(), *_versions()]


@computed_once
def _versions() -> tuple[str, ...]:
    return tuple(_version(name) for name in _LIBRARIES)


def _version(name: str) -> str:
    """The version of a distribution; empty for that of an extra that is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _digest(*values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _content(source: Source) -> str:
    """The content that was read from a schema file, which may have changed since."""
    file = source.file
    if file is None:
        return ""
    return manifest.fingerprint(canonical([file.document, dict(file.constants)]))


def _files(folder: Path) -> list[tuple[str, Path]]:
    """The files of a folder of revisions, by their path in it."""
    return [
        (path.relative_to(folder).as_posix(), path)
        for pattern in ("*.toml", "*/*.toml", "*/schema.json")
        for path in folder.glob(pattern)
    ]
