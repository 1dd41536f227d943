"""Dispatch of requests to the registered functions, by the settings of the server.

Each registered feature adds its methods to one table. Requests are found in that table, and the
declared capabilities follow from it, in the form of each revision. A method stays in the table when
its last item is removed, with an empty list: a session keeps the capabilities that were declared.

A principal without the scopes that an item needs either gets a challenge for them, or the response
of an item that does not exist, which then is not listed either.

Source: server/tools, server/resources, server/prompts, server/utilities/completion,
basic/authorization (scope challenge handling).
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar, TypeAlias

import msgspec

from ...errors import InvalidParamsError, InvalidRequestError, MethodNotFoundError
from ...facts import Method, Revision, Revisions
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.lifecycle import (
    Admit,
    Description,
    OnSubscription,
    fit_capabilities,
    merge_objects,
    reduce_to,
)
from ...protocol.requests import MESSAGE
from ...runtime.request_context import ANONYMOUS, PRINCIPAL, Application, RequestContext
from ..serving import Announcer, ProcessLimit
from .context import Context
from .output_conversion import ToolResultBuilder, tool_result_builder
from .registry import (
    ITEM_LISTS,
    PROMPTS_CHANGED,
    RESOURCES_CHANGED,
    STALE,
    TOOLS_CHANGED,
    ItemList,
    ItemRegistries,
    Registry,
)
from .tools import ForbiddenItems, ServerSettings, Tool, ToolRunner

Handler: TypeAlias = Callable[[RequestContext], Coroutine[Any, Any, Any]]
"""Handles the requests of one method."""

ItemHandler: TypeAlias = "Callable[[Dispatcher, RequestContext], Coroutine[Any, Any, Any]]"
"""Handles requests of one method about what is registered in a dispatcher."""

FindResource: TypeAlias = Callable[
    [str, Mapping[str, Any], Mapping[str, Any]], tuple[Any, Mapping[str, Any]]
]

RequiredScopes: TypeAlias = Callable[[jsonrpc.Message], Collection[str]]
"""Returns the scopes that a message needs."""

Announce: TypeAlias = Callable[..., None]
"""Sends a notification to all interested sessions: name, and optionally params and subject."""

Describe: TypeAlias = Callable[
    [Callable[..., Any], Mapping[str, Any], Iterable[str]], Mapping[str, Any]
]
"""Changes the members of an item, by its function and its tags."""

LIST_CHANGES = (TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED)
_FLAGS = frozenset({"listChanged", "subscribe"})


class Hooks(msgspec.Struct, kw_only=True):
    """The additions of features to the dispatcher of a server, or to a proxy in its place.

    Attributes:
        context: The class of the contexts of requests.
        items: Handlers of the requests about registered items beside tools, by wire name.
        find_resource: Finds the resource of a URI, and the values of its template's variables,
            among registered resources and templates.
        round_trips: `ServerRoundTrips`; `None` if handlers can't ask the client.
        resource_hint: Takes the cache hint of a resource out of its options; the second argument is
            whether it has to be private.
        describe: Changes the members of the wire object of a prompt or a resource, by its function,
            the members that it is registered with, and its tags.
        mime_type: The MIME type of resources that are registered without one.
        keys: `ServerKeys`; `None` if the server signs and seals nothing.
        required_scopes: Changes the function that finds the scopes of a message.
    """

    context: type[Context[Any]] = Context
    items: Mapping[str, ItemHandler] = {}
    find_resource: FindResource | None = None
    round_trips: Any = None
    resource_hint: Callable[[dict[str, Any], bool], Mapping[str, Any]] | None = None
    describe: Describe | None = None
    mime_type: str | None = None
    keys: Any = None
    required_scopes: Callable[[RequiredScopes], RequiredScopes] | None = None


class Dispatcher:
    """Handles the requests of a server by the registered functions.

    Its table of methods has a row for each request that it handles: list requests and requests
    about items (`item_handlers`, added with the first item of a kind), custom methods, and others.
    The rows decide the capabilities. Mounted servers add rows.

    Attributes:
        hooks: What features add; shared with a proxy that takes the dispatcher's place.
        overrides: `LowLevelHandlers`, which replace those of the toolkit, if there are any.
        with_lists: Requests and a notification that are served with a list, by the notification
            that the list has changed.
        application: Handles requests: the dispatcher itself, or middleware in front of it.
        is_served: Whether the server was started.
        discover_hint: The cache hint of the server's description.
        functions: Further registered functions: completions by kind, name of the item and argument,
            custom methods by kind and name.
        item_handlers: Handlers of the requests that are about registered items.
        handlers: Handlers of all requests that are served.
        custom: Rows of custom methods.
        method_scopes: Scopes of custom methods.
        capabilities: Capabilities beyond those of the rows.
        admit, process_limits: See `TaskToolServer.handle_requests`.
        shares: Functions that receive the shared state; see `Service.share`.
        default_runner: Runs the calls of tools without a runner of their own.
        mounts: The servers that are mounted on it, in order; see `MountingDispatcher`.
    """

    registry_class: ClassVar[type[Registry[Any]]] = Registry
    mounts: Sequence[Any] = ()

    is_open: ClassVar[bool] = False
    """Whether it has unregistered items, as a proxy has: only requests to it list and find them."""

    item_options: Mapping[str, Mapping[str, str]] = {}
    """Members of items that a draft adds, by decorator: wire names by keyword."""

    def __init__(
        self,
        settings: ServerSettings,
        announcer: Announcer,
        revisions: Revisions,
        hooks: Hooks,
    ) -> None:
        self.settings = settings
        self.announcer = announcer
        self.revisions = revisions
        self.hooks = hooks
        self.overrides: Any = None
        self.with_lists: dict[str, tuple[Collection[str], str]] = {}
        self.application: Application = self
        self.lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
        self.is_served = False
        self.handlers: dict[str, Handler] = {}
        self.notifications: set[str] = {MESSAGE} if settings.logging else set()
        self.custom: dict[str, Method] = {}
        self.functions: dict[tuple[str, ...], Any] = {}
        self.method_scopes: dict[str, frozenset[str]] = {}
        self.capabilities = dict(settings.capabilities)
        self.admit: Admit | None = None
        self.process_limits: list[ProcessLimit] = []
        self.shares: list[Callable[[Any], None]] = []
        self.default_runner: ToolRunner | None = None
        self.state: ContextVar[Any] = ContextVar("state", default=None)
        self._forbidden: ForbiddenItems = settings.forbidden_items
        self._descriptions: dict[tuple[str, bool], Description] = {}
        self._tool_results: dict[str, ToolResultBuilder] = {}
        self.discover_hint = STALE
        self.registries = ItemRegistries(*map(self._new_registry, ITEM_LISTS))
        self._tools: Registry[Tool] = self.registries.tools
        self.item_handlers: dict[str, Handler] = {
            **{registry.row.request: registry.page for registry in self.registries},
            "tools/call": self._call_tool,
            **{name: partial(each, self) for name, each in hooks.items.items()},
        }

    def _new_registry(self, row: ItemList) -> Registry[Any]:
        settings = self.settings
        changed = partial(self._list_changed, row)
        registry = self.registry_class(row, settings.page_size, changed)
        registry.hides_forbidden = settings.forbidden_items == "hidden"
        return registry

    @property
    def name(self) -> str:
        """Name of the server, for programs."""
        name: str = self.settings.info["name"]
        return name

    def all_servers(self) -> list[Dispatcher]:
        """This server, and all that are mounted on it directly or indirectly, each once."""
        return [self]

    @asynccontextmanager
    async def lifespans(self) -> AsyncGenerator[Mapping[ContextVar[Any], Any]]:
        """The lifespans of all servers, each entered once.

        Yields:
            The values that they yielded, for `use_state`.
        """
        async with nullcontext() if self.lifespan is None else self.lifespan() as state:
            yield {} if state is None else {self.state: state}

    def use_state(self, states: Mapping[ContextVar[Any], Any] | None) -> Any:
        """Set the values of lifespans for the current task; return that of the server's own one."""
        for variable, value in (states or {}).items():
            variable.set(value)
        return self.state.get()

    def describe(self, revision: Revision) -> Description:
        """Name, capabilities and instructions of the server in a revision."""
        description = self._descriptions.get(key := (revision.name, PRINCIPAL.get() is ANONYMOUS))
        if description is None:
            description = self._descriptions[key] = Description(
                reduce_to(revision.implementation, self.settings.info),
                fit_capabilities(
                    revision.server_capabilities, self._declared_capabilities(revision)
                ),
                self.settings.instructions,
                self.discover_hint,
            )
        return description

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any]:
        """The result of a request, in the revision's own type or as wire object.

        Raises:
            MethodNotFoundError: No registered feature has the method.
            ProtocolError: The handler raised it.
        """
        if self.overrides is not None:
            result: Coroutine[Any, Any, Any] | None = self.overrides.handle(context)
            if result is not None:
                return result
        handler = self.handlers.get(context.method.name)
        if handler is None:
            raise MethodNotFoundError(context.method.name)
        return handler(context)

    def calls_tools_itself(self) -> bool:
        """Whether no proxy, override, runner or middleware handles tool calls."""
        is_answered_elsewhere = self.is_open or self.overrides or self.default_runner
        return self.application is self and not is_answered_elsewhere

    def subscription_listener(self) -> OnSubscription | None:
        """The callback for the URIs that a stream subscribes to, if there is one."""
        return None

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification to handlers of the user."""
        if self.overrides is not None:
            await self.overrides.notified(context)

    def param_headers_of(self, tool: str) -> Mapping[tuple[str, ...], str]:
        """The HTTP headers that repeat arguments of a tool, by the path of the argument."""
        registered = self._tools.items.get(tool)
        if registered is not None and registered.scopes and self._forbidden == "hidden":
            registered = registered if PRINCIPAL.get().has_scopes(*registered.scopes) else None
        return {} if registered is None else registered.param_headers

    def secret_names_of(self, tool: str) -> Collection[str]:
        """Names of the arguments of a tool that are secret."""
        registered = self._tools.find(tool)  # sessions may show a disabled one
        return () if registered is None else registered.secret_names

    def _declared_capabilities(self, revision: Revision) -> dict[str, Any]:
        """The capabilities of the server in a revision, in their newest form."""
        capabilities: dict[str, Any] = {}
        requests = set(self.handlers)
        if self.overrides is not None:
            requests.update(self.overrides.requests(revision))
        rows = [row for name, row in revision.client_requests.items() if name in requests]
        rows += [
            row for name, row in revision.server_notifications.items() if name in self.notifications
        ]
        rows += self.custom.values()
        for row in rows:
            if row.facts.per_principal and PRINCIPAL.get() is ANONYMOUS:
                continue
            members = capabilities
            for name in row.capability:
                if name in _FLAGS:
                    members[name] = True
                else:
                    members = members.setdefault(name, {})
        for each in reversed(self.all_servers()):
            capabilities = merge_objects(capabilities, each.capabilities)
        return capabilities

    def serve(self, handlers: Mapping[str, Handler], *notifications: str) -> None:
        """Add rows to the table, and notifications to those that are declared."""
        if self.handlers.keys() >= handlers.keys() and self.notifications.issuperset(notifications):
            return
        for name in handlers.keys() - self.handlers.keys():
            self.check_method(name)
        self.handlers.update(handlers)
        self.notifications.update(notifications)
        self.methods_changed()

    def add_item_handlers(self, handlers: Mapping[str, ItemHandler]) -> None:
        """Add handlers of requests about registered items, for `serve_items`."""
        self.hooks.items = {**self.hooks.items, **handlers}
        self.item_handlers |= {name: partial(each, self) for name, each in handlers.items()}

    def serve_items(self, names: Collection[str], *notifications: str) -> None:
        """Add the rows of requests that are about registered items."""
        self.serve({name: self.item_handlers[name] for name in names}, *notifications)

    def declare(self, capabilities: Mapping[str, Any]) -> None:
        """Declare capabilities beyond those of the rows."""
        self.capabilities = merge_objects(self.capabilities, capabilities)
        self.methods_changed()

    def custom_methods(self) -> Mapping[str, Method]:
        """Rows of the methods that no revision has, by name."""
        return self.custom

    def check_method(self, name: str) -> None:
        """Check that a method is not handled already where this server is mounted."""

    def methods_changed(self) -> None:
        """Update the declared capabilities."""
        self._descriptions.clear()

    def _list_changed(self, row: ItemList) -> None:
        """Serve the requests of a list that has changed, and announce the change."""
        settings, changed = self.settings, row.changed
        lists = [each for each in ITEM_LISTS if each.changed == changed]
        names = [name for each in lists for name in (each.request, *each.uses)]
        notifications = [changed] if settings.list_changed else []
        if changed in self.with_lists:
            requests, notification = self.with_lists[changed]
            names += requests
            notifications.append(notification)
        self.serve_items(names, *notifications)
        if settings.list_changed:
            self.announcer.announce(changed)

    def context_of(self, request: RequestContext) -> Context[Any]:
        """The context of a request, after a check of its request state, if there is one.

        Raises:
            InvalidParamsError: The state is invalid, whatever the handler does.
        """
        hooks = self.hooks
        context = hooks.context(request, self.state.get(), self.registries, hooks.round_trips)
        if getattr(request.params, "request_state", None) is not None:
            if hooks.round_trips is None:
                raise InvalidParamsError(
                    "requestState: expected none, since this server gives none"
                )
            hooks.round_trips.check(context)
        return context

    def result_of(
        self, context: Context[Any], handler: Coroutine[Any, Any, Any]
    ) -> Coroutine[Any, Any, Any]:
        """The result of a request, from the coroutine of its handler."""
        round_trips = self.hooks.round_trips
        if round_trips is not None:
            handler = round_trips.result(context, handler)
        return handler

    # Handlers create the coroutine of the result and return it. Only that of round trips and the
    # registered item have a frame while the user's function runs.

    def _call_tool(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        name, tools = request.params.name, self._tools
        tool: Tool | None
        if tools.varies or tools.needs_scopes:
            tool = self.permitted_item(tools, request, name)
        else:
            tool = tools.items.get(name)
        if tool is None:
            raise InvalidParamsError(f"unknown tool: {safe_repr(name)}")
        return self.call_item(tool, request)

    def permitted_item(self, registry: Registry[Any], request: RequestContext, key: str) -> Any:
        """The item that a request is about, if its principal may use it; else `None`.

        Raises:
            InvalidRequestError: The principal lacks its scopes, and such items are listed.
        """
        item = registry.item_of(request, key)
        if item is None or not item.scopes:
            return item
        return item if is_permitted(item.scopes, item.label, self._forbidden) else None

    def call_item(self, tool: Tool, request: RequestContext) -> Coroutine[Any, Any, Any]:
        """The result of a call of a tool that the request may use."""
        params, revision = request.params, request.revision
        if tool.respond is not None and (response := tool.respond(request)) is not None:
            return response
        results = self._tool_results.get(revision.name)
        if results is None:
            structured_content = revision.facts.behaviour.structured_content
            results = tool_result_builder(request.method.result, structured_content)
            self._tool_results[revision.name] = results
        context = self.context_of(request)
        call = tool.call(params.arguments, context, results)
        if (runner := tool.runner or self.default_runner) is not None:
            call = runner.run(context, call)
        return self.result_of(context, call)


def is_permitted(scopes: Collection[str], label: str, forbidden: ForbiddenItems) -> bool:
    """Whether the principal has the scopes of an item, which otherwise has to look unknown.

    Raises:
        InvalidRequestError: The principal may not, and forbidden items are listed.
    """
    if PRINCIPAL.get().has_scopes(*scopes):
        return True
    if forbidden == "hidden":
        return False
    raise InvalidRequestError(f"{label} needs the scopes {' '.join(sorted(scopes))}")
