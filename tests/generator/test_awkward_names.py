"""Names that mean something to Python, Jinja or a package, wherever a schema may have a name."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.awkward_names import STUB_BASES, names_to_try
from generator.schemas import COUNT, OPEN, TEXT, any_of, const, obj, ref
from generator.selections import write_package
from generator.tiny_package import TINY
from mcpgen import names
from mcpgen.model import schema_sources
from mcpgen.names import LIBRARIES, Library
from mcpgen.package import build_request, pipeline

LOOKED_UP = ("copy", "extra", "get", "items", "keys", "pop", "update", "values")
"""Attributes of a dict, which Jinja gives where the dict has no such key."""

SAMPLES: tuple[tuple[dict[str, Any], Any], ...] = (
    (TEXT, "x"),
    (COUNT, 3),
    ({"type": ["string", "null"]}, None),
    ({"type": "array", "items": TEXT}, ["x"]),
    ({}, [1, {"a": None}]),
    ({"enum": ["a", "b"]}, "a"),
    (OPEN, {"a": 1}),
    (const("fixed"), "fixed"),
    ({"type": "number", "minimum": 0, "maximum": 1}, 0.5),
)
"""Kinds of members, each with a value."""

MOST = 500
"""How many names one schema gets: a file has at most 10,000 subschemas."""

_UNIONS = frozenset(
    f"{side}{kind}" for side in ("Client", "Server") for kind in ("Request", "Notification")
)
"""Definitions that say who sends what."""

Definitions = dict[str, dict[str, Any]]
Values = dict[str, Any]
Pool = Callable[[Iterable[str]], tuple[Definitions, Values]]


def members_of(pool: Iterable[str]) -> tuple[Definitions, Values]:
    """Each name as a required and as an optional member, with a value of each definition."""
    definitions: Definitions = {}
    values: Values = {}
    for at, name in enumerate(pool):
        node, value = SAMPLES[at % len(SAMPLES)]
        definitions[f"Must{at}"] = {**obj("other", **{name: node, "other": TEXT})}
        definitions[f"Must{at}"]["required"] = [name]
        definitions[f"May{at}"] = obj("", **{name: node})
        values[f"Must{at}"] = {name: value, "other": "x"}
        values[f"May{at}"] = {name: value}
    return definitions, values


def tags_of(pool: Iterable[str]) -> tuple[Definitions, Values]:
    """Each name as the member that tells two types of a union from each other."""
    definitions: Definitions = {}
    values: Values = {}
    for at, name in enumerate(pool):
        one, two = ("one", "two") if at % 2 else ("\xe9", "\xe8")  # which are told otherwise
        for kind, value in (("One", one), ("Two", two)):
            node = obj("", **{name: const(value), "value": TEXT})
            definitions[f"{kind}{at}"] = {**node, "required": [name]}
        definitions[f"Either{at}"] = any_of(f"One{at}", f"Two{at}")
        definitions[f"Holder{at}"] = obj("held", held=ref(f"Either{at}"))
        values[f"One{at}"] = {name: one, "value": "x"}
        values[f"Holder{at}"] = {"held": {name: two, "value": "x"}}
    return definitions, values


def definitions_of(pool: Iterable[str]) -> tuple[Definitions, Values]:
    """Each name as a definition, and as one that another refers to."""
    definitions: Definitions = {}
    values: Values = {}
    for at, name in enumerate(name for name in pool if name not in _UNIONS):
        definitions[name] = obj("a", a=TEXT)
        definitions[f"User{at}"] = obj("used", used=ref(name))
        values[name] = {"a": "x"}
        values[f"User{at}"] = {"used": {"a": "x"}}
    return definitions, values


def tiny(definitions: Definitions) -> Definitions:
    """The tiny schema with more definitions."""
    document = json.loads((TINY / "schema.json").read_text())
    return {**document["$defs"], **definitions}


@contextmanager
def package_of(
    definitions: Definitions, folder: Path, library: Library, parts: Sequence[str] = ()
) -> Generator[Callable[[str], Any]]:
    """The package of a schema: imports its modules by name."""
    path = folder / "schema.json"
    path.write_text(json.dumps({"$defs": definitions}))
    request = build_request.BuildRequest("awkward", (schema_sources.of_file(path),))
    selection = replace(request.selection, models=library, parts=tuple(parts))
    request = replace(request, selection=selection if parts else request.selection)
    write_package(pipeline.build(request, form=dict), folder, "awkward")
    sys.path.insert(0, str(folder))
    try:
        yield lambda name: importlib.import_module(f"awkward.{name}")
    finally:
        sys.path.remove(str(folder))
        for name in [each for each in sys.modules if each.partition(".")[0] == "awkward"]:
            del sys.modules[name]


POOLS: dict[Pool, tuple[str, ...]] = {
    members_of: LOOKED_UP,
    tags_of: ("class", "itemKind", "copy", "$type", "\xe9-kind", "\xe8-kind"),
    definitions_of: ("UNSET", "Field", "field", "Struct", "TypeAliasType", "dict", "Any"),
}
"""Some names that mean something to a dict, to Python or to an import, by what has them."""


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("of_pool", POOLS)
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_awkward_names_are_read_and_written(
    of_pool: Pool, library: Library, is_whole: bool, every: bool, tmp_path: Path
) -> None:
    definitions, values = of_pool(names_to_try(every) if is_whole else POOLS[of_pool])
    whole = tiny(definitions)
    classes = names.class_names(list(whole), {"Annotated"})
    with package_of(whole, tmp_path, library, ("types",)) as module:
        models, wire = module("rdraft.models"), module("_wire")
        for name, value in values.items():
            read = wire.decoder(getattr(models, classes[name]))
            message = read(json.dumps(value).encode())
            assert json.loads(wire.encode(message)) == value, name


def check_messages(pool: Iterable[str], folder: Path) -> None:
    """Generate a whole package with a request and a notification for each name, as a parameter too.

    No stub hides what its class inherits, and all can be imported.
    """
    unions: dict[str, list[dict[str, Any]]] = {union: [] for union in sorted(_UNIONS)}
    definitions: Definitions = {}
    methods: list[str] = []
    spelled = [name for name in pool if name.isascii() and name.isidentifier()]
    for name in {names.snake(name): name for name in spelled}.values():
        stem = names.pascal(name)
        if not stem or f"{stem}Request" in _UNIONS:
            continue
        for kind, union in (("Request", "ClientRequest"), ("Notification", "ServerNotification")):
            method = f"awkward/{kind.lower()}/{name}"
            params = {**obj("", **{name: TEXT, "other": COUNT}), "required": [name]}
            node = obj("method params", method=const(method), params=params)
            definitions[f"{stem}{kind}"] = node
            unions[union].append(ref(f"{stem}{kind}"))
            methods.append(method)
        definitions[f"{stem}Result"] = obj("", **{name: TEXT})
    for union, refs in unions.items():
        if refs:
            definitions[union] = {"anyOf": refs}
    whole = tiny(definitions)
    listed = tiny({})["ClientRequest"]["anyOf"]
    whole["ClientRequest"] = {"anyOf": [*listed, *definitions["ClientRequest"]["anyOf"]]}
    with package_of(whole, folder, "msgspec") as module:
        revision = module("rdraft.methods").REVISION
        known = {*revision.client_requests, *revision.server_notifications}
        assert set(methods) <= known
        for name in ("rdraft.client", "rdraft.server", "client.async_client"):
            kinds: list[Any] = [*module(name).__dict__.values()]
            for kind in kinds:
                if isinstance(kind, type) and kind.__module__ == f"awkward.{name}":
                    bases = {name for base in kind.__mro__[1:-1] for name in vars(base)}
                    hidden = {each for each in vars(kind).keys() & bases if each[0] != "_"}
                    assert hidden <= {"mcp_stubs"}, kind


def test_no_message_hides_what_a_client_inherits(tmp_path: Path) -> None:
    check_messages(("close", "notify", "request", "session", "list_tools"), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_awkward_name_can_be_that_of_a_message(every: bool, tmp_path: Path) -> None:
    pool = names_to_try(every)
    parts = range(len(pool) // MOST + 1)
    for part in parts:
        folder = tmp_path / f"{part}"
        folder.mkdir()
        check_messages(pool[part :: len(parts)], folder)


def test_the_generator_knows_the_public_names_of_stub_bases() -> None:
    public = {
        name
        for kind in STUB_BASES
        for base in kind.__mro__[:-1]
        for name in (*vars(base), *vars(base).get("__annotations__", ()))
    }
    assert {name for name in public if name[0] != "_"} <= names.STUB_BASES
