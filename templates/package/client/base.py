"""The bases of every client class: an open session, and the user's handlers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from inspect import iscoroutinefunction
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, Self, TypeVar

from msgspec import Raw

from .._wire import is_object
from ..errors import LocalProtocolError, MethodNotFoundError
from ..facts import Method, Revision
from ..foreign_text import WEB_SCHEMES, safe_text
from ..protocol.lifecycle import (
    CAPABILITY,
    Description,
    Session,
    fit_capabilities,
    is_declared,
    reduce_to,
    settings_of,
)
from ..protocol.request_meta import check_extensions
from ..protocol.requests import MESSAGE
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.request_context import RequestContext
from ..runtime.stubs import wire_params
from . import handler_validation
from .client_peer import ClientPeer
from .client_settings import ClientSettings, Identity
from .pipeline import RequestHooks, RequestPipeline, TaskCalls
from .server_state import NoCache, ParamHeaders, ServerState

if TYPE_CHECKING:  # most clients use none of these
    from .callbacks import Callback, Callbacks, OnLog, StartedCall
    from .typed_results import ValueReader

_PLAIN = (FunctionType, MethodType)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
AnyClient = TypeVar("AnyClient", bound="ClientBase")


class Handlers(Protocol):
    """Handlers of server messages; rendered `ClientHandlers` classes implement this."""

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The user's own function for a method, plain or a coroutine function; `None` for none."""
        ...

    @property
    def url_schemes(self) -> Collection[str]:
        """URL schemes that a server may ask the user to open."""
        ...


class ClientCalls:
    """The members that clients of one server and of several have in common."""

    _requests: Any  # sends the requests of the client
    _absent: ClassVar[Mapping[str, str]] = {}
    """Members and options of features that the package lacks, each with its feature."""

    def _pipelines(self) -> Iterable[RequestPipeline]:
        """The request pipeline of each session that is open."""
        raise NotImplementedError

    def on_log(self, function: OnLog, level: str = "info") -> Callback:
        """Register a function to call with each log message of the server, until removal.

        Each function gets its messages in order. Exceptions of the function are logged.

        Args:
            function: Gets a `LogMessage`. A coroutine function, or a plain function, which must
                not block the event loop; a blocking client runs plain functions in a thread.
            level: The lowest level to ask for in revisions where each request asks for log
                messages, unless `ask_for_logs` was called. In a session, `set_level` decides.

        Returns:
            The callback, which has `remove`, and is a context manager that removes it.

        Source: server/utilities/logging.
        """
        from .callbacks import log_callback

        return log_callback(function, level, [*map(_callbacks_of, self._pipelines())])

    def on_progress(self, function: OnProgress) -> Callback:
        """Register a function to call with the progress of each request, until removal.

        Requests that are sent from now on ask for progress, except by `request_raw`. The
        `on_progress` of a request is called as well.

        Args:
            function: Gets progress, total and message. A coroutine function, or a plain function,
                as for `on_log`.

        Returns:
            The callback, as of `on_log`.

        Source: basic/utilities/progress (2026-07-28: basic/patterns/progress).
        """
        from .callbacks import progress_callback

        return progress_callback(function, [*map(_callbacks_of, self._pipelines())])

    def ask_for_logs(self, level: str | None) -> None:
        """Ask for log messages with each request, in revisions where requests do so.

        Args:
            level: The lowest level to send; `None` for no messages.

        Source: server/utilities/logging (2026-07-28).
        """
        for requests in self._pipelines():
            requests.connection.state.log_level = level


