"""The vocabulary: words of a dialect that are not to come back, in names and in prose.

A name is a module, a class, a function, a parameter, a variable or an attribute. Each word has a
standard one in its place, which the table gives. In all code, the tests' included, docstrings state
what a thing is or returns, and values have nouns; functions of the generator have verbs.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from conventions.sources import (
    GENERATOR,
    PACKAGE,
    TEMPLATES,
    TESTS,
    hand_written,
    python_files,
    relative_name,
    tree_of,
)

pytestmark = pytest.mark.lengthy

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
"""The word that is not used, and the one that is."""

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


def dialect_in(path: Path, allowed: Collection[str] = ()) -> Iterator[str]:
    """The names of a file that have a word of the table, with the standard one."""
    for line, name in defined_names(path):
        for word in map(str.lower, WORD.findall(name)):
            if word in STANDARD and word not in allowed:
                yield f"{relative_name(path)}:{line}: {name}: {STANDARD[word]}"


def test_no_name_has_a_word_of_the_old_dialect() -> None:
    others = python_files(GENERATOR, TESTS)
    assert [name for path in python_files(TEMPLATES) for name in dialect_in(path)] == []
    assert [name for path in others for name in dialect_in(path, AMBIGUOUS)] == []


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
    """Functions and methods that a lone participle names, with their lines.

    A property is a value, which an adjective may name. So may a function within a function.
    """
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
            decorators = {ast.unparse(each) for each in node.decorator_list}
            if not decorators & {"property", "cached_property"}:
                yield node.lineno, node.name


def test_no_docstring_begins_with_what_or_who() -> None:
    assert [
        f"{relative_name(path)}:{line}: {text}"
        for path in hand_written()
        for line, text in riddles_in(tree_of(path))
    ] == []


def test_no_value_is_called_found() -> None:
    assert [
        f"{relative_name(path)}:{line}"
        for path in hand_written()
        for line, name in defined_names(path)
        if name == "found"
    ] == []


def test_no_function_of_the_generator_is_a_lone_participle() -> None:
    assert [
        f"{relative_name(path)}:{line}: {name}"
        for path in python_files(GENERATOR)
        for line, name in participles_in(tree_of(path))
    ] == []


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


_MESSAGES = "that of `messages` has typed params, that of `protocol.jsonrpc` has JSON"
SHARED = {
    "Context": "that of the page `chosen` has the members of features; the kernel has its base",
    "Notification": _MESSAGES,
    "Request": _MESSAGES,
    "Response": "that of `messages` is a message of JSON-RPC, that of `routes` is one of HTTP",
}


def test_no_two_classes_of_the_package_share_a_name() -> None:
    assert {name for name, number in classes_of_the_package().items() if number > 1} == set(SHARED)


def test_no_two_modules_of_the_package_share_a_name() -> None:
    names = Counter(
        path.stem
        for path in python_files(PACKAGE)
        if path.name not in ("__init__.py", "chosen.py") and not revision_folder(path)
    )
    assert [name for name, number in names.items() if number > 1] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("HttpSession", ["Http", "Session"]), ("_on_SSE_end", ["on", "SSE", "end"])],
)
def test_names_are_read_word_by_word(name: str, words: list[str]) -> None:
    assert WORD.findall(name) == words


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What a module says."""', [1]),
        ('class A:\n    """Who calls."""', [2]),
        ('x = 1\n"""What x is."""', [2]),
        ('def f():\n    """What f returns.\n\n    More.\n    """', [2]),
        ('def f():\n    """Whatever is left."""', []),
        ('text = "What a text says."', []),
    ],
)
def test_docstrings_that_begin_with_a_pronoun_are_seen(source: str, expected: list[int]) -> None:
    assert [line for line, _ in riddles_in(ast.parse(source))] == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def needed(): ...", ["needed"]),
        ("async def built(): ...", ["built"]),
        ("class A:\n    def merged(self): ...", ["merged"]),
        ("class A:\n    @property\n    def required(self): ...", []),
        ("def _needed(): ...", ["_needed"]),
        ("def need(): ...\ndef read(): ...\ndef needed_files(): ...", []),
        ("def f():\n    def needed(): ...", []),
    ],
)
def test_functions_that_a_participle_names_are_seen(source: str, expected: list[str]) -> None:
    assert [name for _, name in participles_in(ast.parse(source))] == expected


def test_no_name_of_a_test_begins_with_what() -> None:
    assert [
        f"{relative_name(path)}:{line}: {name}"
        for path in python_files(TESTS)
        for line, name in defined_names(path)
        if name.startswith("test_what_")
    ] == []
