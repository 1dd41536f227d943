"""The banner of a server on a terminal when it starts."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

from kit.processes import PACKAGE_ROOT
from kit.web_process import SERVE, write_server
from mcpgen_runtime import REVISIONS
from mcpgen_runtime.server.toolkit.banner import banner_text

INFO = {"name": "city", "version": "1.0"}
COUNTS = {"tool": 2, "resource": 1, "prompt": 0}


def on_a_terminal(folder: Path, *argv: str, until: str, **environment: str) -> tuple[str, str]:
    """The text a process writes to a terminal, its standard error, until a text; and its output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    shown = ""
    while until not in shown:
        shown += os.read(ours, 4096).decode()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    os.close(ours)
    return shown.replace("\r\n", "\n"), output


def test_it_says_what_is_served_where_and_how_to_connect() -> None:
    text = banner_text(INFO, COUNTS, ["2025-06-18", "2026-07-28"], "http://127.0.0.1:8000/mcp")
    assert text.splitlines() == [
        "city 1.0",
        "  serves   2 tools, 1 resource",
        "  at       http://127.0.0.1:8000/mcp",
        "  speaks   MCP 2025-06-18, 2026-07-28",
        "  connect  claude mcp add --transport http city http://127.0.0.1:8000/mcp",
        "  stop     Ctrl-C",
    ]


def test_names_neither_control_the_terminal_nor_the_command() -> None:
    info = {"name": "a\x1b[2J;rm -rf ~", "title": "Oslo\x07\u202e", "version": "1\n2"}
    text = banner_text(info, {}, [], None, ["python", "my server.py"])
    assert all(line.isprintable() for line in text.splitlines())
    assert text.startswith("Oslo\\x07\\u202e 1\\n2\n")
    assert "claude mcp add a-2J-rm--rf -- python 'my server.py'" in text


def test_a_command_that_fits_on_no_line_is_left_out() -> None:
    assert "claude" not in banner_text(INFO, {}, [], None, ["python", "-c", "a\nb"])


def test_a_terminal_gets_it_over_http(tmp_path: Path) -> None:
    write_server(tmp_path)
    shown, output = on_a_terminal(tmp_path, *SERVE, until="Ctrl-C")
    assert re.search(
        r"connect  claude mcp add --transport http web http://127.0.0.1:\d+/mcp", shown
    )
    assert ", ".join(REVISIONS) in shown
    assert output == ""


def test_the_environment_turns_it_off(tmp_path: Path) -> None:
    write_server(tmp_path)
    shown, _ = on_a_terminal(tmp_path, *SERVE, until="/mcp\r\n", MCP_BANNER="off")
    assert shown.startswith("serving at http://127.0.0.1:")
