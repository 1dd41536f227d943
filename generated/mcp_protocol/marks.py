"""Marks by which tools have arguments repeated in HTTP headers: read from schemas, and put to use.

A property of an input schema carries its mark, the name of the header less a prefix. A tool with a
mark that breaks a rule is of no use to a client that speaks HTTP, which leaves it out of the list;
other transports ignore marks, right or wrong.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters (2026-07-28).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ._wire import is_many, is_object
from .errors import InvalidParamsError, ProtocolError
from .foreign_text import safe_repr, safe_text
from .json_schema import JsonSchema

MARK = "x-mcp-header"

KEPT_TOOLS = 10_000
"""Most tools of a server that something is kept of; of more, those listed longest ago go."""

Path: TypeAlias = tuple[str, ...]
"""Names of properties, from the arguments' root down to the marked one."""

_TYPES = ("integer", "string", "boolean")
_DATA = frozenset({"const", "default", "enum", "examples", MARK})
_SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})

_logger = logging.getLogger(__name__)


def marks_of(schema: JsonSchema) -> dict[Path, str]:
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
                f"{_shown(path)}: {MARK} {safe_repr(mark, 80)} is also on "
                f"{_shown(taken[mark.lower()])}"
            )
        taken[mark.lower()] = path
        found[path] = mark
    return found


def _checked(path: Path, part: JsonSchema) -> str:
    mark = part[MARK]
    if not path:
        raise ValueError(
            f"{MARK} {safe_repr(mark, 80)}: expected on a property reached through `properties` "
            "alone"
        )
    from .framing.fields import is_token  # most packages never meet a mark

    where = _shown(path)
    if not isinstance(mark, str) or not is_token(mark):
        raise ValueError(f"{where}: {MARK}: expected an HTTP token, got {safe_repr(mark, 80)}")
    if part.get("type") not in _TYPES:
        raise ValueError(
            f"{where}: {MARK}: expected type {', '.join(_TYPES[:-1])} or {_TYPES[-1]}, "
            f"got {safe_repr(part.get('type'), 80)}"
        )
    return mark


def _shown(path: Path) -> str:
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


class HeaderMarks:
    """The marks of a server's tools, as it listed them last.

    Those of a tool are kept until it is listed anew, even if the server says that its tools
    changed: should they be wrong by then, the server refuses the call, and the client lists again.

    Attributes:
        mirrored: Whether the transport has headers; it says so itself.
        prefix: What the names of the headers begin with; `None` in revisions without marks.
    """

    def __init__(self) -> None:
        self.mirrored = False
        self.prefix: str | None = None
        self._marks: dict[str, Mapping[Path, str]] = {}
        self._told: dict[str, str] = {}

    @property
    def in_use(self) -> bool:
        """Whether arguments are repeated in headers at all."""
        return self.mirrored and self.prefix is not None

    def listed(self, tools: Iterable[Any]) -> list[Any]:
        """Take note of typed tools.

        Returns:
            Those that can be called; a warning tells of each other one, once.
        """
        return [tool for tool in tools if not self.in_use or self._keep(tool)]

    def headers_for(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The headers of a call, by name, their values as they are sent.

        Raises:
            InvalidParamsError: An argument has no form in which a header could carry it.
        """
        headers: dict[str, str] = {}
        marks = self._marks.get(tool)
        if not marks or not self.in_use:
            return headers
        from .framing.fields import encode_value, value_text  # loaded by the transport already

        for path, mark in marks.items():
            value = value_at(arguments, path)
            if value is not None:
                try:
                    headers[f"{self.prefix}{mark}"] = encode_value(value_text(value))
                except ProtocolError as error:
                    raise InvalidParamsError(
                        f"tool {safe_repr(tool)}: {_shown(path)}: {error}"
                    ) from None
        return headers

    def _keep(self, tool: Any) -> bool:
        try:
            self._marks[tool.name] = marks_of(tool.input_schema)
            drop_oldest(self._marks, KEPT_TOOLS)
        except ValueError as error:
            self._marks.pop(tool.name, None)
            if self._told.get(tool.name) != str(error):
                self._told[tool.name] = str(error)
                drop_oldest(self._told, KEPT_TOOLS)
                _logger.warning("tool %s is left out: %s", safe_repr(tool.name), error)
            return False
        return True


def drop_oldest(kept: dict[str, Any], limit: int) -> None:
    """Drop what was put into a dict first until it has no more than a number of members."""
    while len(kept) > limit:
        del kept[next(iter(kept))]


def value_at(arguments: Any, path: Path) -> Any:
    """The value at a path of members; `None` if there is none, or it is null."""
    here = arguments
    for name in path:
        if not is_object(here):
            return None
        here = here.get(name)
    return here
