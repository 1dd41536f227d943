"""Parameter headers: HTTP header fields that repeat arguments of a tool call.

The keyword `x-mcp-header` of a property in an input schema is the name of its header without the
prefix. A client over HTTP leaves out tools with invalid header names; other transports ignore them.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters (2026-07-28).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._wire import is_many, is_object
from ..foreign_text import safe_repr, safe_text

if TYPE_CHECKING:  # loaded only to validate
    from ..json_schema import JsonSchema

KEYWORD = "x-mcp-header"

Path: TypeAlias = tuple[str, ...]
"""Names of properties, from the root of the arguments to a property with a header."""

ParamHeadersOf: TypeAlias = Callable[[str], Mapping[Path, str]]
"""Path and header name of each argument with a parameter header, by the tool's name."""

_TYPES = ("integer", "string", "boolean")
_DATA = frozenset({"const", "default", "enum", "examples", KEYWORD})
_SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # compiled when it is first used


def param_headers_of(schema: JsonSchema) -> dict[Path, str]:
    """The properties of an input schema with a parameter header: header name by path.

    Raises:
        ValueError: A header name is malformed, used twice, or on a property that can't have one.
    """
    headers: dict[Path, str] = {}
    taken: dict[str, Path] = {}
    for path, part in _schemas(schema):
        if KEYWORD not in part:
            continue
        name = _read_header_name(path, part)
        if name.lower() in taken:
            raise ValueError(
                f"{format_path(path)}: {KEYWORD} {safe_repr(name, 80)} is also on "
                f"{format_path(taken[name.lower()])}"
            )
        taken[name.lower()] = path
        headers[path] = name
    return headers


def is_token(text: str) -> bool:
    """Whether a text is a token of HTTP. Source: RFC 9110 (tokens)."""
    return re.fullmatch(_TOKEN, text) is not None


def _read_header_name(path: Path, part: JsonSchema) -> str:
    name = part[KEYWORD]
    if not path:
        raise ValueError(
            f"{KEYWORD} {safe_repr(name, 80)}: expected on a property reached through `properties` "
            "alone"
        )
    where = format_path(path)
    if not isinstance(name, str) or not is_token(name):
        raise ValueError(f"{where}: {KEYWORD}: expected an HTTP token, got {safe_repr(name, 80)}")
    if part.get("type") not in _TYPES:
        raise ValueError(
            f"{where}: {KEYWORD}: expected type {', '.join(_TYPES[:-1])} or {_TYPES[-1]}, "
            f"got {safe_repr(part.get('type'), 80)}"
        )
    return name


def format_path(path: Path) -> str:
    return safe_text(".".join(path))


def _schemas(root: JsonSchema) -> Iterator[tuple[Path, JsonSchema]]:
    """All schemas in a schema, with their path; `()` if the path is not of properties alone."""
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
    """The value at a path; `None` if absent or null."""
    here = arguments
    for name in path:
        if not is_object(here):
            return None
        here = here.get(name)
    return here
