"""The base of every client class: an open session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from msgspec import Raw

from ..errors import LocalProtocolError
from ..facts import Method
from ..foreign_text import safe_text
from ..protocol.lifecycle import Session, is_declared, settings_of
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from ..runtime.stubs import wire_params
from .application import ClientApplication
from .pipeline import RequestPipeline

AnyClient = TypeVar("AnyClient", bound="ClientBase")


class ClientBase:
    """An open session with a server. Rendered subclasses have a coroutine for each request.

    Args:
        peer: An open peer.
        application: The client's handlers and settings.

    Attributes:
        session: The negotiated session.
    """

    _absent: ClassVar[Mapping[str, str]] = {}
    """Members and options of features that the package lacks, each with its feature."""

    def __init__(self, peer: Peer, application: ClientApplication) -> None:
        if peer.session is None:
            raise LocalProtocolError("nothing was agreed with the server yet")
        self.session: Session = peer.session
        self._peer = peer
        self._application = application
        self._requests: RequestPipeline = application.new_requests(peer, self.session)

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
        if self._application.chain is not None:
            await self._application.chain.notification(self._peer, name, params)
            return
        await self._peer.callers.notify(name, params)

    async def _notify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification with params by Python name."""
        method = self.session.revision.client_notifications.get(name)
        if method is None:
            from .handler_checks import absent_method

            raise absent_method(self.session.revision, name)
        await self.notify(name, wire_params(method, fields, self.revision))

    async def close(self) -> None:
        """Close the session, from any task; open requests fail with ConnectionClosedError."""
        await self._peer.close()


def _check_declared(method: Method, capabilities: Mapping[str, Any]) -> None:
    """Refuse a notification whose capability the client did not declare."""
    if not is_declared(capabilities, method.capability):
        path = ".".join(method.capability)
        raise LocalProtocolError(
            f"{method.name}: this client did not declare {path}; `capabilities` of connect() does"
        )
