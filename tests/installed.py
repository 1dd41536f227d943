"""Tests of the package, changed to import one on an installed runtime where that has a module."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mcpgen.model import runtime

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
NAME = "thin_protocol"
BESIDE = (
    *("README.md", "docs", "examples", "generated", "generator", "schema", "templates"),
    "zensical.toml",
)
"""Files and folders that tests expect beside their own folder."""

_LEFT_OUT = shutil.ignore_patterns("__pycache__", "interop", "node_modules")
_OF_REVISIONS = re.compile(rf"\b{runtime.PACKAGE}\.(?=\{{(?:FOLDERS|folder)|r\{{)")
_COMMAND = re.compile(rf'"-m", "{runtime.PACKAGE}"')
CHANGED = ("kit", "package", "typing")
"""Folders of the tests that are run on the package."""


def write(folder: Path) -> None:
    """Write the package and the tests."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TESTS, folder / "tests", ignore=_LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", folder)  # pytest and mypy look from where it lies
    for name in BESIDE:
        (folder / name).symlink_to(ROOT / name)
    # Processes of tests look where the package is, and find its runtime there too.
    (folder / "tests" / runtime.PACKAGE).symlink_to(ROOT / "generated" / runtime.PACKAGE)
    options = ("-q", "--revision", "all", "--features", "all", "--runtime", "installed")
    package = folder / "tests" / NAME
    command = (sys.executable, "-m", "mcpgen", *options, "-o", f"{package}")
    subprocess.run(command, check=True, cwd=ROOT)
    folders = [path.name for path in package.glob("r2*")]
    own = _Own(folders, _public_names(package), _classes(package / "server.py"))
    for name in CHANGED:
        for path in (folder / "tests" / name).rglob("*.py"):
            path.write_text(_change_imports(path.read_text("utf-8"), own), "utf-8")
    checked = folder / "tests" / "typing" / "pyrightconfig.json"
    text = checked.read_text("utf-8")
    checked.write_text(text.replace('"../../generated"', '"../../generated", ".."'), "utf-8")


class _Own(NamedTuple):
    """The modules and names that the package has itself."""

    folders: list[str]
    public: frozenset[str]
    servers: frozenset[str]

    def place_of(self, inner: str, name: str) -> str | None:
        """The module that has a name of a module of the runtime; `None` for the runtime's."""
        if not inner:
            return NAME if name in self.public else None
        module = runtime.module_of(f".{inner}", self.folders)
        is_own = module.startswith(".") and (module != ".server" or name in self.servers)
        return NAME + module if is_own else None


def _classes(module: Path) -> frozenset[str]:
    """The names of the classes in a module."""
    body = ast.parse(module.read_text("utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.ClassDef))


def _public_names(package: Path) -> frozenset[str]:
    """The names that the package has in its root, submodules among them."""
    stub = ast.parse((package / "__init__.pyi").read_text("utf-8"))
    names = (
        alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    return frozenset((*names, *(path.stem for path in package.iterdir())))


def _change_imports(text: str, own: _Own) -> str:
    """A module with the imports that the package has modules for; lines keep their numbers."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            statements = [*_statements(node, own)]
            if statements:
                _replace(lines, node, " " * node.col_offset + "; ".join(statements))
        for decorator in getattr(node, "decorator_list", ()):
            if "requirement" in ast.unparse(decorator).partition("(")[0]:
                _replace(lines, decorator)  # rules of other revisions are proven elsewhere
    return _COMMAND.sub(f'"-m", "{NAME}"', _OF_REVISIONS.sub(f"{NAME}.", "\n".join(lines)))


def _replace(lines: list[str], node: ast.stmt | ast.expr, first: str = "") -> None:
    """Put a line in the place of those of a node, and empty ones below it."""
    count = (node.end_lineno or node.lineno) - node.lineno + 1
    lines[node.lineno - 1 : node.lineno - 1 + count] = [first] + [""] * (count - 1)


def _statements(node: ast.Import | ast.ImportFrom, own: _Own) -> Iterator[str]:
    """The imports in place of one of the runtime; none for another one."""
    if isinstance(node, ast.Import):
        if [alias.name for alias in node.names] == [runtime.PACKAGE]:
            yield f"import {NAME} as {node.names[0].asname or runtime.PACKAGE}"
        return
    package, _, inner = (node.module or "").partition(".")
    if package != runtime.PACKAGE:
        return
    for alias in node.names:
        place = own.place_of(inner, alias.name) or node.module
        yield f"from {place} import {alias.name}{f' as {alias.asname}' if alias.asname else ''}"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
