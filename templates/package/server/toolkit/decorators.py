"""Registration of tools: by a decorator, and by a method with the same options.

Source: server/tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    ParamSpec,
    TypeVar,
    Unpack,
    overload,
)

from ...facts import Revisions
from ...revisions import REVISIONS
from ...runtime.request_context import checked_scopes
from .content import Icon, ToolAnnotations, expect, present_members, wire_of
from .dispatcher import Dispatcher
from .registry import checked_tags
from .signatures import local_names
from .tools import Tool

if TYPE_CHECKING:
    from ..chosen import ToolOptions

Function = TypeVar("Function", bound=Callable[..., Any])

_Server = TypeVar("_Server")
_Options = ParamSpec("_Options")


def adder(
    decorator: Callable[Concatenate[_Server, _Options], Callable[[Any], Any]],
) -> Callable[Concatenate[_Server, Callable[..., Any], _Options], None]:
    """The method that registers a function which is not decorated.

    Its further arguments are those of the decorator, and so are its errors.
    """

    def add(
        self: _Server,
        function: Callable[..., Any],
        /,
        *arguments: _Options.args,
        **options: _Options.kwargs,
    ) -> None:
        decorator(self, *arguments, **options)(function)

    return add


class Decorators:
    """The decorator of tools, and the methods that add and remove them.

    `add_tool(f, ...)` is `tool(...)(f)`: it registers a function that may be defined elsewhere,
    also for clients that are connected. `add_resource` and `add_prompt` work the same way.

    Args:
        dispatcher: Handles requests with what is registered.
    """

    revisions: Revisions = REVISIONS
    """The revisions that it serves; those of packages on an installed runtime are their own."""

    _absent: ClassVar[Mapping[str, str]] = {}
    """Members and `FUNCTION.KEYWORD` of absent features, each with its feature."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        structured: bool = True,
        scopes: Collection[str] = (),
        timeout: float | None = None,
        threads: bool = True,
        tags: Collection[str] = (),
        **options: Unpack[ToolOptions],
    ) -> Callable[[Function], Function]: ...

    @overload
    def tool(self, function: Function, /) -> Function: ...

    def tool(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        structured: bool = True,
        scopes: Collection[str] = (),
        timeout: float | None = None,
        threads: bool = True,
        tags: Collection[str] = (),
        **options: Unpack[ToolOptions],
    ) -> Any:
        """Register the decorated function as a tool.

        `@server.tool` without parentheses is `@server.tool()`.

        Args:
            name: Its name; that of the function by default.
            title: A name for display.
            description: What the tool does; the docstring's first paragraph by default.
            annotations: Hints on its behaviour; a mapping has their names.
            icons: Images for user interfaces.
            meta: `_meta` of the tool.
            structured: Whether results have a structured value; with `False` they are content
                alone, without an output schema.
            scopes: Scopes that a call needs, besides those of every request.
            timeout: Seconds that the function and its dependencies may take, the client's time for
                answers to requests of the tool included; then the function is cancelled, and the
                result is a tool error that says so. A plain function can't be cancelled: the call
                ends, and its thread runs on.
            threads: Whether a plain function runs in a worker thread. With `False` it runs in the
                event loop, which saves the thread, and holds up all other requests meanwhile; the
                methods of its context can't be awaited there.
            tags: Names for `enable` and `disable`; they are not sent.
            options: Options of features; see `ToolOptions`.

        Raises:
            TypeError: An option is unknown or malformed; (from the decorator) the signature can't
                be served.
            ValueError: (from the decorator) The name, a schema or the timeout is invalid, or the
                name is taken.
        """
        own_name = None if callable(name) else name
        own, rest = split_options(self._dispatcher, "tool", options)
        required = checked_scopes(scopes)
        hints = wire_of(annotations, ToolAnnotations, "annotations") if annotations else None
        members = own | wire_members(title, description, icons, meta, hints)
        made = self._use_tool_options(rest, members)
        kind: type[Tool] = made.pop("kind", Tool)
        check_others(rest, "server.tool", self._absent)
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            tool = kind(
                function,
                self._dispatcher.settings,
                name=own_name,
                members=members,
                structured=structured,
                names=names,
                timeout=timeout,
                threads=threads,
                **made,
            )
            tool.scopes, tool.tags = required, checked_tags(tags)
            self._prepare_tool(tool)
            self._dispatcher.registries.tools.add(tool.name, tool)
            return function

        return register(name) if callable(name) else register

    def _use_tool_options(self, options: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
        """Take the options of features out of those of a tool, and add the members that they make.

        The base of a feature overrides it, and calls that of the next base.

        Returns:
            Further arguments of the tool; `kind` is its class.
        """
        return {}

    def _prepare_tool(self, tool: Tool) -> None:
        """Change a tool before it is registered; the base of a feature may override it."""

    add_tool = adder(tool)

    def remove_tool(self, name: str) -> None:
        """Remove a tool, also for clients that are connected.

        Raises:
            LookupError: There is no such tool.
        """
        self._dispatcher.registries.tools.remove(name)


def wire_members(
    title: str | None,
    description: str | None,
    icons: Sequence[Icon],
    meta: Mapping[str, Any] | None,
    annotations: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The members of a wire object that tools, resources and prompts have in common.

    Raises:
        TypeError: One has another type.
    """
    for name, text in (("title", title), ("description", description)):
        if text is not None:
            expect(text, str, name)
    for name in meta or ():
        expect(name, str, "meta: a name")
    return present_members(
        title=title,
        description=description or None,
        icons=[wire_of(icon, Icon, "icons") for icon in icons] or None,
        annotations=annotations,
        _meta=dict(meta) if meta else None,
    )


def split_options(
    dispatcher: Dispatcher, decorator: str, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that are members of an item of a draft, by wire name, and the others."""
    names = dispatcher.item_options.get(decorator, {})
    own = {names[name]: value for name, value in options.items() if name in names}
    return own, {name: value for name, value in options.items() if name not in names}


def check_others(others: Mapping[str, object], call: str, absent: Mapping[str, str] = {}) -> None:
    """Raise `TypeError` if there are unknown options of a call; see `Decorators._absent`."""
    if others:
        from ...absence import keyword_error  # for the error only

        raise keyword_error(call, others, absent)
