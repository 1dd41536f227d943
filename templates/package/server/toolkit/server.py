"""The kernel of a server: its settings, and the registration of its tools.

`dispatcher` handles requests with what is registered; the modules of hosting run the server over a
transport. A feature is a class that derives from the kernel and is a base of `Server`.

While a server runs, standard error shows where it is served. Standard output belongs to the
protocol.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)

from ...channel import Channel
from ...facts import Revision, Revisions
from ...protocol.lifecycle import CAPABILITY, Description
from ...protocol.request_meta import check_extensions
from ...revisions import REVISIONS
from ...runtime.peer import CONCURRENT_REQUESTS, check_concurrent_requests
from ...runtime.request_context import RequestContext, checked_scopes
from .. import serving
from .content import Icon, ToolAnnotations, expect, present_members, wire_of
from .context import Context
from .dispatcher import Dispatcher, Hooks
from .registry import checked_tags
from .signatures import local_names
from .tools import ForbiddenItems, SchemaForm, ServerSettings, Tool

if TYPE_CHECKING:
    from ...protocol.handshake import HandshakeConnection
    from ..chosen import ServerOptions, ToolOptions

Function = TypeVar("Function", bound=Callable[..., Any])

_Server = TypeVar("_Server")
_Options = ParamSpec("_Options")

Transport: TypeAlias = Literal["stdio", "http", "streamable-http"]
"""A transport of `Server.run`; `streamable-http` is another name of `http`."""

importing: ContextVar[bool] = ContextVar("importing", default=False)
"""Whether a module is being imported for its server, which the importer runs."""


class RunWhileImportedError(RuntimeError):
    """A module calls `run` while it is imported by `python -m <package> serve`."""


Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]


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


class ServerKernel:
    """An MCP server.

    Args:
        name: Its name, for programs.
        version: Its version.
        title: Its name for display.
        description: A description of the server.
        website_url: A web page about the server.
        icons: Images for user interfaces.
        instructions: How to use it, for the model.
        page_size: Most items in one result of a list request; `None` for all.
        list_changed: Whether clients are notified when tools, resources or prompts change.
        logging: Whether `Context.log` and its variants send messages.
        coerce: Whether a text in a tool's arguments is converted where its function expects another
            type, since models send `"5"` for a number and `"[1]"` for a list.
        additional_properties: With `False`, input schemas of tools that are made from signatures
            and OpenAPI documents have `additionalProperties: false`. Some clients fail to read
            that; unknown arguments are refused either way.
        schemas: How schemas of signatures and OpenAPI documents have their definitions: `inline`,
            instead of each reference, as several clients drop `$defs`; `refs`, by references,
            which is shorter if one is used often. Recursive definitions are always references.
        show_errors: Whether results contain the text of a tool's unexpected exception; by default
            only the log does. The text of a `ToolError` is always sent.
        lifespan: Returns a context manager that is entered once per client, over HTTP once for all
            clients; the value that it yields is `Context.state`.
        capabilities: Further capabilities to declare, such as `{"experimental": {...}}`.
        drain: Seconds that open requests may take after the client has disconnected.
        forbidden_items: What becomes of tools, resources and prompts whose scopes a principal
            lacks. `listed`: they are listed, and using one is refused, over HTTP by 403 with its
            scopes, so that a client can ask for them. `hidden`: they look as if they did not exist;
            lists with such items are private.
        max_concurrent_requests: Most waiting handlers of one client, over standard streams and
            custom channels; over HTTP `Limits` apply. At the limit no further message is read
            until a handler ends; while a handler waits for a response of the client, further
            requests are refused.
        options: Options of features; see the bases of `ServerOptions`.

    Raises:
        TypeError: An argument is unknown, or an icon is malformed.
        ValueError: The name is empty, a limit is not positive, or the form
            of schemas or the identifier of an extension is invalid.
    """

    revisions: Revisions = REVISIONS
    """The revisions that it serves; those of packages on an installed runtime are their own."""

    _absent: ClassVar[Mapping[str, str]] = {}
    """Members and `FUNCTION.KEYWORD` of absent features, each with its feature."""

    _new_connection: ClassVar[staticmethod[[serving.Service], HandshakeConnection]]
    _dispatcher_class: ClassVar[type[Dispatcher]] = Dispatcher
    _context_class: ClassVar[type[Context[Any]]] = Context

    def __init__(
        self,
        name: str,
        version: str = "0",
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = (),
        instructions: str | None = None,
        page_size: int | None = None,
        list_changed: bool = True,
        logging: bool = True,
        coerce: bool = True,
        additional_properties: Literal[False] | None = None,
        schemas: SchemaForm = "inline",
        show_errors: bool = False,
        lifespan: Lifespan | None = None,
        capabilities: Mapping[str, Any] | None = None,
        drain: float = 5.0,
        forbidden_items: ForbiddenItems = "listed",
        max_concurrent_requests: int = CONCURRENT_REQUESTS,
        **options: Unpack[ServerOptions],
    ) -> None:
        check_concurrent_requests(max_concurrent_requests)
        if capabilities and CAPABILITY in capabilities:
            check_extensions(capabilities, self.revisions.newest().facts)
        self._drain = drain
        self._max_concurrent_requests = max_concurrent_requests
        pictures = [wire_of(icon, Icon, "icons") for icon in icons or ()] or None
        about = {"description": description, "websiteUrl": website_url, "icons": pictures}
        settings = ServerSettings(
            info=present_members(name=name, title=title, version=version, **about),
            instructions=instructions,
            page_size=page_size,
            list_changed=list_changed,
            logging=logging,
            coerce=coerce,
            additional_properties=additional_properties,
            schemas=schemas,
            show_errors=show_errors,
            capabilities=dict(capabilities or {}),
            forbidden_items=forbidden_items,
        )
        self._announcer = serving.Announcer()
        hooks = Hooks(context=self._context_class)
        dispatcher = self._dispatcher_class(settings, self._announcer, self.revisions, hooks)
        self._dispatcher = dispatcher
        if lifespan is not None:
            dispatcher.lifespan = partial(lifespan, self)
        handlers_of = type(self).handle, type(self).notified
        if handlers_of != (ServerKernel.handle, ServerKernel.notified):  # overridden
            dispatcher.application = self
        self._use_options(rest := {**options})
        check_others(rest, "Server", self._absent)

    def _use_options(self, options: dict[str, Any]) -> None:
        """Take the options of features out of those of the server, and add hooks to the dispatcher.

        The base of a feature overrides it, and calls that of the next base.
        """

    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Sequence[Icon] | None = (),
        meta: Mapping[str, Any] | None = None,
        structured: bool = True,
        scopes: Collection[str] = (),
        timeout: float | None = None,
        threads: bool = True,
        tags: Collection[str] | None = (),
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
        icons: Sequence[Icon] | None = (),
        meta: Mapping[str, Any] | None = None,
        structured: bool = True,
        scopes: Collection[str] = (),
        timeout: float | None = None,
        threads: bool = True,
        tags: Collection[str] | None = (),
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
            structured: Whether results have a structured value; with `False` they have only
                content, and the tool has no output schema.
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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ...absence import attribute_error  # for the error only

            raise attribute_error(self, name, self._absent)

    def __repr__(self) -> str:
        count = len(self._announcer.queues)
        clients = f"{count} client{'' if count == 1 else 's'}"
        return f"<{type(self).__name__} {self.name} {self.info['version']}, {clients}>"

    @property
    def name(self) -> str:
        """Name of the server, for programs."""
        return self._dispatcher.name

    @property
    def info(self) -> Mapping[str, Any]:
        """Name, version and further members of `Implementation`, as wire object."""
        return self._dispatcher.settings.info

    @property
    def instructions(self) -> str | None:
        """How to use the server, for the model."""
        return self._dispatcher.settings.instructions

    def describe(self, revision: Revision) -> Description:
        """Name, capabilities and instructions of the server in a revision."""
        return self._dispatcher.describe(revision)

    def capabilities(self, revision: Revision) -> Mapping[str, Any]:
        """The capabilities that the server declares in a revision, as wire object."""
        return self.describe(revision).capabilities

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any]:
        """The result of a request; a subclass that overrides it sees all requests first."""
        return self._dispatcher.handle(context)

    async def notified(self, context: RequestContext) -> None:
        """Handle a notification; may be overridden like `handle`."""
        await self._dispatcher.notified(context)

    async def serve(self, channel: Channel) -> None:
        """Serve one client over a channel until it disconnects. Calls may run concurrently.

        Raises:
            Exception: The lifespan raised it.
        """
        self._dispatcher.is_served = True
        await serving.serve(self._service(), channel)

    def _service(self) -> serving.Service:
        """The service; features override it to add what they need."""
        dispatcher = self._dispatcher
        servers = dispatcher.all_servers()
        admits, keys = (each.admit for each in servers), dispatcher.hooks.keys
        return serving.Service(
            application=dispatcher.application,
            revisions=self.revisions,
            describe=dispatcher.describe,
            new_connection=self._new_connection,
            extensions=dispatcher.custom_methods(),
            announcer=self._announcer,
            drain=self._drain,
            lifespan=dispatcher.lifespans,
            use_state=dispatcher.use_state,
            max_concurrent_requests=self._max_concurrent_requests,
            param_headers_of=dispatcher.param_headers_of,
            secret_names_of=dispatcher.secret_names_of,
            on_subscription=dispatcher.subscription_listener(),
            admit=next((admit for admit in admits if admit is not None), None),
            share=[share for each in servers for share in each.shares],
            shared_keys=tuple if keys is None else keys.shared_keys,
        )

    def _show(self, banner: bool, url: str | None = None) -> None:
        """Show on standard error what is served; see `banner`."""
        if url is not None:
            print(f"serving at {url}", file=sys.stderr, flush=True)


def wire_members(
    title: str | None,
    description: str | None,
    icons: Sequence[Icon] | None,
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
        icons=[wire_of(icon, Icon, "icons") for icon in icons or ()] or None,
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
    """Raise `TypeError` if there are unknown options of a call; see `ServerKernel._absent`."""
    if others:
        from ...absence import keyword_error  # for the error only

        raise keyword_error(call, others, absent)


def check_run(call: str, transport: str | None, known: Collection[str]) -> None:
    """Check that no command is importing the module for its server, and that it has the transport.

    Args:
        call: The method that was called, such as `server.run`.
        transport: Its argument; `None` for the default.
        known: The transports that it has.

    Raises:
        RunWhileImportedError: A command is importing the module.
        TypeError: It has no such transport.
    """
    if importing.get():
        raise RunWhileImportedError(f"put {call}() under `if __name__ == '__main__':`")
    if transport is not None and transport not in known:
        from ...absence import call_error  # for the error only

        expected = " or ".join(map(repr, known))
        raise call_error(call, f"expected transport {expected}, got {transport!r}")
