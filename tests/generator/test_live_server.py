"""Servers by the words that name them, and their lists, asked of processes or page by page."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import mcpgen_runtime
from generator.command_line import run, script_command
from generator.test_check_server import OURS, TINY
from generator.test_cli import NEWEST
from generator.test_mirror import FORECAST
from kit.limits import SetLimit
from mcpgen.errors import MirrorError, UsageError
from mcpgen.project import live_server, mirror
from mcpgen.project.live_server import MemoryTarget, Target, lists, target
from mcpgen.project.server_lists import parse


def script(folder: Path, text: str) -> Target:
    """A server that is a script in Python."""
    path = folder / "other.py"
    path.write_text(text)
    return target(script_command(path), folder)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("raise SystemExit('no such city')", "exit code 1; last lines on stderr: no such city"),
        ("print('hello')", "a server that answers, got"),
    ],
    ids=["ends", "no protocol"],
)
def test_a_server_that_answers_with_nonsense_is_one_error(
    program: str, error: str, tmp_path: Path
) -> None:
    with pytest.raises(MirrorError, match=error) as raised:
        lists(mcpgen_runtime, script(tmp_path, program))
    assert "\n" not in str(raised.value)


def test_a_silent_server_is_given_up(tmp_path: Path, set_limit: SetLimit) -> None:
    set_limit("mcpgen.project.live_server.SECONDS", 1.0)
    with pytest.raises(MirrorError, match="expected a server that answers"):
        lists(mcpgen_runtime, script(tmp_path, "import sys\nsys.stdin.read()"))


def test_items_that_a_package_cannot_register_are_found() -> None:
    document = {
        "tools": [
            FORECAST,
            {"name": "no schema"},
            {"name": "untyped", "inputSchema": {}},
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": 1}}}},
        ],
        "resources": [{"uri": "no uri"}, {"uri": "x://y"}, {"uri": "x://z", "mimeType": "none"}],
        "resourceTemplates": [{"uriTemplate": "x://{a}"}, {"uriTemplate": "x://{?class*}"}],
        "prompts": [
            {"name": "p", "arguments": [{"name": "city"}]},
            {"name": "q", "arguments": [{"name": "not a name"}]},
        ],
    }
    limits = live_server.limits(mcpgen_runtime, parse(document, "x"))
    assert limits.unchecked == ("untyped", "bad")
    assert limits.absent == {
        "tools": ("no schema",),
        "resources": ("no uri", "x://z"),
        "resourceTemplates": ("x://{?class*}",),
        "prompts": ("q",),
    }


@pytest.mark.costly
@pytest.mark.timeout(120)
def test_a_project_starts_from_a_running_server_and_follows_it(tmp_path: Path) -> None:
    script(tmp_path, OURS)
    command = script_command("other.py")
    words = ("new", "server", "weather", "-r", NEWEST, "--from-server", command)
    made = run(*words, cwd=tmp_path)
    assert made.code == 0, made.err
    assert "mirrored: 3 tools, 2 resources, 1 prompt" in made.out.splitlines()
    script(tmp_path, OURS.replace('"sun"', '"snow"'))
    checked = run("check", cwd=tmp_path / "weather")
    assert (checked.code, "tool snow" in checked.out) == (1, True)
    assert "the server has changed: " in checked.out
    update = run("update", cwd=tmp_path / "weather")
    assert update.out.splitlines()[1:3] == ["new: tool snow", "gone: tool sun"]
    assert run("check", cwd=tmp_path / "weather").code == 0
    (tmp_path / "other.py").unlink()
    before = sorted((tmp_path / "weather").rglob("*.py"))
    lost = run("update", cwd=tmp_path / "weather")
    assert (lost.code, "expected a server that answers" in lost.err) == (2, True)
    checked = run("check", cwd=tmp_path / "weather")
    assert (checked.code, "--offline leaves the server out" in checked.err) == (2, True)
    assert run("check", "--offline", cwd=tmp_path / "weather").code == 0
    assert sorted((tmp_path / "weather").rglob("*.py")) == before
    assert [each for each in (*sys.modules, *sys.path) if "mcpgen_peer_" in each] == []
    assert [place for place in sys.path if Path(place).name.startswith("mcpgen-")] == []


@pytest.mark.costly
def test_a_server_is_asked_in_a_revision_of_its_own(tmp_path: Path) -> None:
    words = ("new", "client", "tiny", "-r", NEWEST, "--from-server", TINY)
    assert run(*words, cwd=tmp_path).code == 0


def test_nothing_is_written_for_a_server_that_does_not_start(tmp_path: Path) -> None:
    words = ("new", "client", "weather", "-r", NEWEST, "--from-server", "./absent --now")
    ended = run(*words, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "./absent --now#: expected a server that answers, got" in ended.err
    assert list(tmp_path.iterdir()) == []


SERVERS: dict[str, Any] = {
    "url": {"url": "https://a.b/mcp", "headers": {"A": "secret"}},
    "bare": {"url": "https://a.b/mcp", "headers": {}},
    "both": {"url": "https://a.b/mcp", "command": "x"},
    "command": {"command": "x", "args": ["a", 5], "env": {"A": "secret"}, "cwd": "sub"},
    "plain": {"command": "x", "cwd": "", "env": None},
}


@pytest.mark.parametrize(
    ("words", "address", "options"),
    [
        ("http://a.b", "http://a.b", {}),
        ("https://a.b/#c", "https://a.b/#c", {}),
        ("run 'a b' c", ["run", "a b", "c"], {"cwd": ""}),
        ("none.json", ["none.json"], {"cwd": ""}),
        ("mcp.json#url", "https://a.b/mcp", {"headers": {"A": "secret"}}),
        ("mcp.json#bare", "https://a.b/mcp", {}),
        ("mcp.json#both", "https://a.b/mcp", {}),
        ("mcp.json#command", ["x", "a", "5"], {"cwd": "/sub", "env": {"A": "secret"}}),
        ("mcp.json#plain", ["x"], {"cwd": ""}),
        ("only.json", ["node"], {"cwd": ""}),
    ],
)
def test_words_name_a_server(
    words: str, address: str | list[str], options: dict[str, Any], tmp_path: Path
) -> None:
    text = json.dumps({"servers" if words.endswith("#bare") else "mcpServers": SERVERS})
    (tmp_path / "mcp.json").write_text(f"\ufeff// of this project\n{text}", "utf-8")
    (tmp_path / "only.json").write_text('{"mcpServers": {"x": {"command": "node"}}}')
    expected = dict(options)
    if "cwd" in options:
        expected["cwd"] = f"{tmp_path}{options['cwd']}"
    server = target(words, tmp_path)
    assert (server.shown, server.address, server.options) == (words, address, expected)
    assert "secret" not in repr((server, MemoryTarget(None, options={"A": "secret"})))


REMOTE = {"type": "streamable-http"}
PYPI = {"registryType": "pypi", "identifier": "a-b", "version": "1.2"}
ARGUMENTS: list[Any] = [{"type": "named", "value": "y"}, {"type": "positional"}, 5]
ARGUMENTS += [{"type": "positional", "value": "x"}]


@pytest.mark.parametrize(
    ("members", "address"),
    [
        ({"packages": [{**PYPI, "registryType": "npm"}]}, ["npx", "-y", "a-b@1.2"]),
        ({"packages": [{}, PYPI]}, ["uvx", "a-b==1.2"]),
        ({"packages": [{"registryType": "npm", "identifier": "a"}]}, ["npx", "-y", "a"]),
        ({"packages": [{**PYPI, "registryType": "oci"}, {**PYPI, "version": ""}]}, ["uvx", "a-b"]),
        ({"packages": [{**PYPI, "packageArguments": ARGUMENTS}]}, ["uvx", "a-b==1.2", "x"]),
        ({"remotes": [{"type": "sse", "url": "x"}, {**REMOTE, "url": "https://a"}]}, "https://a"),
    ],
)
def test_a_file_of_a_registry_names_a_command_or_a_url(
    members: dict[str, Any], address: Any, tmp_path: Path
) -> None:
    (tmp_path / "server.json").write_text(json.dumps({"name": "a", **members}))
    assert target("server.json", tmp_path).address == address


@pytest.mark.parametrize("words", ["", "python 'open"])
def test_words_that_are_no_command_are_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        target(words, tmp_path)


REGISTERED = "a remote of streamable-http, or a package of npm or pypi"
NONE = "#/mcpServers: expected an object with servers, got none"
NEITHER = "#/mcpServers/a: expected a command with args, or a url, got neither"
STRINGS = ": expected an object of strings, got something else"


@pytest.mark.parametrize(
    ("document", "name", "error"),
    [
        ([], "", NONE),
        ({"mcpServers": {}}, "", NONE),
        ({"mcpServers": {}, "packages": [PYPI]}, "", NONE),
        ({"packages": [5], "remotes": [5]}, "", f"#/packages: expected {REGISTERED}, got neither"),
        (
            {"packages": [], "remotes": [{"type": "sse"}]},
            *("", "#/packages: expected a remote of streamable-http, or a package of npm or pypi"),
        ),
        (
            {"mcpServers": {"a": {}, "b": {}}},
            "",
            "#/mcpServers: expected FILE#NAME with one of a, b, got no name",
        ),
        ({"mcpServers": {"a": {}, "b": {}}}, "#c", "#/mcpServers: expected one of a, b, got c"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "", NEITHER),
        ({"mcpServers": {"a": {"command": ["x"]}}}, "", NEITHER),
        ({"mcpServers": {"a": {"url": "u", "headers": {"a": 1}}}}, "", f"#/headers{STRINGS}"),
        ({"mcpServers": {"a": {"command": "x", "env": []}}}, "", f"#/env{STRINGS}"),
    ],
)
def test_a_configuration_that_names_no_server_is_refused(
    document: Any, name: str, error: str, tmp_path: Path
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(document))
    with pytest.raises(MirrorError) as raised:
        target(f"mcp.json{name}", tmp_path)
    assert str(raised.value).startswith(f"{path}{error}")


class Refusal(Exception):
    """An error of a server."""


class Scripted:
    """A package whose client gets these answers to requests for lists, one after the other."""

    McpError = RemoteError = Refusal
    Timeouts = dict
    REVISIONS = mcpgen_runtime.REVISIONS
    instructions = None

    def __init__(self, *answers: Any, capability: str = "tools") -> None:
        self.asked: list[tuple[str, Any]] = []
        self.server_capabilities: dict[str, Any] = {capability: {}}
        self._answers = list(answers)

    @asynccontextmanager
    async def connect(self, address: Any, **options: Any) -> AsyncIterator[Scripted]:
        """The client."""
        yield self

    async def request_raw(self, method: str, params: Any, timeout: float) -> bytes:
        """The next answer."""
        self.asked.append((method, params))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def read(self) -> str:
        """The names of all tools."""
        entries = live_server.lists(self, Target("it", "")).entries
        return "".join(str(tool["name"]) for tool in entries["tools"])


def page(names: str, cursor: object = None) -> dict[str, Any]:
    """A page of tools whose names have one character."""
    return {"tools": [{"name": name} for name in names], "nextCursor": cursor}


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        ([page("a", "1"), page("b", "2"), page("c")], "abc"),
        ([page("a", "")], "a"),
        ([page("a", 5)], "a"),
        ([page("a" * 5000)], "a"),
        ([page("a", "1"), page("b", "2"), page("c", "2"), page("d")], "abc"),
        ([page("", str(number)) for number in range(99)] + [page("a")], "a"),
    ],
)
def test_all_pages_of_a_list_are_read(pages: list[Any], names: str) -> None:
    package = Scripted(*pages)
    assert package.read() == names
    cursors = [each["nextCursor"] for each in pages][: len(package.asked) - 1]
    params = [{}, *({"cursor": cursor} for cursor in cursors)]
    assert package.asked == [("tools/list", each) for each in params]


@pytest.mark.parametrize(
    ("pages", "error"),
    [
        ([page("", str(number)) for number in range(101)], "100 pages at most, got more"),
        ([{"tools": [1] * 5001}], "5000 entries at most, got more"),
        ([Refusal("no" * 300)], r"it#: expected a server that answers, got (no){250}\.\.\.$"),
        ([page("a", "1"), {"tools": [{"name": ""}]}], "expected a name of 1 to 200 characters"),
        ([b"{"], "it#: expected JSON for tools/list, got Expecting"),
        ([b"[" * 100_000], "it#: expected JSON for tools/list, got "),
        ([b"[]"], "it#/tools: expected an array in the result of tools/list, got none"),
        ([{"tools": {}}], "it#/tools: expected an array in the result of tools/list, got none"),
        ([{"tools": [{"name": ""}]}], "a name of 1 to 200 characters"),
    ],
)
def test_pages_that_are_no_list_or_too_many_are_refused(pages: list[Any], error: str) -> None:
    with pytest.raises(MirrorError, match=error):
        Scripted(*pages).read()


def test_a_server_may_refuse_the_list_of_templates_alone() -> None:
    package = Scripted({"resources": []}, Refusal(), capability="resources")
    assert package.read() == ""
    assert [method for method, _ in package.asked][1:] == ["resources/templates/list"]


@pytest.mark.parametrize(
    ("served", "own", "lines"),
    [
        ({}, {"tools": []}, []),
        ({"instructions": "x"}, {"tools": []}, ["the mirror has other instructions"]),
        ({}, {"tools": [], "instructions": "x"}, ["the mirror has other instructions"]),
        ({"instructions": "x"}, {"tools": [], "instructions": "x"}, []),
        (
            {"tools": [{"name": "a"}, {"name": "b"}]},
            {"tools": [{"name": "b"}, {"name": "a"}]},
            ["tools are listed in another order"],
        ),
        ({"prompts": [{"name": "b"}]}, {"prompts": [{"name": "a"}, {"name": "b"}]}, []),
        (
            {"resources": [{"uri": "a", "name": "n"}]},
            {"resources": [{"uri": "a", "name": "m"}]},
            ["resource a: listed with another /name"],
        ),
        (
            {"resources": [{"uri": "a", "name": "n"}]},
            {"resources": [{"uri": "a"}]},
            ["resource a: listed with /name, which the server leaves out"],
        ),
        *(
            (
                {"tools": [{"name": f"t{number}", "title": "n"} for number in range(count)]},
                {"tools": [{"name": f"t{number}", "title": "m"} for number in range(count)]},
                [f"tool t0, tool t1, tool t2, tool t3, tool t4{more}: listed with another /title"],
            )
            for count, more in ((5, ""), (6, " and 1 more"))
        ),
        (
            {"tools": [{"name": "a"}]},
            {"tools": [{"name": "a", "_meta": {"x" * 300: 1}}]},
            ["tool a: listed without /_meta"],
        ),
        (
            {"tools": [{"name": "a", "_meta": {}}]},
            {"tools": [{"name": "a", "_meta": {"x" * 300: 1}}]},
            [f"tool a: listed without /_meta/{'x' * 193}..."],
        ),
    ],
)
def test_lists_of_a_mirror_differ_in_these_words(
    served: dict[str, Any], own: dict[str, Any], lines: list[str]
) -> None:
    snapshot = mirror.Snapshot(parse(own, "x"), mirror.Limits((), {}), "X")
    assert [*live_server.list_differences(snapshot, served)] == lines
