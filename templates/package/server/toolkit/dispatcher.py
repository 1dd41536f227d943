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

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import msgspec

from ...errors import (
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    ProtocolError,
    ResourceNotFoundError,
)
from ...facts import Method, Revision, Revisions
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.lifecycle import Description, declared_in, merged_objects, reduced_to
from ...protocol.requests import MESSAGE, RESOURCE_UPDATED
from ...protocol.server_connection import Admit, OnSubscription
from ...revisions import REVISIONS
from ...runtime.concurrency import check_own_failure
from ...runtime.request_context import ANONYMOUS, PRINCIPAL, RequestContext
from ..serving import ProcessLimit
from .context import Context
from .custom_handlers import CustomMethod, Handler, LowLevelHandlers, low_level_result
from .features import (
    InputRequired,
    OpenURLElicitations,
    RequestStateSigner,
    ToolRegistry,
    URLElicitationRequiredError,
    server_session,
)
from .output_conversion import PromptResultBuilder, ToolResultBuilder, tool_result_builder
from .registry import Cacheable, CacheHint, Follower, Registry
from .tools import Tool, ToolRunner

if TYPE_CHECKING:  # loaded only if a server has some
    from .dependencies import Dependencies
    from .prompts import Completer, Prompt
    from .resources import Resource

Announce: TypeAlias = Callable[..., None]
"""Sends a notification to all sessions that want it: name, and optionally params and subject."""

TOOLS_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
LIST_CHANGES = frozenset({TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED})
_FLAGS = frozenset({"listChanged", "subscribe"})


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one server.

    Attributes:
        info: Name, version and further members of `Implementation`, as wire object.
        instructions: How to use the server, for the model.
        page_size: Most items of a page; `None` for all.
        list_changed: Whether changes of lists are announced.
        subscribe: Whether clients may subscribe to resources.
        logging: Whether log messages are sent.
        coerce: Whether texts in arguments of tools are converted to the types of the parameters.
        additional_properties: What generated input schemas say of unknown arguments, if anything.
        show_errors: Whether results contain the text of unexpected exceptions of tools.
        capabilities: Capabilities to declare beyond those of registered features.
        low_level_handlers: Handlers that replace those of the toolkit.
        signer: Signs and verifies request states.
        cache: The cache hint of each list.
        validation_seconds: Time limit for validating a value against a user-defined JSON Schema.
        forbidden_items: Whether items whose scopes a principal lacks are listed.

    Raises:
        ValueError: The name is empty, or a limit is not positive.
    """

    info: Mapping[str, Any]
    instructions: str | None
    page_size: int | None
    list_changed: bool
    subscribe: bool
    logging: bool
    coerce: bool
    additional_properties: Literal[False] | None
    show_errors: bool
    capabilities: Mapping[str, Any]
    low_level_handlers: LowLevelHandlers
    signer: RequestStateSigner
    cache: Mapping[Cacheable, CacheHint]
    validation_seconds: float
    forbidden_items: ForbiddenItems = "listed"

    def __post_init__(self) -> None:
        if not self.info["name"]:
            raise ValueError("name: expected a server's name, got an empty string")
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size: expected at least 1, got {self.page_size}")
        if not self.validation_seconds > 0:
            raise ValueError(
                f"validation_seconds: expected more than 0, got {self.validation_seconds}"
            )


class MountedServer(Protocol):
    """A mounted server, as the server that it is mounted on sees it."""

    @property
    def dependencies(self) -> Callable[[], Iterable[Dependencies]]:
        """Those of its registered functions."""
        ...

    @property
    def process_limits(self) -> Sequence[ProcessLimit]:
        """Limits of it in several processes."""
        ...

    @property
    def signer(self) -> RequestStateSigner:
        """Signs its request states."""
        ...

    @property
    def url_elicitations(self) -> OpenURLElicitations:
        """Those that are open."""
        ...


class MountedServers(Protocol):
    """All servers that are mounted on one; a package without mounting has no such class."""

    def servers(self) -> Sequence[MountedServer]:
        """The servers that are mounted, and those inside, each once."""
        ...

    def routed(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Handlers with those of requests about items behind the routes to mounted servers."""
        ...

    def capabilities(self) -> Mapping[str, Any]:
        """Capabilities that the mounted servers declare beyond those of their features."""
        ...

    def states(self) -> Collection[ContextVar[Any]]:
        """The variables with the states of all lifespans, that of the server included."""
        ...

    def lifespan(self) -> AbstractAsyncContextManager[Any]:
        """The lifespans of the server and of all that are mounted, each entered once."""
        ...

    def use_state(self, states: Any, /) -> None:
        """Set what the lifespans yielded, for the current task."""
        ...

    def admit(self) -> Admit | None:
        """That of the first server that has one."""
        ...

    def on_subscription(self, uris: Collection[str], /) -> None:
        """Tell the mounted servers which of their resources a stream subscribes to."""
        ...

    async def notified(self, context: RequestContext, /) -> None:
        """Pass a notification of the client to the mounted servers."""
        ...


