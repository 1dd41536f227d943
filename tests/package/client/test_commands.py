"""The commands that use a server, with servers in memory."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest

from kit.scripted import ScriptedServer
from kit.simulation import VirtualClockLoop
from mcpgen_runtime import REVISIONS, ConnectionClosedError, Context, Server, Timeouts, connect
from mcpgen_runtime.client.command_line import CommandPackage, add_commands, run
from mcpgen_runtime.client.terminal_handlers import CAPABILITIES, TerminalHandlers

NEWEST = max(REVISIONS)
Opened = list[tuple[Any, dict[str, Any]]]


def use(
    *words: str,
    answers: Iterable[Mapping[str, Any]] = (),
    server: Callable[[str | None], Any] | None = None,
    page: Callable[[argparse.Namespace], int] | None = None,
) -> tuple[int, Opened]:
    """Run a command with servers in memory; returns its exit code, and how it opened sessions."""
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
    file.write_text('{"mcpServers": {"one": {"command": "a"}}}')
    _, [(target, _)] = use("list", f"{file}", answers=repeat(EMPTY))
    assert target == ["a"]  # the only server needs no name


def test_an_input_of_a_configuration_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    inputs = [{"id": "key", "type": "promptString"}]
    servers = {"a": {"command": "a", "env": {"K": "${input:key}"}}}
    file.write_text(json.dumps({"inputs": inputs, "servers": servers}))
    assert use("inspect", f"{file}:a") == (2, [])
    monkeypatch.setattr(sys, "stdin", io.StringIO("v\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    code, opened = use("inspect", f"{file}:a", answers=repeat(EMPTY))
    assert (code, len(opened)) == (0, len(REVISIONS))
    assert all(options["env"] == {"K": "v"} for _, options in opened)


HINT = "expected a URL, a command line or MODULE:SERVER, got"
FILE_HINT = f"{HINT} a Python file; did you mean"


HEADER = "--header: expected 'NAME: VALUE', got no name or no colon"


BROKEN_COMMANDS: list[tuple[list[str], int, str]] = [
    (["list", ""], 2, f"{HINT} an empty text"),
    (["list", "a 'b"], 2, '"a \'b": expected a command line, got No closing quotation'),
    (["list", "notes.py"], 2, f"'notes.py': {FILE_HINT} notes:server or 'python notes.py'?"),
    (["list", "in.notes"], 2, f"'in.notes': {FILE_HINT} in.notes:server or 'python in/notes.py'?"),
    *((["list", "u", "--header", header], 2, HEADER) for header in ("a", ": b", " : b")),
    (["list", "a.json:b"], 2, "[Errno 2] No such file or directory: 'a.json'"),
    (["list", "in.json"], 2, "in.json: servers: expected the name of a server (x, y), got ''"),
    (["call", "u", "x"], 2, "expected one of the server's tools (t), got 'x'"),
    *(
        (["prompt", "u", "p", "--arg", pair], 2, f"--arg: expected NAME=VALUE, got {pair!r}")
        for pair in ("a", "=b")
    ),
    (["read", "u", "a"], 1, "resources/read: broken (code -32603)"),
    (
        ["call", "u", "t", "--arg", "n=a"],
        2,
        "--arg n: expected JSON, since the tool expects integer, got 'a'",
    ),
    (["call", "u", "t", "--args", "[1]"], 2, "--args: expected a JSON object, got '[1]'"),
    (
        ["call", "u", "t", "--args", "a"],
        2,
        "--args: expected a JSON object, got 'a': Expecting value: line 1",
    ),
]


@pytest.mark.parametrize(("words", "code", "error"), BROKEN_COMMANDS)
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
    answers = repeat({**EMPTY, "tools": [TOOL]} if words[0] == "call" else BROKEN)
    assert use(*words, answers=answers)[0] == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.replace(f"{tmp_path}/", "").startswith(f"error: {error}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (OSError("no port"), "no port"),
        (ConnectionClosedError("gone\x1b"), "gone\\x1b"),
    ],
)
def test_the_page_is_served_in_place_of_a_report(
    error: BaseException, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise error

    assert use("inspect", "u", "--web", page=fail) == (2, [])
    assert capsys.readouterr().err == f"error: {text}\n"
    assert use("inspect", "u", "--web", page=lambda chosen: len(chosen.target)) == (1, [])
    with pytest.raises(SystemExit):
        use("inspect", "u", "--web")


RULES: Mapping[str, Any] = {
    "s": {"type": "string"},
    "n": {"type": "integer"},
    "e": {"enum": ["1", 2]},
    "any": {},
    "many": {"type": ["string", "integer"]},
    "o": {"type": "object"},
}
TOOL = {"name": "t", "inputSchema": {"type": "object", "properties": RULES}}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (["--arg", "s=1"], {"s": "1"}),
        (["--arg", "n=1"], {"n": 1}),
        (["--arg", "e=1"], {"e": "1"}),
        (["--arg", "e=2"], {"e": 2}),
        (["--arg", "any=1"], {"any": 1}),
        (["--arg", "any=a=b"], {"any": "a=b"}),
        (["--arg", "other=a"], {"other": "a"}),
        (["--arg", "many=a"], {"many": "a"}),
        (["--arg", 'o={"a": 1}'], {"o": {"a": 1}}),
        (["--args", '{"n": 1, "s": "a"}', "--arg", "n=2"], {"n": 2, "s": "a"}),
    ],
)
def test_arguments_are_sent_as_the_schema_says(words: list[str], arguments: Any) -> None:
    server = ScriptedServer(NEWEST, [{**EMPTY, "tools": [TOOL]}, {"content": []}])
    assert use("call", "u", "t", *words, server=lambda _: server)[0] == 0
    assert server.asked()[-1] == {"name": "t", "arguments": arguments}


TWO = [{"type": "text", "text": "a"}, {"type": "resource_link", "name": "n", "uri": "a://b"}]
MESSAGES = [{"role": role, "content": TWO[0]} for role in ("user", "assistant")]
CALL = ("call", "u", "t")


CONTENTS = [{"uri": "a://b", "text": each} for each in "cd"]


@pytest.mark.parametrize(
    ("words", "result", "code", "text"),
    [
        (CALL, {"content": TWO}, 0, "a\n[n: a://b]\n"),
        (CALL, {"content": TWO[:1], "isError": True}, 1, "a\n"),
        (CALL, {"content": [], "structuredContent": {"a": 1}}, 0, '{\n  "a": 1\n}\n'),
        (CALL, {"content": []}, 0, '{\n  "content": [],\n  "resultType": "complete"\n}\n'),
        (("read", "u", "a://b"), {"contents": CONTENTS, **HINTS}, 0, "c\nd\n"),
        (("prompt", "u", "p"), {"messages": MESSAGES}, 0, "user: a\nassistant: a\n"),
    ],
)
def test_a_result_is_printed_as_text_or_json(
    words: Any, result: Any, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [*([page("t", None)] if words == CALL else []), result]
    assert use(*words, answers=answers)[0] == code
    assert capsys.readouterr() == (text, "")
    assert use(*words, "--json", answers=answers)[0] == code
    assert json.loads(capsys.readouterr().out).items() >= result.items()


def page(name: str, cursor: str | None) -> dict[str, Any]:
    """A page of tools, maybe not the last one."""
    more = {} if cursor is None else {"nextCursor": cursor}
    return {**EMPTY, "tools": [{"name": name, "inputSchema": {"type": "object"}}], **more}


def test_lists_that_the_server_has_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    capabilities: dict[str, Any] = {"tools": {}, "prompts": {}}
    answers = [page("a", ""), page("b", None), EMPTY]
    servers = [ScriptedServer(NEWEST, answers, capabilities) for _ in range(2)]
    for words in ((), ("--json",)):
        assert use("list", "u", *words, server=lambda _: servers.pop())[0] == 0
    printed = capsys.readouterr().out
    text, _, encoded = printed.partition("{")
    assert text == f"unnamed server, {NEWEST}\n\ntools\n  a()\n  b()\n"
    listed = json.loads("{" + encoded)
    assert [tool["name"] for tool in listed["tools"]] == ["a", "b"]
    assert [*listed] == ["tools", "prompts"]


def test_a_list_has_at_most_a_thousand_pages(capsys: pytest.CaptureFixture[str]) -> None:
    server = ScriptedServer(NEWEST, (page("a", f"{number}") for number in count()))
    assert use("list", "u", server=lambda _: server)[0] == 2
    assert capsys.readouterr().err == (
        "error: tools/list: expected a list of at most 1000 pages, got more; read it page by page\n"
    )
    assert len(server.heard) == 1000


async def report_and_log(ctx: Context) -> str:
    """A tool that reports progress, and logs."""
    await ctx.progress(1, 2, "half \x1b way")
    await ctx.progress(2.5)
    await ctx.info("x" * 1001)
    await ctx.warning({"left": 1}, logger="pump")
    await ctx.error(["y" * 1001])
    return "done"


def test_progress_and_logs_are_shown_beside_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server("weather", "1.0")
    server.tool(name="t")(report_and_log)
    assert use("call", "u", "t", server=lambda _: server)[0] == 0
    printed = capsys.readouterr()
    assert printed.out == "done\n"
    assert sorted(printed.err.splitlines()) == [
        f"error: ['{'y' * 991}... (1032 characters)",
        f"info: {'x' * 994}... (1007 characters)",
        "progress 1/2: half \\x1b way",
        "progress 2.5",
        "warning pump: {'left': 1}",
    ]


def test_requests_are_answered_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _, [(_, options)] = use("list", "u", answers=repeat(EMPTY))
    assert options.keys() == {"timeouts"}
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    _, [(_, options)] = use("list", "u", answers=repeat(EMPTY))
    assert isinstance(options["handlers"], TerminalHandlers)
    assert options["capabilities"] == CAPABILITIES


@pytest.mark.parametrize(
    "words", [("call", "u", "t"), ("read", "u", "a://b"), ("prompt", "u", "p")]
)
def test_a_request_is_waited_for_as_long_as_it_may_take(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("asyncio.events.new_event_loop", VirtualClockLoop)
    answers = [page("t", None)] if words[0] == "call" else []
    assert use(*words, "--timeout", "7", answers=answers)[0] == 2
    assert capsys.readouterr().err.endswith(": no answer within 7 s\n")


LOST = min(REVISIONS)


def report(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, without its times."""
    return re.sub(r"opened in \d+ ms, listed in \d+ ms", "TIMES", capsys.readouterr().out)


