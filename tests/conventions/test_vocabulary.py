"""The vocabulary: words of a dialect that are not to come back, in names and in prose.

A name is a module, a class, a function, a parameter, a variable or an attribute. Each word has a
standard one in its place, which the table gives.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from conventions.sources import PACKAGE, TEMPLATES, python_files, shown, tree_of

STANDARD: Mapping[str, str] = {
    "agreement": "initialization",
    "conversations": "sampling messages",
    "dialogue": "multi round-trip request",
    "exchange": "request context",
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
"""The word that is not used, and the one that is."""

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


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


def dialect_in(path: Path) -> Iterator[str]:
    """The names of a file that have a word of the table, with the standard one."""
    for line, name in defined_names(path):
        for word in WORD.findall(name):
            if word.lower() in STANDARD:
                yield f"{shown(path)}:{line}: {name}: {STANDARD[word.lower()]}"


def test_no_name_has_a_word_of_the_old_dialect() -> None:
    assert [found for path in python_files(TEMPLATES) for found in dialect_in(path)] == []


def classes_of_the_package() -> Counter[str]:
    """How many modules of the package define a class, by its name; revisions count apart."""
    verbatim = [path for path in python_files(PACKAGE) if not revision_folder(path)]
    return Counter(
        node.name
        for path in verbatim
        if path.name != "models.py"
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def revision_folder(path: Path) -> bool:
    """Whether a file belongs to one revision."""
    return re.fullmatch(r"r\d{4}_\d\d_\d\d", path.relative_to(PACKAGE).parts[0]) is not None


def test_no_two_classes_of_the_package_share_a_name() -> None:
    assert [name for name, number in classes_of_the_package().items() if number > 1] == []


def test_no_two_modules_of_the_package_share_a_name() -> None:
    names = Counter(
        path.stem
        for path in python_files(PACKAGE)
        if path.name != "__init__.py" and not revision_folder(path)
    )
    assert [name for name, number in names.items() if number > 1] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("HttpSession", ["Http", "Session"]), ("_on_SSE_end", ["on", "SSE", "end"])],
)
def test_names_are_read_word_by_word(name: str, words: list[str]) -> None:
    assert WORD.findall(name) == words
