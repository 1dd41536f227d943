"""The runtime that packages may import: its versions, and the modules that a package keeps."""

from __future__ import annotations

import pytest

from mcpgen.errors import UsageError
from mcpgen.model import runtime

FOLDERS = ("r1", "r2")


@pytest.mark.parametrize(
    ("version", "minor", "compatible"),
    [("1.9.4", "1.9", ">=1.9,<1.10"), ("0.2.0.dev1", "0.2", ">=0.2,<0.3")],
)
def test_a_runtime_is_compatible_within_its_minor_version(
    version: str, minor: str, compatible: str
) -> None:
    assert runtime.minor(version) == minor
    assert runtime.version_range(version) == compatible


def test_packages_require_the_compatible_versions() -> None:
    assert runtime.requirement_specifier() == f"mcpgen-runtime{runtime.version_range()}"


@pytest.mark.parametrize(
    ("path", "has"),
    [
        ("py.typed", True),
        ("__init__.py", True),
        ("__init__.pyi", True),
        ("server.py", True),
        ("server/toolkit/server.py", False),
        ("client/group.py", True),
        ("client/__init__.py", True),
        ("client/retries.py", False),
        ("r1/models.py", True),
        ("r3/models.py", False),
        ("protocol/connection.py", False),
        ("_wire.py", False),
    ],
)
def test_a_package_on_a_runtime_has_what_its_schema_decides(path: str, has: bool) -> None:
    assert runtime.has_file(path, FOLDERS) is has


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (".server.chosen", ".server"),
        (".r2.models", ".r2.models"),
        (".client.sync_client", ".client.sync_client"),
        (".client.retries", "mcpgen_runtime.client.retries"),
        (".errors", "mcpgen_runtime.errors"),
    ],
)
def test_other_modules_are_imported_from_the_runtime(module: str, name: str) -> None:
    assert runtime.module_of(module, FOLDERS) == name


def test_a_runtime_is_for_models_of_one_library() -> None:
    runtime.check_form("vendored", "pydantic", "lenient")
    runtime.check_form("installed", "msgspec", "lenient")
    with pytest.raises(UsageError, match="--models pydantic: expected --runtime vendored, since"):
        runtime.check_form("installed", "pydantic", "lenient")
