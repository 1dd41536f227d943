"""Imports go one way: what stands left may be imported by what stands right, never back."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from conventions.sources import (
    GENERATOR,
    PACKAGE,
    ROOT,
    nodes_for_types,
    python_files,
    relative_name,
    text_of,
    tree_of,
)

pytestmark = pytest.mark.lengthy

Layers = tuple[tuple[str, ...], ...]

GENERATOR_LAYERS: Layers = (
    ("collisions", "errors", "names", "json_types", "literals"),
    ("paths",),
    ("input_files", "cache", "console", "findings"),
    ("toml_records",),
    ("schema",),
    ("model",),
    ("spec",),
    ("render",),
    ("diff",),
    ("explain",),
    ("package",),
    ("adding", "project"),
    ("port",),
    ("contract",),
    ("check_server",),
    ("replay",),
    ("cli",),
    ("__main__",),
)

PACKAGE_LAYERS: Layers = (
    ("sdk_names", "absence"),
    ("foreign_text", "method_facts", "_unions"),
    ("_structs", "data_uris"),
    ("_extra_members",),
    ("_decoding",),
    ("revision_facts",),
    ("command_masking",),
    ("errors", "channel", "facts", "_wire"),
    ("messages",),
    ("json_schema", "values", "yaml_text"),
    ("apps", "skills", "server_card", "tool_results"),
    ("revision", "revision.models", "revision.methods", "revisions", "merged_models", "models"),
    ("protocol", "framing"),
    ("auth",),
    ("runtime.concurrency", "runtime.time_limits"),
    ("transports",),
    ("runtime",),
    ("client", "revision.client", "revision.client_sync", "server", "revision.server"),
    ("testing", "inspector", "proxy"),
    ("server.chosen",),
    ("server.commands",),
    ("__init__",),
    ("__main__",),
)

APART = {
    ("client", "server"),
    ("server", "client"),
    ("client", "revision.server"),
    ("server", "revision.client"),
    ("runtime", "transports"),
    ("protocol", "framing"),
    ("revision.client", "revision.server"),
    ("revision.server", "revision.client"),
}
"""Pairs that may not import each other, wherever they stand."""

CODE = (
    pytest.param(GENERATOR, GENERATOR_LAYERS, id="generator"),
    pytest.param(PACKAGE, PACKAGE_LAYERS, id="package"),
)


def module_of(path: Path, tree: Path) -> tuple[str, ...]:
    """Name parts of a module below its package; `()` is the package itself."""
    parts = path.relative_to(tree).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


CHOSEN = "chosen"
"""A page that lists bases and options: kernels read the options in it, for type checkers alone."""


def imports_in(nodes: Iterable[ast.AST], path: Path, tree: Path) -> Iterator[tuple[str, ...]]:
    """Modules of the same package that statements of a file import."""
    here = module_of(path, tree)
    kernel = here[1:-1] and not path.name.startswith(CHOSEN)
    for module in every_import_of(path, tree, nodes):
        if not (kernel and module[-1].startswith(CHOSEN)):
            yield module


def every_import_of(path: Path, tree: Path, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ...]]:
    here = module_of(path, tree)
    package = here if path.name == "__init__.py" else here[:-1]
    for node in nodes:
        match node:
            case ast.ImportFrom(level=level) if level:
                base = package[: len(package) - level + 1]
                yield from targets(tree, base + tuple((node.module or "").split(".")), node.names)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == tree.name:
                yield from targets(tree, tuple(module.split(".")[1:]), node.names)
            case ast.Import():
                for name in node.names:
                    if name.name.split(".")[0] == tree.name:
                        yield tuple(name.name.split(".")[1:])


def targets(
    tree: Path, base: Iterable[str], names: Iterable[ast.alias]
) -> Iterator[tuple[str, ...]]:
    """Modules that `from base import names` imports: each submodule, and base for other names."""
    base = tuple(part for part in base if part)
    for name in names:
        place = tree.joinpath(*base, name.name)
        is_module = place.with_suffix(".py").is_file() or place.is_dir()
        yield (*base, name.name) if is_module else base


def layer_name(module: tuple[str, ...], place: Collection[str]) -> str:
    """The name of a module in the table: its own, or that of the room it lies in."""
    if not module:
        return "__init__"
    if re.fullmatch(r"r\d{4}_\d\d_\d\d", module[0]):
        module = ("revision", *module[1:])
    own = ".".join(module[:2])
    return own if own in place else module[0]


def place_of(layers: Layers) -> dict[str, int]:
    """Number of the layer by module name."""
    return {name: number for number, layer in enumerate(layers) for name in layer}


@pytest.mark.parametrize(("tree", "layers"), CODE)
def test_every_module_has_a_place_in_the_order(tree: Path, layers: Layers) -> None:
    place = place_of(layers)
    names = {layer_name(module_of(path, tree), place) for path in python_files(tree)}
    assert names - place.keys() - {"__init__"} == set()


@pytest.mark.parametrize(("tree", "layers"), CODE)
def test_nothing_imports_to_the_right_of_itself(tree: Path, layers: Layers) -> None:
    place = place_of(layers)
    back = []
    for path in python_files(tree):
        here = layer_name(module_of(path, tree), place)
        for module in imports_in(ast.walk(tree_of(path)), path, tree):
            there = layer_name(module, place)
            if place.get(there, 0) > place.get(here, 0) or (here, there) in APART:
                back.append(f"{relative_name(path)} imports {'.'.join(module)}")
    assert back == []


@pytest.mark.parametrize(("tree", "layers"), CODE)
def test_modules_import_each_other_in_no_circle(tree: Path, layers: Layers) -> None:
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in python_files(tree):
        here, running = module_of(path, tree), {*ast.walk(tree_of(path))} - nodes_for_types(path)
        graph[here] = {*imports_in(running, path, tree)} - {here}
    graph.pop((), None)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {error.args[1]}")


TEMPLATES = ROOT / "templates"
CALL = re.compile(r"\bimport_module\(([^,()]*(?:\([^)]*\))?[^,()]*)")

LIBRARIES = {
    "json_schema/keywords.py": ("referencing.jsonschema",),
    "json_schema/patterns.py": ("re2",),
    "json_schema/validation.py": (
        *("jsonschema", "jsonschema", "jsonschema", "jsonschema_specifications"),
        *("attrs", "referencing.exceptions", "referencing.jsonschema"),
    ),
    "runtime/task_scope.py": ("trio",),
    "yaml_text.py": ("yaml",),
    "server/openapi/http_operation.py": ("uritemplate",),
    "server/openapi/openapi_server.py": ("httpx2",),
    "server/toolkit/compatibility.py": ("pydantic_core",),
    "server/toolkit/compatible_arguments.py": ("pydantic",),
    "server/toolkit/function_handlers.py": ("jsonschema", "jsonschema.exceptions"),
    "server/toolkit/uri_templates.py": ("uritemplate",),
}
"""Libraries that a package can do without: a type checker need not find them."""

TABLES = {
    "absence.py": "for errors: names of other SDKs, in packages with `migration`, and types",
    "__init__.py.jinja": "the module of a public name, when the name is first used",
    "client/configuration.py": "the client of several servers, which few packages have",
    "client/async_client.py.jinja": "the client of the revision that `connect` names",
    "merged_models.py": "the models of each revision, as types are first used",
    "revisions.py.jinja": "the methods of a revision, when it is first negotiated",
    "server/commands/serve_command.py": "the module of the user that a command line names",
}
"""Modules by names from a table, each once."""


def test_modules_loaded_by_name_are_libraries_or_in_a_table() -> None:
    loaded: dict[str, Counter[str]] = {}
    for path in sorted((*TEMPLATES.rglob("*.py"), *TEMPLATES.rglob("*.jinja"))):
        calls = Counter(name.strip() for name in CALL.findall(text_of(path)))
        if calls:
            loaded[path.relative_to(TEMPLATES / "package").as_posix()] = calls
    expected = {place: Counter(f'"{name}"' for name in names) for place, names in LIBRARIES.items()}
    assert {place: calls for place, calls in loaded.items() if place not in TABLES} == expected
    assert {place: calls.total() for place, calls in loaded.items() if place in TABLES} == (
        dict.fromkeys(TABLES, 1)
    )
