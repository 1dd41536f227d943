"""A draft with unions that nothing decides is a package that works, and says what it left open."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generator.schemas import COUNT, TEXT, obj
from mcpgen import schema
from mcpgen.model import schema_sources
from mcpgen.model.choice import selection
from mcpgen.package import build_request, output, pipeline

pytestmark = pytest.mark.processes

NAMES = [row.name for row in schema.revisions()]
SERVES = """
import anyio
from pkg import Server
from pkg.testing import connected

server = Server("sums")

@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)

@server.prompt()
def greet(name: str) -> str:
    return f"hello {name}"

async def main() -> None:
    async with connected(server) as pair:
        (tool,) = await pair.client.list_tools()
        assert tool.name == "add", tool
        result = await pair.client.call_tool("add", {"a": 1, "b": 2})
        assert result.content == [{"type": "text", "text": "3"}], result
        prompt = await pair.client.get_prompt("greet", {"name": "you"})
        content = prompt.messages[0].content
        assert content == {"type": "text", "text": "hello you"}, prompt

anyio.run(main)
"""

READS = """
import msgspec
import pkg
from pkg.rdraft.models import Tool

values = ['"x"', '1', 'true', '["x"]', '[1]', '{"a": "x"}', '{"b": 2}', '{"c": null}']
for value in values:
    text = b'{"inputSchema":{"type":"object"},"name":"t","odd":%s}' % value.encode()
    tool = pkg.decoder(Tool)(text)
    assert tool.odd == msgspec.json.decode(value), tool
    assert msgspec.json.decode(pkg.encode(tool)) == msgspec.json.decode(text)
"""


def published_definitions(name: str) -> tuple[dict[str, Any], str]:
    """The definitions of a known revision, to be changed, and where a file has them."""
    document = json.loads((schema.entry(name).folder / "schema.json").read_text())
    key = "$defs" if "$defs" in document else "definitions"
    definitions: dict[str, Any] = document[key]
    return definitions, key


def write_package(
    folder: Path,
    key: str,
    definitions: dict[str, Any],
    parts: tuple[str, ...],
    stated: str = "",
    more: tuple[str, ...] = (),
) -> str:
    """Write the package of a schema of these definitions; what was reported.

    Args:
        stated: The text of a facts file.
        more: Features of the package.
    """
    path = folder / "draft.json"
    path.write_text(json.dumps({key: definitions}))
    reported: list[str] = []
    features = ("methods",) if not parts or "server" in parts else ()
    chosen = selection(parts, (), features=(*features, *more))
    facts = folder / "facts.toml"
    facts.write_text(stated)
    source = schema_sources.of_file(path, facts if stated else None)
    request = build_request.BuildRequest("pkg", (source,), selection=chosen)
    output.write(folder / "pkg", pipeline.build(request, reported.append, form=dict))
    return "\n".join(reported)


def check_program(folder: Path, program: str) -> None:
    """Run a program beside the package."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_a_package_serves_tools_and_prompts_of_undecided_content(name: str, tmp_path: Path) -> None:
    definitions, key = published_definitions(name)
    definitions |= {"Odd": obj(odd=TEXT), "Odder": obj(odder=TEXT)}
    odd = [{"$ref": f"#/{key}/{each}"} for each in ("Odd", "Odder")]
    block = definitions.get("ContentBlock")
    owners = [definitions["CallToolResult"]["properties"]["content"]["items"]]
    owners += [definitions["PromptMessage"]["properties"]["content"]]
    for union in owners if block is None else [block]:
        union["anyOf"] += odd
    reported = write_package(tmp_path, key, definitions, ())
    assert "a union that nothing decides (Odd and Odder), taken as any JSON value" in reported
    check_program(tmp_path, SERVES)


UNIONS = {
    "objects and a text": [obj("a", a=TEXT), obj("b", b=COUNT), TEXT],
    "objects that require nothing": [obj(a=TEXT), obj(b=COUNT)],
    "arrays": [{"type": "array", "items": TEXT}, {"type": "array", "items": COUNT}],
    "maps": [{"type": "object", "additionalProperties": each} for each in (TEXT, COUNT)],
    "an object and a map": [obj("a", a=TEXT), {"type": "object", "additionalProperties": COUNT}],
}


@pytest.mark.parametrize("case", UNIONS)
def test_an_undecided_member_accepts_and_keeps_any_value(case: str, tmp_path: Path) -> None:
    definitions, key = published_definitions(NAMES[-1])
    definitions["Tool"]["properties"]["odd"] = {"anyOf": UNIONS[case]}
    reported = write_package(tmp_path, key, definitions, ("types",))
    (note,) = [line for line in reported.splitlines() if "/properties/odd" in line]
    assert "draft.json#/$defs/Tool/properties/odd: a union that nothing decides" in note
    check_program(tmp_path, READS)
