"""The signatures of the blocking client's members, derived from those of the asynchronous client.

`base.py` and `group_base.py` in `templates/package/client` have the members that do not depend on a
schema. Type checkers see a member with the same parameters; at run time one class calls all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from mcpgen import paths
from mcpgen.literals import Code, ascii_source

_CLIENT = "ClientBase"
_GROUP = "GroupBase"
_OF_FEATURES = {
    "groups": ("model_calls.py", "ModelCalls"),
    "subscriptions": ("listen.py", "ListenCalls"),
    "middleware": ("client_middleware.py", "MiddlewareCalls"),
    "apps": ("app_calls.py", "AppCalls"),
    "callbacks": ("callbacks.py", "CallbackCalls"),
    "lock": ("lock/locked_requests.py", "LockedCalls"),
    "client+per_request": ("request_logs.py", "RequestLogs"),
}
"""By feature or part: the module and the class with the methods that it adds."""
_OF_FEATURES_ALONE = {
    "skills": ("skill_calls.py", "SkillCalls"),
    "tasks": ("task_requests.py", "ResumingCalls"),
}
"""By feature, likewise: the methods of clients of one server only."""
_WITHOUT = frozenset(
    {"cache", "seen_as", "close", "start_call", "servers", "hold", "end"} | {"wait_until_open"}
)
"""Methods that are not derived: the blocking client has its own, or none."""
_RETURNS = {"AnySubscription": "SyncSubscription", "TaskHandle": "SyncTaskHandle"}
"""Types of results that the blocking client replaces, with their replacements."""


@dataclass(frozen=True)
class BlockingMethod:
    """One member of the blocking client.

    Attributes:
        name: Its name.
        is_property: Whether it is a property.
        parameters: Its parameters in Python, `self` included.
        returns: The type of its result in Python.
    """

    name: str
    is_property: bool
    parameters: Code
    returns: Code


@cache
def blocking_methods(parts: frozenset[str]) -> tuple[BlockingMethod, ...]:
    """The blocking methods of every client, with those of some features and parts."""
    of_client = _methods("base.py", _CLIENT)
    alone = _of_features(parts, _OF_FEATURES_ALONE)
    return (*_of_features(parts), *alone, *of_client)


@cache
def blocking_group_methods(parts: frozenset[str]) -> tuple[BlockingMethod, ...]:
    """The blocking methods of every client of several servers, likewise."""
    of_group = _methods("group_base.py", _GROUP)
    return (*_of_features(parts), *of_group)


def _of_features(
    parts: frozenset[str], classes: Mapping[str, tuple[str, str]] = _OF_FEATURES
) -> Iterator[BlockingMethod]:
    for name, (module, class_name) in classes.items():
        if name in parts:
            yield from _methods(module, class_name)


def _methods(module: str, name: str) -> Iterator[BlockingMethod]:
    path = paths.templates_dir() / "package" / "client" / module
    return derive_methods(path.read_text(encoding="utf-8"), name)


def derive_methods(source: str, name: str = _CLIENT) -> Iterator[BlockingMethod]:
    """The blocking methods of a class in the text of a module.

    Raises:
        LookupError: The module has no such class.
    """
    classes = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    class_node = next((node for node in classes if node.name == name), None)
    if class_node is None:
        raise LookupError(f"expected a class {name}, found none")
    functions = [
        n for n in class_node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for node in functions:
        if not node.name.startswith("_") and node.name not in _WITHOUT:
            yield _derive_method(node)


def _derive_method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> BlockingMethod:
    returns = ast.unparse(node.returns) if node.returns is not None else "None"
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return BlockingMethod(
        name=node.name,
        is_property="property" in decorators,
        parameters=ascii_source(ast.unparse(node.args)),
        returns=ascii_source(_RETURNS.get(returns, returns)),
    )
