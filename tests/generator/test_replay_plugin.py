"""The plugin of pytest: a folder of traces as tests, and the fixture that plays one."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.command_line import run_with_plugin
from generator.shop_sessions import configuration, record

pytestmark = pytest.mark.timeout(300)
"""The first replay of a machine generates a package."""

REVISION = "2025-11-25"
TESTS = """
import pytest
from generator.shop_server import make

def test_same(mcp_replay):
    mcp_replay("traces/session.jsonl", make())

def test_mutant(mcp_replay):
    with pytest.raises(AssertionError, match="ANSWER_DIFFERS") as raised:
        mcp_replay("traces/session.jsonl", make("text"))
    assert '"Hello Ada"' in str(raised.value)

def test_target(mcp_replay):
    mcp_replay("traces/session.jsonl", "server.json")

def test_rules(mcp_replay):
    mcp_replay("traces/session.jsonl", make("text"), rules="rules.toml")
"""
RULES = """
[[match]]
method = "tools/call"
name = "greet"
pointer = "/result/**"
by = "shape"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a folder of traces, a server and a mutant."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "traces").mkdir()
    record(folder / "traces" / "session.jsonl", REVISION)
    configuration(folder)
    configuration(folder, "text")
    (folder / "test_shop.py").write_text(TESTS)
    (folder / "rules.toml").write_text(RULES)
    return folder


def replay(project: Path, *words: str) -> tuple[object, str]:
    """The exit code and the output of pytest with the plugin."""
    done = run_with_plugin(project, "mcpgen.replay.pytest_plugin", *words)
    return done.code, done.out + done.err


def test_each_session_of_a_folder_is_a_test(project: Path) -> None:
    words = ("--mcp-traces", "traces", "--mcp-server", "server.json")
    code, out = replay(project, "traces", *words, "-v")
    assert code == 0, out
    assert "traces/session.jsonl::session 1 PASSED" in out


def test_a_failure_is_the_report_of_the_differences(project: Path) -> None:
    words = ("--mcp-traces", "traces", "--mcp-server", "text.json")
    code, out = replay(project, "traces", *words)
    assert code == 1
    assert '    now:      "Good day Ada"' in out
    assert "Traceback" not in out


def test_the_fixture_plays_a_trace_to_any_server(project: Path) -> None:
    code, out = replay(project, "test_shop.py")
    assert code == 0, out
    assert "4 passed" in out


def test_settings_stand_for_the_options(project: Path) -> None:
    settings = ("-o", "mcp_traces=traces", "-o", "mcp_server=server.json")
    code, out = replay(project, "test_shop.py", *settings, "-k", "session")
    assert code == 0, out
    assert "1 passed" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--mcp-traces", "absent", "--mcp-server", "x"), "expected a folder with traces"),
        (("--mcp-traces", "traces"), "expected --mcp-server TARGET"),
    ],
)
def test_wrong_options_are_refused(project: Path, words: tuple[str, ...], reason: str) -> None:
    code, out = replay(project, *words)
    assert code == 4
    assert reason in out
