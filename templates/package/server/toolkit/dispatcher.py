"""Registration of functions, and dispatch of requests to them.

Each registered feature adds its methods to one table. Requests are found in that table, and the
declared capabilities follow from it, in the form of each revision. A method stays in the table when
its last item is removed, with an empty list: a session keeps the capabilities that were declared.

Source: server/tools, server/resources, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from ..._wire import UNWRITABLE, Raw, convert, error_text, is_object, to_builtins
from ...auth.scopes import checked_scopes
from ...errors import (
    InternalError,
    InvalidParamsError,
    MethodNotFoundError,
    ResourceNotFoundError,
)
from ...facts import Method, Revision
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.capabilities import CAPABILITY, check_extensions
from ...protocol.lenient import is_made_of, recast
from ...protocol.lifecycle import Description
from ...protocol.notifications import MESSAGE, RESOURCE_UPDATED
from ...protocol.state import Admit
from ...revisions import REVISIONS
from ...runtime.eager import check_own_failure
from ...runtime.principal import PRINCIPAL
from ...runtime.request_context import RequestContext
from .client_features.input_required import (
    InputRequired,
    OpenURLElicitations,
    URLElicitationRequiredError,
)
from .client_features.request_state import RequestStateSigner
from .content import Annotations, Icon, ToolAnnotations, present
from .context import Context
from .custom_handlers import CustomMethod, LowLevelHandlers
from .item_scopes import ForbiddenItems, RequiredScopes, is_permitted
from .output_conversion import PromptResultBuilder, ToolResultBuilder, tool_result_builder
from .registry import NO_CACHING, Cacheable, CacheHint, Registry
from .tools import FROM_SIGNATURE, FromSignature, Tool, ToolRunner

if TYPE_CHECKING:  # loaded only if a server has some
    from .completion import Completer
    from .prompts import Prompt
    from .resources import Resource

Handler: TypeAlias = Callable[[RequestContext], Coroutine[Any, Any, Any]]
"""Handles the requests of one method."""

Announce: TypeAlias = Callable[..., None]
"""Sends a notification to all sessions that want it: name, and optionally params and subject."""

Function = TypeVar("Function", bound=Callable[..., Any])

TOOLS_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
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


class Dispatcher:
    """Registers functions, and handles requests with them. `Server` is one.

    Args:
        settings: Settings of the server.
        announce: Sends a notification to all sessions.
    """

    def __init__(self, settings: ServerSettings, announce: Announce) -> None:
        self._settings = settings
        self._announce = announce
        self._admit: Admit | None = None
        self._signer = settings.signer
        self._forbidden: ForbiddenItems = settings.forbidden_items
        self._low_level = settings.low_level_handlers or None
        self._handlers: dict[str, Handler] = {}
        self._notifications: set[str] = {MESSAGE} if settings.logging else set()
        self._descriptions: dict[str, Description] = {}
        self._tool_results: dict[str, ToolResultBuilder] = {}
        self._prompt_results: dict[str, PromptResultBuilder] = {}
        self._state: ContextVar[Any] = ContextVar("state", default=None)
        self._url_elicitations = OpenURLElicitations()
        self._custom: dict[str, Method] = {}
        self._method_scopes: dict[str, frozenset[str]] = {}
        self._completers: dict[tuple[str, str, str], Completer] = {}
        cache, size = settings.cache, settings.page_size
        self._tools: Registry[Tool] = Registry(
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
        self._scope_lookup = RequiredScopes(
            self._tools, self._resources, self._templates, self._prompts, self._method_scopes
        )
        if self._forbidden == "hidden":
            for registry in (self._tools, self._resources, self._templates, self._prompts):
                registry.hides_forbidden = True

    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | FromSignature | None = FROM_SIGNATURE,
        scopes: Collection[str] = (),
        runner: ToolRunner | None = None,
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a tool.

        Args:
            name: Its name; that of the function by default.
            title: A name for display.
            description: What the tool does; the docstring's first paragraph by default.
            annotations: Hints on its behaviour.
            icons: Images for user interfaces.
            meta: `_meta` of the tool.
            input_schema: JSON Schema of the arguments, instead of one from the signature.
            output_schema: JSON Schema of the structured result, or `None` for no structured result.
            scopes: Scopes that a call needs, besides those of every request.
            runner: Runs the calls, such as `Tasks` of the tasks extension; `None` for the tasks of
                their requests.

        Raises:
            TypeError: (from the decorator) The signature can't be served.
            ValueError: (from the decorator) The name or a schema is invalid, or the name is taken.
        """
        _check_called(name, "tool")
        required = checked_scopes(scopes)
        members = _members(title, description, icons, meta, annotations)
        names = _names_at_caller()

        def register(function: Function) -> Function:
            tool = Tool(
                function,
                name=name,
                members=members,
                input_schema=input_schema,
                output_schema=output_schema,
                names=names,
                coerce=self._settings.coerce,
                show_errors=self._settings.show_errors,
                validation_seconds=self._settings.validation_seconds,
            )
            tool.scopes = required
            tool.runner = runner
            self._tools.add(tool.name, tool)
            return function

        return register

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        cache: CacheHint = NO_CACHING,
        scopes: Collection[str] = (),
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a resource, or as a resource template.

        Args:
            uri: URI, or URI template (RFC 6570) if it contains a `{`.
            name: Its name; that of the function by default.
            title: A name for display.
            description: What the resource is; the docstring's first paragraph by default.
            mime_type: MIME type of the contents.
            size: Size of the contents in bytes before encoding, if known.
            annotations: Audience and priority.
            icons: Images for user interfaces.
            meta: `_meta` of the resource.
            cache: The cache hint of the contents; always private if scopes are needed.
            scopes: Scopes that reading needs, besides those of every request.

        Raises:
            TypeError: (from the decorator) The parameters do not match the template's variables.
            ValueError: (from the decorator) Not a URI or template, or already registered.
            MissingExtraError: (from the decorator) A template, and `uritemplate` is missing.
        """
        from .resources import Resource  # loaded only if a server has resources

        _check_called(uri, "resource")
        required = checked_scopes(scopes)
        if required and cache.scope != "private":
            cache = CacheHint(cache.ttl_ms, "private")
        members = _members(title, description, icons, meta, annotations)
        names = _names_at_caller()

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
            registry = self._resources if resource.template is None else self._templates
            resource.scopes = required
            registry.add(uri, resource)
            return function

        return register

    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        scopes: Collection[str] = (),
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a prompt.

        Args:
            name: Its name; that of the function by default.
            title: A name for display.
            description: The purpose; the docstring's first paragraph by default.
            icons: Images for user interfaces.
            meta: `_meta` of the prompt.
            scopes: Scopes that the prompt needs, besides those of every request.

        Raises:
            TypeError: (from the decorator) The signature can't be served.
            ValueError: (from the decorator) The name is empty or taken.
        """
        from .prompts import Prompt  # loaded only if a server has prompts

        _check_called(name, "prompt")
        required = checked_scopes(scopes)
        members = _members(title, description, icons, meta)
        names = _names_at_caller()

        def register(function: Function) -> Function:
            prompt = Prompt(function, name=name, members=members, names=names)
            prompt.scopes = required
            self._prompts.add(prompt.name, prompt)
            return function

        return register

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
        from .completion import Completer  # loaded only if a server has completions

        if (prompt is None) == (template is None):
            raise ValueError("completion: expected either prompt or template")
        kind, owner = ("prompt", prompt) if prompt is not None else ("template", template)
        names = _names_at_caller()

        def register(function: Function) -> Function:
            label = f"completion of {kind} {owner!r}, argument {argument!r}"
            completer = Completer(function, label, names)
            key = kind, str(owner), argument
            if key in self._completers:
                raise ValueError(f"{label} is registered already")
            self._completers[key] = completer
            self._serve({"completion/complete": self._complete})
            return function

        return register

    def method(
        self,
        name: str,
        *,
        params: Any = None,
        result: Any = None,
        extension: str | None = None,
        scopes: Collection[str] = (),
    ) -> Callable[[Function], Function]:
        """Register the decorated function for a request that the specification does not have.

        Args:
            name: The method on the wire.
            params: Type of the params, such as a `msgspec.Struct`; `None` for a method without.
            result: Type of the result; `None` for an empty one.
            extension: Identifier of the extension that the method belongs to. The server declares
                the extension; the method exists for clients that declare it too.
            scopes: Scopes that the method needs, besides those of every request.

        Raises:
            TypeError: (from the decorator) The function has other parameters.
            ValueError: The identifier is invalid; (from the decorator) the name is taken.
        """
        required = checked_scopes(scopes)
        names = _names_at_caller()
        if extension is not None:
            check_extensions({CAPABILITY: {extension: {}}}, REVISIONS.newest().facts)

        def register(function: Function) -> Function:
            reserved = {request for each in REVISIONS.values() for request in each.client_requests}
            method = CustomMethod(function, name, params, result, reserved, extension, names)
            if name in self._custom:
                raise ValueError(f"method {name!r} is registered already")
            method.scopes = required
            self._custom[name] = method.row
            if required:
                self._method_scopes[name] = required
            self._descriptions.clear()
            self._handlers[name] = partial(self._call_custom, method)
            return function

        return register

    def handle_requests(
        self, handlers: Mapping[str, Handler], admit: Admit | None = None
    ) -> Announce:
        """Handle requests of extensions by these functions, by wire name.

        The server declares the extensions in the revisions that have the requests.

        Args:
            handlers: The functions.
            admit: Gives those of the subjects in a subscription whose changes are announced to the
                principal of the request; by the notification.

        Returns:
            Announces a notification, with its params, to the clients that are subscribed.

        Raises:
            ValueError: A request has a handler already.
        """
        if taken := handlers.keys() & self._handlers.keys():
            raise ValueError(f"{', '.join(sorted(taken))}: registered already")
        self._admit = admit or self._admit
        self._serve(handlers)
        return self._announce

    def remove_tool(self, name: str) -> None:
        """Remove a tool, also for clients that are connected.

        Raises:
            LookupError: There is no such tool.
        """
        self._tools.remove(name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template, also for clients that are connected.

        Raises:
            LookupError: There is no such resource.
        """
        registry = self._resources if self._templates.items.get(uri) is None else self._templates
        registry.remove(uri)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt, also for clients that are connected.

        Raises:
            LookupError: There is no such prompt.
        """
        self._prompts.remove(name)

    def describe(self, revision: Revision) -> Description:
        """Name, capabilities and instructions of the server in a revision."""
        description = self._descriptions.get(revision.name)
        if description is None:
            description = self._descriptions[revision.name] = Description(
                _converted(self._settings.info, revision.implementation),
                _converted(self._declared(revision), revision.server_capabilities),
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
                return _low_level_result(low_level(context.params, context), context.method)
        handler = self._handlers.get(context.method.name)
        if handler is None:
            raise MethodNotFoundError(context.method.name)
        return handler(context)

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification to the low-level handlers."""
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
            members = capabilities
            for name in row.capability:
                if name in _FLAGS:
                    members[name] = True
                else:
                    members = members.setdefault(name, {})
        return _merged(capabilities, self._settings.capabilities)

    def _serve(self, handlers: Mapping[str, Handler], *notifications: str) -> None:
        """Add methods to the table, and notifications to those that are declared."""
        if not self._handlers.keys() >= handlers.keys():
            self._handlers.update(handlers)
            self._notifications.update(notifications)
            self._descriptions.clear()

    def _list_changed(
        self, handlers: Mapping[str, Handler], changed: str, *notifications: str
    ) -> None:
        """Serve the methods of a list that has changed, and announce the change."""
        if not self._settings.list_changed:
            self._serve(handlers, *notifications)
            return
        self._serve(handlers, changed, *notifications)
        self._announce(changed)

    def _tools_changed(self) -> None:
        handlers: dict[str, Handler] = {
            "tools/list": self._tools.page,
            "tools/call": self._call_tool,
        }
        self._list_changed(handlers, TOOLS_CHANGED)

    def _resources_changed(self) -> None:
        handlers: dict[str, Handler] = {
            "resources/list": self._resources.page,
            "resources/templates/list": self._templates.page,
            "resources/read": self._read_resource,
        }
        if not self._settings.subscribe:
            self._list_changed(handlers, RESOURCES_CHANGED)
            return
        handlers["resources/subscribe"] = handlers["resources/unsubscribe"] = self._subscribe
        self._list_changed(handlers, RESOURCES_CHANGED, RESOURCE_UPDATED)

    def _prompts_changed(self) -> None:
        handlers: dict[str, Handler] = {
            "prompts/list": self._prompts.page,
            "prompts/get": self._get_prompt,
        }
        self._list_changed(handlers, PROMPTS_CHANGED)

    # Handlers create the coroutine of the result and return it. Only `_with_input` and the
    # registered item have a frame while the user's function runs.

    def _call_tool(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        params, revision = request.params, request.revision
        tool = self._tools.items.get(params.name)
        if tool is not None and tool.scopes:
            tool = tool if is_permitted(tool, tool.label, self._forbidden) else None
        if tool is None:
            raise InvalidParamsError(f"unknown tool: {safe_repr(params.name)}")
        results = self._tool_results.get(revision.name)
        if results is None:
            structured_content = revision.facts.behaviour.structured_content
            results = tool_result_builder(request.method.result, structured_content)
            self._tool_results[revision.name] = results
        context = Context(request, self._signer, self._url_elicitations, self._state.get())
        call = tool.call(params.arguments, context, results)
        if tool.runner is not None:
            call = tool.runner.run(context, call)
        return _with_input(context, call)

    def _get_prompt(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        params, revision = request.params, request.revision
        prompt = self._prompts.items.get(params.name)
        if prompt is not None and prompt.scopes:
            prompt = prompt if is_permitted(prompt, prompt.label, self._forbidden) else None
        if prompt is None:
            raise InvalidParamsError(f"unknown prompt: {safe_repr(params.name)}")
        results = self._prompt_results.get(revision.name)
        if results is None:
            results = PromptResultBuilder(request.method.result)
            self._prompt_results[revision.name] = results
        context = Context(request, self._signer, self._url_elicitations, self._state.get())
        return _with_input(context, prompt.get(params.arguments, context, results))

    def _read_resource(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        from .resources import find_resource  # loaded already

        uri: str = request.params.uri
        resource, values = find_resource(uri, self._resources, self._templates)
        if resource.scopes and not is_permitted(resource, resource.label, self._forbidden):
            raise ResourceNotFoundError(uri)
        context = Context(request, self._signer, self._url_elicitations, self._state.get())
        return _with_input(context, resource.read(uri, values, context))

    async def _subscribe(self, request: RequestContext) -> None:
        """Check the URI; the connection keeps the subscriptions of a session."""
        from .resources import find_resource  # loaded already

        uri: str = request.params.uri
        resource, _ = find_resource(uri, self._resources, self._templates)
        if resource.scopes and not is_permitted(resource, resource.label, self._forbidden):
            raise ResourceNotFoundError(uri)

    async def _complete(self, request: RequestContext) -> Any:
        params = request.params
        uri: str | None = getattr(params.ref, "uri", None)
        kind, owner = ("prompt", params.ref.name) if uri is None else ("template", uri)
        argument: str = params.argument.name
        if argument not in self._arguments(kind, owner):
            raise InvalidParamsError(
                f"{kind} {safe_repr(owner)} has no argument {safe_repr(argument)}"
            )
        completer = self._completers.get((kind, owner, argument))
        if completer is None:
            return {"completion": {"values": []}}
        others: Any = getattr(getattr(params, "context", None), "arguments", None)
        context = Context(request, self._signer, self._url_elicitations, self._state.get())
        value: str = params.argument.value
        return await _with_input(context, completer.complete(value, others or None, context))

    def _call_custom(
        self, method: CustomMethod, request: RequestContext
    ) -> Coroutine[Any, Any, Any]:
        if method.scopes and not is_permitted(method, method.row.name, self._forbidden):
            raise MethodNotFoundError(method.row.name)
        context = Context(request, self._signer, self._url_elicitations, self._state.get())
        return _with_input(context, method.call(context))

    def _arguments(self, kind: str, owner: str) -> Sequence[str]:
        """Names of the arguments of a prompt, or of the variables of a template."""
        if kind == "prompt":
            prompt = self._prompts.items.get(owner)
            if prompt is not None and (
                not prompt.scopes or is_permitted(prompt, prompt.label, self._forbidden)
            ):
                return prompt.arguments
        else:
            template = self._templates.items.get(owner)
            if (
                template is not None
                and template.template is not None
                and (not template.scopes or is_permitted(template, template.label, self._forbidden))
            ):
                return template.template.names
        raise InvalidParamsError(f"unknown {kind}: {safe_repr(owner)}")


async def _with_input(context: Context, handler: Coroutine[Any, Any, Any]) -> Any:
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


async def _low_level_result(coroutine: Coroutine[Any, Any, Any], method: Method) -> Any:
    """The result of a low-level handler, with every object of the revision's own types.

    Raises:
        InternalError: The result does not fit the method.
    """
    result = await coroutine
    if result is None or isinstance(result, Raw):
        return result
    for kind in method.result_structs:
        if isinstance(result, kind) and is_made_of(result, kind.__module__):
            return result
    try:
        return recast(result, method.result)
    except UNWRITABLE as error:
        raise InternalError(f"{method.name}: result: {error_text(error)}") from None


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one, merged recursively."""
    merged = dict(base)
    for name, value in more.items():
        old = merged.get(name)
        merged[name] = _merged(old, value) if is_object(old) and is_object(value) else value
    return merged


def _converted(wire: Mapping[str, Any], kind: Any) -> Mapping[str, Any]:
    """A wire object, without members that a type does not have."""
    converted: Mapping[str, Any] = to_builtins(convert(wire, kind))
    return converted


def _members(
    title: str | None,
    description: str | None,
    icons: Sequence[Icon],
    meta: Mapping[str, Any] | None,
    annotations: Annotations | ToolAnnotations | None = None,
) -> dict[str, Any]:
    """The members of a wire object that tools, resources and prompts have in common."""
    return present(
        title=title,
        description=description or None,
        icons=[to_builtins(icon) for icon in icons] or None,
        annotations=to_builtins(annotations) if annotations else None,
        _meta=dict(meta) if meta else None,
    )


def _check_called(first: object, decorator: str) -> None:
    """Refuse a decorator that was used without parentheses."""
    if callable(first):
        raise TypeError(f"expected @server.{decorator}(...), got @server.{decorator}")


def _names_at_caller() -> Mapping[str, Any] | None:
    """The local names where a decorator is used: annotations that are text may refer to them."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    if caller is None or caller.f_locals is caller.f_globals:
        return None
    return dict(caller.f_locals)
