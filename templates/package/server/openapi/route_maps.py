"""Rules that map an operation to a tool, a resource or a resource template."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from ...foreign_text import safe_repr
from ..toolkit.registry import checked_tags


class MCPType(enum.Enum):
    """The kind of item that an operation becomes."""

    TOOL = "TOOL"
    RESOURCE = "RESOURCE"
    RESOURCE_TEMPLATE = "RESOURCE_TEMPLATE"
    EXCLUDE = "EXCLUDE"


class HTTPRoute(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of an OpenAPI document.

    Attributes:
        method: Its HTTP method, in capitals.
        path: Its path template, such as `/pets/{petId}`.
        operation_id: Its `operationId`, if it has one.
        tags: Its tags.
        deprecated: Whether it is deprecated.
        extensions: Its members that begin with `x-`.
    """

    method: str
    path: str
    operation_id: str | None = None
    summary: str | None = None
    description: str | None = None
    tags: frozenset[str] = frozenset()
    deprecated: bool = False
    extensions: Mapping[str, Any] = {}

    @property
    def label(self) -> str:
        """Method and path, for texts."""
        return f"{self.method} {self.path}"


class RouteMap(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of item for operations that match all criteria.

    Attributes:
        mcp_type: The kind of item.
        methods: HTTP methods, or `"*"` for all.
        pattern: Regular expression that is searched in the path template.
        tags: OpenAPI tags that an operation must have, all of them.
        mcp_tags: Further tags of the items, for `Server.enable` and `Server.disable`.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: The pattern is not a regular expression.
    """

    mcp_type: MCPType
    methods: Collection[str] | Literal["*"] = "*"
    pattern: str | re.Pattern[str] = ""
    tags: Collection[str] = ()
    mcp_tags: Collection[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.methods, str) and self.methods != "*":
            raise TypeError(f"methods: expected '*' or a collection, got {self.methods!r}")
        checked_tags(self.tags)
        checked_tags(self.mcp_tags)
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern: expected a regular expression: {error}") from error

    def matches(self, route: HTTPRoute) -> bool:
        """Whether an operation matches all criteria."""
        methods = self.methods
        return (
            (methods == "*" or route.method in {method.upper() for method in methods})
            and re.search(self.pattern, route.path) is not None
            and route.tags.issuperset(self.tags)
        )


RouteMapFunction: TypeAlias = Callable[[HTTPRoute, MCPType], MCPType | None]
"""Returns the kind of item for an operation, or `None` for the kind by the route maps."""

_DEFAULT = RouteMap(mcp_type=MCPType.TOOL)


def map_route(
    route: HTTPRoute,
    route_maps: Sequence[RouteMap],
    function: Callable[[HTTPRoute, MCPType], object] | None,
) -> tuple[MCPType, frozenset[str]]:
    """The kind of item by the first route map that matches an operation, and its further tags.

    Raises:
        TypeError: The function returned something else than an `MCPType` or `None`.
    """
    route_map = next((each for each in route_maps if each.matches(route)), _DEFAULT)
    kind = route_map.mcp_type
    if function is not None:
        chosen = function(route, kind) or kind
        if not isinstance(chosen, MCPType):
            raise TypeError(f"route_map_fn: expected an MCPType or None, got {safe_repr(chosen)}")
        kind = chosen
    return kind, frozenset(route_map.mcp_tags)