class Dispatcher:
    """Handles requests with the registered functions. `Server` is one.

    Args:
        settings: Settings of the server.
        announce: Sends a notification to all sessions.
    """

    revisions: Revisions = REVISIONS
    """The revisions that it serves; those of packages on an installed runtime are their own."""

    _is_open: ClassVar[bool] = False
    """Whether it has items that are not registered: it is asked for them, and for what they are."""

    def __init__(self, settings: ServerSettings, announce: Announce) -> None:
        self._settings = settings
        self._announce = announce
        self._admit: Admit | None = None
        self._process_limits: list[ProcessLimit] = []
        self._capabilities = dict(settings.capabilities)
        self._default_runner: ToolRunner | None = None
        self._signer = settings.signer
        self._forbidden: ForbiddenItems = settings.forbidden_items
        self._low_level = settings.low_level_handlers or None
        self._handlers: dict[str, Handler] = {}
        self._notifications: set[str] = {MESSAGE} if settings.logging else set()
        self._descriptions: dict[tuple[str, bool], Description] = {}
        self._tool_results: dict[str, ToolResultBuilder] = {}
        self._prompt_results: dict[str, PromptResultBuilder] = {}
        self._state: ContextVar[Any] = ContextVar("state", default=None)
        self._url_elicitations = OpenURLElicitations()
        self._custom: dict[str, Method] = {}
        self._method_scopes: dict[str, frozenset[str]] = {}
        self._completers: dict[tuple[str, str, str], Completer] = {}
        self._mounts: MountedServers | None = None
        self._method_followers: list[Follower] = []
        cache, size = settings.cache, settings.page_size
        self._tools: Registry[Tool] = ToolRegistry(
            "tool", "tools", size, cache["tools"], self._tools_changed
        )
        self._resources: Registry[Resource] = Registry(
            "resource", "resources", size, cache["resources"], self._resources_changed
        )
        self._templates: Registry[Resource] = Registry(
            "resource template",
            "resourceTemplates",
            size,
            cache["templates"],
            self._resources_changed,
        )
        self._prompts: Registry[Prompt] = Registry(
            "prompt", "prompts", size, cache["prompts"], self._prompts_changed
        )
        self._lists: Mapping[str, Sequence[Registry[Any]]] = {
            TOOLS_CHANGED: (self._tools,),
            RESOURCES_CHANGED: (self._resources, self._templates),
            PROMPTS_CHANGED: (self._prompts,),
        }
        self._scope_lookup = RequiredScopes(
            self._tools, self._resources, self._templates, self._prompts, self._method_scopes
        )
        if self._forbidden == "hidden":
            for registry in (self._tools, self._resources, self._templates, self._prompts):
                registry.hides_forbidden = True

    def describe(self, revision: Revision) -> Description:
        """Name, capabilities and instructions of the server in a revision."""
        description = self._descriptions.get(key := (revision.name, PRINCIPAL.get() is ANONYMOUS))
        if description is None:
            description = self._descriptions[key] = Description(
                reduced_to(revision.implementation, self._settings.info),
                declared_in(revision.server_capabilities, self._declared(revision)),
                self._settings.instructions,
                self._settings.cache["discover"].wire(),
            )
        return description

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any]:
        """The result of a request, in the revision's own type or as wire object.

        Raises:
            MethodNotFoundError: No registered feature has the method.
            ProtocolError: The handler raised it.
        """
        if self._low_level is not None:
            low_level = self._low_level.find(context.revision, context.method)
            if low_level is not None:
                return low_level_result(low_level(context.params, context), context.method)
        handler = self._handlers.get(context.method.name)
        if handler is None:
            raise MethodNotFoundError(context.method.name)
        return handler(context)

    def _subscription_listener(self) -> OnSubscription | None:
        """Told the resources to whose updates a stream subscribes; `None` if nothing wants that."""
        return None

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification to the low-level handlers, and to mounted servers."""
        if self._mounts is not None:
            await self._mounts.notified(context)
        if self._low_level is None:
            return
        low_level = self._low_level.find(context.revision, context.method)
        if low_level is not None:
            await low_level(context.params, context)

    def _required_scopes(self, message: jsonrpc.Message) -> Collection[str]:
        """The scopes of what a message is about; none if the item is to look unknown instead."""
        if self._forbidden == "hidden":
            return ()
        return self._scope_lookup.of(message)

    def _param_headers(self, tool: str) -> Mapping[tuple[str, ...], str]:
        """By path of an argument of a tool: the HTTP header that repeats the argument."""
        registered = self._tools.items.get(tool)
        if registered is not None and registered.scopes and self._forbidden == "hidden":
            registered = registered if PRINCIPAL.get().has_scopes(*registered.scopes) else None
        return {} if registered is None else registered.param_headers

    def _secret_names(self, tool: str) -> Collection[str]:
        """Names of the arguments of a tool that are secret."""
        registered = self._tools.find(tool)  # sessions may show a disabled one
        return () if registered is None else registered.secret_names

    def _declared(self, revision: Revision) -> dict[str, Any]:
        """The capabilities of the server in a revision, in their newest form."""
        capabilities: dict[str, Any] = {}
        requests = set(self._handlers)
        if self._low_level is not None:
            requests.update(self._low_level.requests(revision))
        rows = [row for name, row in revision.client_requests.items() if name in requests]
        rows += [
            row
            for name, row in revision.server_notifications.items()
            if name in self._notifications
        ]
        rows += self._custom.values()
        for row in rows:
            if row.facts.per_principal and PRINCIPAL.get() is ANONYMOUS:
                continue
            members = capabilities
            for name in row.capability:
                if name in _FLAGS:
                    members[name] = True
                else:
                    members = members.setdefault(name, {})
        if self._mounts is not None:
            capabilities = merged_objects(capabilities, self._mounts.capabilities())
        return merged_objects(capabilities, self._capabilities)

    def _serve(self, handlers: Mapping[str, Handler], *notifications: str) -> None:
        """Add methods to the table, and notifications to those that are declared."""
        if self._handlers.keys() >= handlers.keys() and self._notifications.issuperset(
            notifications
        ):
            return
        for name in handlers.keys() - self._handlers.keys():
            self._check_method(name)
        if self._mounts is not None:
            handlers = self._mounts.routed(handlers)
        self._handlers.update(handlers)
        self._notifications.update(notifications)
        self._methods_changed()

    def _check_method(self, name: str) -> None:
        """Check that a method is not handled already where this server is mounted."""
        for follower in self._method_followers:
            follower.check(name)

    def _methods_changed(self) -> None:
        self._descriptions.clear()
        for follower in self._method_followers:
            follower.refresh()

    def _list_changed(
        self, handlers: Mapping[str, Handler], changed: str, *notifications: str
    ) -> None:
        """Serve the methods of a list that has changed, and announce the change."""
        if not self._settings.list_changed:
            self._serve(handlers, *notifications)
            return
        self._serve(handlers, changed, *notifications)
        self._announce(changed)

    def _item_handlers(self) -> dict[str, Handler]:
        """The handlers of all requests that are about registered items."""
        return {
            **self._tool_handlers(),
            **self._resource_handlers(),
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            **self._prompt_handlers(),
            "completion/complete": self._complete,
        }

    def _tool_handlers(self) -> dict[str, Handler]:
        return {"tools/list": self._tools.page, "tools/call": self._call_tool}

    def _resource_handlers(self) -> dict[str, Handler]:
        return {
            "resources/list": self._resources.page,
            "resources/templates/list": self._templates.page,
            "resources/read": self._read_resource,
        }

    def _prompt_handlers(self) -> dict[str, Handler]:
        return {"prompts/list": self._prompts.page, "prompts/get": self._get_prompt}

    def _tools_changed(self) -> None:
        self._list_changed(self._tool_handlers(), TOOLS_CHANGED)

    def _resources_changed(self) -> None:
        handlers = self._resource_handlers()
        if not self._settings.subscribe:
            self._list_changed(handlers, RESOURCES_CHANGED)
            return
        handlers["resources/subscribe"] = handlers["resources/unsubscribe"] = self._subscribe
        self._list_changed(handlers, RESOURCES_CHANGED, RESOURCE_UPDATED)

    def _prompts_changed(self) -> None:
        self._list_changed(self._prompt_handlers(), PROMPTS_CHANGED)

    def _completions_changed(self) -> None:
        self._serve({"completion/complete": self._complete})

    def session_of(self, request: RequestContext) -> Any:
        """The typed requests and notifications to the client: a `ServerSession` of the package."""
        return server_session(request)

    def _context(self, request: RequestContext) -> Context[Any]:
        """The context of a request, whose request state is valid, if it has one."""
        context = self._new_context(request)
        if getattr(request.params, "request_state", None) is not None:
            context.multi_round_trip()  # an invalid state is refused, whatever the handler does
        return context

    def _new_context(self, request: RequestContext) -> Context[Any]:
        return Context(
            request,
            self._signer,
            self._url_elicitations,
            self._state.get(),
            self._lists,
            self.session_of,
        )

    # Handlers create the coroutine of the result and return it. Only `with_input` and the
    # registered item have a frame while the user's function runs.

    def _call_tool(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        params, revision = request.params, request.revision
        tool = self._tools.items_for(request).get(params.name)
        if tool is not None and tool.scopes:
            tool = tool if is_permitted(tool, tool.label, self._forbidden) else None
        if tool is None:
            raise InvalidParamsError(f"unknown tool: {safe_repr(params.name)}")
        results = self._tool_results.get(revision.name)
        if results is None:
            structured_content = revision.facts.behaviour.structured_content
            results = tool_result_builder(request.method.result, structured_content)
            self._tool_results[revision.name] = results
        context = self._context(request)
        call = tool.call(params.arguments, context, results)
        if (runner := tool.runner or self._default_runner) is not None:
            call = runner.run(context, call)
        return with_input(context, call)

    def _get_prompt(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        params, revision = request.params, request.revision
        prompt = self._prompts.items_for(request).get(params.name)
        if prompt is not None and prompt.scopes:
            prompt = prompt if is_permitted(prompt, prompt.label, self._forbidden) else None
        if prompt is None:
            raise InvalidParamsError(f"unknown prompt: {safe_repr(params.name)}")
        results = self._prompt_results.get(revision.name)
        if results is None:
            results = PromptResultBuilder(request.method.result)
            self._prompt_results[revision.name] = results
        context = self._context(request)
        return with_input(context, prompt.get(params.arguments, context, results))

    def _read_resource(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        from .resources import find_resource  # loaded already

        uri: str = request.params.uri
        resources, templates = self._resources, self._templates
        resource, values = find_resource(
            uri, resources.items_for(request), templates.items_for(request)
        )
        if resource.scopes and not is_permitted(resource, resource.label, self._forbidden):
            raise ResourceNotFoundError(uri)
        context = self._context(request)
        return with_input(context, resource.read(uri, values, context))

    async def _subscribe(self, request: RequestContext) -> None:
        """Check the URI; the connection keeps the subscriptions of a session."""
        from .resources import find_resource  # loaded already

        uri: str = request.params.uri
        resources, templates = self._resources, self._templates
        resource, _ = find_resource(uri, resources.items_for(request), templates.items_for(request))
        if resource.scopes and not is_permitted(resource, resource.label, self._forbidden):
            raise ResourceNotFoundError(uri)

    async def _complete(self, request: RequestContext) -> Any:
        params = request.params
        uri: str | None = getattr(params.ref, "uri", None)
        kind, owner = ("prompt", params.ref.name) if uri is None else ("template", uri)
        argument: str = params.argument.name
        if argument not in self._arguments(kind, owner, request):
            raise InvalidParamsError(
                f"{kind} {safe_repr(owner)} has no argument {safe_repr(argument)}"
            )
        completer = self._completers.get((kind, owner, argument))
        if completer is None:
            return {"completion": {"values": []}}
        others: Any = getattr(getattr(params, "context", None), "arguments", None)
        context = self._context(request)
        value: str = params.argument.value
        return await with_input(context, completer.complete(value, others or None, context))

    def _call_custom(
        self, method: CustomMethod, request: RequestContext
    ) -> Coroutine[Any, Any, Any]:
        if method.scopes and not is_permitted(method, method.row.name, self._forbidden):
            raise MethodNotFoundError(method.row.name)
        context = self._context(request)
        return with_input(context, method.call(context))

    def _arguments(self, kind: str, owner: str, request: RequestContext) -> Sequence[str]:
        """Names of the arguments of a prompt, or of the variables of a template."""
        if kind == "prompt":
            prompt = self._prompts.items_for(request).get(owner)
            if prompt is not None and (
                not prompt.scopes or is_permitted(prompt, prompt.label, self._forbidden)
            ):
                return prompt.arguments
        else:
            template = self._templates.items_for(request).get(owner)
            if (
                template is not None
                and template.template is not None
                and (not template.scopes or is_permitted(template, template.label, self._forbidden))
            ):
                return template.template.names
        raise InvalidParamsError(f"unknown {kind}: {safe_repr(owner)}")


async def with_input(context: Context, handler: Coroutine[Any, Any, Any]) -> Any:
    """The result of a handler, or the result that asks for the input that the handler needs.

    A question without answer overrides the handler's own result and errors: the handler runs again.
    """
    try:
        result = await handler
    except URLElicitationRequiredError as error:
        return context.url_elicitation_result(error)
    except BaseException as error:
        if context.questions is None or not context.questions.is_pending:
            raise
        await check_own_failure(error)
        return context.questions.pending_result()
    if context.questions is not None and context.questions.is_pending:
        return context.questions.pending_result()
    if isinstance(result, InputRequired):
        return context.multi_round_trip().explicit_result(result)
    return result


ForbiddenItems: TypeAlias = Literal["listed", "hidden"]
"""What becomes of items whose scopes a principal lacks."""

_NO_SCOPES: frozenset[str] = frozenset()


class ScopedItem(Protocol):
    """Something that is registered.

    Attributes:
        scopes: The scopes that it needs.
    """

    scopes: frozenset[str]


class _Named(msgspec.Struct):
    name: str


class _Addressed(msgspec.Struct):
    uri: str


class _Reference(msgspec.Struct):
    name: str | None = None
    uri: str | None = None


class _Completing(msgspec.Struct):
    ref: _Reference


class _Filter(msgspec.Struct, rename="camel"):
    resource_subscriptions: list[str] = []


class _Listening(msgspec.Struct):
    notifications: _Filter


_decode_named = msgspec.json.Decoder(_Named).decode
_decode_addressed = msgspec.json.Decoder(_Addressed).decode
_decode_completing = msgspec.json.Decoder(_Completing).decode
_decode_listening = msgspec.json.Decoder(_Listening).decode


def is_permitted(item: ScopedItem, label: str, forbidden: ForbiddenItems) -> bool:
    """Whether the principal may use an item; `False` if the item has to look like an unknown one.

    Raises:
        InvalidRequestError: It may not, and such items are listed.
    """
    if PRINCIPAL.get().has_scopes(*item.scopes):
        return True
    if forbidden == "hidden":
        return False
    raise InvalidRequestError(f"{label} needs the scopes {' '.join(sorted(item.scopes))}")


class RequiredScopes:
    """Finds the scopes that messages need.

    Args:
        tools: The tools.
        resources: The resources with a URI.
        templates: The resource templates.
        prompts: The prompts.
        methods: Scopes of custom methods.
    """

    def __init__(
        self,
        tools: Registry[Any],
        resources: Registry[Any],
        templates: Registry[Any],
        prompts: Registry[Any],
        methods: Mapping[str, frozenset[str]],
    ) -> None:
        self._tools = tools
        self._resources = resources
        self._templates = templates
        self._prompts = prompts
        self._methods = methods

    def of(self, message: jsonrpc.Message) -> Collection[str]:
        """The scopes of what a message is about."""
        if not isinstance(message, jsonrpc.Request):
            return ()
        if message.method in self._methods:
            return self._methods[message.method]
        if message.params is None:
            return ()
        try:
            return self._of_request(message.method, message.params)
        except msgspec.MsgspecError:
            return ()  # the request is refused for its params

    def _of_request(self, method: str, params: msgspec.Raw) -> Collection[str]:
        match method:
            case "tools/call":
                return _scopes_of_named(self._tools, params)
            case "prompts/get":
                return _scopes_of_named(self._prompts, params)
            case "resources/read" | "resources/subscribe":
                return self._of_resource(_decode_addressed(params).uri)
            case "completion/complete":
                ref = _decode_completing(params).ref
                return _scopes_in(self._templates, ref.uri) | _scopes_in(self._prompts, ref.name)
            case "subscriptions/listen":
                uris = _decode_listening(params).notifications.resource_subscriptions
                return {scope for uri in uris for scope in self._of_resource(uri)}
            case _:
                return ()

    def _of_resource(self, uri: str) -> frozenset[str]:
        if not (self._resources.items or self._templates.items):
            return _NO_SCOPES
        from .resources import find_resource  # loaded already

        try:
            resource, _ = find_resource(uri, self._resources.items, self._templates.items)
        except ProtocolError:
            return _NO_SCOPES
        scopes: frozenset[str] = resource.scopes
        return scopes


def _scopes_of_named(registry: Registry[Any], params: msgspec.Raw) -> frozenset[str]:
    return _scopes_in(registry, _decode_named(params).name) if registry.needs_scopes else _NO_SCOPES


def _scopes_in(registry: Registry[Any], name: str | None) -> frozenset[str]:
    item = None if name is None else registry.items.get(name)
    scopes: frozenset[str] = _NO_SCOPES if item is None else item.scopes
    return scopes
