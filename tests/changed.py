"""The test functions that a change concerns, for `nox -s changed`."""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from reach import ROOT, Reach, copy_of, read

TESTS = ROOT / "tests"
ROOMS = {"templates/package": "tests/package", "generator/mcpgen": "tests/generator"}
"""Folders of tests that mirror folders of code."""

OTHERS = {
    "docs/": ("tests/conventions/test_documents.py", "tests/package/test_document_examples.py"),
    "generated/": ("tests/conventions",),
    "generator/": ("tests/conventions",),
    "schema/": ("tests/generator", "tests/requirements", "tests/conventions/test_facts.py"),
    "templates/package/": ("tests/generator/test_render.py", "tests/conventions"),
    "templates/project/": ("tests/generator/test_new_project.py", "tests/conventions"),
    "": ("tests/conventions",),
}
"""Tests by the beginning of a path; the first that fits counts."""

NAME = re.compile(r"[\w./-]{1,100}")
"""A text that may name a file or a module."""


def changed_files(base: str) -> list[str]:
    """Every file that differs from where the branch left a revision of git."""
    origin = git("merge-base", "HEAD", base)[0]
    untracked = git("ls-files", "--others", "--exclude-standard")
    return [*git("diff", "--name-only", "--no-renames", origin), *untracked]


def git(*words: str) -> list[str]:
    """The lines that a command of git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def concerned_tests(paths: Iterable[str], reach: Reach) -> list[str]:
    """The test functions that changes of some files concern, as `FILE::FUNCTION`, in order."""
    functions: set[str] = set()
    for path in paths:
        functions.update(concerned_by(path, reach))
    return sorted(functions)


def concerned_by(path: str, reach: Reach) -> Iterator[str]:
    """The test functions that a change of one file concerns."""
    if path.startswith("tests/"):
        for importing in importers(path):
            yield from functions_in(tests_of(importing))
        return
    reaching = reach.reaching_file(copy_of(path)[0])
    yield from reaching
    if not reaching:
        for place in next(value for key, value in OTHERS.items() if path.startswith(key)):
            yield from functions_in(ROOT / place)
        for folder, mirror in ROOMS.items():
            if path.startswith(f"{folder}/"):
                room = PurePosixPath(path).parent.relative_to(folder)
                folders = (ROOT / mirror / room, *(ROOT / mirror / room).parents)
                yield from functions_in(next(each for each in folders if each.is_dir()))


def tests_of(path: str) -> Path:
    """The file or folder of tests that a file below `tests` belongs to."""
    file = ROOT / path
    if file.name == "conftest.py":
        return file.parent
    if file.suffix == ".py":
        return file
    if file.parent.name == "__snapshots__":
        return file.parents[1] / f"{file.stem}.py"
    return next(folder for folder in file.parents if any(folder.glob("test_*.py")))


def functions_in(place: Path) -> Iterator[str]:
    """The test functions of a file, if it is one of tests, or of all files below a folder."""
    for file in sorted(place.rglob("test_*.py")) if place.is_dir() else [place]:
        if is_test(file.name) and file.is_file():
            name = file.relative_to(ROOT).as_posix()
            for node in tree_of(file).body:
                match node:
                    case ast.FunctionDef() | ast.AsyncFunctionDef() if is_test(node.name):
                        yield f"{name}::{node.name}"


def is_test(name: str) -> bool:
    """Whether pytest takes a file or function of this name for tests."""
    return name.startswith("test_")


def importers(path: str) -> set[str]:
    """A file below `tests` and the modules there that import or name it, directly or not."""
    reached, fresh = {path}, {path}
    while fresh:
        fresh = {name for name, uses in used_files().items() if uses & fresh} - reached
        reached |= fresh
    return reached


@cache
def used_files() -> dict[str, set[str]]:
    """The files below `tests` that each module there imports or names, from the top."""
    files = {file.relative_to(ROOT).as_posix(): file for file in sorted(TESTS.rglob("*.py"))}
    return {name: set(uses_of(file)) & files.keys() for name, file in files.items()}


def uses_of(file: Path) -> Iterator[str]:
    """Files that a module may import, and files whose names are texts in it."""
    folder = file.relative_to(ROOT).parent
    for node in ast.walk(tree_of(file)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from files_of(PurePosixPath("tests"), alias.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                start = folder.parents[level - 2] if level > 1 else folder
                place = PurePosixPath("tests") if not level else PurePosixPath(start)
                for alias in names:
                    yield from files_of(place, ".".join(filter(None, (module, alias.name))))
                if module:
                    yield from files_of(place, module)
            case ast.Constant(value=str() as text) if NAME.fullmatch(text):
                yield from files_of(PurePosixPath("tests"), text)
                yield f"{folder / text}"


def files_of(place: PurePosixPath, module: str) -> Iterator[str]:
    """The paths that a module may have."""
    path = place.joinpath(*module.removeprefix("tests.").split("."))
    yield from (f"{path}.py", f"{path / '__init__.py'}")


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(file.read_text("utf-8"))


def main() -> None:
    """Write the list, and print how many test functions it has."""
    parser = argparse.ArgumentParser(prog="changed", description=__doc__.splitlines()[0])
    parser.add_argument("map", type=Path, help="map of pytest --record-reach")
    parser.add_argument("list", type=Path, help="file for the list")
    parser.add_argument("--base", default="main", help="a revision of git")
    options = parser.parse_args()
    paths = changed_files(options.base)
    functions = concerned_tests(paths, read(options.map))
    options.list.write_text("".join(f"{name}\n" for name in functions), "utf-8")
    total = len({*functions_in(TESTS)})
    print(f"{len(functions)} of {total} test functions, for {len(paths)} changed files")


if __name__ == "__main__":
    main()
