"""A report of names and sentences that readers stumble over; `nox -s prose` prints it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from conventions.sources import (
    GENERATOR,
    TESTS,
    hand_written,
    python_files,
    relative_name,
    text_of,
    tree_of,
)
from documents import documents

Look = Callable[[Path], Iterator[tuple[int, str]]]
"""What a look at a file finds: lines with texts."""

VERBS_IN_ED = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "succeed"})
IRREGULAR = re.compile(
    "asked|begun|broken|brought|built|chosen|drawn|found|given|gone|held|hidden|kept|known|left"
    "|lost|made|meant|said|seen|sent|shown|spoken|taken|told|written"
)
PRONOUN = re.compile(r"\s*(What|Who|Whoever|Whom|Which)\b")
"""A beginning of a docstring that leaves the thing without its noun."""

NAMES_OF_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
NAME_CHARACTERS = 60
PHRASE = re.compile(
    r"\b(?:what stays|what remains|as ever|goes on|go on|hands? in|way to one|whoever|a half of the"
    r"|beside)\b",
    re.IGNORECASE,
)
"""Idiom that a reader at a second language reads twice."""


def functions_in(path: Path) -> Iterator[tuple[int, str]]:
    """The functions and methods of a file, with their lines."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def riddles_in(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings that begin with a pronoun, those of attributes included."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if PRONOUN.match(text):
                yield node.lineno, text.strip().split("\n", 1)[0]


def values_called_found(path: Path) -> Iterator[tuple[int, str]]:
    """Variables whose name says nothing."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Name(id="found", ctx=ast.Store()) | ast.arg(arg="found"):
                yield node.lineno, "found"


def participles_in(path: Path) -> Iterator[tuple[int, str]]:
    """Functions that a lone past participle names; a private name is one likewise."""
    for line, name in functions_in(path):
        word = name.lstrip("_")
        is_regular = word.endswith("ed") and word not in VERBS_IN_ED
        if "_" not in word and (is_regular or IRREGULAR.fullmatch(word)):
            yield line, name


def names_of_tests_in(path: Path) -> Iterator[tuple[int, str]]:
    """Names of tests that are long, short or begin with `what`, each with its fault."""
    for line, name in functions_in(path):
        if name.startswith("test_"):
            if len(name) > NAME_CHARACTERS:
                yield line, f"{name}: {len(name)} characters"
            if name.count("_") < 3:  # test, and a sentence of three words
                yield line, f"{name}: no sentence"
            if name.startswith("test_what_"):
                yield line, f"{name}: begins with what"


def modules_of_nothing(path: Path) -> Iterator[tuple[int, str]]:
    """The file itself, if its name says nothing."""
    if path.stem in NAMES_OF_NOTHING:
        yield 1, path.stem


def phrases_in(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a document with idiom, by its first phrase."""
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if phrase := PHRASE.search(line):
            around = line[max(phrase.start() - 30, 0) : phrase.end() + 30]
            yield number, f"{phrase[0]}: ...{around}..."


def main() -> None:
    """Print the report."""
    code, tool, tests = hand_written(), python_files(GENERATOR), sorted(TESTS.rglob("test_*.py"))
    report: tuple[tuple[str, Collection[Path], Look], ...] = (
        ("Docstrings that begin with a pronoun", code, riddles_in),
        ("Values called found", code, values_called_found),
        ("Functions that a participle names", tool, participles_in),
        ("Names of tests", tests, names_of_tests_in),
        ("Modules whose names say nothing", code, modules_of_nothing),
        ("Idiom in documents", documents(), phrases_in),
    )
    for heading, paths, look in report:
        lines = [f"{relative_name(path)}:{n}: {text}" for path in paths for n, text in look(path)]
        print("\n  ".join([f"{heading}: {len(lines)}", *lines]))


if __name__ == "__main__":
    main()
