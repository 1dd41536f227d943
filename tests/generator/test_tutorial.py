"""The tutorial, done step by step; `--snapshot-update` writes examples/tutorial anew."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import documents
from documents import ROOT, Block
from generator import command_line
from generator.test_document_commands import Command, commands_of, without_counts
from kit.pages import serving

pytestmark = [pytest.mark.processes, pytest.mark.costly]
PROJECT = ROOT / "examples" / "tutorial"
OTHERS = {"README.md", "tokens.json", "__pycache__", ".pytest_cache", ".ruff_cache", "protocol"}
"""Names of files and folders that the reader's project and that of the repository do not share."""
SKIPPED = (
    *("cd library", "pip install"),
    *("mypy", "pyright", "ruff"),  # `nox -s skeletons` runs them
    "python -m library --http",  # serves without end
    "TOKEN=",
    "python -m library.protocol list http",  # uses what serves
    "python -m library.protocol call library.server:server lend_book",  # asks at a terminal
)
"""Beginnings of commands that the test does not run. `nox -s skeletons` serves its projects over
HTTP, and a test of this one lends a book.
"""
AGENT = "python -m library.agent"
"""Runs where its server finds the project, as that gets no PYTHONPATH."""
PYTEST = "python -m pytest -q -p anyio.pytest_plugin -p mcpgen.contract.pytest_plugin"


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
        """Prepare the environment in which `python` is the one of the tests."""
        self.folder = folder
        self.project = folder / "library"
        self.last = ""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        self.environment = {
            **clean,
            "HOME": f"{folder}",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": f"{ROOT / 'generator'}{os.pathsep}{self.project / 'src'}",
        }

    def read(self, page: Path) -> None:
        """Do each step of a page, and run its commands."""
        for block in documents.blocks_of(page):
            if block.role in documents.STEPS:
                file = self.project / block.name
                before = file.read_text("utf-8") if file.exists() else ""
                file.write_text(with_step(before, block), "utf-8")
            elif block.language == "console":
                for command in commands_of(block):
                    if not command.line.startswith(SKIPPED) and not self.tests_again(command, page):
                        self.run(command, page)

    def tests_again(self, command: Command, page: Path) -> bool:
        """Whether a command runs tests that `nox -s skeletons` or the last command ran."""
        last, self.last = self.last, command.line
        return command.line == "pytest" and (page.name == "tools.md" or last.startswith("pytest "))

    def run(self, command: Command, page: Path) -> None:
        """Run a command, which prints the lines that its page shows."""
        place = self.project if self.project.exists() else self.folder
        if command.line.startswith("mcpgen ") and "||" not in command.line:
            code, out, err = command_line.run(*command.line.split()[1:], cwd=place)
        else:
            code, out, err = self.in_shell(command.line)
        differs = command.line == "pytest" and page.name == "update.md"  # a contract, as it says
        assert code == differs or code == 0, f"{command.line}\n{out}\n{err}"
        assert {*command.printed} <= {*map(without_counts, out.splitlines())}, command.line

    def in_shell(self, line: str) -> command_line.Done:
        """Run a line of a shell in the project."""
        for program, spelled in (("pytest", PYTEST), ("mcpgen", "python -m mcpgen")):
            line = re.sub(rf"^{program}\b", spelled, line)
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.project / "src" if AGENT in line else self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return command_line.Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Somebody who has done what all pages say."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    for page in documents.tutorial():
        reader.read(page)
    return reader


def files_of(folder: Path) -> dict[str, str]:
    """The text of each file of a project that its author commits, apart from the package."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    written = [path for path in paths if not OTHERS & {*path.parts}]
    return {path.as_posix(): (folder / path).read_text("utf-8") for path in written}


@pytest.mark.timeout(240)
def test_the_steps_of_the_tutorial_give_its_project(
    reader: Reader, request: pytest.FixtureRequest
) -> None:
    written = files_of(reader.project)
    if request.config.getoption("update_snapshots"):
        for name in files_of(PROJECT).keys() - written.keys():
            (PROJECT / name).unlink()
        for name, text in written.items():
            (PROJECT / name).parent.mkdir(parents=True, exist_ok=True)
            (PROJECT / name).write_text(text, "utf-8")
    assert written == files_of(PROJECT)


@pytest.mark.timeout(240)
def test_the_agent_of_the_tutorial_asks_a_model(reader: Reader) -> None:
    function = {"name": "find_books", "arguments": '{"words": "dune"}'}
    calls = [{"id": "1", "type": "function", "function": function}]
    answers: list[Any] = [{"role": "assistant", "content": "Yes."}, {"tool_calls": calls}]
    asked: list[Any] = []

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            assert (self.path, self.headers["Authorization"]) == ("/chat/completions", "Bearer k")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [{"message": answers.pop()}]}).encode())

    with serving(Model) as url:
        reader.environment |= {"MODEL_URL": url, "MODEL": "m", "MODEL_KEY": "k"}
        done = reader.in_shell(f"{AGENT} 'Is Dune there?'")
    assert done.out == "Yes.\n", done.err
    first, second = asked
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "check_isbn",
        "find_books",
        "lend_book",
    ]
    assert '"title":"Dune"' in second["messages"][-1]["content"]
