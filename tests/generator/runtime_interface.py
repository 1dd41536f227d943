"""The runtime's interface to packages that use it installed: module names and class members."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from generator.selections import NAMES, spec_of
from mcpgen.model import runtime
from mcpgen.model.choice import selection
from mcpgen.render import tree

_SELF = ("self", "cls")


@cache
def installed_package(
    parts: str, transports: str, revisions: tuple[str, ...], features: tuple[str, ...] = ()
) -> Mapping[str, str]:
    """A package on an installed runtime, as it is rendered."""
    words = () if transports == "all" else (transports,)
    chosen = selection((parts,), words, features=features, runtime="installed")
    return tree.render_package([spec_of(name) for name in revisions], "pkg", chosen, form=dict)


@cache
def all_used() -> Mapping[str, set[str]]:
    """Names that packages use, for all revisions, with each feature and without."""
    used: dict[str, set[str]] = {}
    for features in ((), ("all",)):
        for revisions in (NAMES, *((name,) for name in NAMES)):
            for module, names in used_names(
                installed_package("all", "all", revisions, features)
            ).items():
                used.setdefault(module, set()).update(names)
    return used


def used_names(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The names that a package imports of its runtime, by module; `self` for inherited members."""
    used: defaultdict[str, set[str]] = defaultdict(set)
    for path, text in files.items():
        for module, name in _used_in(text) if path.endswith(".py") else ():
            used[module].add(name)
    for module, names in _table_of_names(files["__init__.py"]).items():
        if not module.startswith("."):
            used[module] |= names
    return dict(used)


@cache
def _used_in(text: str) -> frozenset[tuple[str, str]]:
    """The names that one module imports of the runtime, by module; packages share most modules."""
    tree = ast.parse(text)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    members = {("self", name) for node in classes for name in _inherited_members(node)}
    return frozenset(_imports(tree)) | members


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            if module.partition(".")[0] == runtime.PACKAGE:
                yield from ((module, alias.name) for alias in node.names)


def _table_of_names(root: str) -> dict[str, set[str]]:
    for node in ast.parse(root).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="_NAMES")], value=value):
                table = ast.literal_eval(value)
                return {module: {*names.split()} for module, names in table.items()}
            case _:
                pass
    return {}


def _inherited_members(owner: ast.ClassDef) -> Iterator[str]:
    """Private members of bases, and what of each is used; public ones are methods of messages."""
    own = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    own |= {node.name for node in owner.body if isinstance(node, ast.AsyncFunctionDef)}
    own |= {name for node in ast.walk(owner) for name in _assigned_names(node)}
    for node in ast.walk(owner):
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=first), attr=member)):
                if first in _SELF and member.startswith("_") and member not in own:
                    yield f"{member}.{node.attr}"
            case ast.Attribute(value=ast.Name(id=first), attr=member):
                if first in _SELF and member.startswith("_") and member not in own:
                    yield member
            case _:
                pass


def _assigned_names(node: ast.AST) -> Iterator[str]:
    targets = [*node.targets] if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        if isinstance(target, ast.Attribute):
            yield target.attr


def text_of(used: Mapping[str, set[str]]) -> str:
    """Names by module, as a file that people read: a module, and its names below it."""
    rows: list[str] = []
    for module in sorted(used):
        if used[module]:
            rows += [module, *(f"    {name}" for name in sorted(used[module]))]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(text_of(all_used()), end="")
