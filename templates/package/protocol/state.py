"""The state of one connection: roles, what was agreed, and the requests open in each direction.

Ids of our requests are a counter and never recur, which satisfies every revision. The progress
token of a request is its id, so that it is unique for as long as the request is open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import msgspec

from ..channel import RequestId
from ..facts import Lifecycle, Method, Revision, Revisions, Role, other
from .jsonrpc import is_id
from .lifecycle import Description, Session
from .notifications import SubscriptionStreams
from .request_meta import MetaCache


class InboundRequest(msgspec.Struct):
    """A request of the peer without response yet.

    Attributes:
        method: Its row in the method table.
        revision: The revision by which it is served.
        params: Its typed params.
        progress_token: The token for progress reports; `None` if none are wanted.
        log_level: The least level of log messages that its sender wants; `None` if not stated.
        peer_capabilities: What its sender declared.
        progress: The last value reported.
    """

    method: Method
    revision: Revision
    params: Any
    progress_token: RequestId | None
    log_level: str | None
    peer_capabilities: Mapping[str, Any]
    progress: float | None = None

    def silence(self) -> None:
        """Send neither progress nor log messages for the request, even if it asked for them."""
        self.progress_token = self.log_level = None

    def advance(self, value: float) -> bool:
        """Record a progress value; `False` if it is not wanted or not more than the last."""
        if self.progress_token is None or (self.progress is not None and value <= self.progress):
            return False
        self.progress = value
        return True


def progress_token_of(meta: Mapping[str, Any]) -> RequestId | None:
    """The progress token in a request's `_meta`; a malformed one is treated as absent."""
    token = meta.get("progressToken")
    return token if is_id(token) else None


class OutboundRequest(msgspec.Struct):
    """A request of ours without response yet.

    Attributes:
        method: Its row in the method table.
        revision: The revision by which the response is read.
        wants_progress: Whether it carries a progress token.
        timeout: Seconds without response or progress until it is lost; `None` for no limit.
        deadline: The moment at which the timeout ends, on the caller's clock.
        limit: The moment at which it is lost despite progress.
    """

    method: Method
    revision: Revision
    wants_progress: bool = False
    timeout: float | None = None
    deadline: float | None = None
    limit: float | None = None

    def extend(self, now: float) -> None:
        """Restart the timeout, within the limit."""
        if self.timeout is not None:
            deadline = now + self.timeout
            self.deadline = deadline if self.limit is None else min(deadline, self.limit)


class OutboundRequests:
    """The open requests of this side by id; `"7"` is not `7`."""

    def __init__(self) -> None:
        self._open: dict[RequestId, OutboundRequest] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, request: OutboundRequest) -> int:
        """Add a request and assign its id."""
        self._last_id += 1
        self._open[self._last_id] = request
        return self._last_id

    def get(self, identifier: RequestId) -> OutboundRequest | None:
        """The open request with an id."""
        return self._open.get(identifier)

    def pop(self, identifier: RequestId) -> OutboundRequest | None:
        """Remove the request with an id: it was answered, cancelled or lost."""
        return self._open.pop(identifier, None)

    @property
    def next_id(self) -> int:
        """The id of the next request."""
        return self._last_id + 1

    def ids(self) -> tuple[RequestId, ...]:
        """The ids of the open requests."""
        return tuple(self._open)

    def drain(self) -> list[RequestId]:
        """Remove all requests and return their ids."""
        identifiers = list(self._open)
        self._open.clear()
        return identifiers

    def next_deadline(self) -> float | None:
        """The earliest deadline among the open requests."""
        deadlines = [each.deadline for each in self._open.values() if each.deadline is not None]
        return min(deadlines, default=None)

    def expired(self, now: float) -> list[RequestId]:
        """The requests whose deadline has passed."""
        return [
            identifier
            for identifier, request in self._open.items()
            if request.deadline is not None and request.deadline <= now
        ]


Admit: TypeAlias = Callable[[str, Sequence[str]], Sequence[str]]
"""Those of some subjects whose changes a server reports to a peer, by the notification."""

OnSubscription: TypeAlias = Callable[[Collection[str]], object]
"""Told the URIs of resources to whose updates a client subscribes by a stream."""


class ConnectionState(msgspec.Struct, dict=True):
    """The state that both directions of a connection share.

    Attributes:
        role: The role of this side.
        revisions: The revisions to speak.
        describe: This side's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        meta: `_meta` shared with other connections of the same client or server.
        extra: Whether the objects of results keep the members that their schemas do not have.
        admit: Which of the subjects in a subscription to a notification are admitted.
        on_subscription: Told the resources to whose updates a new stream subscribes.
        session: What was agreed; `None` before that, and always on a server without handshake.
        outbound: Requests that this side sent.
        inbound: Requests that the peer sent, by id.
        streams: Subscription streams of a server.
        log_level: The least level of log messages that a client asks for in each request.
    """

    role: Role
    revisions: Revisions
    describe: Callable[[Revision], Description]
    extensions: Mapping[str, Method]
    meta: MetaCache
    extra: bool = False
    admit: Admit | None = None
    on_subscription: OnSubscription | None = None
    session: Session | None = None
    outbound: OutboundRequests = msgspec.field(default_factory=OutboundRequests)
    inbound: dict[RequestId, InboundRequest] = msgspec.field(
        default_factory=dict[RequestId, InboundRequest]
    )
    streams: SubscriptionStreams = msgspec.field(default_factory=SubscriptionStreams)
    log_level: str | None = None

    @cached_property
    def peer_role(self) -> Role:
        """The role of the peer."""
        return other(self.role)

    @cached_property
    def newest(self) -> Revision:
        """The newest of the revisions."""
        return self.revisions.newest()

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self.session.revision if self.session is not None else self.newest

    def candidate_revisions(self) -> list[Revision]:
        """The revisions that a notification may belong to, most likely first."""
        session = self.session
        agreed = [session.revision] if session is not None else []
        if self.role == "client" and agreed:
            return agreed
        per_request = self.revisions.of(Lifecycle.PER_REQUEST)
        return [*agreed, per_request.newest()] if per_request else agreed or [self.newest]

    def outbound_method(self, revision: Revision, name: str) -> Method | None:
        """A request that this side may send."""
        is_client = self.role == "client"
        methods = revision.client_requests if is_client else revision.server_requests
        return methods.get(name) or self.extensions.get(name)

    def inbound_method(self, revision: Revision, name: str) -> Method | None:
        """A request that this side may receive."""
        is_client = self.role == "client"
        methods = revision.server_requests if is_client else revision.client_requests
        return methods.get(name) or self.extensions.get(name)

    def own_capabilities(self, revision: Revision) -> Mapping[str, Any]:
        """What this side declared: fixed within a session, otherwise the current state."""
        session = self.session
        if session is not None and revision.lifecycle is Lifecycle.HANDSHAKE:
            return session.own_capabilities
        return self.describe(revision).capabilities