def start_weather(revision: str | None) -> Server:
    """A server of all revisions but one."""
    if revision == LOST:
        raise ConnectionClosedError("no such revision\nat all")
    server = Server("weather", "1.0", instructions="Ask.\nMore.")
    server.tool(name="t")(report_and_log)
    return server


def test_a_report_has_a_row_for_each_revision(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"  {revision}  tools: 1; TIMES\n      capabilities: logging, tools (listChanged)\n"
        if revision != LOST
        else f"  {revision}  no: no such revision\n"
        for revision in sorted(REVISIONS, reverse=True)
    ]
    assert use("inspect", "u", server=start_weather)[0] == 0
    assert report(capsys) == "".join(["weather  1.0\nAsk.\n\nrevisions\n", *rows])
    declared = {"experimental": {"a": {"x": 1}, "b": {}}, "logging": {}}
    servers = iter([ScriptedServer(NEWEST, [], each) for each in (declared, {})])
    for shown in ("experimental (a), logging", "none"):
        assert use("inspect", "u", "--revision", NEWEST, server=lambda _: next(servers))[0] == 0
        head = f"\n\nrevisions\n  {NEWEST}  no lists; TIMES\n"
        assert report(capsys) == f"{head}      capabilities: {shown}\n"
    assert use("inspect", "u", "--revision", LOST, server=start_weather)[0] == 2
    assert capsys.readouterr() == ("", "error: no such revision\nat all\n")


def test_a_report_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert use("inspect", "u", "--json", server=start_weather)[0] == 0
    shown = json.loads(capsys.readouterr().out)
    assert [*shown["revisions"]] == [
        NEWEST,
        *(each for each in sorted(REVISIONS, reverse=True) if each != NEWEST),
    ]
    assert shown["revisions"][LOST] == {"error": "no such revision\nat all"}
    of_one = shown["revisions"]["2025-06-18"]
    assert 0 < of_one.pop("opened_ms") < 60_000
    assert 0 < of_one.pop("listed_ms") < 60_000
    assert of_one == {"capabilities": ["logging", "tools (listChanged)"], "counts": {"tools": 1}}
    assert shown["instructions"] == "Ask.\nMore."
    assert shown["server_info"] == {"name": "weather", "version": "1.0"}
