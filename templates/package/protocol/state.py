"""What the two halves of a connection share: who speaks, what was agreed, what is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..channel import RequestId
from ..facts import Lifecycle, Method, Revision, Revisions, Role, other
from .lifecycle import Description, Session
from .requests import InboundRequest, OutboundRequests
from .subscriptions import Streams


@dataclass
class ConnectionState:
    """The state of one connection.

    Attributes:
        role: Which end this is.
        revisions: The revisions to speak.
        describe: This side's account of itself in a revision.
        extensions: Methods beyond the revisions', by wire name; both sides may send them.
        extra: Whether the objects of results keep the members that their schemas do not have.
        session: What was agreed; `None` before, and always on a server without handshake.
        calls: Requests we sent.
        serving: Requests the peer sent.
        streams: Subscription streams of a server.
        log_level: Least level of log messages that a client asks for with each request.
    """

    role: Role
    revisions: Revisions
    describe: Callable[[Revision], Description]
    extensions: Mapping[str, Method]
    extra: bool = False
    session: Session | None = None
    calls: OutboundRequests = field(default_factory=OutboundRequests)
    serving: dict[RequestId, InboundRequest] = field(
        default_factory=dict[RequestId, InboundRequest]
    )
    streams: Streams = field(default_factory=Streams)
    log_level: str | None = None

    @property
    def peer_role(self) -> Role:
        """The other end."""
        return other(self.role)

    @cached_property
    def newest(self) -> Revision:
        """The newest of the revisions."""
        return self.revisions.newest()

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self.session.revision if self.session is not None else self.newest

    def spoken(self) -> list[Revision]:
        """The revisions that a notification may belong to, likeliest first."""
        session = self.session
        agreed = [session.revision] if session is not None else []
        if self.role == "client" and agreed:
            return agreed
        modern = self.revisions.of(Lifecycle.PER_REQUEST)
        return [*agreed, modern.newest()] if modern else agreed or [self.newest]

    def outgoing_request(self, revision: Revision, name: str) -> Method | None:
        """A request this side may send."""
        return revision.requests_from(self.role).get(name) or self.extensions.get(name)

    def incoming_request(self, revision: Revision, name: str) -> Method | None:
        """A request this side may receive."""
        return revision.requests_from(self.peer_role).get(name) or self.extensions.get(name)

    def own_capabilities(self, revision: Revision) -> Mapping[str, Any]:
        """What this side declared: for good in a session, as it is now without one."""
        session = self.session
        if session is not None and revision.lifecycle is Lifecycle.HANDSHAKE:
            return session.own_capabilities
        return self.describe(revision).capabilities
