"""A package built once, for the tests that need a real one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from generator.command_line import Installation
from mcpgen import cache, schema
from mcpgen.model import schema_sources
from mcpgen.package import build_request, output, pipeline
from mcpgen.render import datamodel

REVISION = schema.revisions()[0].name

datamodel.import_library()  # else each package that a test builds starts a process for it


@pytest.fixture(scope="session")
def built_package() -> Mapping[str, str]:
    """The files of a package with the smallest revision."""
    return pipeline.build(build_request.BuildRequest("pkg", schema_sources.by_name((REVISION,))))


@pytest.fixture
def installation(tmp_path: Path, root: Path) -> Installation:
    """mcpgen in a folder of the test's own."""
    return Installation(tmp_path / "site", root)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache of the test's own, which is empty."""
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache.folder()


@pytest.fixture
def package(built_package: Mapping[str, str], tmp_path: Path) -> Path:
    """The directory of that package, just written."""
    directory = tmp_path / "pkg"
    output.write(directory, built_package)
    return directory
