"""Registration of functions: by decorators, and by methods with the same options.

Items that are registered can be removed, hidden and shown again.

Source: server/tools, server/resources, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from ...facts import Revisions
from ...protocol.server_connection import Admit
from ...revisions import REVISIONS
from ...runtime.request_context import RequestContext, checked_scopes
from ..serving import ProcessLimit
from .content import Annotations, Icon, ToolAnnotations, present, wire_of
from .dispatcher import Announce, Dispatcher, Handler
from .registry import NO_CACHING, CacheHint, ItemRegistries, checked_tags, switch
from .signatures import local_names
from .tools import FROM_SIGNATURE, FromSignature, Tool, ToolRunner

if TYPE_CHECKING:
    from ...other_sdks import NoOptions
    from .features import ToolOptions

Function = TypeVar("Function", bound=Callable[..., Any])

_Server = TypeVar("_Server")
_Options = ParamSpec("_Options")


def _adder(
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


class AbsentAttribute:
    """A class attribute that another SDK has; its error names what takes its place.

    Args:
        name: The attribute.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type) -> Any:
        from ...other_sdks import attribute_error  # for the error only

        raise attribute_error(owner, "Server", self._name)


class Decorators:
    """The decorators that register functions, and the methods that add, remove and hide them.

    `add_tool(f, ...)` is `tool(...)(f)`: it registers a function that may be defined elsewhere,
    also for clients that are connected. `add_resource` and `add_prompt` work the same way.

    Args:
        dispatcher: Handles requests with what is registered.
    """

    revisions: Revisions = REVISIONS
    """The revisions that it serves; those of packages on an installed runtime are their own."""

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
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | FromSignature | None = FROM_SIGNATURE,
        structured: bool = True,
        scopes: Collection[str] = (),
        timeout: float | None = None,
        threads: bool = True,
        tags: Collection[str] = (),
        runner: ToolRunner | None = None,
        **others: Unpack[ToolOptions],
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
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | FromSignature | None = FROM_SIGNATURE,
        structured: bool = True,
        scopes: Collection[str] = (),
        timeout: float | None = None,
        threads: bool = True,
        tags: Collection[str] = (),
        runner: ToolRunner | None = None,
        **others: Unpack[ToolOptions],
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
            input_schema: JSON Schema of the arguments, instead of one from the signature.
            output_schema: JSON Schema of the structured result, instead of one from the return
                annotation; `None` for none: objects alone are then structured, unchecked.
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
            runner: Runs the calls, such as `Tasks`; `None` for the tasks of their requests.

        Raises:
            TypeError: An option is unknown or malformed; (from the decorator) the signature can't
                be served.
            ValueError: (from the decorator) The name, a schema or the timeout is invalid, or the
                name is taken.
        """
        own_name = None if callable(name) else name
        meta = self._tool_meta(meta, others)
        required = checked_scopes(scopes)
        hints = wire_of(annotations, ToolAnnotations, "annotations") if annotations else None
        members = _members(title, description, icons, meta, hints)
        if runner is not None:
            members |= runner.tool_members
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            settings = self._dispatcher.settings
            tool = Tool(
                function,
                name=own_name,
                members=members,
                input_schema=input_schema,
                output_schema=output_schema,
                structured=structured,
                names=names,
                coerce=settings.coerce,
                additional_properties=settings.additional_properties,
                schemas=settings.schemas,
                show_errors=settings.show_errors,
                validation_seconds=settings.validation_seconds,
                timeout=timeout,
                threads=threads,
            )
            tool.scopes, tool.tags, tool.runner = required, checked_tags(tags), runner
            self._registries.tools.add(tool.name, tool)
            return function

        return register(name) if callable(name) else register

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        cache: CacheHint = NO_CACHING,
        scopes: Collection[str] = (),
        tags: Collection[str] = (),
        **others: Unpack[NoOptions],
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a resource, or as a resource template.

        Args:
            uri: URI, or URI template (RFC 6570) if it contains a `{`.
            name: Its name; that of the function by default.
            title: A name for display.
            description: What the resource is; the docstring's first paragraph by default.
            mime_type: MIME type of the contents.
            size: Size of the contents in bytes before encoding, if known.
            annotations: Audience and priority; a mapping has their names.
            icons: Images for user interfaces.
            meta: `_meta` of the resource.
            cache: The cache hint of the contents; always private if scopes are needed.
            scopes: Scopes that reading needs, besides those of every request.
            tags: Names for `enable` and `disable`; they are not sent.

        Raises:
            TypeError: An option is unknown or malformed; (from the decorator) the parameters do not
                match the template's variables.
            ValueError: (from the decorator) Not a URI or template, or already registered.
            MissingExtraError: (from the decorator) A template, and `uritemplate` is missing.
        """
        from .resources import Resource  # loaded only if a server has resources

        if callable(uri):
            raise TypeError('expected @server.resource("scheme://path"), got @server.resource')
        _check_others(others, "resource")
        required = checked_scopes(scopes)
        if required and cache.scope != "private":
            cache = CacheHint(cache.ttl_ms, "private")
        notes = wire_of(annotations, Annotations, "annotations") if annotations else None
        members = _members(title, description, icons, meta, notes)
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            resource = Resource(
                function,
                uri,
                name=name,
                mime_type=mime_type,
                members=members if size is None else {**members, "size": size},
                cache=cache,
                names=names,
            )
            registries = self._registries
            registry = registries.resources if resource.template is None else registries.templates
            resource.scopes, resource.tags = required, checked_tags(tags)
            registry.add(uri, resource)
            return function

        return register

    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        scopes: Collection[str] = (),
        tags: Collection[str] = (),
        **others: Unpack[NoOptions],
    ) -> Callable[[Function], Function]: ...

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    def prompt(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        scopes: Collection[str] = (),
        tags: Collection[str] = (),
        **others: Unpack[NoOptions],
    ) -> Any:
        """Register the decorated function as a prompt.

        `@server.prompt` without parentheses is `@server.prompt()`.

        Args:
            name: Its name; that of the function by default.
            title: A name for display.
            description: The purpose; the docstring's first paragraph by default.
            icons: Images for user interfaces.
            meta: `_meta` of the prompt.
            scopes: Scopes that the prompt needs, besides those of every request.
            tags: Names for `enable` and `disable`; they are not sent.

        Raises:
            TypeError: An option is unknown or malformed; (from the decorator) the signature can't
                be served.
            ValueError: (from the decorator) The name is empty or taken.
        """
        from .prompts import Prompt  # loaded only if a server has prompts

        own_name = None if callable(name) else name
        _check_others(others, "prompt")
        required = checked_scopes(scopes)
        members = _members(title, description, icons, meta)
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            prompt = Prompt(function, name=own_name, members=members, names=names)
            prompt.scopes, prompt.tags = required, checked_tags(tags)
            self._registries.prompts.add(prompt.name, prompt)
            return function

        return register(name) if callable(name) else register

    def _tool_meta(self, meta: Any, options: Mapping[str, Any]) -> Any:
        """`_meta` of a tool, with what options of features add to it."""
        _check_others(options, "tool")
        return meta

    add_tool = _adder(tool)
    add_resource = _adder(resource)
    add_prompt = _adder(prompt)

    def completion(
        self, *, argument: str, prompt: str | None = None, template: str | None = None
    ) -> Callable[[Function], Function]:
        """Register the decorated function as the completion of an argument.

        Args:
            argument: Name of the argument or variable.
            prompt: Name of the prompt that has the argument.
            template: The URI template that has the variable, instead of a prompt.

        Raises:
            ValueError: Not exactly one of prompt and template, or (from the decorator) the argument
                has a completion already.
        """
        from .prompts import Completer  # loaded only if a server has completions

        if (prompt is None) == (template is None):
            raise ValueError("completion: expected either prompt or template")
        kind, owner = ("prompt", prompt) if prompt is not None else ("template", template)
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            label = f"completion of {kind} {owner!r}, argument {argument!r}"
            completer = Completer(function, label, names)
            key = kind, str(owner), argument
            if key in self._dispatcher.completers:
                raise ValueError(f"{label} is registered already")
            self._dispatcher.add_completer(key, completer)
            return function

        return register

    def handle_requests(
        self,
        handlers: Mapping[str, Handler],
        admit: Admit,
        process_limits: Sequence[ProcessLimit],
        capabilities: Mapping[str, Any],
        runner: ToolRunner,
        share: Callable[[Any], None],
    ) -> Announce:
        """Handle requests by wire name; returns what announces their notifications.

        Runs the calls of tools without a runner by this one. For the others, see `Service`.

        Raises:
            ValueError: A request has a handler already.
        """
        dispatcher = self._dispatcher
        if taken := handlers.keys() & dispatcher.handlers.keys():
            raise ValueError(f"{', '.join(sorted(taken))}: registered already")
        dispatcher.admit, dispatcher.default_runner = admit, runner
        dispatcher.process_limits += process_limits
        dispatcher.shares.append(share)
        dispatcher.declare(capabilities)
        dispatcher.serve(handlers)
        return dispatcher.announcer.announce

    def serve_request(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        """The result of a request by its handler, past middleware and rights to the method.

        Raises:
            ProtocolError: It is refused.
        """
        return self._dispatcher.handle(request)

    def remove_tool(self, name: str) -> None:
        """Remove a tool, also for clients that are connected.

        Raises:
            LookupError: There is no such tool.
        """
        self._registries.tools.remove(name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template, also for clients that are connected.

        Raises:
            LookupError: There is no such resource.
        """
        resources, templates = self._registries.resources, self._registries.templates
        (templates if templates.keys((uri,), ()) else resources).remove(uri)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt, also for clients that are connected.

        Raises:
            LookupError: There is no such prompt.
        """
        self._registries.prompts.remove(name)

    def disable(self, *names: str, tags: Collection[str] = ()) -> None:
        """Hide items that are registered: they are not listed, and unknown to requests.

        Clients that are connected are notified. Items that are registered later are enabled.

        Args:
            names: Names of tools and prompts, URIs of resources and resource templates.
            tags: Items with one of these tags.

        Raises:
            LookupError: A name or tag fits nothing; nothing was changed.
        """
        switch(self._registries, names, tags, enabled=False)

    def enable(self, *names: str, tags: Collection[str] = ()) -> None:
        """Show items again that were hidden by `disable`; arguments and errors are the same."""
        switch(self._registries, names, tags, enabled=True)

    @property
    def _registries(self) -> ItemRegistries:
        return self._dispatcher.registries


def _members(
    title: str | None,
    description: str | None,
    icons: Sequence[Icon],
    meta: Mapping[str, Any] | None,
    annotations: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The members of a wire object that tools, resources and prompts have in common."""
    return present(
        title=title,
        description=description or None,
        icons=[wire_of(icon, Icon, "icons") for icon in icons] or None,
        annotations=annotations,
        _meta=dict(meta) if meta else None,
    )


def _check_others(others: Mapping[str, object], decorator: str) -> None:
    """Refuse options that do not exist."""
    if others:
        from ...other_sdks import keyword_error  # for the error only

        raise keyword_error(f"server.{decorator}", others)
