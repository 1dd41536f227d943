"""A report of names and sentences that readers stumble over; `nox -s prose` prints it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from conventions.sources import (
    GENERATOR,
    ROOT,
    TEMPLATES,
    TESTS,
    hand_written,
    python_files,
    relative_name,
    text_of,
    tree_of,
)
from documents import documents

STANDARD: Mapping[str, str] = {
    "agreement": "initialization",
    "conversations": "sampling messages",
    "dialogue": "multi round-trip request",
    "face": "stub, client class",
    "faces": "stubs",
    "handover": "eager execution",
    "honoured": "accepted",
    "impatient": "timeouts",
    "marks": "parameter headers",
    "mending": "lenient decoding",
    "messenger": "peer",
    "noticed": "invalidate",
    "patience": "timeouts",
    "quiet": "redaction",
    "reissue": "retry",
    "reissuing": "retries",
    "sealer": "signer",
    "sealing": "signing",
    "standing": "session restore",
    "wakeup": "one-shot event",
}
"""A word of the dialect, and the standard one."""

AMBIGUOUS = frozenset({"agreement", "marks", "quiet"})
"""Words with a standard meaning, too: the marks of pytest, the option `--quiet`."""

VERBS_IN_ED = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "succeed"})
IRREGULAR = re.compile(
    "asked|begun|broken|brought|built|chosen|drawn|found|given|gone|held|hidden|kept|known|left"
    "|lost|made|meant|said|seen|sent|shown|spoken|taken|told|written"
)
"""Participles without a regular ending, unless a verb has the same form, such as `read`."""

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

PRONOUN = re.compile(r"\s*(What|Who|Whoever|Whom|Which)\b")
"""A beginning of a docstring that leaves the thing without its noun."""

NAMES_OF_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
NAME_CHARACTERS = 60
MODULES_PER_FOLDER = 45
README_LINES = 160

PHRASE = re.compile(
    r"\b(?:what stays|what remains|as ever|goes on|go on|hands? in|way to one|whoever|a half of the"
    r"|beside)\b",
    re.IGNORECASE,
)
"""Idiom that a reader at a second language reads twice."""


def defined_names(path: Path) -> Iterator[tuple[int, str]]:
    """Every name that a file defines, with its line; the module's own has line 1."""
    yield 1, path.stem
    for node in ast.walk(tree_of(path)):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def dialect_in(path: Path, allowed: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """The names of a file that have a word of the table, each with the standard one."""
    for line, name in defined_names(path):
        for word in map(str.lower, WORD.findall(name)):
            if word in STANDARD and word not in allowed:
                yield line, f"{name}: write {STANDARD[word]}"


def riddles_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings that begin with a pronoun, those of attributes included, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if PRONOUN.match(text):
                yield node.lineno, text.strip().split("\n", 1)[0]


def is_participle(name: str) -> bool:
    """Whether a name is one word, and a past participle; a private name is one likewise."""
    word = name.lstrip("_")
    return "_" not in word and (
        IRREGULAR.fullmatch(word) is not None or (word.endswith("ed") and word not in VERBS_IN_ED)
    )


def participles_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions and methods that a lone participle names, with their lines."""
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
            decorators = {ast.unparse(each) for each in node.decorator_list}
            if not decorators & {"property", "cached_property"}:
                yield node.lineno, node.name


def names_of_tests_in(path: Path) -> Iterator[tuple[int, str]]:
    """Names of tests that are long, short or begin with `what`, each with its fault."""
    for line, name in defined_names(path):
        if name.startswith("test_") and line > 1:
            if len(name) > NAME_CHARACTERS:
                yield line, f"{name}: {len(name)} characters"
            if name.count("_") < 3:  # test, and a sentence of three words
                yield line, f"{name}: no sentence"
            if name.startswith("test_what_"):
                yield line, f"{name}: begins with what"


def phrases_in(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a document with idiom, by its first phrase."""
    for number, line in enumerate(text_of(path).splitlines(), 1):
        phrase = PHRASE.search(line)
        if phrase is not None:
            around = line[max(phrase.start() - 30, 0) : phrase.end() + 30]
            yield number, f"{phrase[0]}: ...{around}..."


def listed(
    paths: Collection[Path], look: Callable[[Path], Iterator[tuple[int, str]]]
) -> Iterator[str]:
    """The lines that a look at each file gives, with places."""
    for path in paths:
        for line, text in look(path):
            yield f"{relative_name(path)}:{line}: {text}"


def sizes() -> Iterator[str]:
    """Folders of tests with many modules, and a long README."""
    package = TESTS / "package"
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        number = len([*folder.glob("*.py")])
        if number > MODULES_PER_FOLDER:
            yield f"{relative_name(folder)}: {number} modules"
    lines = len(text_of(ROOT / "README.md").splitlines())
    if lines > README_LINES:
        yield f"README.md: {lines} lines"


def report() -> Iterator[tuple[str, list[str]]]:
    """Each heading with its lines."""
    code, tests = hand_written(), sorted(TESTS.rglob("test_*.py"))
    yield (
        "Words of a dialect",
        [
            *listed(python_files(TEMPLATES), dialect_in),
            *listed(python_files(GENERATOR, TESTS), lambda path: dialect_in(path, AMBIGUOUS)),
        ],
    )
    yield (
        "Docstrings that begin with a pronoun",
        [*listed(code, lambda path: riddles_in(tree_of(path)))],
    )
    yield (
        "Values called found",
        [
            place.removesuffix(": found")
            for place in listed(code, defined_names)
            if place.endswith(": found")
        ],
    )
    yield (
        "Functions that a participle names",
        [*listed(python_files(GENERATOR), lambda path: participles_in(tree_of(path)))],
    )
    yield "Names of tests", [*listed(tests, names_of_tests_in)]
    yield (
        "Modules whose names say nothing",
        [relative_name(path) for path in code if path.stem in NAMES_OF_NOTHING],
    )
    yield "Sizes", [*sizes()]
    yield "Idiom in documents", [*listed([*documents()], phrases_in)]


def main() -> None:
    """Print the report."""
    for heading, lines in report():
        print(f"{heading}: {len(lines)}")
        for line in lines:
            print(f"  {line}")


if __name__ == "__main__":
    main()
