"""Each test can fail: it asserts something, or calls a function of the tests that does.

Calls are resolved by name. That is coarse, but finds tests that only call the package.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from conventions.sources import TESTS, python_files, shown, tree_of

ASSERTING = frozenset({"raises", "warns", "fail", "fail_after", "expect"})
"""Functions of pytest, anyio and Playwright that fail a test."""

PEERS = frozenset({"check", "end", "until", "visit"})
"""Methods of the tests' own peers, which fail if what they wait for does not come."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_in(path: Path) -> Iterator[Function]:
    """The functions of a module, inner ones and methods among them."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node


def calls_in(function: Function) -> Iterator[tuple[str, ast.Call]]:
    """The calls in a function, by the last name of what is called."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name, node


def asserts(function: Function) -> bool:
    """Whether a function fails a test itself: also by a program that has to succeed."""
    return any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(function)) or any(
        name in ASSERTING or any(word.arg == "check" for word in call.keywords)
        for name, call in calls_in(function)
    )


def asserting_names(functions: list[Function]) -> set[str]:
    """The names of functions that assert, or call one that does."""
    by_name: defaultdict[str, list[Function]] = defaultdict(list)
    for function in functions:
        by_name[function.name].append(function)
    names = set(PEERS) | {name for name, same in by_name.items() if all(map(asserts, same))}
    while more := {
        name
        for name, same in by_name.items()
        if name not in names
        and all(any(called in names for called, _ in calls_in(each)) for each in same)
    }:
        names |= more
    return names


def test_each_test_asserts_something() -> None:
    by_path = {path: list(functions_in(path)) for path in python_files(TESTS)}
    names = asserting_names([each for functions in by_path.values() for each in functions])
    idle = [
        f"{shown(path)}:{each.lineno}: {each.name}"
        for path, functions in by_path.items()
        if path.name.startswith("test_")
        for each in functions
        if each.name.startswith("test_") and each.name not in names and not asserts(each)
        if not any(name in names for name, _ in calls_in(each))
    ]
    assert idle == []


def test_a_test_that_only_calls_asserts_nothing() -> None:
    tree = ast.parse("def test_a(): tool(plain)\ndef test_b(): holds(1)\ndef holds(x): assert x")
    functions = [each for each in tree.body if isinstance(each, Function)]
    names = asserting_names(functions)
    assert names - PEERS == {"holds", "test_b"}
