"""Requests of the specification that functions handle, in the shape of the official SDK 1.

The low-level server of that SDK has a decorator for each request. Its functions take and return
values instead of params and results: that of `tools/call` takes a name and arguments, and returns
content. A function that is registered here for a request takes the place of the toolkit.

| request | the function takes | and returns |
| --- | --- | --- |
| list requests | nothing | a list of the items, or the result |
| `tools/call` | the name and the arguments | content, a dict, both as a tuple, or the result |
| `prompts/get` | the name and the arguments | the result |
| `resources/read` | the URI | text, bytes, contents, or a list of these |
| `completion/complete` | reference, argument, context | the completion, or `None` |
| `logging/setLevel` | nothing: it is not called, since the server applies the level itself | |
| `resources/subscribe` and `unsubscribe` | the URI | nothing |

An exception of `tools/call` is a result with the text of the exception, as in that SDK. Arguments
and structured results are validated against the schemas that the function of `tools/list` gives,
before and after the call; the result says what does not fit. An exception of another function is an
error with the text of the exception and the code 0. A function
of the official SDK 2, whose first parameter is the context, takes the params as the second one, and
returns the result.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.json import format as format_json

from ..._wire import UNWRITABLE, encode, error_text, is_many, is_object
from ...errors import InternalError, MissingExtraError, ProtocolError
from ...facts import Revision
from ...protocol.request_meta import recast
from ...runtime.request_context import RequestContext
from ...values.value_types import to_json
from .content import Contents, is_model
from .context import Context
from .dispatcher import Dispatcher
from .server import ServerKernel

Function = TypeVar("Function", bound=Callable[..., Any])
Handler: TypeAlias = Callable[[Callable[..., Awaitable[Any]], Any], Coroutine[Any, Any, Any]]

_logger = logging.getLogger(__name__)
_URL_ELICITATION_REQUIRED = -32042
_NO_STRUCTURE = "outputSchema defined but no structured output returned"
_CONTEXT: ContextVar[Context[Any]] = ContextVar("context")


class _Registered(msgspec.Struct, frozen=True):
    """A function of a request.

    Attributes:
        call: The function.
        takes_context: Whether it takes the context and the params.
        validates: Whether the arguments of a tool are validated before its call.
    """

    call: Callable[..., Awaitable[Any]]
    takes_context: bool
    validates: bool


class FunctionHandlers:
    """The functions of one server by request; they come before what else handles requests.

    Args:
        dispatcher: Makes the contexts of the requests.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._others = dispatcher.overrides
        self._functions: dict[str, _Registered] = {}
        self._tools: dict[str, Any] = {}

    def add(self, method: str, function: Callable[..., Any], *, validate_input: bool) -> None:
        """Register the function of a request.

        Raises:
            MissingExtraError: `jsonschema` is not installed, which validates arguments.
            ValueError: Functions of this request are unknown here, or it has one already.
        """
        known = ("tools/call", *_HANDLERS, "logging/setLevel")
        if method not in known:
            raise ValueError(f"expected one of {', '.join(known)}, got {method!r}")
        if method in self._functions:
            raise ValueError(f"{method}: expected one function, got two")
        takes_context = _takes_context(function)
        validates = method == "tools/call" and not takes_context
        if validates:
            _validator_of({})
        call = _coroutine_function(function)
        self._functions[method] = _Registered(call, takes_context, validates and validate_input)

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any] | None:
        """The result of a request; `None` if no function handles it."""
        function = self._functions.get(context.method.name)
        if function is None:
            result: Coroutine[Any, Any, Any] | None = None
            if self._others is not None:
                result = self._others.handle(context)
            return result
        return self._result(function, context)

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification to other handlers of the user."""
        if self._others is not None:
            await self._others.notified(context)

    def requests(self, revision: Revision) -> Iterator[str]:
        """Names of the requests that are handled in a revision."""
        yield from (name for name in revision.client_requests if name in self._functions)
        if self._others is not None:
            yield from self._others.requests(revision)

    async def _result(self, function: _Registered, request: RequestContext) -> Any:
        name = request.method.name
        context = self._dispatcher.context_of(request)
        _CONTEXT.set(context)
        if function.takes_context:
            result = await function.call(context, request.params)
        elif name == "tools/call":
            result = await self._call_tool(function, request.params)
        else:
            try:
                result = await _HANDLERS[name](function.call, request.params)
            except ProtocolError:
                raise
            except Exception as error:
                _logger.exception("%s failed", name)
                raise ProtocolError(str(error), code=0) from error
        try:
            wire = to_json(result)
            if name == "tools/list":
                self._remember(wire)
            elif name == "tools/call" and "content" in wire:
                wire = {"isError": False, **wire}  # which that SDK always writes
            return recast(wire, request.method.result)
        except UNWRITABLE as error:
            raise InternalError(f"{name}: result: {error_text(error)}") from None

    def _remember(self, result: Any) -> None:
        self._tools |= {each["name"]: each for each in result["tools"]}

    async def _tool(self, name: str) -> Mapping[str, Any]:
        """The tool as `tools/list` has it; an empty mapping if it lists none of this name."""
        listing = self._functions.get("tools/list")
        if name not in self._tools and listing is not None and not listing.takes_context:
            self._remember(to_json(await _HANDLERS["tools/list"](listing.call, None)))
        tool: Mapping[str, Any] = self._tools.get(name, {})
        return tool

    async def _call_tool(self, function: _Registered, params: Any) -> Any:
        """The result of a call; one with the text of its error if the function failed."""
        name, arguments = params.name, dict(params.arguments or {})
        try:
            tool = await self._tool(name)
            if function.validates and "inputSchema" in tool:
                text = _complaint(arguments, tool["inputSchema"])
                if text is not None:
                    return _failure(f"Input validation error: {text}")
            value = await function.call(name, arguments)
            result = _tool_result(value)
            if is_object(result) and "outputSchema" in tool:
                text = _NO_STRUCTURE
                if "structuredContent" in result:
                    text = _complaint(to_json(result["structuredContent"]), tool["outputSchema"])
                if text is not None:
                    return _failure(f"Output validation error: {text}")
            return result
        except Exception as error:
            if isinstance(error, ProtocolError) and error.code == _URL_ELICITATION_REQUIRED:
                raise  # the client has to open a page first
            _logger.exception("tool %r failed", name)
            return _failure(str(error))


class FunctionHandlerServer(ServerKernel):
    """A server with functions for requests of the specification; a base of `Server`."""

    def request_handler(
        self, method: str, *, validate_input: bool = True
    ) -> Callable[[Function], Function]:
        """Register the decorated function for a request of the specification.

            @server.request_handler("tools/list")
            async def list_tools() -> list[Tool]:
                return [Tool(name="add", inputSchema={"type": "object"})]

        The function comes before the items that are registered by other decorators. The module of
        this feature has a table of what the functions take and return.

        Args:
            method: The request, such as `tools/call`.
            validate_input: Whether arguments of `tools/call` are validated against the input schema
                that the function of `tools/list` gives.

        Raises:
            MissingExtraError: (from the decorator) `jsonschema` is not installed.
            ValueError: (from the decorator) There is no such request, or it has a function.
        """

        def register(function: Function) -> Function:
            dispatcher = self._dispatcher
            if not isinstance(dispatcher.overrides, FunctionHandlers):
                dispatcher.overrides = FunctionHandlers(dispatcher)
            dispatcher.overrides.add(method, function, validate_input=validate_input)
            return function

        return register

    @property
    def current_context(self) -> Context[Any]:
        """The context of the request that a function of `request_handler` serves.

        Raises:
            LookupError: No request is being served.
        """
        return _CONTEXT.get()


def _coroutine_function(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that calls another function with as many values as it takes."""
    parameters = inspect.signature(function).parameters.values()
    is_open = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(each.kind in positional for each in parameters)
    uri_type = _uri_type(function)

    async def call(*values: Any) -> Any:
        if uri_type is not None:
            values = (uri_type(values[0]), *values[1:])
        result = function(*(values if is_open else values[:count]))
        return await result if inspect.isawaitable(result) else result

    return call


