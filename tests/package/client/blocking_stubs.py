"""The members of blocking clients, as the stubs for type checkers have them."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import mcpgen_runtime
from mcpgen_runtime import SyncClient

FOLDER = Path(mcpgen_runtime.__file__).parent
(BASE,) = (each for each in SyncClient.__mro__ if each.__name__ == "Blocking")
PLAIN = Path(inspect.getfile(BASE)).parent
"""The folder of the modules that an installed package has in its runtime."""


def members_of(module: str, name: str) -> dict[str, list[str]]:
    """The parameters of each public member of a class in a stub, and of its bases in stubs."""
    classes = [
        node
        for path in (FOLDER / module, PLAIN / "sync_base.pyi", PLAIN / "sync.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    members: dict[str, list[str]] = {}
    names = [name]
    for each in names:
        for node in (node for node in classes if node.name == each):
            for function in node.body:  # the longest of several overloads
                if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                    own = [*function.args.args, *function.args.kwonlyargs]
                    names_of = [argument.arg for argument in own]
                    members[function.name] = max(members.get(function.name, []), names_of, key=len)
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            names += [base for base in bases if base not in names]
    return members
