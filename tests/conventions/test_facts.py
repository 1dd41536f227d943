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
    tree_of,
)
from mcpgen import schema

pytestmark = pytest.mark.lengthy

DEFINITIONS = (GENERATOR / "schema" / "method_facts.py", GENERATOR / "schema" / "revision_facts.py")

MAY_NAME_METHODS: Mapping[str, str] = {
    "client/app_calls.py": "reads the user interface of a tool",
    "client/skill_calls.py": "reads the files of skills",
    "server/toolkit/skill_requests.py": "lists directories of skills as resources are listed",
    "client/handler_checks.py": "what to use instead of messages that a revision lacks",
    "client/application.py": "what handlers of a client are called with, and their checks",
    "client/group_requests.py": "finds the server of a name, a resource or a reference",
    "client/host.py": "calls the tools that a model asks for",
    "client/served_tasks.py": "serves sampling and elicitation as tasks",
    "runtime/task_handle.py": "polls tasks, which answer calls of tools",
    "client/server_state.py": "keeps tools, session and elicitations by the messages about them",
    "client/command_line.py": "has a command for each of them",
    "protocol/lifecycle.py": "messages that move the states, capabilities that depend on params",
    "protocol/requests.py": "cancellation, progress, log messages, subscriptions",
    "protocol/handshake.py": "requests and notifications that a server serves itself",
    "proxy/upstream.py": "asks the server behind a proxy for the log messages of clients",
    "runtime/observability.py": "names spans by the tool or the prompt that they are about",
    "sdk_names.py": "what to use instead of names of other SDKs",
    "errors.py": "tells callers whether an error is about a resource that is not there",
    "server/toolkit/dispatcher.py": "handles calls of tools",
    "server/toolkit/compatibility.py": "lists and calls as servers of another SDK answer them",
    "server/toolkit/function_handlers.py": "the shape of each request's function in another SDK",
    "server/toolkit/mounted_items.py": "requests that are about items of mounted servers",
    "server/toolkit/completions.py": "completes arguments of prompts and of templates",
    "server/toolkit/prompts.py": "handles requests about prompts",
    "server/toolkit/resources.py": "handles requests about resources",
    "server/toolkit/registry.py": "the lists of the protocol, and requests about their items",
    "server/toolkit/required_scopes.py": "reads which item a request is about",
    "server/toolkit/middleware.py": "a tool's error becomes the result of a tool",
    "server/toolkit/result_middleware.py": "keeps results of tools, prompts and resources",
    "server/toolkit/tasks.py": "runs calls of tools as tasks",
    "server/toolkit/tool_discovery.py": "lists and calls the tools that a search finds",
    "server/toolkit/client_features/elicitation.py": "asks for elicitation",
    "server/toolkit/client_features/input_required.py": "announces the end of a URL elicitation",
    "server/toolkit/client_features/sampling_and_roots.py": "asks for sampling and for roots",
}
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
