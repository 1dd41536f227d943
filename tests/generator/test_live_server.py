"""Asking servers for their lists: real processes, well and badly behaved, and configurations."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import mcpgen_runtime
from generator.command_line import run
from generator.test_check_server import OURS
from generator.test_cli import NEWEST
from generator.test_mirror import FORECAST, HARMLESS, attacked_lists, code_in
from mcpgen.errors import MirrorError
from mcpgen.project import live_server, mirror
from mcpgen.project.live_server import Target, lists, target
from mcpgen.project.server_lists import parse

pytestmark = pytest.mark.costly


def script(folder: Path, text: str) -> Target:
    """A server that is a script in Python."""
    path = folder / "other.py"
    path.write_text(text)
    return target(shlex.join([sys.executable, "other.py"]), folder)


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
    script(tmp_path, OURS)
    command = shlex.join([sys.executable, "other.py"])
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
    assert [name for name in sys.modules if name.startswith("mcpgen_peer_")] == []


def test_nothing_is_written_for_a_server_that_does_not_start(tmp_path: Path) -> None:
    words = ("new", "client", "weather", "-r", NEWEST, "--from-server", "./absent --now")
    ended = run(*words, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "./absent --now#: expected a server that answers, got" in ended.err
    assert list(tmp_path.iterdir()) == []
