"""Formatters and linters of a user's project leave a package as it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcpgen import cache, formatting
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


def test_many_modules_are_formatted_as_one_is() -> None:
    source = "x = [  1 ]\n" * 5_000
    sources = {f"{name}.py": f"{name} = 1\n{source}" for name in "abcd"}
    alone = {path: formatting.formatted({path: text})[path] for path, text in sources.items()}
    assert formatting.formatted(sources) == alone
    assert [*formatting.formatted(sources)] == [*sources]


@pytest.mark.parametrize("count", [0, 30_000])
def test_what_is_no_python_is_one_error(count: int) -> None:
    sources = {"long.py": "x = 1\n" * count, "b.py": "def", "c.py": "y = 1\n"}
    with pytest.raises(OutputError, match=r"^black could not format b\.py: "):
        formatting.formatted(sources)


def test_a_long_module_is_formatted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sources = {"long.py": "x = [  1 ]\n" * 1_000, "short.py": "x = [  1 ]\n"}
    first = formatting.formatted(sources)
    [entry] = cache.folder().glob("formatted-*")
    before = entry.stat().st_ino
    assert formatting.formatted(sources) == first
    assert entry.stat().st_ino == before


def test_the_suppression_in_every_header_gives_its_reason(built: Mapping[str, str]) -> None:
    line = "# ruff: noqa - a file that fixes change counts as edited"
    modules = {path: text for path, text in built.items() if path.endswith(".py")}
    assert [path for path, text in modules.items() if line not in text.splitlines()] == []
