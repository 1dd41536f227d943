"""The printed install line against what the modules of a package import, by their syntax trees."""

from __future__ import annotations

import ast
import sys
from functools import cache

import pytest

from generator.selections import LAST_WITH_SESSIONS, PAIRWISE, rendered
from mcpgen.model import feature_table
from mcpgen.render import closure

pytestmark = pytest.mark.costly

FEATURES = tuple(each.name for each in feature_table.FEATURES)
OTHER_NAMES = {"dotenv": "python-dotenv", "opentelemetry": "opentelemetry-api", "re2": "google-re2"}
OTHER_NAMES |= {"ruamel": "ruamel.yaml", "yaml": "pyyaml"}
BROUGHT = {"httpcore2", "referencing", "jsonschema_specifications", "attrs", "typing_extensions"}
BROUGHT |= {"pydantic_core"}
BROUGHT |= {"argcomplete"}  # by shells
BROUGHT |= {"mcpgen", "pytest", "trio"}  # of tests


@cache
def foreign_imports(text: str) -> set[str]:
    """The imports of a module: by its syntax tree, or of a literal name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module)
            case ast.Call(
                func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name))]
            ):
                names.add(name)
            case _:
                pass
    return {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names, "pkg"}


@pytest.mark.parametrize(
    ("chosen", "transports", "revisions", "features"),
    [
        *(("all", "all", (LAST_WITH_SESSIONS,), ("none", name)) for name in FEATURES),
        *((*each, ("all",)) for each in PAIRWISE),
    ],
)
def test_the_dependencies_have_each_import_of_a_package(
    chosen: str, transports: str, revisions: tuple[str, ...], features: tuple[str, ...]
) -> None:
    files = rendered(chosen, transports, revisions, "", features)
    needs = closure.dependencies(files, "pkg")
    printed = {*needs.needed, *needs.over_http, *needs.optional}
    modules = [text for path, text in files.items() if path.endswith(".py")]
    imported = {name for text in modules for name in foreign_imports(text)} - BROUGHT
    assert {OTHER_NAMES.get(name, name) for name in imported} == printed
