"""Marks by which tools have arguments repeated in HTTP headers: read from schemas, and put to use.

A property of an input schema carries its mark, the name of the header less a prefix. A tool with a
mark that breaks a rule is of no use to a client that speaks HTTP, which leaves it out of the list;
other transports ignore marks, right or wrong.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters (2026-07-28).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from .._wire import is_many, is_object
from ..foreign_text import safe_repr, safe_text
from ..json_schema.validation import JsonSchema

MARK = "x-mcp-header"

Path: TypeAlias = tuple[str, ...]
"""Names of properties, from the arguments' root down to the marked one."""

ParamHeadersOf: TypeAlias = Callable[[str], Mapping[Path, str]]
"""Path and field name of each argument of a tool that header fields repeat, by the tool's name."""

_TYPES = ("integer", "string", "boolean")
_DATA = frozenset({"const", "default", "enum", "examples", MARK})
_SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


def param_headers_of(schema: JsonSchema) -> dict[Path, str]:
    """The marked properties of an input schema, each with its mark.

    Raises:
        ValueError: A mark is malformed, used twice, or where it may not be.
    """
    found: dict[Path, str] = {}
    taken: dict[str, Path] = {}
    for path, part in _schemas(schema):
        if MARK not in part:
            continue
        mark = _checked(path, part)
        if mark.lower() in taken:
            raise ValueError(
                f"{shown_path(path)}: {MARK} {safe_repr(mark, 80)} is also on "
                f"{shown_path(taken[mark.lower()])}"
            )
        taken[mark.lower()] = path
        found[path] = mark
    return found


def is_token(text: str) -> bool:
    """Whether a text can be the name of a field, or a part of one. Source: RFC 9110 (tokens)."""
    return _TOKEN.match(text) is not None


def _checked(path: Path, part: JsonSchema) -> str:
    mark = part[MARK]
    if not path:
        raise ValueError(
            f"{MARK} {safe_repr(mark, 80)}: expected on a property reached through `properties` "
            "alone"
        )
    where = shown_path(path)
    if not isinstance(mark, str) or not is_token(mark):
        raise ValueError(f"{where}: {MARK}: expected an HTTP token, got {safe_repr(mark, 80)}")
    if part.get("type") not in _TYPES:
        raise ValueError(
            f"{where}: {MARK}: expected type {', '.join(_TYPES[:-1])} or {_TYPES[-1]}, "
            f"got {safe_repr(part.get('type'), 80)}"
        )
    return mark


def shown_path(path: Path) -> str:
    return safe_text(".".join(path))


def _schemas(root: JsonSchema) -> Iterator[tuple[Path, JsonSchema]]:
    """Every schema in a schema, with the properties that lead to it; none but those do for `()`."""
    waiting: deque[tuple[Path, object, bool]] = deque([((), root, True)])
    while waiting:
        path, value, reachable = waiting.popleft()
        if is_many(value):
            waiting += [((), part, False) for part in value]
        elif is_object(value):
            yield path, value
            for keyword, inner in value.items():
                if keyword == "properties" and is_object(inner):
                    waiting += [
                        ((*path, name) if reachable else (), part, reachable)
                        for name, part in inner.items()
                    ]
                elif keyword in _SCHEMAS_BY_NAME and is_object(inner):
                    waiting += [((), part, False) for part in inner.values()]
                elif keyword not in _DATA:
                    waiting.append(((), inner, False))


def value_at(arguments: Any, path: Path) -> Any:
    """The value at a path of members; `None` if there is none, or it is null."""
    here = arguments
    for name in path:
        if not is_object(here):
            return None
        here = here.get(name)
    return here
