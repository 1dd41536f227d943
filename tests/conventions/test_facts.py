"""Facts govern code: none that nothing reads, and no method named where a fact belongs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from conventions.sources import (
    GENERATOR,
    TEMPLATES,
    docstring_lines,
    python_files,
    relative_name,
    toml_table,
    tree_of,
)
from mcpgen import schema

pytestmark = pytest.mark.lengthy

DEFINITIONS = (GENERATOR / "schema" / "method_facts.py", GENERATOR / "schema" / "revision_facts.py")

MAY_NAME_METHODS: Mapping[str, str] = toml_table("feature_modules")
"""Modules that implement a feature by the name of its methods, each with the feature."""


def fact_names() -> set[str]:
    """The names of all facts."""
    return {
        item.target.id
        for path in DEFINITIONS
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and node.name != "Facts"
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }


def test_every_fact_is_read_by_the_code_that_it_governs() -> None:
    nodes = (
        node
        for path in python_files(GENERATOR, TEMPLATES / "package")
        if path not in DEFINITIONS
        for node in ast.walk(tree_of(path))
    )
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert fact_names() - read == set()
    assert len(fact_names()) > 40


@cache
def wire_methods() -> frozenset[str]:
    """Every method that a revision names."""
    definitions = (schema.load(row.name).definitions.values() for row in schema.revisions())
    schemas = (
        node.get("properties", {}).get("method", {}) for nodes in definitions for node in nodes
    )
    return frozenset(method["const"] for method in schemas if "const" in method)


def named_methods(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each method that a module's code names."""
    documentation = docstring_lines(path)
    methods = wire_methods()
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Constant(value=str(name)) if name in methods:
                if node.lineno not in documentation:
                    yield node.lineno, name


def test_only_modules_that_implement_a_feature_name_its_methods() -> None:
    package = TEMPLATES / "package"
    naming = {
        path.relative_to(package).as_posix(): [f"{line}: {name}" for line, name in literals]
        for path in python_files(package)
        if (literals := sorted(set(named_methods(path))))
    }
    assert {name: lines for name, lines in naming.items() if name not in MAY_NAME_METHODS} == {}
    assert MAY_NAME_METHODS.keys() - naming.keys() == set(), "no longer needed"


DRIVING = {GENERATOR / "check_server", GENERATOR / "replay"}
"""The rooms that drive servers: they send requests by their methods."""


def test_the_generator_names_no_method() -> None:
    named = [
        f"{relative_name(path)}:{line}"
        for path in python_files(GENERATOR)
        if DRIVING.isdisjoint(path.parents)
        for line, _ in named_methods(path)
    ]
    assert named == []
