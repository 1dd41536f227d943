"""A terminal: what of a server is shown there, and what lines in answer to its questions mean."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgen_runtime import ConfigInput, ProtocolError
from mcpgen_runtime.client.item_texts import argument_types, block_text, item_row
from mcpgen_runtime.client.terminal_handlers import TerminalHandlers, ask_input

pytestmark = pytest.mark.on_asyncio

Ask = Callable[..., Any]
TEXT = {"type": "string"}


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts lines into the standard input."""
    return lambda lines: monkeypatch.setattr("sys.stdin", io.StringIO(lines))


async def answer(method: str, params: Mapping[str, Any]) -> Any:
    """The response of the handler of a method."""
    row: Any = SimpleNamespace(name=method)
    handler = TerminalHandlers().mcp_handler(row)
    assert handler is not None
    context: Any = SimpleNamespace(method=row)
    return await handler(params, context)


async def elicit_field(field: Any, required: tuple[str, ...] = ()) -> Any:
    """The answer to a form with one field, `f`."""
    schema = {"type": "object", "properties": {"f": field}, "required": [*required]}
    return await answer("elicitation/create", {"message": "m", "requestedSchema": schema})


@pytest.mark.parametrize(
    ("line", "action"),
    [("y", "accept"), ("Yes", "accept"), ("d", "decline"), ("c", "cancel"), ("x", "cancel")],
)
async def test_a_url_is_opened_declined_or_cancelled(
    writes: Ask, capsys: pytest.CaptureFixture[str], line: str, action: str
) -> None:
    writes(f"{line}\n")
    params = {"message": "Log\x1b in", "url": "https://host/x"}
    assert await answer("elicitation/create", params) == {"action": action}
    shown = capsys.readouterr().err
    assert "\nThe server asks: Log" in shown
    assert "\x1b" not in shown
    assert "It wants you to open https://host/x\nHave you done that? [y]es" in shown


@pytest.mark.parametrize("lines", ["", "\n", "y\n"])
async def test_the_end_of_the_input_cancels(writes: Ask, lines: str) -> None:
    writes(lines)
    assert await elicit_field({"type": "string"}) == {"action": "cancel"}


@pytest.mark.parametrize(
    ("field", "lines", "value"),
    [
        ({"type": "string"}, "a b\n", "a b"),
        ({"type": "string", "minLength": 3}, "a\nabc\n", "abc"),
        *(({"type": "boolean"}, f"{yes}\n", True) for yes in ("y", "YES", "true")),
        *(({"type": "boolean"}, f"maybe\n{no}\n", False) for no in ("n", "No", "false")),
        ({"type": "integer"}, "x\n1.5\n3\n", 3),
        ({"type": "number"}, "1.5\n", 1.5),
        ({"type": "string", "default": "d"}, "\n", "d"),
        ({"type": "string", "default": "d"}, "e\n", "e"),
        ({"type": "string", "enum": ["a", "b"]}, "c\nb\n", "b"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "A\na\n", "a"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "a,c\n a, ,b\n", ["a", "b"]),
    ],
)
async def test_a_field_is_asked_for_until_it_is_valid(
    writes: Ask, capsys: pytest.CaptureFixture[str], field: Any, lines: str, value: Any
) -> None:
    writes(f"y\n{lines}")
    assert await elicit_field(field) == {"action": "accept", "content": {"f": value}}
    _, *more = lines.splitlines()
    assert ("expected " in capsys.readouterr().err) is bool(more)


async def test_a_required_field_is_not_empty_and_another_may_be(writes: Ask) -> None:
    writes("y\na\n2\n")
    schema = {"properties": {"f": TEXT, "g": {"type": "integer"}}}
    form = {"message": "m", "requestedSchema": schema}
    assert (await answer("elicitation/create", form))["content"] == {"f": "a", "g": 2}
    writes("y\n\n")
    assert await elicit_field({"type": "string"}) == {"action": "accept", "content": {}}
    writes("y\n\na\n")
    field = {"type": "string", "minLength": 1}
    assert (await elicit_field(field, ("f",)))["content"] == {"f": "a"}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"title": "T", "type": "string"}, "  T (string, may be empty): "),
        ({"description": "About"}, "  About\n  f (text, may be empty): "),
        ({"type": "integer", "default": 2}, "  f (2 if empty): "),
        ({"enum": ["a"], "enumNames": ["One"]}, "    a: One\n  f ("),
        ({"enum": ["a"]}, "    a\n  f ("),
        ({"enum": ["a", "b"], "enumNames": ["One"]}, "    a: One\n  f ("),
        ({"items": {"anyOf": [{"const": "a", "title": "One"}, 1]}}, "    a: One\n  f ("),
    ],
)
async def test_a_field_is_shown_with_its_choices(
    writes: Ask, capsys: pytest.CaptureFixture[str], field: Any, text: str
) -> None:
    writes("y\n")
    await elicit_field(field)
    assert text in capsys.readouterr().err


async def test_the_user_answers_in_place_of_a_model(
    writes: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    image = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Hi\nthere"}},
        {"role": "user", "content": image},
    ]
    params = {"messages": messages, "maxTokens": 9, "systemPrompt": "Be"}
    writes("one\ntwo\n\nthree\n")
    result = await answer("sampling/createMessage", params)
    assert result["content"] == {"type": "text", "text": "one\ntwo"}
    assert (result["role"], result["model"], result["stopReason"]) == (
        *("assistant", "human"),
        "endTurn",
    )
    shown = capsys.readouterr().err
    assert "\nThe server asks a model:\n  system: Be\n  user: Hi\n  there\n  user: {" in shown
    assert shown.count("Answer, an empty line ends it: ") == 1
    writes("\n")
    with pytest.raises(ProtocolError, match="the user refused") as caught:
        await answer("sampling/createMessage", params)
    assert caught.value.code == -1


