"""Questions of servers at a terminal: what lines the user writes, and what the server gets."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_protocol.client.client_settings import ConfigInput
from mcp_protocol.client.terminal_handlers import TerminalHandlers, ask_input
from mcp_protocol.errors import ProtocolError

pytestmark = pytest.mark.anyio

Ask = Callable[..., Any]


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: lines are read in a thread."""
    return "asyncio"


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts lines into the standard input."""
    return lambda lines: monkeypatch.setattr("sys.stdin", io.StringIO(lines))


async def answer(method: str, params: Mapping[str, Any]) -> Any:
    """What the handler of a method answers."""
    row: Any = SimpleNamespace(name=method)
    handler = TerminalHandlers().mcp_handler(row)
    assert handler is not None
    context: Any = SimpleNamespace(method=row)
    return await handler(params, context)


async def elicited(field: Any, required: tuple[str, ...] = ()) -> Any:
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
    assert await elicited({"type": "string"}) == {"action": "cancel"}


@pytest.mark.parametrize(
    ("field", "lines", "value"),
    [
        ({"type": "string"}, "a b\n", "a b"),
        ({"type": "string", "minLength": 3}, "a\nabc\n", "abc"),
        ({"type": "boolean"}, "Yes\n", True),
        ({"type": "boolean"}, "maybe\nfalse\n", False),
        ({"type": "integer"}, "x\n1.5\n3\n", 3),
        ({"type": "number"}, "1.5\n", 1.5),
        ({"type": "string", "default": "d"}, "\n", "d"),
        ({"type": "string", "default": "d"}, "e\n", "e"),
        ({"type": "string", "enum": ["a", "b"]}, "c\nb\n", "b"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "A\na\n", "a"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "a,c\n a, ,b\n",
            ["a", "b"],
        ),
    ],
)
async def test_a_field_is_asked_for_until_it_is_valid(
    writes: Ask, field: Any, lines: str, value: Any
) -> None:
    writes(f"y\n{lines}")
    assert await elicited(field) == {"action": "accept", "content": {"f": value}}


async def test_a_required_field_is_not_empty_and_another_may_be(writes: Ask) -> None:
    writes("y\n\n")
    assert await elicited({"type": "string"}) == {"action": "accept", "content": {}}
    writes("y\n\na\n")
    field = {"type": "string", "minLength": 1}
    assert (await elicited(field, ("f",)))["content"] == {"f": "a"}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"title": "T", "type": "string"}, "  T (string, may be empty): "),
        ({"description": "About"}, "  About\n  f (text, may be empty): "),
        ({"type": "integer", "default": 2}, "  f (2 if empty): "),
        ({"enum": ["a"], "enumNames": ["One"]}, "    a: One\n  f ("),
        ({"enum": ["a"]}, "    a\n  f ("),
        ({"items": {"anyOf": [{"const": "a", "title": "One"}, 1]}}, "    a: One\n  f ("),
    ],
)
async def test_a_field_is_shown_with_its_choices(
    writes: Ask, capsys: pytest.CaptureFixture[str], field: Any, text: str
) -> None:
    writes("y\n")
    await elicited(field)
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


async def test_a_long_text_is_shown_in_part(
    writes: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    writes("c\n")
    await answer("elicitation/create", {"message": "x" * 5000, "url": "u"})
    assert capsys.readouterr().err.count("x") == 4000


def test_other_methods_are_not_answered() -> None:
    row: Any = SimpleNamespace(name="roots/list")
    assert TerminalHandlers().mcp_handler(row) is None


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
