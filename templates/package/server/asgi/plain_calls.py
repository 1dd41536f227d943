"""The plain way of a request: what nobody observes costs only itself.

Until a handler suspends, no other task runs. So nothing can cancel its request, ask how many are
open, or send a message before the response, unless the handler itself asks for its peer. A request
whose handler returns without any of that needs no connection, no peer and no response writer: it
is decoded, handled, encoded and sent.

The handler is begun at once, in the task of the request, and never twice. If it fails or asks for
its peer, the objects of the whole way are made at that moment. If it suspends, they are made by
whatever may concern the request first: the next message of its session, a look at all calls that
wait for long, or the end of the server. The plain way refuses nothing and has no errors of its own:
a request that is not certainly plain is left to the whole way, before anything was done for it.

Most requests state nothing new: they repeat the `_meta` of the request before them, or belong to a
session that has admitted their method. Reading such a request changes no state, so its typed params
are all that is needed (`PlainRequests`).

A tool call that has a plan (see `CallPlan`) takes less still: its params are decoded when somebody
looks at them, and a function that can't suspend needs no cancel scope either.

Checks of the head, limits, authentication, tracing and middleware are those of the whole way: they
come before and around this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from time import monotonic
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec

from ..._wire import UNREADABLE
from ...facts import Method, Revision
from ...protocol import jsonrpc
from ...protocol.connection import Connection
from ...protocol.handshake import FOLLOWING, HandshakeReceiver
from ...protocol.lifecycle import DISCOVER, Description, RequestMetadata, is_declared
from ...protocol.request_meta import NO_META, MetaCache, lacks_meta
from ...protocol.requests import encode_response
from ...runtime.concurrency import never_suspends, outcome, resume
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import RequestContext
from ..planned_calls import CallEnd, PlainCall, PlainRequest, ServedCall
from .http_response import send_json
from .request import HttpRequest, Receive, Send

logger = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
"""A message of ASGI."""

Post: TypeAlias = tuple[HttpRequest, Receive, Send]
"""A POST, and the ASGI callables that belong to it."""

Finish: TypeAlias = Callable[[anyio.CancelScope, Awaitable[Any]], Awaitable[None]]
"""Awaits a handler that was begun, in the scope of this task, and responds."""

Opened: TypeAlias = tuple[PendingRequests, Finish | None]
"""Sends to the client of an open request; and finishes it, unless its response was sent."""

Running: TypeAlias = Coroutine[Any, Any, CallEnd]
"""The handler of a request."""


_STATEFUL = FOLLOWING | HandshakeReceiver.own_requests() | {DISCOVER}
"""Requests that change or read the state of a connection."""


class _Plan(msgspec.Struct, frozen=True):
    """The parts that requests of one revision share.

    Attributes:
        description: The description of the server that declares the methods.
        methods: The requests that are declared, by wire name.
        own_meta: `_meta` of every result, empty for none; and the same, as JSON.
    """

    description: Description
    methods: Mapping[str, Method]
    own_meta: tuple[Mapping[str, Any], Any]


class PlainRequests:
    """Reads the requests of one server's clients, and encodes the responses to these.

    Args:
        describe: The description of the server, by revision.
        meta: `_meta` shared with the connections of the same requests.
    """

    def __init__(self, describe: Callable[[Revision], Description], meta: MetaCache) -> None:
        self._describe = describe
        self._meta = meta
        self._plans: dict[str, _Plan] = {}

    def read(
        self, message: jsonrpc.Request, stated: RequestMetadata | None, meta: Mapping[str, Any]
    ) -> PlainRequest | None:
        """A request that repeats the `_meta` of the last one; `None` for any other.

        Args:
            message: The request.
            stated: The metadata of the last request, if it stated some.
            meta: `_meta` of the last request.
        """
        raw = message.params
        if stated is None or raw is None:
            return None
        method = self._plan(stated.revision).methods.get(message.method)
        if method is None:
            return None
        try:
            params = method.decode_params(raw)
        except (*UNREADABLE, RecursionError):
            return None
        if getattr(params, "meta", None) != meta:
            return None
        return PlainRequest(message.id, method, params, raw, params.meta, stated)

    def read_in_session(
        self, message: jsonrpc.Request, connection: Connection
    ) -> PlainRequest | None:
        """A request without `_meta` whose method the session has admitted; `None` for any other."""
        session, raw = connection.ready_session(message.id), message.params
        if session is None or raw is None:
            return None
        method = session.admitted.get(message.method)
        if (
            method is None
            or method.params is None
            or message.method in _STATEFUL
            or not lacks_meta(bytes(raw))
        ):
            return None
        try:
            params = method.decode_params(raw)
        except (*UNREADABLE, RecursionError):
            return None
        return PlainRequest(message.id, method, params, raw, NO_META, session.metadata)

    def encode(self, request: PlainRequest, result: Any) -> bytes | None:
        """The success response to a request; `None` if a connection has to refuse the result."""
        stated = request.stated
        plan = self._plan(stated.revision)
        try:
            return encode_response(
                request.id,
                result,
                request.method,
                stated.revision,
                stated.peer_capabilities,
                *plan.own_meta,
            )
        except Exception:
            return None

    def _plan(self, revision: Revision) -> _Plan:
        """The plan of a revision, made anew when the description of the server has changed."""
        description = self._describe(revision)
        plan = self._plans.get(revision.name)
        if plan is None or plan.description is not description:
            plan = self._plans[revision.name] = self._new_plan(revision, description)
        return plan

    def _new_plan(self, revision: Revision, description: Description) -> _Plan:
        left_out = _STATEFUL | {revision.facts.behaviour.listen}
        methods = {
            name: method
            for name, method in revision.client_requests.items()
            if name not in left_out
            and method.params is not None
            and (not method.capability or is_declared(description.capabilities, method.capability))
        }
        return _Plan(description, methods, self._meta.of_results(revision, self._describe))


class PlainEndpoint(Protocol):
    """Serves requests the plain way, and the whole way.

    Attributes:
        requests: Encodes the responses.
    """

    requests: PlainRequests

    def admit(self, request: HttpRequest, call: PlainCall) -> tuple[RequestMetadata, Any] | None:
        """The metadata of a call and its session; `None` if the call is not certainly plain."""
        ...

    def read(
        self, request: HttpRequest, message: jsonrpc.Request
    ) -> tuple[PlainRequest, Any] | None:
        """A request and its session; `None` if the request is not certainly plain."""
        ...

    def open(self, served: PlainService) -> Opened:
        """Make a request an open one, unless its response was sent."""
        ...

    def wait(self, served: PlainService) -> None:
        """Have a request observed, whose handler waits, before anything concerns it."""
        ...

    def stop_waiting(self, served: PlainService) -> None:
        """Record that the handler of a request that waited has ended."""
        ...


class PlainService(ServedCall):
    """The service of one request. It costs little before `observe`.

    Args:
        endpoint: Makes it an open request.
        post: The POST.
        stated: The metadata of the request.
        session: Its session, if it has one.
        scope: The scope that it is served in; `None` if none was entered yet.
        received: The request, or as much of it as a plan needs.
        body: The body of the POST, to read the rest from.

    Attributes:
        post: As passed.
        session: As passed.
        scope: As passed, or entered since.
        since: When the handler began to wait, on the monotonic clock; `None` if it did not.
        done: Whether the response was sent the plain way.
    """

    __slots__ = ("_endpoint", "_opened", "done", "post", "scope", "session", "since")

    def __init__(
        self,
        endpoint: PlainEndpoint,
        post: Post,
        stated: RequestMetadata,
        session: Any,
        scope: anyio.CancelScope | None,
        received: PlainCall | PlainRequest,
        body: bytes = b"",
    ) -> None:
        self.stated = stated
        self.id = received.id
        self.received = received
        self.body = body
        self.observed = False
        self._endpoint = endpoint
        self.post = post
        self.session = session
        self.scope = scope
        self._opened: Opened | None = None
        self.since: float | None = None
        self.done = False

    def observe(self) -> PendingRequests:
        """Sends to the client of the request, which is an open request from now on. Idempotent."""
        return self._whole_way()[0]

    async def serve_in(self, new_scope: Callable[[], anyio.CancelScope], running: Running) -> bool:
        """Serve the request in a scope of its own, as a handler that may suspend needs one."""
        with new_scope() as self.scope:
            return await self.serve(running)
        return True  # the request was cancelled

    async def serve(self, running: Running) -> bool:
        """Serve the request.

        Args:
            running: The handler, not begun yet.

        Returns:
            Whether it was served, and is not left to the whole way.
        """
        try:
            awaited = running.send(None)
        except StopIteration as stop:
            end: CallEnd = stop.value
        else:
            self.since = monotonic()
            if not self.observed:
                self._endpoint.wait(self)
            try:
                end = await resume(running, awaited)
            finally:
                self._endpoint.stop_waiting(self)
        if end is None:
            return False
        if isinstance(end, bytes):
            self.done = True
            try:
                await send_json(end, self.post[2])
            except Exception as error:
                logger.debug("not sent: %s", error)
            return True
        finish = self._whole_way()[1]
        assert finish is not None  # the response was not sent
        if self.scope is not None:
            await finish(self.scope, end)
        else:
            with anyio.CancelScope() as self.scope:
                await finish(self.scope, end)
        return True

    def _whole_way(self) -> Opened:
        if self._opened is None:
            self.observed = not self.done
            self._opened = self._endpoint.open(self)
        return self._opened


_BEGIN_AT_ONCE = frozenset(
    {"uvicorn.protocols.http.httptools_impl", "uvicorn.protocols.http.h11_impl", "asyncio.queues"}
)
"""Modules with coroutine functions `receive` that enter no cancel scope before they suspend."""


def begin_receiving(receive: Receive) -> tuple[Message | None, Awaitable[Message] | None]:
    """The first message, if it is there at once; and what gives it, if `receive` was called.

    A cancel scope that is entered later has to be left later too. So only a `receive` that enters
    none is called before the scope of the request is entered.
    """
    if getattr(receive, "__module__", "") not in _BEGIN_AT_ONCE and not never_suspends(receive):
        return None, None
    coroutine: Any = receive()
    try:
        awaited = coroutine.send(None)
    except StopIteration as end:
        return end.value, None
    return None, resume(coroutine, awaited)


def serve_plainly(
    endpoint: PlainEndpoint,
    handle: Callable[[RequestContext], Coroutine[Any, Any, Any]],
    post: Post,
    message: jsonrpc.Request,
    scope: anyio.CancelScope,
) -> Awaitable[object] | None:
    """Responds to a POST; `None`, and nothing was done, if it has to go the whole way.

    Args:
        endpoint: Serves it the whole way.
        handle: Handles the request.
        post: The POST.
        message: The request in its body.
        scope: The scope of the caller.
    """
    admitted = endpoint.read(post[0], message)
    if admitted is None:
        return None
    request, session = admitted

    served = PlainService(endpoint, post, request.stated, session, scope, request)

    async def run() -> CallEnd:
        try:
            result = await handle(served.context())
        except GeneratorExit:
            raise
        except BaseException as error:  # for the whole way to tell failures from cancellation
            return outcome(None, error)
        data = None if served.observed else endpoint.requests.encode(request, result)
        return outcome(result, None) if data is None else data

    return served.serve(run())
