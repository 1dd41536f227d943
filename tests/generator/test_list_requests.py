"""Lists of drafts that have no pagination, or that may be answered with something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator.schemas import any_of
from mcpgen import schema
from mcpgen.model import schema_sources
from mcpgen.package import build_request, output, pipeline

pytestmark = pytest.mark.costly

OLDEST, *_, NEWEST = (row.name for row in schema.revisions())

LIST = """
import anyio
from pkg import Server
from pkg.testing import connected

server = Server("sums", version="1.0", page_size=1)


@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool()
def double(a: int) -> str:
    return str(2 * a)


async def main() -> None:
    async with connected(server) as pair:
        names = [tool.name for tool in await pair.client.list_tools()]
        assert names == ["add", "double"], names


anyio.run(main)
"""


def without_pages(definitions: dict[str, Any]) -> None:
    """Take the cursors away."""
    for definition in definitions.values():
        definition.get("properties", {}).pop("nextCursor", None)
        params = definition.get("properties", {}).get("params", {})
        params.get("properties", {}).pop("cursor", None)


def with_another_result(definitions: dict[str, Any]) -> None:
    """Let a server ask for input before it lists its tools."""
    results = any_of("InputRequiredResult", "ListToolsResult")
    definitions["ListToolsResultResponse"]["properties"]["result"] = results


@pytest.mark.parametrize(
    ("revision", "change"), [(OLDEST, without_pages), (NEWEST, with_another_result)]
)
def test_a_client_lists_the_tools_of_a_draft(
    tmp_path: Path, revision: str, change: Callable[[dict[str, Any]], None]
) -> None:
    document = json.loads((schema.entry(revision).folder / "schema.json").read_text())
    change(document.get("$defs") or document["definitions"])
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(document))
    request = build_request.BuildRequest("pkg", (schema_sources.of_file(path),))
    files = pipeline.build(request, form=dict)
    output.write(tmp_path / "pkg", files)
    done = subprocess.run(
        [sys.executable, "-c", LIST],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
