"""What a server's registrations answer: requests by a table, capabilities by what is served.

A method brings its capability with it, so the declaration follows from the table and has the
shape of the session's revision. What was served once stays served, if with an empty list: a
session keeps what was declared to it.

Source: server/tools, server/resources, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..._wire import convert, is_object, to_builtins
from ...errors import InvalidParamsError, MethodNotFoundError, ResourceNotFoundError
from ...facts import Method, Revision
from ...foreign_text import safe_repr
from ...protocol.lifecycle import Description
from ...protocol.notifications import MESSAGE, RESOURCE_UPDATED
from ...runtime.eager import check_own_failure
from ...runtime.request_context import RequestContext
from .cache_hints import Cacheable, CacheHint
from .client_features.feature_settings import FeatureSettings
from .client_features.input_required import InputRequired
from .client_features.url_elicitation import URLElicitationRequiredError
from .context import Context
from .low_level_handlers import LowLevelHandlers
from .registry import Listing
from .revision_types import PromptShape, ToolShape, ValueShape, tool_shape

if TYPE_CHECKING:  # what a server has none of is not loaded
    from .completion import Completer
    from .custom_methods import CustomMethod
    from .prompts import Prompt
    from .resources import Resource
    from .tools import Tool

Answer: TypeAlias = Callable[[RequestContext], Coroutine[Any, Any, Any]]

TOOLS_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
_FLAGS = frozenset({"listChanged", "subscribe"})


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server was made with.

    Attributes:
        info: How it introduces itself, as wire object.
        instructions: How to use it.
        page_size: Most items in one answer to a list request.
        list_changed: Whether changes of lists are announced.
        subscribe: Whether updates of resources are announced.
        logging: Whether log messages are sent.
        show_errors: Whether the text of unexpected exceptions of tools is sent.
        capabilities: What is declared beyond what is served.
        mounts: Handlers of the low-level kind.
        means: What handlers ask clients with.
        cache: How long clients may keep each list.
        validation_seconds: How long a value may be held against a JSON Schema that was given.
    """

    info: Mapping[str, Any]
    instructions: str | None
    page_size: int | None
    list_changed: bool
    subscribe: bool
    logging: bool
    show_errors: bool
    capabilities: Mapping[str, Any]
    mounts: LowLevelHandlers
    means: FeatureSettings
    cache: Mapping[Cacheable, CacheHint]
    validation_seconds: float

    def __post_init__(self) -> None:
        if not self.info["name"]:
            raise ValueError("name: expected a server's name, got an empty string")
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size: expected at least 1, got {self.page_size}")
        if not self.validation_seconds > 0:
            raise ValueError(
                f"validation_seconds: expected more than 0, got {self.validation_seconds}"
            )


