"""The generated package as a distribution: which modules it imports and when, what it says."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import documents
from conventions.sources import (
    PACKAGE,
    ROOT,
    nodes_for_types,
    python_files,
    relative_name,
    text_of,
    tree_of,
)
from mcpgen import __version__

pytestmark = pytest.mark.lengthy

CORE = {"msgspec", "anyio"}
"""Libraries that a module of the package may import at its top."""

OPTIONAL = {
    "aiohttp",
    "argcomplete",
    "cryptography",
    "dotenv",
    "filelock",
    "httpcore2",
    "httpx2",
    "joserfc",
    "jsonschema",
    "keyring",
    "mcpgen",
    "opentelemetry",
    "platformdirs",
    "pytest",
    "rich",
    "ruamel",
    "tomlkit",
    "uritemplate",
    "uvicorn",
    "valkey",
    "watchfiles",
}
"""Libraries that a module of the package may import only where it uses them."""

TYPES_ONLY = {"typing_extensions"}
"""Libraries that type checkers bundle; imported only under `TYPE_CHECKING`."""

BROUGHT_ALONG = {"idna", "sniffio", "typing_extensions", "exceptiongroup"}
"""Libraries that the core dependencies import themselves."""

PROBE = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize(
    ("statement", "loads_revisions"),
    [
        ("import mcpgen_runtime", False),
        ("from mcpgen_runtime import Server", False),
        ("from mcpgen_runtime import *", True),
        ("import mcpgen_runtime.testing", True),
    ],
)
def test_importing_the_package_loads_only_core_dependencies(
    statement: str, loads_revisions: bool
) -> None:
    """In a fresh interpreter."""
    command = [sys.executable, "-c", PROBE.format(statement=statement)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=PACKAGE.parent)
    loaded: list[str] = json.loads(done.stdout)
    tops = {name.partition(".")[0] for name in loaded if not name.startswith("_")}
    others = tops - {PACKAGE.name} - set(sys.stdlib_module_names)
    assert others <= CORE | BROUGHT_ALONG
    revisions = [name for name in loaded if name.startswith("mcpgen_runtime.r2")]
    assert loads_revisions or revisions == []


def foreign_imports(path: Path) -> Iterator[tuple[ast.stmt, set[str]]]:
    """Each import in a file, and what it takes from elsewhere: no module of Python or our own."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Import():
                names = {alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom(level=0, module=str(module)):
                names = {module.partition(".")[0]}
            case _:
                continue
        yield node, names - set(sys.stdlib_module_names)


def forbidden_imports(path: Path) -> Iterator[str]:
    top, unrun = {*tree_of(path).body}, nodes_for_types(path)
    for node, names in foreign_imports(path):
        allowed = CORE if node in top else CORE | OPTIONAL
        if node in unrun:
            allowed = allowed | TYPES_ONLY
        for name in sorted(names - allowed):
            yield f"{relative_name(path)}:{node.lineno}: {name}"


def test_a_module_of_the_package_imports_only_what_is_allowed() -> None:
    assert [line for path in python_files(PACKAGE) for line in forbidden_imports(path)] == []


PROJECT = tomllib.loads(text_of(ROOT / "pyproject.toml"))
GENERATED = tomllib.loads(text_of(ROOT / "generated" / "pyproject.toml"))["project"]
SEALED = PACKAGE / "server" / "asgi" / "sealed_sessions.py"
"""The module of sessions that any process serves, which few servers over HTTP have."""


HTTP = python_files(PACKAGE / "server" / "asgi", PACKAGE / "transports" / "http")


@pytest.mark.parametrize(
    ("extra", "files"),
    [
        ("http", [path for path in HTTP if path != SEALED]),
        ("auth", python_files(PACKAGE / "auth")),
        ("auth-store", [PACKAGE / "client" / "auth" / "stores.py"]),
        ("scaling", [SEALED]),
        ("shared", python_files(PACKAGE / "server" / "shared")),
    ],
)
def test_the_extras_of_features_bring_what_these_import(extra: str, files: list[Path]) -> None:
    listed = PROJECT["project"]["optional-dependencies"][extra]
    names = {each.partition(">=")[0] for each in listed}
    imported = {name for path in files for _, line in foreign_imports(path) for name in line}
    assert imported - CORE - {"httpcore2"} == names  # which httpx2 brings along


def test_it_has_the_version_license_and_pythons_of_the_tool() -> None:
    assert GENERATED["version"] == __version__
    for key in ("license", "requires-python", "authors"):
        assert GENERATED[key] == PROJECT["project"][key]


def test_both_distributions_lead_to_the_site_and_the_repository() -> None:
    urls = PROJECT["project"]["urls"]
    assert GENERATED["urls"] == urls
    assert urls["Documentation"] == documents.SITE
    assert urls["Source"] == documents.REPOSITORY
    assert documents.page_at(urls["Changelog"]) == "CHANGELOG.md"


def test_it_needs_what_the_package_is_tested_with() -> None:
    extras = GENERATED["optional-dependencies"]
    every = [*GENERATED["dependencies"], *extras["templates"], *extras["schemas"]]
    assert sorted(every) == sorted(PROJECT["dependency-groups"]["package"])
    assert extras["http"] == PROJECT["project"]["optional-dependencies"]["http"]
