"""The types of a revision: official examples, absent members, copies, deprecated features."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kit.rules import module_of
from kit.scripted import connect_scripted
from kit.wire import ALL
from mcpgen_runtime import (
    REVISIONS,
    UNSET,
    InvalidParamsError,
    _wire,
    models,
    replace,
)
from mcpgen_runtime._wire import STRUCTS, fields

every = pytest.mark.parametrize("revision", ALL)

TOOL: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}


@every
def test_only_members_of_any_json_value_tell_absence_from_null(revision: str) -> None:
    module = module_of(revision)
    kinds: dict[str, Any] = dict(inspect.getmembers(module, inspect.isclass))
    defaults = {
        f"{kind.__name__}.{field.name}": field.default
        for kind in kinds.values()
        if kind.__module__ == module.__name__ and issubclass(kind, STRUCTS)
        for field in fields(kind)
        if field.default is not msgspec.NODEFAULT
    }
    others = {name for name, default in defaults.items() if default is not None}
    assert {defaults[name] for name in others} == {UNSET}
    assert {name.partition(".")[2] for name in others} <= {"data", "structured_content"}


@every
async def test_none_for_an_optional_argument_sends_nothing(revision: str) -> None:
    async with connect_scripted(revision, {"tools": []}, {"content": []}) as (client, server):
        await client.list_tools_page(None)
        await client.call_tool("a", None)
        assert server.asked()[-2:] == [{}, {"name": "a"}]


async def test_none_for_a_required_argument_is_refused() -> None:
    async with connect_scripted("2025-06-18") as (client, _):
        with pytest.raises(InvalidParamsError, match="Expected `str`, got `null`"):
            await client.call_tool(None)


Change = Callable[[dict[str, Any]], object]

DEFECTS: dict[str, Change] = {
    # A request inside a result has no id: the schema does not know one.
    "list-roots-request.json": lambda message: message.pop("id"),
    # The schema requires both; a peer that leaves them out means these values.
    "read-resource-result-response.json": lambda message: message["result"].update(
        {"ttlMs": 0, "cacheScope": "private"}
    ),
}
"""Examples that are not what their schema says, and what would make them so."""


def examples(spec: Path, revision: str) -> Iterator[tuple[str, Path]]:
    """Every official example of a revision, each with the type it is one of."""
    for path in sorted((spec / "schema" / revision / "examples").glob("*/*.json")):
        yield path.parent.name, path


def exact(value: Any) -> Any:
    """A JSON value in a form in which 1, 1.0 and true differ, and the order of members does not."""
    if isinstance(value, dict):
        return {key: exact(child) for key, child in value.items()}
    if isinstance(value, list):
        return [exact(child) for child in value]
    return (type(value), value)


@pytest.mark.parametrize("revision", REVISIONS)
def test_official_examples_stay_the_same_json(spec: Path, revision: str) -> None:
    models = module_of(revision)
    for name, path in examples(spec, revision):
        text = path.read_bytes()
        decoded = _wire.decoder(getattr(models, name))(text)
        expected = json.loads(text)
        DEFECTS.get(path.name, id)(expected)
        assert exact(json.loads(_wire.encode(decoded))) == exact(expected), path.name


def test_there_are_official_examples(spec: Path) -> None:
    assert any(True for revision in REVISIONS for _ in examples(spec, revision))


@every
def test_a_copy_has_the_changed_members_and_the_others(revision: str) -> None:
    tool_class: Any = module_of(revision).Tool
    tool = tool_class(name="a", input_schema={"type": "object"}, description="d")
    copied = replace(tool, name="b", description=None)
    assert type(copied) is type(tool)
    assert (copied.name, copied.description, copied.input_schema) == ("b", None, tool.input_schema)
    assert (tool.name, tool.description) == ("a", "d")


@pytest.mark.parametrize("name", ["structuredContent", "extra"])
def test_a_name_that_is_no_member_is_refused_with_those_that_are(name: str) -> None:
    result = models.CallToolResult(content=[])
    with pytest.raises(TypeError, match=f"^replace: CallToolResult has no member {name}; its mem"):
        replace(result, **{name: 1})
    with pytest.raises(TypeError, match=r"content.*is_error"):
        replace(result, **{"is_error": True, name: 1})
    with pytest.raises(TypeError, match=r"^replace: expected an object of a message, got a dict$"):
        replace({"name": "a"}, name="b")