@pytest.mark.parametrize(
    ("question", "lines", "value", "text"),
    [
        (ConfigInput("a"), "\nv\n", "v", "a: a: "),
        (ConfigInput("a", description="What"), "v\n", "v", "What: "),
        (ConfigInput("a", default="d"), "\n", "d", "a [d]: "),
        (ConfigInput("a", options=("x", "y")), "z\ny\n", "y", "a (x, y): a (x, y): "),
        (ConfigInput("a"), "", None, "a: "),
    ],
)
def test_an_input_of_a_configuration_is_asked_for(
    writes: Ask,
    capsys: pytest.CaptureFixture[str],
    question: ConfigInput,
    lines: str,
    value: str | None,
    text: str,
) -> None:
    writes(lines)
    assert ask_input(question) == value
    assert capsys.readouterr().err == text


def test_a_password_is_asked_for_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: f"typed at {prompt}")
    secret = ConfigInput("key", description="Key", password=True, default="hidden")
    assert ask_input(secret) == "typed at Key: "


@pytest.mark.parametrize(
    ("rules", "types"),
    [
        ({"type": ["string", "null", 1, "integer"]}, ["string", "integer"]),
        ({"const": "a"}, ["'a'"]),
        ({"const": None}, ["null"]),
        ({"enum": [True, None, 2]}, ["true", "2"]),
        ({"enum": [*range(8)]}, [*map(str, range(8))]),
        ({"enum": [*range(9)]}, [*map(str, range(8)), "..."]),
        ({"const": "x" * 41}, [f"{'x' * 40!r}... (41 characters)"]),
        ({"anyOf": [{"oneOf": [{"anyOf": [{"oneOf": [TEXT]}]}]}]}, ["string"]),
        ({"anyOf": [{"oneOf": [{"anyOf": [{"oneOf": [{"anyOf": [TEXT]}]}]}]}]}, []),
        ({"anyOf": [TEXT, {"type": "null"}, TEXT, 1]}, ["string"]),
        ({"oneOf": [*({"const": n} for n in range(9))]}, [*map(str, range(8))]),
        ({"anyOf": 1}, []),
        ({"$ref": "#/$defs/A"}, ["string"]),
        ({"$ref": "#/$defs/B"}, []),
        ({"$ref": 1}, []),
        ({}, []),
    ],
)
def test_a_schema_is_shown_as_its_types(rules: Any, types: list[str]) -> None:
    schema = {"$defs": {"A": TEXT, "B": {"$ref": "#/$defs/B"}}}
    assert argument_types(rules, schema) == types


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "text", "text": 1}, ""),
        ({"type": "resource", "resource": {"uri": "a://b", "text": "c"}}, "c"),
        ({"type": "resource_link", "name": "n", "uri": "a://b"}, "[n: a://b]"),
        ({"type": "image", "mimeType": "image/png", "data": "eHk="}, "[image, image/png, 2 bytes]"),
        ({"type": "other", "a": 1}, '{ "type": "other", "a": 1 }'),
        (
            {"type": "resource", "resource": {"uri": "a://b", "blob": "eA=="}},
            "[a://b, application/octet-stream, 1 bytes]",
        ),
    ],
)
def test_a_block_is_shown_as_what_it_is(block: Any, text: str) -> None:
    assert " ".join(block_text(block).split()) == text


def tool_row(properties: Any, required: Any) -> dict[str, Any]:
    """A tool with such parameters."""
    schema = {"properties": properties, "required": required}
    return {"name": "t", "description": " One.\nTwo.", "inputSchema": schema}


ADDRESSED = {"name": "n", "uri": "a://b", "mimeType": "text/plain"}


PROMPT = {"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}, 1]}


@pytest.mark.parametrize(
    ("item", "cells", "line"),
    [
        (tool_row({"a": TEXT}, ["a"]), ("t", "a: string", "One."), "t(a: string)"),
        (tool_row({"a": TEXT}, []), ("t", "a?: string", "One."), "t(a?: string)"),
        (tool_row({"a": TEXT}, "a"), ("t", "a?: string", "One."), "t(a?: string)"),
        (
            tool_row({"a": {**TEXT, "default": "x"}}, []),
            ("t", "a: string = 'x'", "One."),
            "t(a: string = 'x')",
        ),
        (tool_row({"a": 1, "b": {}}, ["b"]), ("t", "a?, b", "One."), "t(a?, b)"),
        (tool_row([], []), ("t", "", "One."), "t()"),
        (ADDRESSED, ("a://b", "n", "text/plain", ""), "a://b  n  text/plain"),
        ({"name": "n", "uriTemplate": "a://{b}"}, ("a://{b}", "n", "", ""), "a://{b}  n"),
        (PROMPT, ("p", "a, b?, ?", ""), "p(a, b?, ?)"),
        ({"name": 1}, ("", "", ""), "()"),
    ],
)
def test_an_item_is_shown_with_its_parameters_or_address(
    item: Any, cells: tuple[str, ...], line: str
) -> None:
    row = item_row(item)
    assert (row.cells, row.line) == (cells, line)
