"""Handlers for methods by name: custom methods, and low-level handlers of a revision.

A custom method is not part of the specification. A rendered `ServerHandlers` handles the methods of
its revision; a method that it overrides is not handled by the toolkit. The state of an
`InputRequiredResult` that a low-level handler returns is sent as it is: the handler itself has to
sign and verify it.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar

from ..._wire import (
    STRUCTS,
    UNREADABLE,
    UNSET,
    UNWRITABLE,
    Raw,
    Struct,
    ValidationError,
    error_text,
    is_many,
    is_object,
    members_with_structs,
)
from ...errors import InternalError, InvalidParamsError, MethodNotFoundError
from ...facts import Method, Revision
from ...protocol.lifecycle import CAPABILITY
from ...protocol.request_meta import check_extensions, recast
from ...runtime.request_context import RequestContext, checked_scopes
from ...values.value_types import to_json, value_type
from . import signatures
from .context import Context
from .dispatcher import Dispatcher, is_permitted
from .server import ServerKernel
from .signatures import local_names

Function = TypeVar("Function", bound=Callable[..., Any])


class CustomMethod:
    """A request that the specification does not have.

    Args:
        function: Takes the params if there are any, and optionally a `Context`.
        name: The method on the wire.
        params: Type of the params; `None` for the annotation of the parameter, or a dict.
        result: Type of the result; `None` for any object.
        reserved: The specification's methods, with the names of their handlers.
        extension: The extension that the method belongs to, or `None`.
        names: Further names that the annotations may use.

    Attributes:
        row: Its row for the method table.
        scopes: Scopes that it needs.
        dependencies: The values that other functions provide for a call, if any.

    Raises:
        TypeError: The function has other parameters.
        ValueError: The name is reserved, or starts with `rpc.`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        params: Any,
        result: Any,
        reserved: Mapping[str, str],
        extension: str | None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self._label = label = f"method {name!r}"
        if not name or name.startswith("rpc."):
            raise ValueError(f"{label}: expected a name that does not start with 'rpc.'")
        if name in reserved:
            raise ValueError(
                f"{label}: the specification has it already: override {reserved[name]} of the "
                "ServerHandlers of the revision, and pass an object of that class in "
                "Server(handlers=[...])"
            )
        signature = signatures.read(function, label, names, _context_name(function))
        parameters = list(signature.parameters.values())
        if len(parameters) > 1 or (params is not None and not parameters):
            taken = ", ".join(each.name for each in parameters) or "none"
            raise TypeError(
                f"{label}: expected a function of params, or of params and ctx, got {taken}"
            )
        if params is None and parameters:
            params = parameters[0].annotation
        if params in (None, Any, object, dict, Mapping):
            params = dict[str, Any]
        self.row = Method(
            name=name,
            kind="request",
            sender="client",
            params=params if _is_struct(params) else dict[str, Any],
            params_required=False,
            result=Any if result is None else result,
            capability=() if extension is None else (CAPABILITY, extension),
            items=None,
            python_name=name.replace("/", "_"),
        )
        self._extension = extension
        self._params = parameters[0].name if parameters else None
        self._kind = None if _is_struct(params) else value_type(params)
        self._context = signature.context
        self._call = signature.call
        self.dependencies = signature.dependencies

    async def call(self, context: Context) -> Any:
        """The result: a Struct, or a wire object.

        Raises:
            MethodNotFoundError: The client does not declare the method's extension.
        """
        if self._extension is not None and context.client_extension(self._extension) is None:
            raise MethodNotFoundError(self.row.name)
        arguments: dict[str, Any] = {}
        if self._params is not None:
            arguments[self._params] = self._read(context.request_context.params)
        if self._context is not None:
            arguments[self._context] = context
        value = await self._call(**arguments)
        if value is None:
            return {}
        try:
            result = to_json(value)
        except UNWRITABLE as error:
            raise InternalError(f"{self._label}: result: {error_text(error)}") from error
        if not is_object(result):
            got = type(value).__name__
            raise InternalError(f"{self._label}: expected an object or None as result, got {got}")
        return result

    def _read(self, params: Any) -> Any:
        """The params as the type of the function's parameter."""
        if self._kind is None:
            return params
        own = {name: value for name, value in params.items() if name != "_meta"}
        try:
            return self._kind.read(own)
        except (ValidationError, *UNREADABLE) as error:
            raise InvalidParamsError(f"{self._label}: params: {error_text(error)}") from None


class HandlerOptions(TypedDict, total=False):
    """Low-level handlers of a server.

    Attributes:
        handlers: Rendered `ServerHandlers`, one per revision, which override the registered
            functions. Request states in their results are not signed.
    """

    handlers: Sequence[RevisionHandlers]


