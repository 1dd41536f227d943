"""Checks of a schema beyond its meta-schema: limits, names, and values that Python can express.

They bound the time of later steps and make their output valid. Each error names the place in the
schema.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from mcpgen.errors import SchemaError, format_value
from mcpgen.json_types import Json, Node, is_object
from mcpgen.schema.structure import escape, resolve, subschemas, unescape

MAX_SUBSCHEMAS = 10_000
"""Limit of the schemas within one file. Official files have up to 900."""

MAX_CHAIN = 64
"""Limit of the definitions in a row that each refer to the next, directly or by `allOf`."""

MAX_TEXT = 2000
"""Limit of the characters of a text that becomes code: a constant, an enum value, a pattern."""

_CONTAINERS = ("definitions", "$defs")
_PREFIXES = tuple(f"#/{key}/" for key in _CONTAINERS)


def check_bounds(document: Json, source: str) -> None:
    """Refuse schemas for which the check against the meta-schema takes too long or fails.

    Raises:
        SchemaError: There are more than `MAX_SUBSCHEMAS` schemas; or a pattern cannot be compiled,
            or is longer than `MAX_TEXT`.
    """
    for count, (pointer, node) in enumerate(subschemas(document), start=1):
        if count > MAX_SUBSCHEMAS:
            expected = f"at most {MAX_SUBSCHEMAS} schemas in a file"
            raise SchemaError(source, pointer, expected, "more")
        pattern = node.get("pattern")
        if isinstance(pattern, str):
            _check_pattern(pattern, f"{pointer}/pattern", source)
        among = node.get("patternProperties")
        if is_object(among):
            for name in among:
                _check_pattern(name, f"{pointer}/patternProperties/{escape(name)}", source)


def check(document: Node, container: str, source: str) -> None:
    """Check a document that is valid by its meta-schema.

    Raises:
        SchemaError: Python cannot express a value; or a reference leads nowhere or back to itself.
    """
    for pointer, node in subschemas(document):
        _check_values(node, pointer, source)
    _check_references(document, container, source)
    _check_chains(document, source)


def _check_pattern(pattern: str, pointer: str, source: str) -> None:
    expected = f"a regular expression of at most {MAX_TEXT} characters"
    try:
        if len(pattern) > MAX_TEXT:
            raise SchemaError(source, pointer, expected, f"{len(pattern)} characters")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about syntax that may change its meaning
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise SchemaError(source, pointer, expected, format_value(pattern)) from error


def _check_values(node: Node, pointer: str, source: str) -> None:
    """Check that a `Literal` can hold the constants."""
    if "const" in node:
        _check_value(node["const"], f"{pointer}/const", source)
    values: Any = node.get("enum", [None])
    if not values:
        raise SchemaError(source, f"{pointer}/enum", "at least one value", "none")
    for index, value in enumerate(values):
        _check_value(value, f"{pointer}/enum/{index}", source)


def _check_value(value: Json, pointer: str, source: str) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MAX_TEXT:
        expected = f"a text of at most {MAX_TEXT} characters"
        raise SchemaError(source, pointer, expected, f"{len(text)} characters")


def target_name(target: str, definitions: Collection[str]) -> str | None:
    """The definition that a reference leads to, under either key and in either spelling.

    `None` for references to another file, into a definition, or to nowhere.
    """
    prefix = next((one for one in _PREFIXES if target.startswith(one)), None)
    if prefix is None:
        return None
    spellings = (target.removeprefix(prefix), unquote(target.removeprefix(prefix)))
    return next((name for name in map(unescape, spellings) if name in definitions), None)


def _check_references(document: Node, container: str, source: str) -> None:
    definitions = {
        name for key in _CONTAINERS if is_object(document.get(key)) for name in document[key]
    }
    for pointer, node in subschemas(document):
        if "$ref" in node and target_name(node["$ref"], definitions) is None:
            expected = f"a reference to a definition, #/{container}/<name>"
            raise SchemaError(source, f"{pointer}/$ref", expected, format_value(node["$ref"]))


def _check_chains(document: Node, source: str) -> None:
    pointers = {
        name: f"/{key}/{escape(name)}"
        for key in _CONTAINERS
        if is_object(document.get(key))
        for name in document[key]
    }
    graph = {
        name: set(_definitions_within(resolve(document, pointer), pointers))
        for name, pointer in pointers.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]
        expected = "a definition that does not lead back to itself by $ref or allOf"
        actual = " to ".join(circle[:4]) + (" ..." if len(circle) > 4 else "")
        raise SchemaError(source, pointers[circle[0]], expected, actual) from None
    lengths: dict[str, int] = {}
    for name in order:
        lengths[name] = 1 + max((lengths[other] for other in graph[name]), default=0)
        if lengths[name] > MAX_CHAIN:
            expected = f"a chain of at most {MAX_CHAIN} definitions by $ref or allOf"
            raise SchemaError(source, pointers[name], expected, "a longer one")


def _definitions_within(node: Json, definitions: Collection[str]) -> Iterator[str]:
    """The definitions that a schema consists of, without those of its members."""
    if is_object(node):
        name = target_name(node["$ref"], definitions) if "$ref" in node else None
        if name is not None:
            yield name
        for part in node.get("allOf", ()):
            yield from _definitions_within(part, definitions)
