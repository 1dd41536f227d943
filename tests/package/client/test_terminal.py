"""A terminal: what of a server is shown there, and what lines in answer to its questions mean."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_protocol import Context, Server
from mcp_protocol.client.async_client import connect
from mcp_protocol.client.client_settings import ConfigInput, Timeouts
from mcp_protocol.client.command_line import CommandPackage, add_commands, run
from mcp_protocol.client.item_texts import (
    argument_types,
    block_text,
    first_line,
    item_row,
    print_block,
)
from mcp_protocol.client.terminal_handlers import CAPABILITIES, TerminalHandlers, ask_input
from mcp_protocol.errors import ConnectionClosedError, ProtocolError
from mcp_protocol.revisions import REVISIONS
from mcp_protocol.runtime.terminal_output import PlainOutput
from package.scripted import ScriptedServer

pytestmark = pytest.mark.anyio

Ask = Callable[..., Any]
TEXT = {"type": "string"}


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: lines are read in a thread."""
    return "asyncio"


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
    assert await elicit_field(field) == {"action": "accept", "content": {"f": value}}


async def test_a_required_field_is_not_empty_and_another_may_be(writes: Ask) -> None:
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


@pytest.mark.parametrize(
    ("rules", "types"),
    [
        (TEXT, ["string"]),
        ({"type": ["string", "null", 1, "integer"]}, ["string", "integer"]),
        ({"const": "a"}, ["'a'"]),
        ({"const": None}, ["null"]),
        ({"enum": [True, None, 2]}, ["true", "2"]),
        ({"enum": [*range(8)]}, [*map(str, range(8))]),
        ({"enum": [*range(9)]}, [*map(str, range(8)), "..."]),
        ({"const": "x" * 40}, [repr("x" * 40)]),
        ({"const": "x" * 41}, [f"{'x' * 40!r}... (41 characters)"]),
        ({"anyOf": [{"oneOf": [{"anyOf": [{"oneOf": [TEXT]}]}]}]}, ["string"]),
        ({"anyOf": [{"oneOf": [{"anyOf": [{"oneOf": [{"anyOf": [TEXT]}]}]}]}]}, []),
        ({"anyOf": [TEXT, {"type": "null"}, TEXT, 1]}, ["string"]),
        ({"oneOf": [TEXT, {"type": "integer"}]}, ["string", "integer"]),
        ({"oneOf": [*({"const": n} for n in range(9))]}, [*map(str, range(8))]),
        ({"anyOf": 1}, []),
        ({"$ref": "#/$defs/A"}, ["string"]),
        ({"$ref": "#/$defs/B"}, []),
        ({"$ref": "#/definitions/A"}, []),
        ({"$ref": 1}, []),
        ({}, []),
    ],
)
def test_a_schema_is_shown_as_its_types(rules: Any, types: list[str]) -> None:
    schema = {"$defs": {"A": TEXT, "B": {"$ref": "#/$defs/B"}}}
    assert argument_types(rules, schema) == types


def test_four_levels_of_references_are_followed() -> None:
    links: dict[str, Any] = {
        f"{number}": {"$ref": f"#/$defs/{number + 1}"} for number in range(1, 4)
    }
    schema: Any = {"$defs": {**links, "4": TEXT}}
    assert argument_types({"$ref": "#/$defs/1"}, schema) == ["string"]
    schema = {"$defs": {**links, "4": {"anyOf": [TEXT]}}}
    assert argument_types({"$ref": "#/$defs/1"}, schema) == []


@pytest.mark.parametrize(
    ("properties", "required", "arguments"),
    [
        ({"a": TEXT}, ["a"], "a: string"),
        ({"a": TEXT}, [], "a?: string"),
        ({"a": TEXT}, "a", "a?: string"),
        ({"a": {**TEXT, "default": "x"}}, [], "a: string = 'x'"),
        ({"a": 1, "b": {}}, ["b"], "a?, b"),
        ([], [], ""),
    ],
)
def test_a_tool_is_shown_with_its_parameters(
    properties: Any, required: Any, arguments: str
) -> None:
    schema = {"properties": properties, "required": required}
    row = item_row({"name": "t", "description": " One.\nTwo.", "inputSchema": schema})
    assert (row.cells, row.line) == (("t", arguments, "One."), f"t({arguments})")


