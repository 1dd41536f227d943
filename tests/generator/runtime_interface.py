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
    for node in ast.parse(files["__init__.py"]).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="_NAMES")], value=value):
                for module, names in ast.literal_eval(value).items():
                    if not module.startswith("."):
                        used[module] |= {*names.split()}
            case _:
                pass
    return dict(used)


@cache
def _used_in(text: str) -> frozenset[tuple[str, str]]:
    """The names that one module imports of the runtime, by module; packages share most modules."""
    used: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef():
                used |= {("self", name) for name in _inherited_members(node)}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                if module.partition(".")[0] == runtime.PACKAGE:
                    used |= {(module, alias.name) for alias in names}
            case _:
                pass
    return frozenset(used)


def _inherited_members(owner: ast.ClassDef) -> Iterator[str]:
    """Private members of bases, and what of each is used; public ones are methods of messages."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    own = {node.name for node in owner.body if isinstance(node, functions)}
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr)
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


def text_of(used: Mapping[str, set[str]]) -> str:
    """Names by module, as a file that people read: a module, and its names below it."""
    rows: list[str] = []
    for module in sorted(used):
        if used[module]:
            rows += [module, *(f"    {name}" for name in sorted(used[module]))]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(text_of(all_used()), end="")
