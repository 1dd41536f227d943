"""A draft with unions that nothing decides is a package that works, and says what it left open."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.draft_packages import SERVER, check_program, definitions_of, write_package
from generator.schemas import COUNT, TEXT, obj, ref
from mcpgen import schema

pytestmark = pytest.mark.processes

NAMES = [row.name for row in schema.revisions()]
SERVES = f"""{SERVER}
import anyio
from pkg.testing import connected

async def main() -> None:
    async with connected(server) as pair:
        (tool,) = await pair.client.list_tools()
        assert tool.name == "add", tool
        result = await pair.client.call_tool("add", {{"a": 1}})
        assert result.content == [{{"type": "text", "text": "2"}}], result
        prompt = await pair.client.get_prompt("greet", {{"city": "you"}})
        content = prompt.messages[0].content
        assert content == {{"type": "text", "text": "hi you"}}, prompt

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


@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_a_package_serves_tools_and_prompts_of_undecided_content(name: str, tmp_path: Path) -> None:
    definitions = definitions_of(name)
    definitions |= {"Odd": obj(odd=TEXT), "Odder": obj(odder=TEXT)}
    block = definitions.get("ContentBlock")
    owners = [definitions["CallToolResult"]["properties"]["content"]["items"]]
    owners += [definitions["PromptMessage"]["properties"]["content"]]
    for union in owners if block is None else [block]:
        union["anyOf"] += [ref("Odd"), ref("Odder")]
    reported = write_package(tmp_path, definitions)
    assert "a union that nothing decides (Odd and Odder), taken as any JSON value" in reported
    check_program(tmp_path, SERVES)


UNIONS = {
    "objects and a text": [obj("a", a=TEXT), obj("b", b=COUNT), TEXT],
    "maps": [{"type": "object", "additionalProperties": each} for each in (TEXT, COUNT)],
    "an object and a map": [obj("a", a=TEXT), {"type": "object", "additionalProperties": COUNT}],
}


@pytest.mark.parametrize("case", UNIONS)
def test_an_undecided_member_accepts_and_keeps_any_value(case: str, tmp_path: Path) -> None:
    definitions = definitions_of(NAMES[-1])
    definitions["Tool"]["properties"]["odd"] = {"anyOf": UNIONS[case]}
    reported = write_package(tmp_path, definitions, ("types",))
    (note,) = [line for line in reported.splitlines() if "/properties/odd" in line]
    assert "schema.json#/$defs/Tool/properties/odd: a union that nothing decides" in note
    check_program(tmp_path, READS)