class Toolkit:
    """Registered functions as an application.

    Args:
        settings: What the server was made with.
        announce: Called with a notification that all sessions are to hear.

    Attributes:
        settings: The same.
        state: What the lifespan yielded for the session being served.
    """

    def __init__(self, settings: Settings, announce: Callable[[str], None]) -> None:
        self.settings = settings
        self._announce = announce
        self._table: dict[str, Answer] = {}
        self._emitted: set[str] = {MESSAGE} if settings.logging else set()
        self._descriptions: dict[str, Description] = {}
        self._tool_shapes: dict[str, ToolShape | ValueShape] = {}
        self._prompt_shapes: dict[str, PromptShape] = {}
        self.state: ContextVar[Any] = ContextVar("state", default=None)
        self.custom: dict[str, Method] = {}
        self.completers: dict[tuple[str, str, str], Completer] = {}
        cache = settings.cache
        self.tools: Listing[Tool] = Listing("tool", "tools", self._tools_changed, cache["tools"])
        self.resources: Listing[Resource] = Listing(
            "resource", "resources", self._resources_changed, cache["resources"]
        )
        self.templates: Listing[Resource] = Listing(
            "resource template", "resourceTemplates", self._resources_changed, cache["templates"]
        )
        self.prompts: Listing[Prompt] = Listing(
            "prompt", "prompts", self._prompts_changed, cache["prompts"]
        )

    def describe(self, revision: Revision) -> Description:
        """The server's account of itself in a revision."""
        known = self._descriptions.get(revision.name)
        if known is None:
            known = self._descriptions[revision.name] = Description(
                _shaped(self.settings.info, revision.implementation),
                _shaped(self._capabilities(revision), revision.server_capabilities),
                self.settings.instructions,
                self.settings.cache["discover"].wire(),
            )
        return known

    async def handle(self, exchange: RequestContext) -> Any:
        """Answer a request.

        Raises:
            MethodNotFoundError: Nothing is registered that could.
            ProtocolError: What the answering function raised.
        """
        if self.settings.mounts:
            mounted = self.settings.mounts.find(exchange.revision, exchange.method)
            if mounted is not None:
                return await mounted(exchange.params, exchange)
        answer = self._table.get(exchange.method.name)
        if answer is None:
            raise MethodNotFoundError(exchange.method.name)
        return await answer(exchange)

    async def notified(self, exchange: RequestContext) -> None:
        """Pass a notification to the mounted handlers."""
        mounted = self.settings.mounts.find(exchange.revision, exchange.method)
        if mounted is not None:
            await mounted(exchange.params, exchange)

    def add_completer(self, key: tuple[str, str, str], completer: Completer) -> None:
        """Register what suggests values: kind and name of the owner, name of the argument.

        Raises:
            ValueError: There is one already.
        """
        if key in self.completers:
            raise ValueError(f"{completer.label} is registered already")
        self.completers[key] = completer
        self._serve({"completion/complete": self._complete})

    def add_method(self, method: CustomMethod) -> None:
        """Register a request of the server's own.

        Raises:
            ValueError: There is one already.
        """
        name = method.row.name
        if name in self.custom:
            raise ValueError(f"method {name!r} is registered already")
        self.custom[name] = method.row
        self._descriptions.clear()
        self._table[name] = partial(self._call_own, method)

    def marks_of(self, tool: str) -> Mapping[tuple[str, ...], str]:
        """Arguments of a tool that HTTP header fields repeat: path and name of the field."""
        found = self.tools.get(tool)
        return {} if found is None else found.marks

    def _capabilities(self, revision: Revision) -> dict[str, Any]:
        made: dict[str, Any] = {}
        served = {*self._table, *self.settings.mounts.served(revision)}
        rows = [row for name, row in revision.client_requests.items() if name in served]
        rows += [
            row for name, row in revision.server_notifications.items() if name in self._emitted
        ]
        rows += self.custom.values()
        for row in rows:
            here = made
            for name in row.capability:
                if name in _FLAGS:
                    here[name] = True
                else:
                    here = here.setdefault(name, {})
        return _merged(made, self.settings.capabilities)

    def _serve(self, answers: Mapping[str, Answer], *emitted: str) -> None:
        if not self._table.keys() >= answers.keys():
            self._table.update(answers)
            self._emitted.update(emitted)
            self._descriptions.clear()

    def _changed(self, notification: str) -> None:
        if self.settings.list_changed:
            self._announce(notification)

    def _tools_changed(self) -> None:
        flags = (TOOLS_CHANGED,) if self.settings.list_changed else ()
        self._serve({"tools/list": self._list_tools, "tools/call": self._call_tool}, *flags)
        self._changed(TOOLS_CHANGED)

    def _resources_changed(self) -> None:
        answers: dict[str, Answer] = {
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }
        flags = [RESOURCES_CHANGED] if self.settings.list_changed else []
        if self.settings.subscribe:
            answers["resources/subscribe"] = answers["resources/unsubscribe"] = self._subscribe
            flags.append(RESOURCE_UPDATED)
        self._serve(answers, *flags)
        self._changed(RESOURCES_CHANGED)

    def _prompts_changed(self) -> None:
        flags = (PROMPTS_CHANGED,) if self.settings.list_changed else ()
        self._serve({"prompts/list": self._list_prompts, "prompts/get": self._get_prompt}, *flags)
        self._changed(PROMPTS_CHANGED)

    async def _list_tools(self, exchange: RequestContext) -> Any:
        return self.tools.page(exchange, self.settings.page_size)

    async def _list_resources(self, exchange: RequestContext) -> Any:
        return self.resources.page(exchange, self.settings.page_size)

    async def _list_templates(self, exchange: RequestContext) -> Any:
        return self.templates.page(exchange, self.settings.page_size)

    async def _list_prompts(self, exchange: RequestContext) -> Any:
        return self.prompts.page(exchange, self.settings.page_size)

    async def _call_tool(self, exchange: RequestContext) -> Any:
        params, revision = exchange.params, exchange.revision
        tool = self.tools.get(params.name)
        if tool is None:
            raise InvalidParamsError(f"unknown tool: {safe_repr(params.name)}")
        shape = self._tool_shapes.get(revision.name)
        if shape is None:
            shape = tool_shape(exchange.method.result, revision.facts.behaviour.structured_content)
            self._tool_shapes[revision.name] = shape
        context = self._context(exchange)
        show = self.settings.show_errors
        return await _with_input(context, tool.call(params.arguments, context, shape, show))

    async def _get_prompt(self, exchange: RequestContext) -> Any:
        params, revision = exchange.params, exchange.revision
        prompt = self.prompts.get(params.name)
        if prompt is None:
            raise InvalidParamsError(f"unknown prompt: {safe_repr(params.name)}")
        shape = self._prompt_shapes.get(revision.name)
        if shape is None:
            shape = self._prompt_shapes[revision.name] = PromptShape(exchange.method.result)
        context = self._context(exchange)
        return await _with_input(context, prompt.get(params.arguments, context, shape))

    def _resource(self, uri: str) -> tuple[Resource, Mapping[str, Any]]:
        """The resource under a URI, and the template's variables in it."""
        from .uri_templates import check_requested  # loaded already by the resources

        check_requested(uri)
        single = self.resources.get(uri)
        if single is not None:
            return single, {}
        for template in self.templates:
            values = template.values(uri)
            if values is not None:
                return template, values
        raise ResourceNotFoundError(uri)

    async def _read_resource(self, exchange: RequestContext) -> Any:
        uri: str = exchange.params.uri
        resource, values = self._resource(uri)
        context = self._context(exchange)
        return await _with_input(context, resource.read(uri, values, context))

    async def _subscribe(self, exchange: RequestContext) -> None:
        """Agree; the core keeps what a session subscribed to."""
        self._resource(exchange.params.uri)

    async def _complete(self, exchange: RequestContext) -> Any:
        params = exchange.params
        uri: str | None = getattr(params.ref, "uri", None)
        kind, owner = ("prompt", params.ref.name) if uri is None else ("template", uri)
        known = self._arguments(kind, owner)
        argument: str = params.argument.name
        if argument not in known:
            raise InvalidParamsError(
                f"{kind} {safe_repr(owner)} has no argument {safe_repr(argument)}"
            )
        completer = self.completers.get((kind, owner, argument))
        if completer is None:
            return {"completion": {"values": []}}
        settled: Any = getattr(getattr(params, "context", None), "arguments", None)
        context = self._context(exchange)
        value: str = params.argument.value
        return await _with_input(context, completer.complete(value, settled or None, context))

    async def _call_own(self, method: CustomMethod, exchange: RequestContext) -> Any:
        context = self._context(exchange)
        return await _with_input(context, method.call(context))

    def _context(self, exchange: RequestContext) -> Context:
        return Context(exchange, self.state.get(), self.settings.means)

    def _arguments(self, kind: str, owner: str) -> tuple[str, ...]:
        if kind == "prompt":
            prompt = self.prompts.get(owner)
            if prompt is not None:
                return prompt.arguments
        else:
            template = self.templates.get(owner)
            if template is not None and template.template is not None:
                return template.template.names
        raise InvalidParamsError(f"unknown {kind}: {safe_repr(owner)}")


async def _with_input(context: Context, answering: Coroutine[Any, Any, Any]) -> Any:
    """The result of a handler, or what it asks the client first.

    Once a question is open, nothing counts that the handler did on its way out: it runs again.
    """
    try:
        result = await answering
    except URLElicitationRequiredError as error:
        return context.url_required(error)
    except BaseException as error:
        if not context.unanswered:
            raise
        await check_own_failure(error)
        return context.dialogue.result()
    if context.unanswered:
        return context.dialogue.result()
    return context.dialogue.sealed(result) if isinstance(result, InputRequired) else result


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one, member by member all the way down."""
    made = dict(base)
    for name, value in more.items():
        old = made.get(name)
        made[name] = _merged(old, value) if is_object(old) and is_object(value) else value
    return made


def _shaped(wire: Mapping[str, Any], kind: Any) -> Mapping[str, Any]:
    """A wire object with the members that a type has, and no other."""
    shaped: Mapping[str, Any] = to_builtins(convert(wire, kind))
    return shaped
