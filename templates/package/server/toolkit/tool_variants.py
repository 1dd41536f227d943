"""Tools made from other tools: with another name and description, with arguments renamed or fixed.

A variant is listed by the schema of its source, changed, and a call of it is a call of the source:
the arguments are checked there, and its scopes, timeout, runner and results are those of the
source. The source may be a function's tool, an operation of an OpenAPI document or a tool of a
mounted server, and it may be disabled.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from ..._wire import is_object
from ...errors import InvalidParamsError
from ...foreign_text import safe_list, safe_repr
from ...runtime.request_context import RequestContext
from .dispatcher import Dispatcher
from .output_conversion import tool_result_builder
from .tools import check_tool_name

_ABOUT_MEMBERS = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties"),
        *("dependentRequired", "dependentSchemas", "propertyNames", "$ref"),
    }
)
"""Keywords in the root of a schema that may name its members."""


class ToolVariant:
    """A tool made from another one.

    Args:
        dispatcher: Has the source, and handles its calls.
        source: Name of the source, the other tool.
        name: Its own name.
        members: Members of the wire object that differ, such as `description`.
        rename: New names of arguments by those of the source.
        fix: Values of arguments that are not listed.
        tags: Names for groups of items.

    Attributes:
        name: As passed.
        label: Its name in error texts.
        scopes: Those of the source.
        tags: As passed.
        dependencies: `None`: those of the source are its own.
        runner: `None`: that of the source runs its calls.

    Raises:
        TypeError: `rename` or `fix` is no mapping.
        LookupError: There is no such tool.
        ValueError: The name is invalid, the source has no such argument, two arguments would have
            one name, or a rule of the schema may name arguments.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        source: str,
        *,
        name: str,
        members: Mapping[str, Any],
        rename: Mapping[str, str] | None,
        fix: Mapping[str, Any] | None,
        tags: frozenset[str],
    ) -> None:
        self.name = name
        self.label = f"tool {name!r}"
        check_tool_name(name, self.label)
        self._dispatcher = dispatcher
        self._source = source
        self._members = members
        self._rename: dict[str, str] = _changes("rename", rename)
        self._fix = _changes("fix", fix)
        item = dispatcher.registries.tools.find(source)
        if item is None:
            raise LookupError(f"there is no tool {source!r}")
        self._item: Any = item
        self.scopes: frozenset[str] = item.scopes
        self.tags = tags
        self.dependencies = None
        self.runner = None
        self._check(item.wire("any")["inputSchema"])

    def _check(self, schema: Mapping[str, Any]) -> None:
        known: Mapping[str, Any] = schema.get("properties", {})
        changed = self._rename.keys() | self._fix.keys()
        if unknown := sorted(changed - known.keys()):
            raise ValueError(
                f"{self.label}: {self._source} has no argument {', '.join(unknown)}; expected "
                f"{', '.join(known)}"
            )
        names = [self._rename.get(name, name) for name in known if name not in self._fix]
        if len(set(names)) < len(names) or self._rename.keys() & self._fix.keys():
            raise ValueError(f"{self.label}: expected a name of its own for each argument")
        if changed and (rules := sorted(_ABOUT_MEMBERS & schema.keys())):
            raise ValueError(
                f"{self.label}: arguments of a schema with {', '.join(rules)} can't be changed"
            )

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The tool as wire object; see `Tool`."""
        wire: Mapping[str, Any] = self._find_source().wire(structured_content)
        schema = dict(wire["inputSchema"])
        schema["properties"] = {
            self._rename.get(name, name): each
            for name, each in schema.get("properties", {}).items()
            if name not in self._fix
        }
        required = [name for name in schema.pop("required", ()) if name not in self._fix]
        if required:
            schema["required"] = [self._rename.get(name, name) for name in required]
        return {**wire, **self._members, "name": self.name, "inputSchema": schema}

    @property
    def param_headers(self) -> Mapping[tuple[str, ...], str]:
        """See `Tool`."""
        headers: Mapping[tuple[str, ...], str] = self._find_source().param_headers
        return {
            (self._rename.get(path[0], path[0]), *path[1:]): header
            for path, header in headers.items()
            if path[0] not in self._fix
        }

    @property
    def secret_names(self) -> frozenset[str]:
        """See `Tool`."""
        names: frozenset[str] = self._find_source().secret_names
        return frozenset(self._rename.get(name, name) for name in names)

    def respond(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        """The response of the source.

        Raises:
            InvalidParamsError: The source was removed, or there are arguments that are not listed,
                and the revision reports that by an error.
        """
        received: Mapping[str, Any] = request.params.arguments or {}
        originals = {new: old for old, new in self._rename.items()}
        hidden = received.keys() & ((self._fix.keys() | self._rename.keys()) - originals.keys())
        if hidden:
            return self._refuse(request, sorted(hidden))
        arguments = {
            originals.get(name, name): value for name, value in received.items()
        } | self._fix
        members: dict[str, Any] = {"name": self._source, "arguments": arguments}
        inner = request.with_members(members)
        item = self._dispatcher.registries.tools.find(self._source)
        if item is None:
            raise InvalidParamsError(f"unknown tool: {safe_repr(self.name)}")
        return self._dispatcher.call_item(item, inner)

    async def _refuse(self, request: RequestContext, names: Sequence[str]) -> Any:
        """Report arguments that are not listed, by a result or an error, as the revision does."""
        text = f"{self.label}: unknown arguments: {safe_list(names)}"
        behaviour = request.revision.facts.behaviour
        if behaviour.bad_tool_arguments == "error":
            raise InvalidParamsError(text)
        builder = tool_result_builder(request.method.result, behaviour.structured_content)
        return builder.failure(text)

    def _find_source(self) -> Any:
        """The source; after its removal, its last form."""
        self._item = self._dispatcher.registries.tools.find(self._source) or self._item
        return self._item


def _changes(label: str, changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Changes of arguments, after a check of their type."""
    unchecked: object = {} if changes is None else changes
    if not is_object(unchecked):
        raise TypeError(f"{label}: expected a mapping by names of arguments, got {unchecked!r}")
    return dict(unchecked)
