"""The application of a client: serves the messages of a server with the user's handlers.

A server may only use capabilities that the client declared, and a result must match its request.
The rules are the same for requests and for input requests inside results.

Source: client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from anyio import to_thread

from .._wire import Raw, ValidationError, convert, error_text, is_object, replace, to_builtins
from ..errors import (
    INVALID_PARAMS,
    LocalProtocolError,
    MethodNotFoundError,
    RemoteProtocolError,
)
from ..facts import Method, Revision
from ..foreign_text import WEB_SCHEMES, url_complaint
from ..protocol.client_features import (
    content_complaint,
    message_complaint,
    messages_complaint,
    root_complaint,
)
from ..protocol.lifecycle import (
    CAPABILITY,
    Description,
    Session,
    fit_capabilities,
    missing_capability,
    reduce_to,
)
from ..protocol.request_meta import check_extensions, recast
from ..runtime.peer import Peer
from ..runtime.request_context import RequestContext
from .client_settings import ClientSettings, Identity
from .server_state import Elicitations, ServerState

if TYPE_CHECKING:
    from ..runtime.pending_requests import OnProgress
    from .opening import ClientPeer

ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"

_PLAIN = (FunctionType, MethodType)

MakeFields: TypeAlias = Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""Returns the header fields of a request, or an awaitable of the fields."""

Fields: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""A coroutine function that returns the header fields of a request."""

HeadersOfCall: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str]]
"""Returns the header fields that repeat the arguments of a tool, by its name."""


class Handlers(Protocol):
    """Handlers of server messages; rendered `ClientHandlers` classes implement this."""

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The user's own function for a method, plain or a coroutine function; `None` for none."""
        ...

    @property
    def url_schemes(self) -> Collection[str]:
        """URL schemes that a server may ask the user to open."""
        ...


