"""Formatters and linters of a user's project leave a package as it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import cache as computed_once
from pathlib import Path

import black
import pytest

from generator.conftest import REVISION
from mcpgen.errors import OutputError
from mcpgen.model import schema_sources
from mcpgen.model.parts import Selection
from mcpgen.package import output, pipeline
from mcpgen.package.build_request import BuildRequest
from mcpgen.package.check import check
from mcpgen.render import formatting

pytestmark = pytest.mark.costly

TOOLS = {
    "black": ["black", "--quiet"],
    "ruff format": ["ruff", "format", "--quiet", "--isolated"],
    "ruff check": ["ruff", "check", "--fix", "--isolated", "--select=E,F,I,UP,D,Q,COM"],
    "isort": ["isort", "--quiet"],
    "isort like black": ["isort", "--quiet", "--profile=black"],
}
TYPES = Selection(("types",))


@computed_once
def types_of_a_revision() -> Mapping[str, str]:
    """A package with rendered and copied modules: all modules have the same lines above."""
    sources = schema_sources.by_name((REVISION,))
    return pipeline.build(BuildRequest("pkg", sources, selection=TYPES))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_of_the_users_project_changes_nothing(tmp_path: Path, tool: str) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    own = project / "src" / "own.py"
    own.write_text("import sys,   os\nx = [ 1,2 ]\nprint(sys, os)\n")
    vendored = project / "src" / "pkg"
    output.write(vendored, types_of_a_revision())
    name, *words = TOOLS[tool]
    command = [sys.executable, "-m", name, *words, "src"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "pkg" not in done.stdout + done.stderr
    assert "import sys,   os\nx = [ 1,2 ]" not in own.read_text(), done.stderr
    assert check(vendored).edited == ()


MODULES = {
    "two functions": "def f( ): pass\ndef g( ):\n  return 1\nx = [  1 ]\n",
    "a docstring and a comment": "'''A.'''\n\n# of f\ndef f( ): pass\n\n# of g\ndef g( ): ...\n",
    "decorators": "x = 1\n\n@a\n# why\n@b( 1 )\ndef f( ): ...\n\n@c\nclass A: pass\n",
    "overloads": "@o\ndef f( ): ...\n@o\ndef f(a ): ...\n\ndef f(a=1 ):\n  pass\n",
    "a text with definitions": 'x = """\n\ndef f( ): pass\n\n# y\n"""\n\ndef g( ): pass\n',
    "branches": "if a :\n  def f( ): pass\n\nelse :\n  b\n\nfor x in  y:\n  class A: pass\n\nb\n",
    "parts that are switched off": "# fmt: off\ndef f( ): pass\n\n# fmt: on\n\ndef g( ): pass\n",
    "nothing": "",
    "a comment at the end": "def f( ): pass\n\n# end\n",
    "other ends of lines": "def f( ): pass\r\n\r\ndef g( ): pass\r\n",
    "other spaces": "def f( ): pass\n\n\x0c\ndef g( ): x = '\u2028'\n\ndef h( ): pass\n",
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module_in_pieces_is_formatted_as_the_whole_is(case: str) -> None:
    source = MODULES[case]
    whole = black.format_str(source, mode=black.Mode(line_length=100))
    assert formatting.format_modules({"a.py": source}) == {"a.py": whole}


def test_many_modules_are_formatted_by_two_processes() -> None:
    text = "long " * 5_000
    sources = {f"{name}.py": f"{name} =  '{text}'\n" for name in "abcd"}
    expected = {f"{name}.py": f'{name} = "{text}"\n' for name in "abcd"}
    assert formatting.format_modules(sources) == expected
    assert [*formatting.format_modules(sources)] == [*sources]


@pytest.mark.parametrize("count", [0, 30_000])
def test_invalid_python_is_one_error(count: int) -> None:
    sources = {"long.py": f"x = '{'long ' * count}'\n", "b.py": "def", "c.py": "y = 1\n"}
    with pytest.raises(OutputError, match=r"^black could not format b\.py: "):
        formatting.format_modules(sources)
