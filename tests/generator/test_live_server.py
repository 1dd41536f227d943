"""Asking servers for their lists: real processes, well and badly behaved, and configurations."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import mcpgen_runtime
from generator.command_line import run
from generator.test_cli import NEWEST
from generator.test_mirror import FORECAST, HARMLESS, attacked_lists, code_in
from mcpgen.errors import MirrorError, UsageError
from mcpgen.project import live_server, mirror
from mcpgen.project.live_server import Target, lists, target
from mcpgen.project.server_lists import parse

pytestmark = pytest.mark.costly

PACKAGE = str(Path(mcpgen_runtime.__file__).parent.parent)
SERVER = f"""
import sys
sys.path.insert(0, {PACKAGE!r})
from mcpgen_runtime import Server

server = Server("weather", page_size=2)

for name in ("rain", "sun", "wind"):
    @server.tool(name)
    def measure(city: str) -> int:
        return 1

@server.resource("weather://{{city}}")
def weather(city: str) -> str:
    return city

@server.prompt()
def report(city: str) -> str:
    return city

server.run()
"""
ANSWERS = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "x", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = RESULT
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                          "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def script(folder: Path, text: str) -> Target:
    """A server that is a script in Python."""
    path = folder / "other.py"
    path.write_text(text)
    return target(shlex.join([sys.executable, "other.py"]), folder)


def test_all_pages_of_every_list_are_read(tmp_path: Path) -> None:
    server_lists = lists(mcpgen_runtime, script(tmp_path, SERVER))
    assert [tool["name"] for tool in server_lists.entries["tools"]] == ["rain", "sun", "wind"]
    assert [each["uriTemplate"] for each in server_lists.entries["resourceTemplates"]] == [
        "weather://{city}"
    ]
    assert server_lists.entries["prompts"][0]["arguments"] == [{"name": "city", "required": True}]
    assert server_lists.entries["resources"] == ()


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (
            "raise SystemExit('no such city')",
            "ended with exit code 1; last lines on stderr: no such",
        ),
        ("print('hello')", "a server that answers, got"),
        (ANSWERS.replace("RESULT", "{'tools': 'none'}"), "a server that answers, got|an array in"),
        (
            ANSWERS.replace("RESULT", "{'tools': [], 'nextCursor': str(request['id'])}"),
            "100 pages at most",
        ),
        (ANSWERS.replace("RESULT", "{'tools': [{'name': ''}]}"), "a name of 1 to 200|got"),
        (ANSWERS.replace("RESULT", "[1]"), "a server that answers, got"),
    ],
    ids=["ends", "no protocol", "no list", "pages without end", "no name", "no object"],
)
def test_a_server_that_answers_with_nonsense_is_one_error(
    program: str, error: str, tmp_path: Path
) -> None:
    with pytest.raises(MirrorError, match=error) as raised:
        lists(mcpgen_runtime, script(tmp_path, program))
    assert "\n" not in str(raised.value)


def test_a_program_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="expected a server that answers, got"):
        lists(mcpgen_runtime, target("./no-such-program", tmp_path))


def test_a_url_where_nobody_listens_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="expected a server that answers, got"):
        lists(mcpgen_runtime, target("http://127.0.0.1:1/mcp", tmp_path))


def test_a_silent_server_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_server, "SECONDS", 1.0)
    with pytest.raises(MirrorError, match="expected a server that answers"):
        lists(mcpgen_runtime, script(tmp_path, "import sys\nsys.stdin.read()"))


CONFIG: dict[str, Any] = {
    "mcpServers": {
        "one": {"command": "python", "args": ["a.py", 1], "env": {"TOKEN": "secret"}},
        "two": {"url": "https://example.com/mcp", "headers": {"Authorization": "secret"}},
        "bad": {"command": ["x"]},
        "worse": 1,
        "odd": {"command": "x", "env": {"A": 1}},
    }
}


def test_an_entry_of_a_configuration_is_chosen_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps(CONFIG))
    one, two = target("mcp.json#one", tmp_path), target("mcp.json#two", tmp_path)
    assert (one.address, one.options) == (
        ["python", "a.py", "1"],
        {"cwd": str(tmp_path), "env": {"TOKEN": "secret"}},
    )
    assert (two.address, two.options) == (
        "https://example.com/mcp",
        {"headers": {"Authorization": "secret"}},
    )
    assert "secret" not in repr((one, two))


def test_the_only_entry_of_a_configuration_needs_no_name(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"x": {"command": "node"}}}')
    assert target("mcp.json", tmp_path).address == ["node"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", "expected FILE#NAME with one of one, two, bad, worse, odd, got no name"),
        ("three", "expected one of one, two, bad, worse, odd, got three"),
        ("bad", "expected a command with args, or a url, got neither"),
        ("worse", "expected one of one"),
        ("odd", "expected an object of strings"),
    ],
)
def test_an_entry_that_is_not_there_or_wrong_is_named(
    name: str, error: str, tmp_path: Path
) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps(CONFIG))
    with pytest.raises(MirrorError, match=error):
        target(f"mcp.json#{name}", tmp_path)


class Refusal(Exception):
    """An error of a server in memory."""


class Lists:
    """Results of list requests, one page after the other; `RemoteError` as in a package."""

    RemoteError = Refusal

    def __init__(self, *pages: dict[str, Any] | Refusal) -> None:
        self.pages = list(pages)
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def request(self, method: str, params: dict[str, str], timeout: float) -> bytes:
        """The next page."""
        self.asked.append((method, params))
        page = self.pages.pop(0)
        if isinstance(page, Refusal):
            raise page
        return json.dumps(page).encode()

    def read(self, kind: str = "tools") -> list[Any]:
        """All entries."""
        server = Target("it", "")
        return anyio.run(live_server._pages, self.request, kind, "x/list", server, self)


def number_pages(count: int, entries: int) -> list[dict[str, Any]]:
    """Pages with some entries each, and a cursor on all but the last."""
    cursors = [{"nextCursor": str(number)} for number in range(1, count)]
    return [{"tools": [1] * entries, **cursor} for cursor in [*cursors, {}]]


@pytest.mark.parametrize(
    ("count", "entries", "error"),
    [
        (100, 50, ""),
        (101, 0, "100 pages at most, got more"),
        (1, 5001, "5000 entries at most, got more"),
    ],
)
def test_a_list_has_limits_of_pages_and_entries(count: int, entries: int, error: str) -> None:
    server = Lists(*number_pages(count, entries))
    if not error:
        assert len(server.read()) == count * entries
        params: list[dict[str, str]] = [{}, *({"cursor": str(each)} for each in range(1, count))]
        assert server.asked == [("x/list", each) for each in params]
        return
    with pytest.raises(MirrorError, match=error):
        server.read()


@pytest.mark.parametrize("cursor", ["", None, 5])
def test_a_cursor_that_is_no_text_ends_a_list(cursor: object) -> None:
    assert Lists({"tools": [1], "nextCursor": cursor}).read() == [1]


def test_a_cursor_that_comes_again_ends_a_list() -> None:
    pages = [{"tools": [number], "nextCursor": cursor} for number, cursor in enumerate("abba")]
    assert Lists(*pages).read() == [0, 1, 2]


def test_a_server_may_refuse_the_list_of_templates_alone() -> None:
    assert Lists(Refusal()).read("resourceTemplates") == []
    with pytest.raises(Refusal):
        Lists(Refusal()).read()


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more"), (9, " and 4 more")])
def test_five_entries_of_a_difference_are_named(count: int, more: str) -> None:
    names = [f"t{number}" for number in range(count)]
    served = [{"name": name, "inputSchema": {}} for name in names]
    snapshot = mirror.Snapshot(
        parse([{**each, "title": "T"} for each in served], "x"), mirror.Limits((), {}), "X"
    )
    [line] = live_server._list_differences(snapshot, {"tools": served})
    assert line == f"{', '.join(f'tool {name}' for name in names[:5])}{more}: listed without /title"


@pytest.mark.parametrize("words", ["", "python 'open"])
def test_words_that_are_no_command_are_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        target(words, tmp_path)


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


@pytest.mark.parametrize("text", ["class", '"""', "\u202ex", "a" * 150], ids=range(4))
def test_hostile_lists_have_limits_too(text: str) -> None:
    lists_of_server = parse(attacked_lists(text), "x")
    limits = live_server.limits(mcpgen_runtime, lists_of_server)
    snapshot = mirror.Snapshot(lists_of_server, limits, "Weather")
    assert code_in(mirror.module_text(mirror.build(snapshot, "protocol"))) <= HARMLESS