class MethodDecorator(ServerKernel):
    """The decorator of custom methods; a base of `Server`."""

    def _use_options(self, options: dict[str, Any]) -> None:
        if handlers := options.pop("handlers", ()):
            self._dispatcher.overrides = LowLevelHandlers(handlers)
        super()._use_options(options)

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

            @server.method("acme/thing")
            async def thing(params, ctx):
                return {"sent": params}

        The function takes the params, the params and the context, or nothing. Params are a dict
        without `_meta`, or as the annotation of the parameter says. The result is a dict, or an
        object of a class with fields; `None` stands for a result without members.

        Args:
            name: The method on the wire.
            params: Type of the params, such as a `msgspec.Struct`, instead of the annotation.
            result: Type of the result, by which it is checked; `None` for any object.
            extension: Identifier of the extension that the method belongs to. The server declares
                the extension; the method exists for clients that declare it too.
            scopes: Scopes that the method needs, besides those of every request.

        Raises:
            TypeError: (from the decorator) The function has other parameters.
            ValueError: The identifier is invalid; (from the decorator) the name is taken.
        """
        required = checked_scopes(scopes)
        names = local_names(inspect.currentframe())
        if extension is not None:
            check_extensions({CAPABILITY: {extension: {}}}, self.revisions.newest().facts)

        def register(function: Function) -> Function:
            reserved = {
                request: row.python_name
                for each in self.revisions.values()
                for request, row in each.client_requests.items()
            }
            method = CustomMethod(function, name, params, result, reserved, extension, names)
            method.scopes = required
            _add(self._dispatcher, method)
            return function

        return register


def _add(dispatcher: Dispatcher, method: CustomMethod) -> None:
    """Add the row of a method that no revision has."""
    name = method.row.name
    if name in dispatcher.custom:
        raise ValueError(f"method {name!r} is registered already")
    dispatcher.check_method(name)
    dispatcher.custom[name] = method.row
    if method.scopes:
        dispatcher.method_scopes[name] = method.scopes
    dispatcher.handlers[name] = partial(_call, dispatcher, method)
    dispatcher.functions["method", name] = method
    dispatcher.methods_changed()


def _call(
    dispatcher: Dispatcher, method: CustomMethod, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    """The result of a custom method."""
    if method.scopes:
        label, forbidden = method.row.name, dispatcher.settings.forbidden_items
        if not is_permitted(method.scopes, label, forbidden):
            raise MethodNotFoundError(label)
    context = dispatcher.context_of(request)
    return dispatcher.result_of(context, method.call(context))


def _is_struct(kind: Any) -> bool:
    """Whether a type is a Struct, which the connection decodes."""
    return isinstance(kind, type) and issubclass(kind, STRUCTS)


def _context_name(function: Callable[..., Any]) -> str | None:
    """The parameter that gets the context even if it has no annotation.

    It is the second parameter, or the only one if its name is `ctx` or `context`.
    """
    try:
        names = list(inspect.signature(function).parameters)
    except (NameError, TypeError, ValueError):  # refused with a reason by `signatures.read`
        return None
    if len(names) == 1:
        return names[0] if names[0] in ("ctx", "context") else None
    return names[1] if len(names) == 2 else None


class RevisionHandlers(Protocol):
    """Low-level handlers of one revision, such as a rendered `ServerHandlers`."""

    revision: ClassVar[str]
    """Name of the revision."""

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The coroutine function that overrides a method; `None` for none."""
        ...


class LowLevelHandlers:
    """The low-level handlers of one server, by revision.

    Raises:
        ValueError: A revision has two sets of handlers.
    """

    def __init__(self, handlers: Sequence[RevisionHandlers]) -> None:
        self._by_revision: dict[str, RevisionHandlers] = {}
        for each in handlers:
            if each.revision in self._by_revision:
                raise ValueError(f"expected one set of handlers for {each.revision}, got two")
            self._by_revision[each.revision] = each

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any] | None:
        """The result of a request; `None` if the toolkit handles it."""
        handler = self._find(context.revision, context.method)
        if handler is None:
            return None
        return _result(handler(context.params, context), context.method)

    async def notified(self, context: RequestContext) -> None:
        """Handle a notification, if it has a handler."""
        handler = self._find(context.revision, context.method)
        if handler is not None:
            await handler(context.params, context)

    def requests(self, revision: Revision) -> Iterator[str]:
        """Names of the requests that are overridden in a revision."""
        for name, method in revision.client_requests.items():
            if self._find(revision, method) is not None:
                yield name

    def _find(
        self, revision: Revision, method: Method
    ) -> Callable[[Any, RequestContext], Any] | None:
        handlers = self._by_revision.get(revision.name)
        return None if handlers is None else handlers.mcp_handler(method)


async def _result(coroutine: Coroutine[Any, Any, Any], method: Method) -> Any:
    """The result of a low-level handler, with every object of the revision's own types."""
    result = await coroutine
    if result is None or isinstance(result, Raw):
        return result
    for kind in method.result_structs:
        if isinstance(result, kind) and _is_made_of(result, kind.__module__):
            return result
    try:
        return recast(result, method.result)
    except UNWRITABLE as error:
        raise InternalError(f"{method.name}: result: {error_text(error)}") from None


def _is_made_of(value: Any, module: str) -> bool:
    """Whether all Structs in a value, at any depth, are of one module."""
    if isinstance(value, STRUCTS):
        kind = type(value)
        return kind.__module__ == module and all(
            _is_made_of(getattr(value, name), module) for name in members_with_structs(kind)
        )
    if is_many(value):
        return all(_is_made_of(item, module) for item in value)
    if is_object(value):
        members = value.values()
        return all(isinstance(each, Struct) and _is_made_of(each, module) for each in members)
    return value is None or value is UNSET
