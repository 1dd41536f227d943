"""The commands of the documents run, one after another, and print what the documents show."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import documents
from documents import Block
from generator import command_line
from generator.schemas import obj, ref
from generator.typescript_text import save_text, typescript_of
from mcpgen import schema

pytestmark = pytest.mark.processes

SKIPPED = {
    "pytest": "needs an installed mcpgen; test_contract_testing.py runs these examples",
    "git clone": "needs an address of the project",
    "pip install": "needs a registry; `nox -s package-single` installs what is named",
    "nox": "runs this test, among others",
    "uvx nox": "likewise",
    "pipx run --spec . mcpgen": "needs a registry; `nox -s package-single` runs these",
    "python3 -m venv": "likewise, by pip",
    "uvx --from . mcpgen": "likewise, by uv",
    "uv run": "likewise, by uv, in the folder of the package",
    "mcpgen --schema draft/schema.ts": "watches without end; test_watching.py does so",
    "python -m pkg announce": "needs an engine; test_worker_announcements.py has one",
    'python -m pkg inspect "npx': "needs a package of npm; interop tests use such servers",
    "python -m pkg inspect server:server --web": "serves without end; test_inspector.py uses it",
    "python -m pkg list https": "needs a server elsewhere; test_command_line.py has one",
    "python -m pkg serve": "serves without end; package/test_document_examples.py serves and calls",
}
"""Commands that are not run, by how they begin, and why."""
DRAFT_OF = "2025-11-25"
LISTS = Path(__file__).parent / "weather.json"
FASTMCP_PROGRAM = """\
from fastmcp import FastMCP

mcp = FastMCP("greeter")


@mcp.tool
def greet(name: str) -> str:
    \"\"\"Greets somebody.\"\"\"
    return f"Hello, {name}!"
"""
"""The file in `src` that `mcpgen port` rewrites."""
COUNT = re.compile(r"\b\d+ (files?)\b")


class Command(NamedTuple):
    """A line of a console, without its prompt and comment, and what is printed below it."""

    line: str
    printed: tuple[str, ...]


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of one block, in order."""
    if block.language == "sh":  # without prompts and output
        yield from (Command(each, ()) for each in block.text.splitlines())
        return
    line, printed = "", list[str]()
    for each in block.text.splitlines():
        if each.startswith("$ "):
            if line:
                yield Command(line, tuple(printed))
            line, printed = re.sub(r"\s+# .*", "", each[2:]), []
        else:
            printed.append(each)
    yield Command(line, tuple(printed))


def commands() -> dict[str, list[Command]]:
    """The commands of each document that has some, but for the tutorial: test_tutorial.py."""
    by_document = defaultdict[str, list[Command]](list)
    pages = {documents.relative_name(page) for page in documents.tutorial()}
    for block in documents.blocks():
        if block.language in {"console", "sh"} and block.document not in pages:
            by_document[block.document] += commands_of(block)
    return by_document


def run(command: Command, folder: Path) -> str:
    """Run a command in a folder, which must succeed; its output. `> FILE` keeps that in a file."""
    line, _, target = command.line.partition(" > ")
    program, *words = shlex.split(line)
    if program == "mcpgen":  # without a process that imports all of it
        done = command_line.run(*words, cwd=folder)
    elif program == "echo":
        done = command_line.Done(0, f"{' '.join(words)}\n", "")
    else:
        assert program == "python"
        places = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        path = {"PATH": os.pathsep.join(places)}
        generator = (documents.ROOT / "generator",)
        done = command_line.run_python(*words, cwd=folder, paths=generator, environment=path)
    assert done.code == 0, f"{command.line}\n{done.err}"
    if target:
        (folder / target.strip()).write_text(done.out, "utf-8")
    return done.out


def without_counts(line: str) -> str:
    """A line as documents show it, without numbers of files, which change with every module."""
    return COUNT.sub(r"... \1", line)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the documents assume: a draft, also in TypeScript, lists, a program."""
    definitions = schema.load(DRAFT_OF, errata=False).definitions
    paint = obj("method", method={"const": "tools/paint"})
    asked = definitions["ClientRequest"]
    more = {"anyOf": [*asked["anyOf"], ref("PaintRequest")]}
    draft = {**definitions, "PaintRequest": paint, "ClientRequest": {**asked, **more}}
    (tmp_path / "draft.json").write_text(json.dumps({"$defs": draft}), "utf-8")
    (tmp_path / "schema.json").write_text(json.dumps({"$defs": definitions}), "utf-8")
    save_text(tmp_path, typescript_of(definitions))
    (tmp_path / "tools.json").write_bytes(LISTS.read_bytes())
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "greeter.py").write_text(FASTMCP_PROGRAM, "utf-8")
    for name, text in documents.examples().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", commands())
def test_the_commands_of_a_document_run_and_print_what_it_shows(
    document: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for command in commands()[document]:
        if not command.line.startswith(tuple(SKIPPED)):
            lines = {without_counts(line) for line in run(command, folder).splitlines()}
            assert {*command.printed} <= lines, command.line