@pytest.mark.timeout(120)
def test_a_project_starts_from_a_running_server_and_follows_it(tmp_path: Path) -> None:
    script(tmp_path, SERVER)
    command = shlex.join([sys.executable, "other.py"])
    words = ("new", "server", "weather", "-r", NEWEST, "--from-server", command)
    made = run(*words, cwd=tmp_path)
    assert made.code == 0, made.err
    assert "mirrored: 3 tools, 1 resource, 1 prompt" in made.out.splitlines()
    script(tmp_path, SERVER.replace('"sun"', '"snow"'))
    update = run("update", cwd=tmp_path / "weather")
    assert update.out.splitlines()[1:3] == ["new: tool snow", "gone: tool sun"]
    (tmp_path / "other.py").unlink()
    before = sorted((tmp_path / "weather").rglob("*.py"))
    lost = run("update", cwd=tmp_path / "weather")
    assert (lost.code, "expected a server that answers" in lost.err) == (2, True)
    assert run("check", cwd=tmp_path / "weather").code == 2
    assert run("check", "--offline", cwd=tmp_path / "weather").code == 0
    assert sorted((tmp_path / "weather").rglob("*.py")) == before


def test_nothing_is_written_for_a_server_that_does_not_start(tmp_path: Path) -> None:
    words = ("new", "client", "weather", "-r", NEWEST, "--from-server", "./absent --now")
    ended = run(*words, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "./absent --now#: expected a server that answers, got" in ended.err
    assert list(tmp_path.iterdir()) == []


SERVERS: dict[str, Any] = {
    "url": {"url": "https://a.b/mcp", "headers": {"A": "b"}},
    "bare": {"url": "https://a.b/mcp", "headers": {}},
    "both": {"url": "https://a.b/mcp", "command": "x"},
    "command": {"command": "x", "args": ["a", 5], "env": {"A": "b"}, "cwd": "sub"},
    "plain": {"command": "x", "cwd": "", "env": None},
}


@pytest.mark.parametrize(
    ("words", "address", "options"),
    [
        ("http://a.b", "http://a.b", {}),
        ("https://a.b/#c", "https://a.b/#c", {}),
        ("run 'a b' c", ["run", "a b", "c"], {"cwd": ""}),
        ("none.json", ["none.json"], {"cwd": ""}),
        ("mcp.json#url", "https://a.b/mcp", {"headers": {"A": "b"}}),
        ("mcp.json#bare", "https://a.b/mcp", {}),
        ("mcp.json#both", "https://a.b/mcp", {}),
        ("mcp.json#command", ["x", "a", "5"], {"cwd": "/sub", "env": {"A": "b"}}),
        ("mcp.json#plain", ["x"], {"cwd": ""}),
    ],
)
def test_words_name_a_server(
    words: str, address: str | list[str], options: dict[str, Any], tmp_path: Path
) -> None:
    text = json.dumps({"servers" if words.endswith("#bare") else "mcpServers": SERVERS})
    (tmp_path / "mcp.json").write_text(f"\ufeff// of this project\n{text}", "utf-8")
    expected = dict(options)
    if "cwd" in options:
        expected["cwd"] = f"{tmp_path}{options['cwd']}"
    name = words.partition("#")[2] if words.startswith("mcp.json") else ""
    assert target(words, tmp_path) == Target(words, address, expected, name)


@pytest.mark.parametrize(
    ("document", "name", "error"),
    [
        ([], "", "#/mcpServers: expected an object with servers, got none"),
        ({"mcpServers": {}}, "", "#/mcpServers: expected an object with servers, got none"),
        (
            {"mcpServers": {"a": {}, "b": {}}},
            "",
            "#/mcpServers: expected FILE#NAME with one of a, b, got no name",
        ),
        ({"mcpServers": {"a": {}, "b": {}}}, "#c", "#/mcpServers: expected one of a, b, got c"),
        (
            {"mcpServers": {"a": {"command": "x", "args": "y"}}},
            "",
            "#/mcpServers/a: expected a command with args, or a url, got neither",
        ),
        (
            {"mcpServers": {"a": {"command": ["x"]}}},
            "",
            "#/mcpServers/a: expected a command with args, or a url, got neither",
        ),
        (
            {"mcpServers": {"a": {"url": "u", "headers": {"a": 1}}}},
            "",
            "#/headers: expected an object of strings, got something else",
        ),
        (
            {"mcpServers": {"a": {"command": "x", "env": []}}},
            "",
            "#/env: expected an object of strings, got something else",
        ),
    ],
)
def test_a_configuration_that_names_no_server_is_refused(
    document: Any, name: str, error: str, tmp_path: Path
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(document))
    with pytest.raises(MirrorError) as raised:
        target(f"mcp.json{name}", tmp_path)
    assert str(raised.value) == f"{path}{error}"


def list_differences(served: dict[str, Any], **own: Any) -> list[str]:
    """The differences of served lists from those of a server."""
    snapshot = mirror.Snapshot(parse(own, "x"), mirror.Limits((), {}), "X")
    return list(live_server._list_differences(snapshot, served))


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
    assert list_differences(served, **own) == lines


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (b"{", "it#: expected JSON for tools/list, got Expecting"),
        (b"[" * 100_000, "it#: expected JSON for tools/list, got "),
        (b"[]", "it#/tools: expected an array in the result of tools/list, got none"),
        (b'{"tools": {}}', "it#/tools: expected an array in the result of tools/list, got none"),
    ],
)
def test_a_page_that_is_no_list_is_refused(page: bytes, error: str) -> None:
    with pytest.raises(MirrorError) as raised:
        live_server._page(page, "tools", "tools/list", Target("it", ""))
    assert str(raised.value).startswith(error)
