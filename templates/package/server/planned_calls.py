"""Tool calls that are read in one pass, and served without being open requests.

Most calls have no new metadata: they repeat the `_meta` of the request before, or belong to a
session that has admitted calls. Reading such a call changes no state. Until its function suspends,
no other task runs, so nothing else can refer to the call. It becomes an open request like any other
(`Connection.register`) when its function suspends, fails or sends to its peer. A call without a
plan, or one that may not fit its plan, is served like any other message, from its beginning.

Over streams the task that reads a message runs the call too.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias

import anyio
import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import UNREADABLE
from ..channel import OutgoingMessage, RequestId
from ..facts import Method, Revision
from ..protocol import jsonrpc
from ..protocol.connection import Connection
from ..protocol.lifecycle import RequestMetadata
from ..protocol.receiver import RequestReceived
from ..protocol.request_meta import NO_META
from ..runtime.concurrency import run_eagerly
from ..runtime.peer import Peer
from ..runtime.pending_requests import PendingRequests
from ..runtime.request_context import RequestContext

logger = logging.getLogger(__name__)

ENABLED = True
"""Whether plans serve calls. Tests set it to `False`, to compare the responses."""

_LONGEST = 64 * 1024  # bytes of a message; longer ones are slow, and should be read once only
_READ_LATE = ("method", "params", "raw_params", "meta")


class _CallParams(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Params of a tool call without further members, such as a task or input responses."""

    name: str
    arguments: Raw = Raw(b"{}")
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_Id: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=jsonrpc.ID_CHARACTERS)]
)


class PlainCall(msgspec.Struct, gc=False):
    """A tool call of any revision, read in one pass over its JSON."""

    jsonrpc: Literal["2.0"]
    id: _Id
    method: Literal["tools/call"]
    params: _CallParams


_decode_call = msgspec.json.Decoder(PlainCall).decode


_SHALLOW = 400  # bytes, which can't be nested so deeply that reading them exceeds the stack
_MOST_BRACKETS = 200  # of a longer body, for the same reason


def read_call(body: bytes) -> PlainCall | None:
    """The tool call in a body; `None` for any other body.

    Calls with further params, or with as many brackets as deep nesting needs, give `None` too.
    """
    if b'"tools/call"' not in body:
        return None
    if len(body) > _SHALLOW and body.count(b"{") + body.count(b"[") > _MOST_BRACKETS:
        return None
    try:
        return _decode_call(body)
    except UNREADABLE:
        return None


class PlainRequest(msgspec.Struct, frozen=True):
    """A request that was read without a connection.

    Attributes:
        id: The request's id.
        method: Its row in the method table.
        params: Typed params.
        raw_params: The params as received.
        meta: Its `_meta`, empty if absent.
        stated: Its metadata: its own, or that of its session.
    """

    id: RequestId
    method: Method
    params: Any
    raw_params: Raw
    meta: Mapping[str, Any]
    stated: RequestMetadata

    def event(self) -> RequestReceived:
        """The event of a connection that received the request."""
        stated = self.stated
        return RequestReceived(
            self.id,
            self.method,
            self.params,
            self.raw_params,
            self.meta,
            stated.revision,
            stated.peer_info,
            stated.peer_capabilities,
        )


def read_request(body: bytes, stated: RequestMetadata) -> PlainRequest:
    """The whole request in a body that `read_call` has read."""
    message = jsonrpc.parse(body)
    assert isinstance(message, jsonrpc.Request)
    assert message.params is not None
    method = stated.revision.client_requests[message.method]
    params = method.decode_params(message.params)
    meta = getattr(params, "meta", None) or NO_META  # some drafts have no such member
    return PlainRequest(message.id, method, params, message.params, meta, stated)


def session_of(call: PlainCall, connection: Connection) -> RequestMetadata | None:
    """The metadata of the session of a call without `_meta`; `None` if it admits no calls."""
    session = connection.ready_session(call.id)
    if session is None or call.method not in session.admitted or call.params.meta is not UNSET:
        return None
    return session.metadata


CallEnd: TypeAlias = bytes | Coroutine[Any, Any, Any] | None
"""The end of a call: its response; a coroutine that returns the result, like that of
`Application.handle`, if the result has to be awaited; or `None`, if the function was not called."""


class UnreadContext(RequestContext):
    """The context of a call whose params are read when a handler accesses them.

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


class ServedCall(ABC):
    """A call that is served without being an open request, until `observe` makes it one.

    Subclasses set the attributes themselves, which saves a function call for each request.

    Attributes:
        stated: The metadata of the call.
        id: Id of the request.
        received: The call as read, or the whole request.
        body: The message, from which the whole request is read.
        observed: Whether it is an open request.
    """

    __slots__ = ("body", "id", "observed", "received", "stated")

    stated: RequestMetadata
    id: RequestId
    received: PlainCall | PlainRequest
    body: bytes
    observed: bool

    def request(self) -> PlainRequest:
        """The whole request, with typed params."""
        if isinstance(self.received, PlainCall):
            self.received = read_request(self.body, self.stated)
        return self.received

    def context(self) -> RequestContext:
        """The context of the request."""
        return UnreadContext(self)

    @abstractmethod
    def observe(self) -> PendingRequests:
        """Make the call an open request, and return the peer of its client. Idempotent."""


class CallPlan(Protocol):
    """Serves calls of one tool in one revision.

    Attributes:
        suspends: Whether the function may suspend.
        looks: Whether user code may access the request, by a context or by context variables.
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
        body: The message.
    """

    __slots__ = ("_arguments", "_peer", "_plan")

    def __init__(
        self, peer: Peer, plan: CallPlan, stated: RequestMetadata, call: PlainCall, body: bytes
    ) -> None:
        self.stated = stated
        self.id = call.id
        self.received = call
        self.body = body
        self.observed = False
        self._peer = peer
        self._plan = plan
        self._arguments = call.params.arguments

    def observe(self) -> PendingRequests:
        """See `ServedCall`."""
        if not self.observed:
            self.observed = True
            self._peer.connection.register(self.request().event(), self.stated)
        return self._peer.callers

    async def serve(self, scope: anyio.CancelScope, hand_over: Callable[[], None]) -> bool:
        """Serve the call in the task that reads the stream; `False` if it was not begun.

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
        end = await run_eagerly(running, on_wait)
        if end is None:
            return False
        if isinstance(end, bytes):
            self.observed = True  # so that a stored context does not open the request later
            revision = self.stated.revision
            message = OutgoingMessage(end, "response", self.id, "", revision, self.id)
            await peer.callers.send(message)
        else:
            self.observe()
            await peer.handle(self.request().event(), scope, end)
        return True


def planned_calls(
    find: Callable[[Revision, str], CallPlan | None],
) -> Callable[[bytes, Peer], StreamCall | None]:
    """A function that reads calls with a plan; it returns `None` for any other message.

    Args:
        find: The plan of a tool in a revision, if it has one.
    """

    def read(body: bytes, peer: Peer) -> StreamCall | None:
        call = read_call(body) if ENABLED and len(body) <= _LONGEST else None
        if call is None:
            return None
        raw, connection = call.params.meta, peer.connection
        stated: RequestMetadata | None = None
        if raw is UNSET:
            stated = session_of(call, connection)
        elif not connection.is_open(call.id):
            stated = connection.repeated_metadata(bytes(raw))
        plan = None if stated is None else find(stated.revision, call.params.name)
        if stated is None or plan is None:
            return None
        return StreamCall(peer, plan, stated, call, body)

    return read
