"""Commands print styled text on a terminal if rich is installed, and nothing acts on a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

from kit.processes import PACKAGE_ROOT
from mcpgen_runtime import REVISIONS

pytestmark = [
    pytest.mark.skipif(
        not hasattr(os, "openpty"), reason="needs pseudo terminals, which POSIX has"
    ),
    pytest.mark.costly,
]

SERVER = """
    from mcpgen_runtime import Server

    server = Server("[bold]wild[/]", "1.0", instructions="[red]Stop[/] \\x1b[2J")

    @server.tool(description="[link=http://evil]Weather[/] :smile: \\x1b]0;title\\x07")
    def forecast(city: str, days: int = 3) -> list[int]:
        return [days]

    @server.tool()
    def notes() -> str:
        return "# Notes\\n\\nAsk [me](http://real.example) *now*, &#x202e;<http://a/%1b[2J>.\\n"

    @server.tool()
    def hostile() -> str:
        return "[bold]x[/] \\x1b[2J :smile: " + "long " * 50

    @server.tool()
    def program() -> str:
        return "# sum\\nx = 1\\n# and *more*\\ny = 2"

    @server.tool()
    def encoded() -> str:
        return '{"city": "Oslo \\\\u001b[2J", "days": [1]}'

    @server.resource("text://notes", name="[blink]notes[/]", mime_type="text/markdown")
    def read_notes() -> str:
        return "Some *text*"

    @server.prompt()
    def ask(city: str) -> str:
        return f"How is {city}? [bold]x[/]"
"""

SGR = re.compile(r"\x1b\[[\d;]*m")
"""Escape sequences that set colors and weights, and nothing else."""

NO_RICH = "raise ModuleNotFoundError('not installed', name='rich')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a server in it."""
    place = tmp_path_factory.mktemp("styled")
    (place / "wild.py").write_text(textwrap.dedent(SERVER))
    hidden = place / "hidden"
    hidden.mkdir()
    (hidden / "rich.py").write_text(NO_RICH)
    return place


def terminal_output(folder: Path, *words: str, hide_rich: bool = False) -> str:
    """Output of a command on a terminal."""
    paths = [str(PACKAGE_ROOT), *([str(folder / "hidden")] if hide_rich else [])]
    reading, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgen_runtime", *words],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        | {"PYTHONPATH": os.pathsep.join(paths), "TERM": "xterm-256color", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.PIPE,
    )
    os.close(terminal)
    output = bytearray()
    try:
        while chunk := os.read(reading, 65536):
            output += chunk
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(reading)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.decode().replace("\r\n", "\n")


@cache
def plain(folder: Path, *words: str) -> str:
    """Output of a command into a pipe; the command runs once."""
    return subprocess.run(
        [sys.executable, "-m", "mcpgen_runtime", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    ).stdout


def words_of(styled: str) -> str:
    """The text of a styled output, which has no control character but those of styles."""
    text = SGR.sub("", styled)
    assert all(char.isprintable() or char == "\n" for char in text), text
    return text


@pytest.mark.parametrize("revision", REVISIONS)
def test_lists_are_tables_without_markup_of_the_server(folder: Path, revision: str) -> None:
    styled = terminal_output(folder, "list", "wild:server", "--revision", revision)
    assert "\x1b[36m" in styled  # names of things
    text = words_of(styled)
    assert f"[bold]wild[/] 1.0, {revision}\n" in text
    assert re.search(
        r"forecast +city: string, days: integer = 3 +\[link=http://evil\]Weather", text
    )
    assert r":smile: \x1b]0;title\x07" in re.sub(r"\s+", " ", text)
    assert re.search(r"text://notes +\[blink\]notes\[/\] +text/markdown", text)
    assert re.search(r"URI +name +type +description", text)
    assert re.search(r"ask +city ", text)


def test_a_terminal_gets_the_plain_text_otherwise(folder: Path) -> None:
    for words in (("list", "wild:server"), ("call", "wild:server", "notes")):
        output = terminal_output(folder, *words, hide_rich=True)
        assert output.expandtabs() == plain(folder, *words)


def test_inspect_is_a_table_of_revisions(folder: Path) -> None:
    text = words_of(terminal_output(folder, "inspect", "wild:server"))
    assert "[bold]wild[/]  1.0\n" in text
    assert r"[red]Stop[/] \x1b[2J" in text
    assert re.search(r"revision +lists +capabilities +opened +listed", text)
    for revision in REVISIONS:
        assert re.search(rf"{revision} .*tools: 5.* \d+ ms +\d+ ms", text)


def test_other_text_stays_as_it_is(folder: Path) -> None:
    for tool in ("hostile", "program"):
        words = ("call", "wild:server", tool)
        assert words_of(terminal_output(folder, *words)) == plain(folder, *words)
    prompt = ("prompt", "wild:server", "ask", "--arg", "city=[red]Oslo[/]")
    styled = terminal_output(folder, *prompt)
    assert styled.startswith("\x1b[1muser: ")
    assert words_of(styled) == plain(folder, *prompt)


@pytest.mark.parametrize("more", [(), ("--full",)])
def test_a_trace_is_styled_in_the_same_words(folder: Path, more: tuple[str, ...]) -> None:
    trace = folder / "trace.jsonl"
    if not trace.exists():
        subprocess.run(
            [sys.executable, "-m", "mcpgen_runtime", "call", "wild:server", "hostile"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT), "MCP_TRACE": str(trace)},
            check=True,
            capture_output=True,
            timeout=60,
        )
    styled = terminal_output(folder, "trace", str(trace), *more)
    assert "\x1b[32m->" in styled
    assert words_of(styled) == plain(folder, "trace", str(trace), *more)
