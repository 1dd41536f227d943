"""Base classes of the rendered stubs: lookup of overridden handlers, and typed params."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, TypeVar

from .._wire import (
    STRUCTS,
    UNSET,
    UNWRITABLE,
    EncodingError,
    ValidationError,
    convert,
    error_text,
    is_object,
    to_builtins,
)
from ..errors import InvalidParamsError, LocalProtocolError, MethodNotFoundError
from ..facts import Method
from ..foreign_text import WEB_SCHEMES
from ..protocol.request_meta import recast
from .request_context import RequestContext

Value = TypeVar("Value")
"""The type of a tool's value, as passed by the caller."""

_MAY_HAVE_STRUCTS = (*STRUCTS, list, tuple)
"""Types of values that are, or may contain, Structs of the user."""

_PLAIN = frozenset({str, dict, int, float, bool, type(None)})
"""Types of most values, which contain no Structs; a set lookup is faster than `isinstance`."""


class HandlersBase:
    """Base of the handler stubs: a method that a subclass overrides is supported."""

    mcp_stubs: ClassVar[bool] = True
    """Whether the methods that a class itself defines are stubs; true in rendered classes."""

    url_schemes: Collection[str] = WEB_SCHEMES
    """URL schemes that a server may ask the user of a client to open."""

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The function of a subclass for a method; `None` if no function overrides the stub."""
        name = method.python_name
        for owner in type(self).__mro__:
            if name in vars(owner):
                handler: Callable[[Any, RequestContext], Any] = getattr(self, name)
                return None if "mcp_stubs" in vars(owner) or not callable(handler) else handler
        return None


class SessionBase:
    """Requests and notifications of a server on behalf of the message that it handles."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context

    async def _request(self, name: str, fields: Mapping[str, Any], timeout: float | None) -> Any:
        """Send a request with params by Python name; absent params are left out."""
        revision = self._context.revision
        method = method_named(revision.server_requests, name)
        params = typed_params(method, fields, revision.name)
        return await self._context.request(name, params, timeout=timeout)

    async def _notify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification with params by Python name."""
        revision = self._context.revision
        method = method_named(revision.server_notifications, name)
        await self._context.notify(name, wire_params(method, fields, revision.name))


def method_named(rows: Mapping[str, Method], name: str) -> Method:
    """The row of a message.

    Raises:
        MethodNotFoundError: The revision has no such message.
    """
    method = rows.get(name)
    if method is None:
        raise MethodNotFoundError(name)
    return method


def typed_params(method: Method, fields: Mapping[str, Any], revision: str) -> Any:
    """The params of a message from its fields by Python name, in a revision's own shape.

    A field `*` is the params as a whole, where they are a union that no fields can stand for.

    Returns:
        A Struct, or `None` for a message without params.

    Raises:
        InvalidParamsError: The revision has no such field, a required field is missing, or a value
            has a wrong type.
        LocalProtocolError: A value has no JSON form. (Only pydantic checks that here.)
    """
    defaults = method.default_params
    if "*" in fields:
        whole = fields["*"]
        return _convert_params({**defaults, **whole} if is_object(whole) else whole, method)
    wire_names = method.wire_names
    members: dict[str, Any] = {}
    for field, value in fields.items():
        if field not in wire_names:
            if value is UNSET or value is None:
                continue
            raise InvalidParamsError(f"{method.name}: {revision} has no {field!r}")
        if value is not UNSET and (value is not None or field not in method.optional):
            members[wire_names[field]] = value
    if method.params is None or not (members or method.params_required):
        return None
    return _convert_params({**defaults, **members} if defaults else members, method)


def _convert_params(params: Any, method: Method) -> Any:
    """Convert params to the type of a revision; they may contain Structs of other revisions."""
    try:
        try:
            typed = convert(params, method.params)
        except EncodingError:
            raise
        except ValidationError:
            return recast(params, method.params)
        for value in params.values() if is_object(params) else (params,):
            if type(value) not in _PLAIN and isinstance(value, _MAY_HAVE_STRUCTS):
                return recast(typed, method.params)  # nested Structs may be of other revisions
    except EncodingError as error:
        raise LocalProtocolError(f"{method.name}: params: {error}") from None
    except UNWRITABLE as error:
        raise InvalidParamsError(f"{method.name}: {error_text(error)}") from None
    return typed


def wire_params(method: Method, fields: Mapping[str, Any], revision: str) -> dict[str, Any] | None:
    """The params of a message as a wire object, without an empty `_meta`; see `typed_params`."""
    params = typed_params(method, fields, revision)
    if params is None:
        return None
    wire: dict[str, Any] = to_builtins(params)
    return {key: value for key, value in wire.items() if key != "_meta" or value}