def _uri_type(function: Callable[..., Any]) -> Any:
    """The class of pydantic that a function takes a URI as; `None` if it takes a string."""
    try:
        kind = typing.get_type_hints(function).get("uri")
    except (NameError, TypeError):
        return None
    return kind if isinstance(kind, type) and kind.__module__.startswith("pydantic") else None


def _takes_context(function: Callable[..., Any]) -> bool:
    """Whether a function is one of the official SDK 2, which takes the context and the params."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None:
        return False
    return first.name in ("ctx", "context", "_ctx", "_context") or "Context" in str(
        first.annotation
    )


class ListRequest(msgspec.Struct, frozen=True):
    """A list request, for functions that look at its cursor.

    Attributes:
        params: Its params, or `None`.
    """

    params: Any


def _lists(member: str) -> Handler:
    """The handler of a list request whose result has the items as this member."""

    async def handle(function: Callable[..., Awaitable[Any]], params: Any) -> Any:
        value = await function(ListRequest(params))
        return {member: value} if is_many(value) else value

    return handle


def _failure(text: str) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _validator_of(schema: Mapping[str, Any]) -> Any:
    try:
        jsonschema = importlib.import_module("jsonschema")
    except ModuleNotFoundError as error:
        raise MissingExtraError("request_handler('tools/call')", "jsonschema") from error
    return jsonschema.validators.validator_for(schema)(schema)


def _complaint(value: Any, schema: Mapping[str, Any]) -> str | None:
    """The first error of a value, as `jsonschema` words it; `None` if the value fits."""
    validator = _validator_of(schema)
    best_match = importlib.import_module("jsonschema.exceptions").best_match
    error = best_match(validator.iter_errors(value))
    return None if error is None else error.message


def _tool_result(value: Any) -> Any:
    if is_model(value, "content", "is_error"):
        return value
    content, structured = value, None
    if is_many(value) and isinstance(value, tuple) and len(value) == 2:
        content, structured = value
    if is_object(value):
        text = format_json(encode(to_json(value)), indent=2).decode()
        content, structured = [{"type": "text", "text": text}], value
    if not is_many(content):
        raise TypeError(f"Unexpected return type from tool: {type(value).__name__}")
    result: dict[str, Any] = {"content": list(content), "isError": False}
    return result if structured is None else {**result, "structuredContent": structured}


async def _get_prompt(function: Callable[..., Awaitable[Any]], params: Any) -> Any:
    arguments = None if params.arguments is None else dict(params.arguments)
    return await function(params.name, arguments)


async def _read_resource(function: Callable[..., Awaitable[Any]], params: Any) -> Any:
    value = await function(params.uri)
    if is_model(value, "contents"):
        return value
    items = value if is_many(value) else [value]
    return {"contents": [_contents(item, params.uri) for item in items]}


def _contents(value: Any, uri: str) -> Any:
    if isinstance(value, str):
        value = Contents(uri, text=value, mime_type="text/plain")
    elif isinstance(value, bytes):
        value = Contents(uri, blob=value, mime_type="application/octet-stream")
    wire: dict[str, Any] = to_json(value)
    return {**wire, "uri": wire.get("uri") or uri}


async def _complete(function: Callable[..., Awaitable[Any]], params: Any) -> Any:
    value = await function(params.ref, params.argument, getattr(params, "context", None))
    return {"completion": {"values": []} if value is None else value}


async def _use_uri(function: Callable[..., Awaitable[Any]], params: Any) -> Any:
    await function(params.uri)
    return {}


_HANDLERS: Mapping[str, Handler] = {
    "tools/list": _lists("tools"),
    "prompts/list": _lists("prompts"),
    "prompts/get": _get_prompt,
    "resources/list": _lists("resources"),
    "resources/templates/list": _lists("resourceTemplates"),
    "resources/read": _read_resource,
    "resources/subscribe": _use_uri,
    "resources/unsubscribe": _use_uri,
    "completion/complete": _complete,
}