class RequestChain(Protocol):
    """The middleware of a client; see `ClientMiddlewareChain`."""

    async def request(self, peer: Peer, send: partial[Any]) -> Any:
        """Send a request through the middleware, and return its result."""
        ...

    async def notification(self, peer: Peer, name: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification through the middleware."""
        ...


class ClientApplication:
    """Serves the requests and notifications of a server with the user's handlers.

    Args:
        handlers: The user's handlers; `None` for none.
        identity: The client's description.
        settings: The settings of the client; the defaults if `None`.

    Attributes:
        peer_class: The class of its end of a channel, a `ClientPeer`; `chosen` sets it.
        requests_class: The class of its request pipeline, a `RequestPipeline`; likewise.
        settings: The settings of the client.
        http_library: Opens the HTTP library; `None` for httpx2.
        with_progress: Adds callbacks of the client to the function that gets the progress of a
            request; `None` for no callbacks.
        chain: The middleware; `None` before the first registration.
        custom_methods: Methods that no revision has: `mcp_custom_methods` of a proxy's handlers.
        server_state: The state of the server.
    """

    peer_class: ClassVar[type[ClientPeer]]
    requests_class: ClassVar[Any]
    http_library: ClassVar[Callable[..., Any] | None] = None

    def __init__(
        self,
        handlers: Handlers | None,
        identity: Identity,
        settings: ClientSettings | None = None,
    ) -> None:
        self.settings = settings = settings or ClientSettings()
        self.server_state = ServerState(settings)
        self.with_progress: Callable[[OnProgress | None], OnProgress | None] | None = None
        self.chain: RequestChain | None = None
        self.custom_methods: Mapping[str, Method] = getattr(handlers, "mcp_custom_methods", {})
        self._handlers = handlers
        self._identity = identity
        self._descriptions: dict[str, Description] = {}

    def new_requests(self, peer: Peer, session: Session) -> Any:
        """The request pipeline of a session."""
        return self.requests_class(peer, session, self)

    def declare_extensions(self, identifiers: Collection[str]) -> None:
        """Declare extensions without settings, in addition to those of the user."""
        capabilities = self._identity.capabilities
        own = capabilities.get(CAPABILITY, {})
        if identifiers and is_object(own):  # anything else is refused by `describe`
            merged: dict[str, Any] = {CAPABILITY: {**{name: {} for name in identifiers}, **own}}
            self._identity = Identity(self._identity.info, {**capabilities, **merged})

    def describe(self, revision: Revision) -> Description:
        """The client's `Implementation` and capabilities, in the types of a revision.

        Raises:
            ValueError: The capabilities have a malformed extension.
        """
        description = self._descriptions.get(revision.name)
        if description is None:
            capabilities = _supported_capabilities(self._identity.capabilities, revision)
            for method in (*revision.server_requests.values(), *revision.input_requests.values()):
                if method.capability and self._handler(method) is not None:
                    _declare(capabilities, method.capability)
            check_extensions(capabilities, revision.facts)
            description = Description(
                reduce_to(revision.implementation, self._identity.info),
                fit_capabilities(revision.client_capabilities, capabilities),
            )
            self._descriptions[revision.name] = description
        return description

    async def handle(self, context: RequestContext) -> Any:
        """Serve a request of the server.

        Raises:
            MethodNotFoundError: The user has no handler for the method.
            ProtocolError: The server must not send the request, or the handler's result is invalid.
        """
        handler = self._handler(context.method)
        if handler is None:
            raise MethodNotFoundError(context.method.name)
        own = self.describe(context.revision).capabilities
        schemes = WEB_SCHEMES if self._handlers is None else self._handlers.url_schemes
        return await _answer(handler, context, own, self.server_state.elicitations, schemes)

    async def session_opened(self, peer: Peer) -> None:
        """Called when the session is open, before its client is made; features extend this."""

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification of the server to its handler."""
        if not self.server_state.invalidate(context.method, context.params):
            return
        handler = self._handler(context.method)
        if handler is not None:
            await handler(context.params, context)

    def header_fields(self, make: MakeFields) -> Fields:
        """The user's function for header fields as a coroutine function."""

        async def fields() -> Mapping[str, str]:
            result = make()
            return await result if isawaitable(result) else result

        return fields

    def mirror_params(self) -> HeadersOfCall | None:
        """The headers of calls for a transport that has headers; `None` for no such headers."""
        return None

    def _handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        handler = None if self._handlers is None else self._handlers.mcp_handler(method)
        if handler is None or not isinstance(handler, _PLAIN) or iscoroutinefunction(handler):
            return handler
        return in_thread(handler)


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a plain function to run in a thread; coroutine functions are returned unchanged."""
    if iscoroutinefunction(function):
        return function

    async def call_in_thread(*arguments: Any) -> Any:
        result = await to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
        return await result if isawaitable(result) else result

    return call_in_thread


def _supported_capabilities(capabilities: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Copy capabilities, without `listChanged` where the revision has no such notification."""
    paths = {method.capability for method in revision.client_notifications.values()}
    supported = dict(capabilities)
    for name, value in capabilities.items():
        if is_object(value):
            flags = supported[name] = dict(value)
            if (name, "listChanged") not in paths:
                flags.pop("listChanged", None)
    return supported


def _declare(capabilities: dict[str, Any], path: tuple[str, ...]) -> None:
    here = capabilities
    for name in path:
        here = here.setdefault(name, {})


async def _answer(
    handler: Callable[[Any, RequestContext], Awaitable[Any]],
    context: RequestContext,
    capabilities: Mapping[str, Any],
    elicitations: Elicitations,
    schemes: Collection[str],
) -> Any:
    """Validate a request, call its handler, and validate the handler's result.

    Raises:
        RemoteProtocolError: The server must not send this request (-32602).
        LocalProtocolError: The handler's result breaks a rule.
    """
    method = context.method
    if method.name not in (ELICITATION, SAMPLING, ROOTS):
        return await handler(context.params, context)
    params: Any = to_builtins(context.params) if context.params is not None else {}
    path = missing_capability(method, params, capabilities)
    wrong: str | None = None
    if path:
        wrong = f"this client did not declare {'.'.join(path)}"
    elif method.name == SAMPLING:
        wrong = messages_complaint(params["messages"])
    elif "url" in params and (complaint := url_complaint(params["url"], schemes)):
        wrong = f"url: {complaint}"
    if wrong:
        raise RemoteProtocolError(f"{method.name}: {wrong}", code=INVALID_PARAMS)
    elicitations.add(params.get("elicitationId"))
    returned = await handler(_with_defaults(method, context.params, params), context)
    if isinstance(returned, Raw):  # a gateway forwards the result of another client
        return returned
    try:
        typed = recast(returned, method.result)
    except ValidationError as error:
        raise LocalProtocolError(f"{method.name}: answer: {error_text(error)}") from None
    result: Mapping[str, Any] = to_builtins(typed)
    if wrong := _result_complaint(method.name, params, result):
        raise LocalProtocolError(f"{method.name}: {wrong}")
    if _has_unsolicited_content(params, result):
        typed = replace(typed, content=None)
    return typed


def _with_defaults(method: Method, params: Any, wire: Mapping[str, Any]) -> Any:
    """Typed params of a sampling request, with defaults for absent members."""
    if method.name != SAMPLING or "tools" not in method.wire_names.values():
        return params
    members = {"includeContext": "none", **wire}
    if "tools" in wire:
        members["toolChoice"] = {"mode": "auto", **wire.get("toolChoice", {})}
    return convert(members, method.params)


def _has_unsolicited_content(params: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether the result of an elicitation has content without an accepted form."""
    return (
        "content" in result
        and "action" in result
        and (result["action"] != "accept" or "requestedSchema" not in params)
    )


def _result_complaint(
    method: str, params: Mapping[str, Any], result: Mapping[str, Any]
) -> str | None:
    """The rule that the result of a handler breaks, if any."""
    if method == SAMPLING:
        return message_complaint(result) if "content" in result else None
    if method == ROOTS:
        for at, root in enumerate(result["roots"]):
            if wrong := root_complaint(root["uri"]):
                return f"roots[{at}].uri: {wrong}"
    elif result.get("action") == "accept" and "requestedSchema" in params:
        wrong = content_complaint(params["requestedSchema"], result.get("content", {}))
        return f"content: {wrong}" if wrong else None
    return None
