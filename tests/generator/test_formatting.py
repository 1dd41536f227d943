"""Formatters and linters of a user's project leave a package as it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcpgen import formatting
from mcpgen.check import check
from mcpgen.errors import OutputError

TOOLS = {
    "black": ["black", "--quiet"],
    "ruff format": ["ruff", "format", "--quiet", "--isolated"],
    "ruff check": ["ruff", "check", "--fix", "--isolated", "--select=E,F,I,UP,D,Q,COM"],
    "isort": ["isort", "--quiet"],
    "isort like black": ["isort", "--quiet", "--profile=black"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_of_the_users_project_changes_nothing(package: Path, tool: str) -> None:
    project = package.parent / "project"
    (project / "src").mkdir(parents=True)
    own = project / "src" / "own.py"
    own.write_text("import sys,   os\nx = [ 1,2 ]\nprint(sys, os)\n")
    vendored = Path(shutil.copytree(package, project / "src" / "pkg"))
    name, *words = TOOLS[tool]
    command = [sys.executable, "-m", name, *words, "src"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "pkg" not in done.stdout + done.stderr
    assert "import sys,   os\nx = [ 1,2 ]" not in own.read_text(), done.stderr
    assert check(vendored).edited == ()


def test_modules_are_formatted_each_at_its_path() -> None:
    sources = {"a.py": "x = {  'a':1 }\n", "r/b.py": "def f( ):\n  return 1\n"}
    assert formatting.formatted(sources) == {
        "a.py": 'x = {"a": 1}\n',
        "r/b.py": "def f():\n    return 1\n",
    }


def test_what_is_no_python_is_one_error() -> None:
    with pytest.raises(OutputError, match=r"ruff could not format the modules: .*a\.py"):
        formatting.formatted({"a.py": "def"})


def test_the_suppression_in_every_header_gives_its_reason(built: Mapping[str, str]) -> None:
    line = "# ruff: noqa - a file that fixes change counts as edited"
    modules = {path: text for path, text in built.items() if path.endswith(".py")}
    assert [path for path, text in modules.items() if line not in text.splitlines()] == []
