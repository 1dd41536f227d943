"""The tables of methods of the official SDK, rendered from its example, are those that it has."""

from __future__ import annotations

import runpy
from typing import Any

import mcp_types.methods
import mcp_types.version
import pytest

from documents import ROOT
from interop.processes import run_mcpgen

pytestmark = pytest.mark.interop

EXAMPLE = ROOT / "examples" / "python-sdk"

VERSIONED = (
    *("CLIENT_REQUESTS", "CLIENT_NOTIFICATIONS", "CLIENT_RESULTS"),
    *("SERVER_REQUESTS", "SERVER_NOTIFICATIONS", "SERVER_RESULTS"),
)
OF_ALL_REVISIONS = ("MONOLITH_REQUESTS", "MONOLITH_NOTIFICATIONS", "MONOLITH_RESULTS")
REVISIONS = ("KNOWN", "HANDSHAKE", "MODERN")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names of the rendered modules."""
    out = tmp_path_factory.mktemp("sdk") / "out"
    words = ("render", "-q", f"{EXAMPLE / 'templates'}", "-o", f"{out}", "-r", "all")
    run_mcpgen(*words, cwd=out.parent)
    return runpy.run_path(f"{out / 'methods.py'}") | runpy.run_path(f"{out / 'version.py'}")


@pytest.mark.parametrize("name", [*VERSIONED, *OF_ALL_REVISIONS])
def test_each_row_is_that_of_the_official_sdk(name: str, tables: dict[str, Any]) -> None:
    assert {**tables[name]} == {**getattr(mcp_types.methods, name)}


@pytest.mark.parametrize("kind", REVISIONS)
def test_the_revisions_are_those_of_the_official_sdk(kind: str, tables: dict[str, Any]) -> None:
    name = f"{kind}_PROTOCOL_VERSIONS"
    assert (*tables[name],) == getattr(mcp_types.version, name)


@pytest.mark.parametrize("name", ["python-sdk", "python-sdk-1"])
def test_an_example_counts_its_lines(name: str) -> None:
    example = EXAMPLE.with_name(name)
    lines = sum(path.read_text("utf-8").count("\n") for path in (example / "templates").iterdir())
    assert f"| **{lines}** |" in (example / "README.md").read_text("utf-8")
