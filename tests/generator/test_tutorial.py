"""The tutorial, done step by step: its commands print what it shows, and its project is that of
examples/tutorial.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import takewhile
from pathlib import Path
from threading import Thread

import msgspec
import pytest

import documents
from documents import ROOT, Block
from generator import command_line
from generator.test_document_commands import Command, commands_of

PROJECT = ROOT / "examples" / "tutorial"
PACKAGE = Path("src", "library", "protocol")
UNWRITTEN = {"__pycache__", ".pytest_cache", "tokens.json", *PACKAGE.parts[-1:]}
"""Names of files and folders that the reader's project has and the repository has not."""
WORDS = 700
SKIPPED = (
    *("pip install", "cd library"),
    *("mypy", "pyright", "ruff"),  # `nox -s skeletons` runs them
    "python -m library --http",  # serves without end
    "TOKEN=",
    "python -m library.protocol list http",  # uses what serves
    "python -m library.protocol call library.server:server lend_book",  # asks at a terminal
)
"""Beginnings of commands that the test does not run. Those over HTTP are run with the skeletons'
own, and a test of the project lends a book."""
FAILING = {"mcpgen check --quiet"}
"""What the reader sees fail, and what is printed then."""


def with_step(text: str, block: Block) -> str:
    """The text of a file after a step; `text` is empty before there is one."""
    match block.role:
        case "file":
            return block.text
        case "top":
            _, decorator, rest = text.partition("\n\n\n@server.tool()")
            return f"{block.text.rstrip()}{decorator}{rest}"
        case "add":
            return f"{text.rstrip()}\n\n\n{block.text}"
        case "line":
            begin = re.match(r"from \S+ |\w+ = ", block.text)
            assert begin, block.place
            lines = text.splitlines(keepends=True)
            (place,) = (n for n, line in enumerate(lines) if line.startswith(begin[0]))
            return "".join([*lines[:place], block.text, *lines[place + 1 :]])
        case _:
            raise AssertionError(f"{block.place}: expected a step")


class Reader:
    """Does what the tutorial says, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "library"
        places = (ROOT / "generator", self.project / "src")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        added = {"PATH": path, "PYTHONPATH": os.pathsep.join(map(str, places))}
        self.environment = {**os.environ, **added, "HOME": f"{folder}"}

    def read(self, page: Path) -> None:
        """Do each step of a page, and run its commands."""
        for block in documents.blocks_of(page):
            if block.role in documents.STEPS:
                file = self.project / block.name
                before = file.read_text("utf-8") if file.exists() else ""
                file.write_text(with_step(before, block), "utf-8")
            elif block.language == "console":
                for command in commands_of(block):
                    if not command.line.startswith(SKIPPED):
                        self.run(command, page)

    def run(self, command: Command, page: Path) -> None:
        """Run a command, which prints the lines that its page shows."""
        place = self.project if self.project.exists() else self.folder
        if command.line.startswith("mcpgen ") and "||" not in command.line:
            code, out, err = command_line.run(*command.line.split()[1:], cwd=place)
        else:
            code, out, err = self.in_shell(command.line, place)
        # Before its page on tests, the project has those of the skeleton; contracts differ once.
        expected = {0, 1} if command.line == "pytest" and page.name == "update.md" else {0}
        assert code in expected, f"{command.line}\n{out}\n{err}"
        lines = {re.sub(r"\b\d+ files", "... files", line) for line in out.splitlines()}
        assert {*command.printed} <= lines, command.line

    def in_shell(self, line: str, place: Path) -> command_line.Done:
        """Run a line of a shell."""
        line = re.sub(r"^mcpgen ", "python -m mcpgen ", line)
        done = subprocess.run(
            ["sh", "-c", re.sub(r"^pytest", "python -m pytest -q", line)],
            cwd=place,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return command_line.Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Somebody who has read all pages."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    for page in documents.tutorial():
        reader.read(page)
    return reader


def files_of(folder: Path) -> dict[str, str]:
    """The text of each file of a project that its author writes."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in paths
        if not UNWRITTEN & {*path.relative_to(folder).parts}
    }
