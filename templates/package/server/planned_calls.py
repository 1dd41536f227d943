"""Tool calls over streams by their plans: a call that nobody observes costs only itself.

The task that reads a message runs the call too, until its function suspends. Before that nothing
can concern the call but the function itself, so it needs no open request. It becomes one when its
function suspends, fails or asks for its peer. What has no plan, or does not certainly fit it, is
served as any other message, before anything was done for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio
from msgspec import UNSET, Raw

from ..channel import OutgoingMessage, RequestId
from ..facts import Revision
from ..protocol.lifecycle import RequestMetadata
from ..protocol.server_connection import ServerMeta
from ..protocol.tool_calls import PlainCall, PlainRequest, read_again, read_call, session_of
from ..runtime.concurrency import pausing, run_eagerly
from ..runtime.peer import Peer
from ..runtime.pending_requests import PendingRequests
from ..runtime.request_context import RequestContext

logger = logging.getLogger(__name__)

ENABLED = True
"""Whether requests may be served in less than the whole way. Tests set it to `False`."""

_LONGEST = 64 * 1024  # bytes of a message; a longer one takes its time, and is read once only
_READ_LATE = ("method", "params", "raw_params", "meta")


CallEnd: TypeAlias = bytes | Coroutine[Any, Any, Any] | None
"""The end of a call: its response; or a coroutine that gives the result, as `Application.handle`
does, if the response takes more; or `None`, if the function was not called."""


class UnreadContext(RequestContext):
    """The context of a call that is read when a handler looks at it.

    Args:
        served: The call.
    """

    __slots__ = ("_served",)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in _READ_LATE:
                return super().__getattr__(name)
            request = self._served.request()
            for each in _READ_LATE:
                setattr(self, each, getattr(request, each))
            return getattr(request, name)

    def __init__(self, served: ServedCall) -> None:
        stated = served.stated
        self._served = served
        self._peer = served.observe
        self.revision = stated.revision
        self.request_id = served.id
        self.peer_info = stated.peer_info
        self.peer_capabilities = stated.peer_capabilities


class ServedCall:
    """A call that is served without being an open request, as long as nobody observes it.

    Args:
        stated: The metadata of the call.
        received: The call, or the whole request.
        body: Its message, to read the rest from.

    Attributes:
        stated: As passed.
        id: Id of the request.
        observed: Whether it is an open request.
    """

    __slots__ = ("_body", "_received", "id", "observed", "stated")

    def __init__(
        self, stated: RequestMetadata, received: PlainCall | PlainRequest, body: bytes
    ) -> None:
        self.stated = stated
        self._received = received
        self._body = body
        self.id: RequestId = received.id
        self.observed = False

    def request(self) -> PlainRequest:
        """The whole request, with typed params."""
        if isinstance(self._received, PlainCall):
            self._received = read_again(self._body, self.stated)
        return self._received

    def context(self) -> RequestContext:
        """The context of the request."""
        return UnreadContext(self)

    def observe(self) -> PendingRequests:
        """Sends to the client of the call, which is an open request from now on. Idempotent."""
        raise NotImplementedError


class CallPlan(Protocol):
    """Serves calls of one tool in one revision.

    Attributes:
        suspends: Whether the function may suspend.
        looks: Whether code of the user may look at its request: a context, or context variables.
    """

    suspends: bool
    looks: bool

    def run(
        self, identifier: RequestId, arguments: Raw, served: ServedCall
    ) -> Coroutine[Any, Any, CallEnd]:
        """Call the function.

        Args:
            identifier: Id of the request.
            arguments: The arguments, as received.
            served: The request.
        """
        ...


class StreamCall(ServedCall):
    """A call that came over a stream.

    Args:
        peer: Serves the stream.
        plan: The plan of the tool.
        stated: The metadata of the call.
        call: The call.
        body: Its message.
    """

    __slots__ = ("_arguments", "_peer", "_plan")

    def __init__(
        self, peer: Peer, plan: CallPlan, stated: RequestMetadata, call: PlainCall, body: bytes
    ) -> None:
        super().__init__(stated, call, body)
        self._peer = peer
        self._plan = plan
        self._arguments = call.params.arguments

    def observe(self) -> PendingRequests:
        """Sends to the client of the call, which is an open request from now on. Idempotent."""
        if not self.observed:
            self.observed = True
            self._peer.connection.register(self.request().event(), self.stated)
        return self._peer.callers

    async def serve(self, scope: anyio.CancelScope, hand_over: Callable[[], None]) -> bool:
        """Serve the call in the task that reads; `False` if nothing was done for it.

        Args:
            scope: The scope of the task.
            hand_over: Called when the function suspends: another task has to read then.
        """
        peer = self._peer

        def on_wait() -> None:
            self.observe()
            peer.begin(self.id, scope)
            hand_over()

        running = self._plan.run(self.id, self._arguments, self)
        end = await (run_eagerly if self._plan.looks else pausing)(running, on_wait)
        if end is None:
            return False
        if isinstance(end, bytes):
            self.observed = True  # a context that is kept makes it no open request any more
            revision = self.stated.revision
            message = OutgoingMessage(end, "response", self.id, "", revision, self.id)
            await peer.callers.send(message)
        else:
            self.observe()
            await peer.handle(self.request().event(), scope, end)
        return True


def planned_calls(
    find: Callable[[Revision, str], CallPlan | None], meta: ServerMeta, peer: Peer
) -> Callable[[bytes], StreamCall | None]:
    """Reads the calls of a stream that have a plan; gives `None` for any other message.

    Args:
        find: The plan of a tool in a revision, if it has one.
        meta: `_meta` that the connection of the stream has.
        peer: Serves the stream.
    """
    known, connection = meta.reader.known, peer.connection

    def read(body: bytes) -> StreamCall | None:
        call = read_call(body) if ENABLED and len(body) <= _LONGEST else None
        if call is None:
            return None
        raw = call.params.meta
        if raw is UNSET:
            stated = session_of(call, connection)
        else:
            stated = None if connection.is_open(call.id) else known(bytes(raw))
        plan = None if stated is None else find(stated.revision, call.params.name)
        if stated is None or plan is None:
            return None
        return StreamCall(peer, plan, stated, call, body)

    return read