class ClientBase(ClientCalls):
    """An open session with a server. Rendered subclasses have a coroutine for each request.

    Args:
        peer: An open peer.
        application: The client's handlers and settings.

    Attributes:
        session: The negotiated session.
    """

    def __init__(self, peer: Peer, application: ClientApplication) -> None:
        if peer.session is None:
            raise LocalProtocolError("nothing was agreed with the server yet")
        self.session: Session = peer.session
        self._peer = peer
        self._application = application
        self._requests: RequestPipeline = RequestPipeline(
            peer,
            self.session,
            application.settings,
            application.handle,
            application.server_state,
            application.hooks,
            application.task_calls,
        )
        application.server_state.param_headers.prefix = (
            self.session.revision.facts.headers.param_prefix
        )

    def __repr__(self) -> str:
        texts = [safe_text(str(self.server_info.get(key, ""))) for key in ("name", "version")]
        server = " ".join(text for text in texts if text) or "unnamed server"
        return f"<{type(self).__name__} of {server}, {self.revision} over {self._peer.transport}>"

    if not TYPE_CHECKING:  # type checkers see the rendered methods

        def __new__(cls, *arguments: Any, **options: Any) -> Self:
            """Refuse the arguments of another SDK's client.

            Raises:
                TypeError: The first argument is not a `Peer`.
            """
            if not isinstance(next(iter(arguments or options.values()), None), Peer):
                from ..absence import call_error  # for the error only

                raise call_error("Client", "expected an open session")
            return super().__new__(cls)

        def __getattr__(self, name: str) -> Any:
            """Explain why an attribute is missing.

            Raises:
                AttributeError: Always; AbsentMethodError for a message of other revisions.
            """
            if name == "session":  # not yet open
                raise AttributeError(name)
            from .handler_checks import absent_attribute

            raise absent_attribute(self, self.session.revision, name, self._absent)

    def seen_as(self, client_class: type[AnyClient]) -> AnyClient:
        """An instance of another client class for this session."""
        return client_class(self._peer, self._application)

    @property
    def cache(self) -> NoCache:
        """The cache of results that the server declared fresh for some time.

        Clear the cache to get a list in its current state.
        """
        return self._application.server_state.cache

    @property
    def revision(self) -> str:
        """The negotiated revision, such as `2025-06-18`."""
        return self.session.revision.name

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The server's `Implementation`, as wire object; empty if the server sent none."""
        return self.session.peer_info or {}

    @property
    def server_capabilities(self) -> Mapping[str, Any]:
        """The server's capabilities, as wire object."""
        return self.session.peer_capabilities

    @property
    def instructions(self) -> str | None:
        """The server's instructions for its use."""
        return self.session.instructions

    def supports(self, capability: str) -> bool:
        """Whether the server declared a capability, such as `tools` or `resources.subscribe`."""
        return is_declared(self.session.peer_capabilities, tuple(capability.split(".")))

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The server's settings of an extension; `None` unless both sides declare the extension.

        Source: basic/versioning#extension-negotiation (2026-07-28).
        """
        if settings_of(self.session.own_capabilities, identifier) is None:
            return None
        return settings_of(self.session.peer_capabilities, identifier)

    async def request(
        self,
        name: str,
        params: Mapping[str, Any] | Raw | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send any request by its wire name, with params as wire object or raw JSON.

        Args:
            name: The method; a method that no revision has is a custom method of the server.
            params: The params; `None` for no params.
            meta: Members to add to `_meta`.
            timeout: Seconds without response or progress; `None` for no limit.
            on_progress: Called with progress, total and message of each progress notification;
                `None` to request no notifications.

        Returns:
            The typed result; of a custom method, the received result as a dict.

        Raises:
            LocalProtocolError: The params do not fit the revision. Raw JSON is sent unchecked.
            MethodNotFoundError: Another revision has the method, but not that of the session.
            RemoteError: The server answered with an error.
            RequestTimeoutError: No response in time.
        """
        return await self._requests.send(name, params, meta, timeout, on_progress)

    async def request_raw(
        self,
        name: str,
        params: Mapping[str, Any] | Raw | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Raw:
        """Like `request`, but return the received result as unchecked JSON, as gateways need."""
        return await self._requests.send_raw(name, params, meta, timeout, on_progress)

    def start_call(
        self,
        method: Callable[Parameters, Coroutine[Any, Any, Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> StartedCall[Result]:
        """Start a call in a task of its own, which the caller may cancel.

            call = client.start_call(client.call_tool, "forecast", {"city": "Oslo"})
            ...
            call.cancel()

        Args:
            method: A method of this client.
            args: Its arguments, as in a direct call.
            kwargs: Its keyword arguments.

        Returns:
            The call: `await call` gives the result.

        Raises:
            ConnectionClosedError: The connection has ended.
        """
        from .callbacks import StartedCall

        return StartedCall(method(*args, **kwargs), self._peer.start_soon)

    def _pipelines(self) -> Iterable[RequestPipeline]:
        return (self._requests,)

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification by its wire name.

        Raises:
            ConnectionClosedError: The connection has ended.
            LocalProtocolError: The client did not declare the capability; nothing was sent.
            MethodNotFoundError: The revision has no such notification.
        """
        self._peer.callers.check_open()
        method = self.session.revision.client_notifications.get(name)
        if method is not None and method.capability:
            _check_declared(method, self.session.own_capabilities)
        if self._application.hooks.chain is not None:
            await self._application.hooks.chain.notification(self._peer, name, params)
            return
        await self._peer.callers.notify(name, params)

    async def _notify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification with params by Python name."""
        method = self.session.revision.client_notifications.get(name)
        if method is None:
            from .handler_checks import absent_method

            raise absent_method(self.session.revision, name)
        await self.notify(name, wire_params(method, fields, self.revision))

    def _value_reader(self, name: str, fields: Mapping[str, Any], returns: object) -> ValueReader:
        """A reader that decodes the result of a request as a type that the caller names.

        Raises:
            TypeError: The type can't be read from JSON.
        """
        from .typed_results import ValueReader

        named_by = self.session.revision.facts.method(name).named_by
        return ValueReader(str(fields.get(named_by or "")), self.revision, returns)

    async def close(self) -> None:
        """Close the session, from any task; open requests fail with ConnectionClosedError."""
        await self._peer.close()


class ClientApplication:
    """Serves the requests and notifications of a server with the user's handlers.

    Args:
        handlers: The user's handlers, or their class; `None` for none.
        identity: The client's description.
        settings: The settings of the client; the defaults if `None`.

    Attributes:
        peer_class: The class of its end of a channel.
        settings: The settings of the client.
        hooks: The callbacks and the middleware of the session.
        custom_methods: Methods that no revision has: `mcp_custom_methods` of a proxy's handlers.
        server_state: The state of the server. Transports with headers set `param_headers.mirrored`
            there, and call `param_headers.headers_for`.
    """

    peer_class: ClassVar[type[ClientPeer]] = ClientPeer
    response_cache: ClassVar[type[NoCache]] = NoCache
    param_headers: ClassVar[type[ParamHeaders]] = ParamHeaders

    @staticmethod
    def task_calls() -> TaskCalls | None:
        """The module that calls tools as tasks; `None` in a package without tasks."""
        return None

    def __init__(
        self,
        handlers: Handlers | None,
        identity: Identity,
        settings: ClientSettings | None = None,
    ) -> None:
        self.settings = settings = settings or ClientSettings()
        self.server_state = ServerState(
            settings, self.param_headers(settings.limits.tools), self.response_cache(settings.cache)
        )
        self.hooks = RequestHooks()
        self.custom_methods: Mapping[str, Method] = getattr(handlers, "mcp_custom_methods", {})
        self._handlers = handlers
        self._identity = identity
        self._descriptions: dict[str, Description] = {}

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
        return await handler_validation.answer(
            handler, context, own, self.server_state.elicitations, schemes
        )

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification of the server to its handler."""
        if not self.server_state.invalidate(context.method, context.params):
            return
        callbacks = self.hooks.callbacks
        if callbacks is not None and context.method.name == MESSAGE:
            await callbacks.pass_log_message(context.params)
        handler = self._handler(context.method)
        if handler is not None:
            await handler(context.params, context)

    def _handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        handler = None if self._handlers is None else self._handlers.mcp_handler(method)
        if handler is None or not isinstance(handler, _PLAIN) or iscoroutinefunction(handler):
            return handler
        from .callbacks import in_thread  # most handlers are coroutine functions

        threaded: Callable[[Any, RequestContext], Any] = in_thread(handler)
        return threaded


def _callbacks_of(requests: RequestPipeline) -> Callbacks:
    """The callbacks of a session."""
    if requests.hooks.callbacks is None:
        from .callbacks import Callbacks

        requests.hooks.callbacks = Callbacks(requests.connection)
    return requests.hooks.callbacks


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


def _check_declared(method: Method, capabilities: Mapping[str, Any]) -> None:
    """Refuse a notification whose capability the client did not declare."""
    if not is_declared(capabilities, method.capability):
        path = ".".join(method.capability)
        raise LocalProtocolError(
            f"{method.name}: this client did not declare {path}; `capabilities` of connect() does"
        )


def _declare(capabilities: dict[str, Any], path: tuple[str, ...]) -> None:
    here = capabilities
    for name in path:
        here = here.setdefault(name, {})
