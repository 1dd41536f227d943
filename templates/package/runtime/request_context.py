"""The context of a received request or notification, and the principal that it is handled for.

A transport that authenticates sets `PRINCIPAL` before a request is handled. Handlers read it as
`Context.principal`; without authentication it is `ANONYMOUS`.

Source: basic/authorization.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import Raw

from .._wire import encode
from .._wire import replace as replace_members
from ..channel import RequestId
from ..facts import Method, Revision
from ..foreign_text import is_scope
from ..protocol.events import ReportProgress, SendLog
from .pending_requests import OnProgress, PendingRequests

Identity: TypeAlias = tuple[str | None, str, str | None]
"""Issuer, subject, and the client if it acts for itself. Sessions, streams, tasks and request
states are bound to an identity."""

_NO_SCOPES: frozenset[str] = frozenset()


def checked_scopes(scopes: Collection[str]) -> frozenset[str]:
    """Configured scopes, as a set.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: A scope contains a character that scopes cannot contain.
    """
    if isinstance(scopes, str):
        raise TypeError(f"scopes: expected a collection of strings, got {scopes!r}")
    for scope in scopes:
        if not is_scope(scope):
            raise ValueError(
                f"scopes: expected visible ASCII without spaces, quotes and backslashes, "
                f"got {scope!r}"
            )
    return frozenset(scopes)


@dataclass(frozen=True, repr=False)
class Principal:
    """A user, or a client that acts for itself.

    Attributes:
        subject: Identifies the user at the issuer; empty for the anonymous principal.
        scopes: The granted scopes, implied scopes included.
        issuer: The authorization server that issued the token, if there is one.
        client_id: The OAuth client, if known.
        claims: Claims of the token, or members of the introspection response. Read-only.
        expires: When the token expires, in seconds since the epoch; `None` for never.
        unrestricted: Whether all scopes are granted.
        token: A credential for other services, from the environment of a local server. It never
            holds the access token of an HTTP request, which must not be passed to other services.

    Raises:
        TypeError: One string instead of a collection of scopes.
        ValueError: A scope contains a space or another character that scopes can't have.
    """

    subject: str
    _: KW_ONLY
    scopes: Collection[str] = _NO_SCOPES
    issuer: str | None = None
    client_id: str | None = None
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    expires: float | None = None
    unrestricted: bool = False
    token: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", checked_scopes(self.scopes))

    @classmethod
    def local(cls, subject: str = "local", *, token: str | None = None) -> Principal:
        """The user of a local server, with all scopes.

        Args:
            subject: Name of the user.
            token: A credential for other services, such as one from an environment variable.
        """
        return cls(subject, unrestricted=True, token=token)

    @property
    def is_anonymous(self) -> bool:
        """Whether the request was not authenticated."""
        return self is ANONYMOUS

    @property
    def identity(self) -> Identity:
        """Issuer, subject, and the client if it acts for itself.

        A user keeps the identity when the client registers again, as some clients do for each
        authorization. A client whose id equals the subject of a user has another identity.
        """
        client = self.client_id if self.client_id == self.subject else None
        return self.issuer, self.subject, client

    def with_scopes(self, scopes: Collection[str]) -> Principal:
        """A copy of the principal with other scopes."""
        return replace(self, scopes=scopes)

    def has_scopes(self, *scopes: str) -> bool:
        """Whether all of these scopes are granted."""
        return self.unrestricted or frozenset(self.scopes).issuperset(scopes)

    def __repr__(self) -> str:
        """The principal without token and claims, which must not be logged."""
        parts = [repr(self.subject)]
        parts += [f"scopes={sorted(self.scopes)}"] if self.scopes else []
        parts += [f"issuer={self.issuer!r}"] if self.issuer is not None else []
        parts += [f"client_id={self.client_id!r}"] if self.client_id is not None else []
        return f"Principal({', '.join(parts)})"


ANONYMOUS = Principal("")
"""The principal of requests that were not authenticated: it has no scopes."""

PRINCIPAL: ContextVar[Principal] = ContextVar("principal", default=ANONYMOUS)
"""The principal of the request that the current task serves."""

NETWORK: ContextVar[str | None] = ContextVar("network", default=None)
"""The network of the client over HTTP without sessions, where no connection identifies clients: an
IPv4 address, or the network of an IPv6 address; `None` elsewhere."""


class RequestContext:
    """A request or notification with everything a handler needs.

    Args:
        peer: Sends to the peer; or a function that returns the sender, called at first use.

    Attributes:
        method: The method's row in the table of the revision.
        params: Typed params, or `None`.
        raw_params: The params as received, unknown members included, or `None`.
        meta: `_meta`, empty if absent.
        revision: The revision of the message.
        request_id: Id of the request; `None` for a notification.
        peer_info: The peer's implementation info as wire object, if stated.
        peer_capabilities: The declared capabilities of the peer, as wire object.
    """

    __slots__ = (
        "_peer",
        "meta",
        "method",
        "params",
        "peer_capabilities",
        "peer_info",
        "raw_params",
        "request_id",
        "revision",
    )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ..absence import attribute_error  # for the error only

            raise attribute_error(self, name)

    def __init__(
        self,
        peer: PendingRequests | Callable[[], PendingRequests],
        method: Method,
        params: Any,
        raw_params: Raw | None,
        meta: Mapping[str, Any],
        revision: Revision,
        request_id: RequestId | None,
        peer_info: Mapping[str, Any] | None,
        peer_capabilities: Mapping[str, Any],
    ) -> None:
        self._peer = peer
        self.method = method
        self.params = params
        self.raw_params = raw_params
        self.meta = meta
        self.revision = revision
        self.request_id = request_id
        self.peer_info = peer_info
        self.peer_capabilities = peer_capabilities

    @property
    def peer(self) -> PendingRequests:
        """Sends requests and notifications to the peer."""
        peer = self._peer
        if not isinstance(peer, PendingRequests):
            peer = self._peer = peer()
        return peer

    @property
    def principal(self) -> Principal:
        """The principal of the request; `ANONYMOUS` without authentication."""
        return PRINCIPAL.get()

    def with_params(self, params: Any, raw_params: Raw | None = None) -> RequestContext:
        """A copy of the message with other typed params.

        Args:
            params: The params in the type of the revision.
            raw_params: The params encoded; by default those that were received.
        """
        return self._with(params, raw_params or self.raw_params, self.meta)

    def with_members(self, members: Mapping[str, Any]) -> RequestContext:
        """A copy of the message with some members of its params changed, by wire name."""
        raw: dict[str, Any] = msgspec.json.decode(self.raw_params or b"{}", type=dict[str, Raw])
        params = replace_members(self.params, **members)
        return self.with_params(params, Raw(encode({**raw, **members})))

    def with_meta(self, meta: Mapping[str, Any]) -> RequestContext:
        """A copy of the message with more members in `_meta`."""
        return self._with(self.params, self.raw_params, {**self.meta, **meta})

    def _with(self, params: Any, raw_params: Raw | None, meta: Mapping[str, Any]) -> RequestContext:
        return RequestContext(
            self.peer,
            self.method,
            params,
            raw_params,
            meta,
            self.revision,
            self.request_id,
            self.peer_info,
            self.peer_capabilities,
        )

    async def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, if the peer asked for it.

        Args:
            value: Progress so far; a value that is not greater than the last is dropped.
            total: The final value, if known.
            message: A description of the progress (dropped if the revision has no such member).

        Source: basic/utilities/progress.
        """
        if self.request_id is not None:
            peer, report = self.peer, ReportProgress(self.request_id, value, total, message)
            await peer.send(*peer.connection.send(report))

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if the client asked for messages of this level.

        Args:
            level: One of debug, info, notice, warning, error, critical, alert, emergency.
            data: Any JSON value.
            logger: Name of the source.

        Source: server/utilities/logging.
        """
        peer, message = self.peer, SendLog(self.request_id, level, data, logger)
        await peer.send(*peer.connection.send(message))

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send a request to the peer on behalf of this request.

        Args:
            name: The method.
            params: Typed params or a wire object.
            timeout: Seconds without response or progress; `None` for no limit.
            on_progress: Called with progress, total and message of each report; progress is
                requested only with it.

        Returns:
            The typed result.

        Raises:
            MissingCapabilityError: The peer did not declare a required capability.
            LocalProtocolError: The revision does not allow this side to send the request, or has
                other params.
            RemoteError: The peer answered with an error.
        """
        return await self.peer.request(
            name,
            params,
            timeout=timeout,
            on_progress=on_progress,
            related_request_id=self.request_id,
        )

    async def notify(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification, if the peer subscribed to it or needs no subscription."""
        await self.peer.notify(name, params, related_request_id=self.request_id)

    async def close_stream(self) -> None:
        """Close the connection on which this request is answered; see `Context.close_stream`."""
        if self.request_id is not None:
            await self.peer.channel.close_sse_stream(self.request_id)


class Application(Protocol):
    """The handlers of one side of a connection."""

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any]:
        """Answer a request.

        Returns:
            The typed result, or a wire object in the newest shape; only members of the revision are
            sent. `None` for a result without members.

        Raises:
            ProtocolError: The error for the response. Other exceptions become a neutral -32603.
        """
        ...

    async def notified(self, context: RequestContext) -> None:
        """Handle a notification."""
        ...
