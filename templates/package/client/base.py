"""What every client face stands on: an open session, and the user's handlers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Raw

from .._wire import convert, is_object, members_of, to_builtins
from ..errors import LocalProtocolError, MethodNotFoundError
from ..facts import Method, Revision
from ..foreign_text import safe_text
from ..protocol.capabilities import CAPABILITY, check_extensions, settings_of
from ..protocol.lifecycle import Description, Session, declared
from ..protocol.uris import WEB_SCHEMES
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.request_context import RequestContext
from . import handler_validation
from .pipeline import RequestPipeline, ServerState
from .response_cache import Caching, ResponseCache

if TYPE_CHECKING:  # most clients do not listen
    from .listen import Listeners, Subscription

Face = TypeVar("Face", bound="ClientBase")


class Handlers(Protocol):
    """What a client answers and hears: a rendered `ClientHandlers` is one."""

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The user's own coroutine function for a method; `None` if it was not overridden."""
        ...

    @property
    def url_schemes(self) -> Collection[str]:
        """Schemes of the addresses that a server may ask the user to open."""
        ...


class ClientBase:
    """An open session with a server. The rendered faces add a coroutine for each request.

    Args:
        peer: An open peer.
        application: What answers the server's input requests.
        limit: Seconds until a call with a timeout counts as lost, whatever progress comes.
        list_limit: Seconds for all pages of a list together.

    Attributes:
        session: What was agreed with the server.
    """

    def __init__(
        self, peer: Peer, application: ClientApplication, limit: float, list_limit: float
    ) -> None:
        if peer.session is None:
            raise LocalProtocolError("nothing was agreed with the server yet")
        self.session: Session = peer.session
        self._peer = peer
        self._application = application
        self._limits = limit, list_limit
        self._requests = RequestPipeline(
            peer, self.session, limit, list_limit, application.handle, application.server_state
        )
        self._call, self._pages = self._requests.call, self._requests.pages  # for the faces
        self._listeners: Listeners | None = None
        application.server_state.param_headers.prefix = (
            self.session.revision.facts.headers.param_prefix
        )

    def __repr__(self) -> str:
        named = [safe_text(str(self.server_info.get(key, ""))) for key in ("name", "version")]
        server = " ".join(text for text in named if text) or "unnamed server"
        return f"<{type(self).__name__} of {server}, {self.revision} over {self._peer.transport}>"

    def seen_as(self, face: Callable[[Peer, ClientApplication, float, float], Face]) -> Face:
        """The same session by another face."""
        return face(self._peer, self._application, *self._limits)

    @property
    def cache(self) -> ResponseCache:
        """The results kept for as long as the server says that they are fresh.

        To see a list as it is now, as a whole, clear it first.
        """
        return self._application.server_state.cache

    @property
    def input_rounds(self) -> int:
        """How often in a row the server may ask for input before it gives its result."""
        return self._requests.rounds

    @input_rounds.setter
    def input_rounds(self, rounds: int) -> None:
        self._requests.rounds = rounds

    @property
    def revision(self) -> str:
        """The revision that both sides speak, such as `2025-06-18`."""
        return self.session.revision.name

    @property
    def server_info(self) -> Mapping[str, Any]:
        """How the server calls itself, as wire object; empty if it did not say."""
        return self.session.peer_info or {}

    @property
    def server_capabilities(self) -> Mapping[str, Any]:
        """What the server declared, as wire object."""
        return self.session.peer_capabilities

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used."""
        return self.session.instructions

    def supports(self, capability: str) -> bool:
        """Whether the server declared a capability, such as `tools` or `resources.subscribe`."""
        return declared(self.session.peer_capabilities, tuple(capability.split(".")))

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings by which the server declares an extension; `None` unless both sides do.

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
            name: The method.
            params: Its params; `None` for none.
            meta: What to add to `_meta`.
            timeout: Seconds without answer or progress; `None` for no limit.
            on_progress: Called with progress, total and message of each report; asks for them.

        Returns:
            The typed result.

        Raises:
            RemoteError: The server answered with an error.
            RequestTimeoutError: No answer in time.
        """
        return await self._requests.send(name, params, meta, timeout, on_progress)

    async def request_raw(
        self,
        name: str,
        params: Mapping[str, Any] | Raw | None = None,
        *,
        timeout: float | None = None,
    ) -> Raw:
        """Like `request`, but give the result as it came: for gateways, nothing is lost."""
        return await self._requests.send_raw(name, params, timeout)

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification by its wire name.

        Raises:
            ConnectionClosedError: The connection has ended.
            LocalProtocolError: It tells of what this client did not declare; nothing was sent.
            MethodNotFoundError: The revision has no such notification.
        """
        self._peer.callers.check_open()
        method = self.session.revision.client_notifications.get(name)
        if method is not None and method.capability:
            _check_announced(method, self.session.own_capabilities)
        await self._peer.callers.notify(name, params)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retry_seconds: Sequence[float] | None = None,
        idle_seconds: float | None = 20.0,
    ) -> Subscription:
        """Hear of changes: the same in every revision, by a stream or in the session.

            async with client.listen(tools=True, uris=["memo://one"]) as changes:
                async for change in changes:
                    match change:
                        case ToolsChanged(): ...
                        case ResourceUpdated(uri=uri): ...

        It begins once the server has agreed, and `changes.agreed` says to what. The iteration ends
        when the server ends the subscription; leaving the block ends it as well. A change that was
        not taken yet when it comes again is given once.

        Args:
            tools: Whether changes of the list of tools are wanted.
            prompts: The same of the list of prompts.
            resources: The same of the list of resources.
            uris: Resources whose updates are wanted.
            meta: What to add to `_meta`.
            timeout: Seconds for the server to agree; `None` for no limit.
            retry_seconds: Pauses before a stream that was lost, while the connection lives, is
                asked for again; a `ListeningAgain` tells of it. Nothing for never.
            idle_seconds: Seconds without a change after which the iteration asks the server for a
                sign of life (`ping`, or `server/discover`), and which it has for that. Without one
                the stream counts as lost. `None` for never. So a server that is gone is an error
                after thrice as long and half as long again as all pauses, or sooner.

        Raises:
            RemoteError: (on entry) The server refuses.
            RequestTimeoutError: (on entry, or in the iteration) It did not agree, or give a sign of
                life, in time.
            TransportError: (on entry, or in the iteration) The stream was lost and can't be had
                again.
            ConnectionClosedError: (on entry, or in the iteration) The connection ended. The server
                forgets subscriptions; over the next connection they have to be made again.

        Source: basic/patterns/subscriptions (2026-07-28), server/resources#subscriptions.
        """
        from .change_events import NotificationFilter
        from .listen import RETRY_SECONDS, Listeners, Subscription

        if isinstance(uris, str):
            raise TypeError(f"uris: expected several URIs, got the text {uris!r}")
        if self._listeners is None:
            self._listeners = Listeners(self._peer.callers, self._requests, self.session)
        wanted = NotificationFilter(tools, prompts, resources, tuple(dict.fromkeys(uris)))
        pauses = RETRY_SECONDS if retry_seconds is None else retry_seconds
        return Subscription(self._listeners, wanted, meta, timeout, pauses, idle_seconds)

    async def close(self) -> None:
        """End the session. Works from any task; open requests fail with ConnectionClosedError."""
        await self._peer.close()

    def ask_for_logs(self, level: str | None) -> None:
        """Ask for log messages with each request, in revisions where requests do so.

        Args:
            level: The least level wanted; `None` for no messages.

        Source: server/utilities/logging (2026-07-28).
        """
        self._peer.connection.ask_for_logs(level)


@dataclass(frozen=True)
class Identity:
    """How a client introduces itself, as wire objects.

    Attributes:
        info: Name and version, and what else an `Implementation` may say.
        capabilities: What the user declares beyond what the handlers show.
    """

    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]


class ClientApplication:
    """Serves a server's requests with the user's handlers.

    Args:
        handlers: The user's handlers, or `None`.
        identity: How the client introduces itself.
        caching: How many results are kept; `None` for none.
        extra: Whether the objects of results keep the members that their schemas do not have.

    Attributes:
        extra: The same.
        server_state: The state of the server. Transports with headers set `param_headers.mirrored`
            there, and call `param_headers.headers_for`.
    """

    def __init__(
        self,
        handlers: Handlers | None,
        identity: Identity,
        caching: Caching | None = None,
        extra: bool = False,
    ) -> None:
        self.extra = extra
        self.server_state = ServerState(ResponseCache(caching))
        self._handlers = handlers
        self._identity = identity
        self._descriptions: dict[str, Description] = {}

    def declare_extensions(self, identifiers: Collection[str]) -> None:
        """Declare extensions, without settings, beside those that the user declares."""
        capabilities = self._identity.capabilities
        given = capabilities.get(CAPABILITY, {})
        if identifiers and is_object(given):  # anything else is refused by `describe`
            merged: dict[str, Any] = {CAPABILITY: {**{name: {} for name in identifiers}, **given}}
            self._identity = Identity(self._identity.info, {**capabilities, **merged})

    def describe(self, revision: Revision) -> Description:
        """Name and capabilities, in the shape of a revision.

        Raises:
            ValueError: An extension that the revision lets a client declare is no proper one.
        """
        known = self._descriptions.get(revision.name)
        if known is None:
            capabilities = _announceable(self._identity.capabilities, revision)
            for method in (*revision.server_requests.values(), *revision.input_requests.values()):
                if method.capability and self._handler(method) is not None:
                    _declare(capabilities, method.capability)
            if CAPABILITY in members_of(revision.client_capabilities):
                check_extensions(capabilities, revision.facts)
            known = Description(
                _shaped(self._identity.info, revision.implementation),
                _shaped(capabilities, revision.client_capabilities),
            )
            self._descriptions[revision.name] = known
        return known

    async def handle(self, context: RequestContext) -> Any:
        """Answer one of the server's requests.

        Raises:
            MethodNotFoundError: The user has no handler for it.
            ProtocolError: The server must not ask it, or the handler's answer breaks a rule.
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
        """Pass one of the server's notifications on."""
        if not self.server_state.invalidate(
            context.method.name, context.params, context.revision.facts
        ):
            return
        handler = self._handler(context.method)
        if handler is not None:
            await handler(context.params, context)

    def _handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        return None if self._handlers is None else self._handlers.mcp_handler(method)


def _announceable(capabilities: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """A copy, without `listChanged` where the revision has no notification to announce it by."""
    known = {method.capability for method in revision.client_notifications.values()}
    made = dict(capabilities)
    for name, value in capabilities.items():
        if is_object(value):
            flags = made[name] = dict(value)
            if (name, "listChanged") not in known:
                flags.pop("listChanged", None)
    return made


def _check_announced(method: Method, capabilities: Mapping[str, Any]) -> None:
    """Refuse to tell of what the server was not told to expect: it need not listen."""
    if not declared(capabilities, method.capability):
        path = ".".join(method.capability)
        raise LocalProtocolError(
            f"{method.name}: this client did not declare {path}; `capabilities` of connect() does"
        )


def _declare(capabilities: dict[str, Any], path: tuple[str, ...]) -> None:
    here = capabilities
    for name in path:
        here = here.setdefault(name, {})


def _shaped(wire: Mapping[str, Any], kind: Any) -> Mapping[str, Any]:
    """A wire object with the members that a type has, and no other."""
    shaped: Mapping[str, Any] = to_builtins(convert(wire, kind))
    return shaped
