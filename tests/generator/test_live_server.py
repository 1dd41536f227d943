"""Asking servers for their lists: real processes, well and badly behaved, and configurations."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import mcpgen_runtime
from generator.command_line import run
from generator.test_cli import NEWEST
from generator.test_mirror import FORECAST, HARMLESS, attacked_lists, code_in
from mcpgen.errors import MirrorError
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


def test_a_url_where_nobody_listens_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="expected a server that answers, got"):
        lists(mcpgen_runtime, target("http://127.0.0.1:1/mcp", tmp_path))


def test_a_silent_server_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a deadline of 60 seconds that no option changes
    monkeypatch.setattr(live_server, "SECONDS", 1.0)
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
    assert [name for name in sys.modules if name.startswith("mcpgen_peer_")] == []


def test_nothing_is_written_for_a_server_that_does_not_start(tmp_path: Path) -> None:
    words = ("new", "client", "weather", "-r", NEWEST, "--from-server", "./absent --now")
    ended = run(*words, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "./absent --now#: expected a server that answers, got" in ended.err
    assert list(tmp_path.iterdir()) == []