@pytest.mark.parametrize(
    ("item", "cells", "line"),
    [
        (
            {"name": "n", "uri": "a://b", "mimeType": "text/plain"},
            ("a://b", "n", "text/plain", ""),
            "a://b  n  text/plain",
        ),
        ({"name": "n", "uriTemplate": "a://{b}"}, ("a://{b}", "n", "", ""), "a://{b}  n"),
        (
            {"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}, 1]},
            ("p", "a, b?, ?", ""),
            "p(a, b?, ?)",
        ),
        ({"name": 1}, ("", "", ""), "()"),
    ],
)
def test_other_items_are_shown_by_address_or_arguments(
    item: Any, cells: tuple[str, ...], line: str
) -> None:
    row = item_row(item)
    assert (row.cells, row.line) == (cells, line)


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


def test_a_list_shows_one_line_of_a_description() -> None:
    assert first_line("x" * 100) == "x" * 100
    assert first_line("x" * 101) == f"{'x' * 97}..."


class RecordedOutput(PlainOutput):
    """Keeps the texts of a server, each with whether it is Markdown."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, bool | None]] = []

    def text(self, text: str, *, markdown: bool | None = None) -> None:
        self.texts.append((text, markdown))


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "text", "text": "a"}, ("a", None)),
        ({"type": "resource_link", "name": "n", "uri": "a://b"}, ("[n: a://b]", False)),
        ({"type": "resource", "resource": {"text": "a"}}, ("a", None)),
        ({"type": "resource", "resource": {"text": "a", "mimeType": "text/html"}}, ("a", False)),
        (
            {"type": "resource", "resource": {"text": "a", "mimeType": "Text/Markdown ;x=y"}},
            ("a", True),
        ),
    ],
)
def test_text_is_markdown_if_its_type_says_so(block: Any, shown: tuple[str, bool | None]) -> None:
    out = RecordedOutput()
    print_block(out, block)
    assert out.texts == [shown]


NEWEST = max(REVISIONS)
Opened = list[tuple[Any, dict[str, Any]]]


def use(
    *words: str,
    answers: Iterable[Mapping[str, Any]] = (),
    server: Callable[[str | None], Any] | None = None,
    page: Callable[[argparse.Namespace], int] | None = None,
) -> tuple[int, Opened]:
    """Run a command with servers in memory; returns its exit code, and how it opened sessions.

    Args:
        words: The command line.
        answers: Results of a server, as far as it is asked.
        server: The server of a revision instead.
        page: Serves the page of `inspect --web`.
    """
    opened: Opened = []

    def open_here(target: Any, **options: Any) -> Any:
        opened.append((target, options))
        revision = options.get("revision")
        here = server(revision) if server else ScriptedServer(revision or NEWEST, answers)
        return connect(here, revision=revision or NEWEST)

    parser = argparse.ArgumentParser()
    package = CommandPackage("acme", lambda: (open_here, REVISIONS))
    add_commands(parser.add_subparsers().add_parser, package, page)
    return run(parser.parse_args(words)), opened


HINTS = {"ttlMs": 0, "cacheScope": "private"}
EMPTY = {**dict.fromkeys(("tools", "resources", "resourceTemplates", "prompts"), ()), **HINTS}
"""A page of any list, without items."""
BROKEN = {"error": {"code": -32603, "message": "broken"}}
SERVE = [sys.executable, "-m", "acme", "serve"]


@pytest.mark.parametrize(
    ("words", "target", "options"),
    [
        (["https://h/x"], "https://h/x", {}),
        (
            ["HTTP://h/x", "--header", "A: b", "--header", " C :d:e "],
            "HTTP://h/x",
            {"headers": {"A": "b", "C": "d:e"}},
        ),
        (["prog 'a b'", "--timeout", "2.5"], ["prog", "a b"], {"timeouts": Timeouts(opening=2.5)}),
        (
            ["prog", "--env", "X=1=2", "--env", "Y=", "--env", "OWN_KEY", "--env", "OWN_ABSENT"],
            ["prog"],
            {"env": {"X": "1=2", "Y": "", "OWN_KEY": "k", "OWN_ABSENT": ""}},
        ),
        (["prog", "--revision", min(REVISIONS)], ["prog"], {"revision": min(REVISIONS)}),
        (["python notes.py"], ["python", "notes.py"], {}),
        (["absent.py"], ["absent.py"], {}),
        (["sh"], ["sh"], {}),
        (["absent.json"], ["absent.json"], {}),
        (["notes.py:x y"], ["notes.py:x", "y"], {}),
    ],
)
def test_a_target_is_opened_with_the_options_that_were_given(
    words: list[str], target: Any, options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("notes.py", "sh.py"):
        (tmp_path / name).touch()
    monkeypatch.setenv("OWN_KEY", "k")
    monkeypatch.delenv("OWN_ABSENT", raising=False)
    code, opened = use("list", *words, answers=repeat(EMPTY))
    assert (code, opened) == (0, [(target, {"timeouts": Timeouts(opening=60.0), **options})])


def test_a_module_is_served_with_the_variables_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OWN_KEY", "k")
    _, [(target, options)] = use("list", "acme.notes:server", answers=repeat(EMPTY))
    assert (target, options["env"]) == ([*SERVE, "acme.notes:server"], {**os.environ})


CONFIGURED: dict[str, Any] = {
    "full": {"command": "a", "env": {"A": "1", "B": "2"}, "cwd": "/srv"},
    "web": {"url": "https://h/x", "headers": {"A": "1", "B": "2"}, "type": "sse"},
    "plain": {"command": "a"},
}


@pytest.mark.parametrize(
    ("name", "words", "target", "options"),
    [
        ("full", ["--env", "B=3"], ["a"], {"env": {"A": "1", "B": "3"}, "cwd": "/srv"}),
        (
            "web",
            ["--header", "B: 3"],
            "https://h/x",
            {"headers": {"A": "1", "B": "3"}, "transport": "sse"},
        ),
        ("plain", ["--env", "B=3"], ["a"], {"env": {"B": "3"}}),
        ("plain", [], ["a"], {}),
    ],
)
def test_options_are_put_over_those_of_a_configuration(
    name: str, words: list[str], target: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"mcpServers": CONFIGURED}))
    _, opened = use("list", f"{file}:{name}", *words, answers=repeat(EMPTY))
    assert opened == [(target, {"timeouts": Timeouts(opening=60.0), **options})]


def test_an_input_of_a_configuration_is_asked_for_once(
    writes: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    inputs = [{"id": "key", "type": "promptString"}]
    servers = {"a": {"command": "a", "env": {"K": "${input:key}"}}}
    file.write_text(json.dumps({"inputs": inputs, "servers": servers}))
    assert use("inspect", f"{file}:a") == (2, [])
    writes("v\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    code, opened = use("inspect", f"{file}:a", answers=repeat(EMPTY))
    assert (code, len(opened)) == (0, len(REVISIONS))
    assert all(options["env"] == {"K": "v"} for _, options in opened)


HINT = "expected a URL, a command line or MODULE:SERVER, got"


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["list", ""], 2, f"{HINT} an empty text"),
        (["list", "a 'b"], 2, '"a \'b": expected a command line, got No closing quotation'),
        (
            ["list", "notes.py"],
            2,
            f"'notes.py': {HINT} a Python file; did you mean notes:server or 'python notes.py'?",
        ),
        (
            ["list", "in.notes"],
            2,
            f"'in.notes': {HINT} a Python file; "
            "did you mean in.notes:server or 'python in/notes.py'?",
        ),
        *(
            (
                ["list", "u", "--header", header],
                2,
                "--header: expected 'NAME: VALUE', got no name or no colon",
            )
            for header in ("a", ": b", " : b")
        ),
        (["list", "a.json:b"], 1, "[Errno 2] No such file or directory: 'a.json'"),
        (["list", "in.json"], 2, "in.json: servers: expected the name of a server (x, y), got ''"),
        (["call", "u", "t"], 2, "expected one of the server's tools (no tools), got 't'"),
        *(
            (["prompt", "u", "p", "--arg", pair], 2, f"--arg: expected NAME=VALUE, got {pair!r}")
            for pair in ("a", "=b")
        ),
        (["read", "u", "a"], 1, "resources/read: broken (code -32603)"),
    ],
)
def test_a_command_line_is_refused_with_its_reason(
    words: list[str],
    code: int,
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("notes.py", "in/notes.py"):
        (tmp_path / name).touch()
    (tmp_path / "in.json").write_text('{"servers": {"x": {"command": "a"}, "y": {}}}')
    assert use(*words, answers=repeat(EMPTY if words[0] == "call" else BROKEN))[0] == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.replace(f"{tmp_path}/", "")) == ("", f"error: {error}\n")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 1, "interrupted"),
        (OSError("no port"), 1, "no port"),
        (ConnectionClosedError("gone\x1b"), 1, "gone\\x1b"),
    ],
)
def test_a_failure_of_the_page_ends_the_command(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise error

    assert use("inspect", "u", "--web", page=fail) == (code, [])
    assert capsys.readouterr().err == f"error: {text}\n"


def test_the_page_is_served_in_place_of_a_report() -> None:
    targets: list[str] = []

    def serve(chosen: argparse.Namespace) -> int:
        targets.append(chosen.target)
        return 7

    assert use("inspect", "u", "--web", page=serve) == (7, [])
    assert targets == ["u"]
    with pytest.raises(SystemExit):
        use("inspect", "u", "--web")


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        (["prog a", "--name", "n"], {"n": {"type": "stdio", "command": "prog", "args": ["a"]}}),
        (
            ["prog", "--env", "OWN_KEY", "--env", "B=2"],
            {
                "prog": {
                    "type": "stdio",
                    "command": "prog",
                    "args": [],
                    "env": {"OWN_KEY": "${env:OWN_KEY}", "B": "2"},
                }
            },
        ),
        (
            ["notes:server", "--env", "B=2"],
            {
                "notes": {
                    "type": "stdio",
                    "command": SERVE[0],
                    "args": [*SERVE[1:], "notes:server"],
                    "env": {"PYTHONPATH": f"{Path.cwd()}{os.pathsep}own", "B": "2"},
                }
            },
        ),
        (
            ["https://h/x", "--header", "A: b"],
            {"h": {"url": "https://h/x", "headers": {"A": "b"}}},
        ),
    ],
)
def test_the_entry_for_another_program_is_printed(
    words: list[str],
    entry: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OWN_KEY", "k")
    monkeypatch.setenv("PYTHONPATH", "own")
    assert use("config", *words, "--client", "cursor") == (0, [])
    assert json.loads(capsys.readouterr().out) == {"mcpServers": entry}


def test_an_entry_has_values_where_it_cannot_refer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OWN_KEY", "k")
    monkeypatch.delenv("OWN_ABSENT", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    words = ("--env", "OWN_KEY", "--env", "OWN_ABSENT", "--client", "claude")
    assert use("config", "notes:server", *words) == (0, [])
    env = json.loads(capsys.readouterr().out)["mcpServers"]["notes"]["env"]
    assert env == {"PYTHONPATH": f"{Path.cwd()}", "OWN_KEY": "k", "OWN_ABSENT": ""}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["https://h", "--env", "A=b"], "--env: expected a command or MODULE:SERVER, got a URL"),
        (["prog", "--header", "A: b"], "--header: expected a URL, got a command or MODULE:SERVER"),
        (["a.json:b"], f"{HINT} a configuration"),
    ],
)
def test_an_entry_is_for_a_command_or_a_url(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert use("config", *words, "--client", "cursor") == (2, [])
    assert capsys.readouterr() == ("", f"error: {error}\n")


def test_an_entry_is_for_a_known_program() -> None:
    for words in ([], ["--client", "emacs"]):
        with pytest.raises(SystemExit):
            use("config", "prog", *words)
