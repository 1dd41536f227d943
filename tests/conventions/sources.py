"""The source files that the conventions hold for, and how they are read."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "generator" / "mcpgen"
TEMPLATES = ROOT / "templates"
PACKAGE = ROOT / "generated" / "mcpgen_runtime"
TESTS = ROOT / "tests"


def python_files(*trees: Path) -> list[Path]:
    """Every Python file below the trees, in order."""
    return sorted(path for tree in trees for path in tree.rglob("*.py"))


def hand_written() -> list[Path]:
    """Every Python file that a person wrote: the tool, the verbatim modules, the tests."""
    return [*python_files(GENERATOR, TEMPLATES, TESTS), ROOT / "noxfile.py"]


def templates() -> list[Path]:
    """Every template, in order."""
    return sorted(TEMPLATES.rglob("*.jinja"))


def relative_name(path: Path) -> str:
    """A path from the top of the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    """The text of a file."""
    return path.read_text("utf-8")


def toml_table(name: str) -> dict[str, Any]:
    """The table in a file of the folder `tables`."""
    return tomllib.loads(text_of(TESTS / "conventions" / "tables" / f"{name}.toml"))


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(text_of(path), str(path))


def tokens_of(path: Path) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a Python file, comments among them."""
    return tokenize.generate_tokens(io.StringIO(text_of(path)).readline)


def nodes_for_types(path: Path) -> set[ast.AST]:
    """The nodes under `if TYPE_CHECKING:` in a Python file."""
    return {
        inner
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }


@cache
def docstring_lines(path: Path) -> set[int]:
    """Numbers of the lines that only document: strings that stand alone as a statement."""
    return {
        number
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def repository_files() -> list[Path]:
    """Every file that git tracks, or would: what is ignored is left out."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    paths = (ROOT / name.decode() for name in listing.split(b"\0") if name)
    return sorted({path for path in paths if path.is_file()})
