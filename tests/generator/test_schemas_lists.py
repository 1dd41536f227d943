"""Lists of drafts that have no pagination, or that may be answered with something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator.draft_packages import SERVER, check_program, definitions_of, write_package
from generator.schemas import any_of
from mcpgen import schema

pytestmark = pytest.mark.costly

OLDEST, *_, NEWEST = (row.name for row in schema.revisions())

LIST = f"""{SERVER}
import anyio
from pkg.testing import connected

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
    definitions = definitions_of(revision)
    change(definitions)
    write_package(tmp_path, definitions)
    check_program(tmp_path, LIST)
