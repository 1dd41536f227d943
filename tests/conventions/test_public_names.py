"""The public names of a package: each is in a document, or is a type of something that is."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

import mcpgen_runtime
from conventions.sources import PACKAGE, ROOT, python_files, text_of

pytestmark = pytest.mark.lengthy

WORD = re.compile(r"[A-Za-z_]\w*")
RAISED = re.compile(r"^ +(\w+): ", re.MULTILINE)
"""A line of the section `Raises` of a docstring."""
OF_REVISION = re.compile(r"r\d{4}_\d\d_\d\d")


def words_in(*nodes: ast.AST | None) -> set[str]:
    """The words in expressions, those in texts too."""
    return {word for node in nodes if node is not None for word in WORD.findall(ast.unparse(node))}


def types_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr | None]:
    """The annotations of the parameters and of the result of a function."""
    its = function.args
    for each in (*its.posonlyargs, *its.args, *its.kwonlyargs, its.vararg, its.kwarg):
        yield None if each is None else each.annotation
    yield function.returns


def uses(statement: ast.stmt) -> Iterator[tuple[str, set[str]]]:
    """The name that a statement defines, with the names in its signature or value."""
    match statement:
        case ast.ClassDef(name=name, bases=bases, body=body):
            yield name, words_in(*bases)
            for member in body:
                for inner, words in uses(member):
                    if not inner.startswith("_") or inner.startswith("__"):
                        yield name, words
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, words_in(*types_of(statement))
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
            yield name, words_in(annotation, value)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, words_in(value)
        case _:
            pass


def unexplained_names(names: Iterable[str], documents: str, modules: Iterable[str]) -> list[str]:
    """The names that no document has, and no signature or value of a name that one has."""
    used: defaultdict[str, set[str]] = defaultdict(set)
    raised: set[str] = set()
    for text in modules:
        raised.update(RAISED.findall(text))
        for statement in ast.parse(text).body:
            for name, words in uses(statement):
                used[name] |= words
    explained = {*names} & {*WORD.findall(documents)}
    left = [*explained]
    while left:
        more = used[left.pop()] - explained
        explained |= more
        left += more
    errors = {name for name in raised if name.endswith("Error")}
    return sorted({*names} - explained - errors)


def test_each_public_name_is_explained_by_a_document() -> None:
    modules = [
        text_of(path)
        for path in python_files(PACKAGE)
        if not OF_REVISION.match(path.relative_to(PACKAGE).parts[0])
    ]
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    names = dir(mcpgen_runtime)
    assert unexplained_names(names, "\n".join(map(text_of, pages)), modules) == []


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("def call(a: Shown) -> None: ...", ["Lost"]),
        ("call: TypeAlias = Inner\nInner = Shown | int", ["Lost"]),
        ("class call:\n    def _own(self, a: Lost) -> Shown: ...", ["Lost", "Shown"]),
    ],
)
def test_a_name_that_nothing_leads_to_is_unexplained(module: str, names: list[str]) -> None:
    assert unexplained_names(["call", "Lost", "Shown"], "Use `call()`.", [module]) == names
