"""The published states of the schema, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

ARCHIVE = "history.tar.xz"


@pytest.fixture(scope="session")
def history(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the published states, unpacked."""
    archive = spec / ARCHIVE
    if not archive.is_file():
        pytest.skip("there is no archive of published states")
    folder = tmp_path_factory.mktemp("history")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / "history"
