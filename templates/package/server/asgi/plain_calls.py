"""The plain way of a request: a fast path without connection, peer and response writer.

Until a handler suspends, no other task runs. So nothing can cancel its request, count the open
requests, or send a message before the response, unless the handler itself asks for its peer. A
request whose handler returns without suspending and without its peer needs no connection, no peer
and no response writer: the request is decoded, handled, encoded and sent.

The handler is started at once, in the task of the request, and only once. If it fails or asks for
its peer, the objects of the whole way are made at that moment. If it suspends, they are made by the
first event that may concern the request: the next message of its session, the periodic check of
long calls, or the end of the server. The plain way refuses nothing and has no errors of its own:
a request that is not certainly plain is left to the whole way, before it has any effect.

Most requests repeat the `_meta` of the previous request, or belong to a session that has admitted
their method. Reading such a request changes no state, so only its typed params are needed
(`PlainRequests`).

A tool call that has a plan (see `CallPlan`) costs even less: its params are decoded on first use,
and a function that can't suspend needs no cancel scope.

Checks of the head, limits, authentication, tracing and middleware are those of the whole way: they
run before and around the plain way.
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
from ...protocol.handshake import FOLLOWING, HandshakeConnection
from ...protocol.lifecycle import Description, RequestMetadata, is_declared
from ...protocol.request_meta import NO_META, MetaCache, lacks_meta
from ...protocol.requests import encode_response
from ...protocol.states import DISCOVER
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
"""Awaits a started handler in the scope of the current task, and responds."""

Opened: TypeAlias = tuple[PendingRequests, Finish | None]
"""Sends to the client of an open request, and finishes the request unless it has a response."""

Running: TypeAlias = Coroutine[Any, Any, CallEnd]
"""The handler of a request."""


_STATEFUL = FOLLOWING | HandshakeConnection.own_requests() | {DISCOVER}
"""Requests that change or read the state of a connection."""


class _Plan(msgspec.Struct, frozen=True):
    """The parts that requests of one revision share.

    Attributes:
        description: The description of the server that declares the methods.
        methods: The declared requests, by wire name.
        own_meta: `_meta` of every result, empty for none; and this `_meta` as JSON.
    """

    description: Description
    methods: Mapping[str, Method]
    own_meta: tuple[Mapping[str, Any], Any]


class PlainRequests:
    """Reads the requests of one server's clients, and encodes the responses.

    Args:
        describe: Returns the description of the server for a revision.
        meta: `_meta` shared with the connections of the same requests.
    """

    def __init__(self, describe: Callable[[Revision], Description], meta: MetaCache) -> None:
        self._describe = describe
        self._meta = meta
        self._plans: dict[str, _Plan] = {}

    def read(
        self, message: jsonrpc.Request, stated: RequestMetadata | None, meta: Mapping[str, Any]
    ) -> PlainRequest | None:
        """Read a request that repeats the `_meta` of the last request; `None` otherwise.

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
        """Read a request without `_meta` whose method the session has admitted, or `None`."""
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
        """The plan of a revision, renewed when the description of the server has changed."""
        description = self._describe(revision)
        plan = self._plans.get(revision.name)
        if plan is None or plan.description is not description:
            plan = self._plans[revision.name] = self._new_plan(revision, description)
        return plan

    def _new_plan(self, revision: Revision, description: Description) -> _Plan:
        excluded = _STATEFUL | {revision.facts.behaviour.listen}
        methods = {
            name: method
            for name, method in revision.client_requests.items()
            if name not in excluded
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
        """Register a request with a connection, unless its response was sent."""
        ...

    def wait(self, served: PlainService) -> None:
        """Record that the handler of a request waits; `observe` is called before other events."""
        ...

    def stop_waiting(self, served: PlainService) -> None:
        """Record that the handler of a waiting request has ended."""
        ...


class PlainService(ServedCall):
    """The service of one request, which is cheap until `observe` is called.

    Args:
        endpoint: Opens the request for `observe`.
        post: The POST.
        stated: The metadata of the request.
        session: The session of the request, if it has one.
        scope: The scope of the request; `None` if none was entered yet.
        received: The request, or the part of the request that a plan needs.
        body: The body of the POST, for reading the rest of the request.

    Attributes:
        post: As passed.
        session: As passed.
        scope: As passed, or entered later.
        since: Time when the handler began to wait, on the monotonic clock; `None` if it did not.
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
        """Open the request, and return the requests to its client. Idempotent."""
        return self._open_request()[0]

    async def serve_in(self, new_scope: Callable[[], anyio.CancelScope], running: Running) -> bool:
        """Serve the request in a new scope, which a handler that may suspend needs."""
        with new_scope() as self.scope:
            return await self.serve(running)
        return True  # the request was cancelled

    async def serve(self, running: Running) -> bool:
        """Serve the request.

        Args:
            running: The handler, not started yet.

        Returns:
            Whether the request was served; `False` leaves the request to the whole way.
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
        finish = self._open_request()[1]
        assert finish is not None  # the response was not sent
        if self.scope is not None:
            await finish(self.scope, end)
        else:
            with anyio.CancelScope() as self.scope:
                await finish(self.scope, end)
        return True

    def _open_request(self) -> Opened:
        if self._opened is None:
            self.observed = not self.done
            self._opened = self._endpoint.open(self)
        return self._opened


_BEGIN_AT_ONCE = frozenset(
    {"uvicorn.protocols.http.httptools_impl", "uvicorn.protocols.http.h11_impl", "asyncio.queues"}
)
"""Modules whose `receive` enters no cancel scope before it suspends."""


def begin_receiving(receive: Receive) -> tuple[Message | None, Awaitable[Message] | None]:
    """The first message if it has arrived, or an awaitable of it if `receive` was called.

    Cancel scopes have to nest. So `receive` is called before the scope of the request is entered
    only if `receive` enters no scope itself.
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
    """Respond to a POST the plain way; `None` without any effect if it has to go the whole way.

    Args:
        endpoint: The endpoint of the POST.
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
        except BaseException as error:  # the whole way tells failures from cancellation
            return outcome(None, error)
        data = None if served.observed else endpoint.requests.encode(request, result)
        return outcome(result, None) if data is None else data

    return served.serve(run())
