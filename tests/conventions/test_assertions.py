"""Each test can fail: it asserts something, or calls a function of the tests that does."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import NamedTuple

import pytest

from conventions.sources import TESTS, python_files, relative_name, tree_of

pytestmark = pytest.mark.lengthy

ASSERTING = frozenset({"raises", "warns", "fail", "fail_after", "expect"})
"""Functions of pytest, anyio and Playwright that fail a test."""

PEERS = frozenset({"check", "end", "until", "visit"})
"""Methods of the tests' own peers, which fail if what they wait for does not come."""


class Function(NamedTuple):
    """A function of a module of tests; what is within it counts as its own."""

    name: str
    line: int
    asserts: bool
    calls: frozenset[str]

    @classmethod
    def of(cls, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        """A function by its tree."""
        asserts, calls = False, set()
        for node in ast.walk(function):
            match node:
                case ast.Assert() | ast.Raise():
                    asserts = True
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    calls.add(name)
                    asserts = asserts or any(word.arg == "check" for word in node.keywords)
        is_asserting = asserts or not ASSERTING.isdisjoint(calls)
        return cls(function.name, function.lineno, is_asserting, frozenset(calls))


def functions_in(tree: ast.Module) -> list[Function]:
    """The functions of a module, inner ones and methods among them."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [Function.of(node) for node in ast.walk(tree) if isinstance(node, kinds)]


def asserting_names(functions: list[Function]) -> set[str]:
    """The names of functions that assert, or call one that does."""
    by_name: defaultdict[str, list[Function]] = defaultdict(list)
    for function in functions:
        by_name[function.name].append(function)
    names = set(PEERS) | {n for n, same in by_name.items() if all(each.asserts for each in same)}
    while more := {
        name
        for name, same in by_name.items()
        if name not in names and not any(names.isdisjoint(each.calls) for each in same)
    }:
        names |= more
    return names


def test_each_test_asserts_something() -> None:
    by_path = {path: functions_in(tree_of(path)) for path in python_files(TESTS)}
    names = asserting_names([each for functions in by_path.values() for each in functions])
    idle = [
        f"{relative_name(path)}:{each.line}: {each.name}"
        for path, functions in by_path.items()
        if path.name.startswith("test_")
        for each in functions
        if each.name.startswith("test_") and each.name not in names and not each.asserts
        if names.isdisjoint(each.calls)
    ]
    assert idle == []


def test_a_test_that_only_calls_asserts_nothing() -> None:
    tree = ast.parse("def test_a(): tool(plain)\ndef test_b(): holds(1)\ndef holds(x): assert x")
    names = asserting_names(functions_in(tree))
    assert names - PEERS == {"holds", "test_b"}
